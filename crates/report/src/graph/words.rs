//! The text in a box of a picture: the name of its nodes, their behaviour, and their number.

use super::fold::{Boxed, FoldedGraph, thousands};
use super::links::Link;
use crate::number::{duration, plain};
use std::collections::BTreeMap;
use weir_model::Dist;
use weir_plan::{Edge, NodeId, Point, RouteCondition, Spec};
use weir_policy::config::{Balance, LeastConnArgs, P2cArgs, Ties};

/// Words for every box.
pub(super) fn say(point: &Point, folded: &mut FoldedGraph, links: &BTreeMap<(usize, usize), Link>) {
    let mut ends: Vec<Vec<String>> = vec![Vec::new(); folded.boxes.len()];
    for (number, ends) in ends.iter_mut().enumerate() {
        let mut out = links.iter().filter(|((from, _), _)| *from == number).map(|(_, link)| link);
        if let (Some(link), None) = (out.next(), out.next()) {
            ends.extend(over(link));
        }
    }
    for ((_, to), link) in links.iter().filter(|(_, link)| link.shared > 1) {
        ends[*to].push(format!("shared by {}", thousands(link.shared)));
    }
    for (to, when) in branches(point, folded) {
        ends[to].insert(0, when);
    }
    for (to, fleet) in fleets(point, folded) {
        ends[to].push(fleet);
    }
    for (of, ends) in folded.boxes.iter_mut().zip(ends) {
        of.kind.clear();
        let (name, mut lines) = box_of(point, of);
        lines.extend(ends);
        (of.name, of.lines) = (name, Some(lines));
        of.title = title(point, of);
    }
}

/// The fleets that balancers have among their targets: the box of the members of each, its name and how many it begins
/// with.
fn fleets(point: &Point, folded: &FoldedGraph) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    let Some(fleets) = &point.fleets else { return found };
    let mut box_of = BTreeMap::new();
    for (number, of) in folded.boxes.iter().enumerate() {
        box_of.extend(of.nodes.iter().map(|node| (*node, number)));
    }
    for (list, targets) in (0..).zip(&point.lists) {
        let members = fleets.of_list(list).into_iter().flatten();
        for (target, member) in targets.iter().zip(members) {
            let (Some(number), Some(member)) = (box_of.get(target), member) else { continue };
            let fleet = &fleets.all[member.fleet as usize].fleet;
            let words = || format!("fleet {}, {} at the start", fleet.label, thousands(fleet.size as usize));
            found.entry(*number).or_insert_with(words);
        }
    }
    found
}

/// The branches of routes and splits: to which box each leads, and when or how often it is taken.
fn branches(point: &Point, folded: &FoldedGraph) -> Vec<(usize, String)> {
    /// Branches that are named in one box.
    const SHOWN: usize = 2;
    let mut box_of = vec![None; point.nodes.len()];
    for (number, of) in folded.boxes.iter().enumerate() {
        of.nodes.iter().for_each(|node| box_of[*node as usize] = Some(number));
    }
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for node in folded.boxes.iter().filter_map(|of| of.last().first()).map(|id| &point.nodes[*id as usize]) {
        let Edge::List(list) = node.to else { continue };
        let ways = point.lists[list as usize].iter().map(|next| box_of[*next as usize]);
        let taken: Vec<String> = match &point.specs[node.spec as usize] {
            Spec::Route { rules, .. } => rules
                .iter()
                .map(|rule| format!("if {}", condition(rule)))
                .chain(["otherwise".to_owned()])
                .collect(),
            Spec::Split { weights, .. } => {
                let all: f64 = weights.iter().sum();
                weights.iter().map(|weight| format!("{} %", number(100.0 * weight / all))).collect()
            }
            _ => continue,
        };
        for (to, when) in ways.zip(taken).filter_map(|(to, when)| Some((to?, when))) {
            found.entry(to).or_default().push(when);
        }
    }
    let shown = |all: Vec<String>| match all.len().saturating_sub(SHOWN) {
        0 => all.join("; "),
        more => format!("{}; {more} more", all[..SHOWN].join("; ")),
    };
    found.into_iter().map(|(to, all)| (to, shown(all))).collect()
}

/// A condition of a route in few words.
fn condition(rule: &RouteCondition) -> String {
    let RouteCondition { path, method, host, header, client, client_name } = rule;
    let headers: Vec<String> = header.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let all = [method, host, path, &headers, client, client_name].into_iter().filter(|part| !part.is_empty());
    all.map(|part| part.join("|")).collect::<Vec<_>>().join(" ")
}

/// Where in the file its first node was made; the folder of the file does not count.
fn title(point: &Point, of: &Boxed) -> String {
    let site = of.nodes.first().and_then(|id| point.sites.get(point.nodes[*id as usize].site as usize));
    site.map_or(String::new(), |site| {
        format!("{} ({})", site.label, site.span.rsplit('/').next().unwrap_or_default())
    })
}

/// The alternatives of a choice.
fn over(link: &Link) -> Option<String> {
    let n = match (link.least, link.most) {
        (_, 0 | 1) => return None,
        (least, most) if least == most => thousands(most),
        (least, most) => format!("{} to {}", thousands(least), thousands(most)),
    };
    let all = link.least == link.to;
    Some(match (link.from > 1, link.shared > 1) {
        (false, _) => format!("over {n}"),
        (true, true) if all => format!("each over the same {n}"),
        (true, true) => format!("each over {n}"),
        (true, false) => format!("each over {n} of its own"),
    })
}

/// Its name and its lines. A chain is called after the function of the file that made its first node.
fn box_of(point: &Point, of: &Boxed) -> (String, Vec<String>) {
    let count = of.nodes.len();
    let many = if count > 1 { format!(" × {}", thousands(count)) } else { String::new() };
    if of.behind.is_empty() {
        let what = what(point, &of.nodes);
        return match names(point, &of.nodes) {
            Some(name) => (name + &many, vec![what]),
            None => (what + &many, Vec::new()),
        };
    }
    let lines = std::iter::once(&of.nodes).chain(&of.behind).map(|nodes| line(point, nodes)).collect();
    let site = of.nodes.first().and_then(|id| point.sites.get(point.nodes[*id as usize].site as usize));
    let def = site.and_then(|site| point.places.get(site.place as usize)).map_or("", |place| &place.def);
    let def = if def.starts_with('<') { "" } else { def };
    ((def.to_owned() + &many).trim().to_owned(), lines)
}

/// A node of a chain.
fn line(point: &Point, nodes: &[NodeId]) -> String {
    let what = what(point, nodes);
    match names(point, nodes) {
        Some(name) if what == "server" => format!("server {name}"),
        // Listeners without a name are called after what they are.
        Some(name) if name.split('#').next() != what.split(' ').next() => format!("{name}: {what}"),
        _ => what,
    }
}

/// What the nodes are called: one name, or the first and the last.
fn names(point: &Point, nodes: &[NodeId]) -> Option<String> {
    let name = |id: &NodeId| point.nodes[*id as usize].name.as_deref();
    let (first, last) = (nodes.first().and_then(name)?, nodes.last().and_then(name)?);
    Some(if first == last { first.to_owned() } else { format!("{first} … {last}") })
}

/// A kind with its most important arguments, if all nodes have the same ones.
fn what(point: &Point, nodes: &[NodeId]) -> String {
    let mut specs = nodes.iter().map(|id| point.nodes[*id as usize].spec);
    let Some(first) = specs.next() else { return String::new() };
    let spec = &point.specs[first as usize];
    let kind = spec.kind();
    if specs.any(|other| other != first) {
        return kind.to_owned();
    }
    match detail(spec) {
        detail if detail.is_empty() => kind.to_owned(),
        detail => format!("{kind} {detail}"),
    }
}

fn detail(spec: &Spec) -> String {
    let or_none = |time: &Option<u64>| time.map_or("none".to_owned(), ns);
    match spec {
        Spec::Server { addr, .. } => addr.clone().unwrap_or_default(),
        Spec::Listen(listen) => listen.addr.clone(),
        Spec::Respond { status, .. } | Spec::Redirect { status, .. } => status.to_string(),
        Spec::Delay { time } => dist(time),
        Spec::Cable { time, loss, .. } if *loss > 0.0 => {
            format!("{}, {} % lost", dist(time), number(loss * 100.0))
        }
        Spec::Cable { time, .. } => dist(time),
        Spec::Queue { concurrency, capacity, .. } => {
            let at_once = (*concurrency > 1).then(|| format!("{concurrency} at once"));
            let waiting = capacity.map(|n| format!("{n} waiting"));
            [at_once, waiting].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
        Spec::Timeout { time_ns } => or_none(time_ns),
        Spec::Concurrent { work, cores, .. } => format!("{}, cores {}", dist(work), number(*cores)),
        Spec::Warmup(law) => format!("{} times at first", number(law.factor)),
        Spec::Gate(gate) => {
            gate.ramp_ns.map_or_else(|| "no ramp".to_owned(), |ramp| format!("ramp {}", ns(ramp)))
        }
        Spec::Flaky { p, kind } => format!("{} %: {}", number(p * 100.0), kind.name()),
        Spec::Fanout { need } => format!("needs {need}"),
        Spec::Weight { weight } => number(*weight),
        Spec::Rate { rate, .. } => format!("{}/s", number(rate.per_s)),
        Spec::Hedge(hedged) => format!("after {}", ns(hedged.hedge.after_ns)),
        Spec::Retry(retry) => format!("{} attempts", retry.attempts),
        Spec::Faulty(faulty) => format!("{} up, {} down", ns(faulty.mtbf_ns), ns(faulty.mttr_ns)),
        Spec::Lb(lb) => balance(&lb.balance),
        Spec::Rewrite(_)
        | Spec::Connection(_)
        | Spec::Fleet(_)
        | Spec::Buffered { .. }
        | Spec::Sequence
        | Spec::Route { .. }
        | Spec::Split { .. } => String::new(),
    }
}

fn balance(balance: &Balance) -> String {
    let ties = match balance {
        Balance::LeastConn(LeastConnArgs { ties, .. }) | Balance::P2c(P2cArgs { ties, .. }) => *ties,
        _ => Ties::Random,
    };
    match ties {
        Ties::Random => String::new(),
        Ties::First => "(ties: first)".to_owned(),
        Ties::Rotate => "(ties: rotate)".to_owned(),
    }
}

fn dist(time: &Dist) -> String {
    match time {
        Dist::Fixed { ns: time } => ns(*time),
        Dist::Exponential { mean_ns } => format!("exponential {}", ns(*mean_ns)),
        Dist::Uniform { low_ns, high_ns } => format!("{} to {}", ns(*low_ns), ns(*high_ns)),
        Dist::Lognormal { mean_ns, cv } => format!("lognormal {}, cv {}", ns(*mean_ns), number(*cv)),
        Dist::Pareto { minimum_ns, alpha } => format!("pareto {}, alpha {}", ns(*minimum_ns), number(*alpha)),
        Dist::Erlang { k, mean_ns } => format!("erlang {k}, {}", ns(*mean_ns)),
        Dist::Hyperexponential { phases } => format!("hyperexponential of {}", phases.len()),
        Dist::Empirical { source, .. } => format!("from {}", source.as_deref().unwrap_or("a list")),
        Dist::Sum { a, b } => format!("{} + {}", dist(a), dist(b)),
        Dist::Rounded { of, .. } => dist(of),
    }
}

fn ns(time: u64) -> String {
    duration(i64::try_from(time).unwrap_or(i64::MAX))
}

fn number(x: f64) -> String {
    plain(Some(x))
}
