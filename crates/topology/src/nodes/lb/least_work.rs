//! `lb.least_work(targets)`: the target with the least work left, which only a simulation can know: a lower bound.

use super::common::{COMMON, balancer, targets};
use crate::language::call::{Call, Outcome};
use crate::language::graph::Graph;
use crate::nodes::{Description, Function, Group, examples, need};
use std::collections::HashSet;
use weir_plan::{Edge, NodeId, Spec};
use weir_policy::config::Balance;

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.least_work",
    about: Description {
        group: Group::Balance,
        meaning: "Picks the target with the least work left, which only a simulation can know: a \
                lower bound for every policy.",
        simulated: "the work of all requests picked for a target and not yet done, less what has \
                been served, whichever balancer picked them; work that was not foreseen (a further attempt, \
                a slowdown of the server) counts once it begins. A target with a balancer behind it is an \
                error, and one with a `route`, `split`, `fanout` or `hedge` is not built yet",
        served: "refused, except in a `model` or a built-in server",
        draws: "ties",
        example: examples::LEAST_WORK,
    },
    args: &[need("targets", "a list of nodes", "the targets to pick from")],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let targets = targets(call);
    let is_balancer = |spec: &Spec| matches!(spec, Spec::Lb(_));
    let behind =
        targets.as_ref().and_then(|t| first_behind(&call.context.state.borrow().graph, t, is_balancer));
    if let Some((kind, at)) = behind {
        call.wrong_but(
            format!(
                "`lb.least_work` cannot know the work left at a target with a balancer behind it (`{kind}` at {at}): \
                 that one has not picked yet"
            ),
            "let its targets lead to servers without another balancer",
        );
    }
    balancer(call, targets, Balance::LeastWork, None)
}

/// The first node of a kind among these nodes and behind them: its kind, and its place.
pub(in crate::nodes) fn first_behind(
    graph: &Graph,
    nodes: &[NodeId],
    is_wanted: impl Fn(&Spec) -> bool,
) -> Option<(String, String)> {
    let mut open: Vec<NodeId> = nodes.to_vec();
    let mut seen: HashSet<NodeId> = HashSet::new();
    let mut lists: HashSet<u32> = HashSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(node) = graph.node(id) else { continue };
        match graph.spec(id) {
            Some(spec) if is_wanted(spec) => {
                let at = graph.describe(node.site).1.map(|at| at.span()).unwrap_or_default();
                return Some((spec.kind().to_owned(), at));
            }
            Some(Spec::Server { model: Some(model), .. }) => open.push(*model),
            _ => {}
        }
        match node.to {
            Edge::None => {}
            Edge::Node(next) => open.push(next),
            Edge::List(list) if lists.insert(list) => {
                open.extend(graph.lists().get(list as usize).into_iter().flatten());
            }
            Edge::List(_) => {}
        }
    }
    None
}
