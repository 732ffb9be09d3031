//! `traffic.*`: when requests arrive.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::value::TrafficValue;
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 3] = [
    Function { name: "traffic.poisson", args: &[may("every"), may("rate")], more: &[], make: poisson },
    Function { name: "traffic.constant", args: &[may("every"), may("rate")], more: &[], make: constant },
    Function { name: "traffic.renewal", args: &[need("gap")], more: &[], make: renewal },
];

fn poisson<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let traffic = gap(call).map(|gap_ns| Traffic::Poisson { gap_ns });
    Ok(traffic.map(|t| call.heap().alloc(TrafficValue(t))))
}

fn constant<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let traffic = gap(call).map(|gap_ns| Traffic::Constant { gap_ns });
    Ok(traffic.map(|t| call.heap().alloc(TrafficValue(t))))
}

fn renewal<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(gap) = call.dist("gap") else { return Ok(None) };
    if gap.mean_ns() == Some(0.0) {
        call.wrong("`gap` of `traffic.renewal` is always 0: all requests would arrive at once");
    }
    Ok(Some(call.heap().alloc(TrafficValue(Traffic::Renewal { gap }))))
}

/// The mean gap of `every=` or `rate=`, ns.
fn gap(call: &mut Call<'_, '_, '_, '_>) -> Option<f64> {
    let given = (call.value_or_none("every").is_some(), call.value_or_none("rate").is_some());
    match given {
        (true, true) => {
            call.wrong_but(
                format!("`{}` takes `every` or `rate`, and both are given", call.name()),
                "leave one of them out",
            );
            None
        }
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

/// Arrivals per second.
fn rate(call: &mut Call<'_, '_, '_, '_>) -> Option<f64> {
    let rate = call.real("rate")?;
    if rate <= 0.0 {
        call.wrong(format!("`rate` of `{}` must be above 0, and is {rate}", call.name()));
        return None;
    }
    // A gap of at most 292 years, and of at least a millionth of a nanosecond.
    if !(1e-10..=1e15).contains(&rate) {
        call.wrong(format!(
            "`rate` of `{}` must be between 1e-10 and 1e15 per second, and is {rate}",
            call.name()
        ));
        return None;
    }
    Some(rate)
}
