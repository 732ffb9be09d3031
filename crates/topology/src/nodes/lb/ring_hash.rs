//! `lb.ring_hash(targets, key=key.header("x-user"), bound=None)`: the target of the request's key on a ring.

use super::common::{COMMON, balancer, hashed, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_policy::config::{Balance, RingHashArgs};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.ring_hash",
    about: Description {
        group: Group::Balance,
        meaning: "Sends equal keys to one target, found on a ring of hashes.",
        simulated: "the target of the request's key, unless that target is excluded or at its `bound`",
        served: "the same; a request without the key is sent at random",
        draws: "nothing where there is a key",
        example: examples::HASHED,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may("key", "key.header(...) or the like", "key.header(\"x-user\")", "the key to hash"),
        may(
            "bound",
            "1 or more, or None",
            "None",
            "a target holds at most this many times the mean \
                load; `1.25`: a quarter more",
        ),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (key, bound) = hashed(call);
    let targets = targets(call);
    balancer(call, targets, Balance::RingHash(RingHashArgs { bound }), key)
}
