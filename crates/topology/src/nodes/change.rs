//! `change.join`, `leave`, `scale`, `unlist`, `rolling`, `down`, `set`: what happens to fleets and nodes during a run.

use super::{Arg, Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::{ChangeValue, FleetValue, NodeValue};
use starlark::values::ValueLike;
use weir_plan::ranges::{wrong_setting, wrong_weight};
use weir_plan::{Change, ChangeKind, First, Leavers, Mode, NodeId, Rollout, Spec, TargetState, Wait};

pub(super) static FUNCTIONS: [Function; 7] = [
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
            may(
                "first",
                "\"join\" | \"leave\" | \"in_place\"",
                "\"join\"",
                "what a batch does first; `in_place`: the same members stop, and begin anew under their address",
            ),
            may("which", "\"oldest\" | \"random\"", "\"oldest\"", "which members go first"),
            may(
                "into",
                "a fleet or None",
                "None",
                "the fleet of the newcomers (another version); `None`: the same",
            ),
            may("count", "1 or more, or None", "None", "how many members are replaced; `None`: all"),
            may("down", "a duration", "0*s", "in place: how long a member is stopped before it boots"),
            may(
                "unlist",
                "True | False",
                "True",
                "in place: whether balancers are told; `False`: checks and failures have to find out",
            ),
            may(
                "wait",
                "\"running\" | \"eligible\" or None",
                "None",
                "what the next batch waits for beside `every`: that newcomers run, or may be picked everywhere",
            ),
        ],
        more: &[],
        make: rolling,
    },
    Function {
        name: "change.down",
        about: Description {
            group: Group::Ask,
            meaning: "Nodes fail for a while: servers, a balancer, a zone.",
            simulated: "as `faulty` in that mode; no registry and no list changes",
            served: "nothing; `weir verify` refuses it",
            draws: "which nodes, where they are drawn",
            example: examples::LIFE,
        },
        args: &[
            need("nodes", "a node, a list of nodes and fleets, or a fleet", "what fails"),
            AT,
            may("lasts", "a duration or None", "None", "for how long; `None`: to the end"),
            may("k", "1 or more, or None", "None", "how many of them; `None`: all"),
            may("which", "\"oldest\" | \"newest\" | \"random\"", "\"oldest\"", "which of them"),
            may(
                "mode",
                "\"crash\" | \"refuse\" | \"blackhole\" | \"slow\"",
                "\"crash\"",
                "what happens to requests meanwhile",
            ),
            may("slow", "above 0", "10.0", "the factor of work in mode \"slow\""),
            may("checks", "\"fail\" | \"pass\"", "\"fail\"", "whether health checks notice"),
        ],
        more: &[],
        make: down,
    },
    Function {
        name: "change.set",
        about: Description {
            group: Group::Ask,
            meaning: "The operator sets the state or the weight of targets, as by `weir admin set`.",
            simulated: "at once at every balancer that has them as targets; `\"out\"`: as targets that left",
            served: "nothing; `weir verify` refuses it",
            draws: "which targets, where they are drawn",
            example: examples::LIFE,
        },
        args: &[
            need("nodes", "a node, a list of nodes and fleets, or a fleet", "the targets"),
            AT,
            may(
                "state",
                "\"up\" | \"drain\" | \"eject\" | \"out\" | \"file\" or None",
                "None",
                "`up` overrides checks, `out`: as if they were no targets, `file`: as before; `None`: it stays",
            ),
            may("weight", "0, or 0.001 to 1,000,000, or None", "None", "their weight; `None`: it stays"),
            may("lasts", "a duration or None", "None", "for how long; `None`: to the end"),
            may("k", "1 or more, or None", "None", "how many of them; `None`: all"),
            may("which", "\"oldest\" | \"newest\" | \"random\"", "\"oldest\"", "which of them"),
        ],
        more: &[],
        make: set,
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
    let which = leavers(call);
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
    let orders =
        [("join", Some(First::Join)), ("leave", Some(First::Leave)), ("in_place", Some(First::InPlace))];
    let first = call.choice("first", &orders).unwrap_or_default();
    let words = [("oldest", Some(Leavers::Oldest)), ("random", Some(Leavers::Random))];
    let which = call.choice("which", &words).unwrap_or_default();
    let into = call.value_or_none("into").is_some().then(|| fleet(call, "into"));
    let more = rollout(call, first, into.is_some());
    let into = match into {
        None => None,
        Some(None) => return Ok(None),
        Some(into) => into,
    };
    change(call, batch.map(|batch| ChangeKind::Rolling { batch, every_ns, first, which, into, more }))
}

/// What only some replacements have.
fn rollout(call: &mut Call<'_, '_, '_, '_>, first: First, has_into: bool) -> Rollout {
    let count = call.value_or_none("count").and_then(|_| call.count("count", 1, u32::MAX));
    let waits = [("running", Some(Wait::Running)), ("eligible", Some(Wait::Eligible))];
    let wait = call.value_or_none("wait").and_then(|_| call.choice("wait", &waits));
    let down_ns = call.duration("down");
    let is_unlisted = call.truth("unlist");
    let help = "write `first=\"in_place\"`, or leave it out";
    if first == First::InPlace && has_into {
        call.wrong_but(
            "`into` with `first=\"in_place\"`: the members stay, under their number and address",
            "leave `into` out, or write `first=\"leave\"`",
        );
    } else if first != First::InPlace && (down_ns.is_some_and(|ns| ns > 0) || is_unlisted == Some(false)) {
        let name = if down_ns.is_some_and(|ns| ns > 0) { "down" } else { "unlist=False" };
        call.wrong_but(format!("`{name}` without `first=\"in_place\"`: newcomers replace the members"), help);
    }
    Rollout { count, down_ns: down_ns.unwrap_or(0), is_unlisted: is_unlisted.unwrap_or(true), wait }
}

/// For how long a change of nodes lasts, how many of them it concerns, and which.
fn selection(call: &mut Call<'_, '_, '_, '_>) -> (Option<u64>, Option<u32>, Leavers) {
    let lasts_ns = call.value_or_none("lasts").and_then(|_| call.positive_duration("lasts"));
    let k = call.value_or_none("k").and_then(|_| call.count("k", 1, u32::MAX));
    (lasts_ns, k, leavers(call))
}

/// Which members or nodes a change concerns.
fn leavers(call: &mut Call<'_, '_, '_, '_>) -> Leavers {
    let words = [
        ("oldest", Some(Leavers::Oldest)),
        ("newest", Some(Leavers::Newest)),
        ("random", Some(Leavers::Random)),
    ];
    call.choice("which", &words).unwrap_or_default()
}

fn set<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let nodes = named(call, "change.set");
    let (lasts_ns, k, which) = selection(call);
    let states = ["up", "drain", "eject", "out", "file"];
    let of = [TargetState::Up, TargetState::Drain, TargetState::Eject, TargetState::Out, TargetState::File];
    let words: Vec<(&str, Option<TargetState>)> = states.into_iter().zip(of.map(Some)).collect();
    let state = call.value_or_none("state").and_then(|_| call.choice("state", &words));
    let weight = call.value_or_none("weight").and_then(|_| call.real("weight"));
    if !call.failed() {
        if let Some(why) = wrong_setting(state, weight, lasts_ns.is_some()) {
            call.wrong_but(format!("in `change.set`: {why}"), "write `state=\"drain\"` or `weight=0.5`");
        } else if let Some(why) = weight.and_then(wrong_weight) {
            let what = call.describe("weight");
            call.wrong(format!("{what} {why}"));
        }
    }
    let Some(nodes) = nodes else { return Ok(None) };
    made(call, nodes, ChangeKind::Set { state, weight, lasts_ns, k, which })
}

fn down<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let nodes = failing(call);
    let (lasts_ns, k, which) = selection(call);
    let modes = [
        ("crash", Some(Mode::Crash)),
        ("refuse", Some(Mode::Refuse)),
        ("blackhole", Some(Mode::Blackhole)),
        ("slow", Some(Mode::Slow)),
    ];
    let mode = call.choice("mode", &modes).unwrap_or(Mode::Crash);
    let slow = call.positive("slow");
    if slow.is_some() && mode != Mode::Slow && !call.failed() {
        call.warn(
            "`slow` of `change.down` has no effect: it is read in mode \"slow\" only",
            "write `mode=\"slow\"`, or leave `slow` out",
        );
    }
    let checks_pass =
        call.choice("checks", &[("fail", Some(false)), ("pass", Some(true))]).unwrap_or_default();
    let Some(nodes) = nodes else { return Ok(None) };
    let what = ChangeKind::Down { lasts_ns, k, which, mode, slow: slow.unwrap_or(10.0), checks_pass };
    made(call, nodes, what)
}

/// The nodes that fail: each at most once, and none that answers by itself.
fn failing(call: &mut Call<'_, '_, '_, '_>) -> Option<Vec<NodeId>> {
    let nodes = named(call, "change.down")?;
    for id in &nodes {
        let kind = match call.context.state.borrow().graph.spec(*id) {
            Some(Spec::Respond { .. }) => Some("respond"),
            Some(Spec::Redirect { .. }) => Some("redirect"),
            Some(Spec::Weight { .. }) => Some("weight"),
            _ => None,
        };
        if let Some(kind) = kind {
            let message = format!("`nodes` of `change.down` names a `{kind}`, which cannot fail");
            call.wrong_but(message, "name the node behind it, or a `server`");
            return None;
        }
    }
    Some(nodes)
}

/// The nodes that a change concerns: each at most once, and none of them a weight.
fn named(call: &mut Call<'_, '_, '_, '_>, function: &str) -> Option<Vec<NodeId>> {
    let one = call.value("nodes").and_then(|value| value.downcast_ref::<NodeValue>()).map(|node| node.0);
    let nodes = match one {
        Some(node) => vec![node],
        None => call.targets_at("nodes")?,
    };
    let is_weight = |id: &NodeId| {
        function == "change.set"
            && matches!(call.context.state.borrow().graph.spec(*id), Some(Spec::Weight { .. }))
    };
    if nodes.iter().any(is_weight) {
        let message = "`nodes` of `change.set` names a `weight`, which is no target";
        call.wrong_but(message, "name the node or fleet behind it");
        return None;
    }
    if (1..nodes.len()).any(|i| nodes[..i].contains(&nodes[i])) {
        call.wrong_but(format!("`nodes` of `{function}` names a node twice"), "leave one of them out");
        return None;
    }
    Some(nodes)
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
    let (Some(fleet), Some(what)) = (fleet(call, "fleet"), what) else { return Ok(None) };
    made(call, vec![fleet], what)
}

fn made<'v>(call: &mut Call<'v, '_, '_, '_>, nodes: Vec<NodeId>, what: ChangeKind) -> Outcome<'v> {
    let mut nodes = nodes.into_iter();
    let (Some(fleet), Some(at_ns)) = (nodes.next(), call.duration("at")) else { return Ok(None) };
    if call.failed() {
        return Ok(None);
    }
    let at = call.location();
    let span = at.as_ref().map(|at| at.span()).unwrap_or_default();
    let change = Change { fleet, others: nodes.collect(), at_ns, what, span };
    Ok(Some(call.heap().alloc(ChangeValue((change, at)))))
}
