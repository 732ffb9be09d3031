//! `lb.peak_ewma(targets, decay=10*s, default_rtt=30*ms)`: the cheaper of two by latency that rises at once and falls
//! slowly.

use super::common::{COMMON, balancer, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_policy::config::{Balance, PeakEwmaArgs};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.peak_ewma",
    about: Description {
        group: Group::Balance,
        meaning: "Draws two targets and picks the cheaper by latency, using an average that rises at once \
            and \
            falls slowly.",
        simulated: "the cost of a target comes from the latencies of its answers and from its requests in \
            flight",
        served: "the same, with measured latencies",
        draws: "the two targets of each attempt",
        example: examples::POLICIES,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may("decay", "a duration", "10*s", "how fast the average falls"),
        may("default_rtt", "a duration", "30*ms", "the assumed cost of a target before its first answer"),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let decay_ns = call.positive_duration("decay").unwrap_or(10_000_000_000);
    let default_rtt_ns = call.positive_duration("default_rtt").unwrap_or(30_000_000);
    let targets = targets(call);
    balancer(call, targets, Balance::PeakEwma(PeakEwmaArgs { decay_ns, default_rtt_ns }), None)
}
