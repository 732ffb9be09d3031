//! The operator's settings of targets (`docs/spec/operating.md#targets-by-hand`): they override checks and the file,
//! over reloads too, until they are revoked. Kept by the display names of balancers and targets.

use std::collections::BTreeMap;
use weir_policy::TargetId;
use weir_policy::eligibility::Admin;
use weir_policy::health::Health;

/// By balancer and target.
pub(crate) type Overrides = BTreeMap<(String, String), ByHand>;

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setting<T> {
    pub value: T,
    /// When it is revoked; `None`: by hand only.
    pub until_ns: Option<u64>,
}

impl<T> Setting<T> {
    fn has_ended(&self, now_ns: u64) -> bool {
        self.until_ns.is_some_and(|at| at <= now_ns)
    }
}

/// The settings of one target, each with its own end; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ByHand {
    pub state: Option<Setting<Admin>>,
    pub weight: Option<Setting<f64>>,
}

impl ByHand {
    /// Applies it to a target's health; `weight`: that of the file.
    pub fn apply(&self, now_ns: u64, target: TargetId, weight: f64, health: &mut Health) {
        health.set_admin(now_ns, target, self.state.map(|state| state.value).unwrap_or_default());
        let weight = self.weight.map_or(weight, |by_hand| by_hand.value);
        if health.whole_weight(target) != weight {
            health.set_weight(target, weight);
        }
    }

    /// Keeps what has not ended.
    pub fn keep_from(self, now_ns: u64) -> ByHand {
        ByHand {
            state: self.state.filter(|state| !state.has_ended(now_ns)),
            weight: self.weight.filter(|weight| !weight.has_ended(now_ns)),
        }
    }

    /// When the next of its settings is revoked.
    pub fn next_end_ns(&self) -> Option<u64> {
        let state = self.state.and_then(|state| state.until_ns);
        state.into_iter().chain(self.weight.and_then(|weight| weight.until_ns)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each setting ends by itself, whichever was made last.
    #[test]
    fn state_and_weight_end_apart() {
        let drained = Some(Setting { value: Admin::Drain, until_ns: None });
        let heavy = Some(Setting { value: 5.0, until_ns: Some(70) });
        let both = ByHand { state: drained, weight: heavy };
        assert_eq!((both.next_end_ns(), both.keep_from(69)), (Some(70), both));
        assert_eq!(both.keep_from(70), ByHand { state: drained, weight: None });
        assert_eq!(both.keep_from(70).next_end_ns(), None);
    }
}
