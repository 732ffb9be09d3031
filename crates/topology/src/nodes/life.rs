//! `life(boot=0*s, drain=None, on_term="drain"|"exit", grace=30*s)`: how the members of a fleet begin and end.

use super::{Arg, Description, Function, Group, examples, may};
use crate::language::call::{Call, Outcome};
use crate::language::value::LifeValue;
use weir_model::Dist;
use weir_model::process::{Life, OnTerm};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "life",
    about: Description {
        group: Group::Model,
        meaning: "How the members of a fleet begin and end: each is a process.",
        simulated: "a newcomer boots before it is listed; a member that is to go is listed no more, gets SIGTERM once \
            each balancer has seen that and nothing is inside, `drain` later at the latest, and is killed `grace` after \
            that",
        served: "nothing",
        draws: "how long a process boots",
        example: examples::LIFE,
    },
    args: &[
        may("boot", "a duration or distribution", "0*s", "from the change until the process runs"),
        may(
            "drain",
            "a duration or None",
            "None",
            "how long it waits at most until nothing is inside; `None`: without limit",
        ),
        may(
            "on_term",
            "\"drain\" | \"exit\"",
            "\"drain\"",
            "what SIGTERM does: `drain`: new connections are refused, what is inside goes on; `exit`: that fails \
                with `reset`",
        ),
        may("grace", "a duration", "30*s", "from SIGTERM until it is killed"),
    ],
    more: &[],
    make,
}];

/// `life=` of a fleet.
pub(super) const LIFE: Arg = may(
    "life",
    "`life(...)` or None",
    "None",
    "how members begin and end in a simulation; `None`: at once, and when nothing is inside",
);

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let boot = call.dist("boot").unwrap_or(Dist::Fixed { ns: 0 });
    let drain_ns = if call.value_or_none("drain").is_some() { call.duration("drain") } else { None };
    let words = [("drain", Some(OnTerm::Drain)), ("exit", Some(OnTerm::Exit))];
    let on_term = call.choice("on_term", &words).unwrap_or_default();
    let grace_ns = call.duration("grace").unwrap_or(30_000_000_000);
    if call.failed() {
        return Ok(None);
    }
    Ok(Some(call.heap().alloc(LifeValue(Life { boot, drain_ns, on_term, grace_ns }))))
}

/// The `life=` of a fleet.
pub(super) fn read(call: &mut Call<'_, '_, '_, '_>) -> Option<Life> {
    let help = "write `life=life(boot=30*s)`";
    call.made::<LifeValue>("life", "what `life(...)` returns, or None", help).map(|life| life.0.clone())
}
