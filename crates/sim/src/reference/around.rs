//! Compiles balancers with what surrounds them, and the nodes that choose, limit and hedge, to tables.

use super::build::{Act, Builder};
use crate::code::MemberId;
use crate::code::guards::BalancerNesting;
use crate::code::request_kinds::ChoiceRule;
use crate::compile::blocks::Draft;
use crate::compile::guards::{around, counts_every_ns, has_names, is_one, name_of, subset};
use crate::compile::request_kinds::says;
use std::net::IpAddr;
use weir_plan::{Edge, HedgeSpec, KeySource, Lb, Spec};
use weir_policy::config::{Balance, Budget, Hedge, Rate};
use weir_policy::retry::is_idempotent;
use weir_policy::upstream::UpstreamConfig;
use weir_workload::mix;

/// The site of a balancer.
#[derive(Clone, Debug)]
pub(crate) struct LbSite {
    pub balance: Balance,
    pub around: UpstreamConfig,
    /// How often its loops see each other's counts, ns; `None`: never.
    pub counts_every_ns: Option<u64>,
    /// Member to balancer.
    pub offset: u32,
    /// Whether all event loops share one state.
    pub shared: bool,
    /// The key that it hashes: index in [`super::build::Tables::keys`].
    pub key: Option<u32>,
    /// The cookie that keeps clients at a target, and the file with the key of its values.
    pub sticky: Option<(String, Option<String>)>,
    /// Member to spare node.
    pub spares: Option<u32>,
    pub max_waiting: u64,
    pub wait_timeout_ns: Option<u64>,
    /// Whether its health changes by itself or through outcomes.
    pub watches: bool,
    /// Whether it probes how busy its targets are.
    pub measures_probes: bool,
    pub check_timeout_ns: u64,
    pub check_cost_ns: u64,
    pub probe_cost_ns: u64,
    /// Lowest and highest status that passes a check; empty: any.
    pub check_expects: Vec<(u16, u16)>,
    /// The address that checks come from.
    pub check_source: Option<IpAddr>,
}

/// The site of a choosing node.
#[derive(Clone, Debug)]
pub(crate) struct ChoiceSite {
    pub by: ChoiceRule,
    /// Member to node.
    pub offset: u32,
}

/// The site of a rate limit.
#[derive(Clone, Debug)]
pub(crate) struct LimitSite {
    pub key: Option<u32>,
    /// Member to limit.
    pub offset: u32,
}

/// The site of a hedge.
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

impl Builder<'_> {
    pub(super) fn balance(&mut self, lb: &Lb, draft: &Draft, position: usize) -> Act {
        let index = self.tables.lbs.len() as u32;
        let offset = self.layout.add_instances(&mut self.code, draft, position, index);
        for (&node, member) in draft.nodes[position].iter().zip((draft.base..).map(MemberId)) {
            self.instances.insert(node, member.number_from(offset));
            let Edge::List(list) = self.layout.point.nodes[node as usize].to else { continue };
            if lb.balance.traits().probes {
                self.tables.probe_ways.add(self.layout.point, list);
            }
            self.tables.subsets.push(subset(self.layout.point, node, lb));
            let targets = if has_names(lb) { &self.layout.point.lists[list as usize][..] } else { &[] };
            self.tables.names.push(targets.iter().map(|&t| name_of(self.layout.point, t)).collect());
        }
        let spares = lb.spare.map(|spare| {
            let offset = (self.tables.spare_nodes.len() as u32).wrapping_sub(draft.base);
            self.tables.spare_nodes.extend(draft.nodes[position].iter().map(|_| spare));
            offset
        });
        let key = lb.key.as_ref().map(|key| self.key_source(key));
        let shared = is_one(lb);
        let around = around(lb);
        let health = &around.health;
        let watches = health.check.is_some() || health.eject.is_some() || health.outlier.is_some();
        let measures_probes = lb.balance.traits().probes;
        self.tables.probes |= measures_probes;
        self.tables.reads_keys |= lb.sticky.is_some();
        self.tables.lbs.push(LbSite {
            balance: lb.balance.clone(),
            around,
            counts_every_ns: counts_every_ns(lb),
            offset,
            shared,
            key,
            sticky: lb.sticky.clone().map(|name| (name, lb.sticky_key.clone())),
            spares,
            max_waiting: lb.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: lb.wait_timeout_ns,
            watches,
            measures_probes,
            check_timeout_ns: lb.health.as_ref().map_or(0, |h| h.timeout_ns),
            check_cost_ns: lb.health.as_ref().map_or(0, |h| h.cost_ns),
            check_source: lb.health.as_ref().and_then(|h| h.source),
            probe_cost_ns: lb.probe_cost_ns,
            check_expects: lb
                .health
                .as_ref()
                .and_then(|h| h.http.as_ref())
                .map_or_else(Vec::new, |http| http.expect.clone()),
        });
        Act::Balance { lb: index }
    }

    pub(super) fn choice(&mut self, spec: &Spec, draft: &Draft, position: usize) -> Act {
        let shapes = std::mem::take(&mut self.kinds.shapes);
        let tables = &mut self.tables;
        let by = ChoiceRule::new(spec, &shapes, |source| {
            tables.reads_keys = true;
            tables.keys.push(says(source, &shapes));
            tables.keys.len() as u32 - 1
        });
        self.kinds.shapes = shapes;
        let offset = (self.tables.choice_nodes.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let Edge::List(list) = self.layout.point.nodes[node as usize].to else { continue };
            let number = self.layout.number[node as usize];
            self.tables.choice_nodes.push((list, self.layout.place(node), number));
        }
        self.tables.choices.push(ChoiceSite { by, offset });
        Act::Choose { choice: self.tables.choices.len() as u32 - 1 }
    }

    pub(super) fn limit(&mut self, rate: Rate, key: Option<&KeySource>, draft: &Draft) -> Act {
        let offset = (self.tables.rates.len() as u32).wrapping_sub(draft.base);
        self.tables.rates.extend(draft.nodes[0].iter().map(|_| rate.clone()));
        let key = key.map(|k| self.key_source(k));
        self.tables.limits.push(LimitSite { key, offset });
        Act::Limit { limit: self.tables.limits.len() as u32 - 1 }
    }

    pub(super) fn hedge(&mut self, hedged: &HedgeSpec, draft: &Draft) -> Act {
        self.tables.notes = true;
        let budget = self.budget(hedged.budget.as_ref(), draft);
        self.tables.hedges.push(HedgeSite { config: hedged.hedge.clone(), budget });
        Act::Hedge { hedge: self.tables.hedges.len() as u32 - 1 }
    }

    /// The budgets of a site, one per node.
    pub(super) fn budget(&mut self, budget: Option<&Budget>, draft: &Draft) -> Option<u32> {
        let budget = budget?;
        let offset = (self.tables.budgets.len() as u32).wrapping_sub(draft.base);
        self.tables.budgets.extend(draft.nodes[0].iter().map(|_| budget.clone()));
        Some(offset)
    }

    /// The key that each kind of request gives a node.
    fn key_source(&mut self, source: &KeySource) -> u32 {
        self.tables.reads_keys = true;
        self.tables.keys.push(says(source, &self.kinds.shapes));
        self.tables.keys.len() as u32 - 1
    }

    /// The kinds of the scenario's requests.
    pub(super) fn mix(&mut self) {
        self.tables.mix = mix(self.scenario);
        let mix = &self.scenario.mix;
        let all = self.kinds.shapes.iter().filter(|_| !mix.is_empty());
        self.tables.shapes = all.map(|r| Shape { idempotent: is_idempotent(&r.method) }).collect();
        self.tables.before = self.kinds.before.clone();
    }

    /// Finds the balancers behind each target of the others, for those whose health can change.
    pub(super) fn find_outside(&mut self) {
        let n = self.code.instances.len();
        self.tables.outside = vec![Vec::new(); n];
        if self.tables.lbs.iter().any(|lb| lb.watches) {
            let behind = BalancerNesting::new(self.layout.point, &self.instances, n);
            (self.tables.outside, self.tables.inside) = (behind.outside, behind.inside);
        }
    }
}
