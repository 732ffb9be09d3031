//! `lb.zuul(targets, load="x-load", decay=30*s, max_load=None)`: Netflix's choice of two, by failures, reported load and
//! requests in flight.

use super::common::{COMMON, balancer, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_plan::http;
use weir_policy::config::{Balance, ZuulArgs};
use weir_policy::zuul::field::LOAD_FIELD;

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.zuul",
    about: Description {
        group: Group::Balance,
        meaning: "Draws two targets and picks the better by failures, by the load that they report in a field \
            of their answers, and by its own requests in flight: Netflix's choice of two. A target that was not \
            heard from yet gets one request at a time.",
        simulated: "a target's answer reports the share of its slots or cores that are busy as it leaves; \
            without a queue and without `concurrent` it reports nothing",
        served: "the load is read in the field: `0.37`, ORCA's `TEXT cpu_utilization=0.37` (where \
            `application_utilization` comes first), or `37, target=80`, which is percent. More than 1 counts as \
            1, and what cannot be read changes nothing. Built-in servers write the field",
        draws: "the two targets of each attempt",
        example: examples::POLICIES,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may(
            "load",
            "the name of a field",
            "\"x-load\"",
            "the field of an answer that reports the target's load",
        ),
        may(
            "decay",
            "a duration",
            "30*s",
            "after so long without an answer, failures and load of a target count as nothing",
        ),
        may(
            "max_load",
            "0 to 1, or None",
            "None",
            "targets with more load are avoided while others are left",
        ),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    if call.is_none("load") {
        let message = format!("{} must be the name of a field, not None", call.describe("load"));
        call.wrong_but(message, "leave it out: targets that do not send it count as idle");
    }
    let load = call.word("load", http::own_field).map(|name| name.to_ascii_lowercase());
    let load = load.unwrap_or_else(|| LOAD_FIELD.to_owned());
    let decay_ns = call.positive_duration("decay").unwrap_or(30_000_000_000);
    let max_load = if call.is_none("max_load") { None } else { call.share("max_load") };
    let targets = targets(call);
    balancer(call, targets, Balance::Zuul(ZuulArgs { load, decay_ns, max_load }), None)
}
