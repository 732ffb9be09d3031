//! Steps that are not on the path of every request: in a function of their own, so that the hot one stays small.

use crate::code::Op;
use crate::code::order::{Class, order_key, ranked};
use crate::engine::Engine;
use crate::state::request_state::LINE;
use weir_model::draws::purpose;
use weir_policy::Kind;
use weir_policy::outcome::TOO_MANY;
use weir_stats::Key;

impl Engine<'_> {
    /// Runs a step that only some topologies have, in its turn; returns where the request goes on, or `None` if it
    /// stops.
    #[inline(never)]
    pub(crate) fn rare(
        &mut self,
        slot: u32,
        pc: usize,
        member: u32,
        depth: usize,
        now: u64,
    ) -> Option<usize> {
        let code = self.code;
        let state = &self.states.slots[slot as usize];
        let (selected, failed) = (state.mask(), state.has_failed());
        match code.steps[pc].op {
            Op::EnterShare { share } => {
                let waits = self.enter_share(slot, share, member, selected, now);
                self.charge(slot, code.shares[share as usize].stage, member, now.wrapping_neg());
                self.leave_at(slot, (pc as u32 + 1) | if waits { LINE } else { 0 }, member, depth);
                return None;
            }
            Op::LeaveShare { share } => {
                self.leave_share(slot, share, member, selected, now);
                self.charge(slot, code.shares[share as usize].stage, member, now);
                if failed {
                    self.count_errors(slot, member, pc);
                }
                if self.is_left_at(slot, pc, depth) {
                    self.vanish(slot, now);
                    return None;
                }
            }
            Op::TakeToken { rate } => {
                let site = code.rate_sites[rate as usize];
                let key = site.key.and_then(|key| self.key(slot, key));
                if self.rates[member.wrapping_add(site.offset) as usize].take(now, key).is_err() {
                    self.count_refusal(slot, member, site.stage);
                    self.refuse(slot, member, site.stage, Kind::Overloaded);
                    if code.details {
                        self.details.slots[slot as usize].status = TOO_MANY;
                    }
                    return Some(site.skip as usize);
                }
            }
            Op::Flaky { flaky } => {
                if failed {
                    self.count_errors(slot, member, pc);
                } else {
                    self.fails(slot, flaky);
                }
            }
            // Steps of `go_on` itself, or of `detour`.
            Op::Draw { .. }
            | Op::Wait { .. }
            | Op::WaitDrawn { .. }
            | Op::PickTarget { .. }
            | Op::ReturnTarget { .. }
            | Op::EnterQueue { .. }
            | Op::LeaveQueue { .. }
            | Op::EnterRetry { .. }
            | Op::BeginAttempt { .. }
            | Op::EndAttempt { .. }
            | Op::Answer { .. }
            | Op::EnterRewrite { .. }
            | Op::LeaveRewrite
            | Op::Choose { .. }
            | Op::AskGuard { .. }
            | Op::TellGuard { .. }
            | Op::EnterFaulty { .. }
            | Op::LeaveFaulty { .. }
            | Op::LossyCrossing { .. }
            | Op::Serve
            | Op::BeginWork { .. }
            | Op::EndWork
            | Op::EnterWarmup { .. }
            | Op::LeaveScaled { .. }
            | Op::EnterSequence { .. }
            | Op::NextInSequence { .. }
            | Op::CountRetry { .. }
            | Op::BeginBranches { .. }
            | Op::EndBranch { .. }
            | Op::EnterHedge { .. }
            | Op::LeaveHedge { .. }
            | Op::EnterLimit { .. }
            | Op::LeaveLimit
            | Op::Fault { .. }
            | Op::CountErrors
            | Op::Call { .. }
            | Op::CallReturn
            | Op::EnterListener { .. }
            | Op::LeaveListener { .. }
            | Op::Return
            | Op::End => {}
        }
        Some(pc + 1)
    }

    /// The request stops here until it is called again.
    #[inline]
    pub(crate) fn leave_at(&mut self, slot: u32, pc: u32, member: u32, depth: usize) {
        self.states.slots[slot as usize].stop_at(pc, member, depth);
    }

    /// The order of a request's steps; by rank where several branches of one request can be in flight.
    #[inline]
    pub(crate) fn step_key(&self, slot: u32) -> u64 {
        let ordinal = self.states.slots[slot as usize].ordinal;
        if self.code.goes_on {
            return ranked(order_key(Class::Step, ordinal), self.scopes.slots[slot as usize].rank);
        }
        crate::engine::step_key(ordinal)
    }
}

/// The key of a request's draw at a place where it has been `before` times.
#[cold]
#[inline(never)]
pub(crate) fn on_visit(key: Key, before: u32) -> Key {
    if before == 0 { key } else { key.with(purpose::VISIT).with(u64::from(before)) }
}
