//! `traffic.trace("file.csv", start="first")`: recorded instants, counted from the first, from the column `arrival_s`
//! (or `_ms`, `_us`, `_ns`), and what the requests were, from `method`, `path`, `host`, `key` and `body` (bytes), where
//! there are such columns.

use super::{Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome, describe};
use crate::language::data::{self, Rows};
use crate::language::value::TrafficValue;
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "traffic.trace",
    about: Description {
        group: Group::Ask,
        meaning: "Recorded requests from a CSV file with a header.",
        simulated: "requests arrive at these instants, the first at the start of the run, and are as their \
            rows describe",
        served: "nothing; `weir load` sends such requests",
        draws: "nothing",
        example: examples::TRACE,
    },
    args: &[
        need(
            "file",
            "a path",
            "the column `arrival_s` (or `_ms`, `_us`, `_ns`) has the instants, \
                ascending; `method`, `path`, `host`, `key` and `body` (bytes), where present, describe the requests",
        ),
        may(
            "start",
            "\"first\" | \"epoch\"",
            "\"first\"",
            "the instant at which the run starts: the trace's first, as in logs with Unix time, or 0 (its epoch)",
        ),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(value) = call.value("file") else { return Ok(None) };
    let Some(file) = value.unpack_str().map(str::to_owned) else {
        let message =
            format!("`file` of `traffic.trace` must be the name of a CSV file, not {}", describe(value));
        call.wrong_but(
            message,
            "a file with a header and a column such as `arrival_s` (or `_ms`, `_us`, `_ns`)",
        );
        return Ok(None);
    };
    let from_first = call.choice("start", &[("first", Some(true)), ("epoch", Some(false))]).unwrap_or(true);
    let Some(trace) = data::trace(call, &file) else { return Ok(None) };
    let zero_ns = trace.arrivals_ns.first().filter(|_| from_first).copied().unwrap_or_default();
    let (mix, recorded) = match trace.rows.as_deref() {
        Some(Rows { mix, recorded }) => (mix.clone(), Some(recorded.clone())),
        None => (Vec::new(), None),
    };
    let arrivals =
        Traffic::Trace { file, arrivals_ns: trace.arrivals_ns.iter().map(|at| at - zero_ns).collect() };
    Ok(Some(call.heap().alloc(TrafficValue { arrivals, mix, recorded })))
}
