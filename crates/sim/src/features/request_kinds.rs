//! The kinds of a scenario's requests, and what nodes read of them: routes, splits and keys.
//!
//! - In virtual time: a choice takes none; it happens in its turn where a request can be cut off. Rewriting turns a
//!   request into another kind until it returns.
//! - Given back when cut off: the kind before it was rewritten (`crate::state::request_details`).
//! - Draws: the kind and the key of a request by the request alone; a share without a key by node and way.

use crate::code::NOT;
use crate::code::request_kinds::ChoiceRule;
use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use weir_model::draws::purpose;
use weir_policy::config::Exclude;
use weir_policy::{Kind, key};
use weir_stats::Key;

impl Engine<'_> {
    /// A request arrives: draws its kind and its client.
    #[cold]
    pub(crate) fn draw_kind(&mut self, slot: SlotId, ordinal: u64, client: u64, way: Key) {
        let kinds = &self.core.code().kinds;
        let (shape, key) = kinds.mix.request(ordinal, way.with(purpose::MIX));
        // Without a key each request is a client of its own; in a closed loop the user is the client.
        let sender = kinds.reads_keys.then(|| key.unwrap_or_else(|| key::hash_number(client)));
        self.features.details.begin(slot, shape, sender);
    }

    /// The key of a request, as read by a node.
    pub(crate) fn key(&self, slot: SlotId, key: u32) -> Option<u64> {
        let detail = &self.features.details.slots[slot.index()];
        self.core.code().kinds.keys[key as usize].get(detail.shape as usize).copied().flatten().or(detail.key)
    }

    /// The status of the last answer, where there is one, and whether the request's method is idempotent.
    pub(crate) fn said(&self, slot: SlotId) -> (Option<u16>, bool) {
        let shape = self.features.details.slots[slot.index()].shape;
        let idempotent = self.core.code().kinds.idempotent.get(shape as usize).copied().unwrap_or(true);
        (self.answered_with(slot), idempotent)
    }

    /// The status of a request's answer, if there is an answer and its status is known.
    pub(crate) fn answered_with(&self, slot: SlotId) -> Option<u16> {
        let status = self.features.details.slots[slot.index()].status;
        let answered = matches!(self.core.state(slot).outcome(), None | Some(Kind::Status5xx));
        Some(status).filter(|status| answered && *status != 0)
    }

    /// The key of a request's choice at a node, on visit number `came`.
    pub(crate) fn choice_key(&self, slot: SlotId, own: Key, came: u32) -> Key {
        let key = own.with(self.core.states().tries(slot).bits());
        if came == 0 { key } else { key.with(purpose::VISIT).with(u64::from(came)) }
    }

    /// The node that a choice sends a request to; `None`: none.
    pub(crate) fn chosen(&self, slot: SlotId, choice: u32, member: MemberId, came: u32) -> Option<u32> {
        let site = &self.core.code().kinds.choices[choice as usize];
        let index = match &site.by {
            ChoiceRule::Kind(table) => {
                let shape = self.features.details.slots[slot.index()].shape;
                table.get(shape as usize).copied().unwrap_or(NOT)
            }
            ChoiceRule::Share { split, key: by } => {
                let own = self.features.choices[member.index_from(site.offset)];
                let hash = by.and_then(|k| self.key(slot, k)).map(key::spread);
                split.pick(hash.unwrap_or_else(|| self.choice_key(slot, own, came).bits()))
            }
        };
        Some(index).filter(|index| *index != NOT)
    }

    /// The targets of a balancer that a request must exclude because of its retries.
    pub(crate) fn left_out(&mut self, slot: SlotId, instance: u32) {
        let own = self.features.hops.tag(slot, instance);
        self.core.excluded_mut().clear();
        if self.core.state(slot).exclude() != Exclude::None {
            let list = self.features.branches.tried_of(slot);
            self.core.exclude_tried(list, own);
        }
        self.features.branches.open_elsewhere(slot, own, self.core.excluded_mut());
    }
}
