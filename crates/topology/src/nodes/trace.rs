//! `traffic.trace("file.csv")`: recorded instants, from the column `arrival_s` (or `_ms`, `_us`, `_ns`).
//!
//! - In virtual time: requests arrive at just these instants, counted from the start.
//! - In the proxy: nothing; `weir load` sends so.
//! - Draws: nothing.

use super::traffic::made;
use super::{Function, need};
use crate::call::{Call, Outcome, describe};
use crate::data::{self, Column};
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
    let Some(arrivals) = data::column(call, &file, Column::Arrival) else { return Ok(None) };
    made(call, Traffic::Trace { file, arrivals_ns: arrivals.to_vec() })
}
