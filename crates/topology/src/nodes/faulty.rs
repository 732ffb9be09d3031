//! `faulty(mtbf, mttr, node, clock="eager"|"lazy", mode="refuse"|"crash"|"blackhole"|"slow"|"pause", ...)`: alternates
//! between up and down; `block(mtbf, mttr, nodes, ...)`: several nodes that do so together.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome, list};
use crate::language::context::Shared;
use crate::language::value::{DistValue, NodeValue};
use starlark::values::ValueLike;
use weir_model::Dist;
use weir_plan::ranges::differs;
use weir_plan::{Clock, Edge, Faulty, Line, Mode, NodeId, Spec};

pub(super) static FUNCTIONS: [Function; 2] = [
    Function {
        name: "faulty",
        about: Description {
            group: Group::Model,
            meaning: "A node that fails: it alternates between up and down.",
            simulated: "while it is down, a request that enters is refused, broken off, swallowed or \
                slowed down (`mode`); requests already inside finish, except in the modes `crash` and `pause`",
            served: "in front of built-in servers, or with `--inject`",
            draws: "each period",
            example: examples::FAULTY,
        },
        args: &[
            need(
                "mtbf",
                "a duration or distribution",
                "time up: a duration is the mean of an \
                exponential, a distribution is used as it is (`dist.fixed(10*s)`)",
            ),
            need("mttr", "a duration or distribution", "time down, in the same way"),
            need("node", "a node", "the next node"),
            may(
                "clock",
                "\"eager\" | \"lazy\"",
                "\"eager\"",
                "`eager`: on a timeline of its own, independent of the traffic; `lazy`: checked only when \
                    a request enters, as in the posts",
            ),
            may(
                "mode",
                "\"refuse\" | \"crash\" | \"blackhole\" | \"slow\" | \"pause\"",
                "\"refuse\"",
                "what happens to a request while it is down: `refused` at once; a killed process, which \
                    also breaks requests inside; silence; longer work; or a pause of the whole process, as for garbage \
                    collection: what is inside stands still, and what enters waits",
            ),
            may("slow", "above 0", "10.0", "the factor of work in mode \"slow\""),
            may("starts", "\"up\" | \"down\"", "\"up\"", "the state at the start"),
            may(
                "checks",
                "\"fail\" | \"pass\"",
                "\"fail\"",
                "whether health checks notice; `pass`: they succeed all the same",
            ),
            may("together", "a string", "None", "nodes with the same word share one timeline"),
            NAME,
        ],
        more: &[],
        make: faulty,
    },
    Function {
        name: "block",
        about: Description {
            group: Group::Model,
            meaning: "Several nodes that are up and down together: a rack, a zone. Returns the list of \
                nodes.",
            simulated: "as `faulty`, all on one timeline",
            served: "in front of built-in servers, or with `--inject`",
            draws: "each period, once for all",
            example: examples::BLOCK,
        },
        args: &[
            need(
                "mtbf",
                "a duration or distribution",
                "time up: a duration is the mean of an \
                exponential, a distribution is used as it is (`dist.fixed(10*s)`)",
            ),
            need("mttr", "a duration or distribution", "time down, in the same way"),
            need("nodes", "a list of nodes", "what fails together"),
            may(
                "mode",
                "\"refuse\" | \"crash\" | \"blackhole\" | \"slow\" | \"pause\"",
                "\"refuse\"",
                "what happens to a request while it is down: `refused` at once; a killed process, which \
                    also breaks requests inside; silence; longer work; or a pause of the whole process, as for garbage \
                    collection: what is inside stands still, and what enters waits",
            ),
            may(
                "clock",
                "\"eager\" | \"lazy\"",
                "\"eager\"",
                "`eager`: on a timeline of its own, independent of the traffic; `lazy`: checked only when \
                    a request enters, as in the posts",
            ),
            may("slow", "above 0", "10.0", "the factor of work in mode \"slow\""),
            may("starts", "\"up\" | \"down\"", "\"up\"", "the state at the start"),
            may(
                "checks",
                "\"fail\" | \"pass\"",
                "\"fail\"",
                "whether health checks notice; `pass`: they succeed all the same",
            ),
            NAME,
        ],
        more: &[],
        make: block,
    },
];

fn faulty<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let law = law(call);
    let together = together(call);
    let node = node(call);
    let (Some(mut law), Some(node)) = (law, node) else { return Ok(None) };
    if let Some(name) = together {
        agree(call, &name, &law);
        law.line = Line::Together(name);
    }
    call.node(Spec::Faulty(law), Edge::Node(node))
}

/// The node; for several nodes there is `block`.
fn node(call: &mut Call<'_, '_, '_, '_>) -> Option<NodeId> {
    if call.value("node").is_some_and(|value| list(value).is_some()) {
        call.wrong_but(
            "`node` of `faulty` must be one node, not a list",
            "for nodes that fail together write `block(mtbf, mttr, nodes)`; for independent failures wrap \
                them one by one",
        );
        return None;
    }
    call.node_at("node")
}

/// A node around each of the nodes, all at one site and on one timeline.
fn block<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let law = law(call);
    let nodes = call.nodes_at("nodes");
    let name = call.name_or_none();
    let (Some(mut law), Some(nodes)) = (law, nodes) else { return Ok(None) };
    if call.failed() {
        return Ok(None);
    }
    law.line = Line::Block(call.context.state.borrow_mut().next_block());
    let site = call.site("block", "");
    let mut made = Vec::with_capacity(nodes.len());
    for node in nodes {
        let id = call.add(site, Spec::Faulty(law.clone()), Edge::Node(node), name.clone())?;
        made.push(call.heap().alloc(NodeValue(id)));
    }
    Ok(Some(call.heap().alloc(made)))
}

/// The arguments that both take; the timeline is its own.
fn law(call: &mut Call<'_, '_, '_, '_>) -> Option<Faulty> {
    let (mtbf, mttr) = (time(call, "mtbf"), time(call, "mttr"));
    let clock = call
        .choice("clock", &[("eager", Some(Clock::Eager)), ("lazy", Some(Clock::Lazy))])
        .unwrap_or_default();
    let modes = [
        ("refuse", Some(Mode::Refuse)),
        ("crash", Some(Mode::Crash)),
        ("blackhole", Some(Mode::Blackhole)),
        ("slow", Some(Mode::Slow)),
        ("pause", Some(Mode::Pause)),
    ];
    let mode = call.choice("mode", &modes).unwrap_or_default();
    let slow = call.positive("slow");
    if slow.is_some() && mode != Mode::Slow && !call.failed() {
        let message = format!("`slow` of `{}` has no effect: it is read in mode \"slow\" only", call.name());
        call.warn(message, "write `mode=\"slow\"`, or leave `slow` out");
    }
    if mode == Mode::Pause && clock == Clock::Lazy && !call.failed() {
        let message =
            format!("`clock=\"lazy\"` of `{}` cannot pause: it follows requests, not time", call.name());
        call.wrong_but(message, "leave `clock` out");
    }
    let starts_up = call.choice("starts", &[("up", Some(true)), ("down", Some(false))]).unwrap_or(true);
    let checks_pass =
        call.choice("checks", &[("fail", Some(false)), ("pass", Some(true))]).unwrap_or_default();
    let ((mtbf_ns, up), (mttr_ns, down)) = (mtbf?, mttr?);
    let (slow, line) = (slow.unwrap_or(10.0), Line::Own);
    Some(Faulty { mtbf_ns, mttr_ns, up, down, clock, mode, slow, starts_up, checks_pass, line })
}

/// A mean, ns, and the distribution where it is not exponential.
fn time(call: &mut Call<'_, '_, '_, '_>, name: &str) -> Option<(u64, Option<Dist>)> {
    let Some(dist) = call.value(name).and_then(|v| v.downcast_ref::<DistValue>()).map(|d| d.0.clone()) else {
        return Some((call.positive_duration(name)?, None));
    };
    // An infinite mean is accepted: it is long.
    let mean =
        dist.mean_ns().filter(|m| m.is_finite()).unwrap_or(i64::MAX as f64).min(i64::MAX as f64) as u64;
    if mean == 0 {
        let message = format!("{} must be longer than 0, but its mean is 0", call.describe(name));
        call.wrong(message);
        return None;
    }
    match dist {
        Dist::Exponential { mean_ns } => Some((mean_ns, None)),
        dist => Some((mean, Some(dist))),
    }
}

fn together(call: &mut Call<'_, '_, '_, '_>) -> Option<String> {
    let name = call.text("together")?;
    if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
        call.wrong("`together` of `faulty` must be 1 to 200 printable characters");
        return None;
    }
    Some(name)
}

/// Nodes on one timeline have one clock, the same mean periods and the same start.
fn agree(call: &mut Call<'_, '_, '_, '_>, name: &str, law: &Faulty) {
    let at = call.location().map(|at| at.span()).unwrap_or_default();
    let here = Shared { law: law.clone(), at };
    let before = call.context.state.borrow_mut().together.entry(name.to_owned()).or_insert(here).clone();
    let Some((argument, theirs, ours)) = differs(&before.law, law) else { return };
    call.wrong_but(
        format!(
            "all nodes with `together=\"{name}\"` share one timeline, but `{argument}` is {ours} here and \
                {theirs} at {}",
            before.at
        ),
        format!("give both the same `{argument}`, or give one of them another name"),
    );
}
