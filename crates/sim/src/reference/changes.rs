//! Fleets that change while requests are in flight.

use super::balance::Instance;
use super::run::{Reference, what};
use crate::code::Code;
use crate::code::bounds::HORIZON_NS;
use crate::code::changes::Birth;
use crate::code::order::{Class, Entry, order_key};
use crate::state::change_events::{ChangeEvent, grace_order, step_order};
use crate::state::changes::Changes;
use crate::state::seer::{GuardedSeer, Seer};
use weir_model::pause::ProcessClock;
use weir_policy::TargetId;

impl Reference<'_> {
    /// Schedules the steps of all changes; what newcomers bring waits for them.
    pub(super) fn schedule_changes(&mut self) {
        let Some(tables) = self.code.changes.as_deref() else { return };
        for birth in tables.births() {
            if let Birth::Line(line) = birth {
                self.lines[line as usize].wait();
                self.clocks.get_mut(line as usize).into_iter().for_each(ProcessClock::wait);
            }
        }
        for (step, of) in tables.steps.iter().enumerate() {
            let order = step_order(self.code, step as u32);
            self.schedule_change(ChangeEvent::Step(step as u32), of.at_ns, order);
        }
    }

    fn schedule_change(&mut self, event: ChangeEvent, at_ns: u64, order: u64) {
        self.changes.to_come += u32::from(at_ns <= HORIZON_NS);
        let key = order_key(Class::Fault, self.lines.len() as u64 + order);
        let who = what::FLIP | (self.lines.len() as u32 + event.index(self.code));
        self.pending.push(self.now_ns, Entry { at: at_ns.min(u64::MAX - 1), key, who, tag: 0 });
    }

    /// An event of fleets, by its index.
    pub(super) fn change(&mut self, index: u32) {
        self.changes.to_come -= 1;
        match ChangeEvent::from_index(self.code, index) {
            ChangeEvent::Step(step) => self.take_step(step),
            ChangeEvent::Grace(view) => {
                let now_ns = self.now_ns;
                self.change_view(view, |code, changes, seer| changes.end_grace(code, view, now_ns, seer));
            }
            ChangeEvent::Sight(sight) => self.sees(sight),
        }
    }

    fn take_step(&mut self, step: u32) {
        let mut births = Vec::new();
        let sights = self.changes.step(self.code, step, self.now_ns, |birth| births.push(birth));
        births.into_iter().for_each(|birth| self.brings(birth));
        self.connections_see();
        for sight in sights {
            let (at_ns, order) = (self.changes.sights[sight].at_ns, self.changes.sights[sight].order);
            match at_ns == self.now_ns {
                true => self.sees(sight as u32),
                false => self.schedule_change(ChangeEvent::Sight(sight as u32), at_ns, order),
            }
        }
    }

    /// Something begins with a newcomer.
    fn brings(&mut self, birth: Birth) {
        match birth {
            Birth::Line(line) => {
                let law = &self.tables.lines[line as usize].law;
                self.lines[line as usize].begin(law, self.now_ns);
                if let Some(clock) = self.clocks.get_mut(line as usize) {
                    clock.begin(law, self.now_ns);
                }
                if self.tables.lines[line as usize].eager_crash {
                    self.schedule_flip(line);
                }
            }
            // A node that refuses has a timeline like any other here.
            Birth::Fault(_) => {}
            Birth::Warmup(warmup) => self.warmups[warmup as usize].restart(self.now_ns),
        }
    }

    /// A balancer sees what has changed.
    fn sees(&mut self, sight: u32) {
        let (view, now_ns) = (self.changes.sights[sight as usize].view, self.now_ns);
        self.change_view(view, |code, changes, seer| changes.see(code, sight, now_ns, seer));
    }

    /// Lets `change` change the targets of a balancer; then requests that wait there may go on.
    fn change_view(&mut self, view: u32, change: impl FnOnce(&Code, &mut Changes, Seer<'_>) -> bool) {
        if let Some(index) = self.change_targets(view, change) {
            self.admit(index);
        }
    }

    /// Lets `change` change the targets of a balancer, and schedules what follows from that. Returns the balancer, if it
    /// has other targets now.
    fn change_targets(
        &mut self,
        view: u32,
        change: impl FnOnce(&Code, &mut Changes, Seer<'_>) -> bool,
    ) -> Option<u32> {
        let index = self.code.changes.as_deref()?.views[view as usize].instance;
        let Instance { upstream, seen: Some(targets), sticky, .. } = &mut self.balancers[index as usize]
        else {
            return None;
        };
        let names = &self.tables.names[index as usize];
        let seer = Seer::Guarded(GuardedSeer { upstream, targets, sticky: sticky.as_mut(), names });
        let is_changed = change(self.code, &mut self.changes, seer);
        if let Some(at_ns) = self.changes.next_grace(view) {
            self.schedule_change(ChangeEvent::Grace(view), at_ns, grace_order(self.code, view));
        }
        if !is_changed {
            return None;
        }
        self.connections_see();
        self.schedule_check(index);
        self.watch(index);
        Some(index)
    }

    /// A balancer has news of its targets: a connection to `failed` failed, or a check of it did, and others may have been
    /// ejected. A withdrawn member is no target any more after that.
    pub(super) fn end_withdrawn(&mut self, index: u32, failed: Option<TargetId>) {
        let now_ns = self.now_ns;
        if let Some(view) = self.changes.view_with_withdrawn(self.code, index) {
            self.change_targets(view, |code, changes, seer| match seer {
                Seer::Guarded(seer) => changes.fail(code, view, failed, now_ns, seer),
                Seer::Plain(_) => false,
            });
        }
    }
}
