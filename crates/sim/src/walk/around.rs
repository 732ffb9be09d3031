//! What stands around balancers, and what chooses, limits and hedges: from the plan to tables.

use super::build::{Act, Builder, NOBODY};
use crate::blocks::{Draft, inside};
use std::collections::BTreeSet;
use weir_model::mix::{Keys as DrawnKeys, Mix};
use weir_policy::config::{Balance, Budget, Hedge, OnEmpty, Rate};
use weir_policy::health::HealthConfig;
use weir_policy::key;
use weir_policy::retry::is_idempotent;
use weir_policy::split::Split;
use weir_policy::upstream::Around;
use weir_topology::plan::{Hedged, KeySource, Keys, Lb, Point, RequestShape, Scope, Spec, To};

/// A balancer's place.
#[derive(Clone, Debug)]
pub(crate) struct LbSite {
    pub balance: Balance,
    pub around: Around,
    /// Member to balancer.
    pub offset: u32,
    /// Whether all event loops share one state.
    pub shared: bool,
    /// What it hashes: index in [`super::build::Walk::keys`].
    pub key: Option<u32>,
    /// Whether keys return to the target that answered them.
    pub sticky: bool,
    /// Member to spare node.
    pub spares: Option<u32>,
    pub max_waiting: u64,
    pub wait_timeout_ns: Option<u64>,
    /// Whether its health changes by itself or by what comes back.
    pub watches: bool,
    /// Whether it asks targets how busy they are.
    pub measures_probes: bool,
    pub check_timeout_ns: u64,
    pub check_cost_ns: u64,
    /// Lowest and highest status that passes a check; empty: any.
    pub check_expects: Vec<(u16, u16)>,
}

/// A place that chooses a node.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceSite {
    pub by: By,
    /// Member to node.
    pub offset: u32,
}

/// What chooses.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// The request's kind: index of the node, [`NOBODY`] for none.
    Kind(Vec<u32>),
    /// A share, by draw or by key.
    Share { split: Split, key: Option<u32> },
}

/// A rate limit's place.
#[derive(Clone, Debug)]
pub(crate) struct LimitSite {
    pub key: Option<u32>,
    /// Member to limit.
    pub offset: u32,
}

/// A hedge's place.
#[derive(Clone, Debug)]
pub(crate) struct HedgeSite {
    pub config: Hedge,
    /// Member to budget.
    pub budget: Option<u32>,
}

/// A kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub idempotent: bool,
}

/// Whether nothing stands around a balancer that takes the general engine.
pub(super) fn is_plain(lb: &Lb) -> bool {
    let simple = matches!(
        lb.balance,
        Balance::Random | Balance::RoundRobin { .. } | Balance::LeastConn { .. } | Balance::P2c { .. }
    );
    let healthy = lb.health.is_none() && lb.eject.is_none() && lb.outlier.is_none();
    let unlimited = lb.max_in_flight.is_none() && lb.max_connections.is_none();
    simple && healthy && unlimited && lb.sticky.is_none() && lb.on_empty != OnEmpty::Node
}

impl Builder<'_> {
    pub(super) fn balance(&mut self, lb: &Lb, draft: &Draft, position: usize) -> Act {
        let index = self.walk.lbs.len() as u32;
        let offset = self.layout.add_instances(&mut self.code, draft, position, index);
        for (&node, member) in draft.nodes[position].iter().zip(draft.base..) {
            self.instances.insert(node, member.wrapping_add(offset));
            let named = lb.balance.hashes();
            let To::List(list) = self.layout.point.nodes[node as usize].to else { continue };
            let targets = if named { &self.layout.point.lists[list as usize][..] } else { &[] };
            self.walk.names.push(targets.iter().map(|&t| name_of(self.layout.point, t)).collect());
        }
        let spares = lb.spare.map(|spare| {
            let offset = (self.walk.spare_nodes.len() as u32).wrapping_sub(draft.base);
            self.walk.spare_nodes.extend(draft.nodes[position].iter().map(|_| spare));
            offset
        });
        let key = lb.key.as_ref().map(|key| self.key_source(key));
        let shared = lb.scope == Scope::Process;
        let health = HealthConfig {
            check: lb.health.as_ref().map(|h| h.check.clone()),
            eject: lb.eject.clone(),
            outlier: lb.outlier.clone(),
            slow_start: lb.slow_start.clone().filter(|_| !lb.balance.hashes()),
            panic: lb.panic,
            on_empty: lb.on_empty,
        };
        let watches = health.check.is_some() || health.eject.is_some() || health.outlier.is_some();
        let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min();
        let around = Around { health, max_in_flight: most, pass_over_ns: lb.pass_over_ns, counts: false };
        let measures_probes = matches!(lb.balance, Balance::Prequal { .. });
        self.walk.probes |= measures_probes;
        self.walk.reads_keys |= lb.sticky.is_some();
        self.walk.lbs.push(LbSite {
            balance: lb.balance.clone(),
            around,
            offset,
            shared,
            key,
            sticky: lb.sticky.is_some(),
            spares,
            max_waiting: lb.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: lb.wait_timeout_ns,
            watches,
            measures_probes,
            check_timeout_ns: lb.health.as_ref().map_or(0, |h| h.timeout_ns),
            check_cost_ns: lb.health.as_ref().map_or(0, |h| h.cost_ns),
            check_expects: lb
                .health
                .as_ref()
                .and_then(|h| h.http.as_ref())
                .map_or_else(Vec::new, |http| http.expect.clone()),
        });
        Act::Balance { lb: index }
    }

    pub(super) fn choice(&mut self, spec: &Spec, draft: &Draft, position: usize) -> Act {
        let by = match spec {
            Spec::Split { weights, key } => {
                By::Share { split: Split::new(weights), key: key.as_ref().map(|k| self.key_source(k)) }
            }
            Spec::Route { rules, otherwise } => {
                let otherwise = if *otherwise { rules.len() as u32 } else { NOBODY };
                let first = |shape: &RequestShape| {
                    rules.iter().position(|rule| rule.matches(&shape.asked())).map_or(otherwise, |i| i as u32)
                };
                By::Kind(self.kinds.shapes.iter().map(first).collect())
            }
            _ => By::Kind(Vec::new()),
        };
        let offset = (self.walk.choice_nodes.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let To::List(list) = self.layout.point.nodes[node as usize].to else { continue };
            let number = self.layout.number[node as usize];
            self.walk.choice_nodes.push((list, self.layout.place(node), number));
        }
        self.walk.choices.push(ChoiceSite { by, offset });
        Act::Choose { choice: self.walk.choices.len() as u32 - 1 }
    }

    pub(super) fn limit(&mut self, rate: Rate, key: Option<&KeySource>, draft: &Draft) -> Act {
        let offset = (self.walk.rates.len() as u32).wrapping_sub(draft.base);
        self.walk.rates.extend(draft.nodes[0].iter().map(|_| rate.clone()));
        let key = key.map(|k| self.key_source(k));
        self.walk.limits.push(LimitSite { key, offset });
        Act::Limit { limit: self.walk.limits.len() as u32 - 1 }
    }

    pub(super) fn hedge(&mut self, hedged: &Hedged, draft: &Draft) -> Act {
        self.walk.notes = true;
        let budget = self.budget(hedged.budget.as_ref(), draft);
        self.walk.hedges.push(HedgeSite { config: hedged.hedge.clone(), budget });
        Act::Hedge { hedge: self.walk.hedges.len() as u32 - 1 }
    }

    /// The budgets of a place, one per node.
    pub(super) fn budget(&mut self, budget: Option<&Budget>, draft: &Draft) -> Option<u32> {
        let budget = budget?;
        let offset = (self.walk.budgets.len() as u32).wrapping_sub(draft.base);
        self.walk.budgets.extend(draft.nodes[0].iter().map(|_| budget.clone()));
        Some(offset)
    }

    /// What the kinds of requests say where a node reads their key.
    fn key_source(&mut self, source: &KeySource) -> u32 {
        let says = |shape: &RequestShape| said(source, shape).map(|text| key::hash(text.as_bytes()));
        self.walk.reads_keys = true;
        self.walk.keys.push(self.kinds.shapes.iter().map(says).collect());
        self.walk.keys.len() as u32 - 1
    }

    /// The kinds of the scenario's requests.
    pub(super) fn mix(&mut self) {
        let keys = |keys: &Keys| match *keys {
            Keys::Uniform(n) => DrawnKeys::Uniform(n),
            Keys::Zipf(n, s) => DrawnKeys::zipf(n, s),
        };
        let mix = &self.scenario.mix;
        self.walk.mix = Mix::new(mix.iter().map(|r| (r.weight, r.key.as_ref().map(keys))).collect());
        if let Some(recorded) = &self.scenario.recorded {
            let hashes: Vec<u64> = recorded.keys.iter().map(|k| key::hash(k.as_bytes())).collect();
            let sender = |at: usize| {
                let key = recorded.senders.get(at).copied().flatten()?;
                hashes.get(key as usize).copied()
            };
            let rows = (0..).zip(&recorded.kinds).map(|(at, kind)| (*kind, sender(at)));
            self.walk.mix = std::mem::take(&mut self.walk.mix).recorded(rows.collect());
        }
        let all = self.kinds.shapes.iter().filter(|_| !mix.is_empty());
        self.walk.shapes = all.map(|r| Shape { idempotent: is_idempotent(&r.method) }).collect();
        self.walk.before = self.kinds.before.clone();
    }

    /// Which balancers stand behind which targets of which others, where the others' health can tell.
    pub(super) fn find_outside(&mut self) {
        let point = self.layout.point;
        self.walk.outside = vec![Vec::new(); self.code.instances.len()];
        if !self.walk.lbs.iter().any(|lb| lb.watches) {
            return;
        }
        for (&node, &outer) in &self.instances {
            let To::List(list) = point.nodes[node as usize].to else { continue };
            for (&target, index) in point.lists[list as usize].iter().zip(0u32..) {
                let behind = first_balancers(point, target);
                let found: Vec<u32> =
                    behind.iter().filter_map(|id| self.instances.get(id).copied()).collect();
                if found.is_empty() {
                    continue;
                }
                found.iter().for_each(|&inner| self.walk.outside[inner as usize].push((outer, index)));
                self.walk.inside.insert((outer, index), found);
            }
        }
    }
}

/// The balancers that the ways from a node end in.
fn first_balancers(point: &Point, from: u32) -> BTreeSet<u32> {
    let (mut found, mut seen, mut stack) = (BTreeSet::new(), BTreeSet::new(), vec![from]);
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        if let Spec::Lb(_) = &point.specs[point.nodes[id as usize].spec as usize] {
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

/// What a target is hashed by: the address of the server that its way ends at first, else that server's name.
fn name_of(point: &Point, target: u32) -> String {
    let mut at = target;
    loop {
        let node = &point.nodes[at as usize];
        if let Spec::Server { addr, .. } = &point.specs[node.spec as usize] {
            return addr.clone().or_else(|| node.name.clone()).unwrap_or_else(|| "server".into());
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

/// What a kind of request says where a key is read; `None`: its own key stands for it.
fn said<'a>(source: &KeySource, shape: &'a RequestShape) -> Option<&'a str> {
    let header =
        |name: &str| shape.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|h| h.1.as_str());
    match source {
        KeySource::Path => Some(&shape.path),
        KeySource::Header(name) => header(name),
        KeySource::Cookie(name) => header("cookie")?.split(';').find_map(|pair| {
            let (n, value) = pair.trim().split_once('=')?;
            (n == name).then_some(value)
        }),
        KeySource::Client => None,
    }
}
