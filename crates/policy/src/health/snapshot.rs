//! The health that one thread keeps, as the loops of a process see it: a copy of what each balancer needs.
//!
//! The owner takes one whenever [`Health::version`] has changed and sends it; a loop passes it to its balancer
//! ([`crate::upstream::Upstream::follow`]). Cost: one small allocation per change, none per request.

use crate::TargetId;
use crate::health::{Health, View};
use serde::{Deserialize, Serialize};

/// The views of all targets at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    version: u64,
    /// (view, weight without its ramp) by target.
    targets: Box<[(View, f64)]>,
}

impl Snapshot {
    /// The present state.
    pub fn new(health: &Health) -> Snapshot {
        let target = |t| (health.view(t), health.whole_weight(t));
        Snapshot { version: health.version(), targets: TargetId::all(health.len()).map(target).collect() }
    }

    /// The version of the health at that moment.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Indices in use.
    pub fn len(&self) -> u32 {
        self.targets.len() as u32
    }

    /// Whether there never was a target.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// What a pick needs to know of a target; `ramped`: its weight with its ramp.
    pub fn view(&self, target: TargetId, ramped: bool) -> View {
        let (view, whole) = self.targets[target.index()];
        if ramped { view } else { View { weight: whole, ..view } }
    }
}
