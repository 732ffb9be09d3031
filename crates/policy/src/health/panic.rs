//! The panic threshold: if too few targets are eligible, health is ignored.
//!
//! Idea: a few healthy targets under the load of all fail too; and checks that find most targets down are more likely
//! wrong than right. Formula: ignore health if eligible < threshold · targets, both of weight > 0 and not drained or
//! ejected by hand (0: never). The step is intended: with 4 of 10 the healthy would get 2.5 times their load. Source:
//! Envoy `healthy_panic_threshold`.

use crate::balance::Balance;
use serde::{Deserialize, Serialize};

/// What a request gets when no target is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEmpty {
    /// The error `no_target`.
    #[default]
    Fail,
    /// Any target, healthy or not.
    Any,
    /// Another node.
    Node,
}

/// The threshold by default: none for a hot spare and where another answer exists, otherwise half.
pub fn default_threshold(balance: &Balance, on_empty: OnEmpty) -> f64 {
    if matches!(balance, Balance::First) || on_empty != OnEmpty::Fail { 0.0 } else { 0.5 }
}

/// Whether health is ignored with these numbers of eligible targets and of all targets.
pub fn is_panic(eligible: u32, targets: u32, threshold: f64) -> bool {
    // Shares such as 0.7 are not exact: a value equal to the threshold is not below it.
    f64::from(eligible) + 1e-9 < threshold * f64::from(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_ten_is_panic_and_five_is_not() {
        assert!(is_panic(4, 10, 0.5) && !is_panic(5, 10, 0.5));
        assert!(!is_panic(0, 10, 0.0) && is_panic(0, 1, 0.01) && !is_panic(0, 0, 0.5));
        assert_eq!(default_threshold(&Balance::Random, OnEmpty::Fail), 0.5);
        assert_eq!(default_threshold(&Balance::Random, OnEmpty::Any), 0.0);
        assert_eq!(default_threshold(&Balance::First, OnEmpty::Fail), 0.0);
    }
}
