//! `fleet(n, f, name=None, lag=0*s, life=None)`: members that come and go; also what `find.*` shares with it.

use super::life::{self, LIFE};
use super::pool::wants_index;
use super::{Arg, Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome, describe};
use crate::language::value::{FleetValue, NodeValue, Poison};
use starlark::values::ValueLike;
use weir_model::Dist;
use weir_plan::ranges::MOST_NODES;
use weir_plan::{Edge, Fleet, FleetSource, NodeId, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "fleet",
    about: Description {
        group: Group::Pass,
        meaning: "Targets that come and go while it runs: n members at the start, all alike.",
        simulated: "each member is a node of its own, as in a `pool`; `events` of the scenario change which there are",
        served: "n built-in servers; what a real one has is listed by `find.*`",
        draws: "nothing",
        example: examples::FLEET,
    },
    args: &[
        need("n", "0 or more", "how many members there are at the start"),
        need("f", "a function", "makes the node of a member; called once, as `f()`"),
        NAME,
        LAG,
        LIFE,
    ],
    more: &[],
    make,
}];

/// How much later a balancer sees a change.
pub(super) const LAG: Arg = may(
    "lag",
    "a duration or `dist.*(...)`",
    "0*s",
    "how much later a balancer sees a change, in a simulation: drawn by balancer and change",
);

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let size = call.count("n", 0, u32::MAX);
    let Some((first, root)) = template(call, "fleet(n, lambda: ...)")? else { return Ok(None) };
    let Some(size) = size else { return Ok(None) };
    if let Some(at) = addressed(call, first, root) {
        call.wrong_but(
            format!("a `server` with `addr` (at {at}) cannot be a member of a `fleet`: all members would have one address"),
            "leave `addr` out, or let a file list the addresses: `find.file(\"servers.json\", f)`",
        );
        return Ok(None);
    }
    add(call, size, first, root, None)
}

/// Calls the function; the first node that was made meanwhile, and the one that it returned. `usual` is how such
/// a call is written.
pub(super) fn template(
    call: &mut Call<'_, '_, '_, '_>,
    usual: &str,
) -> starlark::Result<Option<(NodeId, NodeId)>> {
    let Some(f) = call.value("f") else { return Ok(None) };
    let name = call.name();
    if f.downcast_ref::<NodeValue>().is_some() {
        let message =
            format!("`f` of `{name}` must be a function, not a node: each member would be that one node");
        call.wrong_but(message, format!("write `{usual}`"));
        return Ok(None);
    }
    match wants_index(f) {
        None => {
            call.unfit("f", "a function", f);
            return Ok(None);
        }
        Some(true) => {
            let message =
                format!("the function of `{name}` is called without an argument: all members are alike");
            call.wrong_but(message, "leave its argument out, or take `pool` where members differ");
            return Ok(None);
        }
        Some(false) => {}
    }
    let first = call.context.state.borrow().graph.len();
    let made = call.call_back(f, &[])?;
    if made.downcast_ref::<Poison>().is_some() {
        call.poison();
        return Ok(None);
    }
    let Some(root) = made.downcast_ref::<NodeValue>().map(|node| node.0) else {
        let message = format!("the function that `{name}` calls must return a node, not {}", describe(made));
        match made.is_none() {
            true => call.wrong_but(message, "is its `return` missing?"),
            false => call.wrong(message),
        }
        return Ok(None);
    };
    if root < first {
        let message =
            format!("the function of `{name}` must make the node that it returns: this one was made before");
        call.wrong_but(message, "call `server(...)` and its like inside of the function");
        return Ok(None);
    }
    let state = call.context.state.borrow();
    let has_fleet = (first..state.graph.len()).any(|id| matches!(state.graph.spec(id), Some(Spec::Fleet(_))));
    drop(state);
    if has_fleet {
        call.wrong(format!(
            "a fleet inside of the function of `{name}`: a member cannot have a fleet of its own"
        ));
        return Ok(None);
    }
    Ok(Some((first, root)))
}

/// Where a server of the template that has an address is.
fn addressed(call: &Call<'_, '_, '_, '_>, first: NodeId, root: NodeId) -> Option<String> {
    let state = call.context.state.borrow();
    let has_addr = |id: &NodeId| matches!(state.graph.spec(*id), Some(Spec::Server { addr: Some(_), .. }));
    let id = (first..=root).find(has_addr)?;
    let site = state.graph.node(id)?.site;
    Some(state.graph.describe(site).1.map(|at| at.span()).unwrap_or_default())
}

/// Adds the fleet whose template is the nodes from `first` to `root`.
pub(super) fn add<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    size: u32,
    first: NodeId,
    root: NodeId,
    source: Option<FleetSource>,
) -> Outcome<'v> {
    let lag = call.dist("lag").unwrap_or(Dist::Fixed { ns: 0 });
    let (name, life) = (call.name_or_none(), life::read(call));
    if call.failed() {
        return Ok(None);
    }
    let nodes = u64::from(size).saturating_mul(u64::from(root.saturating_sub(first)) + 1);
    if nodes > MOST_NODES as u64 {
        let message = format!(
            "a fleet of {size} is too large: its members would be {nodes} nodes, and {MOST_NODES} is the limit"
        );
        call.wrong_but(message, "begin with fewer members");
        return Ok(None);
    }
    let label = name.clone().unwrap_or_else(|| call.bound_name());
    // It has the site of the node that a balancer picks: the places of a file are those that it has with a `pool`.
    let site = call.context.state.borrow().graph.node(root).map_or(0, |node| node.site);
    let span = note_location(call);
    let fleet = Fleet { size, first, lag, source, life, label, span };
    let id = call.add(site, Spec::Fleet(fleet), Edge::Node(root), name)?;
    Ok(Some(call.heap().alloc(FleetValue(id))))
}

/// Notes where the call is, for messages about the fleet: the site of its node is that of what its function makes.
fn note_location(call: &Call<'_, '_, '_, '_>) -> String {
    let Some(at) = call.location() else { return String::new() };
    let span = at.span();
    call.context.state.borrow_mut().located.insert(span.clone(), at);
    span
}
