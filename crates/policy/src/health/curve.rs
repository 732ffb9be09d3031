//! The curves of slow start: which share of its weight, and of its limit, a target has so long after it became eligible.
//!
//! e is the time since then, s(·) whole seconds, cut off. The share of the weight is
//!
//! - weir's own: max(min_weight, (e / window)^(1/aggression)), in steps of a hundredth;
//! - Envoy's (`slow_start_config`): max(min_weight, (max(e, 1 s) / window)^(1/aggression)). Envoy computes it at each pick,
//!   here it has steps of a thousandth;
//! - HAProxy's (`server_recalc_eweight`): min(16, ⌊(16 · s(e) + s(window)) / s(window)⌋) / 16;
//! - nginx's (as Angie has it): ⌊100 · e / window⌋ / 100, so nothing at first.
//!
//! The share of the limit is HAProxy's ⌊100 · s(e) / s(window)⌋ / 100 (`srv_dynamic_maxconn`), with `limits` that of the
//! weight, else 1. It is its own line in HAProxy: the weight is whole a second before the limit, or more.

use super::slow_start::{SlowStart, SlowStartLike};
use weir_stats::math;

const SECOND_NS: u64 = 1_000_000_000;
/// Steps of weir's own ramp, and of nginx's.
const HUNDREDTHS: f64 = 100.0;
/// Steps of Envoy's ramp.
const THOUSANDTHS: f64 = 1000.0;
/// Steps of HAProxy's ramp (`BE_WEIGHT_SCALE`).
const SIXTEENTHS: u64 = 16;

/// The share of its weight that a target has.
pub fn share(config: &SlowStart, elapsed_ns: u64) -> f64 {
    match config.like {
        Some(SlowStartLike::Haproxy) => {
            let (s, window_s) = seconds(config, elapsed_ns);
            let grown = (s.saturating_mul(SIXTEENTHS) + window_s) / window_s;
            grown.min(SIXTEENTHS) as f64 / SIXTEENTHS as f64
        }
        Some(SlowStartLike::Nginx) => percent(config, elapsed_ns) as f64 / 100.0,
        Some(SlowStartLike::Envoy) => grown(config, elapsed_ns.max(SECOND_NS), THOUSANDTHS),
        None => grown(config, elapsed_ns, HUNDREDTHS),
    }
}

/// The share of the limit of requests in flight that a target has.
pub fn room(config: &SlowStart, elapsed_ns: u64) -> f64 {
    match config.like {
        Some(SlowStartLike::Haproxy) => {
            let (s, window_s) = seconds(config, elapsed_ns);
            (s.saturating_mul(100) / window_s).min(100) as f64 / 100.0
        }
        None if config.limits => share(config, elapsed_ns),
        Some(SlowStartLike::Nginx | SlowStartLike::Envoy) | None => 1.0,
    }
}

/// The time after it became eligible at which the share or the room is the next one, or may be.
pub fn next_change_ns(config: &SlowStart, elapsed_ns: u64) -> u64 {
    match config.like {
        Some(SlowStartLike::Haproxy) => (elapsed_ns / SECOND_NS + 1).saturating_mul(SECOND_NS),
        Some(SlowStartLike::Nginx) => {
            let next = u128::from(percent(config, elapsed_ns) + 1);
            (next * u128::from(config.window_ns)).div_ceil(100) as u64
        }
        Some(SlowStartLike::Envoy) => next_step_ns(config, share(config, elapsed_ns), THOUSANDTHS),
        None => next_step_ns(config, share(config, elapsed_ns), HUNDREDTHS),
    }
}

/// The whole seconds that have elapsed, and those of the window, of which there is at least one.
fn seconds(config: &SlowStart, elapsed_ns: u64) -> (u64, u64) {
    (elapsed_ns / SECOND_NS, (config.window_ns / SECOND_NS).max(1))
}

/// The elapsed hundredths of the window.
fn percent(config: &SlowStart, elapsed_ns: u64) -> u64 {
    if elapsed_ns >= config.window_ns {
        return 100;
    }
    (u128::from(elapsed_ns) * 100 / u128::from(config.window_ns)) as u64
}

/// The power of the elapsed share, in so many steps, and at least `min_weight`.
fn grown(config: &SlowStart, elapsed_ns: u64, steps: f64) -> f64 {
    if elapsed_ns >= config.window_ns {
        return 1.0;
    }
    let share = elapsed_ns as f64 / config.window_ns as f64;
    let grown = if config.aggression == 1.0 { share } else { math::pow(share, 1.0 / config.aggression) };
    // Rounding must not lose a step that has just been reached.
    let step = (grown * steps + 1e-9).floor() / steps;
    step.max(config.min_weight).min(1.0)
}

/// When a target reaches the step after this share.
fn next_step_ns(config: &SlowStart, share: f64, steps: f64) -> u64 {
    let next = ((share * steps + 1e-9).floor() + 1.0) / steps;
    let at = if config.aggression == 1.0 { next } else { math::pow(next, config.aggression) };
    ((at * config.window_ns as f64).ceil() as u64).min(config.window_ns)
}
