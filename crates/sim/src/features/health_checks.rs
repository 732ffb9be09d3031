//! Active health checks: they cross a target's cables, queues and faults as requests do, and cost its server work.
//!
//! - In virtual time: crossings, waits and the cost. A check is a request that is not counted, with a slot of its
//!   own; it runs through the same code, with a different action at each kind of step, always in its turn.
//! - Given back when it times out: what it holds.
//! - Draws: crossings, by balancer, target and number of the check.

use crate::code::order::{Class, Entry, order_key};
use crate::code::{ColdOp, NOT, Op};
use crate::code::{MemberId, SlotId};
use crate::engine::{END_OF_TIME, Engine, Event};
use crate::state::probes::NONE;
use crate::state::request_details::{Detail, scaled};
use crate::state::request_state::{BEGINS, CHECK, IDLE, LINE, PARKED};
use crate::state::scopes::{CHECKED, Limit};
use weir_model::draws::purpose;
use weir_model::queue::Entry as QueueEntry;
use weir_plan::Mode;
use weir_policy::{Kind, TargetId};

/// The number of checks in the order of events: they come after all requests, by balancer and target.
const CHECKS: u64 = 1 << (crate::code::order::REQUEST_BITS - 1);

impl Engine<'_> {
    /// Schedules the first checks.
    pub(crate) fn schedule_checks(&mut self) {
        for index in 0..self.core.code().instances.len() as u32 {
            self.watch(index, 0);
            self.schedule_check(index, 0);
        }
    }

    pub(crate) fn schedule_check(&mut self, index: u32, now_ns: u64) {
        let Some(guard) = self.features.guards.get(index) else { return };
        let Some(at) = guard.upstream.next_check() else { return };
        let at = at.max(now_ns).min(END_OF_TIME);
        if at >= guard.check_due {
            return;
        }
        guard.check_due = at;
        let key = order_key(Class::Hold, CHECKS | u64::from(index));
        self.core.schedule(now_ns, Entry { at, key, who: Event::Checks.who(index), tag: 0 });
    }

    /// Begins the checks of a balancer.
    pub(crate) fn begin_checks(&mut self, index: u32, now_ns: u64) {
        let Some(guard) = self.features.guards.get(index).filter(|guard| guard.check_due == now_ns) else {
            return;
        };
        guard.check_due = u64::MAX;
        let (picks, site) = (guard.picks, guard.site);
        let timeout_ns = self.core.code().guards.sites[site as usize].check_timeout_ns;
        while let Some(target) =
            self.features.guards.get(index).and_then(|guard| guard.upstream.start_check(now_ns))
        {
            let code = self.core.code();
            let Some(to) = self.features.guards.get(index).map(|guard| guard.target(code, target)) else {
                return;
            };
            let way =
                picks.with(purpose::CHECK).with(u64::from(target.0)).with(self.features.guards.checks_begun);
            self.features.guards.checks_begun += 1;
            let order = CHECKS | u64::from(index);
            let slot = self.core.states_mut().add(order, now_ns, way, false);
            self.core.states_mut().checks += 1;
            self.core.scopes_mut().begin(slot);
            self.features.hops.begin(slot);
            self.features.details.begin(slot, 0, None);
            self.features.details.slots[slot.index()].check = (index, target);
            let (live, tag) =
                self.core.scopes_mut().enter(slot, Limit { end: CHECKED, rank: 0, ..Limit::default() }, 0);
            let rank = target.0.min((1 << 14) - 1);
            self.core.scope_mut(slot).rank = rank;
            let key = crate::code::order::ranked(order_key(Class::Limit, order), rank);
            let at = now_ns.saturating_add(timeout_ns).min(END_OF_TIME);
            self.core.schedule(now_ns, Entry { at, key, who: Event::Limit.who(live), tag });
            self.leave_at(slot, to.pc | CHECK, to.member, 0);
            self.check_goes_on(slot, now_ns);
        }
        self.schedule_check(index, now_ns);
    }

    /// Runs a check until it must wait.
    pub(crate) fn check_goes_on(&mut self, slot: SlotId, now_ns: u64) {
        if self.is_handshake(slot) {
            return self.handshake_goes_on(slot, now_ns);
        }
        if self.core.state(slot).pc & LINE != 0 && !self.check_leaves_line(slot, now_ns) {
            return;
        }
        while self.check_steps(slot, now_ns) {}
    }

    /// The longest permitted wait of a check in line has passed.
    fn check_leaves_line(&mut self, slot: SlotId, now_ns: u64) -> bool {
        let state = self.core.state(slot);
        let (enter, member) = ((state.pc & !(LINE | CHECK)) as usize - 1, state.member);
        let Op::EnterQueue { queue } = self.core.code().steps[enter].op else { return false };
        let site = &self.core.code().queues[queue as usize];
        self.leave_line(slot, queue, member, now_ns);
        self.leaves_node(site.stage, member, now_ns);
        self.check_fails(slot, Kind::Timeout, site.skip);
        true
    }

    fn check_fails(&mut self, slot: SlotId, kind: Kind, skip: u32) {
        let state = self.core.state_mut(slot);
        state.set_outcome(Some(kind));
        state.pc = skip | CHECK;
    }

    /// One step of a check; false: it waits, or has ended.
    fn check_steps(&mut self, slot: SlotId, now_ns: u64) -> bool {
        let code = self.core.code();
        let state = *self.core.state(slot);
        let pc = (state.pc & !(CHECK | PARKED | LINE | BEGINS)) as usize;
        let (member, depth) = (state.member, usize::from(state.depth));
        self.leave_at(slot, (pc as u32 + 1) | CHECK, member, depth);
        match code.steps[pc].op {
            Op::Wait { wait } if code.waits[wait as usize].crosses => {
                return self.check_sleeps(slot, now_ns, code.waits[wait as usize].ns);
            }
            Op::WaitDrawn { draw } if code.draws[draw as usize].crosses => {
                return self.check_crosses(slot, draw, member, now_ns);
            }
            Op::Serve => {
                self.check_arrives(slot);
                let ns = self.check_cost_ns(slot);
                return self.check_sleeps(slot, now_ns, ns);
            }
            Op::EnterQueue { queue } => return self.check_enters(slot, queue, pc, member, depth, now_ns),
            op @ (Op::LeaveQueue { .. } | Op::LeaveShare { .. }) => {
                self.check_leaves(slot, op, member, now_ns)
            }
            Op::EnterShare { share } => {
                return self.check_enters_share(slot, share, pc, member, depth, now_ns);
            }
            Op::Fault { fault } => self.check_meets_refusal(slot, fault, member, now_ns),
            Op::LeaveFaulty { .. } => {
                let limits = self.core.scope(slot).limits;
                self.core.scopes_mut().leave(slot, limits - 1);
            }
            // A node that balances is alive: the targets behind it have checks of their own.
            Op::PickTarget { lb } => {
                self.check_arrives(slot);
                self.core.state_mut(slot).pc = code.lbs[lb as usize].skip | CHECK;
            }
            Op::Call { call } => self.check_calls(slot, call, pc, member, depth),
            Op::CallReturn => self.core.state_mut(slot).depth -= 1,
            Op::Return if depth == 0 => {
                self.check_ends(slot, now_ns);
                return false;
            }
            Op::Return => {
                let [back, caller, _] = self.core.states().frame(slot, depth - 1);
                self.leave_at(slot, (back & !IDLE) | CHECK, MemberId(caller), depth);
            }
            Op::Cold(op) => return self.check_cold_step(slot, op, pc, member, depth, now_ns),
            // A check does nothing there.
            Op::Draw { .. }
            | Op::Wait { .. }
            | Op::WaitDrawn { .. }
            | Op::ReturnTarget { .. }
            | Op::EnterRetry { .. }
            | Op::BeginAttempt { .. }
            | Op::EndAttempt { .. }
            | Op::TakeToken { .. }
            | Op::Flaky { .. }
            | Op::EnterLimit { .. }
            | Op::LeaveLimit
            | Op::CountErrors
            | Op::End => {}
        }
        true
    }

    /// A check leaves a queue, or cores that are shared.
    fn check_leaves(&mut self, slot: SlotId, op: Op, member: MemberId, now_ns: u64) {
        let code = self.core.code();
        match op {
            Op::LeaveQueue { queue } => {
                self.give_back_slot(queue, member, 0, now_ns);
                self.leaves_node(code.queues[queue as usize].stage, member, now_ns);
            }
            Op::LeaveShare { share } => {
                self.leave_share(slot, share, member, 0, now_ns);
                self.leaves_node(code.shares[share as usize].stage, member, now_ns);
            }
            _ => {}
        }
    }

    /// A check crosses a link whose time is drawn.
    fn check_crosses(&mut self, slot: SlotId, draw: u32, member: MemberId, now_ns: u64) -> bool {
        let ns = self.drawn(slot, draw);
        let ns = match self.core.code().draws[draw as usize].pause {
            Some(pause) => self.held_ns(pause, member, now_ns, ns),
            None => ns,
        };
        self.check_sleeps(slot, now_ns, ns)
    }

    /// A step that only some topologies have; false: the check waits, or has ended.
    fn check_cold_step(
        &mut self,
        slot: SlotId,
        op: ColdOp,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) -> bool {
        let code = self.core.code();
        match op {
            ColdOp::LossyCrossing { lossy } => return self.crosses(slot, lossy, member, now_ns),
            ColdOp::Answer { status } => {
                self.check_arrives(slot);
                self.features.details.slots[slot.index()].status = status as u16;
                let ns = self.check_cost_ns(slot);
                return self.check_sleeps(slot, now_ns, ns);
            }
            ColdOp::EnterFaulty { down } => {
                return self.check_meets_fault(slot, down, pc, member, depth, now_ns);
            }
            ColdOp::LeaveScaled { slow: true } => self.features.details.unscale(slot),
            ColdOp::EnterGate { gate } => self.check_enters_gate(slot, gate, member, now_ns),
            ColdOp::LeaveGate { gate } => self.check_leaves_gate(slot, gate, member, now_ns),
            // As a balancer without a guard.
            ColdOp::AskGuard { lb } => {
                self.check_arrives(slot);
                self.core.state_mut(slot).pc = code.lbs[lb as usize].skip | CHECK;
            }
            // A connection to a listener succeeds whatever is behind it.
            ColdOp::EnterListener { hop } if self.connects_only(slot) => {
                self.core.state_mut(slot).pc = (code.hops[hop as usize].end - 1) | CHECK;
            }
            ColdOp::EnterSequence { .. } | ColdOp::BeginBranches { .. } => {
                self.check_arrives(slot);
                self.core.state_mut(slot).pc += 1;
            }
            ColdOp::Choose { choice } => {
                self.check_arrives(slot);
                let skip = code.kinds.choices[choice as usize].skip;
                self.core.state_mut(slot).pc = skip | CHECK;
            }
            // A check does nothing there.
            ColdOp::EnterRewrite { .. }
            | ColdOp::LeaveRewrite
            | ColdOp::TellGuard { .. }
            | ColdOp::BeginWork { .. }
            | ColdOp::EndWork
            | ColdOp::ReportSlots { .. }
            | ColdOp::ReportCores { .. }
            | ColdOp::EnterWarmup { .. }
            | ColdOp::LeaveScaled { .. }
            | ColdOp::NextInSequence { .. }
            | ColdOp::CountRetry { .. }
            | ColdOp::EndBranch { .. }
            | ColdOp::EnterHedge { .. }
            | ColdOp::LeaveHedge { .. }
            | ColdOp::EnterListener { .. }
            | ColdOp::LeaveListener { .. }
            | ColdOp::TakeConnection { .. }
            | ColdOp::ReturnConnection { .. } => {}
        }
        true
    }

    /// A node that may be down in the plain way, where a check is refused.
    fn check_meets_refusal(&mut self, slot: SlotId, fault: u32, member: MemberId, now_ns: u64) {
        let site = &self.core.code().faults[fault as usize];
        let after = self.core.class_key() >= order_key(Class::Fault, 0);
        let node = self.core.fault_mut(member.number_from(site.offset));
        if !node.is_up(&site.law, now_ns, after) {
            let back = if site.checks_pass { None } else { Some(Kind::Refused) };
            self.core.state_mut(slot).set_outcome(back);
            self.core.state_mut(slot).pc = site.skip | CHECK;
        }
    }

    /// A check shares the cores like a request; it goes on when its work is done.
    fn check_enters_share(
        &mut self,
        slot: SlotId,
        share: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) -> bool {
        self.check_arrives(slot);
        let waits = self.enter_share(slot, share, member, 0, now_ns);
        self.leave_at(slot, (pc as u32 + 1) | CHECK | if waits { LINE } else { 0 }, member, depth);
        false
    }

    fn check_calls(&mut self, slot: SlotId, call: u32, pc: usize, member: MemberId, depth: usize) {
        let code = self.core.code();
        let target = code.call_targets[member.index_from(code.calls[call as usize].offset)];
        self.core.states_mut().set_frame(slot, depth, [pc as u32 + 1, member.0, 0]);
        self.leave_at(slot, target.pc | CHECK, target.member, depth + 1);
    }

    pub(crate) fn check_enters(
        &mut self,
        slot: SlotId,
        queue: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) -> bool {
        let site = &self.core.code().queues[queue as usize];
        let (entry, waiting) = self.core.enter_queue(slot, site, member);
        let gauge = self.core.gauge_mut(site.gauge, member);
        match entry {
            QueueEntry::Inside => {
                gauge.busy = gauge.busy.wrapping_sub(now_ns);
                true
            }
            QueueEntry::Waits => {
                gauge.waiting = gauge.waiting.wrapping_sub(now_ns);
                gauge.most = gauge.most.max(waiting);
                self.leave_at(slot, (pc as u32 + 1) | LINE | CHECK, member, depth);
                if let Some(ns) = site.timeout_ns {
                    self.end_wait_after(slot, now_ns, ns);
                }
                false
            }
            QueueEntry::Full => {
                self.check_fails(slot, Kind::Overloaded, site.skip);
                true
            }
        }
    }

    fn check_meets_fault(
        &mut self,
        slot: SlotId,
        down: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) -> bool {
        let site = self.core.code().lines.sites[down as usize];
        let after = self.core.class_key() >= order_key(Class::Fault, 0);
        let may_lie = site.checks_pass && site.mode != Mode::Slow;
        if may_lie && !self.is_up(down, member, now_ns, after) {
            // The node answers checks although it is down.
            self.core.state_mut(slot).pc = site.skip | CHECK;
            return true;
        }
        let goes_on = self.come_to_fault(slot, pc, member, depth, now_ns, after);
        self.core.state_mut(slot).pc |= CHECK;
        goes_on
    }

    /// The work of a check at a server, with everything that lengthens its work.
    pub(crate) fn check_cost_ns(&mut self, slot: SlotId) -> u64 {
        let detail = self.features.details.slots[slot.index()];
        let site = self.features.guards.get(detail.check.0).map_or(0, |guard| guard.site);
        let site = &self.core.code().guards.sites[site as usize];
        let cost_ns = if detail.probe == NONE { site.check_cost_ns } else { site.probe_cost_ns };
        scaled(cost_ns, detail.factor)
    }

    /// A check has arrived as far in as it goes: a probe reads how busy its target is.
    fn check_arrives(&mut self, slot: SlotId) {
        let probe = self.features.details.slots[slot.index()].probe;
        if probe != NONE {
            self.probe_looks(probe);
        }
    }

    /// Whether a check only connects.
    pub(crate) fn connects_only(&mut self, slot: SlotId) -> bool {
        let Detail { check: (index, _), probe, .. } = self.features.details.slots[slot.index()];
        let site = self.features.guards.get(index).map(|guard| guard.site).filter(|_| probe == NONE);
        site.is_some_and(|site| self.core.code().guards.sites[site as usize].check_expects.is_empty())
    }

    pub(crate) fn check_sleeps(&mut self, slot: SlotId, now_ns: u64, ns: u64) -> bool {
        if ns == 0 {
            return true;
        }
        let state = self.core.state_mut(slot);
        // Its waits are not walked through again when it is cut off.
        state.pc |= PARKED;
        let (pc, member, depth) = (state.pc & !(PARKED | CHECK), state.member, usize::from(state.depth));
        self.core.scopes_mut().stand(slot, now_ns, pc as usize, member, depth);
        let at = now_ns.saturating_add(ns).min(END_OF_TIME);
        let state = self.core.state(slot);
        let rank = self.core.scope(slot).rank;
        let key = crate::code::order::ranked(order_key(Class::Step, state.ordinal), rank);
        self.core.schedule(now_ns, Entry { at, key, who: slot.0, tag: state.tag });
        false
    }

    fn check_ends(&mut self, slot: SlotId, now_ns: u64) {
        let Detail { check: (index, target), probe, .. } = self.features.details.slots[slot.index()];
        if probe != NONE {
            if self.core.state(slot).outcome().is_some() {
                self.features.probes.of[probe as usize].found = None;
            }
            self.check_is_gone(slot);
            return self.probe_ends(probe, now_ns);
        }
        let site = self.features.guards.get(index).map_or(NOT, |guard| guard.site);
        let expects = &self.core.code().guards.sites[site as usize].check_expects;
        let as_expected = |status| expects.iter().any(|(low, high)| (*low..=*high).contains(&status));
        let fit = expects.is_empty() || self.answered_with(slot).is_none_or(as_expected);
        let passed = self.core.state(slot).outcome().is_none() && fit;
        self.check_is_gone(slot);
        self.result_of_check(index, target, passed, now_ns);
    }

    /// A check timed out.
    pub(crate) fn check_times_out(&mut self, slot: SlotId, limit: &Limit, now_ns: u64) {
        let Detail { check: (index, target), probe, .. } = self.features.details.slots[slot.index()];
        self.cut_to(slot, &Limit { end: u32::MAX, ..*limit }, now_ns);
        self.check_is_gone(slot);
        if probe != NONE {
            self.features.probes.remove(probe);
            return;
        }
        self.result_of_check(index, target, false, now_ns);
    }

    /// The run is over: drops the checks in flight.
    pub(crate) fn end_checks(&mut self, now_ns: u64) {
        if self.core.states_mut().checks == 0 {
            return;
        }
        let free = self.core.states_mut().free();
        for slot in self.core.states().ids() {
            if !free[slot.index()] && self.core.state(slot).pc & CHECK != 0 {
                self.cut_to(slot, &Limit { end: u32::MAX, ..Limit::default() }, now_ns);
                self.check_is_gone(slot);
            }
        }
    }

    fn check_is_gone(&mut self, slot: SlotId) {
        self.core.states_mut().checks -= 1;
        self.core.scopes_mut().end(slot);
        self.core.states_mut().remove(slot);
    }

    fn result_of_check(&mut self, index: u32, target: TargetId, passed: bool, now_ns: u64) {
        if let Some(guard) = self.features.guards.get(index) {
            guard.upstream.check_result(now_ns, target, passed);
        }
        self.end_withdrawn(index, (!passed).then_some(target), now_ns);
        self.schedule_check(index, now_ns);
        self.watch(index, now_ns);
        self.admit_by_health(index, now_ns);
    }
}
