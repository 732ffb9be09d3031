//! What a reload changes, in words (`docs/spec/operating.md#reload-result`): each kind of change has its own.
//!
//! Nodes are compared by identity. A node that is in both generations has changed if its arguments differ, or if it
//! leads elsewhere; the numbers of nodes shift with every line of the file and mean nothing.

use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use crate::nodes::lb::Shape;
use crate::threads::generation::Generation;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_plan::{Edge, Lb, Point, SourceKind, Spec, label};

/// The most names of one kind of change; the others are counted.
const MOST_NAMES: usize = 5;

/// The changes, in a sentence: `+2 -1 targets, 1 weight, listener edge: certificate`. `is_same`: both have one hash.
pub(super) fn sentence(before: &Generation, now: &Generation, is_same: bool) -> String {
    let mut all = Vec::new();
    let counted = now.blueprint.changes;
    if counted.added + counted.removed > 0 {
        let of = if counted.added + counted.removed == 1 { "" } else { "s" };
        all.push(format!("+{} -{} target{of}", counted.added, counted.removed));
    }
    listeners(before, now, &mut all);
    match weights(before, now) {
        0 => {}
        1 => all.push("1 weight".to_owned()),
        n => all.push(format!("{n} weights")),
    }
    all.extend(NodeChanges::between(&before.blueprint, &now.blueprint).words());
    all.extend(sources(&before.blueprint.point, &now.blueprint.point));
    // Certificates alone are no change of the file.
    let is_silent = all.is_empty();
    if now.confs.values().any(|conf| conf.tls.is_some()) {
        all.push("certificates read again".to_owned());
    }
    match (is_silent, is_same) {
        (true, true) => all.insert(0, "the same topology".to_owned()),
        (true, false) => all.insert(0, "other settings".to_owned()),
        (false, _) => {}
    }
    all.join(", ")
}

fn listeners(before: &Generation, now: &Generation, all: &mut Vec<String>) {
    for (number, conf) in &now.confs {
        let Some(was) = before.confs.get(number) else {
            all.push(format!("listener {}: new", conf.name));
            continue;
        };
        let (was, now) = (&was.listen, &conf.listen);
        let differences = [
            (was.http != now.http, "http"),
            (was.tls != now.tls, "certificate"),
            (was.protocol != now.protocol, "protocol"),
            (was.loops != now.loops, "loops"),
        ];
        for (_, word) in differences.iter().filter(|(differs, _)| *differs) {
            all.push(format!("listener {}: {word}", conf.name));
        }
    }
    let gone = before.confs.iter().filter(|(number, _)| !now.confs.contains_key(number));
    all.extend(gone.map(|(_, conf)| format!("listener {}: removed", conf.name)));
}

/// Fleets that have another source than before, of which the hash does not have every argument: paths are left out.
fn sources(before: &Point, now: &Point) -> Option<String> {
    fn by_name(point: &Point) -> BTreeMap<&str, &SourceKind> {
        let all = point.sourced();
        all.filter_map(|(_, fleet)| Some((&*fleet.label, &fleet.source.as_ref()?.from))).collect()
    }
    let (before, now) = (by_name(before), by_name(now));
    let other = now.iter().filter(|(name, source)| before.get(*name).is_some_and(|was| was != *source));
    let names: BTreeSet<String> = other.map(|(name, _)| (*name).to_owned()).collect();
    listed("another source of fleet", &names)
}

/// The first names behind a word, the others counted; `None`: there is none.
fn listed(word: &str, names: &BTreeSet<String>) -> Option<String> {
    let mut shown: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
    let more = format!("{} more", names.len().saturating_sub(shown.len()));
    if names.len() > MOST_NAMES {
        shown.push(&more);
    }
    let (last, others) = shown.split_last()?;
    Some(match others {
        [] => format!("{word} {last}"),
        others => format!("{word} {} and {last}", others.join(", ")),
    })
}

/// The number of remaining targets with another weight.
fn weights(before: &Generation, now: &Generation) -> usize {
    fn lbs(generation: &Generation) -> BTreeMap<u32, Arc<Shape>> {
        let blueprint = &generation.blueprint;
        let ids = 0..blueprint.point.nodes.len() as NodeId;
        let lb = ids.filter(|id| matches!(blueprint.spec(*id), Spec::Lb(_)));
        lb.map(|id| (blueprint.id(id).0, blueprint.shape(id))).collect()
    }
    let (before, now) = (lbs(before), lbs(now));
    let differ = |(lb, shape): (&u32, &Arc<Shape>)| {
        let was = before.get(lb).map_or(&[][..], |was| &was.weights);
        // 0: no target; added and removed ones are counted as such.
        shape.weights.iter().zip(was).filter(|(now, was)| now != was && **now > 0.0 && **was > 0.0).count()
    };
    now.iter().map(differ).sum()
}

/// A node of one generation.
#[derive(Clone, Copy)]
struct PlannedNode<'a> {
    blueprint: &'a Blueprint,
    id: NodeId,
}

/// The names of changed nodes by the word for the change.
#[derive(Default)]
struct NodeChanges {
    routes: bool,
    named: BTreeMap<&'static str, BTreeSet<String>>,
    added: usize,
    removed: usize,
}

impl NodeChanges {
    fn between(before: &Blueprint, now: &Blueprint) -> NodeChanges {
        let mut changes = NodeChanges::default();
        let (mut was, targets) = (by_identity(before), nodes_of_targets(now));
        for id in 0..now.point.nodes.len() as NodeId {
            match was.remove(&now.id(id).0) {
                Some(old) => {
                    let was = PlannedNode { blueprint: before, id: old };
                    changes.compare(was, PlannedNode { blueprint: now, id }, targets.contains(&id));
                }
                None if is_structure(now, id) && !targets.contains(&id) => changes.added += 1,
                None => {}
            }
        }
        let targets = nodes_of_targets(before);
        let gone = was.values().filter(|id| is_structure(before, **id) && !targets.contains(*id));
        changes.removed = gone.count();
        changes
    }

    /// Notes what differs between a node and the same one before.
    fn compare(&mut self, before: PlannedNode<'_>, now: PlannedNode<'_>, is_of_target: bool) {
        let name = label(&now.blueprint.point, now.id);
        let (was, is) = (before.blueprint.spec(before.id), now.blueprint.spec(now.id));
        match (was, is) {
            (Spec::Route { .. }, Spec::Route { .. }) => self.routes |= was != is,
            (Spec::Split { weights: was, key: by }, Spec::Split { weights: is, key }) => {
                self.note(was != is, "shares of", &name);
                self.note(by != key, "key of", &name);
            }
            (Spec::Lb(was), Spec::Lb(is)) => self.balancers(was, is, &name),
            // Listeners have their words, and a weight is counted at its balancer.
            (Spec::Listen(_), _) | (Spec::Weight { .. }, _) => {}
            // Models are nodes of their own.
            (Spec::Server { origin: was, .. }, Spec::Server { origin: is, .. }) => {
                self.note(was != is, "settings of", &name);
            }
            _ => self.note(was != is, "settings of", &name),
        }
        if is_of_target {
            return;
        }
        let (led, leads) = (ways(before.blueprint, before.id), ways(now.blueprint, now.id));
        match is {
            Spec::Route { .. } => self.routes |= led != leads,
            Spec::Lb(_) => {
                let (mut sorted_before, mut sorted) = (led.clone(), leads.clone());
                sorted_before.sort_unstable();
                sorted.sort_unstable();
                self.note(led != leads && sorted_before == sorted, "order of", &name);
            }
            _ => self.note(led != leads, "way of", &name),
        }
    }

    fn balancers(&mut self, was: &Lb, is: &Lb, name: &str) {
        self.note(was.balance != is.balance, "policy of", name);
        self.note(was.key != is.key, "key of", name);
        self.note(was.health != is.health, "health of", name);
        self.note((&was.eject, &was.outlier) != (&is.eject, &is.outlier), "ejection of", name);
        let limits = |lb: &Lb| (lb.max_in_flight, lb.max_connections, lb.max_waiting, lb.wait_timeout_ns);
        self.note(limits(was) != limits(is), "limits of", name);
        // The number of the spare node means nothing; where it leads is compared as a way.
        let rest = |lb: &Lb| Lb {
            health: None,
            eject: None,
            outlier: None,
            key: None,
            spare: None,
            max_in_flight: None,
            max_connections: None,
            max_waiting: None,
            wait_timeout_ns: None,
            balance: is.balance.clone(),
            ..lb.clone()
        };
        self.note(rest(was) != rest(is), "settings of", name);
    }

    fn note(&mut self, differs: bool, word: &'static str, name: &str) {
        if differs {
            self.named.entry(word).or_default().insert(name.to_owned());
        }
    }

    fn words(self) -> Vec<String> {
        let mut all = Vec::new();
        if self.routes {
            all.push("routes".to_owned());
        }
        all.extend(self.named.iter().filter_map(|(word, names)| listed(word, names)));
        if self.added + self.removed > 0 {
            let of = if self.added + self.removed == 1 { "" } else { "s" };
            all.push(format!("+{} -{} node{of}", self.added, self.removed));
        }
        all
    }
}

fn by_identity(blueprint: &Blueprint) -> BTreeMap<u32, NodeId> {
    (0..blueprint.point.nodes.len() as NodeId).map(|id| (blueprint.id(id).0, id)).collect()
}

/// Whether it is counted as a node: listeners and targets are counted as such.
fn is_structure(blueprint: &Blueprint, id: NodeId) -> bool {
    !matches!(blueprint.spec(id), Spec::Server { .. } | Spec::Listen(_) | Spec::Weight { .. })
}

/// Targets of balancers, and the nodes between a balancer and its target: both are counted as targets.
fn nodes_of_targets(blueprint: &Blueprint) -> BTreeSet<NodeId> {
    let mut all = BTreeSet::new();
    for id in
        (0..blueprint.point.nodes.len() as NodeId).filter(|id| matches!(blueprint.spec(*id), Spec::Lb(_)))
    {
        for target in blueprint.list(id) {
            let mut at = *target;
            // The node behind has a lower number, so this ends.
            while all.insert(at) {
                match blueprint.point.nodes[at as usize].to {
                    Edge::Node(next) => at = next,
                    _ => break,
                }
            }
        }
    }
    // A balancer or a route behind a balancer is a node all the same.
    all.retain(|id| !matches!(blueprint.point.nodes[*id as usize].to, Edge::List(_)));
    all
}

/// The identities that a node leads to.
fn ways(blueprint: &Blueprint, id: NodeId) -> Vec<u32> {
    let next = match blueprint.point.nodes[id as usize].to {
        Edge::None => Vec::new(),
        Edge::Node(next) => vec![next],
        Edge::List(list) => blueprint.point.lists[list as usize].clone(),
    };
    let spare = if let Spec::Lb(lb) = blueprint.spec(id) { lb.spare } else { None };
    let as_target = matches!(blueprint.spec(id), Spec::Lb(_));
    let key = |id: &NodeId| match as_target {
        true => blueprint.keys.targets[*id as usize],
        false => blueprint.keys.nodes[*id as usize],
    };
    next.iter().map(key).chain(spare.map(|id| blueprint.keys.nodes[id as usize])).collect()
}
