//! Probes of `lb.prequal`: answered at once, after a round trip, or as work at their targets.

use super::balance::Instance;
use super::branch::Branch;
use super::run::{Flow, Reference, what};
use crate::code::SlotId;
use crate::code::Target;
use crate::code::order::{Class, Entry, order_key};
use crate::state::probes::Probe;
use weir_model::draws::purpose;
use weir_policy::TargetId;

impl Reference<'_> {
    /// Probes how busy targets are; the balancer gets the answers now, or as they arrive.
    pub(super) fn probe(&mut self, lb: u32, index: u32, slot: SlotId) {
        let (came, on) = (self.branches.slots[slot.index()].came, self.on(lb, slot));
        let draw = self.branches.choice_key(slot, self.balancers[index as usize].picks, came);
        let Instance { upstream, .. } = &mut self.balancers[index as usize];
        let mut whom = Vec::new();
        let Some(prequal) = upstream.on(on).balancer().prequal() else { return };
        prequal.whom(draw, &mut whom);
        let list = self.code.instances[index as usize].list;
        let costs = self.tables.lbs[lb as usize].probe_cost_ns > 0;
        for (target, key) in whom {
            let instance = &self.balancers[index as usize];
            let (to, place) = (instance.target(self.code, target), TargetId(instance.place(target)));
            let times = if costs { Some((0, 0)) } else { self.tables.probe_ways.times(list, place, key) };
            let Some((out_ns, back_ns)) = times else { continue };
            let number = self.probes.number();
            let member = self.code.ends.server(to.member);
            let probe = Probe { index, on, target, member, key, number, back_ns, found: None };
            let probe = self.probes.add(probe);
            if costs { self.send_costly(probe, to) } else { self.probe_after(probe, out_ns) }
        }
    }

    /// Schedules the arrival or return of a probe after `ns`.
    fn probe_after(&mut self, probe: u32, ns: u64) {
        if ns == 0 {
            return self.probe_is_due(probe);
        }
        let at = self.now_ns.saturating_add(ns).min(u64::MAX - 1);
        let key = order_key(Class::Step, self.probes.of[probe as usize].number);
        self.schedule(Entry { at, key, who: what::PROBE | probe, tag: 0 }, false);
    }

    /// A probe arrives or returns.
    pub(super) fn probe_is_due(&mut self, probe: u32) {
        if self.probes.of[probe as usize].found.is_none() {
            self.probe_looks(probe);
            return self.probe_after(probe, self.probes.of[probe as usize].back_ns);
        }
        self.probe_ends(probe);
    }

    fn probe_looks(&mut self, probe: u32) {
        let probe = &mut self.probes.of[probe as usize];
        probe.found = Some(self.busy[probe.member.index()].reading());
    }

    fn probe_ends(&mut self, probe: u32) {
        let Probe { index, on, target, key, found, .. } = self.probes.remove(probe);
        let upstream = self.balancers[index as usize].upstream.on(on);
        if let (Some(found), Some(prequal)) = (found, upstream.balancer().prequal()) {
            prequal.probed(self.now_ns, key, target, found);
        }
    }

    /// Sends out a probe with a cost, as a health check.
    fn send_costly(&mut self, probe: u32, to: Target) {
        let Probe { index, on, target, key, number, .. } = self.probes.of[probe as usize];
        let slot = self.branches.add();
        self.checks_live += 1;
        let way = key.with(purpose::PROBE);
        let branch = &mut self.branches.slots[slot.index()];
        (branch.stage, branch.member, branch.floor_stage) = (to.pc, to.member, to.pc);
        (branch.way, branch.tries, branch.since) = (way, way, self.now_ns);
        (branch.order, branch.wanted, branch.check) = (number, false, index);
        (branch.index, branch.probe) = (target.0, probe);
        let tag = branch.tag;
        let prequal = self.balancers[index as usize].upstream.on(on).balancer().prequal();
        let age_ns = prequal.map_or(0, |prequal| prequal.age_ns());
        let at = self.now_ns.saturating_add(age_ns).min(u64::MAX - 1);
        let key = order_key(Class::Limit, number);
        self.pending.push(self.now_ns, Entry { at, key, who: what::CHECK_LIMIT | slot.0, tag });
        self.run_branch(slot, Flow::In);
    }

    /// A check has arrived as far in as it goes: a probe reads how busy its target is.
    pub(super) fn check_arrives(&mut self, slot: SlotId) {
        let probe = self.branches.slots[slot.index()].probe;
        if probe != super::build::NONE {
            self.probe_looks(probe);
        }
    }

    /// A probe with a cost has returned.
    pub(super) fn costly_probe_ends(&mut self, branch: &Branch) {
        if branch.outcome.is_some() {
            self.probes.of[branch.probe as usize].found = None;
        }
        self.probe_ends(branch.probe);
    }
}
