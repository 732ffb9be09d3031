//! The tables of branches: a row beside each, and the groups that requests wait for.

use crate::code::NOT;
use crate::code::SlotId;
use weir_policy::TargetId;
use weir_policy::hedge::Hedging;
use weir_policy::retry::BalancerId;

/// The row beside a state that is a branch, or waits for some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its parent; [`SlotId::NONE`]: it is the request, or nothing waits for it.
    pub parent: SlotId,
    pub index: u32,
    /// The hedge of which it is an attempt; [`NOT`]: it is a branch of a fan-out.
    pub hedge: u32,
    /// The request at the innermost hedge of which it is inside an attempt.
    pub hedge_of: SlotId,
    /// The branch whose list of tried targets it uses; [`SlotId::NONE`]: its own.
    pub tries_of: SlotId,
    pub begun: u64,
    /// The branches that it waits for.
    pub group: u32,
}

pub(crate) const ALONE: Row = Row {
    parent: SlotId::NONE,
    index: 0,
    hedge: NOT,
    hedge_of: SlotId::NONE,
    tries_of: SlotId::NONE,
    begun: 0,
    group: NOT,
};

/// The branches that a request waits for.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Number of the fan-out or hedge.
    pub site: u32,
    /// The step where they come back, or where they begin.
    pub pc: u32,
    /// By index, as far as they were sent in; [`SlotId::NONE`] once they have ended.
    pub branches: Vec<SlotId>,
    /// How many there will be, or at most.
    pub len: u32,
    pub open: u32,
    pub ok: u32,
    pub hedging: Option<Hedging>,
    /// Balancer, target and index of the branch, of each target that an attempt of a hedge picked.
    pub picks: Vec<(BalancerId, TargetId, u32)>,
    /// The time up to which time at the node itself is booked.
    pub since: u64,
    /// How many frames deep in the enclosing branch they begin: part of the key of their draws.
    pub depth: u64,
}

impl Group {
    pub fn first_open(&self) -> Option<SlotId> {
        self.branches.iter().copied().find(|b| b.is_some())
    }
}

/// All branches in flight.
#[derive(Debug)]
pub(crate) struct Branches {
    pub rows: Vec<Row>,
    pub groups: Vec<Group>,
    pub spare: Vec<u32>,
    /// The request that goes on as soon as the current event is done; [`SlotId::NONE`]: none.
    pub then: SlotId,
}

impl Default for Branches {
    fn default() -> Branches {
        Branches { rows: Vec::new(), groups: Vec::new(), spare: Vec::new(), then: SlotId::NONE }
    }
}

impl Branches {
    pub fn row(&self, slot: SlotId) -> Row {
        self.rows.get(slot.index()).copied().unwrap_or(ALONE)
    }

    pub fn row_mut(&mut self, slot: SlotId) -> &mut Row {
        if slot.index() >= self.rows.len() {
            self.rows.resize(slot.index() + 1, ALONE);
        }
        &mut self.rows[slot.index()]
    }

    /// The parent of a branch; [`SlotId::NONE`]: nothing waits for it.
    pub fn parent(&self, slot: SlotId) -> SlotId {
        self.row(slot).parent
    }

    pub fn index(&self, slot: SlotId) -> u32 {
        self.row(slot).index
    }

    pub fn begun(&self, slot: SlotId) -> u64 {
        self.row(slot).begun
    }

    /// The slot is reused.
    pub fn clear(&mut self, slot: SlotId) {
        if let Some(row) = self.rows.get_mut(slot.index()) {
            *row = ALONE;
        }
    }

    /// The outermost request that waits for a branch.
    pub fn top(&self, slot: SlotId) -> SlotId {
        let mut at = slot;
        while self.row(at).parent.is_some() {
            at = self.row(at).parent;
        }
        at
    }

    /// The branch whose list of tried targets a branch uses.
    pub fn tried_of(&self, slot: SlotId) -> SlotId {
        Some(self.row(slot).tries_of).filter(|of| of.is_some()).unwrap_or(slot)
    }

    /// The group that a request waits for.
    pub fn group(&mut self, slot: SlotId) -> Option<&mut Group> {
        let group = self.row(slot).group;
        self.groups.get_mut(group as usize)
    }

    /// A request begins to wait for branches.
    pub fn open_group(&mut self, slot: SlotId) -> &mut Group {
        let group = self.spare.pop().unwrap_or(self.groups.len() as u32);
        if group as usize == self.groups.len() {
            self.groups.push(Group::default());
        }
        self.row_mut(slot).group = group;
        let group = &mut self.groups[group as usize];
        group.branches.clear();
        group.picks.clear();
        (group.open, group.ok, group.hedging) = (0, 0, None);
        group
    }

    /// Removes the group of a request that waits no longer; returns it and its branches.
    pub fn close_group(&mut self, slot: SlotId) -> (u32, Vec<SlotId>) {
        let group = std::mem::replace(&mut self.row_mut(slot).group, NOT);
        let Some(of) = self.groups.get_mut(group as usize) else { return (group, Vec::new()) };
        (group, std::mem::take(&mut of.branches))
    }

    /// Makes a group available for reuse.
    pub fn spare_group(&mut self, group: u32, list: Vec<SlotId>) {
        if let Some(of) = self.groups.get_mut(group as usize) {
            of.branches = list;
            self.spare.push(group);
        }
    }

    /// A branch has ended by itself.
    pub fn strike(&mut self, slot: SlotId) {
        let Row { parent, index, .. } = self.row(slot);
        if let Some(group) = self.group(parent) {
            group.branches[index as usize] = SlotId::NONE;
            group.picks.retain(|pick| pick.2 != index);
        }
    }

    /// An attempt of a hedge picked a target.
    pub fn note_open(&mut self, slot: SlotId, balancer: BalancerId, target: TargetId) {
        let mut at = slot;
        while self.row(at).hedge_of.is_some() {
            let hedge = self.row(at).hedge_of;
            let index = self.attempt_of(at, hedge);
            if let (Some(index), Some(group)) = (index, self.group(hedge)) {
                group.picks.push((balancer, target, index));
            }
            at = hedge;
        }
    }

    /// The targets of a balancer that other attempts of the same hedges have open.
    pub fn open_elsewhere(&mut self, slot: SlotId, balancer: BalancerId, out: &mut Vec<TargetId>) {
        let mut at = slot;
        while self.row(at).hedge_of.is_some() {
            let hedge = self.row(at).hedge_of;
            let index = self.attempt_of(at, hedge);
            if let (Some(index), Some(group)) = (index, self.group(hedge)) {
                let others = group.picks.iter().filter(|p| p.0 == balancer && p.2 != index);
                out.extend(others.map(|p| p.1));
            }
            at = hedge;
        }
    }

    /// The attempt of a hedge to which a branch belongs.
    pub fn attempt_of(&self, slot: SlotId, hedge: SlotId) -> Option<u32> {
        let mut at = slot;
        loop {
            let row = self.row(at);
            match row.parent {
                SlotId::NONE => return None,
                parent if parent == hedge => return Some(row.index),
                parent => at = parent,
            }
        }
    }
}
