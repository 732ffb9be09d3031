//! How soon a service is asked for again whose watch has broken, and whether that is worth a report.
//!
//! A watch breaks in the course of things: a server restarts, or has forgotten a version. Then the service is
//! listed at once. Where watches break again and again, pauses double, so that a server is not worn out by
//! lists.

use crate::fault::FaultKind;
use std::time::Duration;
use tokio::time::Instant;

/// A watch that lasted this long was a good one.
const LONG: Duration = Duration::from_secs(10);

/// The longest pause after two short watches; it doubles with each one more.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause after any watch.
const MOST_PAUSE: Duration = Duration::from_secs(30);

/// This many short watches are no accident.
const MANY: u32 = 5;

/// A fault that lasts is reported again after this time.
const REMINDER: Duration = Duration::from_secs(300);

/// The watches of a service, as far as they were short.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Short watches since the last long one.
    short: u32,
    /// What was reported last, and when.
    reported: Option<(FaultKind, Instant)>,
}

impl Pace {
    /// Notes the end of a watch. Returns the longest pause before the next question.
    pub(super) fn note(&mut self, lasted: Duration) -> Duration {
        if lasted >= LONG {
            self.short = 0;
            return Duration::ZERO;
        }
        self.short += 1;
        match self.short.checked_sub(2) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(MOST_PAUSE),
        }
    }

    /// Whether the watch's fault is to be reported: a refusal at once, another fault if it lasts; each kind
    /// once, then every five minutes.
    pub(super) fn is_due(&mut self, kind: FaultKind, is_refusal: bool, now: Instant) -> bool {
        if !is_refusal && self.short < MANY {
            return false;
        }
        let is_known =
            self.reported.is_some_and(|(known, at)| known == kind && now.duration_since(at) < REMINDER);
        if !is_known {
            self.reported = Some((kind, now));
        }
        !is_known
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
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert!(pace.is_due(FaultKind::Forbidden, true, start));
        assert!(!pace.is_due(FaultKind::Forbidden, true, start + Duration::from_secs(299)));
        assert!(pace.is_due(FaultKind::Forbidden, true, start + REMINDER));
        assert!(!pace.is_due(FaultKind::Cut, false, start));
        for _ in 0..MANY {
            pace.note(Duration::ZERO);
        }
        assert!(pace.is_due(FaultKind::Cut, false, start));
        assert!(!pace.is_due(FaultKind::Cut, false, start));
    }
}
