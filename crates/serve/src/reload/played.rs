//! Changes of fleets in a run of a verification: at each instant at which the simulation lets a balancer see a change, all
//! threads adopt a graph in which it has the targets of then.
//!
//! The nodes of every member that ever is are in the point from the start, so that numbers, identities and draws stay as they
//! are: only the balancers' lists differ. A graph is built before its instant, while requests go on. The first generation is
//! kept for as long as changes follow, so that no index of a target is used twice, as none is in the simulation.

use super::reloader::{Reloader, lock};
use crate::exchange::NodeId;
use crate::fleets::Message;
use crate::graph::blueprint::Blueprint;
use crate::threads::generation::Generation;
use crate::verify_run::{RunRole, VerifyRun};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use weir_net::io::clock::monotonic_ns;
use weir_plan::fleets::{Sight, TargetMove};
use weir_plan::{Edge, Point};

/// The targets of the balancers whose targets change.
type Targets = BTreeMap<NodeId, Vec<NodeId>>;

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
    let (out, inbox) = channel();
    *lock(&reloader.keeper) = Some(out);
    let player = Player {
        targets: run.timetable.first.iter().cloned().collect(),
        point: point.clone(),
        first: lock(&reloader.state).current.clone(),
        reloader: reloader.clone(),
        run,
        inbox,
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
    /// What balancers see now.
    targets: Targets,
    /// Kept, so that its requests count as ones that could still be at any index.
    first: Arc<Generation>,
    /// A message ends it.
    inbox: Receiver<Message>,
}

impl Player {
    fn play(mut self) {
        let run = self.run.clone();
        let mut rest = &run.timetable.sights[..];
        while let Some(at_ns) = rest.first().map(|sight| sight.at_ns) {
            let (step, later) = rest.split_at(first_step(rest));
            rest = later;
            step.iter().for_each(|sight| see(&mut self.targets, sight));
            let generation = Arc::new(self.generation(step));
            let patience = self.reloader.build_graphs(&generation);
            if !self.wait(at_ns) {
                return;
            }
            // No request of a run comes to a built-in server of this process.
            let no_sockets = (0..self.reloader.process.loops()).map(|_| Vec::new()).collect();
            self.reloader.adopt_outside(&generation, no_sockets, patience);
            self.reloader.adopt_inside(&generation, patience);
            let before = std::mem::replace(&mut lock(&self.reloader.state).current, generation);
            if !Arc::ptr_eq(&before, &self.first) {
                self.reloader.keep_former(before.large_parts());
            }
        }
        // Until the run is over requests of its first graph could be anywhere.
        let _ = self.inbox.recv();
    }

    /// The generation in which balancers have the targets that they see.
    fn generation(&self, step: &[Sight]) -> Generation {
        let before = lock(&self.reloader.state).current.clone();
        let (own, process) = (&before.blueprint, &self.reloader.process);
        let mut blueprint = Blueprint::new(
            own.epoch + 1,
            Arc::new(with_targets(&self.point, &self.targets)),
            own.serving.clone(),
            own.sticky_keys.clone(),
            &process.state,
            process.clock.now(),
            own.draws.clone(),
        );
        blueprint.make_tables(Some(own), process.loops());
        blueprint.inner = own.inner.clone();
        blueprint.generation = own.generation;
        let gains = |sight: &&Sight| matches!(sight.moves.first(), Some(TargetMove::Add(_)));
        blueprint.gains_first = step.iter().filter(gains).map(|sight| sight.lb).collect();
        Generation {
            blueprint: Arc::new(blueprint),
            names: before.names.clone(),
            certificates: before.certificates.clone(),
            confs: before.confs.clone(),
        }
    }

    /// Waits for an instant of the run; what is there from its beginning is not waited for. Returns whether it has come.
    fn wait(&self, at_ns: u64) -> bool {
        loop {
            let instant_ns = if at_ns == 0 { 0 } else { self.run.begins_ns.saturating_add(at_ns) };
            let left = Duration::from_nanos(instant_ns.saturating_sub(monotonic_ns()));
            match self.inbox.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) if instant_ns <= monotonic_ns() => return true,
                Err(RecvTimeoutError::Timeout) => {}
                _ => return false,
            }
        }
    }
}

/// How many of these sights are one step: those of several balancers at one instant.
fn first_step(sights: &[Sight]) -> usize {
    let mut seen = BTreeSet::new();
    let at_ns = sights.first().map(|sight| sight.at_ns);
    sights.iter().take_while(|sight| Some(sight.at_ns) == at_ns && seen.insert(sight.lb)).count()
}

/// A balancer sees a change. New targets are behind all others, as their indices are.
fn see(targets: &mut Targets, sight: &Sight) {
    let list = targets.entry(sight.lb).or_default();
    for of in &sight.moves {
        match of {
            TargetMove::Add(target) => list.push(*target),
            TargetMove::Remove(target) => list.retain(|own| own != target),
        }
    }
}

/// The point in which these balancers have these targets, each in a list of its own.
fn with_targets(point: &Point, targets: &Targets) -> Point {
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

    #[test]
    fn balancers_that_see_at_one_instant_change_together() {
        let sight = |at_ns, lb, moves: &[TargetMove]| Sight { at_ns, lb, moves: moves.to_vec() };
        let add = [TargetMove::Add(9), TargetMove::Remove(1)];
        let sights = [sight(5, 20, &add), sight(5, 21, &add), sight(5, 20, &[]), sight(6, 21, &[])];
        assert_eq!([0, 2, 3, 4].map(|from| first_step(&sights[from..])), [2, 1, 1, 0]);
        let mut targets = Targets::from([(20, vec![1, 2]), (21, vec![2])]);
        sights.iter().for_each(|sight| see(&mut targets, sight));
        assert_eq!(targets, Targets::from([(20, vec![2, 9]), (21, vec![2, 9])]));
    }
}
