//! Balancers with something around them: health, ejection, full targets, those just found unreachable, keys, spare nodes.
//!
//! - In virtual time: none but what a request waits while all targets are full. It picks and comes back in its turn, and the
//!   balancer is looked at when something changes by itself.
//! - Given back when cut off: the place in line; the target, which nobody learns anything of.
//! - Draws: what the policy draws, by node and way.

use crate::blocks::{Draft, Layout, NOT, inside};
use crate::code::{Code, LbSite, Op, Targets};
use crate::compile::{Compiler, Post};
use crate::engine::{END_OF_TIME, Engine, WATCH};
use crate::pending::{Class, Entry, order_key};
use crate::token::{BEGINS, LINE, PARKED};
use std::collections::BTreeMap;
use weir_model::queue::Line;
use weir_policy::config::{Balance, Exclude, OnEmpty};
use weir_policy::health::HealthConfig;
use weir_policy::prequal::Busy;
use weir_policy::sticky::Memory;
use weir_policy::upstream::Around;
use weir_policy::{Ask, Kind, Picked, Release, Ticket, Upstream};
use weir_stats::Key;
use weir_topology::plan::{Lb, NodeId, Point, Scope, Spec, To};

/// A balancer's place.
#[derive(Clone, Debug)]
pub(crate) struct GuardSite {
    pub around: Around,
    /// What it hashes: index of a key source.
    pub key: Option<u32>,
    /// Whether keys return to the target that answered them.
    pub sticky: bool,
    /// Member to spare node.
    pub spares: Option<u32>,
    pub max_waiting: u64,
    pub wait_timeout_ns: Option<u64>,
    /// Whether its health changes by itself or by what comes back.
    pub watches: bool,
    pub check_timeout_ns: u64,
    pub check_cost_ns: u64,
    /// Lowest and highest status that passes a check; empty: any.
    pub check_expects: Vec<(u16, u16)>,
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
                if found.is_empty() {
                    continue;
                }
                found.iter().for_each(|&inner| behind.outside[inner as usize].push((outer, index)));
                behind.inside.insert((outer, index), found);
            }
        }
        behind
    }
}

/// The balancers that the ways from a node end in.
fn first_balancers(point: &Point, from: NodeId) -> std::collections::BTreeSet<NodeId> {
    let (mut found, mut seen) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    let mut stack = vec![from];
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
pub(crate) fn name_of(point: &Point, target: NodeId) -> String {
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

/// What stands around a balancer.
pub(crate) fn around(lb: &Lb) -> Around {
    let health = HealthConfig {
        check: lb.health.as_ref().map(|h| h.check.clone()),
        eject: lb.eject.clone(),
        outlier: lb.outlier.clone(),
        slow_start: lb.slow_start.clone().filter(|_| !lb.balance.hashes()),
        panic: lb.panic,
        on_empty: lb.on_empty,
    };
    let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min();
    Around { health, max_in_flight: most, pass_over_ns: lb.pass_over_ns, counts: false }
}

/// Whether nothing stands around a balancer, so that a request may pass it ahead of its turn.
pub(crate) fn is_plain(lb: &Lb) -> bool {
    let simple = matches!(
        lb.balance,
        Balance::Random | Balance::RoundRobin { .. } | Balance::LeastConn { .. } | Balance::P2c { .. }
    );
    let healthy = lb.health.is_none() && lb.eject.is_none() && lb.outlier.is_none();
    let unlimited = lb.max_in_flight.is_none() && lb.max_connections.is_none();
    simple && healthy && unlimited && lb.sticky.is_none() && lb.on_empty != OnEmpty::Node
}

/// The nodes that some balancer asks how busy they are.
pub(crate) fn probed(layout: &Layout) -> Vec<bool> {
    let mut probed = Vec::new();
    for (id, spec) in layout.reached() {
        if let (Spec::Lb(lb), To::List(list)) = (spec, layout.point.nodes[id as usize].to)
            && matches!(lb.balance, Balance::Prequal { .. })
        {
            probed.resize(layout.point.nodes.len(), false);
            layout.point.lists[list as usize].iter().for_each(|&t| probed[t as usize] = true);
        }
    }
    probed
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
            if config.balance.hashes() {
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
        self.code.guards.probes |= matches!(config.balance, Balance::Prequal { .. });
        self.code.kinds.reads_keys |= config.sticky.is_some();
        self.code.details = true;
        let around = around(config);
        let health = &around.health;
        let watches = health.check.is_some() || health.eject.is_some() || health.outlier.is_some();
        self.code.guards.sites.push(GuardSite {
            around,
            key,
            sticky: config.sticky.is_some(),
            spares,
            max_waiting: config.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: config.wait_timeout_ns,
            watches,
            check_timeout_ns: config.health.as_ref().map_or(0, |h| h.timeout_ns),
            check_cost_ns: config.health.as_ref().map_or(0, |h| h.cost_ns),
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

/// A balancer in virtual time, and what stands around it.
pub(crate) struct Guard {
    pub upstream: Upstream,
    /// What its choices are drawn by.
    pub picks: Key,
    pub targets: Targets,
    lb: u32,
    pub site: u32,
    /// Requests that wait until a target is not full any more.
    line: Line,
    /// Which target answered which key last.
    memory: Option<Memory>,
    /// When it is looked at next; an event at another time is stale.
    watched: u64,
    /// When its next checks begin; likewise.
    pub check_due: u64,
    /// Whether anything behind it could be picked when that was looked at last.
    alive: bool,
}

/// Keys whose target a balancer remembers.
const REMEMBERED: usize = 1 << 20;

/// The frame of a request that went to the spare node rather than to a target.
const SPARE: u32 = u32::MAX;

/// All guarded balancers of a scenario, by the number that they have among all.
#[derive(Default)]
pub(crate) struct Guards {
    of: Vec<Option<Box<Guard>>>,
    /// How busy each member is that probes ask.
    busy: Vec<Busy>,
    /// Health checks begun so far.
    pub checks_begun: u64,
}

impl Guards {
    /// `own` is what each balancer's state is drawn by, `picks` its choices.
    pub fn new(code: &Code, keys: impl Fn(u32, &crate::code::Instance) -> (Key, Key)) -> Guards {
        if code.guards.sites.is_empty() {
            return Guards::default();
        }
        let guard = |meets: u32, at: u32, i: &crate::code::Instance| {
            let site = code.lbs[i.lb as usize].guard?;
            let guard = &code.guards.sites[site as usize];
            let (weights, balance) = (&code.weights[i.list as usize], &code.lbs[i.lb as usize].balance);
            let (own, picks) = keys(meets, i);
            let names = code.guards.names.get(&at).map_or(&[][..], |names| names);
            Some(Box::new(Guard {
                upstream: Upstream::new(balance, guard.around.clone(), weights, names, 0, own),
                picks,
                targets: code.lists[i.list as usize],
                lb: i.lb,
                site,
                line: Line::default(),
                memory: guard.sticky.then(|| Memory::new(REMEMBERED)),
                watched: u64::MAX,
                check_due: u64::MAX,
                alive: true,
            }))
        };
        let of = (0..code.loops).flat_map(|meets| {
            let guard = &guard;
            code.instances.iter().zip(0..).map(move |(i, at)| guard(meets, at, i))
        });
        let probed = if code.guards.probes { code.members as usize } else { 0 };
        Guards { of: of.collect(), busy: vec![Busy::default(); probed], checks_begun: 0 }
    }

    /// The guarded balancer of that number.
    pub fn get(&mut self, index: u32) -> Option<&mut Guard> {
        self.of.get_mut(index as usize)?.as_deref_mut()
    }

    /// Requests that they still count.
    pub fn left(&self) -> u64 {
        self.of.iter().flatten().map(|g| g.upstream.total_in_flight()).sum()
    }

    /// A request leaves a target where it was for so long.
    fn left_target(&mut self, code: &Code, targets: Targets, ticket: &Ticket, now: u64) {
        if !self.busy.is_empty() {
            let to = targets.get(code, ticket.target);
            self.busy[to.member as usize].left(now - ticket.at_ns);
        }
    }
}

impl Engine<'_> {
    /// A request comes to a balancer. Where it goes on stands in its token; false: it waits.
    pub(crate) fn ask_guard(&mut self, slot: u32, pc: usize, member: u32, depth: usize, now: u64) -> bool {
        let lb = match self.code.steps[pc].op {
            Op::Ask { lb } => lb,
            _ => return false,
        };
        let site = &self.code.lbs[lb as usize];
        let index = self.instance(slot, site, member);
        self.leave_at(slot, pc as u32, member, depth);
        self.details.slots[slot as usize].retakes = false;
        self.probe(slot, index, now);
        match self.ask(slot, index, now) {
            Picked::Target(ticket) => {
                self.send_to(slot, index, ticket);
                true
            }
            Picked::Full => self.wait_for_target(slot, index, now),
            Picked::Empty => {
                self.nobody_left(slot, lb, index, now);
                true
            }
        }
    }

    fn ask(&mut self, slot: u32, index: u32, now: u64) -> Picked {
        self.left_out(slot, index);
        let detail = self.details.slots[slot as usize];
        let Some(guard) = self.guards.get(index) else { return Picked::Empty };
        let (picks, site) = (guard.picks, guard.site);
        let draw = self.choice_key(slot, picks, detail.came);
        let key = self.code.guards.sites[site as usize].key.and_then(|key| self.key(slot, key));
        // A cookie brings clients back whichever loop they meet.
        let first = index % self.code.instances.len() as u32;
        let memory = self.guards.get(first).and_then(|guard| guard.memory.as_ref());
        let sticky = memory.zip(detail.key).and_then(|(memory, key)| memory.target(key));
        let ask = Ask { draw, key, now_ns: now, exclude: &self.excluded, sticky };
        self.guards.get(index).map_or(Picked::Empty, |guard| guard.upstream.pick(&ask))
    }

    /// A request goes to a target, from the step of the balancer where it stands.
    fn send_to(&mut self, slot: u32, index: u32, ticket: Ticket) {
        let exclude = self.tokens.slots[slot as usize].exclude();
        if exclude != Exclude::None {
            self.tokens.tried[slot as usize].picked(exclude, index, ticket.target);
        }
        let Some(targets) = self.guards.get(index).map(|guard| guard.targets) else { return };
        let to = targets.get(self.code, ticket.target);
        if let Some(busy) = self.guards.busy.get_mut(to.member as usize) {
            busy.entered();
        }
        self.step_to(slot, to, ticket);
    }

    /// A request goes to a node behind a balancer; two frames know how it comes back.
    fn step_to(&mut self, slot: u32, to: crate::code::Target, ticket: Ticket) {
        let token = &self.tokens.slots[slot as usize];
        let (depth, member, selected) = (usize::from(token.depth), token.member, token.selected());
        let back = (token.pc & !(PARKED | LINE)) + 1;
        let at = ticket.at_ns;
        self.tokens.set_frame(slot, depth, [at as u32, (at >> 32) as u32, u32::from(ticket.probe)]);
        self.tokens.set_frame(slot, depth + 1, [back, member, ticket.target]);
        self.leave_at(slot, to.pc, to.member, depth + 2);
        self.members[to.member as usize].entries += i32::from(selected);
    }

    /// No target is left: an error, or the node that stands in.
    fn nobody_left(&mut self, slot: u32, lb: u32, index: u32, now: u64) {
        let site = &self.code.lbs[lb as usize];
        let member = self.tokens.slots[slot as usize].member;
        let spares = self.guards.get(index).and_then(|g| self.code.guards.sites[g.site as usize].spares);
        let Some(spares) = spares else {
            self.refuse(slot, member, site.stage, Kind::NoTarget);
            self.tokens.slots[slot as usize].pc = site.skip;
            return;
        };
        let to = self.code.guards.spares[member.wrapping_add(spares) as usize];
        self.step_to(slot, to, Ticket { target: SPARE, probe: false, at_ns: now });
    }

    /// All targets are full; true: it is refused.
    fn wait_for_target(&mut self, slot: u32, index: u32, now: u64) -> bool {
        let code = self.code;
        let Some(guard) = self.guards.get(index) else { return false };
        let (lb, site) = (&code.lbs[guard.lb as usize], &code.guards.sites[guard.site as usize]);
        let member = self.tokens.slots[slot as usize].member;
        if u64::from(guard.line.len()) >= site.max_waiting {
            self.refuse(slot, member, lb.stage, Kind::Overloaded);
            self.tokens.slots[slot as usize].pc = lb.skip;
            return true;
        }
        guard.line.join(&mut self.links, slot);
        self.stops(slot, lb.stage, member, now);
        let token = &mut self.tokens.slots[slot as usize];
        token.pc = (token.pc + 1) | LINE;
        if let Some(ns) = site.wait_timeout_ns {
            self.end_wait_after(slot, now, ns);
        }
        false
    }

    /// The longest wait for a target is over.
    pub(crate) fn wait_for_target_no_longer(&mut self, slot: u32, lb: u32, member: u32, now: u64) -> bool {
        let site = &self.code.lbs[lb as usize];
        let index = self.instance(slot, site, member);
        self.leave_guard_line(slot, index, now);
        self.refuse(slot, member, site.stage, Kind::Timeout);
        self.tokens.slots[slot as usize].pc = site.skip;
        false
    }

    /// Those who wait for a target go on, as far as there is room.
    pub(crate) fn admit(&mut self, index: u32, now: u64) {
        while let Some(slot) = self.guards.get(index).and_then(|guard| guard.line.peek()) {
            let picked = self.ask(slot, index, now);
            if picked == Picked::Full {
                return;
            }
            let lb = self.leave_guard_line(slot, index, now);
            let token = &mut self.tokens.slots[slot as usize];
            // What was to end its wait is stale.
            token.tag = token.tag.wrapping_add(1);
            token.pc = (token.pc & !LINE) - 1;
            match picked {
                Picked::Target(ticket) => {
                    self.send_to(slot, index, ticket);
                    self.begins_later(slot);
                }
                _ => {
                    token.pc |= PARKED;
                    self.details.slots[slot as usize].retakes = true;
                    // It stands there since now.
                    let (pc, member, depth) = (token.pc & !PARKED, token.member, usize::from(token.depth));
                    self.scopes.stand(slot, now, pc as usize, member, depth);
                }
            }
            debug_assert!((lb as usize) < self.code.lbs.len());
            self.wake(slot, now);
        }
    }

    /// A request that was sent somewhere begins there in its turn; if it is cut off before that it has not come there.
    pub(crate) fn begins_later(&mut self, slot: u32) {
        let token = &mut self.tokens.slots[slot as usize];
        self.members[token.member as usize].entries -= i32::from(token.selected());
        token.pc |= BEGINS;
    }

    /// A request stands in line for a target no longer; the balancer's place comes back.
    pub(crate) fn leave_guard_line(&mut self, slot: u32, index: u32, now: u64) -> u32 {
        let member = self.tokens.slots[slot as usize].member;
        let Some(guard) = self.guards.of.get_mut(index as usize).and_then(|g| g.as_deref_mut()) else {
            return NOT;
        };
        guard.line.take_out(&mut self.links, slot);
        let lb = guard.lb;
        self.book(slot, self.code.lbs[lb as usize].stage, member, now);
        lb
    }

    /// A request is back from where a balancer sent it.
    pub(crate) fn told_guard(&mut self, slot: u32, lb: u32, member: u32, depth: usize, now: u64) {
        let index = self.instance(slot, &self.code.lbs[lb as usize], member);
        let (target, ticket) = self.ticket(slot, depth);
        let token = &self.tokens.slots[slot as usize];
        let (outcome, exclude, ordinal) = (token.outcome(), token.exclude(), token.ordinal);
        if target == SPARE {
            return;
        }
        let (status, detail) = (self.answered_with(slot), self.details.slots[slot as usize]);
        if exclude != Exclude::None {
            let reached = outcome.filter(|_| !detail.relayed);
            self.tokens.tried[slot as usize].came_back(exclude, index, target, reached);
        }
        let first = index % self.code.instances.len() as u32;
        if let (None, Some(key)) = (outcome, detail.key)
            && let Some(memory) = self.guards.get(first).and_then(|guard| guard.memory.as_mut())
        {
            memory.answered(key, target);
        }
        let Some(guard) = self.guards.get(index) else { return };
        let targets = guard.targets;
        let release = if detail.relayed {
            guard.upstream.relayed(now, ticket, outcome, status)
        } else {
            guard.upstream.done(now, ticket, outcome, status)
        };
        let watches = self.code.guards.sites[guard.site as usize].watches;
        self.guards.left_target(self.code, targets, &ticket, now);
        if let Release::After(ns) = release {
            self.hold(index, target, now, ns, ordinal);
        }
        if watches || outcome == Some(Kind::ConnectFailed) {
            self.watch(index, now);
        }
        self.details.slots[slot as usize].relayed = outcome.is_some();
        self.admit(index, now);
    }

    /// What a request must hand back to the balancer that sent it, whose frames stand below that depth.
    pub(crate) fn ticket(&self, slot: u32, depth: usize) -> (u32, Ticket) {
        let [_, _, target] = self.tokens.frame(slot, depth - 1);
        let [low, high, probe] = self.tokens.frame(slot, depth - 2);
        let at_ns = u64::from(high) << 32 | u64::from(low);
        (target, Ticket { target, probe: probe != 0, at_ns })
    }

    /// A request that a balancer sent somewhere is cut off.
    pub(crate) fn guard_is_cut(&mut self, index: u32, ticket: Ticket, now: u64) {
        if ticket.target == SPARE {
            return;
        }
        let Some(guard) = self.guards.get(index) else { return };
        let (targets, watches) = (guard.targets, self.code.guards.sites[guard.site as usize].watches);
        guard.upstream.cancelled(now, ticket);
        self.guards.left_target(self.code, targets, &ticket, now);
        if watches {
            self.watch(index, now);
        }
        self.admit(index, now);
    }

    /// Asks targets how busy they are, and tells the balancer.
    fn probe(&mut self, slot: u32, index: u32, now: u64) {
        if self.guards.busy.is_empty() {
            return;
        }
        let Some(picks) = self.guards.get(index).map(|guard| guard.picks) else { return };
        let draw = self.choice_key(slot, picks, self.details.slots[slot as usize].came);
        let Guards { of, busy, .. } = &mut self.guards;
        let Some(Guard { upstream, targets, .. }) = of[index as usize].as_deref_mut() else { return };
        let Some(prequal) = upstream.balancer().prequal() else { return };
        prequal.probe(now, draw, |t| busy[targets.get(self.code, t).member as usize]);
    }

    /// Sees to it that a balancer is looked at when its health or its pass-overs change by themselves.
    pub(crate) fn watch(&mut self, index: u32, now: u64) {
        self.tell_outside(index, now);
        let Some(guard) = self.guards.get(index) else { return };
        let Some(at) = guard.upstream.next_deadline() else { return };
        let at = at.max(now);
        if at >= guard.watched {
            return;
        }
        guard.watched = at;
        let key = order_key(Class::Hold, u64::from(index));
        self.pending.push(now, Entry { at: at.min(END_OF_TIME), key, who: WATCH | index, tag: 0 });
    }

    /// A balancer is looked at.
    pub(crate) fn look_at_guard(&mut self, index: u32, now: u64) {
        let Some(guard) = self.guards.get(index).filter(|guard| guard.watched == now) else { return };
        guard.watched = u64::MAX;
        guard.upstream.tick(now);
        self.watch(index, now);
        self.admit(index, now);
    }

    /// Tells the balancers outside whether one inside has anyone left.
    fn tell_outside(&mut self, index: u32, now: u64) {
        let tables = &self.code.guards;
        let Some(outside) = tables.behind.outside.get(index as usize).filter(|o| !o.is_empty()) else {
            return;
        };
        let Some(guard) = self.guards.get(index) else { return };
        let site = &tables.sites[guard.site as usize];
        let health = guard.upstream.health();
        // On probation one is not eligible, but only a request that comes can tell whether it is well again.
        let on_probation = || !health.is_ignored() && (0..health.len()).any(|t| health.view(t).may_be_picked);
        let alive = health.count().1 > 0 || site.spares.is_some() || on_probation();
        if std::mem::replace(&mut guard.alive, alive) == alive {
            return;
        }
        for &(outer, target) in outside {
            let inner = &tables.behind.inside[&(outer, target)];
            let up = inner.iter().any(|&i| self.guards.get(i).is_none_or(|guard| guard.alive));
            for outer in self.on_all_loops(outer) {
                if let Some(guard) = self.guards.get(outer) {
                    guard.upstream.set_behind(now, target, up);
                }
                self.watch(outer, now);
                self.admit(outer, now);
            }
        }
    }

    /// The balancers of all loops at the place of the first one's.
    fn on_all_loops(&self, first: u32) -> impl Iterator<Item = u32> + use<> {
        let each = self.code.instances.len() as u32;
        let shared = self.code.lbs[self.code.instances[first as usize].lb as usize].shared;
        let loops = if shared { 1 } else { self.code.loops };
        (0..loops).map(move |meets| first + meets * each)
    }
}
