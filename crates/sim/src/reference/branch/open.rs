//! Targets at which attempts of a hedge are open.

use super::Branches;
use crate::code::SlotId;
use weir_policy::TargetId;
use weir_policy::retry::BalancerId;

impl Branches {
    /// A hedged attempt picked a target.
    pub fn note_open(&mut self, slot: SlotId, balancer: BalancerId, target: TargetId) {
        let mut at = slot;
        while let Some(branch) = self.slots.get(at.index()).filter(|b| b.hedge_of.is_some()) {
            let hedge = branch.hedge_of;
            if let Some(index) = self.attempt_of(at, hedge) {
                self.groups[hedge.index()].picks.push((balancer, target, index));
            }
            at = hedge;
        }
    }

    /// The targets of a balancer at which other attempts of the same hedges are open.
    pub fn open_elsewhere(&self, slot: SlotId, balancer: BalancerId, out: &mut Vec<TargetId>) {
        let mut at = slot;
        while let Some(branch) = self.slots.get(at.index()).filter(|b| b.hedge_of.is_some()) {
            let hedge = branch.hedge_of;
            if let Some(index) = self.attempt_of(at, hedge) {
                let others = self.groups[hedge.index()].picks.iter();
                out.extend(others.filter(|p| p.0 == balancer && p.2 != index).map(|p| p.1));
            }
            at = hedge;
        }
    }

    /// The attempt of a hedge to which a branch belongs: the branch that the hedge itself sent in.
    fn attempt_of(&self, slot: SlotId, hedge: SlotId) -> Option<u32> {
        let mut at = slot;
        loop {
            let branch = self.slots.get(at.index())?;
            if branch.parent == hedge {
                return Some(branch.index);
            }
            at = branch.parent;
        }
    }
}
