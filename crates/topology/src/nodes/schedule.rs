//! `traffic.schedule([(time, rate), ...], repeat=False)`: Poisson arrivals whose rate follows a line through points.

use super::traffic::{MAY_BE_ZERO, made, pairs, rate_of};
use super::{About, Function, Group, examples, may, need};
use crate::call::{Call, Outcome};
use crate::value::show_ns;
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "traffic.schedule",
    about: About {
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
        may("repeat", "True | False", "False", "begin anew at the last point's time"),
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
                "write them in the order of their times; two at the same time are a jump",
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

/// Why no request ever arrives under these points, if so.
pub(crate) fn never(points: &[(u64, f64)], repeat: bool) -> Option<&'static str> {
    let (last_ns, last_rate) = *points.last()?;
    // Between two points at different times of which one has a rate, requests arrive.
    let within = points.windows(2).any(|w| w[0].0 < w[1].0 && (w[0].1 > 0.0 || w[1].1 > 0.0));
    if within || (!repeat && last_rate > 0.0) {
        None
    } else if repeat && last_ns == 0 {
        Some("with `repeat` it begins anew at the last point's time, and that is 0")
    } else {
        Some("its rate is 0 all the time")
    }
}
