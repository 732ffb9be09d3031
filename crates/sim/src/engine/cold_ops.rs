//! Steps that only some topologies have, each in its turn: the request's position goes through its state, so the hot
//! path holds none of it.

use crate::code::LossSite;
use crate::code::{Code, ColdOp, Op};
use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use crate::state::connections::breaks_off;
use crate::state::request_details::scaled;
use crate::state::request_state::BEGINS;
use weir_model::crossing;
use weir_policy::Kind;
use weir_stats::Key;

impl Engine<'_> {
    /// Runs a step that only some topologies have. Where the request goes on is in its state afterwards; false: it
    /// stops.
    #[inline(never)]
    pub(crate) fn detour(
        &mut self,
        slot: SlotId,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
        after_faults: bool,
    ) -> bool {
        let code: &Code = self.core.code;
        self.leave_at(slot, pc as u32 + 1, member, depth);
        let Op::Cold(op) = code.steps[pc].op else { return true };
        match op {
            ColdOp::AskGuard { .. } => return self.ask_guard(slot, pc, member, depth, now_ns),
            ColdOp::EnterFaulty { .. } => {
                return self.come_to_fault(slot, pc, member, depth, now_ns, after_faults);
            }
            ColdOp::LossyCrossing { lossy } => return self.crosses(slot, lossy, member, now_ns),
            ColdOp::TellGuard { lb } => {
                self.told_guard(slot, lb, member, depth, now_ns);
                self.core.states.slots[slot.index()].depth -= 2;
                self.count_errors(slot, member, pc);
            }
            ColdOp::Choose { choice } => self.choose(slot, choice, pc, member, depth),
            ColdOp::EnterSequence { group } => self.go_to_next(slot, group, pc + 1, 0),
            ColdOp::NextInSequence { group } => self.go_on_in_sequence(slot, group, pc),
            ColdOp::CountRetry { retry } => self.comes_to_retry(slot, retry, member),
            ColdOp::BeginBranches { group } => {
                self.fan_out(slot, group, pc, member, depth, now_ns);
                return false;
            }
            ColdOp::EndBranch { .. } => {
                self.part_ends(slot, now_ns);
                return false;
            }
            ColdOp::EnterHedge { hedge } => {
                self.start_hedge(slot, hedge, pc, member, depth, now_ns);
                return false;
            }
            ColdOp::LeaveHedge { hedge } => {
                self.count_errors(slot, member, pc);
                self.hedge_ends(slot, hedge, now_ns);
                return false;
            }
            ColdOp::EnterRewrite { rewrite } => self.become_rewritten(slot, rewrite),
            ColdOp::Answer { status } => self.answer(slot, status as u16),
            ColdOp::EnterListener { hop } => self.enter_hop(slot, hop, member, depth),
            ColdOp::TakeConnection { at } => {
                return self.take_connection(slot, at, pc, member, depth, now_ns);
            }
            ColdOp::EnterGate { gate } => self.enter_gate(gate, member),
            ColdOp::EnterWarmup { warmup } => self.come_to_warmup(slot, warmup, member, now_ns),
            ColdOp::BeginWork { work } => self.begin_known_work(slot, work, now_ns),
            ColdOp::EndWork => self.features.work_left.stop(slot),
            ColdOp::ReportSlots { .. } | ColdOp::ReportCores { .. } => self.report_load(slot, op, member),
            ColdOp::LeaveRewrite
            | ColdOp::LeaveGate { .. }
            | ColdOp::LeaveListener { .. }
            | ColdOp::ReturnConnection { .. }
            | ColdOp::LeaveScaled { .. } => {
                self.count_errors(slot, member, pc);
                self.pass_out(slot, op, depth, now_ns);
            }
        }
        true
    }

    /// An answer passes a node which the request is in no longer.
    fn pass_out(&mut self, slot: SlotId, op: ColdOp, depth: usize, now_ns: u64) {
        match op {
            ColdOp::LeaveRewrite => self.become_as_before(slot),
            ColdOp::LeaveListener { .. } => self.leave_hop(slot),
            ColdOp::ReturnConnection { .. } => self.leave_connection(slot, depth, now_ns),
            // Only checks are judged there.
            ColdOp::LeaveGate { .. } => {}
            _ => self.features.details.unscale(slot),
        }
    }

    fn answer(&mut self, slot: SlotId, status: u16) {
        self.features.details.slots[slot.index()].status = status;
        let outcome = (status >= 500).then_some(Kind::Status5xx);
        self.core.states.slots[slot.index()].set_outcome(outcome);
    }

    fn leave_connection(&mut self, slot: SlotId, depth: usize, now_ns: u64) {
        let [_, _, conn] = self.core.states.frame(slot, depth - 1);
        let state = &mut self.core.states.slots[slot.index()];
        state.depth -= 1;
        let is_broken_off = breaks_off(state.outcome());
        self.return_connection(conn, now_ns, is_broken_off);
    }

    /// The request is of the kind that a rewrite makes of it.
    fn become_rewritten(&mut self, slot: SlotId, rewrite: u32) {
        let shape = &mut self.features.details.slots[slot.index()].shape;
        *shape = self.core.code.kinds.rewrites[rewrite as usize].behind(*shape);
    }

    /// It is of its former kind again.
    fn become_as_before(&mut self, slot: SlotId) {
        let shape = &mut self.features.details.slots[slot.index()].shape;
        *shape = self.core.code.kinds.before[*shape as usize];
    }

    fn come_to_warmup(&mut self, slot: SlotId, warmup: u32, member: MemberId, now_ns: u64) {
        let site = &self.core.code.warmups[warmup as usize];
        let factor = self.features.warmups[member.index_from(site.offset)].enter(&site.law, now_ns);
        self.features.details.scale(slot, factor);
    }

    fn choose(&mut self, slot: SlotId, choice: u32, pc: usize, member: MemberId, depth: usize) {
        let site = &self.core.code.kinds.choices[choice as usize];
        let came = self.comes_to_choice(slot, member.number_from(site.offset));
        let Some(index) = self.chosen(slot, choice, member, came) else {
            self.refuse(slot, member, site.stage, Kind::NoRoute);
            self.core.states.slots[slot.index()].pc = site.skip;
            return;
        };
        let list = self.core.code.kinds.nodes[member.index_from(site.offset)].0;
        let target = self.core.code.lists[list as usize].get(self.core.code, index);
        self.core.states.set_frame(slot, depth, [pc as u32 + 1, member.0, index]);
        self.leave_at(slot, target.pc, target.member, depth + 1);
        let selected = self.core.states.slots[slot.index()].selected();
        self.core.members[target.member.index()].entries += i32::from(selected);
    }

    /// The drawn wait of a request, with everything that lengthens it.
    #[cold]
    pub(crate) fn longer(&mut self, slot: SlotId, draw: u32, ns: u64) -> u64 {
        let site = &self.core.code.draws[draw as usize];
        let ns = if site.scaled { scaled(ns, self.features.details.slots[slot.index()].factor) } else { ns };
        let Some(loss) = site.loss else { return ns };
        let LossSite { loss, resend_ns, key, visits } = self.core.code.losses[loss as usize];
        let key: Key = self.draw_key(slot, key, visits);
        ns.saturating_add(crossing::extra_ns(loss, resend_ns, key).unwrap_or(0))
    }

    /// A request begins where it was sent.
    #[cold]
    pub(crate) fn begins(&mut self, slot: SlotId, now_ns: u64) {
        let state = &mut self.core.states.slots[slot.index()];
        state.pc &= !BEGINS;
        if self.core.code.branches {
            self.branch_begins(slot, now_ns);
            if self.attempt_begins(slot) {
                return;
            }
        }
        let state = &self.core.states.slots[slot.index()];
        self.core.members[state.member.index()].entries += i32::from(state.selected());
    }
}
