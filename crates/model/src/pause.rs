//! A process that stands still from time to time, as one that collects garbage: what is inside goes on where it stopped.
//!
//! - In virtual time and in the proxy: its clock stands still while it is down, so work inside ends when the clock says so.
//!   What enters or leaves meanwhile waits until it goes on.
//! - Draws: none of its own; it pauses while its [`Faulty`] time-line is down.
//!
//! The time-line does not depend on requests, so the end of work is known as it begins.

use crate::faulty::{Faulty, Law};
use weir_stats::Key;

/// Beyond so many pauses in one piece of work their mean is taken for the rest.
const MOST_PAUSES: u32 = 10_000;

/// The clock of one process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessClock {
    line: Faulty,
    /// When the present period began.
    since_ns: u64,
    /// How long it stood still before that.
    stopped_ns: u64,
}

impl ProcessClock {
    /// At time 0. `law` has an eager clock; `key` is that of the time-line.
    pub fn new(law: &Law, key: Key) -> ProcessClock {
        ProcessClock { line: Faulty::new(law, key), since_ns: 0, stopped_ns: 0 }
    }

    /// Lets a clock wait whose process has not begun.
    pub fn wait(&mut self) {
        self.line.wait();
    }

    /// Begins a clock that waited.
    pub fn begin(&mut self, law: &Law, now_ns: u64) {
        self.line.begin(law, now_ns);
        self.since_ns = now_ns;
    }

    /// Forgets what was before `now_ns`; no later question is about it.
    pub fn advance(&mut self, law: &Law, now_ns: u64) {
        while self.line.next_flip_ns() < now_ns {
            self.turn(law);
        }
    }

    /// What the clock shows: time without pauses.
    pub fn read(&self, law: &Law, at_ns: u64) -> u64 {
        let mut clock = *self;
        clock.advance(law, at_ns);
        if clock.line.is_up_now() { at_ns - clock.stopped_ns } else { clock.since_ns - clock.stopped_ns }
    }

    /// When it shows `shown_ns`, and goes on: not before `from_ns`.
    pub fn when(&self, law: &Law, from_ns: u64, shown_ns: u64) -> u64 {
        let mut clock = *self;
        clock.advance(law, from_ns);
        for _ in 0..MOST_PAUSES {
            if clock.line.is_up_now() {
                let at = shown_ns.saturating_add(clock.stopped_ns).max(from_ns);
                if at <= clock.line.next_flip_ns() {
                    return at;
                }
            }
            clock.turn(law);
        }
        let left = shown_ns.saturating_add(clock.stopped_ns).saturating_sub(clock.since_ns) as f64;
        clock.since_ns.saturating_add((left * law.slowed_down()) as u64)
    }

    /// When work of `work_ns` that begins at `from_ns` ends.
    pub fn end_of(&self, law: &Law, from_ns: u64, work_ns: u64) -> u64 {
        self.when(law, from_ns, self.read(law, from_ns).saturating_add(work_ns))
    }

    /// The next period begins.
    fn turn(&mut self, law: &Law) {
        let at = self.line.next_flip_ns();
        if !self.line.is_up_now() {
            self.stopped_ns += at - self.since_ns;
        }
        self.since_ns = at;
        self.line.flip_due(law);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Dist;

    const MS: u64 = 1_000_000;

    /// Up for 100 ms, still for 20 ms, again and again.
    fn regular(starts_up: bool) -> (Law, ProcessClock) {
        let of = |ms: u64| Dist::Fixed { ns: ms * MS };
        let law = Law::new(100 * MS, 20 * MS, false, starts_up).with(Some(&of(100)), Some(&of(20)));
        let clock = ProcessClock::new(&law, Key::new(1));
        (law, clock)
    }

    #[test]
    fn work_goes_on_where_it_stopped() {
        let (law, clock) = regular(true);
        let end = |from: u64, work: u64| clock.end_of(&law, from * MS, work * MS) / MS;
        assert_eq!(end(10, 30), 40, "before the pause");
        assert_eq!(end(90, 10), 100, "as it begins");
        assert_eq!(end(90, 30), 140, "20 ms after it");
        assert_eq!(end(105, 0), 120, "what enters meanwhile waits");
        assert_eq!(end(105, 5), 125);
        assert_eq!(end(90, 230), 380, "three pauses");
        assert_eq!(end(120, 100), 220);
        let (law, clock) = regular(false);
        assert_eq!(clock.end_of(&law, 0, 0) / MS, 20);
    }

    /// The two readings are each other's inverse while it goes on, wherever the question begins.
    #[test]
    fn the_clock_is_read_and_set_alike() {
        let law = Law::new(7 * MS, 3 * MS, false, true);
        let mut clock = ProcessClock::new(&law, Key::new(4));
        let fresh = clock;
        for at in (0..5_000).map(|i| i * MS / 7) {
            clock.advance(&law, at);
            assert_eq!(clock.read(&law, at), fresh.read(&law, at));
            let when = clock.end_of(&law, at, MS / 2);
            assert_eq!(when, fresh.end_of(&law, at, MS / 2));
            assert_eq!(clock.read(&law, when), clock.read(&law, at) + MS / 2);
        }
        let shown = clock.read(&law, 700 * MS) as f64 / (700 * MS) as f64;
        assert!((shown - 0.7).abs() < 0.1, "{shown}");
    }

    /// As many pauses as there are nanoseconds end in bounded time, and at the mean.
    #[test]
    fn very_many_pauses_are_bounded() {
        let law = Law::new(1, 1, false, true);
        let end = ProcessClock::new(&law, Key::new(1)).end_of(&law, 0, 1_000_000_000) as f64;
        assert!((end / 2e9 - 1.0).abs() < 0.4, "{end}");
    }
}
