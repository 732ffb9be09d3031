//! `lagged(every)`: how late event loops see each other's counts.

use super::{Description, Function, Group, examples, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::ScopeValue;
use weir_plan::{LEAST_LAG_NS, Scope};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lagged",
    about: Description {
        group: Group::Balance,
        meaning: "A scope of a balancer: each event loop counts its own requests at once, and sees those of the others late.",
        simulated: "the counts of the other loops are those of the last multiple of `every` since the start",
        served: "the same; a loop reads them at its first pick after a multiple",
        draws: "nothing",
        example: examples::SCOPES,
    },
    args: &[need(
        "every",
        "a duration of 1 ms or more",
        "between two looks at the counts of the other loops",
    )],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(every_ns) = call.duration("every") else { return Ok(None) };
    if every_ns < LEAST_LAG_NS {
        let message = format!("{} must be 1 ms or more", call.describe("every"));
        call.wrong_but(message, "write `scope=\"process\"` for counts that are known at once");
        return Ok(None);
    }
    Ok(Some(call.heap().alloc(ScopeValue(Scope::Lagged { every_ns }))))
}
