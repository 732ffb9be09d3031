//! `traffic.poisson`, `traffic.constant`, `traffic.renewal`: when requests arrive, gap by gap.

use super::{Description, Function, Group, examples, maybe, need};
use crate::language::call::{Call, Outcome, describe, list};
use crate::language::value::{DurationValue, Poison, TrafficValue};
use starlark::values::{Value, ValueLike};
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 3] = [
    Function {
        name: "traffic.poisson",
        about: Description {
            group: Group::Ask,
            meaning: "Requests at random times, independent of each other.",
            simulated: "exponential gaps; the first request comes after one gap",
            served: "nothing; `weir load` sends such requests",
            draws: "each gap",
            example: examples::TRAFFIC,
        },
        args: &[
            maybe("every", "a duration", "this or `rate` is needed", "the mean time between two requests"),
            maybe("rate", "above 0, per second", "this or `every` is needed", "requests per second"),
        ],
        more: &[],
        make: poisson,
    },
    Function {
        name: "traffic.constant",
        about: Description {
            group: Group::Ask,
            meaning: "Requests at equal intervals.",
            simulated: "the first request comes after one gap",
            served: "nothing; `weir load` sends such requests",
            draws: "nothing",
            example: examples::TRAFFIC,
        },
        args: &[
            maybe("every", "a duration", "this or `rate` is needed", "the mean time between two requests"),
            maybe("rate", "above 0, per second", "this or `every` is needed", "requests per second"),
        ],
        more: &[],
        make: constant,
    },
    Function {
        name: "traffic.renewal",
        about: Description {
            group: Group::Ask,
            meaning: "Requests whose gaps have any distribution.",
            simulated: "the first request comes after one gap",
            served: "nothing; `weir load` sends such requests",
            draws: "each gap",
            example: examples::TRAFFIC,
        },
        args: &[need("gap", "a distribution", "between two requests")],
        more: &[],
        make: renewal,
    },
];

fn poisson<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(gap_ns) = gap(call) else { return Ok(None) };
    made(call, Traffic::Poisson { gap_ns })
}

fn constant<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(gap_ns) = gap(call) else { return Ok(None) };
    made(call, Traffic::Constant { gap_ns })
}

fn renewal<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(gap) = call.dist("gap") else { return Ok(None) };
    if gap.mean_ns() == Some(0.0) {
        call.wrong("`gap` of `traffic.renewal` is always 0: all requests would arrive at once");
    }
    made(call, Traffic::Renewal { gap })
}

/// The mean gap of `every=` or `rate=`, ns.
fn gap(call: &mut Call<'_, '_, '_, '_>) -> Option<f64> {
    let given = (call.value_or_none("every").is_some(), call.value_or_none("rate").is_some());
    match given {
        (true, true) => {
            call.wrong_but(
                format!("`{}` takes `every` or `rate`, not both", call.name()),
                "leave one of them out",
            );
            None
        }
        (true, false) if is_bare(call) => None,
        (true, false) => call.positive_duration("every").map(|ns| ns as f64),
        (false, true) => rate(call).map(|per_s| 1e9 / per_s),
        (false, false) => {
            if !call.failed() {
                let name = call.name();
                call.wrong_but(
                    format!("`{name}` needs `every` or `rate`"),
                    format!("write `{name}(every=1*ms)` or `{name}(rate=1000)` (per second)"),
                );
            }
            None
        }
    }
}

/// Whether `every` is a number without a unit: a rate is meant, most likely.
fn is_bare(call: &mut Call<'_, '_, '_, '_>) -> bool {
    let Some(value) = call.value("every").filter(|v| matches!(v.get_type(), "int" | "float")) else {
        return false;
    };
    let (name, number) = (call.name(), weir_plan::http::short(&value.to_str()));
    let message = format!("{} must be a duration, not {}", call.describe("every"), describe(value));
    call.wrong_but(
        message,
        format!(
            "for {number} requests per second write `{name}(rate={number})`; a gap has a unit, such \
            as `{number}*ms`"
        ),
    );
    true
}

/// Arrivals per second.
fn rate(call: &mut Call<'_, '_, '_, '_>) -> Option<f64> {
    let value = call.value("rate")?;
    let what = call.describe("rate");
    rate_of(call, &what, value, !MAY_BE_ZERO)
}

/// A rate of 0 is allowed.
pub(super) const MAY_BE_ZERO: bool = true;

/// A value as arrivals per second; `what` names it in a message.
pub(super) fn rate_of<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    what: &str,
    value: Value<'v>,
    may_be_zero: bool,
) -> Option<f64> {
    if value.downcast_ref::<DurationValue>().is_some() {
        call.wrong_but(
            format!("{what} must be a number, not {}", describe(value)),
            "a rate is a plain number per second; for a utilisation u of n servers write `every = work / \
                (n*u)`",
        );
        return None;
    }
    let rate = call.real_of(what, value)?;
    if rate == 0.0 && may_be_zero {
        // A negative zero becomes a positive one.
        return Some(0.0);
    }
    if rate <= 0.0 {
        let wanted = if may_be_zero { "must not be negative, but is" } else { "must be above 0, not" };
        call.wrong(format!("{what} {wanted} {rate}"));
        return None;
    }
    // A gap of at most 292 years, and of at least a millionth of a nanosecond.
    if !(1e-10..=1e15).contains(&rate) {
        call.wrong(format!("{what} must be between 1e-10 and 1e15 per second, not {rate:e}"));
        return None;
    }
    Some(rate)
}

/// Traffic as a value of the language.
pub(super) fn made<'v>(call: &Call<'v, '_, '_, '_>, traffic: Traffic) -> Outcome<'v> {
    Ok(Some(call.heap().alloc(TrafficValue { arrivals: traffic, mix: Vec::new(), recorded: None })))
}

/// The items of a list of pairs, which `wanted` names and `shape` shows by example; none of a malformed item.
pub(super) fn pairs<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    name: &str,
    wanted: &str,
    shape: &str,
) -> Option<Vec<Option<[Value<'v>; 2]>>> {
    let value = call.value(name)?;
    let Some(items) = list(value) else {
        let message = format!("{} must be a list of {wanted}, not {}", call.describe(name), describe(value));
        call.wrong_but(message, shape);
        return None;
    };
    if items.is_empty() {
        call.wrong_but(format!("`{}` has no {name}: the list is empty", call.name()), shape);
    }
    let mut pairs = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        let parts = list(item);
        let length = parts.as_ref().map_or(String::new(), |p| format!(" of {}", p.len()));
        let pair = parts.and_then(|parts| <[_; 2]>::try_from(parts).ok());
        if item.downcast_ref::<Poison>().is_some() {
            call.poison();
        } else if pair.is_none() {
            let what = call.describe(&format!("{name}[{i}]"));
            call.wrong_but(format!("{what} must be {wanted}, not {}{length}", describe(item)), shape);
        }
        pairs.push(pair);
    }
    Some(pairs)
}
