//! `route([(when(...), node), ...], otherwise=None)`: the first rule that matches.

use super::shadowed::{Shadow, shadows};
use super::traffic::pairs;
use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::{NodeValue, Poison, WhenValue};
use starlark::values::{Value, ValueLike};
use weir_plan::{Edge, NodeId, RouteCondition, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "route",
    about: Description {
        group: Group::Pass,
        meaning: "Sends each request to the node of the first rule that matches it.",
        simulated: "a request that no rule matches goes to `otherwise`, or fails with `no_route`",
        served: "the same; `no_route` is 404",
        draws: "nothing",
        example: examples::ROUTES,
    },
    args: &[
        need(
            "rules",
            "a list of (when(...), node)",
            "conditions with their nodes; the first that matches applies",
        ),
        may("otherwise", "a node", "None", "the node for requests that no rule matches"),
        NAME,
    ],
    more: &[],
    make,
}];

const SHAPE: &str = "write `route([(when(path=\"/api/*\"), a)], otherwise=b)`";

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let found = pairs(call, "rules", "(when(...), node)", SHAPE);
    let otherwise = match call.value_or_none("otherwise") {
        Some(_) => call.node_at("otherwise"),
        None => None,
    };
    let Some(found) = found else { return Ok(None) };
    let (mut rules, mut nodes) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
    for (i, pair) in found.into_iter().enumerate() {
        let Some([condition, node]) = pair else { continue };
        if let Some((rule, node)) = condition_of(call, i, condition).zip(node_of(call, "rules", i, node)) {
            rules.push(rule);
            nodes.push(node);
        }
    }
    if call.failed() {
        return Ok(None);
    }
    shadowed(call, &rules);
    nodes.extend(otherwise);
    let list = call.context.state.borrow_mut().graph.list(nodes);
    call.node(Spec::Route { rules, otherwise: otherwise.is_some() }, Edge::List(list))
}

/// The condition of rule i.
fn condition_of<'v>(call: &mut Call<'v, '_, '_, '_>, i: usize, value: Value<'v>) -> Option<RouteCondition> {
    if let Some(when) = value.downcast_ref::<WhenValue>() {
        return Some(when.0.clone());
    }
    if value.downcast_ref::<Poison>().is_some() {
        call.poison();
        return None;
    }
    call.unfit_but(&format!("rules[{i}][0]"), "a condition", value, "write `when(path=\"/api/*\")`");
    None
}

/// The node of item i of a list of pairs.
pub(super) fn node_of<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    name: &str,
    i: usize,
    value: Value<'v>,
) -> Option<NodeId> {
    if let Some(node) = value.downcast_ref::<NodeValue>() {
        return Some(node.0);
    }
    if value.downcast_ref::<Poison>().is_some() {
        call.poison();
    } else {
        call.unfit(&format!("{name}[{i}][1]"), "a node", value);
    }
    None
}

/// Warns of rules that an earlier one leaves nothing to match, or only requests without a path.
fn shadowed(call: &mut Call<'_, '_, '_, '_>, rules: &[RouteCondition]) {
    for (i, shadow) in shadows(rules).into_iter().enumerate() {
        let what = match shadow {
            Some(Shadow::Whole(before)) => {
                let why = match &rules[before] {
                    all if all.is_universal() => "matches every request",
                    same if *same == rules[i] => "is the same",
                    _ => "matches all that it matches",
                };
                format!("never applies: `rules[{before}]` {why}")
            }
            Some(Shadow::Paths(before)) => format!(
                "applies to requests without a path alone, such as `OPTIONS *`: `rules[{before}]` matches all others that it matches"
            ),
            None => continue,
        };
        call.warn(
            format!("`rules[{i}]` of `route` {what}, and the first rule that matches applies"),
            "put it before that one, or leave it out",
        );
    }
}
