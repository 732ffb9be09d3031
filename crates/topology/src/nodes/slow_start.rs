//! `slow_start(window, aggression=1.0, min_weight=0.1)`: a target that comes back gets its share little by little.
//!
//! - In virtual time: its weight grows over the window, in steps of a hundredth.
//! - In the proxy: the same, with a clock.
//! - Draws: nothing.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::value::SlowStartValue;
use weir_policy::config::SlowStart;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "slow_start",
    args: &[need("window"), may("aggression"), may("min_weight")],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let window_ns = call.positive_duration("window");
    let aggression = call.positive("aggression").unwrap_or(1.0);
    let min_weight = call.share("min_weight").unwrap_or(0.1);
    if min_weight == 0.0 && !call.failed() {
        call.wrong_but(
            "`min_weight` of `slow_start` must be above 0: a target without weight is never picked",
            "write `min_weight=0.01` for a hundredth of its share",
        );
    }
    let Some(window_ns) = window_ns else { return Ok(None) };
    Ok(Some(call.heap().alloc(SlowStartValue(SlowStart { window_ns, aggression, min_weight }))))
}
