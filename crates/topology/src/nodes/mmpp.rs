//! `traffic.mmpp([(rate, mean_stay), ...])`: Poisson arrivals whose rate changes by chance, as bursts do.

use super::traffic::{MAY_BE_ZERO, made, pairs, rate_of};
use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome};
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "traffic.mmpp",
    about: Description {
        group: Group::Ask,
        meaning: "Poisson arrivals whose rate changes at random: bursts.",
        simulated: "each state lasts for an exponential time, then the next begins, and after the last \
            the first again",
        served: "nothing; `weir load` sends such requests",
        draws: "each stay and each gap",
        example: examples::TRAFFIC,
    },
    args: &[need(
        "states",
        "a list of (rate, mean stay)",
        "rates per second, each with the mean time that it lasts: `[(100, 10*s), (1000, 1*s)]`",
    )],
    more: &[],
    make,
}];

const SHAPE: &str =
    "write `traffic.mmpp([(100, 10*s), (1000, 1*s)])`: 100 per second for 10 s on average, then 1000";

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(pairs) = pairs(call, "states", "(rate, mean stay)", SHAPE) else { return Ok(None) };
    let mut states = Vec::with_capacity(pairs.len());
    for (i, pair) in pairs.into_iter().enumerate() {
        let Some([rate, stay]) = pair else { continue };
        let rate = rate_of(call, &format!("the rate in `states[{i}]` of `traffic.mmpp`"), rate, MAY_BE_ZERO);
        let what = format!("the mean stay in `states[{i}]` of `traffic.mmpp`");
        let stay = call.ns(&what, stay);
        if stay == Some(0) {
            call.wrong(format!("{what} must be longer than 0"));
        }
        states.extend(rate.zip(stay));
    }
    if !call.failed() && states.iter().all(|(rate, _)| *rate == 0.0) {
        call.wrong_but("all rates of `traffic.mmpp` are 0: no request would ever arrive", SHAPE);
    }
    made(call, Traffic::Mmpp { states })
}
