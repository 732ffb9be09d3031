//! A plan read from a file is checked as a topology file would be: it may have been edited by hand.

use crate::evaluate::SCHEMA;
use crate::graph::MOST_NODES;
use crate::params::MOST_POINTS;
use crate::plan::{Faulty, NodeId, Plan, Point, Spec, To};
use std::collections::HashSet;
use weir_model::{Dist, Traffic};
use weir_policy::config::{Balance, Ties};
use weir_policy::round_robin::{GREATEST_SUM, is_too_long};

/// Checks everything that the evaluation of a file would have made sure of.
///
/// # Errors
/// The first thing that is wrong, with its place in the plan.
pub(crate) fn plan(plan: &Plan) -> Result<(), String> {
    if plan.schema != SCHEMA {
        return Err(format!("schema: \"{}\" is not \"{SCHEMA}\"", plan.schema));
    }
    if plan.points.is_empty() || plan.points.len() > MOST_POINTS {
        return Err(format!("points: there must be 1 to {MOST_POINTS}, and are {}", plan.points.len()));
    }
    for (i, p) in plan.points.iter().enumerate() {
        point(p).map_err(|why| format!("points[{i}].{why}"))?;
    }
    Ok(())
}

fn point(p: &Point) -> Result<(), String> {
    if p.nodes.len() > MOST_NODES {
        return Err(format!("nodes: there are more than {MOST_NODES}"));
    }
    let within = |what: String, index: u32, len: usize, of: &str| {
        if (index as usize) < len {
            Ok(())
        } else {
            Err(format!("{what}: there is no {of} {index} (there are {len})"))
        }
    };
    for (i, site) in p.sites.iter().enumerate() {
        within(format!("sites[{i}].place"), site.place, p.places.len(), "place")?;
    }
    let mut labels = HashSet::new();
    if let Some(twice) = p.sites.iter().find(|s| !labels.insert(s.label.as_str())) {
        return Err(format!("sites: two have the label \"{}\"", twice.label));
    }
    for (i, s) in p.specs.iter().enumerate() {
        spec(s).map_err(|why| format!("specs[{i}]: {why}"))?;
    }
    for (i, list) in p.lists.iter().enumerate() {
        if list.is_empty() {
            return Err(format!("lists[{i}]: a list of targets must not be empty"));
        }
        for target in list {
            within(format!("lists[{i}]"), *target, p.nodes.len(), "node")?;
        }
    }
    let highest: Vec<NodeId> = p.lists.iter().map(|l| l.iter().copied().max().unwrap_or(0)).collect();
    for (i, node) in p.nodes.iter().enumerate() {
        let at = |field: &str| format!("nodes[{i}].{field}");
        within(at("site"), node.site, p.sites.len(), "site")?;
        within(at("spec"), node.spec, p.specs.len(), "spec")?;
        let spec = &p.specs[node.spec as usize];
        let model = match spec {
            Spec::Server { model, .. } => *model,
            _ => None,
        };
        let last = match (node.to, spec) {
            (To::None, Spec::Server { .. } | Spec::Concurrent { .. }) => model,
            (
                To::Node(next),
                Spec::Delay { .. }
                | Spec::Cable { .. }
                | Spec::Queue { .. }
                | Spec::Weight { .. }
                | Spec::Retry(_)
                | Spec::Faulty(_)
                | Spec::Timeout { .. }
                | Spec::Warmup { .. }
                | Spec::Flaky { .. },
            ) => Some(next),
            (To::List(list), Spec::Lb(_) | Spec::Sequence | Spec::Fanout { .. }) => {
                within(at("to"), list, p.lists.len(), "list")?;
                Some(highest[list as usize])
            }
            (_, spec) => {
                let wanted = match spec {
                    Spec::Server { .. } | Spec::Concurrent { .. } => "to nothing",
                    Spec::Lb(_) | Spec::Sequence | Spec::Fanout { .. } => "to a list",
                    _ => "to one node",
                };
                return Err(format!("{}: a `{}` leads {wanted}", at("to"), spec.kind()));
            }
        };
        if let Some(last) = last
            && last as usize >= i
        {
            return Err(format!(
                "{}: it leads to node {last}, and a node must come after all that it leads to (no cycles)",
                at("to")
            ));
        }
        if let (Spec::Lb(lb), To::List(list)) = (spec, node.to) {
            weights(p, &lb.balance, &p.lists[list as usize]).map_err(|why| format!("nodes[{i}]: {why}"))?;
        }
    }
    scenarios(p)
}

fn weights(p: &Point, balance: &Balance, targets: &[NodeId]) -> Result<(), String> {
    let weight = |t: &NodeId| match &p.specs.get(p.nodes[*t as usize].spec as usize) {
        Some(Spec::Weight { weight }) => *weight,
        _ => 1.0,
    };
    if targets.iter().all(|t| weight(t) == 0.0) {
        return Err("all targets weigh 0".to_owned());
    }
    if matches!(balance, Balance::RoundRobin { .. }) {
        if targets.iter().any(|t| weight(t).fract() != 0.0) {
            return Err("`lb.round_robin` needs whole weights".to_owned());
        }
        if is_too_long(&targets.iter().map(weight).collect::<Vec<_>>()) {
            return Err(format!("unequal weights of `lb.round_robin` must add up to at most {GREATEST_SUM}"));
        }
    }
    Ok(())
}

fn scenarios(p: &Point) -> Result<(), String> {
    let mut names = HashSet::new();
    for (i, s) in p.scenarios.iter().enumerate() {
        let wrong = |field: &str, why: String| Err(format!("scenarios[{i}].{field}: {why}"));
        if s.name.is_empty() || !names.insert(s.name.as_str()) {
            return wrong("name", format!("\"{}\" is empty or taken", s.name));
        }
        if s.root as usize >= p.nodes.len() {
            return wrong("root", format!("there is no node {}", s.root));
        }
        if s.requests.is_none_or(|n| n == 0 || n > 1_000_000_000_000) {
            return wrong("requests", "must be 1 to 1000000000000".to_owned());
        }
        if s.deadline_ns == 0 {
            return wrong("deadline_ns", "must be above 0".to_owned());
        }
        match &s.traffic {
            Traffic::Poisson { gap_ns } | Traffic::Constant { gap_ns }
                if !(*gap_ns > 0.0 && *gap_ns <= 1e19) =>
            {
                return wrong(
                    "traffic",
                    format!("the gap must be above 0 and at most 1e19 ns, and is {gap_ns}"),
                );
            }
            Traffic::Renewal { gap } => {
                if let Err(why) = dist(gap) {
                    return wrong("traffic", why);
                }
                if gap.mean_ns() == Some(0.0) {
                    return wrong("traffic", "the gap is always 0".to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn spec(spec: &Spec) -> Result<(), String> {
    match spec {
        Spec::Delay { time } | Spec::Cable { time, .. } => dist(time),
        Spec::Queue { concurrency: 0, .. } => Err("concurrency must be at least 1".to_owned()),
        Spec::Weight { weight } if !(weight.is_finite() && *weight >= 0.0) => {
            Err(format!("a weight must be finite and not negative, and is {weight}"))
        }
        Spec::Retry(retry) if retry.attempts == 0 || retry.attempts > 1_000_000 => {
            Err("attempts must be 1 to 1000000".to_owned())
        }
        Spec::Faulty(Faulty { mtbf_ns, mttr_ns, .. }) => {
            duration(*mtbf_ns)?;
            duration(*mttr_ns)?;
            if *mtbf_ns == 0 || *mttr_ns == 0 {
                Err("mtbf and mttr must be above 0".to_owned())
            } else {
                Ok(())
            }
        }
        Spec::Lb(lb) => {
            duration(lb.pass_over_ns)?;
            policy(&lb.balance)
        }
        _ => Ok(()),
    }
}

fn policy(balance: &Balance) -> Result<(), String> {
    match balance {
        Balance::LeastConn { error_hold_ns, .. } => duration(*error_hold_ns),
        Balance::P2c { choices, ties, error_hold_ns, bias, .. } => {
            duration(*error_hold_ns)?;
            if *choices == 0 || *choices > 1_000_000 {
                Err("choices must be 1 to 1000000".to_owned())
            } else if *ties == Ties::Rotate {
                Err("`lb.p2c` has no ties \"rotate\"".to_owned())
            } else if !(bias.is_finite() && *bias >= 0.0) {
                Err(format!("bias must be finite and not negative, and is {bias}"))
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

fn duration(ns: u64) -> Result<(), String> {
    if i64::try_from(ns).is_ok() { Ok(()) } else { Err(format!("{ns} ns is longer than 292 years")) }
}

fn dist(d: &Dist) -> Result<(), String> {
    match d {
        Dist::Fixed { ns } => duration(*ns),
        Dist::Exponential { mean_ns } => duration(*mean_ns),
        Dist::Uniform { low_ns, high_ns } => {
            duration(*high_ns)?;
            if low_ns > high_ns { Err("low is greater than high".to_owned()) } else { Ok(()) }
        }
        Dist::Lognormal { mean_ns, cv } => {
            duration(*mean_ns)?;
            if (0.0..=1e6).contains(cv) {
                Ok(())
            } else {
                Err(format!("cv must be 0 to 1000000, and is {cv}"))
            }
        }
        Dist::Pareto { minimum_ns, alpha } => {
            duration(*minimum_ns)?;
            if alpha.is_finite() && *alpha > 0.0 {
                Ok(())
            } else {
                Err(format!("alpha must be finite and above 0, and is {alpha}"))
            }
        }
        Dist::Erlang { k, mean_ns } => {
            duration(*mean_ns)?;
            if (1..=1_000_000).contains(k) {
                Ok(())
            } else {
                Err(format!("k must be 1 to 1000000, and is {k}"))
            }
        }
        Dist::Hyperexponential { phases } => {
            phases.iter().try_for_each(|(_, mean)| duration(*mean))?;
            let total: f64 = phases.iter().map(|p| p.0).sum();
            let fit = phases.iter().all(|(p, _)| (0.0..=1.0).contains(p)) && (total - 1.0).abs() <= 1e-9;
            if fit {
                Ok(())
            } else {
                Err("the probabilities must be between 0 and 1 and add up to 1".to_owned())
            }
        }
        Dist::Empirical { values_ns, .. } => {
            if values_ns.is_empty() {
                return Err("an empirical distribution needs at least one value".to_owned());
            }
            values_ns.iter().try_for_each(|v| duration(*v))
        }
        // The reader of JSON bounds the depth.
        Dist::Sum { a, b } => dist(a).and_then(|()| dist(b)),
        Dist::Rounded { of, to_ns } => {
            dist(of)?;
            duration(*to_ns)?;
            if *to_ns == 0 { Err("`to` must be above 0".to_owned()) } else { Ok(()) }
        }
    }
}
