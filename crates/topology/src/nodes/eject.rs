//! `eject(consecutive=5, base=30*s, max=300*s, max_percent=50)`: a target that fails so often in a row is left out for a while.
//!
//! - In virtual time: the k-th ejection in a row lasts min(base·2^(k−1), max); then one request probes.
//! - In the proxy: the same, with a clock.
//! - Draws: nothing.

use super::{Function, may};
use crate::call::{Call, Outcome};
use crate::value::{EjectValue, show_ns};
use weir_policy::config::Eject;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "eject",
    args: &[may("consecutive"), may("base"), may("max"), may("max_percent")],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    const S: u64 = 1_000_000_000;
    let consecutive = call.count("consecutive", 1, 1_000_000).unwrap_or(5);
    let base_ns = call.positive_duration("base").unwrap_or(30 * S);
    let max_ns = call.positive_duration("max").unwrap_or(300 * S);
    let max_percent = call.percent("max_percent").unwrap_or(50.0);
    if base_ns > max_ns && !call.failed() {
        let show = |ns: u64| show_ns(i128::from(ns));
        call.warn(
            format!(
                "`base` of `eject` has no effect: every ejection lasts `max`, {}, which is shorter than {}",
                show(max_ns),
                show(base_ns)
            ),
            format!("take a longer `max`, as in `max=\"{}\"`", show(base_ns)),
        );
    }
    Ok(Some(call.heap().alloc(EjectValue(Eject { consecutive, base_ns, max_ns, max_percent }))))
}
