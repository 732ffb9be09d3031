//! `traffic.closed(users, think)`: a fixed number of users; each thinks, sends a request, waits for its answer, and
//! thinks again.

use super::traffic::made;
use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome};
use weir_model::Traffic;
use weir_plan::ranges::MOST_USERS;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "traffic.closed",
    about: Description {
        group: Group::Ask,
        meaning: "A fixed number of users, each of which thinks, sends a request, waits for the answer \
            and thinks again: a closed loop.",
        simulated: "a user sends its next request a thinking time after the last answer, success or error",
        served: "nothing; `weir load` sends such requests",
        draws: "each thinking time",
        example: examples::CLOSED,
    },
    args: &[
        need("users", "1 or more", "how many"),
        need("think", "a duration or distribution", "the time between an answer and the next request"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (users, think) = (call.count("users", 1, MOST_USERS), call.dist("think"));
    let (Some(users), Some(think)) = (users, think) else { return Ok(None) };
    made(call, Traffic::Closed { users, think })
}
