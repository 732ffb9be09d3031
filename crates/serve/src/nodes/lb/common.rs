//! What all loops know of one balancer's targets: requests in flight where there is a limit, who may try a target on
//! probation, and who waits. Atomics: nobody waits for anybody here.
//!
//! A freed place and a request that joins the line meet as in Dekker's algorithm: the one frees, then looks for who waits;
//! the other joins, then looks for room. All of it is sequentially consistent, so one of the two sees the other.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};
use weir_policy::Upstream;
use weir_topology::plan;

/// No request may try it: it is well, or out.
const CLOSED: u8 = 0;
/// The next request tries it.
const FREE: u8 = 1;
/// One request does.
const TAKEN: u8 = 2;

/// Nobody waits on that loop.
const NOBODY: u64 = u64::MAX;

/// The process's part of a balancer.
pub(crate) struct Common {
    /// Requests in flight at a target at most, over all loops.
    limit: u32,
    /// Requests in flight; empty without a limit.
    in_flight: Box<[AtomicU32]>,
    probes: Box<[AtomicU8]>,
    /// Targets on probation.
    on_probation: AtomicU32,
    /// Whether the keeper of health wants to hear of a target's good answers too.
    heeds: Box<[AtomicBool]>,
    /// The next ticket in the line.
    next: AtomicU64,
    waiting: AtomicU64,
    /// The lowest ticket that waits on each loop; the last is that of the built-in servers' thread.
    first: Box<[AtomicU64]>,
}

/// What became of a pick.
pub(crate) enum Claim {
    /// The target is the request's; `probe`: it is the one that tries it.
    Had { probe: bool },
    /// The last place went to somebody else.
    Full,
    /// Somebody else tries it.
    Tried,
}

impl Common {
    /// For a balancer of so many targets on so many loops. A request has one connection to its target at a time, so the
    /// lower one of both limits holds for requests.
    pub fn new(lb: &plan::Lb, targets: usize, loops: usize) -> Common {
        let limit = lb.max_in_flight.unwrap_or(u32::MAX).min(lb.max_connections.unwrap_or(u32::MAX));
        Common {
            limit,
            in_flight: (0..if limit == u32::MAX { 0 } else { targets }).map(|_| AtomicU32::new(0)).collect(),
            probes: (0..targets).map(|_| AtomicU8::new(CLOSED)).collect(),
            on_probation: AtomicU32::new(0),
            heeds: (0..targets).map(|_| AtomicBool::new(lb.outlier.is_some())).collect(),
            next: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            first: (0..=loops).map(|_| AtomicU64::new(NOBODY)).collect(),
        }
    }

    /// Whether a target can be full at all.
    pub fn is_limited(&self) -> bool {
        self.limit != u32::MAX
    }

    /// Shows a loop's balancer who has room again and who is being tried. `shown`: whether it was told of the latter.
    pub fn show(&self, upstream: &mut Upstream, shown: bool) -> bool {
        if !upstream.full().is_empty() {
            for (target, count) in (0u32..).zip(&self.in_flight) {
                if upstream.full().has(target) && count.load(SeqCst) < self.limit {
                    upstream.set_full(target, false);
                }
            }
        }
        let on_probation = self.on_probation.load(SeqCst) > 0;
        if on_probation || shown {
            for (target, probe) in (0u32..).zip(&self.probes) {
                upstream.set_probing(target, probe.load(SeqCst) == TAKEN);
            }
        }
        on_probation
    }

    /// Takes a place at a target that was picked.
    pub fn claim(&self, target: u32) -> Claim {
        let i = target as usize;
        if let Some(count) = self.in_flight.get(i) {
            let had = count.fetch_update(SeqCst, SeqCst, |n| (n < self.limit).then_some(n + 1));
            if had.is_err() {
                return Claim::Full;
            }
        }
        if self.on_probation.load(SeqCst) == 0 {
            return Claim::Had { probe: false };
        }
        let Some(probe) = self.probes.get(i) else { return Claim::Had { probe: false } };
        match probe.compare_exchange(FREE, TAKEN, SeqCst, SeqCst) {
            Ok(_) => Claim::Had { probe: true },
            Err(TAKEN) => {
                self.leave(target);
                Claim::Tried
            }
            Err(_) => Claim::Had { probe: false },
        }
    }

    /// A request has left its target.
    pub fn leave(&self, target: u32) {
        if let Some(count) = self.in_flight.get(target as usize) {
            let before = count.fetch_sub(1, SeqCst);
            debug_assert!(before > 0, "a target with nothing in flight got a request back");
        }
    }

    /// The request that tried a target said nothing of it: another may.
    pub fn free_probe(&self, target: u32) {
        if let Some(probe) = self.probes.get(target as usize) {
            // Meanwhile the target may have been removed; then it stays closed.
            let _ = probe.compare_exchange(TAKEN, FREE, SeqCst, SeqCst);
        }
    }

    /// The keeper's word: whether one request may try the target.
    pub fn set_half_open(&self, target: u32, half_open: bool) {
        let Some(probe) = self.probes.get(target as usize) else { return };
        let before = if half_open {
            // Before the state, so that whoever sees it free looks at all.
            self.on_probation.fetch_add(1, SeqCst);
            probe.swap(FREE, SeqCst)
        } else {
            probe.swap(CLOSED, SeqCst)
        };
        if before != CLOSED {
            self.on_probation.fetch_sub(1, SeqCst);
        }
    }

    /// Whether the keeper wants to hear of a good answer.
    pub fn heeds(&self, target: u32) -> bool {
        self.heeds.get(target as usize).is_some_and(|h| h.load(SeqCst))
    }

    /// The keeper's word on that.
    pub fn set_heeds(&self, target: u32, heeds: bool) {
        if let Some(h) = self.heeds.get(target as usize) {
            h.store(heeds, SeqCst);
        }
    }

    /// A ticket in the line; `None` if it is full.
    pub fn join(&self, most: u64) -> Option<u64> {
        self.waiting.fetch_update(SeqCst, SeqCst, |n| (n < most).then_some(n + 1)).ok()?;
        Some(self.next.fetch_add(1, SeqCst))
    }

    /// A request has left the line.
    pub fn quit(&self) {
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// The lowest ticket that waits on a loop is this one now.
    pub fn set_first(&self, number: u32, ticket: Option<u64>) {
        self.first[self.slot(number)].store(ticket.unwrap_or(NOBODY), SeqCst);
    }

    fn slot(&self, number: u32) -> usize {
        (number as usize).min(self.first.len() - 1)
    }

    /// Whether nobody waits on any loop.
    pub fn nobody_waits(&self) -> bool {
        self.waiting.load(SeqCst) == 0
    }

    /// The lowest ticket of all, and the place of its loop among `first`.
    pub fn lowest(&self) -> Option<(u64, usize)> {
        let tickets = self.first.iter().map(|t| t.load(SeqCst)).zip(0..);
        tickets.min().filter(|(ticket, _)| *ticket != NOBODY)
    }

    /// Whether that place is this loop's.
    pub fn is_slot_of(&self, slot: usize, number: u32) -> bool {
        slot == self.slot(number)
    }
}
