//! A target's health for display: the reasons against it. Picks do not use this.

use super::Health;
use crate::TargetId;
use crate::health::eligibility::{Admin, Reason};

impl Health {
    /// The reasons against a target, for people; regardless of panic.
    pub fn against(&self, target: TargetId) -> impl Iterator<Item = Reason> {
        self.eligibility.against(target)
    }

    /// The operator's setting of a target.
    pub fn admin(&self, target: TargetId) -> Admin {
        self.eligibility.admin(target)
    }
}
