//! `faulty(mtbf, mttr, node, clock="eager"|"lazy", mode="refuse"|"crash"|"blackhole"|"slow", ...)`: up and down by turns;
//! `block(mtbf, mttr, nodes, ...)`: several nodes that do so together.
//!
//! - In virtual time: while down, what enters is refused, swallowed or slowed down, or the process is dead (`crash`).
//! - In the proxy: only before built-in servers, or with `--inject`.
//! - Draws: the k-th period of a time-line; nodes of a block, and those with the same `together`, share one.

use super::{Function, may, need};
use crate::call::{Call, Outcome, list};
use crate::context::Shared;
use crate::diagnostic::At;
use crate::plan::{Clock, Faulty, Line, Mode, NodeId, Spec, To};
use crate::value::{NodeValue, show_ns};

pub(super) static FUNCTIONS: [Function; 2] = [
    Function {
        name: "faulty",
        args: &[
            need("mtbf"),
            need("mttr"),
            need("node"),
            may("clock"),
            may("mode"),
            may("slow"),
            may("starts"),
            may("checks"),
            may("together"),
            may("name"),
        ],
        more: &[],
        make: faulty,
    },
    Function {
        name: "block",
        args: &[
            need("mtbf"),
            need("mttr"),
            need("nodes"),
            may("mode"),
            may("clock"),
            may("slow"),
            may("starts"),
            may("checks"),
            may("name"),
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
    call.node(Spec::Faulty(law), To::Node(node))
}

/// The node; who gives several wants a `block`.
fn node(call: &mut Call<'_, '_, '_, '_>) -> Option<NodeId> {
    if call.value("node").is_some_and(|value| list(value).is_some()) {
        call.wrong_but(
            "`node` of `faulty` must be one node, and is a list",
            "several that fail together are a `block(mtbf, mttr, nodes)`; for each its own, wrap them one by one",
        );
        return None;
    }
    call.node_at("node")
}

/// A node around each of the nodes, all at one site and on one time-line.
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
        let id = call.add(site, Spec::Faulty(law.clone()), To::Node(node), name.clone())?;
        made.push(call.heap().alloc(NodeValue(id)));
    }
    Ok(Some(call.heap().alloc(made)))
}

/// The arguments that both take; the time-line is its own.
fn law(call: &mut Call<'_, '_, '_, '_>) -> Option<Faulty> {
    let (mtbf, mttr) = (call.positive_duration("mtbf"), call.positive_duration("mttr"));
    let clock = call
        .choice("clock", &[("eager", Some(Clock::Eager)), ("lazy", Some(Clock::Lazy))])
        .unwrap_or_default();
    let modes = [
        ("refuse", Some(Mode::Refuse)),
        ("crash", Some(Mode::Crash)),
        ("blackhole", Some(Mode::Blackhole)),
        ("slow", Some(Mode::Slow)),
    ];
    let mode = call.choice("mode", &modes).unwrap_or_default();
    let slow = call.positive("slow");
    if slow.is_some() && mode != Mode::Slow && !call.failed() {
        let message = format!("`slow` of `{}` has no effect: it is read in mode \"slow\" only", call.name());
        call.warn(message, "write `mode=\"slow\"`, or leave `slow` out");
    }
    let starts_up = call.choice("starts", &[("up", Some(true)), ("down", Some(false))]).unwrap_or(true);
    let checks_pass =
        call.choice("checks", &[("fail", Some(false)), ("pass", Some(true))]).unwrap_or_default();
    let (mtbf_ns, mttr_ns) = (mtbf?, mttr?);
    let (slow, line) = (slow.unwrap_or(10.0), Line::Own);
    Some(Faulty { mtbf_ns, mttr_ns, clock, mode, slow, starts_up, checks_pass, line })
}

fn together(call: &mut Call<'_, '_, '_, '_>) -> Option<String> {
    let name = call.text("together")?;
    if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
        call.wrong("`together` of `faulty` must be 1 to 200 printable characters");
        return None;
    }
    Some(name)
}

/// Nodes on one time-line have one clock, the same mean periods and the same start.
fn agree(call: &mut Call<'_, '_, '_, '_>, name: &str, law: &Faulty) {
    let at = call.span().map(|s| At::of(&s).span()).unwrap_or_default();
    let here = Shared { law: law.clone(), at };
    let before = call.context.state.borrow_mut().together.entry(name.to_owned()).or_insert(here).clone();
    let Some((argument, theirs, ours)) = differs(&before.law, law) else { return };
    call.wrong_but(
        format!(
            "the nodes together as \"{name}\" share one time-line, and `{argument}` is {ours} here but {theirs} at {}",
            before.at
        ),
        format!("give both the same `{argument}`, or another name to one of them"),
    );
}

/// The first argument of a time-line in which two differ, with its values in words.
pub(crate) fn differs(a: &Faulty, b: &Faulty) -> Option<(&'static str, String, String)> {
    let ns = |ns: u64| show_ns(i128::from(ns));
    let clock = |c: Clock| if c == Clock::Eager { "\"eager\"" } else { "\"lazy\"" }.to_owned();
    let starts = |up: bool| if up { "\"up\"" } else { "\"down\"" }.to_owned();
    if a.mtbf_ns != b.mtbf_ns {
        Some(("mtbf", ns(a.mtbf_ns), ns(b.mtbf_ns)))
    } else if a.mttr_ns != b.mttr_ns {
        Some(("mttr", ns(a.mttr_ns), ns(b.mttr_ns)))
    } else if a.clock != b.clock {
        Some(("clock", clock(a.clock), clock(b.clock)))
    } else if a.starts_up != b.starts_up {
        Some(("starts", starts(a.starts_up), starts(b.starts_up)))
    } else {
        None
    }
}
