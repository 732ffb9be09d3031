//! A target's health for display: the reasons against it, and the progress of its ramp. Picks do not use this.

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

    /// The share of its weight that a target has while it ramps up; otherwise 1.
    pub fn ramp(&self, target: TargetId) -> f64 {
        self.ramps.as_ref().map_or(1.0, |r| r.share(target))
    }
}
