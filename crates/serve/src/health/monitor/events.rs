//! What is remembered of targets for people: when each changed, what its last check saw, and the last changes of all.

use super::super::check::CheckFailure;
use super::Monitored;
use crate::log::{ErrorLog, TargetChange};
use crate::metrics::now_unix_ms;
use std::collections::{BTreeMap, VecDeque};
use weir_policy::TargetId;
use weir_policy::eligibility::Reason;

/// The most events that are kept (`docs/spec/operating.md#changes-of-state`).
const MOST: usize = 100;
/// The most names of an event.
const NAMES: usize = 20;
/// From this number of reasons on some may be missing.
const REASONS: usize = 4000;
/// Changes of one sort within this time are one event, ns.
const TOGETHER_NS: u64 = 2_000_000_000;

/// One target's past.
#[derive(Clone, Debug, Default)]
pub(crate) struct TargetPast {
    /// Since when it is in or out as it is, ms since 1970; `None`: since the start.
    pub since_unix_ms: Option<u64>,
    /// Its last check: when it ended, ns, and how.
    pub last_check: Option<(u64, Result<(), CheckFailure>)>,
    /// Whether it was eligible when that was last looked at.
    was_eligible: bool,
}

/// Targets of a balancer that have changed alike, at about the same time.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// When the first did, ns.
    pub at_ns: u64,
    /// The balancer.
    pub pool: String,
    /// In a word: up, down, ejected.
    pub state: &'static str,
    /// Why.
    pub reason: &'static str,
    /// The number of targets.
    pub count: u32,
    /// The first of them, by name.
    pub targets: Vec<String>,
    /// What its last check saw, if that is why.
    pub check: Option<String>,
}

/// The last events.
#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<Event>);

impl Events {
    fn note(&mut self, at_ns: u64, change: &TargetChange<'_>) {
        let is_it = |event: &&mut Event| {
            (event.pool.as_str(), event.state, event.reason) == (change.pool, change.state, change.reason)
        };
        // Behind it may be the opposite change of some: then this is another event.
        let mut newest = self.0.iter_mut().rev();
        let same = newest.find(|event| event.pool == change.pool).filter(is_it);
        if let Some(event) = same.filter(|event| at_ns < event.at_ns.saturating_add(TOGETHER_NS)) {
            event.count = event.count.saturating_add(1);
            if event.targets.len() < NAMES {
                event.targets.push(change.target.to_owned());
            }
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(Event {
            at_ns,
            pool: change.pool.to_owned(),
            state: change.state,
            reason: change.reason,
            count: 1,
            targets: vec![change.target.to_owned()],
            check: change.check.map(str::to_owned),
        });
    }

    /// The newest last.
    pub fn all(&self) -> Vec<Event> {
        self.0.iter().cloned().collect()
    }
}

impl Monitored {
    /// Notes changes of targets: in the error log, and as events. `reasons`: of each change, as far as they are known.
    pub(super) fn note_changes(
        &mut self,
        now_ns: u64,
        reasons: &BTreeMap<TargetId, Reason>,
        errors: &ErrorLog,
        events: &mut Events,
    ) {
        let (of, eligible) = self.health.count();
        // More targets may change at once than reasons are kept: then each is looked at.
        let changed: Vec<TargetId> = match reasons.len() {
            0..REASONS => reasons.keys().copied().collect(),
            _ => TargetId::all(self.health.len()).collect(),
        };
        for target in changed {
            let at = target.index();
            let (Some(past), Some(true)) = (self.pasts.get_mut(at), self.shape.exists.get(at)) else {
                continue;
            };
            let (is_eligible, Some(counted)) = (self.health.is_eligible(target), self.counts.get(at)) else {
                continue;
            };
            if std::mem::replace(&mut past.was_eligible, is_eligible) == is_eligible {
                continue;
            }
            past.since_unix_ms = Some(now_unix_ms());
            let reason = reasons
                .get(&target)
                .copied()
                .or_else(|| self.health.against(target).next())
                .unwrap_or(Reason::ChecksPassed);
            let check = match (&past.last_check, reason) {
                (Some((_, Err(why))), Reason::ChecksFailed) => Some(why.to_string()),
                _ => None,
            };
            let change = TargetChange {
                pool: &self.label,
                pool_name: &self.name,
                target: &counted.label,
                described: self.names.get(at).map_or("", |name| name),
                state: match is_eligible {
                    true => "up",
                    false if reason.is_ejection() => "ejected",
                    false => "down",
                },
                reason: reason.name(),
                check: check.as_deref(),
                eligible,
                of,
            };
            errors.target_changed(&change);
            events.note(now_ns, &change);
        }
    }

    /// Takes changes of the set of targets for known, so that they are no events.
    pub(super) fn know_all(&mut self) {
        for (target, past) in TargetId::all(self.health.len()).zip(&mut self.pasts) {
            past.was_eligible = self.health.is_eligible(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change<'a>(target: &'a str, state: &'static str) -> TargetChange<'a> {
        TargetChange {
            pool: "apps",
            pool_name: "apps",
            target,
            described: target,
            state,
            reason: "checks_failed",
            check: None,
            eligible: 0,
            of: 0,
        }
    }

    #[test]
    fn many_at_once_are_one_event_and_old_ones_go() {
        let mut events = Events::default();
        for n in 0..300u64 {
            events.note(n * 1_000_000, &change(&format!("t{n}"), "down"));
        }
        events.note(400_000_000, &change("t7", "up"));
        events.note(500_000_000, &change("t7", "down"));
        let seen: Vec<(u32, &str, usize)> =
            events.0.iter().map(|event| (event.count, event.state, event.targets.len())).collect();
        assert_eq!(seen, [(300, "down", 20), (1, "up", 1), (1, "down", 1)]);
        for n in 0..500u64 {
            events.note((1 + n) * 10_000_000_000, &change("t", if n % 2 == 0 { "up" } else { "down" }));
        }
        assert_eq!(events.all().len(), MOST);
    }
}
