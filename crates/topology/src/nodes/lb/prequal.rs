//! `lb.prequal(targets, probes=3, pool=16, age=1*s, q_rif=0.84, remove=1, delta=1.0, probe_cost=0*s)`: by probes of
//! requests in flight and latency.

use super::common::{COMMON, around, place, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_plan::Lb;
use weir_plan::ranges::{MOST_KEPT, MOST_PROBES};
use weir_policy::config::{Balance, PrequalArgs};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.prequal",
    about: Description {
        group: Group::Balance,
        meaning: "Picks by what targets report about themselves in answer to probes: requests in flight, and \
            the median latency of the latest answers to requests that met about as many.",
        simulated: "each request sends probes to a few targets. A probe crosses the target's cables and \
            reports what it finds there, which counts once the probe is back: at once without cables, for \
            later picks otherwise. A probe with a `probe_cost` is work: it waits in the target's queues and \
            keeps \
                its server busy, as a health check does",
        served: "probes are answered at once, with what this process has in flight at the target and how \
            long \
            its answers took; no server is involved, so `probe_cost` has no effect",
        draws: "which targets to probe, which of equal ones to pick, and the pick if there are too few \
            answers",
        example: examples::POLICIES,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may("probes", "above 0", "3", "probes per request (a fraction: on average)"),
        may("pool", "1 to 1000", "16", "how many answers are kept"),
        may("age", "a duration", "1*s", "how old an answer may be"),
        may(
            "q_rif",
            "0 to 1",
            "0.84",
            "the quantile of requests in flight above which a target \
                counts as hot",
        ),
        may("remove", "0 or more", "1", "answers removed per request (a fraction: on average)"),
        may("delta", "0 or more", "1.0", "how many more answers come in than are used"),
        may("probe_cost", "a duration", "0*s", "what a probe costs a target's server (simulated)"),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let probes = call.positive("probes").unwrap_or(3.0);
    if probes > MOST_PROBES && !call.failed() {
        let message = format!("{} must be at most {MOST_PROBES}, not {probes}", call.describe("probes"));
        call.wrong(message);
    }
    let pool = call.count("pool", 1, MOST_KEPT).unwrap_or(16);
    let age_ns = call.positive_duration("age").unwrap_or(1_000_000_000);
    let q_rif = call.share("q_rif").unwrap_or(0.84);
    let remove = call.not_negative("remove").unwrap_or(1.0);
    let delta = call.not_negative("delta").unwrap_or(1.0);
    let targets = targets(call);
    let probe_cost_ns = call.duration("probe_cost").unwrap_or(0);
    let lb = around(call, Balance::Prequal(PrequalArgs { probes, pool, age_ns, q_rif, remove, delta }), None);
    place(call, targets, Lb { probe_cost_ns, ..lb })
}
