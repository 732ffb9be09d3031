//! Fleets that change while requests are in flight.

use super::balance::Instance;
use super::run::{Reference, what};
use crate::code::changes::Birth;
use crate::code::order::{Class, Entry, order_key};
use crate::state::changes::{Seer, step_order};
use weir_model::pause::ProcessClock;

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
            self.schedule_change(step as u32, of.at_ns, step_order(self.code, step as u32));
        }
    }

    /// Schedules a step, or, behind all steps, a sight.
    fn schedule_change(&mut self, index: u32, at_ns: u64, order: u64) {
        let key = order_key(Class::Fault, self.lines.len() as u64 + order);
        let who = what::FLIP | (self.lines.len() as u32 + index);
        self.pending.push(self.now_ns, Entry { at: at_ns.min(u64::MAX - 1), key, who, tag: 0 });
    }

    /// A step of a change, or, behind all steps, what a balancer sees.
    pub(super) fn change(&mut self, index: u32) {
        let steps = self.code.changes.as_ref().map_or(0, |tables| tables.steps.len() as u32);
        if index >= steps {
            return self.sees(index - steps);
        }
        let mut births = Vec::new();
        let sights = self.changes.step(self.code, index, self.now_ns, |birth| births.push(birth));
        births.into_iter().for_each(|birth| self.brings(birth));
        for sight in sights {
            let (at_ns, order) = (self.changes.sights[sight].at_ns, self.changes.sights[sight].order);
            match at_ns == self.now_ns {
                true => self.sees(sight as u32),
                false => self.schedule_change(steps + sight as u32, at_ns, order),
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
        let Some(tables) = self.code.changes.as_deref() else { return };
        let index = tables.views[self.changes.sights[sight as usize].view as usize].instance;
        let Instance { upstream, seen: Some(targets), sticky, .. } = &mut self.balancers[index as usize]
        else {
            return;
        };
        let names = &self.tables.names[index as usize];
        let seer = Seer { upstream, targets, sticky: sticky.as_mut(), names };
        self.changes.apply(self.code, sight, self.now_ns, seer);
        self.schedule_check(index);
        self.watch(index);
        self.admit(index);
    }
}
