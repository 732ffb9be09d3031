//! A process's knowledge of targets, for its successor: health, ejections, settings by hand. By the display names of
//! balancers and targets.

use super::monitor::Monitor;
use super::overrides::{ByHand, Overrides, Setting};
use serde::{Deserialize, Serialize};
use weir_plan::ranges::wrong_weight;
use weir_policy::eligibility::Admin;
use weir_policy::health::HealthRecord;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Balancer, index among targets of that name, target; its health.
    pub health: Vec<(String, u32, String, HealthRecord)>,
    /// Balancer, target; its setting.
    pub by_hand: Vec<(String, String, ByHandSaid)>,
}

/// The settings of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ByHandSaid {
    state: Option<ManualState>,
    /// The state is revoked after this time, ns.
    #[serde(default)]
    state_left_ns: Option<u64>,
    weight: Option<f64>,
    /// The weight is revoked after this time, ns.
    #[serde(default)]
    weight_left_ns: Option<u64>,
    /// The end of both, from a version that knew only one.
    #[serde(default, skip_serializing)]
    left_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ManualState {
    Up,
    Drain,
    Eject,
}

impl Monitor {
    /// The state for a successor.
    pub fn snapshot(&self) -> Snapshot {
        let now_ns = self.core.now();
        let left = |until_ns: Option<u64>| until_ns.map(|at| at.saturating_sub(now_ns));
        let said = |by_hand: &ByHand| ByHandSaid {
            state: by_hand.state.and_then(|state| match state.value {
                Admin::Forced => Some(ManualState::Up),
                Admin::Drain => Some(ManualState::Drain),
                Admin::Down => Some(ManualState::Eject),
                Admin::Up => None,
            }),
            state_left_ns: left(by_hand.state.and_then(|state| state.until_ns)),
            weight: by_hand.weight.map(|weight| weight.value),
            weight_left_ns: left(by_hand.weight.and_then(|weight| weight.until_ns)),
            left_ns: None,
        };
        let by_hand =
            self.by_hand().iter().map(|((lb, target), b)| (lb.clone(), target.clone(), said(b))).collect();
        Snapshot { health: self.known(), by_hand }
    }

    /// The state of a predecessor.
    pub fn heed(&self, snapshot: &Snapshot) {
        let now_ns = self.core.now();
        let until_ns = |left_ns: Option<u64>| left_ns.map(|ns| now_ns.saturating_add(ns));
        let by_hand = |said: &ByHandSaid| ByHand {
            state: said.state.map(|state| Setting {
                value: match state {
                    ManualState::Up => Admin::Forced,
                    ManualState::Drain => Admin::Drain,
                    ManualState::Eject => Admin::Down,
                },
                until_ns: until_ns(said.state_left_ns.or(said.left_ns)),
            }),
            // A version without limits may have taken any weight.
            weight: said
                .weight
                .filter(|weight| wrong_weight(*weight).is_none())
                .map(|value| Setting { value, until_ns: until_ns(said.weight_left_ns.or(said.left_ns)) }),
        };
        let all: Overrides = snapshot
            .by_hand
            .iter()
            .map(|(lb, target, s)| ((lb.clone(), target.clone()), by_hand(s)))
            .collect();
        self.set_by_hand(all);
        // Last, since ramps are as the predecessor knew them, whatever settings by hand let in or keep out.
        self.believe(&snapshot.health);
    }
}
