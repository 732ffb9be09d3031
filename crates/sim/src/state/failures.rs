//! Nodes that fail by a change, and are repaired.

use crate::code::changes::{ChangeTables, FailingNode};
use crate::state::acts::{ActKind, Subject};
use crate::state::changes::Changes;
use crate::state::processes::Effect;
use weir_plan::fleets::Member;
use weir_plan::{ChangeKind, Leavers};
use weir_policy::fleet::draw;
use weir_stats::Key;

impl Changes {
    /// Nodes fail: those that the change draws, or all.
    pub(super) fn let_fail(&mut self, tables: &ChangeTables, change: u32, key: Key, now_ns: u64) {
        let ChangeKind::Down { k, which, .. } = tables.events[change as usize].what else { return };
        let nodes = tables.failing.get(&change).map_or(&[][..], |of| &of.nodes);
        let is_there = |member: Member| self.fleets[member.fleet as usize].up.contains(&member.number);
        let there: Vec<FailingNode> =
            nodes.iter().filter(|of| of.member.is_none_or(is_there)).copied().collect();
        let chosen = choose(there, k, which, key);
        for of in &chosen {
            self.concerned.extend(of.member);
            self.effects.push(Effect::Fail(of.line));
            self.report(subject(of), ActKind::Down, Some(change), now_ns);
        }
        self.down.insert(change, chosen);
    }

    /// They are repaired.
    pub(super) fn repair(&mut self, change: u32, now_ns: u64) {
        for of in self.down.remove(&change).unwrap_or_default() {
            self.effects.push(Effect::Repair(of.line));
            self.report(subject(&of), ActKind::Up, Some(change), now_ns);
        }
    }
}

/// Some of those that a change names, or all: `k` of them, in their order.
pub(super) fn choose<T: Copy>(there: Vec<T>, k: Option<u32>, which: Leavers, key: Key) -> Vec<T> {
    let k = k.map_or(there.len(), |k| k as usize);
    match which {
        Leavers::Oldest => there.into_iter().take(k).collect(),
        Leavers::Newest => there.into_iter().rev().take(k).collect(),
        Leavers::Random => {
            let numbers = (0..there.len() as u32).collect();
            draw(numbers, k, key).into_iter().map(|i| there[i as usize]).collect()
        }
    }
}

/// What fails.
fn subject(of: &FailingNode) -> Subject {
    of.member.map_or(Subject::Node(of.node), Subject::Member)
}
