//! `slow_start(window, aggression=1.0, min_weight=0.1)`: a target that comes back gets its share gradually.

use super::{Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::SlowStartValue;
use weir_policy::config::SlowStart;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "slow_start",
    about: Description {
        group: Group::Health,
        meaning: "Gives a target that comes back its share gradually.",
        simulated: "its weight grows over the `window`, in steps of a hundredth; it starts at every return, \
            never at the start of the run",
        served: "the same in real time, and for targets that are added",
        draws: "nothing",
        example: examples::HEALTH,
    },
    args: &[
        need("window", "a duration", "how long it takes until the whole weight is back"),
        may("aggression", "above 0", "1.0", "1 grows in a straight line; more grows faster at first"),
        may("min_weight", "above 0, up to 1", "0.1", "the share of its weight that it begins with"),
    ],
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
