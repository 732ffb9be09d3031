//! Nodes that decide by the kind of a request: routes, splits, rate limits, and the keys that they and balancers
//! read.

use super::branch::Frame;
use super::build::NONE;
use super::run::{Flow, Reference};
use crate::code::SlotId;
use crate::code::request_kinds::ChoiceRule;
use weir_policy::outcome::TOO_MANY;
use weir_policy::{Kind, key};

impl Reference<'_> {
    /// The key of a request, as read by a node.
    pub(super) fn key(&self, slot: SlotId, key: u32) -> Option<u64> {
        let branch = &self.branches.slots[slot.index()];
        self.tables.keys[key as usize].get(branch.shape as usize).copied().flatten().or(branch.key)
    }

    /// Whether the request's method is idempotent.
    pub(super) fn is_idempotent(&self, slot: SlotId) -> bool {
        let shape = self.branches.slots[slot.index()].shape;
        self.tables.shapes.get(shape as usize).is_none_or(|s| s.idempotent)
    }

    /// Whether no retry outside has tried the request again.
    pub(super) fn is_first_attempt(&self, slot: SlotId) -> bool {
        let branch = &self.branches.slots[slot.index()];
        branch.rank >> crate::code::order::BRANCH_BITS == branch.attempts_before
    }

    /// Sends a branch to the node that its request, or a draw, chooses.
    pub(super) fn choose(&mut self, slot: SlotId, choice: u32) -> Flow {
        let tables = self.tables;
        let site = &tables.choices[choice as usize];
        let branch = &self.branches.slots[slot.index()];
        let (stage, member, shape) = (branch.stage, branch.member, branch.shape);
        let node = member.number_from(site.offset);
        let came = self.branches.come_again(slot, tables.visits_of_choices.get(&node).copied());
        let index = match &site.by {
            ChoiceRule::Kind(table) => table.get(shape as usize).copied().unwrap_or(NONE),
            ChoiceRule::Share { split, key: by } => {
                let own = self.choices[node as usize];
                let hash = by.and_then(|k| self.key(slot, k)).map(key::spread);
                split.pick(hash.unwrap_or_else(|| self.branches.choice_key(slot, own, came).bits()))
            }
        };
        if index == NONE {
            return self.refuse(slot, Kind::NoRoute);
        }
        let list = tables.choice_nodes[member.index_from(site.offset)].0 as usize;
        let target = self.code.lists[list].get(self.code, index);
        self.branches.push_frame(slot, Frame { stage, member, index, ..Frame::default() });
        let branch = &mut self.branches.slots[slot.index()];
        (branch.stage, branch.member) = (target.pc, target.member);
        Flow::In
    }

    /// Takes a token for a branch.
    pub(super) fn take_token(&mut self, slot: SlotId, limit: u32) -> Flow {
        let site = &self.tables.limits[limit as usize];
        let key = site.key.and_then(|k| self.key(slot, k));
        let member = self.branches.slots[slot.index()].member;
        match self.limits[member.index_from(site.offset)].take(self.now_ns, key) {
            Ok(()) => Flow::On,
            Err(_) => {
                let flow = self.refuse(slot, Kind::Overloaded);
                self.branches.slots[slot.index()].status = TOO_MANY;
                flow
            }
        }
    }
}
