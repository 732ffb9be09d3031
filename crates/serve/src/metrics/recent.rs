//! What happened in the last seconds and minutes, for people that look at weir now: how many requests, the share that
//! weir or an origin failed, how long they took.
//!
//! Two rings of slots, each valid for a stretch of time: one for the last 10 s, one for the last 5 min. The slot of a
//! time is found by a division, and is emptied by the first observation in it, so that nothing runs at rest. A ring
//! is allocated by its first observation: what has no traffic costs nothing.

use std::cell::{Cell, RefCell};
use weir_policy::{Kind, Outcome};

/// A quarter of a power of two to each bucket: from 8 us to two hours.
const BUCKETS: usize = 121;
/// The bucket whose end is 1 s.
const SECOND: f64 = 68.0;

/// Stretches of time that are looked back on: the name, s, and the length of a slot.
const SPANS: [Span; 2] =
    [Span { over_s: 10, slot_ns: 2_000_000_000 }, Span { over_s: 300, slot_ns: 30_000_000_000 }];

struct Span {
    over_s: u32,
    slot_ns: u64,
}

impl Span {
    /// Whole slots, and the one that is being filled.
    fn slots(&self) -> u64 {
        u64::from(self.over_s) * 1_000_000_000 / self.slot_ns + 1
    }
}

/// The observations of one thread.
#[derive(Default)]
pub(crate) struct Recent(RefCell<[Vec<Slot>; 2]>);

struct Slot {
    /// The number of its stretch of time.
    number: u64,
    count: u32,
    failed: u32,
    took: [u32; BUCKETS],
}

impl Slot {
    fn new(number: u64) -> Slot {
        Slot { number, count: 0, failed: 0, took: [0; BUCKETS] }
    }
}

/// The observations within a stretch of time.
#[derive(Clone, Debug)]
pub(crate) struct RecentCounts {
    /// The stretch as it is named, s.
    pub over_s: u32,
    /// Its present length: the oldest slot counts as a whole.
    pub length_s: f64,
    pub count: u64,
    pub failed: u64,
    took: Box<[u64]>,
}

impl Recent {
    /// Counts something that ended; `failed`: by the fault of weir or an origin.
    #[inline]
    pub fn ended(&self, now_ns: u64, failed: bool) {
        self.update(now_ns, |slot| {
            slot.count = slot.count.saturating_add(1);
            slot.failed = slot.failed.saturating_add(u32::from(failed));
        });
    }

    /// Notes how long something took.
    #[inline]
    pub fn took(&self, now_ns: u64, ns: u64) {
        let bucket = super::native::place(ns).div_ceil(2).min(BUCKETS - 1);
        self.update(now_ns, |slot| {
            if let Some(count) = slot.took.get_mut(bucket) {
                *count = count.saturating_add(1);
            }
        });
    }

    #[inline]
    fn update(&self, now_ns: u64, act: impl Fn(&mut Slot)) {
        let mut rings = self.0.borrow_mut();
        for (span, ring) in SPANS.iter().zip(rings.iter_mut()) {
            let number = now_ns / span.slot_ns;
            if ring.is_empty() {
                ring.extend((0..span.slots()).map(|_| Slot::new(u64::MAX)));
            }
            let at = (number % span.slots()) as usize;
            let Some(slot) = ring.get_mut(at) else { continue };
            if slot.number != number {
                *slot = Slot::new(number);
            }
            act(slot);
        }
    }

    /// The observations of the last 10 s and of the last 5 min.
    pub fn counts(&self, now_ns: u64) -> [RecentCounts; 2] {
        let rings = self.0.borrow();
        std::array::from_fn(|which| {
            let (span, ring) = (&SPANS[which], &rings[which]);
            let number = now_ns / span.slot_ns;
            let oldest = number.saturating_sub(span.slots() - 1);
            let mut all = RecentCounts {
                over_s: span.over_s,
                length_s: (now_ns - oldest * span.slot_ns) as f64 / 1e9,
                count: 0,
                failed: 0,
                took: Box::new([0; BUCKETS]),
            };
            for slot in ring.iter().filter(|slot| (oldest..=number).contains(&slot.number)) {
                all.count += u64::from(slot.count);
                all.failed += u64::from(slot.failed);
                all.took.iter_mut().zip(&slot.took).for_each(|(sum, n)| *sum += u64::from(*n));
            }
            all
        })
    }
}

impl RecentCounts {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &RecentCounts) {
        self.length_s = self.length_s.max(other.length_s);
        self.count += other.count;
        self.failed += other.failed;
        self.took.iter_mut().zip(&other.took).for_each(|(sum, n)| *sum += n);
    }

    /// How many there were each second.
    pub fn per_s(&self) -> f64 {
        self.count as f64 / self.length_s.max(1e-3)
    }

    /// The share that failed; `None`: there was nothing.
    pub fn failed_share(&self) -> Option<f64> {
        (self.count > 0).then(|| self.failed as f64 / self.count as f64)
    }

    /// The time that this share of them took at most, s, to a fifth; `None`: none was measured.
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        let all: u64 = self.took.iter().sum();
        let wanted = (share * all as f64).ceil().max(1.0);
        let mut below = 0.0;
        for (at, count) in self.took.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = *count as f64;
            if below + count >= wanted {
                let end = |at: f64| ((at - SECOND) / 4.0).exp2();
                let (least, most) = (if at == 0 { 0.0 } else { end(at as f64 - 1.0) }, end(at as f64));
                return Some(least + (most - least) * (wanted - below) / count);
            }
            below += count;
        }
        None
    }
}

/// The slots of a [`Brief`], and the length of each: 10 s and the part of a slot that is being filled.
const BRIEF_SLOTS: u64 = 3;
const BRIEF_SLOT_NS: u64 = 5_000_000_000;

/// The last 10 s of one target: few words, since there may be thousands.
#[derive(Default)]
pub(crate) struct Brief([Cell<BriefSlot>; BRIEF_SLOTS as usize]);

#[derive(Clone, Copy, Default)]
struct BriefSlot {
    /// The number of its stretch of time, and one: 0 is none.
    number: u64,
    counts: BriefCounts,
}

/// What a target's attempts of the last 10 s were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BriefCounts {
    pub count: u32,
    pub failed: u32,
    /// Attempts that had a head, and the sum of their times until it.
    timed: u32,
    sum_ns: u64,
    /// The present length of the stretch.
    length_ns: u64,
}

impl Brief {
    /// Counts an attempt that ended.
    #[inline]
    pub fn ended(&self, now_ns: u64, failed: bool) {
        self.update(now_ns, |counts| {
            counts.count = counts.count.saturating_add(1);
            counts.failed = counts.failed.saturating_add(u32::from(failed));
        });
    }

    /// Notes the time until a head.
    #[inline]
    pub fn took(&self, now_ns: u64, ns: u64) {
        self.update(now_ns, |counts| {
            counts.timed = counts.timed.saturating_add(1);
            counts.sum_ns = counts.sum_ns.saturating_add(ns);
        });
    }

    #[inline]
    fn update(&self, now_ns: u64, act: impl FnOnce(&mut BriefCounts)) {
        let number = now_ns / BRIEF_SLOT_NS;
        let place = &self.0[(number % BRIEF_SLOTS) as usize];
        let mut slot = place.get();
        if slot.number != number + 1 {
            slot = BriefSlot { number: number + 1, counts: BriefCounts::default() };
        }
        act(&mut slot.counts);
        place.set(slot);
    }

    /// The last 10 s.
    pub fn counts(&self, now_ns: u64) -> BriefCounts {
        let number = now_ns / BRIEF_SLOT_NS;
        let oldest = number.saturating_sub(BRIEF_SLOTS - 1);
        let mut all = BriefCounts { length_ns: now_ns - oldest * BRIEF_SLOT_NS, ..BriefCounts::default() };
        let valid =
            self.0.iter().map(Cell::get).filter(|slot| (oldest + 1..=number + 1).contains(&slot.number));
        valid.for_each(|slot| all.add(&slot.counts));
        all
    }
}

impl BriefCounts {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &BriefCounts) {
        self.count = self.count.saturating_add(other.count);
        self.failed = self.failed.saturating_add(other.failed);
        self.timed = self.timed.saturating_add(other.timed);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.length_ns = self.length_ns.max(other.length_ns);
    }

    /// How many there were each second.
    pub fn per_s(&self) -> f64 {
        f64::from(self.count) / (self.length_ns as f64 / 1e9).max(1e-3)
    }

    /// The share that failed; `None`: there was none.
    pub fn failed_share(&self) -> Option<f64> {
        (self.count > 0).then(|| f64::from(self.failed) / f64::from(self.count))
    }

    /// The mean time until a head, ms; `None`: there was none.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.sum_ns as f64 / f64::from(self.timed) / 1e6)
    }
}

/// Whether a request failed by the fault of weir or an origin, so that it counts as one of the 5xx: also if its answer
/// broke off behind another status. A client's fault, its leaving, and a rate limit's 429 do not.
pub(crate) fn is_failure(status: u16, outcome: Outcome) -> bool {
    status >= 500
        || match outcome {
            None | Some(Kind::BadRequest | Kind::NoRoute | Kind::Cancelled | Kind::Overloaded) => false,
            Some(_) => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn what_is_older_than_a_stretch_is_not_in_it() {
        let recent = Recent::default();
        for second in 0..20 {
            recent.ended(second * S, second < 10);
            recent.took(second * S, 5_000_000);
        }
        let [short, long] = recent.counts(20 * S - 1);
        assert_eq!((short.over_s, short.count, short.failed), (10, 12, 2), "six slots of two seconds");
        assert!((short.per_s() - 1.0).abs() < 1e-6, "{}", short.per_s());
        assert_eq!((long.over_s, long.count, long.failed_share()), (300, 20, Some(0.5)));
        assert!((long.per_s() - 1.0).abs() < 1e-6, "from the start of the process: {}", long.per_s());
        let [short, long] = recent.counts(200 * S);
        assert_eq!((short.count, short.failed_share(), short.quantile_s(0.5)), (0, None, None));
        assert_eq!(long.count, 20);
        assert_eq!(recent.counts(331 * S).map(|all| all.count), [0, 0]);
    }

    #[test]
    fn a_slot_is_used_again() {
        let recent = Recent::default();
        recent.ended(S, true);
        recent.ended(13 * S, false);
        let [short, long] = recent.counts(13 * S);
        assert_eq!(((short.count, short.failed), (long.count, long.failed)), ((1, 0), (2, 1)));
    }

    #[test]
    fn times_are_told_to_a_fifth() {
        let recent = Recent::default();
        for ms in 1..=1000u64 {
            recent.took(S, ms * 1_000_000);
        }
        let [all, _] = recent.counts(S);
        for share in [0.5, 0.99] {
            let s = all.quantile_s(share).expect("it was measured");
            assert!((s / share - 1.0).abs() < 0.1, "{share}: {s}");
        }
        let one = Recent::default();
        one.took(S, 1);
        assert!(one.counts(S)[0].quantile_s(0.99).is_some_and(|s| s <= 1e-5));
    }

    #[test]
    fn a_target_has_its_last_ten_seconds() {
        let brief = Brief::default();
        for second in 0..20 {
            brief.ended(second * S, second % 2 == 0);
            brief.took(second * S, 4_000_000);
        }
        let now = brief.counts(20 * S - 1);
        assert_eq!((now.count, now.failed, now.mean_ms()), (10 + 5 - 1 + 1, 7, Some(4.0)));
        assert!((now.per_s() - 1.0).abs() < 1e-6, "{}", now.per_s());
        let later = brief.counts(60 * S);
        assert_eq!((later.count, later.failed_share(), later.mean_ms()), (0, None, None));
    }

    #[test]
    fn threads_add_up() {
        let (one, other) = (Recent::default(), Recent::default());
        one.ended(S, true);
        other.ended(S, false);
        let [mut sum, _] = one.counts(S);
        sum.add(&other.counts(S)[0]);
        assert_eq!((sum.count, sum.failed), (2, 1));
    }

    #[test]
    fn a_clients_fault_is_no_failure() {
        assert!(is_failure(503, Some(Kind::Overloaded)) && is_failure(499, Some(Kind::Reset)));
        assert!(is_failure(200, Some(Kind::Timeout)) && is_failure(0, Some(Kind::ConnectFailed)));
        for (status, outcome) in [
            (200, None),
            (404, Some(Kind::NoRoute)),
            (429, Some(Kind::Overloaded)),
            (499, Some(Kind::Cancelled)),
        ] {
            assert!(!is_failure(status, outcome), "{status}");
        }
    }
}
