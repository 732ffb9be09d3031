//! `lb.first(targets)`: the first that is eligible; the others are its hot spares.

use super::common::{COMMON, balancer, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, need};
use weir_policy::config::Balance;

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.first",
    about: Description {
        group: Group::Balance,
        meaning: "Picks the first target that is eligible; the others are its hot spares.",
        simulated: "all requests go to the first target until it is down, full or left out",
        served: "the same",
        draws: "nothing",
        example: examples::POLICIES,
    },
    args: &[need("targets", "a list of nodes", "the targets to pick from")],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let targets = targets(call);
    balancer(call, targets, Balance::First, None)
}
