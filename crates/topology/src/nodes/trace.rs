//! `traffic.trace("file.csv")`: recorded instants, from the column `arrival_s` (or `_ms`, `_us`, `_ns`), and what the requests
//! were, from `method`, `path`, `host`, `key` and `body` (bytes), where there are such columns.
//!
//! - In virtual time: requests arrive at just these instants, counted from the start, and are what their rows say.
//! - In the proxy: nothing; `weir load` sends so.
//! - Draws: nothing.

use super::{Function, need};
use crate::call::{Call, Outcome, describe};
use crate::data::{self, Rows};
use crate::value::TrafficValue;
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "traffic.trace", args: &[need("file")], more: &[], make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(value) = call.value("file") else { return Ok(None) };
    let Some(file) = value.unpack_str().map(str::to_owned) else {
        let message =
            format!("`file` of `traffic.trace` must be the name of a CSV file, and is {}", describe(value));
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
