//! A plan as all threads build their graphs from it: one epoch, with its identities and the shared state of its
//! balancers.

use super::draws::Draws;
use super::ends::{End, Ends, outer, reachable};
use super::hash_names::hash_name;
use super::probe_ways::probe_ways;
use super::sharing::{Sharing, same_chunks};
use super::slots::Changes;
use super::state::{GraphKeys, PlanIds, ProcessState};
use crate::exchange::NodeId;
use crate::exchange::upstream::described;
use crate::nodes::Id;
use crate::nodes::lb::{Shape, TargetFlags};
use crate::nodes::route::RuleTable;
use crate::transport::inner::Inner;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_model::probe::ProbeWay;
use weir_plan::loops::most_loops;
use weir_plan::processes::process_of;
use weir_plan::serving::{Role, Serving};
use weir_plan::{Edge, Lb, Point, Spec, target_labels};
use weir_policy::config::{Balance, Subset};
use weir_policy::health::{Health, HealthConfig};
use weir_policy::sticky::Cookies;
use weir_policy::subset::{Subsets, subset_key};
use weir_policy::zuul::field::LOAD_FIELD;
use weir_policy::{Table, TargetChange, TargetId, TargetNames};
use weir_stats::Key;

/// A plan that is served.
pub(crate) struct Blueprint {
    /// Its number: 0, and one more for each reload and each change of members.
    pub epoch: u32,
    /// The number of the topology in it, as it is shown: one more for each reload.
    pub generation: u32,
    pub point: Arc<Point>,
    pub serving: Arc<Serving>,
    /// By node, the node whose pauses stop it.
    pub process_of: Vec<Option<NodeId>>,
    /// The targets of each balancer.
    lbs: Arc<BTreeMap<NodeId, LbTargets>>,
    /// The identities of targets to which some way of clients leads, ascending.
    pub reached: Arc<[u32]>,
    /// Where ways end, on a thread that serves clients, that lead through no balancer's targets.
    pub outer: Vec<End>,
    /// By balancer: see [`super::state::PlanIds::places`].
    places: BTreeMap<NodeId, Arc<()>>,
    /// The state of the targets of each balancer that all loops share. The blueprint has it too, so that the thread that frees
    /// former blueprints frees it, and none that serves clients.
    flags: Arc<BTreeMap<NodeId, Arc<TargetFlags>>>,
    /// What its graphs share with those of the one before, where only members of fleets have changed since.
    pub sharing: Option<Sharing>,
    /// The number of targets that were added and removed since the one before.
    pub changes: Changes,
    /// The rules of routes, by spec.
    rules: BTreeMap<u32, Arc<RuleTable>>,
    /// Servers with a limit of connections, and the time that a request waits for one, ns.
    pub connections: BTreeMap<NodeId, (u32, Option<u64>)>,
    /// The keys of sticky cookies, by the nodes of their balancers.
    pub sticky_keys: BTreeMap<NodeId, [u64; 2]>,
    /// The fields in which its built-in servers report their load: those that its balancers read.
    pub load_fields: Arc<[Box<str>]>,
    /// When it was made, ns since the start of the process.
    pub made_ns: u64,
    /// The keys of its nodes' draws.
    pub draws: Draws,
    /// Balancers that get new targets before they lose others; all others lose some first.
    pub gains_first: BTreeSet<NodeId>,
    /// Where its own listeners behind others are reached.
    pub inner: Inner,
    /// The last field: once the end of its last graph is signalled, nothing else of it is held here.
    pub keys: Arc<GraphKeys>,
}

/// The fields of answers that these balancers read; if none reads any, the usual one.
fn load_fields(point: &Point, lbs: impl Iterator<Item = NodeId>) -> Arc<[Box<str>]> {
    let read = lbs.filter_map(|lb| match spec(point, lb) {
        Spec::Lb(lb) => lb.balance.load_field(),
        _ => None,
    });
    let names: BTreeSet<&str> = read.collect();
    let names = if names.is_empty() { BTreeSet::from([LOAD_FIELD]) } else { names };
    names.into_iter().map(Box::from).collect()
}

/// The targets of one balancer, by their indices. Made once for all threads, and freed on none that serves clients.
struct LbTargets {
    /// `None`: no target any more.
    nodes: Arc<[Option<NodeId>]>,
    shape: Arc<Shape>,
    /// What a policy that hashes chooses by. It lies here so that no thread that serves clients makes or frees it.
    table: Option<Table>,
    /// How they are divided among the loops.
    subsets: Option<Subsets>,
    /// Their display names: among those of the balancer, and with their addresses. Empty for removed ones.
    labels: Arc<[Arc<str>]>,
    described: Arc<[Arc<str>]>,
    ends: Arc<[Ends]>,
    /// Whether each target has an end that is always there.
    are_fixed: bool,
    /// The cookies of a sticky balancer.
    cookies: Option<Arc<Cookies>>,
    /// The links to the targets of a balancer that probes.
    probe_ways: Option<Arc<[ProbeWay]>>,
}

impl Blueprint {
    /// A blueprint of the first epoch, or a later one: shared state of its nodes is taken over, or created.
    pub fn new(
        epoch: u32,
        point: Arc<Point>,
        serving: Arc<Serving>,
        sticky_keys: BTreeMap<NodeId, [u64; 2]>,
        state: &ProcessState,
        made_ns: u64,
        draws: Draws,
    ) -> Blueprint {
        let PlanIds { keys, targets, names, places, flags, changes } =
            state.prepare(epoch, &point, &draws, made_ns);
        let connections = limits(&point, &serving);
        state.open_all(connections.keys().map(|id| keys.targets[*id as usize]));
        let inner = Inner::default();
        let parts = |(id, nodes)| {
            let names = names.get(&id).cloned().unwrap_or_default();
            let targets = LbTargets::new(&point, &serving, id, nodes, names);
            (id, targets.with_cookies(&point, sticky_keys.get(&id)))
        };
        let lbs: BTreeMap<NodeId, LbTargets> = targets.into_iter().map(parts).collect();
        let outer = outer(&point, &serving, false);
        let servers = reachable(&outer, |lb| lbs.get(&lb).map(|lb| &*lb.ends));
        let mut reached: Vec<u32> = servers.into_iter().map(|id| keys.targets[id as usize]).collect();
        reached.sort_unstable();
        reached.dedup();
        Blueprint {
            epoch,
            generation: epoch,
            process_of: process_of(&point),
            reached: reached.into(),
            load_fields: load_fields(&point, lbs.keys().copied()),
            lbs: Arc::new(lbs),
            outer,
            places,
            flags: Arc::new(flags),
            sharing: None,
            changes,
            rules: tables(&point),
            connections,
            sticky_keys,
            made_ns,
            draws,
            gains_first: BTreeSet::new(),
            inner,
            point,
            serving,
            keys,
        }
    }

    /// Makes the tables of policies that hash, or takes over those of the one before that are the same; divides the
    /// targets among `loops`, as a change of the division before. On a thread that serves no clients: ten thousand
    /// targets take a tenth of a second.
    pub fn make_tables(&mut self, before: Option<&Blueprint>, loops: u32) {
        let by_identity = before.map(Blueprint::by_identity).unwrap_or_default();
        let loops_before = most_loops(&self.point);
        for (id, targets) in Arc::get_mut(&mut self.lbs).into_iter().flatten() {
            let Shape { balance, weights, names, .. } = &*targets.shape;
            let was = by_identity.get(&self.keys.nodes[*id as usize]);
            let same =
                was.and_then(|was| was.table.clone()).filter(|was| was.is_for(balance, weights, names));
            targets.table = same.or_else(|| Table::new(balance, weights, names));
            let Spec::Lb(Lb { subset: Some(subset), .. }) = spec(&self.point, *id) else { continue };
            let loops = loops_before[*id as usize].unwrap_or(loops);
            let key = subset_key(self.draws.state(*id, 0));
            let was = was.and_then(|was| was.subsets.as_ref());
            targets.subsets = Some(divided(*subset, loops, key, &targets.shape, was));
        }
    }

    /// The targets of its balancers by the identity of these.
    fn by_identity(&self) -> BTreeMap<u32, &LbTargets> {
        self.lbs.iter().map(|(id, targets)| (self.id(*id).0, targets)).collect()
    }

    /// Lets its graphs share what they can with those of the one before, which is of the same file.
    pub fn share_with(&mut self, before: &Blueprint) {
        let by_identity = before.by_identity();
        for (id, targets) in Arc::get_mut(&mut self.lbs).into_iter().flatten() {
            if let Some(was) = by_identity.get(&self.keys.nodes[*id as usize]) {
                targets.keep_labels(was);
            }
        }
        self.sharing = Some(Sharing::between(before, self));
    }

    /// By balancer and chunk of its targets, whether all of them have the labels that they have in the one before, and are
    /// as many.
    pub(super) fn compare_labels(&self, before: &Blueprint) -> BTreeMap<NodeId, Box<[bool]>> {
        let by_identity = before.by_identity();
        let compared = |(id, targets): (&NodeId, &LbTargets)| {
            let was = by_identity.get(&self.id(*id).0)?;
            Some((*id, same_chunks(&was.labels, &targets.labels)))
        };
        self.lbs.iter().filter_map(compared).collect()
    }

    /// All that grows with the plan. A thread that keeps these frees them, instead of the thread with the last graph.
    pub fn large_parts(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        vec![self.point.clone(), self.serving.clone(), self.lbs.clone(), self.flags.clone()]
    }

    /// The identity of a node.
    pub fn id(&self, node: NodeId) -> Id {
        Id(self.keys.nodes[node as usize])
    }

    /// The targets of a balancer by their indices.
    pub fn targets(&self, lb: NodeId) -> &[Option<NodeId>] {
        self.lbs.get(&lb).map_or(&[], |lb| &lb.nodes)
    }

    /// The same, which graphs of all threads share.
    pub fn all_targets(&self, lb: NodeId) -> Arc<[Option<NodeId>]> {
        self.lbs.get(&lb).map_or_else(Arc::default, |lb| lb.nodes.clone())
    }

    /// What the state of a balancer is for.
    pub fn shape(&self, lb: NodeId) -> Arc<Shape> {
        let known = self.lbs.get(&lb).map(|lb| lb.shape.clone());
        known.unwrap_or_else(|| Arc::new(shape(&self.point, lb, &[], TargetNames::default())))
    }

    /// The state of a balancer's targets that all loops share.
    pub fn flags(&self, lb: NodeId) -> Arc<TargetFlags> {
        let none = || Arc::new(TargetFlags::new(0, false, Box::default()));
        self.flags.get(&lb).cloned().unwrap_or_else(none)
    }

    /// What the balancer chooses by, if it hashes.
    pub fn table(&self, lb: NodeId) -> Option<Table> {
        self.lbs.get(&lb)?.table.clone()
    }

    /// How the targets of a balancer are divided among the loops, if they are.
    pub fn subsets(&self, lb: NodeId) -> Option<&Subsets> {
        self.lbs.get(&lb)?.subsets.as_ref()
    }

    /// What keeps the indices of a balancer's targets from another use.
    pub fn places(&self, lb: NodeId) -> Arc<()> {
        self.places.get(&lb).cloned().unwrap_or_default()
    }

    /// A node's arguments.
    pub fn spec(&self, node: NodeId) -> &Spec {
        spec(&self.point, node)
    }

    /// The rules of a route; `None`: the node is none.
    pub fn rules(&self, node: NodeId) -> Option<&Arc<RuleTable>> {
        self.rules.get(&self.point.nodes[node as usize].spec)
    }

    /// The cookies of a sticky balancer's targets.
    pub fn cookies(&self, lb: NodeId) -> Option<Arc<Cookies>> {
        self.lbs.get(&lb)?.cookies.clone()
    }

    /// The links to the targets of a balancer that probes; empty: there are none.
    pub fn probe_ways(&self, lb: NodeId) -> Option<Arc<[ProbeWay]>> {
        self.lbs.get(&lb)?.probe_ways.clone()
    }

    /// The node or nodes behind a node.
    pub fn list(&self, node: NodeId) -> &[NodeId] {
        match self.point.nodes[node as usize].to {
            Edge::List(list) => &self.point.lists[list as usize],
            _ => &[],
        }
    }

    /// The node behind one that has exactly one.
    pub fn next(&self, node: NodeId) -> NodeId {
        match self.point.nodes[node as usize].to {
            Edge::Node(next) => next,
            _ => node,
        }
    }

    /// The role of a node when served.
    pub fn role(&self, node: NodeId) -> Role {
        self.serving.roles.get(node as usize).copied().unwrap_or_default()
    }

    /// The display names of a balancer's targets, by index; empty for removed ones.
    pub fn labels(&self, lb: NodeId) -> Arc<[Arc<str>]> {
        self.lbs.get(&lb).map(|lb| lb.labels.clone()).unwrap_or_default()
    }

    /// The same with their addresses, as in the log ([`described`]).
    pub fn described(&self, lb: NodeId) -> Arc<[Arc<str>]> {
        self.lbs.get(&lb).map(|lb| lb.described.clone()).unwrap_or_default()
    }

    /// The initial health of a balancer's targets: the same on all threads.
    pub fn health(&self, node: NodeId, lb: &Lb) -> Health {
        let (config, draw) = self.health_config(node, lb);
        let mut health = Health::new(config, &self.shape(node).weights, self.made_ns, draw);
        let targets = (0..).map(TargetId).zip(self.targets(node));
        let gone = targets.filter(|(_, node)| node.is_none()).map(|(target, _)| TargetChange::Remove(target));
        health.change_targets(self.made_ns, gone);
        health
    }

    /// The health settings of a balancer, and the key of their draws.
    pub fn health_config(&self, node: NodeId, lb: &Lb) -> (HealthConfig, Key) {
        let config = HealthConfig {
            check: lb.health.as_ref().map(|h| h.check.clone()),
            eject: lb.eject.clone(),
            outlier: lb.outlier.clone(),
            slow_start: lb.slow_start.clone().filter(|_| !lb.balance.traits().hashes),
            panic: lb.panic,
            on_empty: lb.on_empty,
        };
        (config, self.draws.state(node, 0).with(3))
    }

    /// Where the ways of a balancer's targets end, by index, on a thread that serves clients or owns their state.
    pub fn ends(&self, lb: NodeId) -> Arc<[Ends]> {
        self.lbs.get(&lb).map(|lb| lb.ends.clone()).unwrap_or_default()
    }

    /// Whether each target of a balancer has an end that is always there: what is behind them needs no look.
    pub fn has_fixed_ends(&self, lb: NodeId) -> bool {
        self.lbs.get(&lb).is_some_and(|lb| lb.are_fixed)
    }

    /// The address of the server or listener that a node's only way leads to; `None`: it is built in, or ways part.
    pub fn address(&self, mut id: NodeId) -> Option<String> {
        loop {
            match (self.spec(id), self.point.nodes[id as usize].to) {
                (Spec::Server { addr, .. }, _) => return addr.clone(),
                (Spec::Listen(listen), _) => return Some(listen.addr.clone()),
                (_, Edge::Node(next)) => id = next,
                _ => return None,
            }
        }
    }

    /// See [`hash_name`].
    pub fn hash_name(&self, id: NodeId) -> String {
        hash_name(&self.point, id)
    }
}

impl LbTargets {
    fn new(
        point: &Point,
        serving: &Serving,
        id: NodeId,
        nodes: Box<[Option<NodeId>]>,
        names: TargetNames,
    ) -> LbTargets {
        let mut by_node: Vec<(NodeId, String)> = match point.nodes[id as usize].to {
            Edge::List(list) => {
                point.lists[list as usize].iter().copied().zip(target_labels(point, id)).collect()
            }
            _ => Vec::new(),
        };
        by_node.sort_unstable_by_key(|(node, _)| *node);
        let label = |target: &Option<NodeId>| {
            let at = target.and_then(|target| by_node.binary_search_by_key(&target, |(node, _)| *node).ok());
            Arc::from(at.map_or("", |at| &by_node[at].1))
        };
        let behind = |target: &Option<NodeId>| {
            target.map_or_else(Ends::nowhere, |target| Ends::behind(point, serving, false, target))
        };
        let ends: Arc<[Ends]> = nodes.iter().map(behind).collect();
        let shape = shape(point, id, &nodes, names);
        let probes = shape.balance.traits().probes;
        LbTargets {
            probe_ways: probes.then(|| probe_ways(point, serving, &nodes)),
            shape: Arc::new(shape),
            table: None,
            subsets: None,
            labels: nodes.iter().map(label).collect(),
            described: nodes
                .iter()
                .map(|id| id.map_or_else(String::new, |id| described_of(point, id)).into())
                .collect(),
            are_fixed: ends.iter().all(|ends| ends.has_fixed),
            ends,
            cookies: None,
            nodes: nodes.into(),
        }
    }

    /// Takes over labels that are the same, so that it is seen at once that they are.
    fn keep_labels(&mut self, before: &LbTargets) {
        let was = |i: usize, label: &Arc<str>| before.labels.get(i).filter(|was| *was == label).cloned();
        let labels = self.labels.iter().enumerate();
        self.labels = labels.map(|(i, label)| was(i, label).unwrap_or_else(|| label.clone())).collect();
    }

    /// With cookies made with this key, if there is one.
    fn with_cookies(self, point: &Point, key: Option<&[u64; 2]>) -> LbTargets {
        let targets = (0..).map(TargetId).zip(self.nodes.iter());
        // Where a verification plays changes, members have one name, and keep their nodes: a cookie never means another
        // member than the one that set it.
        let plays = point.fleets.as_ref().is_some_and(|fleets| fleets.changes);
        let name = |id: NodeId| match plays {
            true => format!("{}@{id}", hash_name(point, id)),
            false => hash_name(point, id),
        };
        let named = |(target, node): (TargetId, &Option<NodeId>)| Some((target, name((*node)?)));
        let cookies = |key: &[u64; 2]| {
            Arc::new(Cookies::from_targets(*key, &targets.filter_map(named).collect::<Vec<_>>()))
        };
        LbTargets { cookies: key.map(cookies), ..self }
    }
}

/// What the state of a balancer with these targets is for.
fn shape(point: &Point, id: NodeId, nodes: &[Option<NodeId>], names: TargetNames) -> Shape {
    let weight = |target: &Option<NodeId>| match target.map(|target| spec(point, target)) {
        Some(Spec::Weight { weight }) => *weight,
        Some(_) => 1.0,
        None => 0.0,
    };
    let (balance, pass_over_ns) = match spec(point, id) {
        // Health belongs to the process, and its permits limit requests in flight.
        Spec::Lb(lb) => (lb.balance.clone(), if listens(lb) { 0 } else { lb.pass_over_ns }),
        _ => (Balance::Random, 0),
    };
    Shape {
        balance,
        pass_over_ns,
        exists: nodes.iter().map(Option::is_some).collect(),
        weights: nodes.iter().map(weight).collect(),
        names,
    }
}

/// The targets of a shape divided among loops: by a change of the division before, if that is of the same kind.
fn divided(subset: Subset, loops: u32, key: Key, shape: &Shape, was: Option<&Subsets>) -> Subsets {
    match was.filter(|was| *was.config() == subset && was.loops() == loops) {
        Some(was) => {
            let mut subsets = was.clone();
            subsets.follow(&shape.exists, &shape.names);
            subsets
        }
        None => Subsets::new(subset, loops, key, &shape.exists, &shape.names),
    }
}

/// Whether a balancer judges its targets by their errors.
pub(super) fn listens(lb: &Lb) -> bool {
    lb.eject.is_some() || lb.outlier.is_some()
}

fn spec(point: &Point, node: NodeId) -> &Spec {
    &point.specs[point.nodes[node as usize].spec as usize]
}

/// The display name of a target: the server or listener that its only way leads to, with its address, otherwise
/// the node where its ways part.
fn described_of(point: &Point, mut id: NodeId) -> String {
    loop {
        let node = &point.nodes[id as usize];
        let name = node.name.as_deref();
        id = match (spec(point, id), node.to) {
            (Spec::Server { addr, .. }, _) => {
                return described(name.unwrap_or("server"), addr.as_deref());
            }
            (Spec::Listen(listen), _) => {
                return described(name.unwrap_or("listen"), Some(&listen.addr));
            }
            (_, Edge::Node(next)) => next,
            (spec, _) => {
                return name.map_or(spec.kind().to_owned(), |n| format!("{} {n:?}", spec.kind()));
            }
        }
    }
}

/// Indexes the rules of each route once for all threads, and for all members of a pool.
fn tables(point: &Point) -> BTreeMap<u32, Arc<RuleTable>> {
    let of_route = |(number, spec): (u32, &Spec)| match spec {
        Spec::Route { rules, .. } => Some((number, Arc::new(RuleTable::new(rules)))),
        _ => None,
    };
    (0..).zip(&point.specs).filter_map(of_route).collect()
}

/// The servers with a limit of connections: the lowest limit of the balancers that lead there, and the shortest time
/// for which they let a request wait.
fn limits(point: &Point, serving: &Serving) -> BTreeMap<NodeId, (u32, Option<u64>)> {
    let mut limits = BTreeMap::new();
    for node in &point.nodes {
        let (Spec::Lb(lb), Edge::List(list)) = (&point.specs[node.spec as usize], node.to) else { continue };
        let Some(most) = lb.max_connections else { continue };
        for target in &point.lists[list as usize] {
            for server in Ends::behind(point, serving, false, *target).servers() {
                let (least, wait_ns) = limits.entry(server).or_insert((most, lb.wait_timeout_ns));
                *least = most.min(*least);
                *wait_ns = lb.wait_timeout_ns.into_iter().chain(*wait_ns).min();
            }
        }
    }
    limits
}
