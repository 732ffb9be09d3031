//! Changes of fleets in a run of a verification: at each instant at which the simulation lets a balancer see a change, all
//! threads adopt a graph in which it has the targets of then.
//!
//! The nodes of every member that ever is are in the point from the start, so that numbers, identities and draws stay as they
//! are: only the balancers' lists differ. A graph is built before its instant, while requests go on, unless a target that the
//! last list lacks may fail before: what a failure ends is picked no more at once ([`Views`]). The first generation is
//! kept for as long as changes follow, so that no index of a target is used twice, as none is in the simulation.

use super::reloader::{Reloader, lock};
use super::views::{TargetLists, TargetStep, Views};
use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use crate::threads::generation::Generation;
use crate::verify_run::{PlayerMessage, RunRole, TargetFailure, VerifyRun};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use weir_net::io::clock::monotonic_ns;
use weir_plan::fleets::Sight;
use weir_plan::{Edge, Point};

/// The point in which balancers have the targets that a run begins with; the same where nothing changes.
pub(crate) fn at_start(point: &Arc<Point>, run: Option<&VerifyRun>) -> Arc<Point> {
    match run {
        Some(run) if plays(run) => {
            Arc::new(with_targets(point, &run.timetable.first.iter().cloned().collect()))
        }
        _ => point.clone(),
    }
}

/// Starts to play the changes of a run, if it has any, on a thread that ends with the process. `point`: with every member that
/// ever is.
pub(crate) fn start(reloader: &Arc<Reloader>, point: &Arc<Point>) -> io::Result<()> {
    let Some(run) = reloader.process.run.clone().filter(|run| plays(run)) else { return Ok(()) };
    let played = || io::Error::other("the changes of this run are played already");
    let inbox = run.player.open().ok_or_else(played)?;
    let player = Player {
        views: Views::new(&run.timetable),
        point: point.clone(),
        first: lock(&reloader.state).current.clone(),
        reloader: reloader.clone(),
        run,
        inbox,
        later: None,
    };
    std::thread::Builder::new().name("weir-changes".to_owned()).spawn(move || player.play())?;
    Ok(())
}

/// Whether a process plays changes: one that only has the built-in servers runs those of all members.
fn plays(run: &VerifyRun) -> bool {
    matches!(run.role, RunRole::Routes { .. }) && !run.timetable.sights.is_empty()
}

struct Player {
    reloader: Arc<Reloader>,
    run: Arc<VerifyRun>,
    point: Arc<Point>,
    /// What balancers have seen.
    views: Views,
    /// Kept, so that its requests count as ones that could still be at any index.
    first: Arc<Generation>,
    inbox: Receiver<PlayerMessage>,
    /// A failure behind the instant that was waited for.
    later: Option<TargetFailure>,
}

/// How a wait for an instant ends.
enum WaitEnd {
    /// It has come.
    Due,
    /// A target has failed before it.
    Failure(TargetFailure),
    /// Nothing changes any more.
    Stop,
}

/// A generation of which all threads have built their graphs, and how long they may take to adopt it.
struct BuiltGeneration {
    generation: Arc<Generation>,
    patience: Duration,
}

impl Player {
    fn play(mut self) {
        let run = self.run.clone();
        let mut rest = &run.timetable.sights[..];
        while let Some(at_ns) = next_instant(rest, &self.views) {
            let come = match self.views.next_deadline() {
                None => self.step_ahead(&mut rest, at_ns),
                Some(_) => self.step_unless_failure(&mut rest, at_ns),
            };
            if !come {
                return;
            }
        }
        // Until the run is over requests of its first graph could be anywhere.
        while let Ok(PlayerMessage::Failed(_)) = self.inbox.recv() {}
    }

    /// Takes the next step at its instant, its graph built before. Returns whether the instant has come.
    fn step_ahead(&mut self, rest: &mut &[Sight], at_ns: u64) -> bool {
        let step = take_step(rest, &mut self.views, at_ns);
        let built = self.build(&step);
        loop {
            match self.wait(at_ns) {
                WaitEnd::Due => break,
                // Until the step no list lacks a target.
                WaitEnd::Failure(_) => {}
                WaitEnd::Stop => return false,
            }
        }
        self.adopt(built);
        true
    }

    /// Takes the next step at its instant, or heeds a target that fails before. Returns whether either has come.
    fn step_unless_failure(&mut self, rest: &mut &[Sight], at_ns: u64) -> bool {
        let mut step = TargetStep::default();
        match self.wait(at_ns) {
            WaitEnd::Due => step = take_step(rest, &mut self.views, at_ns),
            WaitEnd::Failure(failure) => self.heed(failure, &mut step),
            WaitEnd::Stop => return false,
        }
        let built = self.build(&step);
        self.adopt(built);
        true
    }

    /// A target has failed.
    fn heed(&mut self, failure: TargetFailure, step: &mut TargetStep) {
        let TargetFailure { lb, target, at_ns } = failure;
        let current = lock(&self.reloader.state).current.clone();
        // One that was removed meanwhile is not the member that has come back: that one has an index of its own.
        if let Some(Some(node)) = current.blueprint.targets(lb).get(target.index()) {
            self.views.fail(lb, *node, at_ns, step);
        }
    }

    /// Lets all threads build their graphs of what a step leads to; `None`: no balancer has other targets.
    fn build(&self, step: &TargetStep) -> Option<BuiltGeneration> {
        if step.is_empty() {
            return None;
        }
        let generation = Arc::new(self.generation(&step.gains_first));
        let patience = self.reloader.build_graphs(&generation);
        Some(BuiltGeneration { generation, patience })
    }

    /// Lets all threads adopt a generation.
    fn adopt(&self, built: Option<BuiltGeneration>) {
        let Some(BuiltGeneration { generation, patience }) = built else { return };
        // No request of a run comes to a built-in server of this process.
        let no_sockets = (0..self.reloader.process.loops()).map(|_| Vec::new()).collect();
        self.reloader.adopt_outside(&generation, no_sockets, patience);
        self.reloader.adopt_inside(&generation, patience);
        let before = std::mem::replace(&mut lock(&self.reloader.state).current, generation);
        if !Arc::ptr_eq(&before, &self.first) {
            self.reloader.keep_former(before.large_parts());
        }
    }

    /// The generation in which balancers have the targets that they see.
    fn generation(&self, gains_first: &BTreeSet<NodeId>) -> Generation {
        let before = lock(&self.reloader.state).current.clone();
        let (own, process) = (&before.blueprint, &self.reloader.process);
        let mut blueprint = Blueprint::new(
            own.epoch + 1,
            Arc::new(with_targets(&self.point, self.views.targets())),
            own.serving.clone(),
            own.sticky_keys.clone(),
            &process.state,
            process.clock.now(),
            own.draws.clone(),
        );
        blueprint.make_tables(Some(own), process.loops());
        blueprint.inner = own.inner.clone();
        blueprint.generation = own.generation;
        blueprint.gains_first = gains_first.clone();
        Generation {
            blueprint: Arc::new(blueprint),
            names: before.names.clone(),
            certificates: before.certificates.clone(),
            confs: before.confs.clone(),
        }
    }

    /// Waits for an instant of the run, or for a failure before it; what is there from the beginning of the run is not waited
    /// for.
    fn wait(&mut self, at_ns: u64) -> WaitEnd {
        let instant_ns = if at_ns == 0 { 0 } else { self.run.begins_ns.saturating_add(at_ns) };
        loop {
            match self.later.take_if(|failure| failure.at_ns < at_ns) {
                Some(failure) => return WaitEnd::Failure(failure),
                // It has failed since the instant, or at it.
                None if self.later.is_some() => return WaitEnd::Due,
                None => {}
            }
            let left = Duration::from_nanos(instant_ns.saturating_sub(monotonic_ns()));
            match self.inbox.recv_timeout(left) {
                Ok(PlayerMessage::Failed(failure)) => self.later = Some(failure),
                Err(RecvTimeoutError::Timeout) if instant_ns <= monotonic_ns() => return WaitEnd::Due,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(PlayerMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return WaitEnd::Stop,
            }
        }
    }
}

/// When something is next seen, or a grace ends, ns from the start of the run.
fn next_instant(rest: &[Sight], views: &Views) -> Option<u64> {
    rest.first().map(|sight| sight.at_ns).into_iter().chain(views.next_deadline()).min()
}

/// Takes what happens at an instant: the next sights, or else ends of graces, which come behind sights.
fn take_step(rest: &mut &[Sight], views: &mut Views, at_ns: u64) -> TargetStep {
    let mut step = TargetStep::default();
    let all = *rest;
    if all.first().is_some_and(|sight| sight.at_ns <= at_ns) {
        let (seen, later) = all.split_at(first_step(all));
        *rest = later;
        seen.iter().for_each(|sight| views.see(sight, &mut step));
    } else {
        views.end_graces(at_ns, &mut step);
    }
    step
}

/// How many of these sights are one step: those of several balancers at one instant.
fn first_step(sights: &[Sight]) -> usize {
    let mut seen = BTreeSet::new();
    let at_ns = sights.first().map(|sight| sight.at_ns);
    sights.iter().take_while(|sight| Some(sight.at_ns) == at_ns && seen.insert(sight.lb)).count()
}

/// The point in which these balancers have these targets, each in a list of its own.
fn with_targets(point: &Point, targets: &TargetLists) -> Point {
    let mut point = point.clone();
    for (lb, targets) in targets {
        let Some(node) = point.nodes.get_mut(*lb as usize) else { continue };
        node.to = Edge::List(point.lists.len() as u32);
        point.lists.push(targets.clone());
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::fleets::{SourceDoubt, TargetList, TargetNews, Timetable};
    use weir_policy::fleet::Doubt;

    fn sight(at_ns: u64, lb: NodeId, news: &[TargetNews]) -> Sight {
        Sight { at_ns, lb, news: news.to_vec() }
    }

    #[test]
    fn balancers_that_see_at_one_instant_change_together() {
        let add = [TargetNews::Add(9), TargetNews::Remove(1)];
        let sights = [sight(5, 20, &add), sight(5, 21, &add), sight(5, 20, &[]), sight(6, 21, &[])];
        assert_eq!([0, 2, 3, 4].map(|from| first_step(&sights[from..])), [2, 1, 1, 0]);
        let mut views =
            Views::new(&Timetable { first: vec![(20, vec![1, 2]), (21, vec![2])], ..Timetable::default() });
        let mut rest = &sights[..];
        let step = take_step(&mut rest, &mut views, 5);
        assert_eq!((step.changed.len(), rest.len()), (2, 2));
        assert_eq!(*views.targets(), TargetLists::from([(20, vec![2, 9]), (21, vec![2, 9])]));
    }

    /// A grace ends between two sights, and behind one at its instant, which may list the target again.
    #[test]
    fn ends_of_graces_are_steps() {
        let doubt = Doubt { shrink: Some(0.4), grace_ns: 10 };
        let mut views = Views::new(&Timetable {
            first: vec![(20, vec![1, 2])],
            doubts: vec![SourceDoubt { lb: 20, source: 0, doubt, first: vec![1, 2] }],
            ..Timetable::default()
        });
        let list = |targets: &[NodeId]| TargetNews::List(TargetList { source: 0, targets: targets.to_vec() });
        let sights = [sight(5, 20, &[list(&[])]), sight(9, 20, &[list(&[2])]), sight(20, 20, &[list(&[2])])];
        let mut rest = &sights[..];
        let mut steps = Vec::new();
        while let Some(at_ns) = next_instant(rest, &views) {
            let step = take_step(&mut rest, &mut views, at_ns);
            steps.push((at_ns, step.is_empty(), views.targets()[&20].len()));
        }
        assert_eq!(steps, [(5, true, 2), (9, true, 2), (15, false, 1), (20, true, 1)]);
    }
}
