//! What one thread keeps of a balancer for as long as any graph has it: it belongs to the balancer's identity and not to a graph, so
//! that a later graph goes on with the same counts and estimates (`docs/spec/operating.md#state`), and requests of an earlier
//! one come back to them.

use crate::exchange::abort::AbortFlag;
use crate::nodes::lb::TargetFlags;
use crate::sync::{LocalSemaphore, Permit};
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::Upstream;
use weir_policy::config::Balance;
use weir_stats::Key;

/// What the state is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub balance: Balance,
    /// How long a target is passed over to which a connection failed, ns.
    pub pass_over_ns: u64,
    /// By index, whether somebody is there; weights, and what targets are hashed by.
    pub exists: Vec<bool>,
    pub weights: Vec<f64>,
    pub names: Vec<String>,
}

/// One target of it.
#[derive(Default)]
struct Slot {
    exists: bool,
    /// Whether what is in flight there ends, since it was removed.
    abort: AbortFlag,
    /// Requests that this thread has picked it for, and counts that are held after a failure.
    counted: Cell<u32>,
    /// Those of them that its load was told of, and since when it is.
    told: Cell<u32>,
    told_since_ns: Cell<u64>,
    /// A permit for each request that was in flight when the present limit came.
    stand_ins: RefCell<Vec<Permit>>,
}

/// The state.
pub(crate) struct LbState {
    balance: RefCell<Balance>,
    /// The policy and what of its surroundings is the thread's.
    pub upstream: RefCell<Upstream>,
    slots: RefCell<Vec<Slot>>,
    /// What all loops know of the targets.
    flags: RefCell<Arc<TargetFlags>>,
    /// The limit of the targets, and since when it is, ns.
    limit: RefCell<Option<Rc<LocalSemaphore>>>,
    limited_since_ns: Cell<u64>,
    /// Permits of requests of other loops.
    pub lent: RefCell<Vec<(u32, Permit)>>,
    /// When the policy has something to do by itself.
    pub due_ns: Cell<u64>,
    /// Whether the policy was told who is being tried.
    pub shown: Cell<bool>,
}

impl LbState {
    /// Nothing was picked yet; `upstream` is of that shape.
    pub fn new(shape: &Shape, mut upstream: Upstream, flags: Arc<TargetFlags>) -> LbState {
        let gone = (0..).zip(&shape.exists).filter(|(_, exists)| !**exists);
        gone.for_each(|(index, _)| upstream.remove(0, index));
        let slot = |exists: &bool| Slot { exists: *exists, ..Slot::default() };
        LbState {
            balance: RefCell::new(shape.balance.clone()),
            upstream: RefCell::new(upstream),
            slots: RefCell::new(shape.exists.iter().map(slot).collect()),
            flags: RefCell::new(flags),
            limit: RefCell::default(),
            limited_since_ns: Cell::new(0),
            lent: RefCell::default(),
            due_ns: Cell::new(0),
            shown: Cell::new(false),
        }
    }

    /// Another shape from now on: who stays is as before. Flags of those that are gone, whose requests end a while later.
    pub fn adopt(
        &self,
        now_ns: u64,
        shape: &Shape,
        flags: Arc<TargetFlags>,
        draw: Key,
    ) -> Vec<(u32, AbortFlag)> {
        let (mut upstream, mut slots, mut gone) =
            (self.upstream.borrow_mut(), self.slots.borrow_mut(), Vec::new());
        for (index, exists) in (0..).zip(&shape.exists) {
            let i = index as usize;
            match (slots.get(i).is_some_and(|slot| slot.exists), *exists) {
                (true, false) => {
                    upstream.remove(now_ns, index);
                    slots[i].exists = false;
                    gone.push((index, slots[i].abort.clone()));
                }
                (false, true) => {
                    upstream.add_at(now_ns, index, shape.weights[i], &shape.names[i]);
                    let new = Slot { exists: true, ..Slot::default() };
                    match slots.get_mut(i) {
                        Some(slot) => *slot = new,
                        None => slots.push(new),
                    }
                }
                _ => {}
            }
        }
        if *self.balance.borrow() != shape.balance {
            let counted = |index: u32| slots.get(index as usize).map_or(0, |slot| slot.counted.get());
            upstream.change_policy(now_ns, &shape.balance, &shape.names, counted, draw);
            shape.balance.clone_into(&mut self.balance.borrow_mut());
        }
        upstream.pass_over_for(shape.pass_over_ns);
        let before = self.flags.replace(flags.clone());
        for (index, slot) in (0..).zip(slots.iter()) {
            if !flags.has_load_of(&before, index) {
                let told = slot.told.take();
                slot.told_since_ns.set(now_ns);
                if let Some(load) = before.load(index) {
                    load.forget(told);
                }
            }
        }
        // Whatever the policy was told is to be told again.
        self.due_ns.set(0);
        self.shown.set(true);
        gone
    }

    /// This limit from now on: what is in flight already counts too, and whoever waited because of another looks again.
    pub fn limit(&self, now_ns: u64, limit: Option<&Rc<LocalSemaphore>>) {
        let before = self.limit.replace(limit.cloned());
        if before.as_ref().map(Rc::as_ptr) == limit.map(Rc::as_ptr) {
            return;
        }
        self.limited_since_ns.set(now_ns);
        let mut upstream = self.upstream.borrow_mut();
        let full: Vec<u32> = upstream.full().iter().collect();
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

    /// The limit of now, whatever there was when a request's graph was built.
    pub fn permits(&self) -> Option<Rc<LocalSemaphore>> {
        self.limit.borrow().clone()
    }

    /// What all loops know of the targets.
    pub fn flags(&self) -> Ref<'_, TargetFlags> {
        Ref::map(self.flags.borrow(), |flags| &**flags)
    }

    /// The same, to keep.
    pub fn all_flags(&self) -> Arc<TargetFlags> {
        self.flags.borrow().clone()
    }

    /// What ends requests at a target.
    pub fn abort(&self, target: u32) -> AbortFlag {
        let slots = self.slots.borrow();
        let slot = slots.get(target as usize);
        slot.map(|slot| slot.abort.clone()).unwrap_or_default()
    }

    /// One more request at a target.
    pub fn count(&self, target: u32) {
        if let Some(slot) = self.slots.borrow().get(target as usize) {
            slot.counted.set(slot.counted.get() + 1);
            if let Some(load) = self.flags.borrow().load(target) {
                slot.told.set(slot.told.get() + 1);
                load.entered();
            }
        }
    }

    /// A request that was picked then has left a target.
    pub fn left(&self, target: u32, at_ns: u64, now_ns: u64) {
        let (slots, flags) = (self.slots.borrow(), self.flags.borrow());
        if let (Some(load), Some(slot)) = (flags.load(target), slots.get(target as usize))
            && at_ns >= slot.told_since_ns.get()
            && let Some(told) = slot.told.get().checked_sub(1)
        {
            slot.told.set(told);
            load.left(now_ns.saturating_sub(at_ns));
        }
    }

    /// One count less, of a request that was picked then.
    pub fn uncount(&self, target: u32, at_ns: u64) {
        let mut free = None;
        if let Some(slot) = self.slots.borrow().get(target as usize) {
            slot.counted.set(slot.counted.get().saturating_sub(1));
            if at_ns <= self.limited_since_ns.get() {
                free = slot.stand_ins.borrow_mut().pop();
            }
        }
        // Whoever waits for it looks at the counts.
        drop(free);
    }

    /// What this thread has in flight at a target, and holds counted.
    pub fn in_flight(&self, target: u32) -> u32 {
        self.slots.borrow().get(target as usize).map_or(0, |slot| slot.counted.get())
    }
}
