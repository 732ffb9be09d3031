//! `lb.peak_ewma(targets, decay=10*s, default_rtt=30*ms)`: the cheaper of two by latency that rises at once and falls slowly.
//!
//! - In virtual time: costs are made of the latencies of what came back, and of what is in flight.
//! - In the proxy: the same, with measured latencies.
//! - Draws: the two of each attempt.

use super::common::{COMMON, balancer, targets};
use crate::call::{Call, Outcome};
use crate::nodes::{Function, may, need};
use weir_policy::config::Balance;

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.peak_ewma",
    args: &[need("targets"), may("decay"), may("default_rtt")],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let decay_ns = call.positive_duration("decay").unwrap_or(10_000_000_000);
    let default_rtt_ns = call.positive_duration("default_rtt").unwrap_or(30_000_000);
    let targets = targets(call);
    balancer(call, targets, Balance::PeakEwma { decay_ns, default_rtt_ns }, None)
}
