//! `lb.ring_hash(targets, key=key.header("x-user"), bound=None)`: the target of the request's key on a ring.
//!
//! - In virtual time: equal keys go to one target, unless it is left out or at its `bound`.
//! - In the proxy: the same; without a key at random.
//! - Draws: nothing where there is a key.

use super::common::{COMMON, balancer, hashed, targets};
use crate::call::{Call, Outcome};
use crate::nodes::{Function, may, need};
use weir_policy::config::Balance;

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.ring_hash",
    args: &[need("targets"), may("key"), may("bound")],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (key, bound) = hashed(call);
    let targets = targets(call);
    balancer(call, targets, Balance::RingHash { bound }, key)
}
