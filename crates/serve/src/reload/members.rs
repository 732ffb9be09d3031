//! Members of fleets come to be served by a new graph, in the way of a reload, but it is none. No file is read, no generation,
//! plan or result of a reload changes, and a thread builds only the chunks of nodes in which something has changed: it
//! shares the others with its present graph ([`crate::graph::sharing`]).

use super::listeners::PreviousListeners;
use super::reloader::{MOST_LEFT, NewTopology, PreparedTopology, Reloader, State, Step, lock};
use crate::exchange::NodeId;
use crate::fleets::{
    self, Answer, Applies, FirstLists, FleetMembers, FleetSet, HandedFleet, ListResult, Message, Question,
    Withdrawn,
};
use crate::metrics::Samples;
use crate::metrics::families::Id as Of;
use crate::threads::generation::Generation;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, TryLockError};
use std::time::Duration;
use weir_plan::fleets::{MemberPlaces, with_members};
use weir_plan::serving::{Serving, serving};
use weir_plan::{Point, Spec, sticky};

/// The number of graphs, each with this number of nodes, that may remain before members change once more: they share most
/// of their nodes, but each has a plan of its own. Unlike those of reloads none is cut short.
fn most_graphs(nodes: usize) -> usize {
    const NODES: usize = 1_500_000;
    (NODES / nodes.max(1)).clamp(4 * MOST_LEFT, 1_000)
}

/// The purpose of draws for pauses of sources that fail.
const SOURCES: u64 = 0x534f_5552;

/// A topology with the members that its fleets have.
pub(crate) struct Filled {
    pub point: Arc<Point>,
    pub serving: Arc<Serving>,
    pub nodes: Vec<NodeId>,
}

/// A topology with these members, by place and by the number of their fleet. `nodes`: its listeners.
///
/// # Errors
/// It cannot be served so, in words.
pub(crate) fn filled(
    point: &Point,
    nodes: &[NodeId],
    members: &[Option<MemberPlaces>],
    inject: bool,
) -> Result<Filled, String> {
    let full = with_members(point, members);
    let serving = serving(&full, inject).map_err(|wrong| words(&wrong))?;
    let same = same_listeners(point, &full);
    let now: BTreeMap<NodeId, NodeId> = same.iter().map(|(now, before)| (*before, *now)).collect();
    let nodes = nodes.iter().filter_map(|before| now.get(before).copied()).collect();
    Ok(Filled { point: Arc::new(full), serving: Arc::new(serving), nodes })
}

/// The listeners of one point of a file, by those of another: each has a name of its own.
fn same_listeners(before: &Point, now: &Point) -> BTreeMap<NodeId, NodeId> {
    fn named(point: &Point) -> impl Iterator<Item = (&str, NodeId)> {
        let is_listener = |id: &NodeId| matches!(point.spec(*id), Some(Spec::Listen(_)));
        let all = (0..point.nodes.len() as NodeId).filter(is_listener);
        all.filter_map(|id| Some((point.nodes[id as usize].name.as_deref()?, id)))
    }
    let before: BTreeMap<&str, NodeId> = named(before).collect();
    named(now).filter_map(|(name, id)| Some((id, *before.get(name)?))).collect()
}

fn words(wrong: &[impl ToString]) -> String {
    wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The keys of cookies in another point of the same file.
fn same_keys(before: &Generation, point: &Point) -> Result<BTreeMap<NodeId, [u64; 2]>, String> {
    fn sticky_of(point: &Point, id: NodeId) -> Option<(&String, &Option<String>)> {
        let Some(Spec::Lb(lb)) = point.spec(id) else { return None };
        Some((lb.sticky.as_ref()?, &lb.sticky_key))
    }
    let blueprint = &before.blueprint;
    let known = blueprint.sticky_keys.iter();
    let known: BTreeMap<_, _> =
        known.filter_map(|(id, key)| Some((sticky_of(&blueprint.point, *id)?, *key))).collect();
    let all = (0..point.nodes.len() as NodeId).filter_map(|id| Some((id, sticky_of(point, id)?)));
    let keys: Option<BTreeMap<_, _>> = all.map(|(id, of)| Some((id, *known.get(&of)?))).collect();
    // A balancer inside of members: there was none before.
    keys.map_or_else(|| sticky::keys(point).map_err(|wrong| words(&wrong)), Ok)
}

impl Reloader {
    /// Waits a while for lists of sources that no fleet had before.
    pub(super) fn first_lists(&self, point: &Point) -> Result<FirstLists, String> {
        if self.process.run.is_some() {
            return Ok(FirstLists::default());
        }
        let unheard = lock(&self.fleets).unheard(point);
        let readers = &self.options.readers;
        fleets::first_lists(&unheard, readers, self.key.with(SOURCES)).map_err(|e| e.to_string())
    }

    /// The topology of a reload with the members of its fleets, and those fleets.
    pub(super) fn fill(
        &self,
        next: &NewTopology,
        first: &FirstLists,
    ) -> Result<(NewTopology, FleetSet), String> {
        if next.point.sourced().next().is_none() || self.process.run.is_some() {
            return Ok((next.clone(), FleetSet::default()));
        }
        let mut known = lock(&self.fleets).clone();
        // A source that is followed already may have given a newer one meanwhile, and does not give it again.
        for (source, list) in &first.lists {
            known.lists.entry(source.clone()).or_insert_with(|| list.clone());
        }
        let set = known.renewed(&next.point, self.process.clock.now(), first.waited);
        let Filled { point, serving, nodes } =
            filled(&next.point, &next.nodes, &set.members(), self.options.inject)?;
        Ok((NewTopology { point, serving, nodes, ..next.clone() }, set))
    }

    /// Serves these fleets from now on: sends word to their keeper, or starts it.
    pub(crate) fn keep_fleets(self: &Arc<Self>, set: FleetSet) -> io::Result<()> {
        let (is_empty, sources) = (set.fleets.is_empty(), set.followed());
        *lock(&self.fleets) = set;
        let mut keeper = lock(&self.keeper);
        match &*keeper {
            Some(keeper) => _ = keeper.send(Message::Renewed(sources)),
            None if is_empty => {}
            None => {
                let readers = self.options.readers.clone();
                *keeper = Some(fleets::start(self.clone(), readers, self.key.with(SOURCES))?);
            }
        }
        Ok(())
    }

    /// Reads each fleet whose members are listed, with the time, ns.
    pub(crate) fn each_fleet<T>(&self, read: impl Fn(&FleetMembers, u64) -> T) -> Vec<T> {
        let (set, now_ns) = (lock(&self.fleets), self.process.clock.now());
        set.fleets.iter().map(|fleet| read(fleet, now_ns)).collect()
    }

    /// The members of fleets, for a successor.
    pub(crate) fn hand_fleets(&self) -> Vec<HandedFleet> {
        lock(&self.fleets).hand(self.process.clock.now())
    }

    /// What is counted of fleets.
    pub(crate) fn gather_fleets(&self, out: &mut Samples) {
        let (set, now_ns) = (lock(&self.fleets), self.process.clock.now());
        for fleet in &set.fleets {
            let of = || (&fleet.name).into();
            let (counts, changes) = (fleet.counts(), fleet.changes);
            let states = [("up", counts.up), ("drain", counts.drain), ("withdrawn", counts.withdrawn)];
            for (state, count) in states {
                out.add(Of::FleetMembers, [of(), state.into()], count as u64);
            }
            for (result, count) in ListResult::ALL.iter().zip(fleet.lists) {
                out.add(Of::FleetLists, [of(), result.name().into()], count);
            }
            let kinds =
                [("added", changes.added), ("removed", changes.removed), ("changed", changes.changed)];
            for (change, count) in kinds {
                out.add(Of::FleetChanges, [of(), change.into()], count);
            }
            out.add(Of::FleetStale, [of()], fleet.stale_s(now_ns).unwrap_or_default());
        }
    }

    /// No member changes any more, once listeners close: until then requests come as before.
    pub(super) fn stop_keeper(&self) {
        let is_replaced = self.process.replaced.load(Ordering::Relaxed);
        let current = lock(&self.state).current.clone();
        let delays = current.confs.values().map(|conf| conf.listen.http.drain_delay_ns);
        let delay_ns = delays.max().filter(|_| !is_replaced).unwrap_or_default();
        if let Some(keeper) = &*lock(&self.keeper) {
            let _ = Sender::send(keeper, Message::Stop(Duration::from_nanos(delay_ns)));
        }
    }

    /// Serves the members that the fleets have.
    fn serve_members(&self) -> Result<(), String> {
        let (before, logs, next_number) = {
            let state = lock(&self.state);
            (state.current.clone(), state.logs.clone(), state.next)
        };
        let was = &before.blueprint;
        let nodes: Vec<NodeId> = before.confs.values().map(|conf| conf.node).collect();
        let members = lock(&self.fleets).members();
        let Filled { point, serving, nodes } = filled(&was.point, &nodes, &members, self.options.inject)?;
        let previous = PreviousListeners {
            confs: &before.confs,
            inner: &was.inner,
            logs: &logs,
            next: next_number,
            loops: self.process.loops() as usize,
        };
        let certificates = before.certificates.moved(&same_listeners(&was.point, &point));
        let keys = same_keys(&before, &point)?;
        let topology = PreparedTopology { point, serving, nodes, certificates, keys };
        let prepared = self.build(&before, &previous, topology, Step::Members);
        let (generation, bound) = prepared.map_err(|e| e.to_string())?;
        lock(&self.of_members).insert(generation.blueprint.epoch);
        self.hand_out(&generation, bound.sockets);
        self.keep_former(before.large_parts());
        *lock(&self.state) = State { current: generation, logs: bound.logs, next: bound.next };
        Ok(())
    }
}

impl Applies for Reloader {
    fn has_room(&self) -> bool {
        let nodes = lock(&self.state).current.blueprint.point.nodes.len();
        self.process.state.epochs().len() <= most_graphs(nodes)
    }

    fn note(&self, act: &mut dyn FnMut(&mut FleetSet)) -> bool {
        let _one_at_a_time = match self.applying.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        act(&mut lock(&self.fleets));
        true
    }

    fn change(&self, act: &mut dyn FnMut(&mut FleetSet, u64) -> bool) -> Result<(), String> {
        let _one_at_a_time = lock(&self.applying);
        if act(&mut lock(&self.fleets), self.process.clock.now()) { self.serve_members() } else { Ok(()) }
    }

    fn read<T>(&self, read: impl FnOnce(&FleetSet, u64) -> T) -> T {
        read(&lock(&self.fleets), self.process.clock.now())
    }

    fn ask(&self, members: Vec<Withdrawn>) -> (Arc<Question>, Vec<Answer>) {
        let current = lock(&self.state).current.clone();
        let question = Arc::new(Question::new(&current.blueprint, members));
        let own = question.clone();
        let answers = self.process.ask_all(move |lp| own.answer(lp));
        (question, answers.into_iter().map(Option::flatten).collect())
    }

    fn say(&self, line: String) {
        self.process.errors.note(|| line);
    }

    fn warn(&self, line: String) {
        self.process.errors.urgent(|| line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::panic_tests::serve;

    /// The numbers of fleets wait for no change that is applied, however long that takes.
    #[test]
    fn numbers_of_fleets_change_unless_another_change_is_applied() {
        let (running, _) = serve("listen(\"127.0.0.1:0\", server(\"a\", addr=\"127.0.0.1:1\"))");
        let remote = running.remote();
        let reloader = remote.reloader();
        let note = || {
            let mut calls = 0;
            let has_changed = reloader.note(&mut |_| calls += 1);
            (has_changed, calls)
        };
        assert_eq!(note(), (true, 1));
        let applied = lock(&reloader.applying);
        assert_eq!(note(), (false, 0));
        drop(applied);
        assert_eq!(note(), (true, 1));
        remote.drain();
    }
}
