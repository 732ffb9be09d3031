//! `lb.prequal(targets, probes=3, pool=16, age=1*s, q_rif=0.84, remove=1, delta=1.0)`: by probes of requests in flight and
//! latency.
//!
//! - In virtual time: each request has a few targets probed; answers come back by the same ways and are used for later picks.
//! - In the proxy: the same, where targets answer probes.
//! - Draws: whom to probe; a pick where too few answers are there.

use super::common::{COMMON, balancer, targets};
use crate::call::{Call, Outcome};
use crate::nodes::{Function, may, need};
use weir_policy::config::Balance;

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.prequal",
    args: &[
        need("targets"),
        may("probes"),
        may("pool"),
        may("age"),
        may("q_rif"),
        may("remove"),
        may("delta"),
    ],
    more: &COMMON,
    make,
}];

/// A pick looks at all answers that are kept.
pub(crate) const MOST_KEPT: u32 = 1000;
/// Probes of one request.
pub(crate) const MOST_PROBES: f64 = 1000.0;

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let probes = call.positive("probes").unwrap_or(3.0);
    if probes > MOST_PROBES && !call.failed() {
        let message = format!("{} must be at most {MOST_PROBES}, and is {probes}", call.of("probes"));
        call.wrong(message);
    }
    let pool = call.count("pool", 1, MOST_KEPT).unwrap_or(16);
    let age_ns = call.positive_duration("age").unwrap_or(1_000_000_000);
    let q_rif = call.share("q_rif").unwrap_or(0.84);
    let remove = call.not_negative("remove").unwrap_or(1.0);
    let delta = call.not_negative("delta").unwrap_or(1.0);
    let targets = targets(call);
    balancer(call, targets, Balance::Prequal { probes, pool, age_ns, q_rif, remove, delta }, None)
}
