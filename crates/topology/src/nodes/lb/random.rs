//! `lb.random(targets)`: a target at random, by weight.

use super::common::{COMMON, balancer, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, need};
use weir_policy::config::Balance;

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.random",
    about: Description {
        group: Group::Balance,
        meaning: "Picks a target at random, by weight.",
        simulated: "a request goes to the target that the policy picks, and the policy gets its outcome and \
            duration",
        served: "the same objects decide, one per event loop unless `scope=\"process\"`",
        draws: "each pick",
        example: examples::POLICIES,
    },
    args: &[need("targets", "a list of nodes", "the targets to pick from")],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let targets = targets(call);
    balancer(call, targets, Balance::Random, None)
}
