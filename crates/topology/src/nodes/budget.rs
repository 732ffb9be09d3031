//! `budget(ratio=0.2, min_per_s=10, window=10*s)`: the budget that further attempts are charged to; one bucket per node
//! that uses it.

use super::{Description, Function, Group, examples, may};
use crate::language::call::{Call, Outcome};
use crate::language::value::BudgetValue;
use weir_policy::config::Budget;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "budget",
    about: Description {
        group: Group::Pass,
        meaning: "Limits further attempts to a share of the requests.",
        simulated: "a request's very first attempt earns `ratio`, which expires after `window`; a \
                retry or hedge takes 1. In addition there is a reserve of at most `min_per_s` · `window`, \
                full at the start, which refills at `min_per_s`. Each node that uses the budget has its own",
        served: "the same in real time, for the whole process",
        draws: "nothing",
        example: examples::RETRY,
    },
    args: &[
        may("ratio", "0 or more", "0.2", "further attempts for each first one"),
        may(
            "min_per_s",
            "0 or more, per second",
            "10",
            "further attempts per second that are always allowed",
        ),
        may("window", "a duration", "10*s", "how long an earned share can be spent"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let ratio = call.not_negative("ratio").unwrap_or(0.2);
    let min_per_s = call.not_negative("min_per_s").unwrap_or(10.0);
    let window_ns = call.positive_duration("window").unwrap_or(10_000_000_000);
    if ratio == 0.0 && min_per_s == 0.0 && !call.failed() {
        call.warn(
            "this `budget` allows no further attempt: requests earn nothing, and there is no reserve",
            "use a `ratio` or `min_per_s` above 0",
        );
    }
    Ok(Some(call.heap().alloc(BudgetValue(Budget { ratio, min_per_s, window_ns }))))
}
