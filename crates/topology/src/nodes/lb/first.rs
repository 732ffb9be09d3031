//! `lb.first(targets)`: the first that is eligible; the others are its hot spares.
//!
//! - In virtual time: all requests go to the first target until it is down, full or left out.
//! - In the proxy: the same.
//! - Draws: nothing.

use super::common::{COMMON, balancer, targets};
use crate::call::{Call, Outcome};
use crate::nodes::{Function, need};
use weir_policy::config::Balance;

pub(crate) static FUNCTIONS: [Function; 1] =
    [Function { name: "lb.first", args: &[need("targets")], more: &COMMON, make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let targets = targets(call);
    balancer(call, targets, Balance::First, None)
}
