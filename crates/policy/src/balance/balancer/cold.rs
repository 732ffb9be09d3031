//! The policies that are not inlined at their callers: those that look at a key, at time or at what a caller reports.
//!
//! They lie behind a pointer, so that a balancer of the others is small and the choice between those takes one
//! comparison less.

use crate::balance::Ask;
use crate::balance::first::First;
use crate::balance::least_work::LeastWork;
use crate::balance::maglev::Maglev;
use crate::balance::peak_ewma::PeakEwma;
use crate::balance::policy::{Policy, Release};
use crate::balance::prequal::Prequal;
use crate::balance::ring_hash::RingHash;
use crate::balance::roster::Roster;
use crate::balance::table::Table;
use crate::balance::zuul::Zuul;
use crate::{Outcome, TargetId};
use std::any::Any;

/// The state of one of these policies.
#[derive(Clone, Debug)]
pub(super) enum ColdPolicy {
    First(First),
    PeakEwma(PeakEwma),
    Zuul(Zuul),
    RingHash(RingHash),
    Maglev(Maglev),
    /// Far larger than the others.
    Prequal(Box<Prequal>),
    LeastWork(LeastWork),
}

/// Calls a method of [`Policy`] on the state; `$boxed` borrows what is inside of a box (`as_mut`, `as_ref`).
macro_rules! each {
    ($cold:expr, $boxed:ident, $method:ident($($argument:expr),*)) => {
        match $cold {
            ColdPolicy::First(lb) => Policy::$method(lb, $($argument),*),
            ColdPolicy::PeakEwma(lb) => Policy::$method(lb, $($argument),*),
            ColdPolicy::Zuul(lb) => Policy::$method(lb, $($argument),*),
            ColdPolicy::RingHash(lb) => Policy::$method(lb, $($argument),*),
            ColdPolicy::Maglev(lb) => Policy::$method(lb, $($argument),*),
            ColdPolicy::Prequal(lb) => Policy::$method(lb.$boxed(), $($argument),*),
            ColdPolicy::LeastWork(lb) => Policy::$method(lb, $($argument),*),
        }
    };
}

/// The methods of [`Policy`] by the same names.
impl ColdPolicy {
    #[inline(never)]
    pub fn ask(&mut self, ask: &Ask) -> Option<TargetId> {
        each!(self, as_mut, ask(ask))
    }

    #[inline]
    pub fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        each!(self, as_mut, ask_where(ask, barred))
    }

    pub fn take(&mut self, target: TargetId) {
        each!(self, as_mut, take(target));
    }

    #[inline(never)]
    pub fn done(&mut self, target: TargetId, outcome: Outcome) -> Release {
        each!(self, as_mut, done(target, outcome))
    }

    #[inline(never)]
    pub fn finished(&mut self, now_ns: u64, target: TargetId, took_ns: u64, outcome: Outcome) -> Release {
        each!(self, as_mut, finished(now_ns, target, took_ns, outcome))
    }

    pub fn cancelled(&mut self, now_ns: u64, target: TargetId, took_ns: u64) {
        each!(self, as_mut, cancelled(now_ns, target, took_ns));
    }

    pub fn timed_out(&mut self, now_ns: u64, target: TargetId, took_ns: u64) {
        each!(self, as_mut, timed_out(now_ns, target, took_ns));
    }

    pub fn release(&mut self, target: TargetId) {
        each!(self, as_mut, release(target));
    }

    pub fn hashes(&self) -> bool {
        each!(self, as_ref, hashes())
    }

    pub fn counted(&self) -> u64 {
        each!(self, as_ref, counted())
    }

    pub fn counted_at(&self, target: TargetId) -> Option<u32> {
        each!(self, as_ref, counted_at(target))
    }

    pub fn estimate_ns(&self, now_ns: u64, target: TargetId) -> Option<f64> {
        each!(self, as_ref, estimate_ns(now_ns, target))
    }

    pub fn follow(&mut self, now_ns: u64, roster: &Roster) {
        each!(self, as_mut, follow(now_ns, roster));
    }

    pub fn follow_few(&mut self, now_ns: u64, roster: &Roster, changed: &[TargetId]) {
        each!(self, as_mut, follow_few(now_ns, roster, changed));
    }

    pub fn forget_target(&mut self, now_ns: u64, target: TargetId) {
        each!(self, as_mut, forget_target(now_ns, target));
    }

    pub fn make_table(&mut self) -> Option<Table> {
        each!(self, as_mut, make_table())
    }

    pub fn take_table(&mut self, table: &Table) {
        each!(self, as_mut, take_table(table));
    }

    pub fn as_any(&self) -> &dyn Any {
        each!(self, as_ref, as_any())
    }

    pub fn learn_from_any(&mut self, old: &dyn Any) {
        each!(self, as_mut, learn_from_any(old));
    }
}
