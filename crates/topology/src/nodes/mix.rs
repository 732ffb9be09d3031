//! `traffic.mix(arrivals, [(weight, request(...)), ...])`: what arrives, each by its share.

use super::split::weight_of;
use super::traffic::pairs;
use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::{Poison, RequestValue, TrafficValue};
use starlark::values::{Value, ValueLike};
use weir_model::Traffic;
use weir_plan::RequestShape;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "traffic.mix",
    about: Description {
        group: Group::Ask,
        meaning: "The kinds of requests, each with its share.",
        simulated: "each request draws its kind; arrival times do not change",
        served: "nothing; `weir load` sends such requests",
        draws: "one number per request",
        example: examples::ROUTES,
    },
    args: &[
        need("arrivals", "traffic", "when they arrive"),
        need("requests", "a list of (weight, request(...))", "kinds of request with their weights"),
    ],
    more: &[],
    make,
}];

const SHAPE: &str =
    "write `traffic.mix(traffic.poisson(rate=100), [(9, request()), (1, request(method=\"POST\"))])`";

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let arrivals = arrivals(call);
    let Some(found) = pairs(call, "requests", "(weight, request(...))", SHAPE) else { return Ok(None) };
    let mut mix = Vec::with_capacity(found.len());
    for (i, pair) in found.into_iter().enumerate() {
        let Some([weight, request]) = pair else { continue };
        let weight = weight_of(call, "requests", i, weight);
        let request = request_of(call, i, request);
        mix.extend(weight.zip(request).map(|(weight, shape)| RequestShape { weight, ..shape }));
    }
    if !call.failed() && mix.iter().all(|s| s.weight == 0.0) {
        call.wrong_but("no request of `traffic.mix` would ever be sent: all weights are 0", SHAPE);
    }
    let Some(arrivals) = arrivals else { return Ok(None) };
    Ok(Some(call.heap().alloc(TrafficValue { arrivals, mix, recorded: None })))
}

/// When they arrive.
fn arrivals(call: &mut Call<'_, '_, '_, '_>) -> Option<Traffic> {
    let value = call.value("arrivals")?;
    match value.downcast_ref::<TrafficValue>() {
        Some(traffic) if traffic.mix.is_empty() => Some(traffic.arrivals.clone()),
        Some(traffic) if traffic.recorded.is_some() => {
            call.wrong_but(
                "`arrivals` of `traffic.mix` is a trace that already describes its requests",
                "leave `traffic.mix` out, or the columns `method`, `path`, `host`, `key` and `body` of \
                    the file",
            );
            None
        }
        Some(_) => {
            call.wrong_but(
                "`arrivals` of `traffic.mix` is a mix already: it describes its requests",
                "put all requests into one list, with their weights",
            );
            None
        }
        None => {
            call.unfit_but("arrivals", "traffic (when requests arrive)", value, SHAPE);
            None
        }
    }
}

fn request_of<'v>(call: &mut Call<'v, '_, '_, '_>, i: usize, value: Value<'v>) -> Option<RequestShape> {
    if let Some(request) = value.downcast_ref::<RequestValue>() {
        return Some(request.0.clone());
    }
    if value.downcast_ref::<Poison>().is_some() {
        call.poison();
    } else {
        call.unfit_but(
            &format!("requests[{i}][1]"),
            "a request",
            value,
            "write `request(method=\"GET\", path=\"/\")`",
        );
    }
    None
}
