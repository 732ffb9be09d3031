//! Flags of one balancer's targets, shared by all loops: which request may probe a target on probation, whether the
//! monitor needs its successes, and how busy it is if probes ask that.
//!
//! Between the monitor's decision on a failed probe and its arrival at a loop, some microseconds, that loop may still
//! send a request there. Atomics, set by the health monitor; nothing waits here. Permits and the queue for them are
//! [`crate::sync::semaphore`].

use crate::nodes::lb::load::Load;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};
use weir_policy::{SharedCounts, TargetId};

/// No request may probe it: it is healthy, or out.
const CLOSED: u8 = 0;
/// The next request probes it.
const FREE: u8 = 1;
/// A request probes it.
const TAKEN: u8 = 2;

/// The part of a balancer that the process shares.
pub(crate) struct TargetFlags {
    probes: Box<[AtomicU8]>,
    /// The number of targets on probation.
    on_probation: AtomicU32,
    /// Whether the health monitor needs a target's successes too.
    wants_successes: Box<[AtomicBool]>,
    /// The load of each probed target; empty if none is probed.
    loads: Box<[Option<Arc<Load>>]>,
    /// Requests in flight at each target that loops count together.
    pub counts: SharedCounts,
    /// The load that each target has reported last, the bits of an `f32`; empty if none is read.
    reported: Box<[AtomicU32]>,
}

/// The bits of a load that was not reported.
const UNREPORTED: u32 = f32::NAN.to_bits();

/// Whether a picked target may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// By any request.
    Open,
    /// By this request, as its probe.
    Probe,
    /// Not now: another request probes it.
    Tried,
}

impl TargetFlags {
    /// Flags of this number of targets; `wants_successes`: successes matter from the start.
    pub fn new(targets: usize, wants_successes: bool, loads: Box<[Option<Arc<Load>>]>) -> TargetFlags {
        TargetFlags {
            probes: (0..targets).map(|_| AtomicU8::new(CLOSED)).collect(),
            on_probation: AtomicU32::new(0),
            wants_successes: (0..targets).map(|_| AtomicBool::new(wants_successes)).collect(),
            loads,
            counts: SharedCounts::default(),
            reported: Box::default(),
        }
    }

    /// With loads that targets report, if they are read; those of targets that stay are kept.
    #[must_use]
    pub fn with_reports(self, are_read: bool, exists: &[bool], before: Option<&TargetFlags>) -> TargetFlags {
        let known = |target: usize| Some(before?.reported.get(target)?.load(Relaxed));
        let report =
            |(target, exists): (usize, &bool)| known(target).filter(|_| *exists).unwrap_or(UNREPORTED);
        let all = exists.iter().enumerate().filter(|_| are_read);
        TargetFlags { reported: all.map(report).map(AtomicU32::new).collect(), ..self }
    }

    /// The load that a target has reported last to any loop.
    pub fn reported(&self, target: TargetId) -> Option<f32> {
        let bits = self.reported.get(target.index())?.load(Relaxed);
        Some(f32::from_bits(bits)).filter(|load| !load.is_nan())
    }

    /// A target has reported this load.
    pub fn report(&self, target: TargetId, load: f32) {
        if let Some(known) = self.reported.get(target.index())
            && known.load(Relaxed) != load.to_bits()
        {
            // Written only where it changes, so that loops rarely take the line from each other.
            known.store(load.to_bits(), Relaxed);
        }
    }

    /// With counts that loops share, if they do; this number of loops follow what the others change.
    #[must_use]
    pub fn with_counts(
        self,
        are_shared: bool,
        followers: usize,
        before: Option<&TargetFlags>,
    ) -> TargetFlags {
        let known = before.map(|before| before.counts.clone()).unwrap_or_default();
        let room = if are_shared { self.probes.len() } else { 0 };
        TargetFlags { counts: known.with_room(room).with_followers(followers), ..self }
    }

    /// Flags of other targets at the same indices; `exists`: whether each exists. Targets that stay keep their state.
    pub fn renewed(
        &self,
        exists: impl ExactSizeIterator<Item = bool>,
        wants_successes: bool,
        loads: Box<[Option<Arc<Load>>]>,
    ) -> TargetFlags {
        let new = TargetFlags::new(exists.len(), wants_successes, loads);
        for ((target, exists), probe) in (0..).map(TargetId).zip(exists).zip(&new.probes) {
            let before = self.probes.get(target.index()).filter(|_| exists).map(|probe| probe.load(SeqCst));
            if let Some(before) = before.filter(|before| *before != CLOSED) {
                probe.store(before, SeqCst);
                new.on_probation.fetch_add(1, SeqCst);
            }
            new.set_wants_successes(target, wants_successes || exists && self.wants_successes(target));
        }
        new
    }

    /// Whether any target is on probation.
    pub fn has_probation(&self) -> bool {
        self.on_probation.load(SeqCst) > 0
    }

    /// Shows a loop's balancer which targets are being probed.
    pub fn show(&self, mut tell: impl FnMut(TargetId, bool)) {
        for (target, probe) in (0..).map(TargetId).zip(&self.probes) {
            tell(target, probe.load(SeqCst) == TAKEN);
        }
    }

    /// Claims a picked target.
    pub fn claim(&self, target: TargetId) -> Claim {
        if !self.has_probation() {
            return Claim::Open;
        }
        let Some(probe) = self.probes.get(target.index()) else { return Claim::Open };
        match probe.compare_exchange(FREE, TAKEN, SeqCst, SeqCst) {
            Ok(_) => Claim::Probe,
            Err(TAKEN) => Claim::Tried,
            Err(_) => Claim::Open,
        }
    }

    /// Frees the probe of a target whose request had no result.
    pub fn free_probe(&self, target: TargetId) {
        if let Some(probe) = self.probes.get(target.index()) {
            // If the target was removed meanwhile it stays closed.
            let _ = probe.compare_exchange(TAKEN, FREE, SeqCst, SeqCst);
        }
    }

    /// Sets whether one request may probe the target.
    pub fn set_half_open(&self, target: TargetId, half_open: bool) {
        let Some(probe) = self.probes.get(target.index()) else { return };
        let before = if half_open {
            // Before the state, so that a loop that could see it free checks at all.
            self.on_probation.fetch_add(1, SeqCst);
            probe.swap(FREE, SeqCst)
        } else {
            probe.swap(CLOSED, SeqCst)
        };
        if before != CLOSED {
            self.on_probation.fetch_sub(1, SeqCst);
        }
    }

    /// The load of a target; `None`: it is not probed.
    pub fn load(&self, target: TargetId) -> Option<&Load> {
        self.loads.get(target.index())?.as_deref()
    }

    /// Whether any target's load is kept.
    pub fn has_loads(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Whether a target's load is the same object as in another set of flags.
    pub fn has_load_of(&self, other: &TargetFlags, target: TargetId) -> bool {
        let of = |flags: &TargetFlags| flags.loads.get(target.index()).cloned().flatten();
        match (of(self), of(other)) {
            (Some(own), Some(other)) => Arc::ptr_eq(&own, &other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Whether the monitor needs a target's successes.
    pub fn wants_successes(&self, target: TargetId) -> bool {
        self.wants_successes.get(target.index()).is_some_and(|h| h.load(SeqCst))
    }

    /// Sets whether the monitor needs them.
    pub fn set_wants_successes(&self, target: TargetId, wants_successes: bool) {
        if let Some(h) = self.wants_successes.get(target.index()) {
            h.store(wants_successes, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_loads_stay_with_their_targets() {
        let flags = TargetFlags::new(2, false, Box::default());
        flags.report(TargetId(0), 0.5);
        assert_eq!(flags.reported(TargetId(0)), None, "not read");
        let flags = flags.with_reports(true, &[true, true], None);
        flags.report(TargetId(0), 0.5);
        flags.report(TargetId(1), 0.25);
        let next =
            TargetFlags::new(3, false, Box::default()).with_reports(true, &[false, true, true], Some(&flags));
        assert_eq!(
            [0, 1, 2, 9].map(|target| next.reported(TargetId(target))),
            [None, Some(0.25), None, None]
        );
    }

    #[test]
    fn one_claims_a_target_on_probation() {
        let flags = TargetFlags::new(2, false, Box::default());
        assert_eq!((flags.claim(TargetId(0)), flags.claim(TargetId(9))), (Claim::Open, Claim::Open));
        flags.set_half_open(TargetId(0), true);
        assert_eq!([0, 0, 1].map(|t| flags.claim(TargetId(t))), [Claim::Probe, Claim::Tried, Claim::Open]);
        flags.free_probe(TargetId(0));
        assert_eq!([0, 0].map(|t| flags.claim(TargetId(t))), [Claim::Probe, Claim::Tried]);
        flags.set_half_open(TargetId(0), false);
        flags.free_probe(TargetId(0));
        assert!(flags.claim(TargetId(0)) == Claim::Open && !flags.has_probation());
    }
}
