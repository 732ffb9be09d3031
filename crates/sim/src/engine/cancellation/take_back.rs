//! Takes back what a request that is cut off had booked ahead of its time.

use crate::code::StageId;
use crate::code::order::{Class, order_key, ranked};
use crate::code::{ColdOp, Op, Target};
use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use crate::state::request_state::{BEGINS, FLAGS, IDLE, LINE, PARKED};
use crate::state::scopes::Passing;
use crate::state::scopes::Remnant;

impl Engine<'_> {
    /// Takes back what was added up for waits, entries and visits that a request will not reach. A part that it
    /// leaves behind will reach them, and its time is part of no latency from now on.
    pub(crate) fn take_back(&mut self, slot: SlotId, left: Option<Remnant>, now_ns: u64) {
        let state = self.core.states.slots[slot.index()];
        if state.pc & PARKED == 0 {
            return self.take_back_place(slot, left, now_ns);
        }
        let stop = (state.pc & !FLAGS) as usize;
        let scope = self.core.scopes.slots[slot.index()];
        let mut passing = Passing { at: scope.since, key: self.step_key(slot), found: false, slot, left };
        if let Op::BeginAttempt { retry } = self.core.code.steps[stop].op {
            let stage = self.core.code.retries[retry as usize].stage;
            let ns = if scope.drawn > 0 { scope.waits[0] } else { 0 };
            passing.key = ranked(order_key(Class::Limit, state.ordinal), scope.rank);
            return self.pass(&mut passing, ns, now_ns, (stage, scope.member, true));
        }
        self.take_back_way(passing, stop, now_ns);
    }

    /// Of a request that is not on a wait: in line, at work, lost, or called from there and not yet gone on.
    fn take_back_place(&mut self, slot: SlotId, left: Option<Remnant>, now_ns: u64) {
        let code = self.core.code;
        let state = self.core.states.slots[slot.index()];
        let stop = (state.pc & !FLAGS) as usize;
        // It was sent on, and has not arrived there.
        if state.pc & BEGINS != 0 || stop == 0 {
            return;
        }
        let mut inwards = true;
        let (stage, since) = match code.steps[stop - 1].op {
            Op::EnterQueue { queue } => (code.queues[queue as usize].stage, state.pc & LINE != 0),
            Op::Cold(ColdOp::AskGuard { lb }) if state.pc & LINE != 0 => (code.lbs[lb as usize].stage, true),
            Op::EnterShare { share } => (code.shares[share as usize].stage, true),
            Op::Cold(ColdOp::TakeConnection { at }) => {
                let Some(tables) = code.connections.as_deref() else { return };
                (tables.sites[at as usize].stage, state.pc & LINE != 0)
            }
            op => match self.lost_at(op) {
                Some((stage, in_vain)) => {
                    inwards = in_vain;
                    (stage, true)
                }
                None => return,
            },
        };
        match left {
            None if !inwards => {}
            None => self.count_cut(stage, state.member, state.mask()),
            Some(left) if since => left.beyond.push((stage, state.member, now_ns.wrapping_neg())),
            Some(_) => {}
        }
    }

    /// Of a request that waits: along the steps from where the wait began to where it stops.
    fn take_back_way(&mut self, mut passing: Passing, stop: usize, now_ns: u64) {
        let (code, slot) = (self.core.code, passing.slot);
        let state = self.core.states.slots[slot.index()];
        let scope = self.core.scopes.slots[slot.index()];
        let (mut pc, mut member, mut depth) = (scope.pc as usize, scope.member, usize::from(scope.depth));
        let mut drawn = scope.waits[..usize::from(scope.drawn)].iter();
        while pc != stop || depth != usize::from(state.depth) {
            match code.steps[pc].op {
                Op::Wait { wait } => {
                    let site = code.waits[wait as usize];
                    self.pass(&mut passing, site.ns, now_ns, (site.stage, member, site.inwards));
                    pc += 1;
                    passing.note_stop(pc, member, depth, scope.drawn - drawn.len() as u8);
                }
                Op::WaitDrawn { draw } => {
                    let ns = drawn.next().copied().unwrap_or(0);
                    self.pass_drawn(&mut passing, draw, ns, member, now_ns);
                    pc += 1;
                    passing.note_stop(pc, member, depth, scope.drawn - drawn.len() as u8);
                }
                Op::Call { call } => {
                    let target = self.take_back_call(&passing, call, member);
                    depth += 1;
                    pc = target.pc as usize;
                    member = target.member;
                }
                Op::Return => {
                    let [back, caller, _] = self.core.states.frame(slot, depth - 1);
                    let behind = usize::from(back & IDLE != 0 && state.outcome().is_none());
                    pc = (back & !IDLE) as usize + behind;
                    depth -= behind;
                    member = MemberId(caller);
                }
                Op::CallReturn | Op::ReturnTarget { .. } => {
                    depth -= 1;
                    pc += 1;
                }
                Op::EnterRetry { .. } => {
                    self.forget_attempts(&passing);
                    pc += 1;
                }
                // They take no time, and none of them is taken back.
                Op::Draw { .. }
                | Op::PickTarget { .. }
                | Op::EnterQueue { .. }
                | Op::LeaveQueue { .. }
                | Op::BeginAttempt { .. }
                | Op::EndAttempt { .. }
                | Op::EnterShare { .. }
                | Op::LeaveShare { .. }
                | Op::LeaveFaulty { .. }
                | Op::Serve
                | Op::TakeToken { .. }
                | Op::Flaky { .. }
                | Op::EnterLimit { .. }
                | Op::LeaveLimit
                | Op::Fault { .. }
                | Op::CountErrors
                | Op::Cold(_)
                | Op::End => pc += 1,
            }
        }
    }

    /// Passes a drawn wait; visits that it would have counted are forgotten.
    fn pass_drawn(&mut self, passing: &mut Passing, draw: u32, ns: u64, member: MemberId, now_ns: u64) {
        let site = &self.core.code.draws[draw as usize];
        if passing.found {
            let lost = site.loss.and_then(|loss| self.core.code.losses[loss as usize].visits);
            site.visits.into_iter().chain(lost).for_each(|counter| self.forget_visit(passing, counter));
        }
        self.pass(passing, ns, now_ns, (site.stage, member, site.inwards));
    }

    /// Where a call leads; its entry is taken back if the request does not reach it.
    fn take_back_call(&mut self, passing: &Passing, call: u32, member: MemberId) -> Target {
        let site = self.core.code.calls[call as usize];
        let target = self.core.code.call_targets[member.index_from(site.offset)];
        if passing.found && (passing.left.is_none() || passing.is_to_stop()) {
            let selected = self.core.states.slots[passing.slot.index()].mask();
            self.core.members[target.member.index()].entries -= selected as i32 & 1;
        }
        target
    }

    /// Attempts that a part left behind does not begin.
    fn forget_attempts(&mut self, passing: &Passing) {
        if passing.found && passing.is_to_stop() {
            self.core.states.end_attempts(passing.slot, false);
        }
    }

    /// Takes back a visit that did not take place, of the request and of a part that goes no further.
    fn forget_visit(&mut self, passing: &Passing, counter: u32) {
        let of = passing.left.as_ref().map_or(passing.slot, |left| left.request);
        if of.is_some() {
            self.core.states.forget_visit(of, counter);
        }
        if passing.is_to_stop() {
            self.core.states.forget_visit(passing.slot, counter);
        }
    }

    /// Passes one wait: takes back the part of it that is still to come.
    pub(super) fn pass(
        &mut self,
        passing: &mut Passing,
        ns: u64,
        now_ns: u64,
        at: (StageId, MemberId, bool),
    ) {
        let (stage, member, inwards) = at;
        let end = passing.at.saturating_add(ns);
        if (end, passing.key) > (now_ns, self.core.turn.1) {
            let beyond = end - passing.at.max(now_ns);
            if passing.found && passing.is_to_stop() {
                self.charge(passing.slot, stage, member, ns.wrapping_neg());
            } else if let Some(left) = &mut passing.left {
                left.beyond.push((stage, member, beyond));
            } else {
                self.charge(passing.slot, stage, member, beyond.wrapping_neg());
                if !passing.found && inwards {
                    let selected = self.core.states.slots[passing.slot.index()].mask();
                    self.count_cut(stage, member, selected);
                }
            }
            passing.found = true;
        }
        passing.at = end;
    }
}
