//! A node that alternates between up and down.
//!
//! - In virtual time and in the proxy: asked when a request enters; while down it refuses at once.
//! - Draws: the k-th period is a function of the node and k, so two policies face the same outages.
//! - Clocks: `eager` is an alternating renewal process on the node's own timeline, independent of traffic; `lazy` is
//!   that of the Timelike posts: read only when a request enters, one flip at most, the next period drawn from then.
//!
//! Availability: mtbf / (mtbf + mttr) for eager clocks.

use crate::dist::Dist;
use crate::sampler::Sampler;
use weir_stats::Key;

/// What all members of a site have in common.
#[derive(Clone, Debug)]
pub struct Law {
    up: Sampler,
    down: Sampler,
    lazy: bool,
    starts_up: bool,
}

impl Law {
    /// Exponential periods of these means, ns.
    pub fn new(mtbf_ns: u64, mttr_ns: u64, lazy: bool, starts_up: bool) -> Law {
        let (up, down) = (Sampler::Exponential(mtbf_ns as f64), Sampler::Exponential(mttr_ns as f64));
        Law { up, down, lazy, starts_up }
    }

    /// The same with periods of any distribution, where one is given.
    #[must_use]
    pub fn with(self, up: Option<&Dist>, down: Option<&Dist>) -> Law {
        Law { up: up.map_or(self.up, Sampler::new), down: down.map_or(self.down, Sampler::new), ..self }
    }

    /// How many times as long work takes on average that stands still while the node is down.
    pub fn slowed_down(&self) -> f64 {
        let mean = |of: &Sampler| (0..64).map(|i| of.draw(Key::new(i)).max(1) as f64).sum::<f64>();
        1.0 + mean(&self.down) / mean(&self.up)
    }

    /// Whether its clock is read only when a request enters.
    pub fn is_lazy(&self) -> bool {
        self.lazy
    }

    fn period(&self, up: bool, key: Key) -> u64 {
        // A period of length zero would stop an eager clock.
        (if up { &self.up } else { &self.down }).draw(key).max(1)
    }
}

/// The state of one node.
#[derive(Clone, Copy, Debug)]
pub struct Faulty {
    key: Key,
    until_ns: u64,
    flips: u64,
    up: bool,
}

impl Faulty {
    /// At time 0. `key` is this node's.
    pub fn new(law: &Law, key: Key) -> Faulty {
        Faulty { key, until_ns: law.period(law.starts_up, key.nth(0)), flips: 0, up: law.starts_up }
    }

    /// Lets a timeline wait that has not begun: its node is not there yet.
    pub fn wait(&mut self) {
        self.until_ns = u64::MAX;
    }

    /// Begins a timeline that waited, at the time when its node joins.
    pub fn begin(&mut self, law: &Law, now_ns: u64) {
        self.until_ns = now_ns.saturating_add(law.period(self.up, self.key.nth(self.flips)));
    }

    /// Whether the node is up for a request that enters now. Times must not go back. `after_faults` says whether
    /// faults at this very instant have happened already (they come after crossings and before arrivals).
    #[inline]
    pub fn is_up(&mut self, law: &Law, now_ns: u64, after_faults: bool) -> bool {
        let due = |until: u64| until < now_ns || until == now_ns && (after_faults || law.lazy);
        if due(self.until_ns) {
            if law.lazy {
                self.flip(law, now_ns);
            } else {
                while due(self.until_ns) {
                    self.flip(law, self.until_ns);
                }
            }
        }
        self.up
    }

    /// Whether it is up at that instant, without any effect on the state.
    pub fn looks_up(&self, law: &Law, now_ns: u64) -> bool {
        let mut copy = *self;
        if law.lazy { self.up } else { copy.is_up(law, now_ns, true) }
    }

    /// The spans before `end_ns` in which an eager clock is down, from its state on; `None` if it changes more than
    /// `most` times.
    pub fn times_down(mut self, law: &Law, end_ns: u64, most: u64) -> Option<Vec<(u64, u64)>> {
        let (mut spans, mut since) = (Vec::new(), 0);
        let last = self.flips + most;
        while self.until_ns < end_ns {
            if self.flips == last {
                return None;
            }
            let at = self.until_ns;
            if !self.up {
                spans.push((since, at));
            }
            since = at;
            self.flip(law, at);
        }
        if !self.up {
            spans.push((since, end_ns));
        }
        Some(spans)
    }

    /// The time of the next change: for eager clocks, whose flips may be events (a crash cuts off what is inside).
    #[inline]
    pub fn next_flip_ns(&self) -> u64 {
        self.until_ns
    }

    /// Applies the flip of an eager clock that is due at [`Faulty::next_flip_ns`].
    pub fn flip_due(&mut self, law: &Law) {
        self.flip(law, self.until_ns);
    }

    /// Lets it be up or down until the next such call, from outside of its law. Returns whether that is a change.
    pub fn drive(&mut self, up: bool) -> bool {
        let flips = self.up != up;
        (self.up, self.until_ns) = (up, u64::MAX);
        self.flips += u64::from(flips);
        flips
    }

    /// The same for a process that ends or begins as it should: that is no failure.
    pub fn hold(&mut self, up: bool) {
        (self.up, self.until_ns) = (up, u64::MAX);
    }

    /// Whether it is up, as of the last read or flip.
    #[inline]
    pub fn is_up_now(&self) -> bool {
        self.up
    }

    fn flip(&mut self, law: &Law, from_ns: u64) {
        self.up = !self.up;
        self.flips += 1;
        self.until_ns = from_ns.saturating_add(law.period(self.up, self.key.nth(self.flips)));
    }

    /// The number of changes so far.
    pub fn flips(&self) -> u64 {
        self.flips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn times_down_end_with_the_run() {
        let law = Law::new(90 * MS, 10 * MS, false, true);
        let node = Faulty::new(&law, Key::new(3));
        let end = 1_000 * MS;
        let spans = node.times_down(&law, end, 1_000).expect("few changes");
        let down = |at: u64| spans.iter().any(|(from, to)| (*from..*to).contains(&at));
        let mut read = node;
        for at in (0..end).step_by(100_000) {
            assert_eq!(read.is_up(&law, at, true), !down(at), "{at}");
        }
        assert!(spans.iter().all(|(from, to)| from < to && *to <= end));
        assert_eq!(node.times_down(&law, end, 3), None);
    }

    /// The share of time up of an eager clock is mtbf / (mtbf + mttr), for any rate of reads.
    #[test]
    fn availability_of_an_eager_clock() {
        let law = Law::new(90 * MS, 10 * MS, false, true);
        for gap in [MS, 777 * MS] {
            let mut node = Faulty::new(&law, Key::new(3));
            let n = 300_000u64;
            let up = (1..=n).filter(|i| node.is_up(&law, i * gap, false)).count();
            let share = up as f64 / n as f64;
            let slack = if gap == MS { 0.01 } else { 0.003 };
            assert!((share - 0.9).abs() < slack, "{gap}: {share}");
        }
    }

    /// The outages of an eager clock do not depend on when it is read; those of a lazy one do.
    #[test]
    fn eager_outages_are_independent_of_traffic() {
        let state = |lazy, gap: u64| {
            let law = Law::new(50 * MS, 50 * MS, lazy, true);
            let mut node = Faulty::new(&law, Key::new(5));
            (1..100u64)
                .map(|i| (1..=1000 / gap).map(|k| node.is_up(&law, (i * 1000 + k * gap) * MS, false)).last())
                .collect::<Vec<_>>()
        };
        assert_eq!(state(false, 1), state(false, 1000));
        assert_ne!(state(true, 1), state(true, 1000));
    }

    /// A lazy clock flips at most once per read, and from the time of the read.
    #[test]
    fn a_lazy_clock_flips_once_when_looked_at() {
        let law = Law::new(MS, MS, true, true);
        let mut node = Faulty::new(&law, Key::new(1));
        assert!(!node.is_up(&law, 1_000_000 * MS, false));
        assert_eq!(node.flips(), 1);
        assert!(!node.is_up(&law, 1_000_000 * MS, false));
        assert!(node.is_up(&law, 2_000_000 * MS, false));
    }

    /// Flips as events and reads on entry follow the same timeline, from either initial state.
    #[test]
    fn flips_one_by_one_are_those_of_the_looks() {
        for starts_up in [true, false] {
            let law = Law::new(7 * MS, 3 * MS, false, starts_up);
            let mut flipped = Faulty::new(&law, Key::new(8));
            let mut looked = flipped;
            assert_eq!(flipped.is_up_now(), starts_up);
            let mut up_ns = 0;
            let n = 100_000;
            for i in 0..n {
                let at = flipped.next_flip_ns();
                let before = flipped.is_up_now();
                assert_eq!(looked.is_up(&law, at, false), before);
                flipped.flip_due(&law);
                assert_eq!(looked.is_up(&law, at, true), flipped.is_up_now());
                assert_eq!((looked.flips(), looked.is_up_now()), (i + 1, !before));
                assert!(flipped.next_flip_ns() > at);
                up_ns += if flipped.is_up_now() { flipped.next_flip_ns() - at } else { 0 };
            }
            let share = up_ns as f64 / flipped.next_flip_ns() as f64;
            assert!((share - 0.7).abs() < 0.01, "{share}");
        }
    }

    /// At the instant of a flip a crossing meets the old state and an arrival the new one.
    #[test]
    fn faults_come_after_crossings_and_before_arrivals() {
        let law = Law::new(MS, MS, false, true);
        let fresh = Faulty::new(&law, Key::new(2));
        let at = fresh.until_ns;
        assert!({ fresh }.is_up(&law, at, false));
        assert!(!{ fresh }.is_up(&law, at, true));
    }
}
