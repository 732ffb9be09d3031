//! Requests that will never be answered: lost messages that are not sent again, and black holes.
//!
//! - In virtual time: for ever, or until a limit, a crash or the client's patience cuts them off. When no other
//!   request is in flight the run is over, and they are lost.
//! - Given back when cut off: what is held around. Time counts for a latency only once there is one: until then it is
//!   noted with the request, at all places where a request that may be lost can have been.
//! - Draws: whether a message is lost, by place, request and way.

use crate::code::order::{Class, Entry};
use crate::code::{ColdOp, NOT, Op};
use crate::code::{MemberId, SlotId, StageId};
use crate::engine::{Engine, Event};
use crate::state::request_state::{BEGINS, CHECK, FAN, FLAGS, LINE, PARKED};
use crate::state::scopes::{Limit, WHOLE};
use weir_model::crossing;
use weir_policy::Kind;

/// Consecutive events that concern no waiting request, before the engine examines whether any request waits for more.
const IDLE_EVENTS: u64 = 1024;

impl Engine<'_> {
    /// A request crosses a cable that may lose it; false: it is lost.
    pub(crate) fn crosses(&mut self, slot: SlotId, lossy: u32, member: MemberId, now_ns: u64) -> bool {
        let site = self.core.code().lossy[lossy as usize];
        let key = self.draw_key(slot, site.key, site.visits);
        if crossing::extra_ns(site.loss, None, key).is_some() {
            return true;
        }
        if let Some(counter) = site.time.and_then(|draw| self.core.code().draws[draw as usize].visits) {
            self.core.states_mut().visit(slot, counter);
        }
        self.lose(slot, site.stage, member, now_ns);
        false
    }

    /// Loses a request: it is past the step that lost it.
    pub(crate) fn lose(&mut self, slot: SlotId, stage: StageId, member: MemberId, now_ns: u64) {
        self.stops(slot, stage, member, now_ns);
    }

    /// A request waits for others, or for nothing, from now on.
    pub(crate) fn stops(&mut self, slot: SlotId, stage: StageId, member: MemberId, now_ns: u64) {
        self.charge(slot, stage, member, now_ns.wrapping_neg());
        if self.core.state(slot).pc & CHECK != 0 {
            return;
        }
        self.core.ledger_mut().last_stop = self.core.ledger().last_stop.max(now_ns);
    }

    /// The stage where a request behind such a step was lost, and whether on its way in.
    pub(crate) fn lost_at(&self, op: Op) -> Option<(StageId, bool)> {
        match op {
            Op::Cold(ColdOp::LossyCrossing { lossy }) => {
                let site = &self.core.code().lossy[lossy as usize];
                Some((site.stage, site.inwards))
            }
            Op::Cold(ColdOp::EnterFaulty { down }) => {
                Some((self.core.code().lines.sites[down as usize].stage, true))
            }
            _ => None,
        }
    }

    /// The time that a request has noted counts.
    pub(crate) fn count_notes(&mut self, slot: SlotId) {
        let (notes, ledger) = self.core.notes_and_ledger_mut(slot);
        for (part, ns) in notes.drain(..) {
            let sum = &mut ledger.parts[part as usize];
            *sum = sum.wrapping_add(ns);
        }
    }

    /// The time that a request has noted is part of no latency.
    pub(crate) fn spend_notes(&mut self, slot: SlotId) {
        let (notes, ledger) = self.core.notes_and_ledger_mut(slot);
        for (part, ns) in notes.drain(..) {
            let spent = &mut ledger.spent[part as usize];
            *spent = spent.wrapping_add(ns);
        }
    }

    /// An event that no request waits for: flips and the like go on for ever. False: no request waits for more, and
    /// the run ends.
    #[cold]
    pub(crate) fn goes_on_alone(&mut self) -> bool {
        self.features.alone += u64::from(self.core.is_over());
        let look = self.features.alone >= IDLE_EVENTS && self.features.alone.is_power_of_two();
        if look && !self.anybody_moves() {
            self.core.drop_events();
            return false;
        }
        true
    }

    /// Whether an event never ends.
    pub(crate) fn never_ends(event: &Entry) -> bool {
        event.class() != Class::Arrival
            && matches!(Event::from_who(event.who), Event::Flip | Event::Watch | Event::Checks)
    }

    /// Requests in flight.
    fn live(&self) -> Vec<SlotId> {
        let free = self.core.states().free();
        let checks = |slot: SlotId| self.core.state(slot).pc & CHECK != 0;
        self.core.states().ids().filter(|&slot| !free[slot.index()] && !checks(slot)).collect()
    }

    /// Whether anything will happen to any request, other than endless events.
    fn anybody_moves(&mut self) -> bool {
        // A request may wait behind a health check, but only behind this many.
        if self.core.states().checks > 0 && self.features.alone < 16 * IDLE_EVENTS {
            return true;
        }
        if self.features.guards.anyone_waits_for_health(self.core.code(), self.features.changes.to_come) {
            return true;
        }
        let changes = self.features.changes.to_come > 0;
        self.live().into_iter().any(|slot| {
            let state = *self.core.state(slot);
            let before = self.core.code().steps[((state.pc & !FLAGS) as usize).saturating_sub(1)].op;
            let waits_for_others = state.pc & FAN != 0;
            let waits = match before {
                _ if waits_for_others => self.will_send_in(slot),
                _ if state.pc & (PARKED | BEGINS) != 0 => true,
                Op::EnterQueue { queue } if state.pc & LINE != 0 => {
                    self.core.code().queues[queue as usize].timeout_ns.is_some()
                }
                Op::Cold(ColdOp::AskGuard { lb }) if state.pc & LINE != 0 => {
                    let guard = self.core.code().lbs[lb as usize].guard;
                    guard.is_some_and(|site| {
                        self.core.code().guards.sites[site as usize].wait_timeout_ns.is_some()
                    })
                }
                _ if state.pc & LINE != 0 => false,
                op => self.lost_at(op).is_none(),
            };
            waits || self.core.scopes().will_be_cut(slot, &self.core.code().lines, changes)
        })
    }

    /// The run is over: gives up all requests still in flight. Those in line got no further. Returns when that was.
    pub(crate) fn give_up(&mut self) -> u64 {
        let now = self.core.ledger().last_step.max(self.core.ledger().last_stop);
        self.features.changes.attendance.end(now);
        let live = self.live();
        for &slot in &live {
            if self.core.state(slot).pc & LINE != 0 {
                self.leave_lines(slot, now);
            }
        }
        // Requests that others wait for end with these.
        let tops: Vec<SlotId> =
            live.into_iter().filter(|&slot| !self.features.branches.parent(slot).is_some()).collect();
        for slot in tops {
            if self.core.state(slot).is_unwanted() {
                self.kill(slot, now);
                continue;
            }
            self.lose_request(slot, now);
            self.spend_notes(slot);
            self.core.scope_mut(slot).floor = NOT;
            self.core.state_mut(slot).set_unwanted();
            self.cut_to(slot, &Limit { end: WHOLE, ..Limit::default() }, now);
            self.vanish(slot, now);
        }
        now
    }

    /// A request leaves its line; from now on it is before that step.
    fn leave_lines(&mut self, slot: SlotId, now_ns: u64) {
        let state = *self.core.state(slot);
        let (pc, member) = ((state.pc & !LINE) as usize - 1, state.member);
        match self.core.code().steps[pc].op {
            Op::EnterQueue { queue } => {
                let stage = self.core.code().queues[queue as usize].stage;
                self.leave_line(slot, queue, member, now_ns);
                self.leaves_node(stage, member, now_ns);
                self.count_cut(stage, member, state.mask());
            }
            Op::EnterShare { share } => {
                let stage = self.core.code().shares[share as usize].stage;
                self.charge(slot, stage, member, now_ns);
                self.leave_share_line(slot, share, member, now_ns);
                self.leaves_node(stage, member, now_ns);
            }
            Op::Cold(ColdOp::AskGuard { lb }) => {
                let index = self.instance(slot, &self.core.code().lbs[lb as usize], member);
                self.leave_guard_line(slot, index, now_ns);
            }
            Op::Cold(ColdOp::TakeConnection { at }) => {
                self.connecting_is_cut(slot, at, member, now_ns);
                let stage = self.core.code().connections.as_deref().map(|of| of.sites[at as usize].stage);
                stage.into_iter().for_each(|stage| self.count_cut(stage, member, state.mask()));
            }
            _ => return,
        }
        self.leave_at(slot, pc as u32 | PARKED, member, usize::from(state.depth));
        self.core.scopes_mut().stand(slot, now_ns, pc, member, usize::from(state.depth));
    }

    fn lose_request(&mut self, slot: SlotId, now_ns: u64) {
        let state = *self.core.state(slot);
        let ledger = self.core.ledger_mut();
        ledger.ended += 1;
        ledger.latency_sum = ledger.latency_sum.wrapping_add(now_ns - state.arrived);
        ledger.step(now_ns, false);
        ledger.errors[Kind::Lost as usize] += u64::from(state.selected());
        ledger.aside.iter_mut().for_each(|aside| aside.lose(state.arrived));
    }
}
