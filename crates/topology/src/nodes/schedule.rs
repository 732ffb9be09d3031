//! `traffic.schedule([(time, rate), ...], repeat=False)`: Poisson arrivals whose rate follows a line through points.

use super::traffic::{MAY_BE_ZERO, made, pairs, rate_of};
use super::{Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_model::Traffic;
use weir_plan::duration::show_ns;
use weir_plan::ranges::never;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "traffic.schedule",
    about: Description {
        group: Group::Ask,
        meaning: "Poisson arrivals whose rate follows a line through points.",
        simulated: "0 before the first point, straight between two, the last rate after the last; \
                two points at one time are a jump",
        served: "nothing; `weir load` sends such requests",
        draws: "each gap",
        example: examples::TRAFFIC,
    },
    args: &[
        need("points", "a list of (time, rate)", "rates per second: `[(0*s, 100), (60*s, 500)]`"),
        may("repeat", "True | False", "False", "start again at the last point's time"),
    ],
    more: &[],
    make,
}];

const SHAPE: &str =
    "write `traffic.schedule([(0*s, 100), (60*s, 500)])`: from 100 per second to 500 within a minute";

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let repeat = call.truth("repeat").unwrap_or(false);
    let Some(pairs) = pairs(call, "points", "(time, rate)", SHAPE) else { return Ok(None) };
    let mut points: Vec<(u64, f64)> = Vec::with_capacity(pairs.len());
    for (i, pair) in pairs.into_iter().enumerate() {
        let Some([time, rate]) = pair else { continue };
        let time = call.ns(&format!("the time in `points[{i}]` of `traffic.schedule`"), time);
        let rate =
            rate_of(call, &format!("the rate in `points[{i}]` of `traffic.schedule`"), rate, MAY_BE_ZERO);
        let Some((time, rate)) = time.zip(rate) else { continue };
        if let Some((before, _)) = points.last().filter(|(before, _)| *before > time) {
            let (ours, theirs) = (show_ns(i128::from(time)), show_ns(i128::from(*before)));
            call.wrong_but(
                format!("`points[{i}]` of `traffic.schedule` goes back in time: {ours} comes after {theirs}"),
                "write them in order of time; two at the same time are a jump",
            );
        }
        points.push((time, rate));
    }
    if !call.failed()
        && let Some(why) = never(&points, repeat)
    {
        call.wrong_but(format!("no request of this `traffic.schedule` would ever arrive: {why}"), SHAPE);
    }
    made(call, Traffic::Schedule { points, repeat })
}
