//! The policies that are not inlined into who asks them: those that look at a key, at time or at what a caller tells them.
//!
//! They stand apart so that a balancer of the others is small and the choice between those takes one comparison less.

use crate::balance::Ask;
use crate::balance::first::First;
use crate::balance::least_work::LeastWork;
use crate::balance::maglev::Maglev;
use crate::balance::peak_ewma::PeakEwma;
use crate::balance::prequal::{Prequal, Probing};
use crate::balance::ring_hash::RingHash;
use crate::balance::roster::Roster;
use crate::balance::table::{self, Table};
use crate::config::Balance;
use crate::{Kind, Outcome};

/// The state of one of these policies.
#[derive(Clone, Debug)]
pub(super) enum Others {
    First(First),
    PeakEwma(PeakEwma),
    RingHash(RingHash),
    Maglev(Maglev),
    /// Far larger than the others.
    Prequal(Box<Prequal>),
    LeastWork(LeastWork),
}

impl Others {
    /// `None` if the policy is none of these.
    pub fn new(config: &Balance, roster: &Roster) -> Option<Others> {
        let weights = roster.effective();
        Some(match *config {
            Balance::First => Others::First(First::new(weights)),
            Balance::PeakEwma { decay_ns, default_rtt_ns } => {
                Others::PeakEwma(PeakEwma::new(weights, decay_ns, default_rtt_ns))
            }
            Balance::RingHash { bound } => Others::RingHash(RingHash::new(roster, bound)),
            Balance::Maglev { table_size, bound } => Others::Maglev(Maglev::new(roster, table_size, bound)),
            Balance::Prequal { probes, pool, age_ns, q_rif, remove, delta } => {
                let probing = Probing { probes, pool, age_ns, q_rif, remove, delta };
                Others::Prequal(Box::new(Prequal::new(weights, probing)))
            }
            Balance::LeastWork => Others::LeastWork(LeastWork::new(weights)),
            Balance::Random
            | Balance::RoundRobin { .. }
            | Balance::LeastConn { .. }
            | Balance::P2c { .. } => {
                return None;
            }
        })
    }

    /// As [`super::Balancer::learn_from`].
    pub fn learn_from(&mut self, old: &Others) {
        match (self, old) {
            (Others::PeakEwma(new), Others::PeakEwma(old)) => new.learn_from(old),
            (Others::Prequal(new), Others::Prequal(old)) => new.learn_from(old),
            _ => {}
        }
    }

    /// As [`super::Balancer::ask`].
    #[inline(never)]
    pub fn ask(&mut self, ask: &Ask) -> Option<u32> {
        if ask.exclude.is_empty() {
            return self.ask_where(ask, |_| false);
        }
        self.ask_where(ask, |t| ask.exclude.contains(&t)).or_else(|| self.ask_where(ask, |_| false))
    }

    /// As [`super::Balancer::ask_where`].
    #[inline]
    pub fn ask_where(&mut self, ask: &Ask, barred: impl Fn(u32) -> bool) -> Option<u32> {
        let place = || ask.key.unwrap_or(ask.draw.bits());
        match self {
            Others::First(lb) => lb.pick_where(barred),
            Others::PeakEwma(lb) => lb.pick_where(ask.draw, ask.now_ns, barred),
            Others::RingHash(lb) => lb.pick_where(place(), barred),
            Others::Maglev(lb) => lb.pick_where(place(), barred),
            Others::Prequal(lb) => lb.pick_where(ask.draw, ask.now_ns, barred),
            Others::LeastWork(lb) => lb.pick_where(ask.draw, barred),
        }
    }

    pub fn take(&mut self, target: u32) {
        match self {
            Others::PeakEwma(lb) => lb.take(target),
            Others::RingHash(lb) => lb.load_mut().take(target),
            Others::Maglev(lb) => lb.load_mut().take(target),
            _ => {}
        }
    }

    #[inline(never)]
    pub fn done(&mut self, target: u32, outcome: Outcome) {
        match self {
            Others::Prequal(lb) => lb.done(target, 0, outcome),
            _ => self.release(target),
        }
    }

    #[inline(never)]
    pub fn finished(&mut self, now: u64, target: u32, took_ns: u64, outcome: Outcome) {
        match self {
            Others::PeakEwma(lb) => lb.done(target, now, took_ns, outcome),
            Others::Prequal(lb) => lb.done(target, took_ns, outcome),
            _ => self.done(target, outcome),
        }
    }

    pub fn cancelled(&mut self, now: u64, target: u32, took_ns: u64) {
        match self {
            Others::PeakEwma(lb) => lb.done(target, now, took_ns, Some(Kind::Cancelled)),
            Others::Prequal(lb) => lb.done(target, took_ns, Some(Kind::Cancelled)),
            _ => self.release(target),
        }
    }

    pub fn release(&mut self, target: u32) {
        match self {
            Others::PeakEwma(lb) => lb.release(target),
            Others::RingHash(lb) => lb.load_mut().release(target),
            Others::Maglev(lb) => lb.load_mut().release(target),
            _ => {}
        }
    }

    pub fn total_in_flight(&self) -> u64 {
        match self {
            Others::PeakEwma(lb) => lb.total_in_flight(),
            Others::RingHash(lb) => lb.load().total_in_flight(),
            Others::Maglev(lb) => lb.load().total_in_flight(),
            _ => 0,
        }
    }

    pub fn in_flight(&self, target: u32) -> Option<u32> {
        match self {
            Others::PeakEwma(lb) => Some(lb.in_flight(target)),
            Others::RingHash(lb) => Some(lb.load().in_flight(target)),
            Others::Maglev(lb) => Some(lb.load().in_flight(target)),
            _ => None,
        }
    }

    pub fn estimate_ns(&self, now: u64, target: u32) -> Option<f64> {
        match self {
            Others::PeakEwma(lb) => Some(lb.cost_ns(target, now)),
            Others::Prequal(lb) => lb.believed_ns(target),
            _ => None,
        }
    }

    pub fn least_work(&mut self) -> Option<&mut LeastWork> {
        match self {
            Others::LeastWork(lb) => Some(lb),
            _ => None,
        }
    }

    pub fn prequal(&mut self) -> Option<&mut Prequal> {
        match self {
            Others::Prequal(lb) => Some(lb),
            _ => None,
        }
    }

    /// As [`super::Balancer::table`].
    pub fn table(&mut self) -> Option<Table> {
        match self {
            Others::RingHash(lb) => Some(Table(table::Kind::Ring(lb.ring().clone()))),
            Others::Maglev(lb) => Some(Table(table::Kind::Slots(lb.table().clone()))),
            _ => None,
        }
    }

    /// As [`super::Balancer::share`].
    pub fn share(&mut self, table: &Table) {
        match (self, &table.0) {
            (Others::RingHash(lb), table::Kind::Ring(ring)) => lb.share(ring),
            (Others::Maglev(lb), table::Kind::Slots(slots)) => lb.share(slots),
            _ => {}
        }
    }

    pub fn hashes(&self) -> bool {
        matches!(self, Others::RingHash(_) | Others::Maglev(_))
    }

    /// The targets have changed.
    pub fn refresh(&mut self, now: u64, roster: &Roster) {
        let weights = roster.effective();
        match self {
            Others::First(lb) => lb.refresh(weights),
            Others::PeakEwma(lb) => lb.refresh(weights, now),
            Others::RingHash(lb) => lb.refresh(roster),
            Others::Maglev(lb) => lb.refresh(roster),
            Others::Prequal(lb) => lb.refresh(weights),
            Others::LeastWork(lb) => lb.refresh(weights),
        }
    }

    /// The target is another one from now on.
    pub fn forget(&mut self, now: u64, target: u32) {
        match self {
            Others::PeakEwma(lb) => lb.forget(target, now),
            Others::Prequal(lb) => lb.forget(target),
            _ => {}
        }
    }
}
