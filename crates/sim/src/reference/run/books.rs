//! Books the time of branches, and verifies at the end of a run that everything was given back.

use super::Reference;
#[cfg(test)]
use super::Sabotage;
use crate::account::invariants::Remainder;
use crate::account::invariants::violations;
use crate::code::SlotId;
use crate::reference::branch::{Branch, Phase};
use crate::reference::recorder::{stay_of, what};
use weir_policy::history::StageKind;
use weir_policy::{Outcome, Release};

impl Reference<'_> {
    /// Books the time since the last booking to the stage of the branch.
    pub(in crate::reference) fn charge(&mut self, slot: SlotId) {
        let branch = &mut self.branches.slots[slot.index()];
        let since = std::mem::replace(&mut branch.since, self.now_ns);
        // The time of children is booked for them; that of a check, which may end after the run, nowhere.
        if branch.phase == Phase::Children || self.now_ns <= since {
            return;
        }
        let (branch, ns) = (*branch, self.now_ns - since);
        if let Some(recorder) = &mut self.branches.recorder {
            let what = what(self.tables.nodes[branch.stage as usize].act, branch.phase);
            let counts = if branch.wanted { None } else { Some(false) };
            recorder.stay(slot, stay_of(&branch, what, since, self.now_ns), counts);
        }
        if !branch.selected {
            return;
        }
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::ForgetTime) && self.clients.issued >= 100 {
            return;
        }
        let part = self.code.row(self.tables.nodes[branch.stage as usize].part, branch.member) as u32;
        if !branch.wanted {
            let spent = &mut self.ledger.spent[part as usize];
            *spent = spent.wrapping_add(ns);
            self.charge_behind(slot, ns);
        } else if self.tables.notes {
            self.branches.notes[slot.index()].push((part, ns));
        } else {
            let sum = &mut self.ledger.parts[part as usize];
            *sum = sum.wrapping_add(ns);
        }
    }

    /// Books the time of a branch that was left behind outside of the slots around the place where that happened:
    /// those were given back.
    pub(in crate::reference) fn charge_behind(&mut self, slot: SlotId, ns: u64) {
        let Branch { stage, member, .. } = self.branches.slots[slot.index()];
        let mut top = slot;
        while self.branches.slots[top.index()].parent.is_some() {
            top = self.branches.slots[top.index()].parent;
        }
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::ForgetBehind) {
            return;
        }
        let floor = self.branches.slots[top.index()].floor_stage;
        let first = self.tables.nodes[stage as usize].first;
        if !(first..=stage).contains(&floor) {
            return;
        }
        for around in &self.code.stages[first as usize..floor as usize] {
            if let Some(gauge) = around.gauge {
                let behind = &mut self.ledger.behind[self.code.row(gauge, member)];
                *behind = behind.wrapping_add(ns);
            }
        }
    }

    /// A branch is answered at its stage with this outcome.
    pub(in crate::reference) fn note_answer(&mut self, slot: SlotId, outcome: Outcome) {
        let branch = self.branches.slots[slot.index()];
        if let Some(recorder) = &mut self.branches.recorder {
            let stay = stay_of(&branch, StageKind::Answer, self.now_ns, self.now_ns).said(outcome);
            recorder.stay(slot, stay, if branch.wanted { None } else { Some(false) });
        }
    }

    /// A branch has returned to a balancer from its target, where it may count for longer.
    pub(in crate::reference) fn note_back(&mut self, slot: SlotId, outcome: Outcome, release: Release) {
        let branch = self.branches.slots[slot.index()];
        let Some(recorder) = &mut self.branches.recorder else { return };
        if let Release::After(ns) = release {
            let until = self.now_ns.saturating_add(ns);
            recorder.stay(slot, stay_of(&branch, StageKind::Hold, self.now_ns, until), Some(false));
        }
        recorder.picked_is_back(slot, outcome);
    }

    /// The time that a branch has noted is part of no latency.
    pub(in crate::reference) fn spend_notes(&mut self, slot: SlotId) {
        if let Some(recorder) = &mut self.branches.recorder {
            recorder.stays_count(slot, false);
        }
        for (part, ns) in self.branches.notes[slot.index()].drain(..) {
            let spent = &mut self.ledger.spent[part as usize];
            *spent = spent.wrapping_add(ns);
        }
    }

    /// The laws that the finished replication breaks.
    pub fn violations(&mut self, requests: Option<u64>, selected: Option<u64>) -> Vec<String> {
        self.ledger.attendance = std::mem::take(&mut self.changes.attendance);
        self.ledger.delays = std::mem::take(&mut self.changes.delays);
        let acts = &mut self.changes.acts;
        self.ledger.aside.iter_mut().for_each(|aside| aside.take_acts(acts));
        for index in 0..self.holds.len() as u32 {
            if !self.spare_holds.contains(&index) {
                self.end_hold(index);
            }
        }
        let flips = self.lines.iter().zip(&self.flips_since).map(|(line, since)| line.flips() - since);
        self.ledger.outages = flips.map(|flips| flips.div_ceil(2)).sum();
        self.ledger.ejections = self.balancers.iter().map(|lb| lb.upstream.health().ejections()).sum();
        let (at_balancers, in_queues) = (self.left_at_balancers(), self.left_in_queues());
        let on_connections = self.connections.as_deref().map_or(0, |of| of.pools.requests());
        let left = Remainder { at_balancers, in_queues, on_connections, on_the_way: self.branches.live };
        violations(self.code, &self.ledger, &left, requests, selected, self.tables.loses)
    }

    /// Requests that balancers still count.
    pub(in crate::reference) fn left_at_balancers(&self) -> u64 {
        self.balancers.iter().map(|lb| lb.upstream.total_in_flight()).sum()
    }

    /// Slots and shares still taken, and requests still waiting for one.
    pub(in crate::reference) fn left_in_queues(&self) -> u64 {
        let queues = self.queues.iter().map(|q| u64::from(q.inside()) + u64::from(q.waiting()));
        let servers = self.servers.iter().map(|s| u64::from(s.state.inside()) + u64::from(s.state.waiting()));
        queues.sum::<u64>() + servers.sum::<u64>()
    }
}
