//! The members of fleets, for the process that takes the place of this one: it does not begin empty, and doubts a short list.

use super::FleetSet;
use super::fleet::{FleetMembers, MemberKey};
use serde::{Deserialize, Serialize};
use weir_plan::SourceKind;
use weir_policy::fleet::MemberRecord;

/// A fleet's members in an offer to a successor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedFleet {
    pub(super) name: String,
    pub(super) source: SourceKind,
    /// In the order of their places.
    pub(super) members: Vec<HandedMember>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HandedMember {
    pub key: MemberKey,
    pub record: MemberRecord,
}

impl FleetSet {
    /// For a successor: the fleets that have had a list.
    pub fn hand(&self, now_ns: u64) -> Vec<HandedFleet> {
        self.fleets.iter().filter(|fleet| fleet.has_list).map(|fleet| fleet.hand(now_ns)).collect()
    }

    /// Those of a predecessor.
    pub fn of_predecessor(handed: &[HandedFleet], now_ns: u64) -> FleetSet {
        let fleets = handed.iter().map(|fleet| FleetMembers::restored(fleet, now_ns)).collect();
        FleetSet { fleets, ..FleetSet::default() }
    }
}
