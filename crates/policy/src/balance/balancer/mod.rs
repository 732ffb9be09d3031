//! A balancer of any policy: the one object that the simulator and the proxy hold, dispatched by enum.

mod others;

use crate::Outcome;
use crate::balance::Ask;
use crate::balance::least_conn::LeastConn;
use crate::balance::least_work::LeastWork;
use crate::balance::p2c::{Choices, P2c};
use crate::balance::prequal::Prequal;
use crate::balance::random::Random;
use crate::balance::roster::Roster;
use crate::balance::round_robin::RoundRobin;
use crate::balance::table::Table;
use crate::config::Balance;
use crate::key;
use others::Others;
use weir_stats::Key;

/// The state of one balancer: one per event loop, unless it is told to be the process's.
#[derive(Clone, Debug)]
pub struct Balancer {
    policy: Policy,
    /// Who the targets are. A pick does not look at it.
    roster: Box<Roster>,
}

/// The state of its policy. What is large stands apart, so that many small ones stay in the cache. The tag has a byte of
/// its own: hidden in a vector's capacity, as it would be, it takes five instructions to read at each pick and return.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Policy {
    Random(Random),
    RoundRobin(RoundRobin),
    LeastConn(LeastConn),
    P2c(P2c),
    Others(Box<Others>),
}

/// What a balancer does with its count of a request that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It is gone.
    Now,
    /// It goes on for so many ns; then the caller says [`Balancer::release`].
    After(u64),
}

impl Balancer {
    /// A balancer over targets of these weights, named by their numbers. `draw` is what it draws once (where to start).
    pub fn new(config: &Balance, weights: &[f64], draw: Key) -> Balancer {
        let roster = Roster::new(weights);
        let hashes = config.hashes();
        let names: Vec<String> = (0..if hashes { weights.len() } else { 0 }).map(|i| i.to_string()).collect();
        Balancer::of(config, roster.named(&names), draw)
    }

    /// As [`Balancer::new`], with what targets are hashed by: an address, else a server's name ([`key::distinct`] tells
    /// repeats apart).
    pub fn with_names(config: &Balance, weights: &[f64], names: &[impl AsRef<str>], draw: Key) -> Balancer {
        Balancer::of(config, Roster::new(weights).named(&key::distinct(names)), draw)
    }

    fn of(config: &Balance, roster: Roster, draw: Key) -> Balancer {
        let weights = roster.effective();
        let policy = match *config {
            Balance::RoundRobin { start } => Policy::RoundRobin(RoundRobin::new(weights, start, draw)),
            Balance::LeastConn { ties, error_hold_ns } => {
                Policy::LeastConn(LeastConn::new(weights, ties, error_hold_ns, draw))
            }
            Balance::P2c { choices, replacement, ties, error_hold_ns, bias } => {
                Policy::P2c(P2c::new(weights, Choices { choices, replacement, ties, error_hold_ns, bias }))
            }
            _ => match Others::new(config, &roster) {
                Some(others) => Policy::Others(Box::new(others)),
                None => Policy::Random(Random::new(weights)),
            },
        };
        Balancer { policy, roster: Box::new(roster) }
    }

    /// Chooses a target for a request and counts it; `None` if there is none. The excluded are left out while others
    /// remain. `draw` is the request's own. For policies that look at nothing else; the others take it for a request
    /// without a key at the time 0.
    #[inline(always)]
    pub fn pick(&mut self, draw: Key, exclude: &[u32]) -> Option<u32> {
        match &mut self.policy {
            Policy::Random(lb) => lb.pick(draw, exclude),
            Policy::RoundRobin(lb) => lb.pick(exclude),
            Policy::LeastConn(lb) => lb.pick(draw, exclude),
            Policy::P2c(lb) => lb.pick(draw, exclude),
            Policy::Others(lb) => lb.ask(&Ask { exclude, ..Ask::new(draw, 0) }),
        }
    }

    /// As [`Balancer::pick`], for any policy.
    #[inline]
    pub fn ask(&mut self, ask: &Ask) -> Option<u32> {
        match &mut self.policy {
            Policy::Random(lb) => lb.pick(ask.draw, ask.exclude),
            Policy::RoundRobin(lb) => lb.pick(ask.exclude),
            Policy::LeastConn(lb) => lb.pick(ask.draw, ask.exclude),
            Policy::P2c(lb) => lb.pick(ask.draw, ask.exclude),
            Policy::Others(lb) => lb.ask(ask),
        }
    }

    /// Chooses and counts a target that is not barred; `None` if all are. What the request excludes is not looked at.
    pub fn ask_where(&mut self, ask: &Ask, barred: impl Fn(u32) -> bool) -> Option<u32> {
        match &mut self.policy {
            Policy::Random(lb) => lb.pick_where(ask.draw, barred),
            Policy::RoundRobin(lb) => lb.pick_where(barred),
            Policy::LeastConn(lb) => lb.pick_where(ask.draw, barred),
            Policy::P2c(lb) => lb.pick_where(ask.draw, barred),
            Policy::Others(lb) => lb.ask_where(ask, barred),
        }
    }

    /// Counts a request at a target that was chosen elsewhere (by a cookie).
    pub fn take(&mut self, target: u32) {
        match &mut self.policy {
            Policy::Random(_) | Policy::RoundRobin(_) => {}
            Policy::LeastConn(lb) => lb.take(target),
            Policy::P2c(lb) => lb.take(target),
            Policy::Others(lb) => lb.take(target),
        }
    }

    /// The request that was sent to `target` has come back with this outcome. For policies that do not measure time.
    #[inline]
    pub fn done(&mut self, target: u32, outcome: Outcome) -> Release {
        let hold = match &mut self.policy {
            Policy::Random(_) | Policy::RoundRobin(_) => return Release::Now,
            Policy::LeastConn(lb) => {
                let hold = lb.error_hold_ns();
                if outcome.is_none() || hold == 0 {
                    lb.release(target);
                    return Release::Now;
                }
                hold
            }
            Policy::P2c(lb) => {
                let hold = lb.error_hold_ns();
                if outcome.is_none() || hold == 0 {
                    lb.release(target);
                    return Release::Now;
                }
                hold
            }
            Policy::Others(lb) => {
                lb.done(target, outcome);
                return Release::Now;
            }
        };
        Release::After(hold)
    }

    /// As [`Balancer::done`] without an error.
    #[inline(always)]
    pub fn succeeded(&mut self, target: u32) {
        match &mut self.policy {
            Policy::Random(_) | Policy::RoundRobin(_) => {}
            Policy::LeastConn(lb) => lb.release(target),
            Policy::P2c(lb) => lb.release(target),
            Policy::Others(lb) => lb.done(target, None),
        }
    }

    /// As [`Balancer::done`], for any policy: it came back `took_ns` after its pick.
    #[inline]
    pub fn finished(&mut self, now: u64, target: u32, took_ns: u64, outcome: Outcome) -> Release {
        if let Policy::Others(lb) = &mut self.policy {
            lb.finished(now, target, took_ns, outcome);
            return Release::Now;
        }
        self.done(target, outcome)
    }

    /// A request was cancelled `took_ns` after its pick.
    pub fn cancelled(&mut self, now: u64, target: u32, took_ns: u64) {
        match &mut self.policy {
            Policy::Others(lb) => lb.cancelled(now, target, took_ns),
            _ => self.release(target),
        }
    }

    /// A count that was held ends now, or its request was cancelled where no time is measured.
    #[inline(always)]
    pub fn release(&mut self, target: u32) {
        match &mut self.policy {
            Policy::Random(_) | Policy::RoundRobin(_) => {}
            Policy::LeastConn(lb) => lb.release(target),
            Policy::P2c(lb) => lb.release(target),
            Policy::Others(lb) => lb.release(target),
        }
    }

    /// Requests that it counts in flight, over all targets; 0 for policies that do not count.
    pub fn total_in_flight(&self) -> u64 {
        match &self.policy {
            Policy::Random(_) | Policy::RoundRobin(_) => 0,
            Policy::LeastConn(lb) => lb.total_in_flight(),
            Policy::P2c(lb) => lb.total_in_flight(),
            Policy::Others(lb) => lb.total_in_flight(),
        }
    }

    /// Requests that it counts in flight at a target; `None` for policies that do not count.
    pub fn in_flight(&self, target: u32) -> Option<u32> {
        match &self.policy {
            Policy::Random(_) | Policy::RoundRobin(_) => None,
            Policy::LeastConn(lb) => Some(lb.in_flight(target)),
            Policy::P2c(lb) => Some(lb.in_flight(target)),
            Policy::Others(lb) => lb.in_flight(target),
        }
    }

    /// What a target's answer is believed to take, ns; `None` for policies that believe nothing, or know nothing yet.
    pub fn estimate_ns(&self, now: u64, target: u32) -> Option<f64> {
        match &self.policy {
            Policy::Others(lb) => lb.estimate_ns(now, target),
            _ => None,
        }
    }

    /// `lb.least_work`'s state, which must be told what is left at the targets before each pick.
    pub fn least_work(&mut self) -> Option<&mut LeastWork> {
        match &mut self.policy {
            Policy::Others(lb) => lb.least_work(),
            _ => None,
        }
    }

    /// `lb.prequal`'s state, for its probes.
    pub fn prequal(&mut self) -> Option<&mut Prequal> {
        match &mut self.policy {
            Policy::Others(lb) => lb.prequal(),
            _ => None,
        }
    }
}

/// Target sets that change at run time. None of this is for the path of a request; what is in flight stays counted.
impl Balancer {
    /// Who the targets are.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Changes any number of targets at once.
    pub fn change(&mut self, now: u64, change: impl FnOnce(&mut Roster)) {
        change(&mut self.roster);
        let weights = self.roster.effective();
        match &mut self.policy {
            Policy::Random(lb) => lb.refresh(weights),
            Policy::RoundRobin(lb) => lb.refresh(weights),
            Policy::LeastConn(lb) => lb.refresh(weights),
            Policy::P2c(lb) => lb.refresh(weights),
            Policy::Others(lb) => lb.refresh(now, &self.roster),
        }
    }

    /// Another weight for a target; 0: never picked.
    pub fn set_weight(&mut self, now: u64, target: u32, weight: f64) {
        self.change(now, |r| {
            r.set_weight(target, weight);
        });
    }

    /// Whether a target may be picked, whatever its weight.
    pub fn set_eligible(&mut self, now: u64, target: u32, eligible: bool) {
        self.change(now, |r| {
            r.set_eligible(target, eligible);
        });
    }

    /// A new target; its index. That of a removed one is used again once nothing is in flight there, as far as the policy
    /// counts; one that does not count always takes the next (see [`Balancer::add_at`]).
    pub fn add(&mut self, now: u64, weight: f64, name: &str) -> u32 {
        let free = self.roster.gone().find(|&t| self.in_flight(t) == Some(0));
        let target = free.unwrap_or(self.roster.len());
        self.add_at(now, target, weight, name);
        target
    }

    /// A new target at the index of a removed one, or the next. The caller knows that nothing is in flight there.
    pub fn add_at(&mut self, now: u64, target: u32, weight: f64, name: &str) {
        let hashes = matches!(&self.policy, Policy::Others(lb) if lb.hashes());
        let name = if hashes { key::distinct_among(name, self.roster.names()) } else { String::new() };
        self.change(now, |r| r.add_at(target, weight, &name));
        if let Policy::Others(lb) = &mut self.policy {
            lb.forget(now, target);
        }
    }

    /// What a policy that hashes chooses by, made now if it is not; `None` for the others.
    pub fn table(&mut self) -> Option<Table> {
        match &mut self.policy {
            Policy::Others(lb) => lb.table(),
            _ => None,
        }
    }

    /// Takes a table that another balancer of this policy has made, if its own would be the same.
    pub fn share(&mut self, table: &Table) {
        if let Policy::Others(lb) = &mut self.policy {
            lb.share(table);
        }
    }

    /// Takes over what one of the same policy has learnt of the targets: these are the same.
    pub(crate) fn learn_from(&mut self, old: &Balancer) {
        if let (Policy::Others(new), Policy::Others(old)) = (&mut self.policy, &old.policy) {
            new.learn_from(old);
        }
    }

    /// Takes a target away: no new picks, what is in flight goes on to its end.
    pub fn remove(&mut self, now: u64, target: u32) {
        self.change(now, |r| r.remove(target));
    }
}

impl Balance {
    /// Whether a pick depends on the picks and returns before it. One that does not may be asked ahead of time.
    pub fn remembers_picks(&self) -> bool {
        !matches!(self, Balance::Random | Balance::First)
    }

    /// Whether it counts requests in flight, so that it must hear when one comes back.
    pub fn counts_in_flight(&self) -> bool {
        matches!(
            self,
            Balance::LeastConn { .. }
                | Balance::P2c { .. }
                | Balance::PeakEwma { .. }
                | Balance::RingHash { bound: Some(_) }
                | Balance::Maglev { bound: Some(_), .. }
        )
    }

    /// Whether it must hear how a request came back and how long it took ([`Balancer::finished`]), not only when.
    pub fn measures(&self) -> bool {
        matches!(self, Balance::PeakEwma { .. } | Balance::Prequal { .. })
    }

    /// Whether it picks by the request's key.
    pub fn hashes(&self) -> bool {
        matches!(self, Balance::RingHash { .. } | Balance::Maglev { .. })
    }

    /// The name in the language.
    pub fn name(&self) -> &'static str {
        match self {
            Balance::Random => "lb.random",
            Balance::RoundRobin { .. } => "lb.round_robin",
            Balance::LeastConn { .. } => "lb.least_conn",
            Balance::P2c { .. } => "lb.p2c",
            Balance::First => "lb.first",
            Balance::PeakEwma { .. } => "lb.peak_ewma",
            Balance::RingHash { .. } => "lb.ring_hash",
            Balance::Maglev { .. } => "lb.maglev",
            Balance::Prequal { .. } => "lb.prequal",
            Balance::LeastWork => "lb.least_work",
        }
    }
}

#[cfg(test)]
mod tests;
