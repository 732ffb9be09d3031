//! The limits of requests in flight at targets, where the balancer counts them itself: one for all, but for targets whose
//! ramp lowers theirs. A target with more inside than it may have now is full until enough of them have come back.

use super::Upstream;
use crate::TargetId;
use crate::health::slow_start::limit_at;

impl Upstream {
    /// Lowers the limits of targets that are on their ramp, and raises those of others again.
    pub(super) fn heed_limits(&mut self) {
        let most = self.max_in_flight;
        if self.counts.is_empty() || most == u32::MAX {
            return;
        }
        let health = &self.health;
        let of = |target| limit_at(most, health.view(target).room);
        let is_lowered = TargetId::all(health.len()).any(|target| of(target) < most);
        if !is_lowered && self.limits.is_empty() {
            return;
        }
        self.limits = if is_lowered { TargetId::all(health.len()).map(of).collect() } else { Vec::new() };
        for target in TargetId::all(self.counts.len() as u32) {
            self.full.set(target.0, self.counts[target.index()] >= self.limit(target));
        }
    }

    /// The limit of requests in flight at a target.
    #[inline]
    pub(super) fn limit(&self, target: TargetId) -> u32 {
        self.limits.get(target.index()).copied().unwrap_or(self.max_in_flight)
    }
}
