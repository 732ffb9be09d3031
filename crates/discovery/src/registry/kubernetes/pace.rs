//! How soon a service is asked for again whose watch has broken, and whether that is worth a report.
//!
//! A watch breaks in the course of things: a server restarts, or has forgotten a version. Then the service is
//! listed at once. Where watches break again and again, pauses double, so that a server is not worn out by
//! lists.

use crate::fault::{FaultKind, Reports};
use crate::registry::post::pause_bound;
use std::time::Duration;

/// A watch that lasted this long was a good one.
const LONG: Duration = Duration::from_secs(10);

/// This many short watches are no accident.
const MANY: u32 = 5;

/// The watches of a service, as far as they were short.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Short watches since the last long one.
    short: u32,
    /// Not those of lists, which end with the next list: that may come after each watch.
    reports: Reports,
}

impl Pace {
    /// Notes the end of a watch. Returns the longest pause before the next question.
    pub(super) fn note(&mut self, lasted: Duration) -> Duration {
        if lasted >= LONG {
            self.short = 0;
            return Duration::ZERO;
        }
        self.short += 1;
        // One is no failure.
        self.short.checked_sub(2).map_or(Duration::ZERO, pause_bound)
    }

    /// Whether the end of a watch is a failure: a refusal at once, another fault if it lasts.
    pub(super) fn is_failure(&self, is_refusal: bool) -> bool {
        is_refusal || self.short >= MANY
    }

    /// Whether the watch's fault is to be reported: a failure, each kind once, then every five minutes.
    pub(super) fn is_due(&mut self, kind: FaultKind, is_refusal: bool, now_ns: u64) -> bool {
        self.is_failure(is_refusal) && self.reports.admit(now_ns, kind).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_short_watch_costs_no_pause_and_later_ones_ever_longer() {
        let mut pace = Pace::default();
        let mut note = |s| pace.note(Duration::from_secs(s)).as_millis();
        assert_eq!([0, 100, 200, 400], [(); 4].map(|()| note(1)));
        assert_eq!((note(10), note(1), note(9)), (0, 0, 100));
        assert_eq!((0..100).fold(0, |_, _| note(0)), 30_000);
    }

    #[test]
    fn a_refusal_is_reported_at_once_and_others_if_they_last() {
        const S: u64 = 1_000_000_000;
        let mut pace = Pace::default();
        assert!(pace.is_due(FaultKind::Forbidden, true, S));
        assert!(!pace.is_due(FaultKind::Forbidden, true, 300 * S));
        assert!(pace.is_due(FaultKind::Forbidden, true, 301 * S));
        assert!(!pace.is_due(FaultKind::Cut, false, 302 * S));
        for _ in 0..MANY {
            pace.note(Duration::ZERO);
        }
        assert!(pace.is_due(FaultKind::Cut, false, 303 * S));
        // Nor are two that take turns reported each time.
        assert!(!pace.is_due(FaultKind::Forbidden, true, 304 * S));
        assert!(!pace.is_due(FaultKind::Cut, false, 305 * S));
    }
}
