//! `change.join`, `leave`, `scale`, `unlist`, `rolling`: what happens to a fleet during a run.

use super::{Arg, Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::{ChangeValue, FleetValue};
use starlark::values::ValueLike;
use weir_plan::{Change, ChangeKind, First, Leavers, NodeId, Spec};

pub(super) static FUNCTIONS: [Function; 5] = [
    Function {
        name: "change.join",
        about: about("New members join a fleet.", "k newcomers: cold, empty, unknown to every balancer"),
        args: &[FLEET, AT, may("k", "1 or more", "1", "how many")],
        more: &[],
        make: join,
    },
    Function {
        name: "change.leave",
        about: about(
            "Members leave a fleet.",
            "they are listed no more and take no new requests; what is inside goes on to its end",
        ),
        args: &[
            FLEET,
            AT,
            may("k", "1 or more", "1", "how many"),
            may("which", "\"oldest\" | \"newest\" | \"random\"", "\"oldest\"", "which of them"),
        ],
        more: &[],
        make: leave,
    },
    Function {
        name: "change.scale",
        about: about(
            "A fleet gets another size.",
            "the newest leave, or newcomers join, until there are `to`",
        ),
        args: &[FLEET, AT, need("to", "0 or more", "how many members there are then")],
        more: &[],
        make: scale,
    },
    Function {
        name: "change.unlist",
        about: about(
            "A registry forgets members of a fleet for a while, though they are up.",
            "that share of them, drawn, is not listed from `at` for `lasts`",
        ),
        args: &[
            FLEET,
            AT,
            need("lasts", "a duration", "for how long"),
            may("share", "above 0, up to 1", "1.0", "which share of the members; one at least"),
        ],
        more: &[],
        make: unlist,
    },
    Function {
        name: "change.rolling",
        about: about(
            "The members of a fleet are replaced batch by batch, as a deploy does it.",
            "a batch at once, one each `every`: newcomers join and the old leave, or the other way round",
        ),
        args: &[
            FLEET,
            AT,
            may("batch", "1 or more", "1", "how many at once"),
            may("every", "a duration", "10*s", "from one batch to the next"),
            may("first", "\"join\" | \"leave\"", "\"join\"", "what a batch does first"),
            may("which", "\"oldest\" | \"random\"", "\"oldest\"", "which members go first"),
            may(
                "into",
                "a fleet or None",
                "None",
                "the fleet of the newcomers (another version); `None`: the same",
            ),
        ],
        more: &[],
        make: rolling,
    },
];

const fn about(meaning: &'static str, simulated: &'static str) -> Description {
    Description {
        group: Group::Ask,
        meaning,
        simulated,
        served: "`weir verify` plays it at its instant; `weir serve` ignores it",
        draws: "which members, where they are drawn",
        example: examples::FLEET,
    }
}

const FLEET: Arg = need("fleet", "a fleet", "what changes");
const AT: Arg = need("at", "a duration", "when, from the start of the run");

fn join<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let k = count(call, "k", 1);
    change(call, k.map(|k| ChangeKind::Join { k }))
}

fn leave<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let k = count(call, "k", 1);
    let words = [
        ("oldest", Some(Leavers::Oldest)),
        ("newest", Some(Leavers::Newest)),
        ("random", Some(Leavers::Random)),
    ];
    let which = call.choice("which", &words).unwrap_or_default();
    change(call, k.map(|k| ChangeKind::Leave { k, which }))
}

fn scale<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let to = call.count("to", 0, u32::MAX);
    change(call, to.map(|to| ChangeKind::Scale { to }))
}

fn unlist<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let lasts_ns = call.positive_duration("lasts");
    let share = call.share("share").unwrap_or(1.0);
    if share == 0.0 && !call.failed() {
        call.wrong("`share` of `change.unlist` must be above 0: nothing would be forgotten");
    }
    change(call, lasts_ns.map(|lasts_ns| ChangeKind::Unlist { lasts_ns, share }))
}

fn rolling<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let batch = count(call, "batch", 1);
    let every_ns = call.duration("every").unwrap_or(10_000_000_000);
    let orders = [("join", Some(First::Join)), ("leave", Some(First::Leave))];
    let first = call.choice("first", &orders).unwrap_or_default();
    let words = [("oldest", Some(Leavers::Oldest)), ("random", Some(Leavers::Random))];
    let which = call.choice("which", &words).unwrap_or_default();
    let into = call.value_or_none("into").is_some().then(|| fleet(call, "into"));
    let into = match into {
        None => None,
        Some(None) => return Ok(None),
        Some(into) => into,
    };
    change(call, batch.map(|batch| ChangeKind::Rolling { batch, every_ns, first, which, into }))
}

/// A number of members, 1 or more.
fn count(call: &mut Call<'_, '_, '_, '_>, name: &str, default: u32) -> Option<u32> {
    match call.value(name) {
        None => Some(default),
        Some(_) => call.count(name, 1, u32::MAX),
    }
}

/// The node of a fleet.
fn fleet(call: &mut Call<'_, '_, '_, '_>, name: &str) -> Option<NodeId> {
    let value = call.value(name)?;
    let found = value.downcast_ref::<FleetValue>().map(|fleet| fleet.0);
    let is_weight =
        |id: NodeId| matches!(call.context.state.borrow().graph.spec(id), Some(Spec::Weight { .. }));
    match found {
        Some(id) if is_weight(id) => {
            let message = format!("{} must be the fleet itself, not its weight", call.describe(name));
            call.wrong_but(message, "give the fleet a variable, and name that");
            None
        }
        Some(id) => Some(id),
        None => {
            call.unfit_but(name, "a fleet", value, "write `apps = fleet(40, app)`, and name `apps` here");
            None
        }
    }
}

fn change<'v>(call: &mut Call<'v, '_, '_, '_>, what: Option<ChangeKind>) -> Outcome<'v> {
    let (fleet, at_ns) = (fleet(call, "fleet"), call.duration("at"));
    let (Some(fleet), Some(at_ns), Some(what)) = (fleet, at_ns, what) else { return Ok(None) };
    let at = call.location();
    let span = at.as_ref().map(|at| at.span()).unwrap_or_default();
    let change = Change { fleet, at_ns, what, span };
    Ok(Some(call.heap().alloc(ChangeValue((change, at)))))
}
