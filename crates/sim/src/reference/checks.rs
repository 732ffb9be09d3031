//! Active health checks: they cross a target's cables, queues and faults as requests do, and cost its server work.

use super::branch::{Branch, Phase};
use super::build::{Act, NONE};
use super::run::{Flow, Reference, what};
use crate::code::SlotId;
use crate::code::order::{Class, Entry, order_key};
use crate::state::gates::find_others;
use weir_model::draws::purpose;
use weir_plan::Mode;
use weir_policy::TargetId;

/// The number of checks in the order of events: they come after all requests, by balancer and target.
const CHECKS: u64 = 1 << (crate::code::order::REQUEST_BITS - 1);

impl Reference<'_> {
    /// Schedules the first checks.
    pub(super) fn schedule_checks(&mut self) {
        for index in 0..self.code.instances.len() as u32 {
            self.watch(index);
            self.schedule_check(index);
        }
    }

    pub(super) fn schedule_check(&mut self, index: u32) {
        let instance = &mut self.balancers[index as usize];
        let Some(at) = instance.upstream.next_check() else { return };
        let at = at.max(self.now_ns).min(u64::MAX - 1);
        if at >= instance.check_due {
            return;
        }
        instance.check_due = at;
        let key = order_key(Class::Hold, CHECKS | u64::from(index));
        self.pending.push(self.now_ns, Entry { at, key, who: what::CHECK | index, tag: 0 });
    }

    /// Begins the checks of a balancer.
    pub(super) fn begin_checks(&mut self, index: u32) {
        if self.balancers[index as usize].check_due != self.now_ns {
            return;
        }
        self.balancers[index as usize].check_due = u64::MAX;
        let lb = self.balancers[index as usize].lb;
        let timeout_ns = self.tables.lbs[lb as usize].check_timeout_ns;
        while let Some(target) = self.balancers[index as usize].upstream.start_check(self.now_ns) {
            let to = self.balancers[index as usize].target(self.code, target);
            let slot = self.branches.add();
            self.checks_live += 1;
            let way = self.balancers[index as usize]
                .picks
                .with(purpose::CHECK)
                .with(u64::from(target.0))
                .with(self.checks_begun);
            self.checks_begun += 1;
            let branch = &mut self.branches.slots[slot.index()];
            (branch.stage, branch.member, branch.floor_stage) = (to.pc, to.member, to.pc);
            (branch.way, branch.tries, branch.since) = (way, way, self.now_ns);
            (branch.order, branch.rank) = (CHECKS | u64::from(index), target.0.min((1 << 14) - 1));
            (branch.wanted, branch.check, branch.index) = (false, index, target.0);
            let (order, rank, tag) = (branch.order, branch.rank, branch.tag);
            let at = self.now_ns.saturating_add(timeout_ns).min(u64::MAX - 1);
            let key = crate::code::order::ranked(order_key(Class::Limit, order), rank);
            self.pending.push(self.now_ns, Entry { at, key, who: what::CHECK_LIMIT | slot.0, tag });
            self.run_branch(slot, Flow::In);
        }
        self.schedule_check(index);
    }

    /// A check enters a stage; most stages do not affect checks.
    pub(super) fn check_enters(&mut self, slot: SlotId, act: Act) -> Flow {
        match act {
            // A node that balances is alive: the targets behind it have checks of their own.
            Act::Balance { .. } | Act::Sequence { .. } | Act::Fanout { .. } | Act::Choose { .. } => {
                self.check_arrives(slot);
                Flow::Back
            }
            // A connection to a listener succeeds whatever is behind it.
            Act::Hop { .. } if self.connects_only(slot) => Flow::Back,
            Act::Cable { cable } => self.cross(slot, cable, true),
            Act::Queue { queue } => self.enter_queue(slot, queue),
            Act::Share { server } => {
                self.check_arrives(slot);
                self.enter_server(slot, server)
            }
            Act::Fault { fault } => self.check_meets_fault(slot, fault),
            Act::Pass if self.is_leaf(slot) => {
                self.check_arrives(slot);
                let ns = self.check_cost_ns(slot);
                self.sleep(slot, Phase::Out, ns, Class::Step, false)
            }
            Act::Answer { status } => {
                self.check_arrives(slot);
                self.branches.slots[slot.index()].status = status;
                let ns = self.check_cost_ns(slot);
                self.sleep(slot, Phase::Out, ns, Class::Step, false)
            }
            Act::Gate { gate } => {
                if self.asks_gates(slot) {
                    let member = self.branches.slots[slot.index()].member;
                    let site = &self.tables.gates.sites[gate as usize];
                    self.gates[member.index_from(site.offset)].asked(self.now_ns);
                }
                Flow::On
            }
            Act::Pass
            | Act::Rewrite { .. }
            | Act::Work { .. }
            | Act::Retry { .. }
            | Act::Flaky { .. }
            | Act::Warmup { .. }
            | Act::Timeout { .. }
            | Act::Limit { .. }
            | Act::Hedge { .. }
            | Act::Connect { .. }
            | Act::Hop { .. } => Flow::On,
        }
    }

    /// The work of a check at a server, with everything that lengthens its work.
    pub(super) fn check_cost_ns(&self, slot: SlotId) -> u64 {
        let branch = &self.branches.slots[slot.index()];
        let lb = self.balancers[branch.check as usize].lb;
        let site = &self.tables.lbs[lb as usize];
        let cost_ns = if branch.probe == NONE { site.check_cost_ns } else { site.probe_cost_ns };
        crate::state::request_details::scaled(cost_ns, branch.factor)
    }

    /// Whether a check only connects.
    fn connects_only(&self, slot: SlotId) -> bool {
        let branch = &self.branches.slots[slot.index()];
        let lb = self.balancers[branch.check as usize].lb;
        branch.probe == NONE && self.tables.lbs[lb as usize].check_expects.is_empty()
    }

    /// Whether it is a check by HTTP, which a gate answers.
    fn asks_gates(&self, slot: SlotId) -> bool {
        self.branches.slots[slot.index()].probe == NONE && !self.connects_only(slot)
    }

    /// A check comes back, and is answered by the gate if the node behind is well.
    fn check_leaves_gate(&mut self, slot: SlotId, gate: u32) {
        if !self.asks_gates(slot) {
            return;
        }
        let branch = &self.branches.slots[slot.index()];
        let index = branch.member.number_from(self.tables.gates.sites[gate as usize].offset);
        let balancer = &self.balancers[branch.check as usize];
        let source = self.tables.lbs[balancer.lb as usize].check_source;
        let asker = self.tables.gates.asker(index, source, balancer.picks);
        let is_well = branch.outcome.is_none();
        let lines = self.tables.lines.iter().zip(&self.lines);
        let lines = lines.map(|(site, state)| (&site.anew[..], state.looks_up(&site.law, self.now_ns)));
        let changes = self.code.changes.as_deref().map(|tables| (tables, &self.changes));
        let others = find_others(&self.tables.gates, &self.gates, index, self.now_ns, lines, changes);
        let answer = self.gates[index as usize].answer(self.now_ns, asker, is_well, &others);
        if is_well && !answer.is_healthy() {
            self.branches.slots[slot.index()].status = 503;
        }
    }

    fn is_leaf(&self, slot: SlotId) -> bool {
        let stage = self.branches.slots[slot.index()].stage;
        matches!(self.tables.nodes[stage as usize].next, super::build::Next::Leaf)
    }

    fn check_meets_fault(&mut self, slot: SlotId, fault: u32) -> Flow {
        let site = &self.tables.faults[fault as usize];
        if site.checks_pass && !self.is_up_for(slot, fault) {
            // The node answers checks although it is down.
            return match site.mode {
                Mode::Slow => self.enter_fault(slot, fault),
                Mode::Pause => Flow::Out,
                Mode::Refuse | Mode::Crash | Mode::Blackhole => Flow::Back,
            };
        }
        self.enter_fault(slot, fault)
    }

    /// A check returns to a stage.
    pub(super) fn check_comes_back(&mut self, slot: SlotId, act: Act) -> Flow {
        match act {
            Act::Cable { cable } => self.cross(slot, cable, false),
            Act::Queue { queue } => {
                let Branch { stage, member, .. } = self.branches.slots[slot.index()];
                self.leave_queue(queue, member, false);
                self.leaves_node(stage, member);
                Flow::Out
            }
            Act::Fault { fault } => self.leave_fault(slot, fault),
            Act::Gate { gate } => {
                self.check_leaves_gate(slot, gate);
                Flow::Out
            }
            Act::Pass
            | Act::Answer { .. }
            | Act::Rewrite { .. }
            | Act::Work { .. }
            | Act::Share { .. }
            | Act::Retry { .. }
            | Act::Flaky { .. }
            | Act::Connect { .. }
            | Act::Warmup { .. }
            | Act::Timeout { .. }
            | Act::Balance { .. }
            | Act::Sequence { .. }
            | Act::Fanout { .. }
            | Act::Choose { .. }
            | Act::Limit { .. }
            | Act::Hedge { .. }
            | Act::Hop { .. } => Flow::Out,
        }
    }

    /// A check is answered.
    pub(super) fn check_ends(&mut self, check: &Branch) {
        self.checks_live -= 1;
        if check.probe != NONE {
            return self.costly_probe_ends(check);
        }
        let lb = self.balancers[check.check as usize].lb;
        let expects = &self.tables.lbs[lb as usize].check_expects;
        let as_expected = |status| expects.iter().any(|(low, high)| (*low..=*high).contains(&status));
        let fit = expects.is_empty() || check.answered_with().is_none_or(as_expected);
        self.result_of_check(check.check, TargetId(check.index), check.outcome.is_none() && fit);
    }

    /// A check timed out.
    pub(super) fn check_times_out(&mut self, slot: SlotId) {
        let branch = &self.branches.slots[slot.index()];
        let (index, target, probe) = (branch.check, branch.index, branch.probe);
        self.checks_live -= 1;
        self.cancel(slot, true);
        if probe != NONE {
            self.probes.remove(probe);
            return;
        }
        self.result_of_check(index, TargetId(target), false);
    }

    fn result_of_check(&mut self, index: u32, target: TargetId, passed: bool) {
        self.balancers[index as usize].upstream.check_result(self.now_ns, target, passed);
        self.end_withdrawn(index, (!passed).then_some(target));
        self.schedule_check(index);
        self.watch(index);
        self.admit_by_health(index);
    }
}
