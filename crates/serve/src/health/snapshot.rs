//! A process's knowledge of targets, for its successor: health, ejections, settings by hand. By the display names of
//! balancers and targets.

use super::monitor::Monitor;
use super::overrides::{ByHand, Overrides};
use serde::{Deserialize, Serialize};
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

/// The setting of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ByHandSaid {
    state: Option<ManualState>,
    weight: Option<f64>,
    /// It is revoked after this time, ns.
    #[serde(default)]
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
        let said = |by_hand: &ByHand| ByHandSaid {
            state: by_hand.state.and_then(|state| match state {
                Admin::Forced => Some(ManualState::Up),
                Admin::Drain => Some(ManualState::Drain),
                Admin::Down => Some(ManualState::Eject),
                Admin::Up => None,
            }),
            weight: by_hand.weight,
            left_ns: by_hand.until_ns.map(|at| at.saturating_sub(now_ns)),
        };
        let by_hand =
            self.by_hand().iter().map(|((lb, target), b)| (lb.clone(), target.clone(), said(b))).collect();
        Snapshot { health: self.known(), by_hand }
    }

    /// The state of a predecessor.
    pub fn heed(&self, snapshot: &Snapshot) {
        self.believe(&snapshot.health);
        let now_ns = self.core.now();
        let by_hand = |said: &ByHandSaid| ByHand {
            state: said.state.map(|state| match state {
                ManualState::Up => Admin::Forced,
                ManualState::Drain => Admin::Drain,
                ManualState::Eject => Admin::Down,
            }),
            weight: said.weight,
            until_ns: said.left_ns.map(|ns| now_ns.saturating_add(ns)),
        };
        let all: Overrides = snapshot
            .by_hand
            .iter()
            .map(|(lb, target, s)| ((lb.clone(), target.clone()), by_hand(s)))
            .collect();
        self.set_by_hand(all);
    }
}
