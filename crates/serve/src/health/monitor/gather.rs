//! Counts of health, and how a scrape gets them.

use super::super::check::CheckFailure;
use super::{Monitor, Monitored};
use crate::metrics::families::Id as Of;
use crate::metrics::{CheckResult, Samples, TargetHealth};
use crate::nodes::Id;
use crate::sync::slices::Slices;
use std::collections::BTreeMap;
use weir_policy::TargetId;
use weir_policy::eligibility::{Reason, Transition};
use weir_policy::health::Health;

/// A target's health has changed. What is set by hand, or taken back, ends the time for the reason before: a drain is
/// no fault.
pub(super) fn changed(counts: &[TargetHealth], health: &Health, one: &Transition, now_ns: u64) {
    let Some(target) = counts.get(one.target.index()) else { return };
    let reason = one.reason.name();
    if one.reason.is_ejection() {
        target.ejected(reason);
    }
    let is_by_hand = matches!(one.reason, Reason::AdminUp | Reason::AdminDrain | Reason::AdminDown);
    match health.against(one.target).next().filter(|_| is_by_hand && !one.is_eligible) {
        Some(left) => {
            target.is(true, reason, now_ns);
            target.is(false, left.name(), now_ns);
        }
        None => target.is(one.is_eligible, reason, now_ns),
    }
}

/// Targets that are out from the start, or too many at once to be reported one by one, have this reason.
pub(super) fn settle(counts: &[TargetHealth], health: &Health, now_ns: u64, reason: &'static str) {
    for (target, counts) in TargetId::all(health.len()).zip(counts) {
        counts.is(health.is_eligible(target), reason, now_ns);
    }
}

impl Monitored {
    /// A check has ended.
    pub(super) fn checked(&mut self, now_ns: u64, target: TargetId, result: &Result<(), CheckFailure>) {
        if let Some(past) = self.pasts.get_mut(target.index()) {
            past.last_check = Some((now_ns, result.clone()));
        }
        let result = result.as_ref().map_or_else(CheckFailure::result, |()| CheckResult::Passed);
        if let Some(target) = self.counts.get(target.index()) {
            target.counts.checks.one(result);
        }
    }
}

impl Monitor {
    /// The checks of a target that have failed so far, and its ejections.
    pub fn failures(&self, lb: Id, target: TargetId) -> u64 {
        let sum = |lb: &mut Monitored| {
            let counts = &lb.counts.get(target.index())?.counts;
            let failed =
                [CheckResult::Refused, CheckResult::Timeout, CheckResult::Status, CheckResult::Failed];
            let checks: u64 = failed.iter().map(|result| counts.checks.get(*result)).sum();
            Some(checks + counts.each_ejection().iter().map(|(_, count)| count).sum::<u64>())
        };
        self.with(lb, sum).flatten().unwrap_or_default()
    }

    /// All counts of health for a scrape, in slices; `None`: it `ends` before, since a later one has begun.
    pub async fn gather(
        &self,
        round: u64,
        out: &mut Samples,
        slices: &Slices,
        ends: impl Fn() -> bool,
    ) -> Option<()> {
        let (now_ns, graph) = (self.core.now(), self.graph.borrow().clone());
        for own in graph.balancers() {
            let pool = &own.counts.pool.label;
            let mut standing = BTreeMap::from(Health::STANDINGS.map(|state| (state, 0)));
            for target in TargetId::all(own.targets.len() as u32) {
                slices.step().await;
                if ends() {
                    return None;
                }
                if !own.has_target(target) {
                    continue;
                }
                let seen = self.with(own.id, |lb| lb.gather(target, now_ns, round, out)).flatten();
                // A reload may have removed it meanwhile.
                if let Some(seen) = seen {
                    *standing.entry(seen).or_default() += 1;
                }
            }
            for (state, count) in standing {
                out.add(Of::Targets, [pool.into(), state.into()], count);
            }
            let is_ignored = self.with(own.id, |lb| lb.health.is_ignored());
            out.add(Of::Panic, [pool.into()], u64::from(is_ignored == Some(true)));
        }
        Some(())
    }
}

impl Monitored {
    /// The counts of a target; returns how it is.
    fn gather(&self, target: TargetId, now_ns: u64, round: u64, out: &mut Samples) -> Option<&'static str> {
        let (counts, past) = (self.counts.get(target.index())?, self.pasts.get(target.index())?);
        let is_eligible = self.health.is_eligible(target);
        counts.is(is_eligible, "unknown", now_ns);
        counts.gather(is_eligible, now_ns, round, out);
        let of = || [(&counts.pool).into(), (&counts.label).into()];
        let share = if is_eligible { self.health.ramp(target) } else { 0.0 };
        out.add(Of::TargetShare, of(), share);
        if let Some(since_ms) = past.since_unix_ms {
            out.add(Of::TargetChanged, of(), since_ms as f64 / 1e3);
        }
        Some(self.health.standing(target))
    }
}

impl TargetHealth {
    fn gather(&self, eligible: bool, now_ns: u64, round: u64, out: &mut Samples) {
        let of = || [(&self.pool).into(), (&self.label).into()];
        let seconds = |ns: u64| ns as f64 / 1e9;
        out.add(Of::TargetEligible, of(), u64::from(eligible));
        if let Some((reason, ns)) = self.out_now(now_ns) {
            let [pool, target] = of();
            out.add(Of::TargetOut, [pool, target, reason.into()], seconds(ns));
        }
        if !self.counts.is_new_in(round) {
            return;
        }
        for (reason, ns) in self.counts.each_out() {
            let [pool, target] = of();
            out.add(Of::TargetOut, [pool, target, reason.into()], seconds(ns));
        }
        for (reason, count) in self.counts.each_ejection() {
            let [pool, target] = of();
            out.add(Of::Ejections, [pool, target, reason.into()], count);
        }
        for (result, count) in self.counts.checks.each() {
            let [pool, target] = of();
            out.add(Of::HealthChecks, [pool, target, result.into()], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use weir_policy::eligibility::Admin;
    use weir_policy::health::HealthConfig;
    use weir_stats::Key;

    /// What was down before a drain, and is after it, is so for that reason again.
    #[test]
    fn the_time_of_a_drain_is_its_own() {
        let mut health = Health::new(HealthConfig::default(), &[1.0], 0, Key::new(1));
        let counts = [TargetHealth::new("apps".into(), "a".into(), Rc::default())];
        let target = TargetId(0);
        let note = |health: &mut Health, now_ns| {
            let all: Vec<Transition> = health.take_transitions().collect();
            all.iter().for_each(|one| changed(&counts, health, one, now_ns));
        };
        health.set_resolved(10, target, false);
        note(&mut health, 10);
        health.set_admin(20, target, Admin::Drain);
        note(&mut health, 20);
        assert_eq!(counts[0].out_now(25), Some(("admin_drain", 5)));
        health.set_admin(50, target, Admin::Up);
        note(&mut health, 50);
        assert_eq!(counts[0].out_now(55), Some(("unresolved", 5)));
        health.set_resolved(60, target, true);
        note(&mut health, 60);
        assert_eq!(counts[0].out_now(70), None);
        assert_eq!(counts[0].counts.each_out(), [("admin_drain", 30), ("unresolved", 20)]);
    }
}
