//! Counts of targets by the owner of health: how long they are out and why, ejections, checks.

use super::counts::{CountsBy, values};
use super::pool::ScrapeRound;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

values! {
    /// The result of a health check.
    CheckResult {
        Passed "passed",
        /// The connection was refused.
        Refused "refused",
        /// There was no answer in time.
        Timeout "timeout",
        /// The answer's status does not pass.
        Status "status",
        /// It failed in another way: no TLS, no way to the target, no valid answer.
        Failed "failed",
        /// This process had no descriptor left for it.
        Skipped "skipped",
    }
}

/// The counters of one target of a pool.
#[derive(Default)]
pub(crate) struct HealthCounts {
    pub checks: CountsBy<CheckResult, { CheckResult::COUNT }>,
    ejections: RefCell<BTreeMap<&'static str, u64>>,
    out_ns: RefCell<BTreeMap<&'static str, u64>>,
    seen: ScrapeRound,
}

impl HealthCounts {
    /// Whether this round reads it for the first time.
    pub fn is_new_in(&self, round: u64) -> bool {
        self.seen.is_new_in(round)
    }

    /// Ejections, by reason.
    pub fn each_ejection(&self) -> Vec<(&'static str, u64)> {
        self.ejections.borrow().iter().map(|(reason, count)| (*reason, *count)).collect()
    }

    /// The time out, ns, by reason, without the present one.
    pub fn each_out(&self) -> Vec<(&'static str, u64)> {
        self.out_ns.borrow().iter().map(|(reason, ns)| (*reason, *ns)).collect()
    }
}

/// A target of one balancer, as health sees it.
pub(crate) struct TargetHealth {
    pub pool: Arc<str>,
    pub label: Arc<str>,
    pub counts: Rc<HealthCounts>,
    /// Since when it is out, ns, and the reason.
    out: Cell<Option<(u64, &'static str)>>,
}

impl TargetHealth {
    /// A target that is in, or out for this reason from the start.
    pub fn new(pool: Arc<str>, label: Arc<str>, counts: Rc<HealthCounts>) -> TargetHealth {
        TargetHealth { pool, label, counts, out: Cell::new(None) }
    }

    /// Whether the other is the same target of the same balancer: it has the same counters.
    pub fn is_same_as(&self, other: &TargetHealth) -> bool {
        Rc::ptr_eq(&self.counts, &other.counts)
    }

    /// Sets whether it is in or out, with the reason.
    pub fn is(&self, eligible: bool, reason: &'static str, now_ns: u64) {
        match (self.out.get(), eligible) {
            (None, false) => self.out.set(Some((now_ns, reason))),
            (Some((since_ns, before)), true) => {
                let took_ns = now_ns.saturating_sub(since_ns);
                *self.counts.out_ns.borrow_mut().entry(before).or_default() += took_ns;
                self.out.set(None);
            }
            _ => {}
        }
    }

    /// Notes an ejection for this reason.
    pub fn ejected(&self, reason: &'static str) {
        *self.counts.ejections.borrow_mut().entry(reason).or_default() += 1;
    }

    /// The present time out, ns, and its reason.
    pub fn out_now(&self, now_ns: u64) -> Option<(&'static str, u64)> {
        self.out.get().map(|(since_ns, reason)| (reason, now_ns.saturating_sub(since_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_out_is_charged_to_what_it_began_for() {
        let target = TargetHealth::new("pool".into(), "a".into(), Rc::default());
        target.is(true, "readmitted", 3);
        target.is(false, "checks_failed", 10);
        target.is(false, "ejected_probe", 20);
        assert_eq!(target.out_now(25), Some(("checks_failed", 15)));
        target.is(true, "checks_passed", 30);
        assert_eq!((target.out_now(99), target.counts.each_out()), (None, vec![("checks_failed", 20)]));
    }
}
