//! What must hold of fleets before their members can be made.

use super::{schedule, templates};
use crate::ranges::{MOST_NODES, wrong_setting, wrong_weight};
use crate::reach::Reach;
use crate::{Change, ChangeKind, Edge, Mode, NodeId, Point, Rollout, Scenario, Spec};

/// The first node with which something is wrong, and what; in a point before its members are made.
pub fn misplaced(p: &Point) -> Option<(NodeId, String)> {
    let templates = templates(p);
    if templates.is_empty() {
        return None;
    }
    let mut inside: Vec<Option<NodeId>> = vec![None; p.nodes.len()];
    for (range, fleet) in &templates {
        let root = p.nodes[*fleet as usize].to;
        if !matches!(root, Edge::Node(root) if range.contains(&root)) {
            return Some((*fleet, "its members are not made by its function".to_owned()));
        }
        for id in range.clone() {
            if inside[id as usize].replace(*fleet).is_some() || matches!(p.spec(id), Some(Spec::Fleet(_))) {
                return Some((id, "a fleet is inside of another".to_owned()));
            }
        }
    }
    let hidden =
        |root: NodeId| inside[root as usize].is_some() || matches!(p.spec(root), Some(Spec::Fleet(_)));
    if let Some(scenario) = p.scenarios.iter().find(|s| hidden(s.root)) {
        return Some((scenario.root, format!("scenario \"{}\" begins inside of a fleet", scenario.name)));
    }
    let stands_for_many = many(p);
    let lists = lists_of_balancers(p);
    for id in 0..p.nodes.len() as NodeId {
        if let Some(why) = leads_wrong(p, id, &inside, &stands_for_many, &lists) {
            return Some((id, why));
        }
    }
    None
}

/// The nodes that stand for all members of a fleet: the fleet's own, and its weight.
fn many(p: &Point) -> Vec<bool> {
    let mut many = vec![false; p.nodes.len()];
    for (id, node) in p.nodes.iter().enumerate() {
        many[id] = match (p.spec(id as NodeId), node.to) {
            (Some(Spec::Fleet(_)), _) => true,
            (Some(Spec::Weight { .. }), Edge::Node(next)) => {
                many.get(next as usize).copied().unwrap_or(false)
            }
            _ => false,
        };
    }
    many
}

/// The lists that balancers pick from, and no other node uses.
fn lists_of_balancers(p: &Point) -> Vec<bool> {
    let mut of = vec![true; p.lists.len()];
    for (id, node) in p.nodes.iter().enumerate() {
        if let Edge::List(list) = node.to
            && !matches!(p.spec(id as NodeId), Some(Spec::Lb(_)))
        {
            of[list as usize] = false;
        }
    }
    of
}

fn leads_wrong(
    p: &Point,
    id: NodeId,
    inside: &[Option<NodeId>],
    many: &[bool],
    lists: &[bool],
) -> Option<String> {
    let node = &p.nodes[id as usize];
    if matches!(p.spec(id), Some(Spec::Fleet(_))) {
        return None;
    }
    let own = inside[id as usize];
    let leaks = |to: NodeId| inside[to as usize].is_some_and(|fleet| own != Some(fleet));
    let aside = p.spec(id).and_then(Spec::aside);
    let (next, list): (Option<NodeId>, &[NodeId]) = match node.to {
        Edge::None => (None, &[]),
        Edge::Node(next) => (Some(next), &[]),
        Edge::List(list) => (None, &p.lists[list as usize]),
    };
    if next.into_iter().chain(aside).chain(list.iter().copied()).any(leaks) {
        return Some("it leads to a node inside of a fleet, of which each member has its own".to_owned());
    }
    let weighs = matches!(p.spec(id), Some(Spec::Weight { .. }));
    let is_many = |id: NodeId| many[id as usize];
    let one = next.filter(|_| !weighs).into_iter().chain(aside).any(is_many);
    let among = match node.to {
        Edge::List(of) if !lists[of as usize] => list.iter().copied().any(is_many),
        _ => false,
    };
    (one || among).then(|| "it leads to a fleet: only a balancer picks among members".to_owned())
}

/// The first balancer with a fleet twice among its targets; in a point before members are made, of which nothing is
/// misplaced.
pub fn doubled(p: &Point) -> Option<NodeId> {
    let many = many(p);
    let fleet = |mut id: NodeId| {
        while let (Some(Spec::Weight { .. }), Edge::Node(next)) = (p.spec(id), p.nodes[id as usize].to) {
            id = next;
        }
        id
    };
    (0..).zip(&p.nodes).find_map(|(id, node)| {
        let Edge::List(list) = node.to else { return None };
        let targets = p.lists[list as usize].iter().copied();
        let mut fleets: Vec<NodeId> = targets.filter(|id| many[*id as usize]).map(fleet).collect();
        fleets.sort_unstable();
        fleets.windows(2).any(|pair| pair[0] == pair[1]).then_some(id)
    })
}

/// The fleet whose members are the most nodes.
pub fn largest(p: &Point) -> Option<NodeId> {
    let nodes = |template: &std::ops::Range<NodeId>, id: NodeId| {
        let size = if let Some(Spec::Fleet(fleet)) = p.spec(id) { fleet.size } else { 0 };
        u64::from(size) * template.len() as u64
    };
    templates(p).into_iter().max_by_key(|(template, id)| nodes(template, *id)).map(|(_, id)| id)
}

/// What is wrong with the changes of a scenario: the number of the change, and a sentence.
///
/// # Errors
/// All that is surely wrong.
pub fn changes(p: &Point, scenario: &Scenario) -> Result<(), Vec<(usize, String)>> {
    let schedule = schedule(p, &scenario.events)?;
    let reach = Reach::new(p, scenario.root);
    let wrong =
        scenario.events.iter().enumerate().filter_map(|(i, change)| {
            Some((i, range(change.what).or_else(|| cannot_fail(p, &reach, change))?))
        });
    let wrong: Vec<(usize, String)> = wrong.collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    match too_many(p, &schedule.newcomers) {
        Some(why) => Err(vec![(scenario.events.len().saturating_sub(1), why)]),
        None => Ok(()),
    }
}

/// Why nodes cannot fail, or be set, by a change: one is inside of a fleet's members, or no request comes to it.
fn cannot_fail(p: &Point, reach: &Reach, change: &Change) -> Option<String> {
    let (ChangeKind::Down { .. } | ChangeKind::Set { .. }) = change.what else { return None };
    let templates = templates(p);
    change.nodes().find_map(|id| {
        if templates.iter().any(|(nodes, _)| nodes.contains(&id)) {
            return Some(
                "it names a node inside of a fleet, of which each member has its own: name the fleet"
                    .to_owned(),
            );
        }
        reach
            .index(id)
            .is_none()
            .then(|| "no request of the scenario comes to a node that it names".to_owned())
    })
}

fn range(what: ChangeKind) -> Option<String> {
    match what {
        ChangeKind::Join { k: 0 } | ChangeKind::Leave { k: 0, .. } => {
            Some("`k` must be at least 1".to_owned())
        }
        ChangeKind::Unlist { lasts_ns: 0, .. } => Some("`lasts` must be longer than 0".to_owned()),
        ChangeKind::Unlist { share, .. } if !(share > 0.0 && share <= 1.0) => {
            Some(format!("`share` must be above 0 and at most 1, not {share}"))
        }
        ChangeKind::Rolling { batch: 0, .. } => Some("`batch` must be at least 1".to_owned()),
        ChangeKind::Rolling { more: Rollout { count: Some(0), .. }, .. } => {
            Some("`count` must be at least 1".to_owned())
        }
        ChangeKind::Down { k: Some(0), .. } => Some("`k` must be at least 1".to_owned()),
        ChangeKind::Down { lasts_ns: Some(0), .. } => Some("`lasts` must be longer than 0".to_owned()),
        ChangeKind::Set { state, weight, lasts_ns, .. }
            if let Some(why) = wrong_setting(state, weight, lasts_ns.is_some()) =>
        {
            Some(why.to_owned())
        }
        ChangeKind::Set { k: Some(0), .. } => Some("`k` must be at least 1".to_owned()),
        ChangeKind::Set { lasts_ns: Some(0), .. } => Some("`lasts` must be longer than 0".to_owned()),
        ChangeKind::Set { weight: Some(weight), .. } => {
            wrong_weight(weight).map(|why| format!("`weight` {why}"))
        }
        ChangeKind::Down { mode: Mode::Pause, .. } => Some("nodes do not pause by a change".to_owned()),
        ChangeKind::Down { slow, .. } if !(slow.is_finite() && slow > 0.0) => {
            Some(format!("`slow` must be finite and above 0, not {slow}"))
        }
        _ => None,
    }
}

/// Whether the members that ever are would be more nodes than a file may make: a sentence.
pub fn too_many(p: &Point, newcomers: &[u32]) -> Option<String> {
    let members = |(number, (template, id)): (usize, &(std::ops::Range<NodeId>, NodeId))| {
        let size = if let Some(Spec::Fleet(fleet)) = p.spec(*id) { fleet.size } else { 0 };
        let all = u64::from(size) + u64::from(newcomers.get(number).copied().unwrap_or(0));
        // Its own node, and the weight that a balancer may give it.
        all.saturating_mul(template.len() as u64 + 1)
    };
    let all = templates(p);
    let nodes = all.iter().enumerate().map(members).fold(p.nodes.len() as u64, u64::saturating_add);
    (nodes > MOST_NODES as u64)
        .then(|| format!("all members that ever are would be {nodes} nodes; {MOST_NODES} is the limit"))
}
