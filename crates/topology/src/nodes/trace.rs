//! `traffic.trace("file.csv")`: recorded instants, from the column `arrival_s` (or `_ms`, `_us`, `_ns`), and what the requests
//! were, from `method`, `path`, `host`, `key` and `body` (bytes), where there are such columns.

use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome, describe};
use crate::language::data::{self, Rows};
use crate::language::value::TrafficValue;
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "traffic.trace",
    about: Description {
        group: Group::Ask,
        meaning: "Recorded requests from a CSV file with a header.",
        simulated: "requests arrive at these instants, counted from the start, and are as their rows \
            describe",
        served: "nothing; `weir load` sends such requests",
        draws: "nothing",
        example: examples::TRACE,
    },
    args: &[need(
        "file",
        "a path",
        "the column `arrival_s` (or `_ms`, `_us`, `_ns`) has the instants, \
                ascending; `method`, `path`, `host`, `key` and `body` (bytes), where present, describe the requests",
    )],
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
    let Some(trace) = data::trace(call, &file) else { return Ok(None) };
    let (mix, recorded) = match trace.rows.as_deref() {
        Some(Rows { mix, recorded }) => (mix.clone(), Some(recorded.clone())),
        None => (Vec::new(), None),
    };
    let arrivals = Traffic::Trace { file, arrivals_ns: trace.arrivals_ns.to_vec() };
    Ok(Some(call.heap().alloc(TrafficValue { arrivals, mix, recorded })))
}
