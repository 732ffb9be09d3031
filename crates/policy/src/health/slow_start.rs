//! Slow start: a target that has just become eligible gets a growing share of its weight.
//!
//! - Idea: a cold cache or an empty queue must not meet the whole load at once.
//! - Signal: time since it became eligible. State per target: when that was. Cost: nothing per pick; a change of
//!   weights at each hundredth.
//! - Formula: weight · max(min_weight, (elapsed / window)^(1/aggression)), in steps of a hundredth; 1 after the window.
//!   Policies that compare requests in flight divide by that weight, so that they are scaled too.
//! - Choices: it begins at every change from not eligible to eligible after the start, and for targets added later,
//!   never at start-up. Weights are relative: if all targets are new it changes nothing. It does not act on hashes,
//!   whose keys it would move.
//! - Pathologies: two new targets among few share the ramp; with round robin over a long window a step comes late.
//! - Source: Envoy `slow_start_config`, HAProxy `slowstart`. In the language:
//!   `slow_start(window, aggression=1.0, min_weight=0.1)`.

use crate::TargetId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_stats::math;

/// `slow_start(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowStart {
    /// From becoming eligible to the whole weight, ns.
    pub window_ns: u64,
    /// The weight grows as the elapsed share of the window to the power 1/aggression.
    pub aggression: f64,
    /// The least share of the weight.
    pub min_weight: f64,
}

/// Steps of the ramp.
const STEPS: f64 = 100.0;

/// The share of its weight that a target has this long after it became eligible.
pub fn factor(config: &SlowStart, elapsed_ns: u64) -> f64 {
    if elapsed_ns >= config.window_ns {
        return 1.0;
    }
    let share = elapsed_ns as f64 / config.window_ns as f64;
    let grown = if config.aggression == 1.0 { share } else { math::pow(share, 1.0 / config.aggression) };
    // Rounding must not lose a step that has just been reached.
    let step = (grown * STEPS + 1e-9).floor() / STEPS;
    step.max(config.min_weight).min(1.0)
}

/// The time, after it became eligible, at which a target reaches the step after this share.
fn next_step_ns(config: &SlowStart, share: f64) -> u64 {
    let next = ((share * STEPS + 1e-9).floor() + 1.0) / STEPS;
    let at = if config.aggression == 1.0 { next } else { math::pow(next, config.aggression) };
    ((at * config.window_ns as f64).ceil() as u64).min(config.window_ns)
}

#[derive(Clone, Copy, Debug)]
struct Ramp {
    began: u64,
    share: f64,
    next: u64,
}

/// The targets of one balancer that are on their ramp.
#[derive(Clone, Debug)]
pub struct Ramps {
    config: SlowStart,
    /// By target, so that thousands that are added at once do not search each other.
    ramps: BTreeMap<TargetId, Ramp>,
}

impl Ramps {
    /// No target is on its ramp.
    pub fn new(config: SlowStart) -> Ramps {
        Ramps { config, ramps: BTreeMap::new() }
    }

    /// Replaces the arguments; the state of the targets stays.
    pub fn configure(&mut self, config: SlowStart) {
        self.config = config;
    }

    /// Starts the ramp of a target that has become eligible.
    pub fn begin(&mut self, now_ns: u64, target: TargetId) {
        self.end(target);
        let share = factor(&self.config, 0);
        if share < 1.0 && self.config.window_ns > 0 {
            let next = now_ns.saturating_add(next_step_ns(&self.config, share));
            self.ramps.insert(target, Ramp { began: now_ns, share, next });
        }
    }

    /// Ends the ramp of a target that is not eligible any more, or removed.
    pub fn end(&mut self, target: TargetId) {
        self.ramps.remove(&target);
    }

    /// The share of its weight that a target has.
    pub fn share(&self, target: TargetId) -> f64 {
        self.ramps.get(&target).map_or(1.0, |ramp| ramp.share)
    }

    /// When the next share changes.
    pub fn next_deadline(&self) -> Option<u64> {
        self.ramps.values().map(|ramp| ramp.next).min()
    }

    /// Changes the shares that are due; calls back for each.
    pub fn tick(&mut self, now_ns: u64, mut changed: impl FnMut(TargetId, f64)) {
        let config = &self.config;
        self.ramps.retain(|target, r| {
            if r.next <= now_ns {
                r.share = factor(config, now_ns.saturating_sub(r.began));
                r.next = r.began.saturating_add(next_step_ns(config, r.share));
                changed(*target, r.share);
            }
            r.share < 1.0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn config(aggression: f64) -> SlowStart {
        SlowStart { window_ns: 60 * S, aggression, min_weight: 0.1 }
    }

    /// Envoy's curve, at the points of the notes.
    #[test]
    fn points_of_the_curve() {
        for (aggression, seconds, want) in [
            (1.0, 0, 0.1),
            (1.0, 6, 0.1),
            (1.0, 15, 0.25),
            (1.0, 30, 0.5),
            (1.0, 60, 1.0),
            (1.0, 600, 1.0),
            (2.0, 15, 0.5),
            (2.0, 30, 0.70),
            (0.5, 30, 0.25),
        ] {
            assert_eq!(factor(&config(aggression), seconds * S), want, "{aggression} at {seconds} s");
        }
        assert_eq!(factor(&config(2.0), 0), 0.1);
        assert_eq!(factor(&SlowStart { min_weight: 1.0, ..config(1.0) }, 0), 1.0);
    }

    /// From deadline to deadline the share rises step by step to 1, at the times of the curve.
    #[test]
    fn deadlines_follow_the_curve() {
        for aggression in [0.5, 1.0, 2.0, 3.7] {
            let mut ramps = Ramps::new(config(aggression));
            ramps.begin(5 * S, TargetId(3));
            let (mut last, mut steps) = (ramps.share(TargetId(3)), 0);
            while let Some(at) = ramps.next_deadline() {
                assert!(
                    ramps.share(TargetId(3)) == factor(&config(aggression), at - 10_000 - 5 * S)
                        || steps == 0
                );
                ramps.tick(at, |t, share| {
                    assert_eq!((t, share), (TargetId(3), factor(&config(aggression), at - 5 * S)));
                    assert!(share > last || share == 0.1, "{share} after {last}");
                    last = share;
                });
                steps += 1;
                assert!(steps <= 101 && at <= 65 * S);
            }
            assert_eq!((last, ramps.share(TargetId(3))), (1.0, 1.0));
        }
    }

    #[test]
    fn it_begins_anew_each_time() {
        let mut ramps = Ramps::new(config(1.0));
        assert_eq!((ramps.share(TargetId(0)), ramps.next_deadline()), (1.0, None), "never at start-up");
        ramps.begin(0, TargetId(0));
        ramps.tick(30 * S, |_, _| {});
        assert_eq!(ramps.share(TargetId(0)), 0.5);
        ramps.end(TargetId(0));
        assert_eq!(ramps.next_deadline(), None);
        ramps.begin(40 * S, TargetId(0));
        assert_eq!(ramps.share(TargetId(0)), 0.1);
    }
}
