//! The roots of a replication's draws, by what draws.

use crate::code::{Code, Instance as Site};
use crate::compile::loops;
use weir_model::draws::purpose;
use weir_stats::Key;

/// The keys of a replication.
pub(super) struct Keys<'a> {
    code: &'a Code,
    root: Key,
    node: Key,
    choice: Key,
}

impl Keys<'_> {
    /// Of the replication's own key.
    pub(super) fn new(code: &Code, root: Key) -> Keys<'_> {
        Keys { code, root, node: root.with(purpose::NODE), choice: root.with(purpose::CHOICE) }
    }

    /// What the node with this number at a place draws for itself.
    pub(super) fn node_at(&self, place: u32, number: u32) -> Key {
        self.node.with(self.code.place_keys[place as usize]).with(u64::from(number))
    }

    /// What a choice of that node draws.
    pub(super) fn choice_at(&self, place: u32, number: u32) -> Key {
        self.choice.with(self.code.place_keys[place as usize]).with(u64::from(number))
    }

    /// What a balancer draws for itself on a loop, and for its picks.
    pub(super) fn balancer(&self, meets: u32, site: &Site) -> (Key, Key) {
        let own = loops::of_loop(self.node_at(site.place, site.number), meets);
        (own, self.choice_at(site.place, site.number))
    }

    /// What requests draw at a place for a purpose.
    pub(super) fn draw(&self, purpose: u64, place: u32) -> Key {
        self.root.with(purpose::DRAW).with(purpose).with(self.code.place_keys[place as usize])
    }
}
