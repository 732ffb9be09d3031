//! `traffic.closed(users, think)`: so many users; each thinks, sends a request, waits for its answer, and thinks again.
//!
//! - In virtual time: a user's next request comes a thinking time after the last answer, whatever it was.
//! - In the proxy: nothing; `weir load` sends so.
//! - Draws: each thinking time, by user and how-manyth request.

use super::traffic::made;
use super::{Function, need};
use crate::call::{Call, Outcome};
use weir_model::Traffic;

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "traffic.closed", args: &[need("users"), need("think")], more: &[], make }];

/// Each user has a state of its own in the simulator.
pub(crate) const MOST_USERS: u32 = 10_000_000;

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (users, think) = (call.count("users", 1, MOST_USERS), call.dist("think"));
    let (Some(users), Some(think)) = (users, think) else { return Ok(None) };
    made(call, Traffic::Closed { users, think })
}
