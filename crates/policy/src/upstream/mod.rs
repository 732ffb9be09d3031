//! A balancer with everything around it: health, full targets, passed-over targets, stickiness, waiting.
//!
//! Time and draws are arguments: the caller calls [`Upstream::tick`] at [`Upstream::next_deadline`], before it picks
//! at that time. Health, full targets and trials belong to the process; the policy's state and the passed-over
//! targets to each event loop ([`OnLoop`]). A simulation has one `Upstream` per balancer, for all loops; served, each
//! loop has one of its own, and receives the process's state ([`Upstream::follow`], [`Upstream::set_full`],
//! [`Upstream::set_probing`]). So it is with the subsets that loops prefer: kept here ([`Upstream::keep_subsets`]) or
//! received ([`Upstream::follow_subsets`]).

use crate::balance::Ask;
use crate::balance::Balance;
use crate::balance::Balancer;
use crate::balance::balancer::Changed;
use crate::balance::roster::Roster;
use crate::ds::bits::Bits;
use crate::health::eligibility::{Admin, Transition};
use crate::health::snapshot::Snapshot;
use crate::health::{Health, HealthConfig};
use crate::subset::Subsets;
use crate::upstream::passed_over::PassedOver;
use crate::{Outcome, Release, TargetChange, TargetId, TargetNames};
use on_loop::{Loops, PerLoop};
use serde::{Deserialize, Serialize};
use sharing::Sharing;
use weir_stats::Key;

pub use on_loop::OnLoop;

pub mod journal;
mod limits;
mod on_loop;
pub mod passed_over;
mod preference;
mod renewal;
mod sharing;
mod subsets;

/// The settings around a balancer.
#[derive(Clone, Debug, Default)]
pub struct UpstreamConfig {
    /// Which targets are healthy, and what to do without any.
    pub health: HealthConfig,
    /// The most requests in flight at a target.
    pub max_in_flight: Option<u32>,
    /// The time for which a target is passed over after a failed connection, ns; only without ejection. 0: never.
    pub pass_over_ns: u64,
    /// Count requests in flight even without a limit: otherwise a removed target's index cannot be reused under
    /// policies that do not count.
    pub counts: bool,
}

/// A request that was sent to a target; to be given back at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The target.
    pub target: TargetId,
    /// Whether it is the trial of a target on probation.
    pub probe: bool,
    /// How many requests it met at a target that `lb.prequal` probes; set by what sends it there.
    #[serde(default, skip_serializing_if = "is_none")]
    pub met: u16,
    /// When it was picked.
    pub at_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(met: &u16) -> bool {
    *met == 0
}

/// The answer to a pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickOutcome {
    /// Send it there.
    Target(Ticket),
    /// All targets that may be picked are full: the request waits.
    Full,
    /// No target is left: `on_empty`.
    Empty,
}

/// A balancer with everything around it.
#[derive(Debug)]
pub struct Upstream {
    loops: Loops,
    /// Outcomes matter to the balancer alone, unless no connection was made.
    simple: bool,
    measures: bool,
    ramps: bool,
    counting: bool,
    max_in_flight: u32,
    /// The limits of targets while some are on a ramp that lowers theirs; empty: all have the common one.
    limits: Vec<u32>,
    /// Requests in flight at each target; empty if they are not counted here.
    counts: Vec<u32>,
    /// Targets at their limit, here or as set by the owner of the count.
    full: Bits,
    /// Targets whose trial is in progress.
    probing: Bits,
    health: Box<Health>,
    /// What loops see of each other's counts; `None`: each its own alone.
    sharing: Option<Box<Sharing>>,
    /// The version of its own health that the balancer has seen.
    seen: u64,
    /// The version of the process's health that it has seen since.
    followed: Option<u64>,
    /// The subsets of its loops, if it keeps them itself.
    subsets: Option<Box<Subsets>>,
}

impl Upstream {
    /// A balancer over targets of these weights and names (used by hashes) from `start` on, on one loop.
    pub fn new(
        balance: &Balance,
        around: UpstreamConfig,
        weights: &[f64],
        names: impl Into<TargetNames>,
        start: u64,
        draw: Key,
    ) -> Upstream {
        let n = weights.len() as u32;
        let ejects = around.health.eject.is_some() || around.health.outlier.is_some();
        let counting = around.counts || around.max_in_flight.is_some();
        let pass_over_ns = if ejects { 0 } else { around.pass_over_ns };
        let first = PerLoop::new(
            balancer(balance, weights, named(balance, names), draw),
            PassedOver::new(pass_over_ns),
        );
        let mut upstream = Upstream {
            loops: Loops { first, others: Vec::new() },
            simple: !balance.traits().measures && !counting && !ejects,
            measures: balance.traits().measures,
            ramps: !balance.traits().hashes,
            counting,
            max_in_flight: around.max_in_flight.unwrap_or(u32::MAX),
            limits: Vec::new(),
            counts: vec![0; if counting { weights.len() } else { 0 }],
            full: Bits::new(n),
            probing: Bits::new(n),
            health: Box::new(Health::new(around.health, weights, start, draw.with(3))),
            sharing: None,
            seen: u64::MAX,
            followed: None,
            subsets: None,
        };
        upstream.look(start);
        upstream
    }

    /// Adds a loop, with the same policy and a state of its own.
    pub fn add_loop(
        &mut self,
        balance: &Balance,
        weights: &[f64],
        names: impl Into<TargetNames>,
        now_ns: u64,
        draw: Key,
    ) {
        let passed_over = PassedOver::new(self.loops.first.passed_over.lasts_ns());
        let mut own = PerLoop::new(balancer(balance, weights, named(balance, names), draw), passed_over);
        show(&mut own, &Snapshot::new(&self.health), now_ns, self.ramps);
        if let Some(subsets) = &self.subsets {
            own.prefer(now_ns, subsets.table(), self.loops.others.len() as u32 + 1);
        }
        self.loops.others.push(own);
        self.simplify();
    }

    /// The balancer as a loop sees it.
    #[inline]
    pub fn on(&mut self, on: u32) -> OnLoop<'_> {
        OnLoop::new(self, on)
    }

    /// The targets.
    pub fn roster(&self) -> &Roster {
        self.loops.first.balancer.roster()
    }

    /// The health of the targets.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Requests in flight at a target, if they are counted.
    pub fn in_flight(&self, target: TargetId) -> Option<u32> {
        let by_policy = || self.loops.all().map(|own| own.balancer.in_flight(target)).sum();
        let shared = || self.sharing.as_ref().map(|sharing| sharing.count(target));
        self.counts.get(target.index()).copied().or_else(shared).or_else(by_policy)
    }

    /// The sum of all counts in flight: by the policy, and here if a limit (or `counts`) requires it. If both count,
    /// each request is in it twice; if neither does, it is 0: for checks that nothing is left, not for figures.
    pub fn total_in_flight(&self) -> u64 {
        let by_policy: u64 = match self.sharing.as_ref().and_then(|sharing| sharing.total()) {
            Some(total) => total,
            None => self.loops.all().map(|own| own.balancer.total_in_flight()).sum(),
        };
        by_policy + self.counts.iter().map(|n| u64::from(*n)).sum::<u64>()
    }

    /// Whether the only loop, or the first, passes a target over after a failed connection.
    pub fn is_passed_over(&self, target: TargetId) -> bool {
        self.loops.first.passed_over.targets().has(target.0)
    }

    /// The estimate of a target's response time on the only loop, or the first, ns; `None`: its policy estimates
    /// nothing.
    pub fn estimate_ns(&self, now_ns: u64, target: TargetId) -> Option<f64> {
        self.loops.first.balancer.estimate_ns(now_ns, target)
    }

    /// The load that the only loop, or the first, has read last in an answer of a target; `None`: none.
    pub fn reported_load(&self, target: TargetId) -> Option<f32> {
        self.loops.first.balancer.zuul()?.reported(target)
    }

    /// [`OnLoop::pick`] on the only loop, or the first.
    #[inline]
    pub fn pick(&mut self, ask: &Ask) -> PickOutcome {
        self.on(0).pick(ask)
    }

    /// [`OnLoop::done`] on the only loop, or the first.
    #[inline]
    pub fn done(&mut self, now_ns: u64, ticket: Ticket, outcome: Outcome, status: Option<u16>) -> Release {
        self.on(0).done(now_ns, ticket, outcome, status)
    }

    /// [`OnLoop::relayed`] on the only loop, or the first.
    pub fn relayed(&mut self, now_ns: u64, ticket: Ticket, outcome: Outcome, status: Option<u16>) -> Release {
        self.on(0).relayed(now_ns, ticket, outcome, status)
    }

    /// [`OnLoop::loaded`] on the only loop, or the first.
    pub fn loaded(&mut self, now_ns: u64, target: TargetId, load: f32) {
        self.on(0).loaded(now_ns, target, load);
    }

    /// [`OnLoop::cancelled`] on the only loop, or the first.
    pub fn cancelled(&mut self, now_ns: u64, ticket: Ticket) {
        self.on(0).cancelled(now_ns, ticket);
    }

    /// [`OnLoop::timed_out`] on the only loop, or the first.
    pub fn timed_out(&mut self, now_ns: u64, ticket: Ticket) {
        self.on(0).timed_out(now_ns, ticket);
    }

    /// [`OnLoop::release`] on the only loop, or the first.
    pub fn release(&mut self, now_ns: u64, target: TargetId) {
        self.on(0).release(now_ns, target);
    }

    /// [`OnLoop::give_up`] on the only loop, or the first.
    pub fn give_up(&mut self, ticket: Ticket) {
        self.on(0).give_up(ticket);
    }

    /// The balancer of the only loop, or of the first.
    pub fn balancer(&mut self) -> &mut Balancer {
        &mut self.loops.first.balancer
    }

    /// Sets whether a target is full, when the process counts for all loops.
    pub fn set_full(&mut self, target: TargetId, full: bool) {
        self.full.set(target.0, full);
        self.simplify();
    }

    /// When [`Upstream::tick`] has something to do. Checks are separate ([`Upstream::next_check`]).
    pub fn next_deadline(&mut self) -> Option<u64> {
        let passed_over = self.loops.all().filter_map(|own| own.passed_over.next_deadline());
        self.health.next_deadline().into_iter().chain(passed_over).min()
    }

    /// Advances the time: ejections and pass-overs end, ramps advance, outliers are swept.
    pub fn tick(&mut self, now_ns: u64) {
        let mut back = false;
        self.loops.all_mut().for_each(|own| back |= own.passed_over.tick(now_ns));
        if back {
            self.simplify();
        }
        if self.health.tick(now_ns) {
            self.look(now_ns);
        }
    }

    /// When the next check begins.
    pub fn next_check(&mut self) -> Option<u64> {
        self.health.next_check()
    }

    /// The next target whose check begins now; call again until `None`.
    pub fn start_check(&mut self, now_ns: u64) -> Option<TargetId> {
        self.health.start_check(now_ns)
    }

    /// Ends a check.
    pub fn check_result(&mut self, now_ns: u64, target: TargetId, passed: bool) {
        if self.health.check_result(now_ns, target, passed) {
            self.look(now_ns);
        }
    }

    /// The transitions since the last call, for metrics and logs.
    pub fn take_transitions(&mut self) -> impl Iterator<Item = Transition> + '_ {
        self.health.take_transitions()
    }

    /// Passes the current health to all loops.
    fn look(&mut self, now_ns: u64) {
        if self.seen != self.health.version() {
            self.seen = self.health.version();
            self.followed = None;
            self.show(&Snapshot::new(&self.health), now_ns);
            self.heed_limits();
        }
        self.simplify();
    }

    /// Passes the process's health to the balancer, for a loop that does not own it. Its own health then changes no
    /// more by itself.
    pub fn follow(&mut self, now_ns: u64, health: &Snapshot) {
        if self.followed != Some(health.version()) {
            self.followed = Some(health.version());
            self.show(health, now_ns);
        }
    }

    fn show(&mut self, health: &Snapshot, now_ns: u64) {
        let ramps = self.ramps;
        self.loops.all_mut().for_each(|own| show(own, health, now_ns, ramps));
    }

    /// Targets at their limit.
    pub fn full(&self) -> &Bits {
        &self.full
    }

    /// Sets whether the trial of this target is in progress elsewhere, when the health is owned elsewhere.
    pub fn set_probing(&mut self, target: TargetId, probing: bool) {
        self.probing.set(target.0, probing);
        self.simplify();
    }

    fn simplify(&mut self) {
        let nobody_probes = self.probing.is_empty() && !self.health.anyone_half_open();
        let alone = !self.counting && self.sharing.is_none();
        let plain = alone && self.full.is_empty() && nobody_probes;
        for own in self.loops.all_mut() {
            own.plain = plain && own.passed_over.targets().is_empty() && own.preference.is_none();
        }
    }
}

/// The names, where a policy hashes them.
fn named(balance: &Balance, names: impl Into<TargetNames>) -> TargetNames {
    if balance.traits().hashes { names.into() } else { TargetNames::default() }
}

fn balancer(balance: &Balance, weights: &[f64], names: TargetNames, draw: Key) -> Balancer {
    if balance.traits().hashes && names.len() == weights.len() {
        Balancer::with_names(balance, weights, names, draw)
    } else {
        Balancer::new(balance, weights, draw)
    }
}

/// Shows the health to a loop, unless its balancer's roster agrees with it.
fn show(own: &mut PerLoop, health: &Snapshot, now_ns: u64, ramps: bool) {
    let PerLoop { balancer, preference, .. } = own;
    let n = health.len().min(balancer.roster().len());
    let same = TargetId::all(n).all(|t| {
        let (view, roster) = (health.view(t, ramps), balancer.roster());
        roster.agrees(t, view.weight, view.may_be_picked)
    });
    if same {
        return;
    }
    balancer.change(now_ns, |roster| {
        apply(roster, health, ramps, &mut Changed::new());
        if let Some(preference) = preference {
            preference.settle(roster, &mut Changed::new());
        }
    });
}

/// Gives the roster what the health says; adds the targets of which that differs to `changed`.
fn apply(roster: &mut Roster, health: &Snapshot, ramps: bool, changed: &mut Changed) {
    for t in TargetId::all(health.len().min(roster.len())) {
        let view = health.view(t, ramps);
        if roster.agrees(t, view.weight, view.may_be_picked) {
            continue;
        }
        roster.set_weight(t, view.weight);
        roster.set_eligible(t, view.may_be_picked);
        changed.push(t);
    }
}

/// Changes of the target set during operation. None of this is for the path of a request.
impl Upstream {
    /// Adds a target; returns its index. The index of a removed one is used again once nothing is in flight there, as
    /// far as that is counted.
    pub fn add(&mut self, now_ns: u64, weight: f64, name: &str) -> TargetId {
        let roster = self.roster();
        let target = roster.gone().find(|&t| self.in_flight(t) == Some(0)).unwrap_or(TargetId(roster.len()));
        self.add_at(now_ns, target, weight, name);
        target
    }

    /// Adds a target at the index of a removed one, or the next. The caller knows that nothing is in flight there.
    pub fn add_at(&mut self, now_ns: u64, target: TargetId, weight: f64, name: &str) {
        self.change_targets(now_ns, &[TargetChange::Add { target, weight, name }]);
    }

    /// Removes a target: no new picks; requests in flight continue.
    pub fn remove(&mut self, now_ns: u64, target: TargetId) {
        self.change_targets(now_ns, &[TargetChange::Remove(target)]);
    }

    /// Adds and removes targets, in this order. The policy and the health see the whole once, so that the cost is that
    /// of a pass over the targets, for any number of changes.
    pub fn change_targets(&mut self, now_ns: u64, changes: &[TargetChange<'_>]) {
        let is_known = self.seen == self.health.version() && self.health.is_plain();
        let table = self.subsets.as_mut().map(|subsets| subsets.change(changes.iter().copied()).clone());
        for own in self.loops.all_mut() {
            own.change_targets(now_ns, changes, table.as_ref());
        }
        self.health.change_targets(now_ns, changes.iter().copied());
        self.make_room(changes.iter().copied());
        if is_known && self.health.is_plain() {
            // Health says no more of them than the changes have.
            (self.seen, self.followed) = (self.health.version(), None);
        }
        self.look(now_ns);
    }

    /// The same with the names of all targets after the changes, by index. `health`: what the owner says of all of them
    /// then, for a loop that does not own it; its policy follows once, and its own health, which counts for nothing, stays
    /// as it is.
    pub fn change_named<'a>(
        &mut self,
        now_ns: u64,
        changes: impl Iterator<Item = TargetChange<'a>> + Clone,
        names: &TargetNames,
        health: Option<&Snapshot>,
    ) {
        let ramps = self.ramps;
        let table = self.subsets.as_mut().map(|subsets| subsets.change(changes.clone()).clone());
        for own in self.loops.all_mut() {
            let PerLoop { balancer, preference, .. } = own;
            balancer.change_named(now_ns, changes.clone(), names, |roster, changed| {
                health.into_iter().for_each(|health| apply(roster, health, ramps, changed));
                if let Some(preference) = preference {
                    preference.follow(table.as_ref(), changes.clone(), roster, changed);
                }
            });
        }
        self.make_room(changes.clone());
        match health {
            Some(health) => {
                self.followed = Some(health.version());
                self.simplify();
            }
            None => {
                self.health.change_targets(now_ns, changes);
                self.look(now_ns);
            }
        }
    }

    /// Sets what is kept by target, besides the policy and the health, for changed targets.
    fn make_room<'a>(&mut self, changes: impl Iterator<Item = TargetChange<'a>> + Clone) {
        for own in self.loops.all_mut() {
            own.passed_over.forget(changes.clone().map(|change| change.target()));
        }
        let n = self.roster().len();
        if self.counting {
            self.counts.resize(n as usize, 0);
        }
        [&mut self.full, &mut self.probing].into_iter().for_each(|b| b.grow(n));
        for change in changes {
            if let TargetChange::Add { target, .. } = change {
                self.full.set(target.0, self.max_in_flight == 0);
            }
            self.probing.set(change.target().0, false);
        }
    }

    /// Sets a weight.
    pub fn set_weight(&mut self, now_ns: u64, target: TargetId, weight: f64) {
        self.health.set_weight(target, weight);
        self.look(now_ns);
    }

    /// Sets the operator's word on a target: up, drained or down.
    pub fn set_admin(&mut self, now_ns: u64, target: TargetId, admin: Admin) {
        if self.health.set_admin(now_ns, target, admin) {
            self.look(now_ns);
        }
    }

    /// Sets the operator's word and the weight of any number of targets; the policy and the loops see the whole once.
    pub fn set_by_hand(&mut self, now_ns: u64, settings: &[(TargetId, Admin, f64)]) {
        let mut weights = Vec::new();
        for &(target, admin, weight) in settings {
            self.health.set_admin(now_ns, target, admin);
            if self.health.view(target).weight != weight {
                weights.push((target, weight));
            }
        }
        self.health.set_weights(weights);
        self.look(now_ns);
    }

    /// Sets whether the balancers behind a target have any target left.
    pub fn set_behind(&mut self, now_ns: u64, target: TargetId, up: bool) {
        if self.health.set_behind(now_ns, target, up) {
            self.look(now_ns);
        }
    }
}

#[cfg(test)]
mod newcomers;
#[cfg(test)]
mod tests;
