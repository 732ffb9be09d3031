//! Slow start: a target that has just become eligible gets a growing share of its weight.
//!
//! - Idea: a cold cache or an empty queue must not meet the whole load at once.
//! - Signal: time since it became eligible. State per target: when that was. Cost: nothing per pick; a change of
//!   weights at each step.
//! - Formula: weight · max(min_weight, (elapsed / window)^(1/aggression)), in steps of a hundredth; 1 after the window.
//!   Policies that compare requests in flight divide by that weight, so that they are scaled too. With `limits` the limit
//!   of requests in flight has the same share. `health/curve.rs` has the formulas of other proxies.
//! - Choices: it begins at every change from not eligible to eligible after the start, and for targets added later,
//!   not at start-up, but where a target must pass a check first. Each target has a ramp of its own, which no other one moves. Weights are relative: if all targets
//!   are new it changes nothing, and then limits are whole too ([`Health`](super::Health) knows the others). It does not
//!   act on hashes, whose keys it would move.
//! - Pathologies: two new targets among few share the ramp; with round robin over a long window a step comes late.
//! - Source: Envoy `slow_start_config`, HAProxy `slowstart`, nginx `slow_start`. In the language:
//!   `slow_start(window, aggression=1.0, min_weight=0.1, limits=False, like=None)`.

use super::curve;
use crate::TargetId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The proxy whose slow start is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartLike {
    /// HAProxy's `slowstart`: sixteenths of the weight and hundredths of the limit, by whole seconds.
    Haproxy,
    /// The `slow_start` of nginx's `server`: hundredths of the weight, none at first.
    Nginx,
    /// Envoy's `slow_start_config`: at least the share of the first second.
    Envoy,
}

/// `slow_start(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowStart {
    /// From becoming eligible to the whole weight, ns.
    pub window_ns: u64,
    /// The weight grows as the elapsed share of the window to the power 1/aggression.
    pub aggression: f64,
    /// The least share of the weight.
    pub min_weight: f64,
    /// Whether the limit of requests in flight grows with the weight. With `like` it is that proxy's to say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limits: bool,
    /// The proxy whose formula holds; `None`: weir's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<SlowStartLike>,
}

impl SlowStart {
    /// A slow start over this window, with the defaults of the language.
    pub fn new(window_ns: u64) -> SlowStart {
        SlowStart { window_ns, aggression: 1.0, min_weight: 0.1, limits: false, like: None }
    }

    /// Whether it lowers limits of requests in flight.
    pub fn scales_limits(&self) -> bool {
        self.limits || self.like == Some(SlowStartLike::Haproxy)
    }
}

/// The limit of requests in flight that is left of `limit` to a target with this share of it: at least 1, unless `limit`
/// itself is less.
pub fn limit_at(limit: u32, room: f64) -> u32 {
    if room >= 1.0 {
        return limit;
    }
    // Rounding must not lose one: shares are hundredths, whose product with a whole number may be just below the next.
    let left = (room * f64::from(limit) * (1.0 + 1e-12)).floor();
    (left as u32).max(1).min(limit)
}

#[derive(Clone, Copy, Debug)]
struct Ramp {
    began_ns: u64,
    /// What had elapsed when it began here: it goes on with what another process began.
    ahead_ns: u64,
    share: f64,
    room: f64,
    next_ns: u64,
}

impl Ramp {
    fn elapsed_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.began_ns).saturating_add(self.ahead_ns)
    }

    /// Moves it to this time. Returns whether its share or its room is another.
    fn advance(&mut self, config: &SlowStart, now_ns: u64) -> bool {
        let elapsed_ns = self.elapsed_ns(now_ns);
        let before = (self.share, self.room);
        (self.share, self.room) = (curve::share(config, elapsed_ns), curve::room(config, elapsed_ns));
        let wait_ns = curve::next_change_ns(config, elapsed_ns).saturating_sub(elapsed_ns).max(1);
        self.next_ns = now_ns.saturating_add(wait_ns);
        before != (self.share, self.room)
    }

    fn is_over(&self) -> bool {
        self.share >= 1.0 && self.room >= 1.0
    }
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

    /// Replaces the arguments: each ramp goes on from where it is in time, by the new ones.
    pub fn configure(&mut self, config: SlowStart, now_ns: u64) {
        if self.config != config {
            self.config = config;
            let config = &self.config;
            self.ramps.retain(|_, ramp| {
                ramp.advance(config, now_ns);
                !ramp.is_over()
            });
        }
    }

    /// Starts the ramp of a target that has become eligible.
    pub fn begin(&mut self, now_ns: u64, target: TargetId) {
        self.resume(now_ns, target, 0);
    }

    /// Goes on with the ramp of a target that became eligible `ahead_ns` ago.
    pub fn resume(&mut self, now_ns: u64, target: TargetId, ahead_ns: u64) {
        self.end(target);
        let mut ramp = Ramp { began_ns: now_ns, ahead_ns, share: 1.0, room: 1.0, next_ns: now_ns };
        ramp.advance(&self.config, now_ns);
        if !ramp.is_over() {
            self.ramps.insert(target, ramp);
        }
    }

    /// Ends the ramp of a target that is not eligible any more, or removed.
    pub fn end(&mut self, target: TargetId) {
        self.ramps.remove(&target);
    }

    /// Whether no target is on its ramp.
    pub fn is_empty(&self) -> bool {
        self.ramps.is_empty()
    }

    /// Whether a target is on its ramp.
    pub fn has(&self, target: TargetId) -> bool {
        self.ramps.contains_key(&target)
    }

    /// The share of its weight that a target has.
    pub fn share(&self, target: TargetId) -> f64 {
        self.ramps.get(&target).map_or(1.0, |ramp| ramp.share)
    }

    /// The share of the limit of requests in flight that a target has.
    pub fn room(&self, target: TargetId) -> f64 {
        self.ramps.get(&target).map_or(1.0, |ramp| ramp.room)
    }

    /// How long ago a target that is on its ramp became eligible, ns.
    pub fn elapsed_ns(&self, now_ns: u64, target: TargetId) -> Option<u64> {
        self.ramps.get(&target).map(|ramp| ramp.elapsed_ns(now_ns))
    }

    /// When the next share changes.
    pub fn next_deadline(&self) -> Option<u64> {
        self.ramps.values().map(|ramp| ramp.next_ns).min()
    }

    /// Changes the shares that are due. Returns whether any is another.
    pub fn tick(&mut self, now_ns: u64) -> bool {
        let (config, mut changed) = (&self.config, false);
        self.ramps.retain(|_, ramp| {
            if ramp.next_ns <= now_ns {
                changed |= ramp.advance(config, now_ns);
            }
            !ramp.is_over()
        });
        changed
    }
}

#[cfg(test)]
#[path = "slow_start_tests.rs"]
mod tests;
