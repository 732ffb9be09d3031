//! What whoever watches is told of a target: what speaks against it, and how far its ramp is. No pick asks this.

use super::Health;
use crate::health::eligibility::{Admin, Reason};

impl Health {
    /// What speaks against a target, for people; panic or not.
    pub fn against(&self, target: u32) -> impl Iterator<Item = Reason> {
        self.eligibility.against(target)
    }

    /// What the operator says of a target.
    pub fn admin(&self, target: u32) -> Admin {
        self.eligibility.admin(target)
    }

    /// The share of its weight that a target has while it ramps up; 1 otherwise.
    pub fn ramp(&self, target: u32) -> f64 {
        self.ramps.as_ref().map_or(1.0, |r| r.share(target))
    }
}
