//! When a followed file is read: soon after each change, and every few seconds without one.
//!
//! A change is read when it has been quiet for 50 ms, and 250 ms after its first event at the latest, so that a file
//! that never rests is read as well. Between two readings are 100 ms, so that at most ten lists a second are taken; a
//! change meanwhile is read after them, so that the last one always is.

/// How long a file must be quiet.
const REST_NS: u64 = 50_000_000;

/// How long a change is waited for that does not end.
const PATIENCE_NS: u64 = 250_000_000;

/// From the end of one reading to the next one, at least.
const PAUSE_NS: u64 = 100_000_000;

/// From the end of one reading to the next look, if nothing changes.
const LOOK_NS: u64 = 5_000_000_000;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Read the file: it has changed.
    Read,
    /// Look whether it has changed, since no watch sees everything.
    Look,
}

/// A change of the file that has not been read.
#[derive(Clone, Copy, Debug)]
struct Change {
    first_ns: u64,
    last_ns: u64,
}

/// When a file is read.
#[derive(Debug)]
pub(super) struct Follow {
    change: Option<Change>,
    /// The end of the pause after a reading.
    pause_end_ns: u64,
    look_ns: u64,
}

impl Follow {
    /// A file is looked at once at the start.
    pub(super) fn new(now_ns: u64) -> Follow {
        Follow { change: None, pause_end_ns: now_ns, look_ns: now_ns }
    }

    /// Notes that something happened to the file.
    pub(super) fn note_change(&mut self, now_ns: u64) {
        let change = self.change.get_or_insert(Change { first_ns: now_ns, last_ns: now_ns });
        change.last_ns = now_ns;
    }

    /// When there is something to do, if nothing happens until then.
    pub(super) fn next_ns(&self) -> u64 {
        match self.change {
            Some(change) => {
                (change.last_ns + REST_NS).min(change.first_ns + PATIENCE_NS).max(self.pause_end_ns)
            }
            None => self.look_ns,
        }
    }

    /// Takes what is to be done now; [`Follow::finish`] ends it.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<Step> {
        if now_ns < self.next_ns() {
            return None;
        }
        Some(if self.change.take().is_some() { Step::Read } else { Step::Look })
    }

    /// Notes that what was taken is done.
    pub(super) fn finish(&mut self, now_ns: u64) {
        self.pause_end_ns = now_ns + PAUSE_NS;
        self.look_ns = now_ns + LOOK_NS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testkit::Random;

    const MS: u64 = 1_000_000;

    /// Plays events at these ms. Returns the steps until the end, with their ms.
    fn play(events: &[u64], end: u64) -> Vec<(u64, Step)> {
        let mut follow = Follow::new(0);
        let mut steps = Vec::new();
        let mut events = events.iter().map(|ms| ms * MS).peekable();
        loop {
            let next_ns = follow.next_ns();
            if let Some(event) = events.next_if(|event| *event < next_ns) {
                follow.note_change(event);
                continue;
            }
            if next_ns > end * MS {
                return steps;
            }
            assert_eq!(next_ns.checked_sub(1).and_then(|earlier| follow.take(earlier)), None);
            steps.push((next_ns / MS, follow.take(next_ns).expect("something is due")));
            follow.finish(next_ns);
        }
    }

    #[test]
    fn a_change_is_read_when_it_is_quiet() {
        use Step::{Look, Read};
        assert_eq!(play(&[], 12_000), [(0, Look), (5_000, Look), (10_000, Look)]);
        assert_eq!(play(&[1_000], 7_000), [(0, Look), (1_050, Read), (6_050, Look)]);
        assert_eq!(play(&[1_000, 1_030, 1_079], 2_000), [(0, Look), (1_129, Read)]);
        let busy: Vec<u64> = (0..20).map(|i| 1_000 + 40 * i).collect();
        assert_eq!(play(&busy, 3_000), [(0, Look), (1_250, Read), (1_530, Read), (1_810, Read)]);
        // A reading is over for 100 ms before the next one begins.
        assert_eq!(play(&[1_000, 1_051], 3_000), [(0, Look), (1_050, Read), (1_150, Read)]);
    }

    #[test]
    fn however_events_come_the_last_is_read_and_no_eleven_in_a_second() {
        let mut random = Random::new(7);
        for _ in 0..2_000 {
            let most_gap = [3, 60, 300, 9_000][random.below(4)];
            let mut at = 0;
            let events: Vec<u64> = (0..random.below(60))
                .map(|_| {
                    at += 1 + random.below(most_gap) as u64;
                    at
                })
                .collect();
            let steps = play(&events, at + 6_000);
            assert!(
                steps.windows(2).all(|pair| (100..=5_250).contains(&(pair[1].0 - pair[0].0))),
                "{events:?}"
            );
            for event in &events {
                let next = steps.iter().find(|step| step.0 >= *event).expect("a reading after each event");
                assert!(next.0 - event <= 250 + 100, "{event} {next:?}");
            }
            let reads = steps.iter().filter(|step| step.1 == Step::Read).count();
            assert!(reads <= events.len());
        }
    }
}
