//! A balancer with all that stands around it: health, full targets, those just found unreachable, stickiness, waiting.
//!
//! Both worlds own one per balancer and loop. Time and draws are arguments: the caller says [`Upstream::tick`] at
//! [`Upstream::next_deadline`], before it picks at that instant. What a pick leaves out, hardest first: who may not be
//! picked at all (health, weight; the balancer knows), who is full or already tried on probation, who is passed over since a
//! connection failed, whom the request excludes. The last two yield where nobody else is left, exclusion first.
//!
//! With nothing around it a pick costs one flag more than the balancer's own.

use crate::ask::Ask;
use crate::balancer::Balancer;
use crate::bits::Bits;
use crate::config::Balance;
use crate::eligibility::{Admin, Transition};
use crate::health::{Health, HealthConfig};
use crate::passed_over::PassedOver;
use crate::roster::Roster;
use crate::snapshot::Snapshot;
use crate::{Kind, Outcome, Release};
use weir_stats::Key;

/// What stands around a balancer.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Who is healthy and what to do where nobody is.
    pub health: HealthConfig,
    /// Requests in flight at a target at most.
    pub max_in_flight: Option<u32>,
    /// How long a target is passed over after a connection failed, ns; only without ejection. 0: never.
    pub pass_over_ns: u64,
    /// Whether to count requests in flight though nothing limits them, so that the index of a removed target is used again
    /// under policies that do not count.
    pub counts: bool,
}

/// A request that was sent to a target; to be handed back at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Which.
    pub target: u32,
    /// Whether it is the one that tries a target on probation.
    pub probe: bool,
    /// When it was picked.
    pub at_ns: u64,
}

/// The answer to a request for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picked {
    /// Send it there.
    Target(Ticket),
    /// All targets that may be picked are full: it waits.
    Full,
    /// Nobody is left: `on_empty`.
    Empty,
}

/// A balancer and what stands around it.
#[derive(Clone, Debug)]
pub struct Upstream {
    balancer: Balancer,
    /// Nothing is left out and nothing counted: the balancer alone decides.
    plain: bool,
    /// What comes back matters to the balancer alone, unless no connection was made.
    simple: bool,
    measures: bool,
    ramps: bool,
    counting: bool,
    max_in_flight: u32,
    /// Requests in flight at each target; empty where nobody counts.
    counts: Vec<u32>,
    /// Targets at their limit, here or as somebody else says.
    full: Bits,
    /// Targets whose one request on probation is under way.
    probing: Bits,
    passed_over: PassedOver,
    health: Box<Health>,
    /// The version of its own health that the balancer has seen.
    seen: u64,
    /// The version of the process's health that it has seen since.
    followed: Option<u64>,
}

impl Upstream {
    /// A balancer over targets of these weights and names (what hashes know them by) from `start` on.
    pub fn new(
        balance: &Balance,
        around: Around,
        weights: &[f64],
        names: &[impl AsRef<str>],
        start: u64,
        draw: Key,
    ) -> Upstream {
        let n = weights.len() as u32;
        let balancer = if balance.hashes() && names.len() == weights.len() {
            Balancer::with_names(balance, weights, names, draw)
        } else {
            Balancer::new(balance, weights, draw)
        };
        let ejects = around.health.eject.is_some() || around.health.outlier.is_some();
        let counting = around.counts || around.max_in_flight.is_some();
        let mut upstream = Upstream {
            balancer,
            plain: false,
            simple: !balance.measures() && !counting && !ejects,
            measures: balance.measures(),
            ramps: !balance.hashes(),
            counting,
            max_in_flight: around.max_in_flight.unwrap_or(u32::MAX),
            counts: vec![0; if counting { weights.len() } else { 0 }],
            full: Bits::new(n),
            probing: Bits::new(n),
            passed_over: PassedOver::new(if ejects { 0 } else { around.pass_over_ns }),
            health: Box::new(Health::new(around.health, weights, start, draw.with(3))),
            seen: u64::MAX,
            followed: None,
        };
        upstream.look(start);
        upstream
    }

    /// The balancer itself.
    pub fn balancer(&mut self) -> &mut Balancer {
        &mut self.balancer
    }

    /// Who the targets are.
    pub fn roster(&self) -> &Roster {
        self.balancer.roster()
    }

    /// Who is healthy.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Requests in flight at a target, where somebody counts them.
    pub fn in_flight(&self, target: u32) -> Option<u32> {
        self.counts.get(target as usize).copied().or_else(|| self.balancer.in_flight(target))
    }

    /// What is counted in flight over all targets: by the policy, and here where a limit (or `counts`) asks for it. Where both
    /// count each request is in it twice, where neither does it is 0: for checks that nothing is left, not for figures.
    pub fn total_in_flight(&self) -> u64 {
        self.balancer.total_in_flight() + self.counts.iter().map(|n| u64::from(*n)).sum::<u64>()
    }

    /// Picks a target for a request and counts it.
    #[inline]
    pub fn pick(&mut self, ask: &Ask) -> Picked {
        if self.plain && ask.sticky.is_none() {
            return match self.balancer.ask(ask) {
                Some(target) => Picked::Target(Ticket { target, probe: false, at_ns: ask.now_ns }),
                None => Picked::Empty,
            };
        }
        self.pick_among(ask)
    }

    #[inline(never)]
    fn pick_among(&mut self, ask: &Ask) -> Picked {
        let target = match self.stick(ask) {
            Some(target) => Some(target),
            None => self.choose(ask),
        };
        match target {
            Some(target) => Picked::Target(self.sent(ask, target)),
            None if self.anyone_full() => Picked::Full,
            None => Picked::Empty,
        }
    }

    /// The target that the request should return to, if nothing speaks against it.
    fn stick(&mut self, ask: &Ask) -> Option<u32> {
        let target = ask.sticky?;
        let weight = self.balancer.roster().effective().get(target as usize).copied()?;
        let out = self.full.has(target)
            || self.probing.has(target)
            || self.passed_over.targets().has(target)
            || ask.exclude.contains(&target);
        (weight > 0.0 && !out).then(|| {
            self.balancer.take(target);
            target
        })
    }

    fn choose(&mut self, ask: &Ask) -> Option<u32> {
        let hard = !self.full.is_empty() || !self.probing.is_empty();
        let soft = !self.passed_over.targets().is_empty();
        if !hard && !soft {
            return self.balancer.ask(ask);
        }
        let Upstream { balancer, full, probing, passed_over, .. } = self;
        let over = passed_over.targets();
        for (passed, excluded) in [(true, true), (true, false), (false, true), (false, false)] {
            if passed && !soft || excluded && ask.exclude.is_empty() {
                continue;
            }
            let barred = |t| {
                full.has(t) || probing.has(t) || passed && over.has(t) || excluded && ask.exclude.contains(&t)
            };
            if let Some(target) = balancer.ask_where(ask, barred) {
                return Some(target);
            }
        }
        None
    }

    fn anyone_full(&self) -> bool {
        let weights = self.balancer.roster().effective();
        self.full.iter().any(|t| weights.get(t as usize).is_some_and(|w| *w > 0.0))
    }

    fn sent(&mut self, ask: &Ask, target: u32) -> Ticket {
        let probe = self.health.listens() && self.health.picked(target);
        if probe {
            self.probing.set(target, true);
        }
        if let Some(count) = self.counts.get_mut(target as usize) {
            *count += 1;
            if *count >= self.max_in_flight {
                self.full.set(target, true);
            }
        }
        Ticket { target, probe, at_ns: ask.now_ns }
    }

    /// A request came back, with the status of its answer where there was one.
    #[inline]
    pub fn done(&mut self, now: u64, ticket: Ticket, outcome: Outcome, status: Option<u16>) -> Release {
        if self.simple && outcome != Some(Kind::ConnectFailed) {
            return self.balancer.done(ticket.target, outcome);
        }
        self.done_fully(now, ticket, outcome, status, false)
    }

    /// A request came back from a target that was reached: what it says of a connection is of one behind that target. It
    /// counts as every error does, and is no reason to pass the target over.
    pub fn relayed(&mut self, now: u64, ticket: Ticket, outcome: Outcome, status: Option<u16>) -> Release {
        self.done_fully(now, ticket, outcome, status, true)
    }

    #[inline(never)]
    fn done_fully(
        &mut self,
        now: u64,
        ticket: Ticket,
        outcome: Outcome,
        status: Option<u16>,
        reached: bool,
    ) -> Release {
        let target = ticket.target;
        let release = if self.measures {
            self.balancer.finished(now, target, now.saturating_sub(ticket.at_ns), outcome)
        } else {
            self.balancer.done(target, outcome)
        };
        self.came_back(target);
        if self.health.listens() && self.health.outcome(now, target, ticket.probe, outcome, status) {
            self.look(now);
        }
        if ticket.probe {
            self.probing.set(target, false);
            self.simplify();
        }
        let unreached = outcome == Some(Kind::ConnectFailed) && !reached;
        if unreached && self.passed_over.failed(now, target, self.full.len()) {
            self.simplify();
        }
        release
    }

    /// A request was cancelled: whatever it was about to say, nobody knows.
    pub fn cancelled(&mut self, now: u64, ticket: Ticket) {
        let took = now.saturating_sub(ticket.at_ns);
        self.balancer.cancelled(now, ticket.target, took);
        self.came_back(ticket.target);
        if ticket.probe {
            self.health.probe_ended(ticket.target);
            self.probing.set(ticket.target, false);
            self.simplify();
        }
    }

    /// A count that was held ([`Release::After`]) ends.
    pub fn release(&mut self, target: u32) {
        self.balancer.release(target);
    }

    #[inline]
    fn came_back(&mut self, target: u32) {
        if let Some(count) = self.counts.get_mut(target as usize) {
            debug_assert!(*count > 0, "a target with nothing in flight got a request back");
            *count = count.saturating_sub(1);
            if *count < self.max_in_flight {
                self.full.set(target, false);
            }
        }
    }

    /// Somebody else counts (the process, for all loops): the target is full, or is not any more.
    pub fn set_full(&mut self, target: u32, full: bool) {
        self.full.set(target, full);
        self.simplify();
    }

    /// When [`Upstream::tick`] has something to do. Checks are apart ([`Upstream::next_check`]).
    pub fn next_deadline(&mut self) -> Option<u64> {
        self.health.next_deadline().into_iter().chain(self.passed_over.next_deadline()).min()
    }

    /// Time has passed: ejections and pass-overs end, ramps go on, outliers are swept.
    pub fn tick(&mut self, now: u64) {
        if self.passed_over.tick(now) {
            self.simplify();
        }
        if self.health.tick(now) {
            self.look(now);
        }
    }

    /// When the next check begins.
    pub fn next_check(&mut self) -> Option<u64> {
        self.health.next_check()
    }

    /// A target whose check begins now; again until `None`.
    pub fn start_check(&mut self, now: u64) -> Option<u32> {
        self.health.start_check(now)
    }

    /// A check has ended.
    pub fn check_result(&mut self, now: u64, target: u32, passed: bool) {
        if self.health.check_result(now, target, passed) {
            self.look(now);
        }
    }

    /// The transitions since the last call, for metrics and logs.
    pub fn take_transitions(&mut self) -> impl Iterator<Item = Transition> + '_ {
        self.health.take_transitions()
    }

    /// Makes the balancer see what its own health says.
    fn look(&mut self, now: u64) {
        if self.seen != self.health.version() {
            self.seen = self.health.version();
            self.followed = None;
            show(&mut self.balancer, &Snapshot::of(&self.health), now, self.ramps);
        }
        self.simplify();
    }

    /// Makes the balancer see what the process's health says: for a loop that does not own it. Its own health then has
    /// nothing that changes by itself.
    pub fn follow(&mut self, now: u64, health: &Snapshot) {
        if self.followed != Some(health.version()) {
            self.followed = Some(health.version());
            show(&mut self.balancer, health, now, self.ramps);
        }
    }

    /// Targets at their limit.
    pub fn full(&self) -> &Bits {
        &self.full
    }

    /// Somebody else owns the health: the one request that tries this target is under way elsewhere, or is not any more.
    pub fn set_probing(&mut self, target: u32, probing: bool) {
        self.probing.set(target, probing);
        self.simplify();
    }

    /// A pick that could not be had: somebody else took the last place there. It never was.
    pub fn give_up(&mut self, ticket: Ticket) {
        self.balancer.release(ticket.target);
        self.came_back(ticket.target);
    }

    fn simplify(&mut self) {
        let nobody_probes = self.probing.is_empty() && !self.health.anyone_half_open();
        self.plain =
            !self.counting && self.full.is_empty() && nobody_probes && self.passed_over.targets().is_empty();
    }
}

/// The balancer's roster is as the health has it.
fn show(balancer: &mut Balancer, health: &Snapshot, now: u64, ramps: bool) {
    let n = health.len().min(balancer.roster().len());
    let same = (0..n).all(|t| {
        let (view, roster) = (health.view(t, ramps), balancer.roster());
        !roster.exists(t)
            || roster.is_eligible(t) == view.may_be_picked && roster.weights()[t as usize] == view.weight
    });
    if same {
        return;
    }
    balancer.change(now, |roster| {
        for t in 0..n {
            let view = health.view(t, ramps);
            roster.set_weight(t, view.weight);
            roster.set_eligible(t, view.may_be_picked);
        }
    });
}

/// The target set, while it runs. None of this is for the path of a request.
impl Upstream {
    /// A new target; its index. That of a removed one is used again once nothing is in flight there, as far as anybody counts.
    pub fn add(&mut self, now: u64, weight: f64, name: &str) -> u32 {
        let roster = self.balancer.roster();
        let target = roster.gone().find(|&t| self.in_flight(t) == Some(0)).unwrap_or(roster.len());
        self.balancer.add_at(now, target, weight, name);
        let n = self.balancer.roster().len();
        if self.counting {
            self.counts.resize(n as usize, 0);
        }
        [&mut self.full, &mut self.probing].into_iter().for_each(|b| b.grow(n));
        self.health.add(now, target, weight);
        self.passed_over.forget(target);
        self.full.set(target, self.max_in_flight == 0);
        self.probing.set(target, false);
        self.look(now);
        target
    }

    /// Takes a target away: no new picks, what is in flight goes on to its end.
    pub fn remove(&mut self, now: u64, target: u32) {
        self.balancer.remove(now, target);
        self.health.remove(target);
        self.passed_over.forget(target);
        self.probing.set(target, false);
        self.look(now);
    }

    /// Another weight.
    pub fn set_weight(&mut self, now: u64, target: u32, weight: f64) {
        self.health.set_weight(target, weight);
        self.look(now);
    }

    /// The operator's word on a target: up, drained or down.
    pub fn set_admin(&mut self, now: u64, target: u32, admin: Admin) {
        if self.health.set_admin(now, target, admin) {
            self.look(now);
        }
    }

    /// Whether what stands behind a target has anyone left.
    pub fn set_behind(&mut self, now: u64, target: u32, up: bool) {
        if self.health.set_behind(now, target, up) {
            self.look(now);
        }
    }
}

#[cfg(test)]
mod tests;
