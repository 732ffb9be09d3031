//! Compiles balancers with something around them: health, limits, keys, spare nodes, probes.

use crate::code::MemberId;
use crate::code::StageId;
use crate::code::guards::BalancerNesting;
use crate::code::guards::{GuardSite, SubsetSite};
use crate::code::{ColdOp, LbSite, NOT, Op};
use crate::compile::blocks::{Draft, Layout, inside};
use crate::compile::ends::ends_of_nodes;
use crate::compile::{Compiler, Post};
use std::collections::BTreeMap;
use weir_plan::loops::most_loops;
use weir_plan::{Edge, Lb, NodeId, Point, Scope, Spec};
use weir_policy::TargetId;
use weir_policy::config::{Balance, OnEmpty};
use weir_policy::health::HealthConfig;
use weir_policy::upstream::UpstreamConfig;

impl BalancerNesting {
    /// Finds them for `n` balancers with known nodes.
    pub fn new(point: &Point, balancers: &BTreeMap<NodeId, u32>, n: usize) -> BalancerNesting {
        let mut behind = BalancerNesting { outside: vec![Vec::new(); n], inside: BTreeMap::new() };
        for (&node, &outer) in balancers {
            let Edge::List(list) = point.nodes[node as usize].to else { continue };
            for (&target, index) in point.lists[list as usize].iter().zip((0..).map(TargetId)) {
                let first = first_balancers(point, target);
                let found: Vec<u32> = first.iter().filter_map(|id| balancers.get(id).copied()).collect();
                // A plain balancer always has a target left.
                if found.is_empty() || found.len() < first.len() {
                    continue;
                }
                found.iter().for_each(|&inner| behind.outside[inner as usize].push((outer, index)));
                behind.inside.insert((outer, index), found);
            }
        }
        behind
    }
}

/// The statuses that pass a check; empty: any.
fn check_expects(config: &Lb) -> Vec<(u16, u16)> {
    let http = config.health.as_ref().and_then(|h| h.http.as_ref());
    http.map_or_else(Vec::new, |http| http.expect.clone())
}

/// The balancers and listeners in which the paths from a node end.
fn first_balancers(point: &Point, from: NodeId) -> std::collections::BTreeSet<NodeId> {
    let (mut found, mut seen) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    let mut stack = vec![from];
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        // A listener answers by itself, whatever is left behind it.
        if let Spec::Lb(_) | Spec::Listen(_) = &point.specs[point.nodes[id as usize].spec as usize] {
            found.insert(id);
            continue;
        }
        match inside(point, id) {
            Edge::None => {}
            Edge::Node(child) => stack.push(child),
            Edge::List(l) => stack.extend(&point.lists[l as usize]),
        }
    }
    found
}

/// The name by which a target is hashed: the address of the first server or listener on its path, else that server's
/// name.
pub(crate) fn name_of(point: &Point, target: NodeId) -> String {
    let mut at = target;
    loop {
        let node = &point.nodes[at as usize];
        match &point.specs[node.spec as usize] {
            Spec::Server { addr, .. } => {
                return addr.clone().or_else(|| node.name.clone()).unwrap_or_else(|| "server".into());
            }
            Spec::Listen(listen) => return listen.addr.clone(),
            _ => {}
        }
        at = match inside(point, at) {
            Edge::Node(child) => child,
            Edge::List(l) => match point.lists[l as usize].first() {
                Some(&first) => first,
                None => return String::new(),
            },
            Edge::None => return node.name.clone().unwrap_or_default(),
        };
    }
}

/// What surrounds a balancer.
pub(crate) fn around(lb: &Lb) -> UpstreamConfig {
    let health = HealthConfig {
        check: lb.health.as_ref().map(|h| h.check.clone()),
        eject: lb.eject.clone(),
        outlier: lb.outlier.clone(),
        slow_start: lb.slow_start.clone().filter(|_| !lb.balance.traits().hashes),
        panic: lb.panic,
        on_empty: lb.on_empty,
    };
    let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min();
    UpstreamConfig { health, max_in_flight: most, pass_over_ns: lb.pass_over_ns, counts: false }
}

/// Whether all loops use one state. Counts that all loops know at once are one state if they are all there is, unless the
/// loops have subsets.
pub(crate) fn is_one(lb: &Lb) -> bool {
    let counts_alone = lb.scope == Scope::Process && lb.balance.is_counts_alone();
    lb.has_one_state() || counts_alone && lb.subset.is_none()
}

/// How often loops with states of their own see each other's counts, ns; `None`: never.
pub(crate) fn counts_every_ns(lb: &Lb) -> Option<u64> {
    lb.sees_counts_every_ns().filter(|_| !is_one(lb))
}

/// Whether a balancer has the names of its targets.
pub(crate) fn has_names(lb: &Lb) -> bool {
    let named = lb.subset.is_some_and(|subset| subset.uses_names());
    lb.balance.traits().hashes || lb.sticky.is_some() || named
}

/// The subset of a balancer's targets that each loop prefers, and the number of loops that they are divided among.
pub(crate) fn subset(point: &Point, node: NodeId, lb: &Lb) -> Option<SubsetSite> {
    let subset = lb.subset?;
    Some(SubsetSite { subset, loops: most_loops(point)[node as usize].unwrap_or(1) })
}

/// Whether nothing surrounds a balancer, so that a request may pass it ahead of its turn.
pub(crate) fn is_plain(lb: &Lb) -> bool {
    let simple = lb.balance.traits().is_inlined;
    let healthy = lb.health.is_none() && lb.eject.is_none() && lb.outlier.is_none();
    let unlimited = lb.max_in_flight.is_none() && lb.max_connections.is_none();
    let alone = counts_every_ns(lb).is_none()
        && lb.sticky.is_none()
        && lb.on_empty != OnEmpty::Node
        && lb.subset.is_none();
    simple && healthy && unlimited && alone
}

/// Whether a balancer probes its targets, or uses the work left at them.
pub(crate) fn looks_past_cables(spec: &Spec) -> bool {
    matches!(spec, Spec::Lb(lb) if lb.balance.traits().probes || lb.balance == Balance::LeastWork)
}

/// The nodes that some balancer probes, or whose work it uses; and all nodes whose path ends where theirs does.
pub(crate) fn probed(layout: &Layout) -> Vec<bool> {
    let point = layout.point;
    let asked = layout.reached().filter(|(_, spec)| looks_past_cables(spec));
    let lists = asked.filter_map(|(id, _)| match point.nodes[id as usize].to {
        Edge::List(list) => Some(list),
        _ => None,
    });
    let targets: Vec<u32> = lists.flat_map(|list| &point.lists[list as usize]).copied().collect();
    if targets.is_empty() {
        return Vec::new();
    }
    let ends = ends_of_nodes(layout);
    let mut asked = vec![false; ends.len()];
    targets.iter().for_each(|&target| asked[ends[target as usize] as usize] = true);
    ends.iter().map(|&end| asked[end as usize]).collect()
}

impl Compiler<'_> {
    /// The number of a balancer's guard, if it has one.
    pub(crate) fn guard(
        &mut self,
        stage: StageId,
        config: &Lb,
        draft: &Draft,
        position: usize,
    ) -> Option<Post> {
        let lb = self.code.lbs.len() as u32;
        let offset = self.layout.add_instances(&mut self.code, draft, position, lb);
        let point = self.layout.point;
        for (&node, member) in draft.nodes[position].iter().zip((draft.base..).map(MemberId)) {
            self.code.guards.of_node.insert(node, member.number_from(offset));
            let Edge::List(list) = point.nodes[node as usize].to else { continue };
            if config.balance.traits().probes {
                self.code.guards.probe_ways.add(point, list);
            }
            if let Some(subset) = subset(point, node, config) {
                self.code.guards.subsets.insert(member.number_from(offset), subset);
            }
            if has_names(config) {
                let names = point.lists[list as usize].iter().map(|&t| name_of(point, t)).collect();
                self.code.guards.names.insert(member.number_from(offset), names);
            }
        }
        let spares = config.spare.map(|spare| {
            let offset = (self.code.guards.spare_nodes.len() as u32).wrapping_sub(draft.base);
            self.code.guards.spare_nodes.extend(draft.nodes[position].iter().map(|_| spare));
            offset
        });
        let key = config.key.as_ref().map(|key| self.key_source(key));
        self.code.guards.probes |= config.balance.traits().probes;
        self.code.kinds.reads_keys |= config.sticky.is_some();
        self.code.details = true;
        let around = around(config);
        let health = &around.health;
        let watches = health.check.is_some() || health.eject.is_some() || health.outlier.is_some();
        self.code.guards.sites.push(GuardSite {
            around,
            counts_every_ns: counts_every_ns(config),
            key,
            sticky: config.sticky.clone().map(|name| (name, config.sticky_key.clone())),
            spares,
            max_waiting: config.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: config.wait_timeout_ns,
            watches,
            check_timeout_ns: config.health.as_ref().map_or(0, |h| h.timeout_ns),
            check_cost_ns: config.health.as_ref().map_or(0, |h| h.cost_ns),
            check_source: config.health.as_ref().and_then(|h| h.source),
            probe_cost_ns: config.probe_cost_ns,
            check_expects: check_expects(config),
        });
        self.code.lbs.push(LbSite {
            balance: config.balance.clone(),
            offset,
            stage,
            skip: NOT,
            ordered: true,
            counts: true,
            can_be_cut: self.here,
            shared: is_one(config),
            guard: Some(self.code.guards.sites.len() as u32 - 1),
            changes: self.sees_changes(&draft.nodes[position]),
        });
        self.op(Op::Cold(ColdOp::AskGuard { lb }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::TellGuard { lb })))
    }
}
