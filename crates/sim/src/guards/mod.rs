//! Balancers with something around them: health, ejection, full targets, those just found unreachable, keys, spare nodes.
//!
//! - In virtual time: none but what a request waits while all targets are full. It picks and comes back in its turn, and the
//!   balancer is looked at when something changes by itself.
//! - Given back when cut off: the place in line; the target, which nobody learns anything of.
//! - Draws: what the policy draws, by node and way.

mod run;

use crate::blocks::{Draft, Layout, NOT, inside};
use crate::bounds::{HORIZON_NS, MOST_IN_VAIN};
use crate::code::{Code, LbSite, Op, Targets};
use crate::compile::{Compiler, Post};
use crate::ends::ends_of_nodes;
use crate::probes::ProbeWays;
use std::collections::BTreeMap;
use weir_model::queue::Line;
use weir_plan::{Lb, NodeId, Point, Scope, Spec, To};
use weir_policy::config::{Balance, OnEmpty};
use weir_policy::health::HealthConfig;
use weir_policy::least_work::LeastWork;
use weir_policy::prequal::Busy;
use weir_policy::sticky::Simulated;
use weir_policy::upstream::Around;
use weir_policy::{Ticket, Upstream};
use weir_stats::Key;

/// A balancer's place.
#[derive(Clone, Debug)]
pub(crate) struct GuardSite {
    pub around: Around,
    /// What it hashes: index of a key source.
    pub key: Option<u32>,
    /// The cookie by which clients return, and the file that makes its values.
    pub sticky: Option<(String, Option<String>)>,
    /// Member to spare node.
    pub spares: Option<u32>,
    pub max_waiting: u64,
    pub wait_timeout_ns: Option<u64>,
    /// Whether its health changes by itself or by what comes back.
    pub watches: bool,
    pub check_timeout_ns: u64,
    pub check_cost_ns: u64,
    /// What a probe costs.
    pub probe_cost_ns: u64,
    /// Lowest and highest status that passes a check; empty: any.
    pub check_expects: Vec<(u16, u16)>,
}

impl GuardSite {
    /// Whether checks go to its targets, or probes that cost as much.
    pub fn checks(&self) -> bool {
        self.around.health.check.is_some() || self.probe_cost_ns > 0
    }
}

/// What a scenario knows of its guarded balancers.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuardTables {
    pub sites: Vec<GuardSite>,
    /// What targets of each balancer are hashed by, by number of the balancer on the first loop.
    pub names: BTreeMap<u32, Vec<String>>,
    /// Where requests go that no target is left for, by member and [`GuardSite::spares`].
    pub spares: Vec<crate::code::Target>,
    pub spare_nodes: Vec<NodeId>,
    /// The balancer of each node that is one.
    pub of_node: BTreeMap<NodeId, u32>,
    pub behind: Behind,
    /// Whether what targets have in flight is counted for probes.
    pub probes: bool,
    pub probe_ways: ProbeWays,
}

/// Which balancers stand behind which targets of which others, where the others' health can tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behind {
    /// By balancer: the balancers and their targets behind which it stands.
    pub outside: Vec<Vec<(u32, u32)>>,
    /// The balancers that a target's way ends in.
    pub inside: BTreeMap<(u32, u32), Vec<u32>>,
}

impl Behind {
    /// Of so many balancers, whose nodes are known.
    pub fn of(point: &Point, balancers: &BTreeMap<NodeId, u32>, n: usize) -> Behind {
        let mut behind = Behind { outside: vec![Vec::new(); n], inside: BTreeMap::new() };
        for (&node, &outer) in balancers {
            let To::List(list) = point.nodes[node as usize].to else { continue };
            for (&target, index) in point.lists[list as usize].iter().zip(0u32..) {
                let first = first_balancers(point, target);
                let found: Vec<u32> = first.iter().filter_map(|id| balancers.get(id).copied()).collect();
                // One around which nothing stands always has somebody left.
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

/// The balancers and listeners that the ways from a node end in.
fn first_balancers(point: &Point, from: NodeId) -> std::collections::BTreeSet<NodeId> {
    let (mut found, mut seen) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    let mut stack = vec![from];
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        // Who listens answers by itself, whoever is left behind it.
        if let Spec::Lb(_) | Spec::Listen(_) = &point.specs[point.nodes[id as usize].spec as usize] {
            found.insert(id);
            continue;
        }
        match inside(point, id) {
            To::None => {}
            To::Node(child) => stack.push(child),
            To::List(l) => stack.extend(&point.lists[l as usize]),
        }
    }
    found
}

/// What a target is hashed by: the address of the server or listener that its way comes to first, else that server's name.
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
            To::Node(child) => child,
            To::List(l) => match point.lists[l as usize].first() {
                Some(&first) => first,
                None => return String::new(),
            },
            To::None => return node.name.clone().unwrap_or_default(),
        };
    }
}

/// What stands around a balancer.
pub(crate) fn around(lb: &Lb) -> Around {
    let health = HealthConfig {
        check: lb.health.as_ref().map(|h| h.check.clone()),
        eject: lb.eject.clone(),
        outlier: lb.outlier.clone(),
        slow_start: lb.slow_start.clone().filter(|_| !lb.balance.traits().hashes),
        panic: lb.panic,
        on_empty: lb.on_empty,
    };
    let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min();
    Around { health, max_in_flight: most, pass_over_ns: lb.pass_over_ns, counts: false }
}

/// Whether nothing stands around a balancer, so that a request may pass it ahead of its turn.
pub(crate) fn is_plain(lb: &Lb) -> bool {
    let simple = lb.balance.traits().is_inlined;
    let healthy = lb.health.is_none() && lb.eject.is_none() && lb.outlier.is_none();
    let unlimited = lb.max_in_flight.is_none() && lb.max_connections.is_none();
    simple && healthy && unlimited && lb.sticky.is_none() && lb.on_empty != OnEmpty::Node
}

/// Whether a balancer asks its targets how busy they are, or knows their work.
pub(crate) fn looks_past_cables(spec: &Spec) -> bool {
    matches!(spec, Spec::Lb(lb) if lb.balance.traits().probes || lb.balance == Balance::LeastWork)
}

/// The nodes that some balancer asks how busy they are, or whose work it knows; and all from which the way ends where theirs
/// does.
pub(crate) fn probed(layout: &Layout) -> Vec<bool> {
    let point = layout.point;
    let asked = layout.reached().filter(|(_, spec)| looks_past_cables(spec));
    let lists = asked.filter_map(|(id, _)| match point.nodes[id as usize].to {
        To::List(list) => Some(list),
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
    /// A balancer of which the stage knows what stands around it.
    pub(crate) fn guard(&mut self, stage: u32, config: &Lb, draft: &Draft, position: usize) -> Option<Post> {
        let lb = self.code.lbs.len() as u32;
        let offset = self.layout.add_instances(&mut self.code, draft, position, lb);
        let point = self.layout.point;
        for (&node, member) in draft.nodes[position].iter().zip(draft.base..) {
            self.code.guards.of_node.insert(node, member.wrapping_add(offset));
            let To::List(list) = point.nodes[node as usize].to else { continue };
            if config.balance.traits().probes {
                self.code.guards.probe_ways.add(point, list);
            }
            if config.balance.traits().hashes || config.sticky.is_some() {
                let names = point.lists[list as usize].iter().map(|&t| name_of(point, t)).collect();
                self.code.guards.names.insert(member.wrapping_add(offset), names);
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
            key,
            sticky: config.sticky.clone().map(|name| (name, config.sticky_key.clone())),
            spares,
            max_waiting: config.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: config.wait_timeout_ns,
            watches,
            check_timeout_ns: config.health.as_ref().map_or(0, |h| h.timeout_ns),
            check_cost_ns: config.health.as_ref().map_or(0, |h| h.cost_ns),
            probe_cost_ns: config.probe_cost_ns,
            check_expects: {
                let http = config.health.as_ref().and_then(|h| h.http.as_ref());
                http.map_or_else(Vec::new, |http| http.expect.clone())
            },
        });
        self.code.lbs.push(LbSite {
            balance: config.balance.clone(),
            offset,
            stage,
            skip: NOT,
            ordered: true,
            counts: true,
            can_be_cut: self.here,
            shared: config.scope == Scope::Process,
            guard: Some(self.code.guards.sites.len() as u32 - 1),
        });
        self.op(Op::Ask { lb }, &[]);
        Some(Post::Op(Op::Told { lb }))
    }
}

/// A balancer in virtual time, and what stands around it, for all loops that meet it: only the policy's state and whom it
/// passes over are each loop's own.
pub(crate) struct Guard {
    pub upstream: Upstream,
    /// What its choices are drawn by.
    pub picks: Key,
    pub targets: Targets,
    lb: u32,
    pub site: u32,
    /// Requests that wait until a target is not full any more.
    line: Line,
    /// The cookies that it gives and knows, on whichever loop: clients do not know of them.
    sticky: Option<Simulated>,
    /// When it is looked at next; an event at another time is stale.
    watched: u64,
    /// When its next checks begin; likewise.
    pub check_due: u64,
    /// How often its health was looked at since somebody came to its line or was let in.
    vain: u32,
    /// Whether anything behind it could be picked when that was looked at last.
    alive: bool,
}

/// Cookies that clients keep, at most.
pub(crate) const COOKIES: usize = 1 << 20;

/// The frame of a request that went to the spare node rather than to a target.
const SPARE: u32 = u32::MAX;

/// All guarded balancers of a scenario, by the number that they have among all of the first loop.
#[derive(Default)]
pub(crate) struct Guards {
    pub of: Vec<Option<Box<Guard>>>,
    /// How busy each member is that probes ask.
    pub busy: Vec<Busy>,
    /// Health checks begun so far.
    pub checks_begun: u64,
}

impl Guards {
    /// `own` is what each balancer's state is drawn by, `picks` its choices.
    pub fn new(code: &Code, keys: impl Fn(u32, &crate::code::Instance) -> (Key, Key)) -> Guards {
        if code.guards.sites.is_empty() {
            return Guards::default();
        }
        let guard = |(i, at): (&crate::code::Instance, u32)| {
            let lb = &code.lbs[i.lb as usize];
            let site = lb.guard?;
            let guard = &code.guards.sites[site as usize];
            let (weights, balance) = (&code.weights[i.list as usize], &lb.balance);
            let (own, picks) = keys(0, i);
            let names = code.guards.names.get(&at).map_or(&[][..], |names| names);
            let mut upstream = Upstream::new(balance, guard.around.clone(), weights, names, 0, own);
            let others = if lb.shared { 1..1 } else { 1..code.loops };
            others.for_each(|meets| upstream.add_loop(balance, weights, names, 0, keys(meets, i).0));
            Some(Box::new(Guard {
                upstream,
                picks,
                targets: code.lists[i.list as usize],
                lb: i.lb,
                site,
                line: Line::default(),
                sticky: guard
                    .sticky
                    .as_ref()
                    .map(|(name, file)| Simulated::new(name, file.as_deref(), names)),
                watched: u64::MAX,
                check_due: u64::MAX,
                vain: 0,
                alive: true,
            }))
        };
        let of = code.instances.iter().zip(0..).map(guard).collect();
        let probed = if code.guards.probes { code.members as usize } else { 0 };
        Guards { of, busy: vec![Busy::default(); probed], checks_begun: 0 }
    }

    /// The guarded balancer of that number, whichever loop's it is.
    #[inline]
    pub fn get(&mut self, index: u32) -> Option<&mut Guard> {
        Some(self.on_loop(index)?.0)
    }

    /// The guarded balancer of that number, and the loop whose it is.
    #[inline]
    fn on_loop(&mut self, index: u32) -> Option<(&mut Guard, u32)> {
        let (first, on) = self.place(index);
        Some((self.of.get_mut(first)?.as_deref_mut()?, on))
    }

    /// The number of the first loop's balancer at the same place, and the loop.
    #[inline]
    pub fn place(&self, index: u32) -> (usize, u32) {
        let (index, each) = (index as usize, self.of.len());
        if index < each || each == 0 { (index, 0) } else { (index % each, (index / each) as u32) }
    }

    /// The state of a balancer that knows the work left at its targets, and those.
    pub fn least_work(&mut self, index: u32) -> Option<(Targets, &mut LeastWork)> {
        let (guard, on) = self.on_loop(index)?;
        let targets = guard.targets;
        Some((targets, guard.upstream.on(on).balancer().least_work()?))
    }

    /// A count that was held at a target ends; false: it is no guarded balancer's.
    pub fn release(&mut self, index: u32, target: u32) -> bool {
        let found = self.on_loop(index);
        found.map(|(guard, on)| guard.upstream.on(on).release(target)).is_some()
    }

    /// Whether somebody waits for a target that may come back by itself, or by a check.
    pub fn anyone_waits_for_health(&self, code: &Code) -> bool {
        self.of.iter().flatten().any(|guard| {
            let is_checked = code.guards.sites[guard.site as usize].check_timeout_ns > 0;
            let changes = is_checked || guard.watched <= HORIZON_NS;
            changes && guard.vain < MOST_IN_VAIN && guard.line.peek().is_some()
        })
    }

    /// Requests that they still count.
    pub fn left(&self) -> u64 {
        self.of.iter().flatten().map(|g| g.upstream.total_in_flight()).sum()
    }

    /// How often they have ejected a target.
    pub fn ejections(&self) -> u64 {
        self.of.iter().flatten().map(|g| g.upstream.health().ejections()).sum()
    }

    /// A request leaves a target where it was for so long.
    fn left_target(&mut self, code: &Code, targets: Targets, ticket: &Ticket, now: u64) {
        if !self.busy.is_empty() {
            let to = targets.get(code, ticket.target);
            self.busy[code.ends.server(to.member) as usize].left(now - ticket.at_ns);
        }
    }
}
