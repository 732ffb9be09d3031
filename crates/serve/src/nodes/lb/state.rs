//! One thread's state of a balancer, kept while any graph has the balancer. It belongs to the balancer's identity and
//! not to a graph, so that a later graph continues with the same counts and estimates
//! (`docs/spec/operating.md#state`), and requests of an earlier one return to them.

use crate::exchange::abort::AbortFlag;
use crate::exchange::late::LateFlag;
use crate::nodes::lb::TargetFlags;
use crate::sync::{LocalSemaphore, Permit};
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::config::Balance;
use weir_policy::snapshot::Snapshot;
use weir_policy::{
    Operation, Outcome, SubsetTable, Table, TargetChange, TargetId, TargetNames, Ticket, Upstream,
};
use weir_stats::Key;

/// Comparing this many targets that neither come nor go takes about as long as noting one that does.
const UNCHANGED_PER_STEP: usize = 64;

/// The configuration that the state belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub balance: Balance,
    /// How long a target is passed over after a failed connection, ns.
    pub pass_over_ns: u64,
    /// By index: whether the target exists; its weight, and its name where a policy or a subset depends on it.
    pub exists: Vec<bool>,
    pub weights: Vec<f64>,
    pub names: TargetNames,
}

/// One target of it.
#[derive(Default)]
struct Slot {
    /// The flag that ends the requests in flight there after its removal.
    abort: AbortFlag,
    /// Requests that this thread has picked it for, and counts that are held after a failure.
    counted: Cell<u32>,
    /// The number of them that were reported to its load, and since when they are.
    told: Cell<u32>,
    told_since_ns: Cell<u64>,
    /// A permit for each request that was in flight when the present limit began.
    stand_ins: RefCell<Vec<Permit>>,
}

/// The subsets of a balancer as one loop uses them.
#[derive(Clone)]
pub(crate) struct OwnSubset {
    pub table: SubsetTable,
    /// The number of the loop among those that the targets are divided among.
    pub on: u32,
}

impl OwnSubset {
    /// The operation that gives it to the policy, to be recorded.
    pub fn operation(now_ns: u64, subset: Option<&OwnSubset>) -> Operation {
        let (table, on) = subset.map_or((None, 0), |own| (Some(own.table.clone()), own.on));
        Operation::Prefer { now_ns, table, on }
    }
}

/// What another shape changes, found a few targets at a time before it is adopted.
#[derive(Default)]
pub(crate) struct ShapeChange {
    /// Indices that were compared.
    compared: usize,
    /// Targets that the other shape adds (`true`) or lacks.
    changes: Vec<(TargetId, bool)>,
    /// Those that it lacks, with the flags that end their requests.
    removed: Vec<(TargetId, AbortFlag)>,
}

impl ShapeChange {
    /// Puts targets that are added before those that are removed.
    pub fn put_gains_first(&mut self) {
        self.changes.sort_by_key(|(_, is_new)| !is_new);
    }

    /// The changes of targets, in their order.
    fn of_targets<'a>(&'a self, shape: &'a Shape) -> impl Iterator<Item = TargetChange<'a>> + Clone {
        self.changes.iter().map(|(target, is_new)| match (*target, target.index()) {
            (target, i) if *is_new => {
                let name = shape.names.get(i).map_or("", |name| name);
                TargetChange::Add { target, weight: shape.weights[i], name }
            }
            (target, _) => TargetChange::Remove(target),
        })
    }

    /// What it does to the policy, to be recorded.
    pub fn operation(&self, now_ns: u64, shape: &Shape, health: Option<&Snapshot>) -> Operation {
        let changes = self.of_targets(shape).map(Into::into).collect();
        Operation::Change { now_ns, changes, health: health.cloned() }
    }
}

/// The state.
pub(crate) struct LbState {
    balance: RefCell<Balance>,
    /// The policy and the thread's part of what surrounds it.
    pub upstream: RefCell<Upstream>,
    slots: RefCell<Vec<Slot>>,
    /// By index, whether a target exists: apart, since a reload goes through all of it at once.
    exists: RefCell<Vec<bool>>,
    /// The flags that all loops share.
    flags: RefCell<Arc<TargetFlags>>,
    /// The limit of the targets, and when it began, ns.
    limit: RefCell<Option<Rc<LocalSemaphore>>>,
    limited_since_ns: Cell<u64>,
    /// Permits of requests of other loops.
    pub lent: RefCell<Vec<(TargetId, Permit)>>,
    /// When the policy next changes by itself, ns.
    pub due_ns: Cell<u64>,
    /// Whether the policy knows which targets are being probed.
    pub shown: Cell<bool>,
    /// Set while a `timeout` around it cuts a request off.
    pub late: LateFlag,
}

impl LbState {
    /// A state without picks; `upstream` has that shape.
    pub fn new(shape: &Shape, mut upstream: Upstream, flags: Arc<TargetFlags>) -> LbState {
        let gone = (0..).map(TargetId).zip(&shape.exists).filter(|(_, exists)| !**exists);
        let gone = gone.map(|(target, _)| TargetChange::Remove(target));
        upstream.change_targets(0, &gone.collect::<Vec<_>>());
        // With room for some that join: to move all others costs a loop more than the rest of such a change.
        let mut slots = Vec::with_capacity(shape.exists.len() + shape.exists.len() / 8);
        slots.extend(shape.exists.iter().map(|_| Slot::default()));
        LbState {
            balance: RefCell::new(shape.balance.clone()),
            upstream: RefCell::new(upstream),
            slots: RefCell::new(slots),
            exists: RefCell::new(shape.exists.clone()),
            flags: RefCell::new(flags),
            limit: RefCell::default(),
            limited_since_ns: Cell::new(0),
            lent: RefCell::default(),
            due_ns: Cell::new(0),
            shown: Cell::new(false),
            late: LateFlag::default(),
        }
    }

    /// Compares the next targets of a shape that is to be adopted with those that are there, in about `left` steps, and makes
    /// room for new ones; returns whether all are compared. A target that changes is a step, and so are [`UNCHANGED_PER_STEP`] others.
    pub fn compare(&self, shape: &Shape, change: &mut ShapeChange, left: &mut usize) -> bool {
        let (mut slots, mut there) = (self.slots.borrow_mut(), self.exists.borrow_mut());
        while *left > 0 && change.compared < shape.exists.len() {
            let next = change.compared..shape.exists.len().min(change.compared + UNCHANGED_PER_STEP);
            change.compared = next.end;
            *left -= 1;
            if there.get(next.clone()) == Some(&shape.exists[next.clone()]) {
                continue;
            }
            for at in next {
                let (target, is_there) = (TargetId(at as u32), there.get(at) == Some(&true));
                if is_there == shape.exists[at] {
                    continue;
                }
                *left = left.saturating_sub(1);
                change.changes.push((target, !is_there));
                if is_there {
                    change.removed.push((target, slots[at].abort.clone()));
                    continue;
                }
                match slots.get_mut(at) {
                    // No request is left that could be at a former target of this index.
                    Some(slot) => *slot = Slot::default(),
                    None => {
                        debug_assert_eq!(at, slots.len(), "a new target has the next index");
                        slots.push(Slot::default());
                        there.push(false);
                    }
                }
            }
        }
        change.compared == shape.exists.len()
    }

    /// Uses these flags of all loops from now on, those of a graph that is about to be adopted: the monitor sets them before
    /// [`LbState::adopt`] has its view. Loads that they do not share with the former ones forget this thread's requests.
    pub fn take_flags(&self, now_ns: u64, flags: Arc<TargetFlags>) {
        let before = self.flags.replace(flags.clone());
        if !flags.has_loads() && !before.has_loads() {
            return;
        }
        for (target, slot) in (0..).map(TargetId).zip(self.slots.borrow().iter()) {
            if !flags.has_load_of(&before, target) {
                let told = slot.told.take();
                slot.told_since_ns.set(now_ns);
                if let Some(load) = before.load(target) {
                    load.forget(told);
                }
            }
        }
    }

    /// Adopts another shape, all of which was compared; targets that stay keep their state. `health`: that of its targets.
    /// Returns the flags of removed targets, whose requests end later.
    pub fn adopt(
        &self,
        now_ns: u64,
        shape: &Shape,
        change: ShapeChange,
        health: Option<&Snapshot>,
        draw: Key,
    ) -> Vec<(TargetId, AbortFlag)> {
        let (mut upstream, slots) = (self.upstream.borrow_mut(), self.slots.borrow());
        let mut exists = self.exists.borrow_mut();
        change.changes.iter().for_each(|(target, is_new)| exists[target.index()] = *is_new);
        upstream.change_named(now_ns, change.of_targets(shape), &shape.names, health);
        if *self.balance.borrow() != shape.balance {
            let counted = |target: TargetId| slots.get(target.index()).map_or(0, |slot| slot.counted.get());
            upstream.change_policy(now_ns, &shape.balance, &shape.names, counted, draw);
            shape.balance.clone_into(&mut self.balance.borrow_mut());
        }
        upstream.pass_over_for(shape.pass_over_ns);
        // The policy must be given everything again.
        self.due_ns.set(0);
        self.shown.set(true);
        change.removed
    }

    /// Prefers these targets; `None`: none. Before [`LbState::adopt`], where both change.
    pub fn prefer(&self, now_ns: u64, subset: Option<&OwnSubset>) {
        let mut upstream = self.upstream.borrow_mut();
        match subset {
            Some(own) => upstream.follow_subsets(now_ns, &own.table, own.on),
            None if upstream.subsets().is_some() => upstream.drop_subsets(now_ns),
            None => {}
        }
    }

    /// Picks outside of the preferred targets so far; `None`: it prefers none.
    pub fn borrowed(&self) -> Option<u64> {
        let upstream = self.upstream.borrow();
        upstream.subsets().map(|_| upstream.borrowed())
    }

    /// Counts with the other loops, at once or at each multiple of this many ns; `None`: alone. What is in flight goes
    /// along.
    pub fn count_with_others(&self, loop_number: u32, every_ns: Option<u64>, is_recorded: bool) {
        let (mut upstream, slots, flags) =
            (self.upstream.borrow_mut(), self.slots.borrow(), self.flags.borrow());
        let own = |target: TargetId| slots.get(target.index()).map_or(0, |slot| slot.counted.get());
        let all = || (0..slots.len() as u32).map(TargetId).map(|target| (target, own(target) as i32));
        match every_ns {
            Some(every_ns) => {
                if !upstream.shares_counts() {
                    all().for_each(|(target, count)| flags.counts.add(target, count));
                }
                upstream.share_counts(loop_number, every_ns, flags.counts.clone(), is_recorded);
            }
            None if upstream.shares_counts() => {
                all().for_each(|(target, count)| flags.counts.add(target, -count));
                upstream.count_alone(own);
            }
            None => {}
        }
    }

    /// Takes a table that was made for its targets.
    pub fn take_table(&self, table: Option<&Table>) {
        if let Some(table) = table {
            self.upstream.borrow_mut().balancer().share(table);
        }
    }

    /// Sets the limit: requests already in flight count too, and the first that waits because of another limit asks
    /// again.
    pub fn limit(&self, now_ns: u64, limit: Option<&Rc<LocalSemaphore>>) {
        let before = self.limit.replace(limit.cloned());
        if before.as_ref().map(Rc::as_ptr) == limit.map(Rc::as_ptr) {
            return;
        }
        self.limited_since_ns.set(now_ns);
        let mut upstream = self.upstream.borrow_mut();
        let full: Vec<TargetId> = upstream.full().iter().map(TargetId).collect();
        full.into_iter().for_each(|target| upstream.set_full(target, false));
        drop(upstream);
        for (target, slot) in (0..).zip(self.slots.borrow().iter()) {
            let in_flight =
                limit.into_iter().flat_map(|limit| (0..slot.counted.get()).map(|_| limit.stand_in(target)));
            slot.stand_ins.replace(in_flight.collect());
        }
        if let Some(before) = before {
            before.queue.notify_first();
        }
    }

    /// The present limit, not that with which a request's graph was built.
    pub fn permits(&self) -> Option<Rc<LocalSemaphore>> {
        self.limit.borrow().clone()
    }

    /// The flags that all loops share.
    pub fn flags(&self) -> Ref<'_, TargetFlags> {
        Ref::map(self.flags.borrow(), |flags| &**flags)
    }

    /// The same flags, to keep.
    pub fn all_flags(&self) -> Arc<TargetFlags> {
        self.flags.borrow().clone()
    }

    /// The flag that ends requests at a target.
    pub fn abort(&self, target: TargetId) -> AbortFlag {
        let slots = self.slots.borrow();
        let slot = slots.get(target.index());
        slot.map(|slot| slot.abort.clone()).unwrap_or_default()
    }

    /// Whether it has a target of this index.
    pub fn has(&self, target: TargetId) -> bool {
        self.exists.borrow().get(target.index()) == Some(&true)
    }

    /// Counts a request at a target; returns how many it meets there, if probes ask that.
    pub fn count(&self, target: TargetId) -> u16 {
        let slots = self.slots.borrow();
        let Some(slot) = slots.get(target.index()) else { return 0 };
        slot.counted.set(slot.counted.get() + 1);
        let flags = self.flags.borrow();
        let Some(load) = flags.load(target) else { return 0 };
        slot.told.set(slot.told.get() + 1);
        load.entered()
    }

    /// Reports to the load that a request with this ticket has ended.
    pub fn left(&self, ticket: Ticket, now_ns: u64, outcome: Outcome) {
        let Ticket { target, met, at_ns, .. } = ticket;
        let (slots, flags) = (self.slots.borrow(), self.flags.borrow());
        if let (Some(load), Some(slot)) = (flags.load(target), slots.get(target.index()))
            && at_ns >= slot.told_since_ns.get()
            && let Some(told) = slot.told.get().checked_sub(1)
        {
            slot.told.set(told);
            load.left(met, now_ns.saturating_sub(at_ns), outcome);
        }
    }

    /// Removes the count of a request that was picked at `at_ns`.
    pub fn uncount(&self, target: TargetId, at_ns: u64) {
        let mut free = None;
        if let Some(slot) = self.slots.borrow().get(target.index()) {
            slot.counted.set(slot.counted.get().saturating_sub(1));
            if at_ns <= self.limited_since_ns.get() {
                free = slot.stand_ins.borrow_mut().pop();
            }
        }
        // After the counts: the request that waits for the permit reads them.
        drop(free);
    }

    /// The number of requests that this thread counts at a target.
    pub fn in_flight(&self, target: TargetId) -> u32 {
        self.slots.borrow().get(target.index()).map_or(0, |slot| slot.counted.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::upstream::UpstreamConfig;

    fn shape(exists: Vec<bool>) -> Shape {
        let weights = vec![1.0; exists.len()];
        let names = TargetNames::of_distinct(exists.iter().map(|_| "".into()));
        Shape { balance: Balance::Random, pass_over_ns: 0, exists, weights, names }
    }

    /// The slices of 256 steps that a comparison takes, and the changes that it finds.
    fn slices(state: &LbState, shape: &Shape) -> (usize, usize) {
        let (mut change, mut slices) = (ShapeChange::default(), 1);
        while !state.compare(shape, &mut change, &mut 256) {
            slices += 1;
        }
        (slices, change.changes.len())
    }

    /// A look at the sockets after each 256 of them would cost a loop more than all else that a change of one member does.
    #[test]
    fn targets_that_neither_come_nor_go_cost_few_steps() {
        let before = shape(vec![true; 10_000]);
        let upstream = Upstream::new(
            &before.balance,
            UpstreamConfig::default(),
            &before.weights,
            before.names.clone(),
            0,
            Key::new(1),
        );
        let state =
            LbState::new(&before, upstream, Arc::new(TargetFlags::new(10_000, false, Box::default())));
        assert_eq!(slices(&state, &before), (1, 0));
        let mut one_less = before.exists.clone();
        one_less[5_000] = false;
        assert_eq!(slices(&state, &shape(one_less)), (1, 1));
        // 64 targets that go are 65 steps, so that a slice ends with the fourth time 64.
        let none = slices(&state, &shape(vec![false; 10_000]));
        assert_eq!(none, (10_000_usize.div_ceil(4 * UNCHANGED_PER_STEP), 10_000));
    }
}
