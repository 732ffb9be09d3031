//! What an operator has set of targets by hand (`docs/spec/operating.md#targets-by-hand`): it overrides checks and the file,
//! over reloads too, until it is taken back. Kept by what people call balancers and targets.

use std::collections::BTreeMap;
use weir_policy::eligibility::Admin;
use weir_policy::health::Health;

/// By balancer and target.
pub(crate) type Overrides = BTreeMap<(String, String), ByHand>;

/// Of one target; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ByHand {
    pub state: Option<Admin>,
    pub weight: Option<f64>,
    /// It is taken back then; `None`: by hand.
    pub until_ns: Option<u64>,
}

impl ByHand {
    /// Makes a target's health say so; `weight`: what the file says.
    pub fn apply(&self, now_ns: u64, target: u32, weight: f64, health: &mut Health) {
        health.set_admin(now_ns, target, self.state.unwrap_or_default());
        let weight = self.weight.unwrap_or(weight);
        if health.whole_weight(target) != weight {
            health.set_weight(target, weight);
        }
    }
}
