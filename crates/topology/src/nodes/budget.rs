//! `budget(ratio=0.2, min_per_s=10, window=10*s)`: what further attempts are charged to; one bucket per node that uses it.
//!
//! - In virtual time: a request's very first attempt earns `ratio`, which expires after `window`; a retry or hedge takes 1.
//! - In the proxy: the same, with a clock.
//! - Draws: nothing.

use super::{Function, may};
use crate::call::{Call, Outcome};
use crate::value::BudgetValue;
use weir_policy::config::Budget;

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "budget", args: &[may("ratio"), may("min_per_s"), may("window")], more: &[], make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let ratio = call.not_negative("ratio").unwrap_or(0.2);
    let min_per_s = call.not_negative("min_per_s").unwrap_or(10.0);
    let window_ns = call.positive_duration("window").unwrap_or(10_000_000_000);
    if ratio == 0.0 && min_per_s == 0.0 && !call.failed() {
        call.warn(
            "this `budget` lets no attempt through: nothing earns and nothing is in reserve",
            "take a `ratio` or `min_per_s` above 0",
        );
    }
    Ok(Some(call.heap().alloc(BudgetValue(Budget { ratio, min_per_s, window_ns }))))
}
