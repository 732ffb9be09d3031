//! Fleets that change: members join, leave and are replaced while requests are in flight.
//!
//! - In virtual time: none. A change is an event of the class of faults; each balancer sees it at once or, with a `lag`,
//!   later, and what it does to the balancer is one step. Where a source may be doubted, a balancer keeps members that a
//!   short list lacks: until the end of a grace, which is such an event too, or a failure, within the event that reports it.
//! - Given back when cut off: nothing. Requests inside of a member that has left go on.
//! - Draws: which members leave or are forgotten, by change; how late a balancer sees it, by balancer and change.

use crate::code::bounds::HORIZON_NS;
use crate::code::changes::Birth;
use crate::code::order::{Class, Entry, order_key};
use crate::code::{Code, MemberId, StageId};
use crate::engine::{END_OF_TIME, Engine, Event, FeatureStates};
use crate::state::change_events::{ChangeEvent, Timer};
use crate::state::changes::Changes;
use crate::state::guards::{Guard, Guards};
use crate::state::members::Instance;
use crate::state::processes::Effect;
use crate::state::rollouts::is_awaited;
use crate::state::seer::{GuardedSeer, PlainSeer, Seer};
use weir_model::pause::ProcessClock;
use weir_plan::fleets::Member;
use weir_policy::TargetId;

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
                Birth::Warmup(_) | Birth::Threads(_) | Birth::Gate(_) => {}
            }
        }
        for (step, of) in (0..).zip(&tables.steps).filter(|(step, _)| !is_awaited(tables, *step)) {
            self.schedule_change(ChangeEvent::Step(step), of.at_ns, 0);
        }
    }

    fn schedule_change(&mut self, event: ChangeEvent, at_ns: u64, now_ns: u64) {
        self.features.changes.to_come += u32::from(at_ns <= HORIZON_NS && event.is_news());
        let lines = self.features.lines.state.len();
        let order = self.features.changes.order_of(self.core.code(), event);
        let key = order_key(Class::Fault, lines as u64 + order);
        let who = Event::Flip.who(lines as u32 + event.index(self.core.code()));
        self.core.schedule(now_ns, Entry { at: at_ns.min(END_OF_TIME), key, who, tag: 0 });
    }

    /// An event of fleets, by its index.
    pub(crate) fn change(&mut self, index: u32, now_ns: u64) {
        let event = ChangeEvent::from_index(self.core.code(), index);
        self.features.changes.to_come -= u32::from(event.is_news());
        match event {
            ChangeEvent::Step(step) => self.take_step(step, now_ns),
            ChangeEvent::Grace(view) => {
                self.change_view(view, now_ns, |code, changes, seer| {
                    changes.end_grace(code, view, now_ns, seer)
                });
            }
            ChangeEvent::Timer(timer) => self.timer_is_due(timer, now_ns),
            ChangeEvent::Sight(sight) => self.sees(sight, now_ns),
        }
        self.take_effects(now_ns);
        self.look_at_batches(now_ns);
    }

    fn take_step(&mut self, step: u32, now_ns: u64) {
        let code = self.core.code();
        if self.features.changes.is_relisting(code, step) {
            self.note_inside(now_ns);
        }
        self.features.changes.step(code, step, now_ns);
    }

    /// Something of processes is due.
    fn timer_is_due(&mut self, timer: Timer, now_ns: u64) {
        let code = self.core.code();
        match timer {
            Timer::Boot(process) => {
                self.note_inside(now_ns);
                self.features.changes.process_is_due(code, process, now_ns);
            }
            Timer::Look(process) => {
                let Some(tables) = code.changes.as_deref() else { return };
                let is_empty = self.core.scopes().is_empty(tables.processes[process as usize].line);
                self.features.changes.look_at_process(code, process, is_empty, now_ns);
            }
            Timer::Halt { change, part } => self.features.changes.halt(change, part),
        }
    }

    /// Does what follows from changes: first all that happens to members, then what balancers see of it.
    fn take_effects(&mut self, now_ns: u64) {
        let effects = std::mem::take(&mut self.features.changes.effects);
        let mut sights = Vec::new();
        for effect in effects {
            match effect {
                Effect::Birth(birth) => self.brings(birth, now_ns),
                Effect::Begin(line) => self.begin_process(line, now_ns),
                Effect::Close(line) => self.features.lines.state[line as usize].hold(false),
                Effect::End(line) => {
                    self.features.lines.state[line as usize].hold(false);
                    self.crash(line, now_ns);
                }
                Effect::Fail(line) => self.drive(line, false, now_ns),
                Effect::Repair(line) => self.drive(line, true, now_ns),
                Effect::Sight(sight) => sights.push(sight),
                Effect::Timer(timer, at_ns) => self.schedule_change(ChangeEvent::Timer(timer), at_ns, now_ns),
                Effect::Step(step, at_ns) => self.schedule_change(ChangeEvent::Step(step), at_ns, now_ns),
            }
        }
        self.connections_see(now_ns);
        for sight in sights {
            let at_ns = self.features.changes.sights[sight as usize].at_ns;
            match at_ns == now_ns {
                true => self.sees(sight, now_ns),
                false => self.schedule_change(ChangeEvent::Sight(sight), at_ns, now_ns),
            }
        }
    }

    /// A process begins: all that belongs to it alone begins anew.
    fn begin_process(&mut self, line: u32, now_ns: u64) {
        self.features.lines.state[line as usize].hold(true);
        let code = self.core.code();
        for &birth in &code.lines.lines[line as usize].anew {
            self.brings(birth, now_ns);
        }
    }

    /// Something may have left a process that ends as soon as nothing is inside: it is asked a nanosecond later, behind
    /// all that happens now.
    #[cold]
    pub(crate) fn look_at_processes(&mut self, now_ns: u64) {
        let Some(tables) = self.core.code().changes.as_deref() else { return };
        let scopes = self.core.scopes();
        let awaited = self.features.changes.awaited(tables, now_ns);
        let empty: Vec<u32> = awaited.filter(|(_, line)| scopes.is_empty(*line)).map(|of| of.0).collect();
        for process in empty {
            if self.features.changes.is_asked_later(process, now_ns) {
                self.schedule_change(ChangeEvent::Timer(Timer::Look(process)), now_ns + 1, now_ns);
            }
        }
    }

    /// Lets replacements go on that wait until members may be picked.
    pub(crate) fn look_at_batches(&mut self, now_ns: u64) {
        let Some(tables) = self.core.code().changes.as_deref() else { return };
        if !self.features.changes.waits_for_balancers(tables) {
            return;
        }
        let new: Vec<_> = self.features.changes.awaited_members().collect();
        let eligible: Vec<bool> = new.iter().map(|member| self.is_eligible_everywhere(*member)).collect();
        let known = |member| new.iter().position(|of| *of == member).map(|at| eligible[at]);
        self.features.changes.complete_batches(tables, now_ns, known);
        self.take_effects(now_ns);
    }

    /// Whether each balancer over a member may pick it.
    fn is_eligible_everywhere(&mut self, member: Member) -> bool {
        let code = self.core.code();
        let Some(tables) = code.changes.as_deref() else { return true };
        tables.views.iter().filter_map(|view| Some((view, *view.places.get(&member)?))).all(
            |(view, place)| match guarded(code, &mut self.features.guards, view.instance) {
                Some(of) => {
                    let target = of.targets.target(place).map(TargetId);
                    target.is_some_and(|target| {
                        of.upstream.health().is_eligible(target) || of.upstream.health().is_ignored()
                    })
                }
                None => {
                    let mut loops = self.core.on_each_loop(view.instance).filter_map(plain);
                    loops.all(|of| of.targets.target(place).is_some())
                }
            },
        )
    }

    /// Something begins with a newcomer, or anew.
    pub(super) fn brings(&mut self, birth: Birth, now_ns: u64) {
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
            Birth::Gate(gate) => self.features.gates[gate as usize].restart(),
            Birth::Threads(server) => self.features.shares.servers[server as usize].state.begin_anew(),
        }
    }

    /// A balancer sees what has changed.
    fn sees(&mut self, sight: u32, now_ns: u64) {
        let view = self.features.changes.sights[sight as usize].view;
        self.change_view(view, now_ns, |code, changes, seer| changes.see(code, sight, now_ns, seer));
    }

    /// Lets `change` change the targets of a balancer; then requests that wait there may go on.
    fn change_view(
        &mut self,
        view: u32,
        now_ns: u64,
        change: impl FnOnce(&Code, &mut Changes, Seer<'_>) -> bool,
    ) {
        if let Some(index) = self.change_targets(view, now_ns, change) {
            self.admit(index, now_ns);
        }
    }

    /// Lets `change` change the targets of a balancer, and schedules what follows from that. Returns the balancer, if it
    /// has other targets now.
    fn change_targets(
        &mut self,
        view: u32,
        now_ns: u64,
        change: impl FnOnce(&Code, &mut Changes, Seer<'_>) -> bool,
    ) -> Option<u32> {
        let code = self.core.code();
        let index = code.changes.as_deref()?.views[view as usize].instance;
        let FeatureStates { guards, changes, .. } = &mut self.features;
        let seer = match guarded(code, guards, index) {
            Some(seer) => Seer::Guarded(seer),
            None => Seer::Plain(self.core.on_each_loop(index).filter_map(plain).collect()),
        };
        let is_changed = change(code, changes, seer);
        if let Some(at_ns) = changes.next_grace(view) {
            self.schedule_change(ChangeEvent::Grace(view), at_ns, now_ns);
        }
        if !is_changed {
            return None;
        }
        self.connections_see(now_ns);
        self.schedule_check(index, now_ns);
        self.watch(index, now_ns);
        Some(index)
    }

    /// A request is sent to a target of a balancer with nothing around it, in a run with results over time.
    #[cold]
    pub(crate) fn goes_to_target(&mut self, instance: u32, target: TargetId, now_ns: u64) {
        let code = self.core.code();
        let place = self.core.balancer(instance).place(target);
        let first = instance % code.instances.len() as u32;
        self.features.changes.sends_to(code, first, place, now_ns);
    }

    /// A request has left a target of a balancer with nothing around it. Needed only where [`Changes::follows_returns`].
    #[inline]
    pub(crate) fn leaves_target(&mut self, instance: u32, target: TargetId, now_ns: u64) {
        let code = self.core.code();
        let place = self.core.balancer(instance).place(target);
        let (each, changes) = (code.instances.len() as u32, &mut self.features.changes);
        let first = if instance < each { instance } else { instance % each };
        if changes.watch.is_some() || changes.has_missed(first, place) {
            changes.left_target(code, first, place, now_ns);
        }
    }

    /// Something that no balancer counts has left a queue or server, which may be that of a member that has left.
    pub(crate) fn leaves_node(&mut self, stage: StageId, member: MemberId, now_ns: u64) {
        self.features.changes.left_node(self.core.code(), stage, member, now_ns);
    }

    /// Notes the members with something inside of a queue or server, as some are listed again.
    fn note_inside(&mut self, now_ns: u64) {
        let code = self.core.code();
        for site in &code.queues {
            for member in (site.base..site.base + site.members).map(MemberId) {
                if self.core.has_inside(site, member, now_ns) {
                    self.leaves_node(site.stage, member, now_ns);
                }
            }
        }
        for site in &code.shares {
            for member in (site.base..site.base + site.members).map(MemberId) {
                if self.features.shares.has_inside(member.number_from(site.offset)) {
                    self.leaves_node(site.stage, member, now_ns);
                }
            }
        }
    }

    /// A balancer has news of its targets: a connection to `failed` failed, or a check of it did, and others may have been
    /// ejected. A withdrawn member is no target any more after that.
    #[inline]
    pub(crate) fn end_withdrawn(&mut self, index: u32, failed: Option<TargetId>, now_ns: u64) {
        let code = self.core.code();
        if code.changes.is_none() {
            return;
        }
        let index = self.features.guards.place(index).0 as u32;
        if let Some(view) = self.features.changes.view_with_withdrawn(code, index) {
            self.change_targets(view, now_ns, |code, changes, seer| match seer {
                Seer::Guarded(seer) => changes.fail(code, view, failed, now_ns, seer),
                Seer::Plain(_) => false,
            });
        }
        if code.watch.is_some() {
            self.note_transitions(index, now_ns);
        }
        self.look_at_batches(now_ns);
    }

    /// A balancer may have begun to pick a member, or stopped.
    #[cold]
    fn note_transitions(&mut self, index: u32, now_ns: u64) {
        let code = self.core.code();
        let view = code.changes.as_deref().and_then(|tables| tables.view_of(index));
        let FeatureStates { guards, changes, .. } = &mut self.features;
        if let (Some(view), Some(of)) = (view, guarded(code, guards, index)) {
            changes.note_transitions(code, view as u32, now_ns, Seer::Guarded(of));
        }
    }
}

/// What a change concerns of a balancer with something around it, if it has.
fn guarded<'s>(code: &'s Code, guards: &'s mut Guards, index: u32) -> Option<GuardedSeer<'s>> {
    let Guard { upstream, seen: Some(targets), sticky, .. } = guards.get(index)? else { return None };
    let names = code.guards.names.get(&index).map_or(&[][..], |names| names);
    Some(GuardedSeer { upstream, targets, sticky: sticky.as_mut(), names })
}

/// What a change concerns of a balancer with nothing around it, on one loop.
fn plain(of: &mut Instance) -> Option<PlainSeer<'_>> {
    let Instance { balancer, seen: Some(targets), .. } = of else { return None };
    Some(PlainSeer { balancer, targets })
}
