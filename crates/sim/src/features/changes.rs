//! Fleets that change: members join, leave and are replaced while requests are in flight.
//!
//! - In virtual time: none. A change is an event of the class of faults; each balancer sees it at once or, with a `lag`,
//!   later, and what it does to the balancer is one step.
//! - Given back when cut off: nothing. Requests inside of a member that has left go on.
//! - Draws: which members leave or are forgotten, by change; how late a balancer sees it, by balancer and change.

use crate::code::changes::Birth;
use crate::code::order::{Class, Entry, order_key};
use crate::engine::{END_OF_TIME, Engine, Event};
use crate::state::changes::{Changes, Seer, step_order};
use crate::state::guards::Guard;
use weir_model::pause::ProcessClock;

impl Engine<'_> {
    /// Schedules the steps of all changes; what newcomers bring waits for them.
    pub(crate) fn schedule_changes(&mut self) {
        let Some(tables) = self.core.code().changes.as_deref() else { return };
        for birth in tables.births() {
            match birth {
                Birth::Line(line) => {
                    self.features.lines.state[line as usize].wait();
                    self.features
                        .lines
                        .clocks
                        .get_mut(line as usize)
                        .into_iter()
                        .for_each(ProcessClock::wait);
                }
                Birth::Fault(fault) => self.core.fault_mut(fault).wait(),
                Birth::Warmup(_) => {}
            }
        }
        for (step, of) in tables.steps.iter().enumerate() {
            self.schedule_change(step as u32, of.at_ns, step_order(self.core.code(), step as u32), 0);
        }
    }

    /// Schedules a step, or, behind all steps, a sight.
    fn schedule_change(&mut self, index: u32, at_ns: u64, order: u64, now_ns: u64) {
        let lines = self.features.lines.state.len();
        let key = order_key(Class::Fault, lines as u64 + order);
        let who = Event::Flip.who(lines as u32 + index);
        self.core.schedule(now_ns, Entry { at: at_ns.min(END_OF_TIME), key, who, tag: 0 });
    }

    /// A step of a change, or, behind all steps, what a balancer sees.
    pub(crate) fn change(&mut self, index: u32, now_ns: u64) {
        let code = self.core.code();
        let steps = code.changes.as_ref().map_or(0, |tables| tables.steps.len() as u32);
        if index >= steps {
            return self.sees(index - steps, now_ns);
        }
        let mut births = Vec::new();
        let sights = self.features.changes.step(code, index, now_ns, |birth| births.push(birth));
        births.into_iter().for_each(|birth| self.brings(birth, now_ns));
        for sight in sights {
            let (at_ns, order) =
                (self.features.changes.sights[sight].at_ns, self.features.changes.sights[sight].order);
            match at_ns == now_ns {
                true => self.sees(sight as u32, now_ns),
                false => self.schedule_change(steps + sight as u32, at_ns, order, now_ns),
            }
        }
    }

    /// Something begins with a newcomer.
    fn brings(&mut self, birth: Birth, now_ns: u64) {
        match birth {
            Birth::Line(line) => {
                let site = &self.core.code().lines.lines[line as usize];
                let lines = &mut self.features.lines;
                lines.state[line as usize].begin(&site.law, now_ns);
                if let Some(clock) = lines.clocks.get_mut(line as usize) {
                    clock.begin(&site.law, now_ns);
                }
                if site.eager {
                    self.schedule_flip(line, now_ns);
                }
            }
            Birth::Fault(fault) => {
                let site = self.core.code().fault_nodes[fault as usize].0;
                let law = &self.core.code().faults[site as usize].law;
                self.core.fault_mut(fault).begin(law, now_ns);
            }
            Birth::Warmup(warmup) => self.features.warmups[warmup as usize].restart(now_ns),
        }
    }

    /// A balancer sees what has changed.
    fn sees(&mut self, sight: u32, now_ns: u64) {
        let code = self.core.code();
        let Some(tables) = code.changes.as_deref() else { return };
        let index = tables.views[self.features.changes.sights[sight as usize].view as usize].instance;
        let Some(Guard { upstream, seen: Some(targets), sticky, .. }) = self.features.guards.get(index)
        else {
            return;
        };
        let names = code.guards.names.get(&index).map_or(&[][..], |names| names);
        let seer = Seer { upstream, targets, sticky: sticky.as_mut(), names };
        Changes::apply(&mut self.features.changes, code, sight, now_ns, seer);
        self.schedule_check(index, now_ns);
        self.watch(index, now_ns);
        self.admit(index, now_ns);
    }
}
