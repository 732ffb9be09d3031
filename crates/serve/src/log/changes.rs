//! Changes of targets for the error log (`docs/spec/operating.md#changes-of-state`): each is reported on its own as
//! long as they are few; many at once are summed, and none is left out, however slow the reader is.

use std::time::{Duration, Instant};

/// The time over which changes are summed before a line is written.
const GATHERED: Duration = Duration::from_secs(1);
/// Names in the line of a sum, bytes; the others are counted.
const NAMES_BYTES: usize = 2000;

/// A target that may be picked again, or no more.
pub(crate) struct TargetChange<'a> {
    /// The balancer as metrics name it, and as the file does.
    pub pool: &'a str,
    pub pool_name: &'a str,
    /// The target as metrics name it, and with its address.
    pub target: &'a str,
    pub described: &'a str,
    /// In a word: up, down, ejected.
    pub state: &'static str,
    /// Why.
    pub reason: &'static str,
    /// What its last check saw, if that is why.
    pub check: Option<&'a str>,
    /// Targets of the balancer that may be picked, and all.
    pub eligible: u32,
    pub of: u32,
}

impl TargetChange<'_> {
    /// The line of this change alone.
    pub fn line(&self) -> String {
        let TargetChange { described, pool_name, state, reason, check, .. } = self;
        let check = check.map(|check| format!(": {check}")).unwrap_or_default();
        format!("{described}, a target of {pool_name}, is {state} ({reason}{check})")
    }
}

/// Changes of one sort.
struct Sum {
    pool: String,
    state: &'static str,
    reason: &'static str,
    count: u64,
    names: String,
    unnamed: u64,
    eligible: u32,
    of: u32,
}

/// The changes that are to be summed.
#[derive(Default)]
pub(super) struct Sums {
    all: Vec<Sum>,
    since: Option<Instant>,
}

impl Sums {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a change. Their number is bounded by balancers, states and reasons.
    pub fn add(&mut self, change: &TargetChange<'_>, now: Instant) {
        self.since.get_or_insert(now);
        let TargetChange { pool, target, state, reason, eligible, of, .. } = *change;
        let same = self
            .all
            .iter_mut()
            .find(|sum| (sum.pool.as_str(), sum.state, sum.reason) == (pool, state, reason));
        if let Some(sum) = same {
            sum.count += 1;
            (sum.eligible, sum.of) = (eligible, of);
            if sum.names.len() + target.len() < NAMES_BYTES {
                sum.names.push_str(", ");
                sum.names.push_str(target);
            } else {
                sum.unnamed += 1;
            }
            return;
        }
        let (pool, names) = (pool.to_owned(), target.to_owned());
        self.all.push(Sum { pool, state, reason, count: 1, names, unnamed: 0, eligible, of });
    }

    /// How long until they are to be written; `None`: nothing waits.
    pub fn due_in(&self, now: Instant) -> Option<Duration> {
        Some(GATHERED.saturating_sub(now.saturating_duration_since(self.since?)))
    }

    /// Takes the lines.
    pub fn take(&mut self) -> Vec<String> {
        self.since = None;
        self.all.drain(..).map(|sum| sum.line()).collect()
    }
}

impl Sum {
    fn line(&self) -> String {
        let Sum { pool, state, reason, count, names, unnamed, eligible, of } = self;
        let are = if *count == 1 { "target is" } else { "targets are" };
        let more = if *unnamed > 0 { format!(" and {unnamed} more") } else { String::new() };
        format!(
            "{pool}: {count} {are} {state} ({reason}): {names}{more}; {eligible} of {of} targets are left"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change<'a>(target: &'a str, state: &'static str, eligible: u32) -> TargetChange<'a> {
        TargetChange {
            pool: "apps",
            pool_name: "apps",
            target,
            described: target,
            state,
            reason: "checks_failed",
            check: Some("connect refused"),
            eligible,
            of: 300,
        }
    }

    #[test]
    fn none_is_left_out_of_a_sum() {
        let (mut sums, now) = (Sums::default(), Instant::now());
        assert_eq!(sums.due_in(now), None);
        for n in 0..280 {
            sums.add(&change(&format!("t{n}"), "down", 280 - n), now);
        }
        sums.add(&change("t3", "up", 2), now);
        assert_eq!(sums.due_in(now), Some(GATHERED));
        let lines = sums.take();
        assert!(
            lines[0].starts_with("apps: 280 targets are down (checks_failed): t0, t1, t2, "),
            "{lines:?}"
        );
        assert!(lines[0].ends_with("; 1 of 300 targets are left"), "{lines:?}");
        assert_eq!(lines[1], "apps: 1 target is up (checks_failed): t3; 2 of 300 targets are left");
        assert!(sums.is_empty() && sums.due_in(now).is_none());
    }

    #[test]
    fn a_line_is_bounded() {
        let (mut sums, now) = (Sums::default(), Instant::now());
        for n in 0..100_000 {
            sums.add(&change(&format!("target-{n}"), "down", 0), now);
        }
        let line = sums.take().remove(0);
        assert!(line.contains("100000 targets are down") && line.contains(" more; "), "{line}");
        assert!(line.len() < NAMES_BYTES + 200, "{}", line.len());
    }

    #[test]
    fn one_alone_says_what_its_check_saw() {
        let line = change("server \"a\" (127.0.0.1:9)", "down", 0).line();
        assert_eq!(
            line,
            "server \"a\" (127.0.0.1:9), a target of apps, is down (checks_failed: connect refused)"
        );
    }
}
