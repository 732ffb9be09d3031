//! Nodes: what each leads to, and what its arguments say of that.

use super::{listening, within};
use crate::ranges;
use crate::{Edge, Node, NodeId, Point, Spec};
use weir_policy::config::{Balance, MaglevArgs};

/// Checks all nodes of a point whose specs and lists are in order.
pub(super) fn check(p: &Point) -> Result<(), String> {
    let highest: Vec<NodeId> = p.lists.iter().map(|l| l.iter().copied().max().unwrap_or(0)).collect();
    for (i, node) in p.nodes.iter().enumerate() {
        let at = |field: &str| format!("nodes[{i}].{field}");
        within(at("site"), node.site, p.sites.len(), "site")?;
        within(at("spec"), node.spec, p.specs.len(), "spec")?;
        let spec = &p.specs[node.spec as usize];
        let last = match (leads(spec), node.to) {
            (Leads::Nowhere, Edge::None) => None,
            (Leads::ToOne, Edge::Node(next)) => Some(next),
            (Leads::ToList, Edge::List(list)) => {
                within(at("to"), list, p.lists.len(), "list")?;
                Some(highest[list as usize])
            }
            (wanted, _) => {
                return Err(format!("{}: a `{}` leads {}", at("to"), spec.kind(), wanted.words()));
            }
        };
        if let Some(last) = last.max(spec.aside()).filter(|last| *last as usize >= i) {
            return Err(format!(
                "{}: it leads to node {last}, and a node must come after all that it leads to (no cycles)",
                at("to")
            ));
        }
        if let Edge::List(list) = node.to {
            of_list(p, spec, &p.lists[list as usize]).map_err(|why| format!("nodes[{i}]: {why}"))?;
        }
    }
    listening::check(p)?;
    clairvoyant(p)?;
    gated(p)
}

/// The nodes that a kind of node leads to.
enum Leads {
    Nowhere,
    ToOne,
    ToList,
}

impl Leads {
    fn words(&self) -> &'static str {
        match self {
            Leads::Nowhere => "to nothing",
            Leads::ToOne => "to one node",
            Leads::ToList => "to a list",
        }
    }
}

fn leads(spec: &Spec) -> Leads {
    match spec {
        Spec::Server { .. } | Spec::Concurrent { .. } | Spec::Respond { .. } | Spec::Redirect { .. } => {
            Leads::Nowhere
        }
        Spec::Lb(_) | Spec::Sequence | Spec::Fanout { .. } | Spec::Route { .. } | Spec::Split { .. } => {
            Leads::ToList
        }
        Spec::Delay { .. }
        | Spec::Cable { .. }
        | Spec::Queue { .. }
        | Spec::Weight { .. }
        | Spec::Retry(_)
        | Spec::Faulty(_)
        | Spec::Timeout { .. }
        | Spec::Warmup(_)
        | Spec::Gate(_)
        | Spec::Flaky { .. }
        | Spec::Rate { .. }
        | Spec::Listen(_)
        | Spec::Rewrite(_)
        | Spec::Buffered { .. }
        | Spec::Fleet(_)
        | Spec::Connection(_)
        | Spec::Hedge(_) => Leads::ToOne,
    }
}

/// Checks the arguments that describe the list that a node leads to.
fn of_list(p: &Point, spec: &Spec, list: &[NodeId]) -> Result<(), String> {
    match spec {
        Spec::Lb(lb) => targets(p, &lb.balance, list),
        Spec::Fanout { need } if *need as usize > list.len() => {
            Err(format!("it needs {need} of {} nodes", list.len()))
        }
        Spec::Route { rules, otherwise } if rules.len() + usize::from(*otherwise) != list.len() => {
            let last = if *otherwise { " and one for what no rule matches" } else { "" };
            Err(format!("it has {} rules{last}, and {} nodes", rules.len(), list.len()))
        }
        Spec::Split { weights, .. } if weights.len() != list.len() => {
            Err(format!("it has {} weights for {} nodes", weights.len(), list.len()))
        }
        _ => Ok(()),
    }
}

fn targets(p: &Point, balance: &Balance, targets: &[NodeId]) -> Result<(), String> {
    let weight = |t: &NodeId| match p.nodes.get(*t as usize).and_then(|n| p.specs.get(n.spec as usize)) {
        Some(Spec::Weight { weight }) => *weight,
        _ => 1.0,
    };
    if targets.iter().all(|t| weight(t) == 0.0) {
        return Err("all targets have weight 0".to_owned());
    }
    match balance {
        Balance::RoundRobin(_) if targets.iter().any(|t| weight(t).fract() != 0.0) => {
            Err("`lb.round_robin` needs whole weights".to_owned())
        }
        Balance::Maglev(MaglevArgs { table_size, .. }) if (*table_size as usize) < targets.len() => {
            Err(format!("a table of {table_size} slots is too small for {} targets", targets.len()))
        }
        _ => {
            let weights: Vec<f64> = targets.iter().map(weight).collect();
            ranges::wrong_weights(balance, &weights).map_or(Ok(()), Err)
        }
    }
}

/// No balancer is behind the targets of an `lb.least_work`.
fn clairvoyant(p: &Point) -> Result<(), String> {
    let knows = |spec: &Spec| matches!(spec, Spec::Lb(lb) if lb.balance == Balance::LeastWork);
    match first_before(p, knows, |spec| matches!(spec, Spec::Lb(_))) {
        Some(i) => Err(format!("nodes[{i}]: `lb.least_work` has another balancer behind its targets")),
        None => Ok(()),
    }
}

/// A check is answered by one gate.
fn gated(p: &Point) -> Result<(), String> {
    let is_gate = |spec: &Spec| matches!(spec, Spec::Gate(_));
    match first_before(p, is_gate, is_gate) {
        Some(i) => Err(format!("nodes[{i}]: a `gate` has another one behind it")),
        None => Ok(()),
    }
}

/// The first node of one kind that has one of another kind behind it.
fn first_before(
    p: &Point,
    is_front: impl Fn(&Spec) -> bool,
    is_back: impl Fn(&Spec) -> bool,
) -> Option<usize> {
    if !p.specs.iter().any(&is_front) {
        return None;
    }
    // A node comes after all that it leads to: forwards, what is behind it is known.
    let mut leads: Vec<bool> = Vec::with_capacity(p.nodes.len());
    let mut lists: Vec<Option<bool>> = vec![None; p.lists.len()];
    for (i, node) in p.nodes.iter().enumerate() {
        let spec = &p.specs[node.spec as usize];
        let behind = behind(p, node, &leads, &mut lists) || aside_of_server(spec, &leads);
        if is_front(spec) && behind {
            return Some(i);
        }
        leads.push(behind || is_back(spec));
    }
    None
}

fn behind(p: &Point, node: &Node, picks: &[bool], lists: &mut [Option<bool>]) -> bool {
    let of = |id: NodeId| picks.get(id as usize).copied().unwrap_or(false);
    match node.to {
        Edge::None => false,
        Edge::Node(next) => of(next),
        Edge::List(list) => {
            *lists[list as usize].get_or_insert_with(|| p.lists[list as usize].iter().any(|t| of(*t)))
        }
    }
}

fn aside_of_server(spec: &Spec, picks: &[bool]) -> bool {
    let model = matches!(spec, Spec::Server { .. }).then(|| spec.aside()).flatten();
    model.is_some_and(|id| picks.get(id as usize).copied().unwrap_or(false))
}
