//! Fleets that change while requests are in flight.

use super::balance::Instance;
use super::build::Act;
use super::run::{Reference, what};
use crate::code::bounds::HORIZON_NS;
use crate::code::changes::Birth;
use crate::code::order::{Class, Entry, order_key};
use crate::code::{Code, MemberId, StageId};
use crate::state::change_events::{ChangeEvent, Timer};
use crate::state::changes::Changes;
use crate::state::processes::Effect;
use crate::state::rollouts::is_awaited;
use crate::state::seer::{GuardedSeer, Seer};
use weir_model::pause::ProcessClock;
use weir_plan::fleets::Member;
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
        for (step, of) in (0..).zip(&tables.steps).filter(|(step, _)| !is_awaited(tables, *step)) {
            self.schedule_change(ChangeEvent::Step(step), of.at_ns);
        }
    }

    fn schedule_change(&mut self, event: ChangeEvent, at_ns: u64) {
        self.changes.to_come += u32::from(at_ns <= HORIZON_NS && event.is_news());
        let order = self.changes.order_of(self.code, event);
        let key = order_key(Class::Fault, self.lines.len() as u64 + order);
        let who = what::FLIP | (self.lines.len() as u32 + event.index(self.code));
        self.pending.push(self.now_ns, Entry { at: at_ns.min(u64::MAX - 1), key, who, tag: 0 });
    }

    /// An event of fleets, by its index.
    pub(super) fn change(&mut self, index: u32) {
        let event = ChangeEvent::from_index(self.code, index);
        self.changes.to_come -= u32::from(event.is_news());
        match event {
            ChangeEvent::Step(step) => {
                if self.changes.is_relisting(self.code, step) {
                    self.note_inside();
                }
                self.changes.step(self.code, step, self.now_ns);
            }
            ChangeEvent::Grace(view) => {
                let now_ns = self.now_ns;
                self.change_view(view, |code, changes, seer| changes.end_grace(code, view, now_ns, seer));
            }
            ChangeEvent::Timer(timer) => self.timer_is_due(timer),
            ChangeEvent::Sight(sight) => self.sees(sight),
        }
        self.take_effects();
        self.look_at_batches();
    }

    /// Something of processes is due.
    fn timer_is_due(&mut self, timer: Timer) {
        match timer {
            Timer::Boot(process) => {
                self.note_inside();
                self.changes.process_is_due(self.code, process, self.now_ns);
            }
            Timer::Look(process) => {
                let Some(tables) = self.code.changes.as_deref() else { return };
                let is_empty = self.cells.is_empty(tables.processes[process as usize].line);
                self.changes.look_at_process(self.code, process, is_empty, self.now_ns);
            }
            Timer::Halt { change, part } => self.changes.halt(change, part),
        }
    }

    /// Does what follows from changes: first all that happens to members, then what balancers see of it.
    fn take_effects(&mut self) {
        let effects = std::mem::take(&mut self.changes.effects);
        let mut sights = Vec::new();
        for effect in effects {
            match effect {
                Effect::Birth(birth) => self.brings(birth),
                Effect::Begin(line) => {
                    self.lines[line as usize].hold(true);
                    let tables = self.tables;
                    tables.lines[line as usize].anew.iter().for_each(|birth| self.brings(*birth));
                }
                Effect::Close(line) => self.lines[line as usize].hold(false),
                Effect::End(line) => {
                    self.lines[line as usize].hold(false);
                    self.crash(line);
                }
                Effect::Fail(line) => self.drive(line, false),
                Effect::Repair(line) => self.drive(line, true),
                Effect::Sight(sight) => sights.push(sight),
                Effect::Timer(timer, at_ns) => self.schedule_change(ChangeEvent::Timer(timer), at_ns),
                Effect::Step(step, at_ns) => self.schedule_change(ChangeEvent::Step(step), at_ns),
            }
        }
        self.connections_see();
        for sight in sights {
            let at_ns = self.changes.sights[sight as usize].at_ns;
            match at_ns == self.now_ns {
                true => self.sees(sight),
                false => self.schedule_change(ChangeEvent::Sight(sight), at_ns),
            }
        }
    }

    /// Something may have left a process that ends as soon as nothing is inside: it is asked a nanosecond later, behind
    /// all that happens now.
    pub(super) fn look_at_processes(&mut self) {
        let Some(tables) = self.code.changes.as_deref() else { return };
        let awaited = self.changes.awaited(tables, self.now_ns);
        let empty: Vec<u32> = awaited.filter(|(_, line)| self.cells.is_empty(*line)).map(|of| of.0).collect();
        for process in empty {
            if self.changes.is_asked_later(process, self.now_ns) {
                self.schedule_change(ChangeEvent::Timer(Timer::Look(process)), self.now_ns + 1);
            }
        }
    }

    /// Lets replacements go on that wait until members may be picked.
    pub(super) fn look_at_batches(&mut self) {
        let Some(tables) = self.code.changes.as_deref() else { return };
        if !self.changes.waits_for_balancers(tables) {
            return;
        }
        let balancers = &self.balancers;
        let is_eligible = |member: Member| {
            tables.views.iter().filter_map(|view| Some((view, *view.places.get(&member)?))).all(
                |(view, place)| {
                    let Instance { upstream, seen: Some(targets), .. } = &balancers[view.instance as usize]
                    else {
                        return true;
                    };
                    let target = targets.target(place).map(TargetId);
                    target.is_some_and(|target| {
                        upstream.health().is_eligible(target) || upstream.health().is_ignored()
                    })
                },
            )
        };
        self.changes.complete_batches(tables, self.now_ns, |member| Some(is_eligible(member)));
        self.take_effects();
    }

    /// Something begins with a newcomer.
    pub(super) fn brings(&mut self, birth: Birth) {
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
            Birth::Gate(gate) => self.gates[gate as usize].restart(),
            Birth::Threads(server) => self.servers[server as usize].state.begin_anew(),
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
            self.schedule_change(ChangeEvent::Grace(view), at_ns);
        }
        if !is_changed {
            return None;
        }
        self.connections_see();
        self.schedule_check(index);
        self.watch(index);
        Some(index)
    }

    /// Something that no balancer counts has left a queue or server, which may be that of a member that has left.
    pub(super) fn leaves_node(&mut self, stage: u32, member: MemberId) {
        self.changes.left_node(self.code, StageId(stage), member, self.now_ns);
    }

    /// Notes the members with something inside of a queue or server, as some are listed again.
    fn note_inside(&mut self) {
        for (stage, node) in (0..).zip(&self.tables.nodes) {
            let of = &self.code.stages[stage as usize];
            let first = self.code.blocks[of.block as usize].base;
            for member in (first..first + of.nodes.len() as u32).map(MemberId) {
                let is_empty = match node.act {
                    Act::Queue { queue } => {
                        let site = &self.tables.queues[queue as usize];
                        self.queues[member.index_from(site.offset)].is_idle()
                    }
                    Act::Share { server } => {
                        let site = &self.tables.servers[server as usize];
                        let state = &self.servers[member.index_from(site.offset)].state;
                        state.inside() == 0 && state.waiting() == 0
                    }
                    _ => true,
                };
                if !is_empty {
                    self.leaves_node(stage, member);
                }
            }
        }
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
        let view = self.code.changes.as_deref().and_then(|tables| tables.view_of(index));
        if let Some(view) = view
            && let Instance { upstream, seen: Some(targets), sticky, .. } =
                &mut self.balancers[index as usize]
        {
            let names = &self.tables.names[index as usize];
            let seer = GuardedSeer { upstream, targets, sticky: sticky.as_mut(), names };
            self.changes.note_transitions(self.code, view as u32, now_ns, Seer::Guarded(seer));
        }
        self.look_at_batches();
    }
}
