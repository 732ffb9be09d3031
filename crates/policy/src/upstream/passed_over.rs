//! Targets that could not be connected to a moment ago, skipped for a second as long as another is left.
//!
//! State: the targets and until when, ordered by that as all last equally long. Cost: O(1) per failure; none without.
//! Not health: panic ignores it. Source: HAProxy `redispatch`; `docs/spec/language.md#pass-over`.

use crate::TargetId;
use crate::ds::bits::Bits;
use std::collections::VecDeque;

/// The targets that one balancer passes over.
#[derive(Clone, Debug)]
pub struct PassedOver {
    lasts_ns: u64,
    targets: Bits,
    /// (until, target), soonest first; only the last entry of a target counts.
    ends: VecDeque<(u64, TargetId)>,
}

impl PassedOver {
    /// Empty; each is skipped for this time. 0: never.
    pub fn new(lasts_ns: u64) -> PassedOver {
        PassedOver { lasts_ns, targets: Bits::default(), ends: VecDeque::new() }
    }

    /// The time for which each is skipped.
    pub fn lasts_ns(&self) -> u64 {
        self.lasts_ns
    }

    /// The skipped targets.
    pub fn targets(&self) -> &Bits {
        &self.targets
    }

    /// Notes a failed connection to a target, one of `n`. Returns whether it is skipped from now on.
    pub fn failed(&mut self, now_ns: u64, target: TargetId, n: u32) -> bool {
        if self.lasts_ns == 0 {
            return false;
        }
        self.targets.grow(n);
        if !self.targets.set(target.0, true) {
            self.ends.retain(|e| e.1 != target);
        }
        self.ends.push_back((now_ns.saturating_add(self.lasts_ns), target));
        true
    }

    /// Forgets targets that were replaced or removed.
    pub fn forget(&mut self, gone: impl Iterator<Item = TargetId>) {
        let mut any = false;
        gone.for_each(|target| any |= self.targets.set(target.0, false));
        if any {
            self.ends.retain(|(_, target)| self.targets.has(target.0));
        }
    }

    /// When the next one may be picked again.
    pub fn next_deadline(&self) -> Option<u64> {
        self.ends.front().map(|e| e.0)
    }

    /// Advances the time. Returns whether any target may be picked again.
    pub fn tick(&mut self, now_ns: u64) -> bool {
        let before = self.ends.len();
        while let Some(&(_, target)) = self.ends.front().filter(|e| e.0 <= now_ns) {
            self.targets.set(target.0, false);
            self.ends.pop_front();
        }
        self.ends.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_begins_anew() {
        let mut over = PassedOver::new(10);
        assert!(
            over.failed(0, TargetId(2), 4)
                && over.failed(3, TargetId(1), 4)
                && over.failed(5, TargetId(2), 4)
        );
        assert_eq!(over.next_deadline(), Some(13));
        assert!(!over.tick(12) && over.tick(13));
        assert_eq!(over.targets().iter().collect::<Vec<_>>(), [2]);
        over.failed(14, TargetId(3), 4);
        over.forget([2, 2].into_iter().map(TargetId));
        assert_eq!((over.next_deadline(), over.tick(24), over.next_deadline()), (Some(24), true, None));
        assert!(over.targets().is_empty() && !PassedOver::new(0).failed(0, TargetId(1), 4));
    }
}
