//! A balancer of any policy: the one object that the simulator and the proxy hold, dispatched by enum.

mod cold;

use crate::balance::least_conn::LeastConn;
use crate::balance::least_work::LeastWork;
use crate::balance::p2c::P2c;
use crate::balance::policy::{Policy, Release};
use crate::balance::prequal::Prequal;
use crate::balance::random::Random;
use crate::balance::roster::Roster;
use crate::balance::round_robin::RoundRobin;
use crate::balance::table::Table;
use crate::balance::zuul::Zuul;
use crate::balance::{Ask, Balance};
use crate::key::TakenNames;
use crate::{Outcome, SharedCounts, TargetChange, TargetId, TargetNames};
use cold::ColdPolicy;
use smallvec::SmallVec;
use std::sync::Arc;
use weir_stats::Key;

/// Changes that are few enough to be followed one by one.
const FEW: usize = 8;

/// Targets that may have changed.
pub(crate) type Changed = SmallVec<[TargetId; FEW]>;

/// The state of one balancer: one per event loop, unless the process shares one.
#[derive(Clone, Debug)]
pub struct Balancer {
    state: State,
    /// The targets. A pick does not look at it.
    roster: Box<Roster>,
}

/// The state of its policy. Large ones lie behind a pointer, so that many small ones stay in the cache. The tag has a
/// byte of its own: hidden in a vector's capacity, as it would be, it takes five instructions to read at each pick and
/// return.
#[derive(Clone, Debug)]
#[repr(u8)]
enum State {
    Random(Random),
    RoundRobin(RoundRobin),
    LeastConn(LeastConn),
    P2c(P2c),
    Cold(Box<ColdPolicy>),
}

/// Calls a method of [`Policy`] on the state, whichever policy it is.
macro_rules! dispatch {
    ($state:expr, $method:ident($($argument:expr),*)) => {
        match $state {
            State::Random(lb) => Policy::$method(lb, $($argument),*),
            State::RoundRobin(lb) => Policy::$method(lb, $($argument),*),
            State::LeastConn(lb) => Policy::$method(lb, $($argument),*),
            State::P2c(lb) => Policy::$method(lb, $($argument),*),
            State::Cold(cold) => cold.$method($($argument),*),
        }
    };
}

impl Balancer {
    /// A balancer over targets of these weights, named by their numbers. `draw` is what it draws once (where to start).
    pub fn new(config: &Balance, weights: &[f64], draw: Key) -> Balancer {
        let roster = Roster::new(weights);
        let hashes = config.traits().hashes;
        let names: Vec<String> = (0..if hashes { weights.len() } else { 0 }).map(|i| i.to_string()).collect();
        Balancer::from_roster(config, roster.named(&names), draw)
    }

    /// As [`Balancer::new`], with what targets are hashed by.
    pub fn with_names(
        config: &Balance,
        weights: &[f64],
        names: impl Into<TargetNames>,
        draw: Key,
    ) -> Balancer {
        Balancer::from_roster(config, Roster::new(weights).named(names), draw)
    }

    fn from_roster(config: &Balance, roster: Roster, draw: Key) -> Balancer {
        let state = match config {
            Balance::Random => State::Random(Policy::build(&(), &roster, draw)),
            Balance::RoundRobin(args) => State::RoundRobin(Policy::build(args, &roster, draw)),
            Balance::LeastConn(args) => State::LeastConn(Policy::build(args, &roster, draw)),
            Balance::P2c(args) => State::P2c(Policy::build(args, &roster, draw)),
            Balance::First => State::cold(ColdPolicy::First(Policy::build(&(), &roster, draw))),
            Balance::PeakEwma(args) => State::cold(ColdPolicy::PeakEwma(Policy::build(args, &roster, draw))),
            Balance::Zuul(args) => State::cold(ColdPolicy::Zuul(Policy::build(args, &roster, draw))),
            Balance::RingHash(args) => State::cold(ColdPolicy::RingHash(Policy::build(args, &roster, draw))),
            Balance::Maglev(args) => State::cold(ColdPolicy::Maglev(Policy::build(args, &roster, draw))),
            Balance::Prequal(args) => {
                State::cold(ColdPolicy::Prequal(Box::new(Policy::build(args, &roster, draw))))
            }
            Balance::LeastWork => State::cold(ColdPolicy::LeastWork(Policy::build(&(), &roster, draw))),
        };
        Balancer { state, roster: Box::new(roster) }
    }

    /// Chooses a target for a request and counts it; `None` if there is none. The excluded are left out while others
    /// remain. `draw` is the request's own. For policies that look at nothing else; the others take it for a request
    /// without a key at the time 0.
    #[inline(always)]
    pub fn pick(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        match &mut self.state {
            State::Random(lb) => Policy::pick(lb, draw, exclude),
            State::RoundRobin(lb) => Policy::pick(lb, draw, exclude),
            State::LeastConn(lb) => Policy::pick(lb, draw, exclude),
            State::P2c(lb) => Policy::pick(lb, draw, exclude),
            State::Cold(lb) => lb.ask(&Ask { exclude, ..Ask::new(draw, 0) }),
        }
    }

    /// As [`Balancer::pick`], for any policy.
    #[inline]
    pub fn ask(&mut self, ask: &Ask) -> Option<TargetId> {
        dispatch!(&mut self.state, ask(ask))
    }

    /// Chooses and counts a target that is not barred; `None` if all are. What the request excludes is not looked at.
    pub fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        dispatch!(&mut self.state, ask_where(ask, barred))
    }

    /// Counts a request at a target that was chosen elsewhere (by a cookie).
    pub fn take(&mut self, target: TargetId) {
        dispatch!(&mut self.state, take(target));
    }

    /// The request that was sent to `target` has come back with this outcome. For policies that do not measure time.
    #[inline]
    pub fn done(&mut self, target: TargetId, outcome: Outcome) -> Release {
        dispatch!(&mut self.state, done(target, outcome))
    }

    /// As [`Balancer::done`] without an error.
    #[inline(always)]
    pub fn succeeded(&mut self, target: TargetId) {
        match &mut self.state {
            State::Random(lb) => Policy::release(lb, target),
            State::RoundRobin(lb) => Policy::release(lb, target),
            State::LeastConn(lb) => Policy::release(lb, target),
            State::P2c(lb) => Policy::release(lb, target),
            State::Cold(lb) => _ = lb.done(target, None),
        }
    }

    /// As [`Balancer::done`], for any policy: it came back `took_ns` after its pick.
    #[inline]
    pub fn finished(&mut self, now_ns: u64, target: TargetId, took_ns: u64, outcome: Outcome) -> Release {
        dispatch!(&mut self.state, finished(now_ns, target, took_ns, outcome))
    }

    /// A request was cancelled `took_ns` after its pick.
    pub fn cancelled(&mut self, now_ns: u64, target: TargetId, took_ns: u64) {
        dispatch!(&mut self.state, cancelled(now_ns, target, took_ns));
    }

    /// As [`Balancer::cancelled`], by a `timeout` around the balancer.
    pub fn timed_out(&mut self, now_ns: u64, target: TargetId, took_ns: u64) {
        dispatch!(&mut self.state, timed_out(now_ns, target, took_ns));
    }

    /// A count that was held ends now, or its request was cancelled where no time is measured.
    #[inline(always)]
    pub fn release(&mut self, target: TargetId) {
        dispatch!(&mut self.state, release(target));
    }

    /// Requests that it counts in flight, over all targets; 0 for policies that do not count.
    pub fn total_in_flight(&self) -> u64 {
        dispatch!(&self.state, counted())
    }

    /// Sets what a policy that shares counts sees of a target; the others count for themselves.
    pub fn set_count(&mut self, target: TargetId, count: u32) {
        match &mut self.state {
            State::LeastConn(lb) => lb.set_count(target, count),
            State::P2c(lb) => lb.set_count(target, count),
            State::Cold(cold) => {
                if let ColdPolicy::Zuul(lb) = &mut **cold {
                    lb.set_count(target, count);
                }
            }
            State::Random(_) | State::RoundRobin(_) => {}
        }
    }

    /// Lets a policy that looks at few targets compare the counts of all loops itself; `None`: no longer. Returns whether
    /// it does.
    pub fn compare_counts(&mut self, shared: Option<&SharedCounts>) -> bool {
        match &mut self.state {
            State::P2c(lb) => lb.compare_counts(shared.cloned()),
            State::Cold(cold) => match &mut **cold {
                ColdPolicy::Zuul(lb) => lb.compare_counts(shared.cloned()),
                _ => return false,
            },
            _ => return false,
        }
        shared.is_some()
    }

    /// Requests that it counts in flight at a target; `None` for policies that do not count.
    pub fn in_flight(&self, target: TargetId) -> Option<u32> {
        dispatch!(&self.state, counted_at(target))
    }

    /// The estimate of a target's response time, ns; `None`: the policy has none, or none yet.
    pub fn estimate_ns(&self, now_ns: u64, target: TargetId) -> Option<f64> {
        dispatch!(&self.state, estimate_ns(now_ns, target))
    }

    /// `lb.least_work`'s state, which must be told what is left at the targets before each pick.
    pub fn least_work(&mut self) -> Option<&mut LeastWork> {
        let State::Cold(cold) = &mut self.state else { return None };
        if let ColdPolicy::LeastWork(lb) = &mut **cold { Some(lb) } else { None }
    }

    /// `lb.prequal`'s state, for its probes.
    pub fn prequal(&mut self) -> Option<&mut Prequal> {
        let State::Cold(cold) = &mut self.state else { return None };
        if let ColdPolicy::Prequal(lb) = &mut **cold { Some(lb) } else { None }
    }
}

/// What `lb.zuul` reads in answers.
impl Balancer {
    /// `lb.zuul`'s state.
    pub fn zuul(&self) -> Option<&Zuul> {
        let State::Cold(cold) = &self.state else { return None };
        if let ColdPolicy::Zuul(lb) = &**cold { Some(lb) } else { None }
    }

    /// An answer of a target reports a load, 0 to 1.
    pub fn loaded(&mut self, now_ns: u64, target: TargetId, load: f32) {
        let State::Cold(cold) = &mut self.state else { return };
        if let ColdPolicy::Zuul(lb) = &mut **cold {
            lb.loaded(target, now_ns, load);
        }
    }
}

/// Target sets that change at run time. None of this is for the path of a request; what is in flight stays counted.
impl Balancer {
    /// The identities of the targets.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Changes any number of targets at once.
    pub fn change(&mut self, now_ns: u64, change: impl FnOnce(&mut Roster)) {
        change(&mut self.roster);
        dispatch!(&mut self.state, follow(now_ns, &self.roster));
    }

    /// Another weight for a target; 0: never picked.
    pub fn set_weight(&mut self, now_ns: u64, target: TargetId, weight: f64) {
        self.change(now_ns, |r| {
            r.set_weight(target, weight);
        });
    }

    /// Whether a target may be picked, whatever its weight.
    pub fn set_eligible(&mut self, now_ns: u64, target: TargetId, eligible: bool) {
        self.change(now_ns, |r| {
            r.set_eligible(target, eligible);
        });
    }

    /// A new target; its index. That of a removed one is used again once nothing is in flight there, as far as the
    /// policy counts; one that does not count always takes the next (see [`Balancer::add_at`]).
    pub fn add(&mut self, now_ns: u64, weight: f64, name: &str) -> TargetId {
        let free = self.roster.gone().find(|&t| self.in_flight(t) == Some(0));
        let target = free.unwrap_or(TargetId(self.roster.len()));
        self.add_at(now_ns, target, weight, name);
        target
    }

    /// A new target at the index of a removed one, or the next. The caller knows that nothing is in flight there.
    pub fn add_at(&mut self, now_ns: u64, target: TargetId, weight: f64, name: &str) {
        self.change_targets(now_ns, &[TargetChange::Add { target, weight, name }]);
    }

    /// Adds and removes targets, in this order; the policy follows once.
    pub fn change_targets(&mut self, now_ns: u64, changes: &[TargetChange<'_>]) {
        let names = self.names_after(changes);
        self.change_named(now_ns, changes.iter().copied(), &names, |_, _| {});
    }

    /// As [`Balancer::change_targets`], with another change after it, which adds what it changes to the targets that have
    /// changed; the policy follows once, and not if there are none.
    pub(crate) fn change_shown(
        &mut self,
        now_ns: u64,
        changes: &[TargetChange<'_>],
        then: impl FnOnce(&mut Roster, &mut Changed),
    ) {
        let names = if changes.is_empty() { self.roster.names().clone() } else { self.names_after(changes) };
        self.change_named(now_ns, changes.iter().copied(), &names, then);
    }

    /// As [`Balancer::change_shown`], with the names of all targets after the changes, no two of which are equal.
    pub(crate) fn change_named<'a>(
        &mut self,
        now_ns: u64,
        changes: impl Iterator<Item = TargetChange<'a>> + Clone,
        names: &TargetNames,
        then: impl FnOnce(&mut Roster, &mut Changed),
    ) {
        let mut changed: Changed = changes.clone().map(|change| change.target()).collect();
        self.roster.change(changes.clone(), names);
        then(&mut self.roster, &mut changed);
        self.follow(now_ns, &changed);
        self.forget(now_ns, changes);
    }

    /// Lets the policy follow the roster, in which these targets have changed: one by one if they are few.
    fn follow(&mut self, now_ns: u64, changed: &Changed) {
        if changed.len() > FEW {
            dispatch!(&mut self.state, follow(now_ns, &self.roster));
        } else if !changed.is_empty() {
            dispatch!(&mut self.state, follow_few(now_ns, &self.roster, changed));
        }
    }

    /// Forgets what the policy has learnt of targets whose indices others have now.
    fn forget<'a>(&mut self, now_ns: u64, changes: impl Iterator<Item = TargetChange<'a>>) {
        for change in changes.filter(|change| matches!(change, TargetChange::Add { .. })) {
            dispatch!(&mut self.state, forget_target(now_ns, change.target()));
        }
    }

    /// The names by which targets are hashed after these changes, if they are; a removed target frees its name.
    pub(crate) fn names_after(&self, changes: &[TargetChange<'_>]) -> TargetNames {
        if !dispatch!(&self.state, hashes()) {
            return TargetNames::default();
        }
        let before = self.roster.names();
        let mut taken = TakenNames::new(before.iter().map(|name| &**name));
        for change in changes {
            if let TargetChange::Remove(target) = change {
                before.get(target.index()).into_iter().for_each(|name| taken.free(name));
            }
        }
        let mut names = before.clone();
        for change in changes {
            match *change {
                TargetChange::Add { target, name, .. } => names.set(target.index(), taken.take(name).into()),
                TargetChange::Remove(target) => names.set(target.index(), Arc::default()),
            }
        }
        names
    }

    /// What a policy that hashes chooses by, made now if it is not; `None` for the others.
    pub fn table(&mut self) -> Option<Table> {
        dispatch!(&mut self.state, make_table())
    }

    /// Takes a table that another balancer of this policy has made, if its own would be the same.
    pub fn share(&mut self, table: &Table) {
        dispatch!(&mut self.state, take_table(table));
    }

    /// Takes over what one of the same policy has learnt of the targets: these are the same.
    pub(crate) fn learn_from(&mut self, old: &Balancer) {
        dispatch!(&mut self.state, learn_from_any(dispatch!(&old.state, as_any())));
    }

    /// Takes a target away: no new picks, what is in flight goes on to its end.
    pub fn remove(&mut self, now_ns: u64, target: TargetId) {
        self.change_targets(now_ns, &[TargetChange::Remove(target)]);
    }
}

impl State {
    fn cold(policy: ColdPolicy) -> State {
        State::Cold(Box::new(policy))
    }
}

#[cfg(test)]
mod tests;
