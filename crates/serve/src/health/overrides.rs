//! The operator's settings of targets (`docs/spec/operating.md#targets-by-hand`): they override checks and the file,
//! over reloads too, until they are revoked. Kept by the display names of balancers and targets.

use std::collections::BTreeMap;
use weir_policy::TargetId;
use weir_policy::eligibility::Admin;
use weir_policy::health::Health;

/// By balancer and target.
pub(crate) type Overrides = BTreeMap<(String, String), ByHand>;

/// The setting of one target; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ByHand {
    pub state: Option<Admin>,
    pub weight: Option<f64>,
    /// When it is revoked; `None`: by hand only.
    pub until_ns: Option<u64>,
}

impl ByHand {
    /// Applies it to a target's health; `weight`: that of the file.
    pub fn apply(&self, now_ns: u64, target: TargetId, weight: f64, health: &mut Health) {
        health.set_admin(now_ns, target, self.state.unwrap_or_default());
        let weight = self.weight.unwrap_or(weight);
        if health.whole_weight(target) != weight {
            health.set_weight(target, weight);
        }
    }
}
