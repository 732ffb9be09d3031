//! `traffic.schedule([(time, rate), ...], repeat=False)`: Poisson arrivals whose rate follows a line through points.
//!
//! - In virtual time: 0 before the first point, straight between two, the last rate after the last; two points at one
//!   time are a jump. With `repeat` it begins anew at the last point's time.
//! - In the proxy: nothing; `weir load` sends so.
//! - Draws: each gap.

use super::traffic::{MAY_BE_ZERO, made, rate_of};
use super::{Function, may, need};
use crate::call::{Call, Outcome, describe, list};
use crate::value::show_ns;
use starlark::values::Value;
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "traffic.schedule", args: &[need("points"), may("repeat")], more: &[], make }];

const SHAPE: &str =
    "write `traffic.schedule([(0*s, 100), (60*s, 500)])`: from 100 per second to 500 within a minute";

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let repeat = call.truth("repeat").unwrap_or(false);
    let Some(value) = call.value("points") else { return Ok(None) };
    let Some(items) = list(value) else {
        let message = format!(
            "`points` of `traffic.schedule` must be a list of (time, rate), and is {}",
            describe(value)
        );
        call.wrong_but(message, SHAPE);
        return Ok(None);
    };
    if items.is_empty() {
        call.wrong_but("`traffic.schedule` has no points: the list is empty", SHAPE);
    }
    let mut points: Vec<(u64, f64)> = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        let Some((time, rate)) = point(call, i, item) else { continue };
        if let Some((before, _)) = points.last().filter(|(before, _)| *before > time) {
            let (ours, theirs) = (show_ns(i128::from(time)), show_ns(i128::from(*before)));
            call.wrong_but(
                format!("`points` of `traffic.schedule` go back in time: {ours} comes after {theirs}"),
                "write them in the order of their times; two at the same time are a jump",
            );
        }
        points.push((time, rate));
    }
    if !call.failed()
        && let Some(why) = never(&points, repeat)
    {
        call.wrong_but(format!("{why} of `traffic.schedule`: no request would ever arrive"), SHAPE);
    }
    made(call, Traffic::Schedule { points, repeat })
}

fn point<'v>(call: &mut Call<'v, '_, '_, '_>, i: usize, item: Value<'v>) -> Option<(u64, f64)> {
    let Some([time, rate]) = list(item).and_then(|pair| <[_; 2]>::try_from(pair).ok()) else {
        let message =
            format!("`points[{i}]` of `traffic.schedule` must be (time, rate), and is {}", describe(item));
        call.wrong_but(message, SHAPE);
        return None;
    };
    let time = call.ns(&format!("the time in `points[{i}]` of `traffic.schedule`"), time);
    let rate = rate_of(call, &format!("the rate in `points[{i}]` of `traffic.schedule`"), rate, MAY_BE_ZERO);
    time.zip(rate)
}

/// Why no request ever arrives under these points, if so: the beginning of a sentence.
pub(crate) fn never(points: &[(u64, f64)], repeat: bool) -> Option<&'static str> {
    let (last_ns, last_rate) = *points.last()?;
    // Between two points at different times of which one has a rate, requests arrive.
    let within = points.windows(2).any(|w| w[0].0 < w[1].0 && (w[0].1 > 0.0 || w[1].1 > 0.0));
    if within || (!repeat && last_rate > 0.0) {
        None
    } else if repeat && last_ns == 0 {
        Some("with `repeat` the last point's time is the length of a round, and it is 0 for the points")
    } else {
        Some("the rate is 0 all the time under the points")
    }
}
