//! What ended in each part of a replication: latencies, failures by kind, and successes in time.
//!
//! Latencies are counted by class. Those of the part that goes on have a table, so that a request costs one addition;
//! those of parts that are over are lists of the classes that occurred, so that two parts are merged quickly and memory
//! depends neither on the number of requests nor on how far latencies lie apart.

use std::collections::BTreeMap;
use weir_policy::{Kind, Outcome};

/// Latencies of 2^DIGITS neighbouring numbers form a class, 0.8 % wide at most.
const DIGITS: u32 = 7;
/// The number of classes of 64-bit latencies.
const CLASSES: usize = (65 - DIGITS as usize) << DIGITS;
/// The quantiles of a part.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

fn class_of(ns: u64) -> u32 {
    let shift = (64 - ns.leading_zeros()).saturating_sub(DIGITS + 1);
    (shift << DIGITS) + (ns >> shift) as u32
}

/// The least and the greatest of a class, ns.
fn bounds_of(class: u32) -> (u64, u64) {
    let shift = (class >> DIGITS).saturating_sub(1);
    let low = u64::from(class - (shift << DIGITS)) << shift;
    (low, low + ((1u64 << shift) - 1))
}

/// The middle of a class, ns.
fn middle_of(class: u32) -> u64 {
    let (low, high) = bounds_of(class);
    low + (high - low) / 2
}

/// The latencies of a part: how many of each class, in ascending order, and the extremes.
#[derive(Clone, Debug, Default)]
struct Latencies {
    classes: Vec<(u32, u64)>,
    number: u64,
    least: u64,
    most: u64,
}

impl Latencies {
    fn add_all(&mut self, other: Latencies) {
        if other.number == 0 {
            return;
        }
        if self.number == 0 {
            *self = other;
            return;
        }
        self.number += other.number;
        (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
        self.classes.extend(other.classes);
        self.classes.sort_unstable_by_key(|(class, _)| *class);
        self.classes.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
    }

    /// A quantile, ms; `None` where no latency in `1 / (1 - q)` lies beyond it.
    fn quantile(&self, q: f64) -> Option<f64> {
        // A whole number may come out a little below itself.
        if self.number as f64 * (1.0 - q) < 1.0 - 1e-9 {
            return None;
        }
        let rank = (self.number as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        let class = self.classes.iter().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        class.map(|(class, _)| middle_of(*class).clamp(self.least, self.most) as f64 / 1e6)
    }
}

/// The latencies of the part that goes on.
struct Table {
    counts: Vec<u64>,
    /// The classes that occurred.
    seen: Vec<u32>,
    least: u64,
    most: u64,
}

impl Table {
    fn new() -> Table {
        Table { counts: vec![0; CLASSES], seen: Vec::new(), least: u64::MAX, most: 0 }
    }

    fn add(&mut self, ns: u64) {
        let class = class_of(ns);
        let count = &mut self.counts[class as usize];
        if *count == 0 {
            self.seen.push(class);
        }
        *count += 1;
        (self.least, self.most) = (self.least.min(ns), self.most.max(ns));
    }

    /// Empties it.
    fn take(&mut self) -> Latencies {
        self.seen.sort_unstable();
        let classes: Vec<(u32, u64)> =
            self.seen.drain(..).map(|c| (c, std::mem::take(&mut self.counts[c as usize]))).collect();
        let number = classes.iter().map(|(_, n)| n).sum();
        Latencies {
            classes,
            number,
            least: std::mem::replace(&mut self.least, u64::MAX),
            most: std::mem::take(&mut self.most),
        }
    }
}

/// The number of failures of each kind, in the order of [`Kind::ALL`].
type Failures = [u64; Kind::ALL.len()];

/// What ended in a part.
#[derive(Clone, Debug, Default)]
struct PartEnds {
    ok: Latencies,
    failed: Latencies,
    failures: Failures,
    good: u64,
}

impl PartEnds {
    fn add_all(&mut self, other: PartEnds) {
        self.ok.add_all(other.ok);
        self.failed.add_all(other.failed);
        self.failures.iter_mut().zip(other.failures).for_each(|(a, b)| *a += b);
        self.good += other.good;
    }
}

/// The ends of all requests, by part.
pub(crate) struct Ends {
    ok: Table,
    failed: Table,
    failures: Failures,
    good: u64,
    parts: Vec<PartEnds>,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends {
            ok: Table::new(),
            failed: Table::new(),
            failures: Failures::default(),
            good: 0,
            parts: Vec::new(),
        }
    }
}

impl Ends {
    /// A request ended in the part that goes on. `latency`: `None` if it will never be answered; `is_good`: whether it
    /// succeeded within the deadline.
    pub fn add(&mut self, latency: Option<u64>, outcome: Outcome, is_good: bool) {
        let table = if outcome.is_none() { &mut self.ok } else { &mut self.failed };
        latency.into_iter().for_each(|ns| table.add(ns));
        outcome.into_iter().for_each(|kind| self.failures[kind as usize] += 1);
        self.good += u64::from(is_good);
    }

    /// The part that went on is over.
    pub fn finish_part(&mut self) {
        self.parts.push(PartEnds {
            ok: self.ok.take(),
            failed: self.failed.take(),
            failures: std::mem::take(&mut self.failures),
            good: std::mem::take(&mut self.good),
        });
    }

    /// Merges each two parts.
    pub fn halve(&mut self) {
        let mut parts = std::mem::take(&mut self.parts).into_iter();
        while let Some(mut part) = parts.next() {
            parts.next().into_iter().for_each(|next| part.add_all(next));
            self.parts.push(part);
        }
    }

    /// Merges the last two parts.
    pub fn join_last(&mut self) {
        let last = self.parts.pop();
        if let (Some(before), Some(last)) = (self.parts.last_mut(), last) {
            before.add_all(last);
        }
    }

    pub fn good(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.good).collect()
    }

    /// The failures of each kind that occurred.
    pub fn failures(&self) -> Vec<(Kind, Vec<u64>)> {
        let of = |kind: Kind| (kind, self.parts.iter().map(|part| part.failures[kind as usize]).collect());
        let all: [(Kind, Vec<u64>); Kind::ALL.len()] = Kind::ALL.map(of);
        all.into_iter().filter(|(_, counts)| counts.iter().any(|n| *n > 0)).collect()
    }

    /// The latencies of all answers.
    pub fn latency_all(&self) -> LatencyOverTime {
        let both = |part: &PartEnds| {
            let mut all = part.ok.clone();
            all.add_all(part.failed.clone());
            all
        };
        LatencyOverTime::new(self.parts.iter().map(both))
    }

    /// The latencies of the whole run, by class, in ascending order.
    pub fn classes(&self) -> Vec<LatencyClass> {
        let mut counts: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
        for part in &self.parts {
            for (which, of) in [&part.ok, &part.failed].into_iter().enumerate() {
                of.classes.iter().for_each(|(class, n)| counts.entry(*class).or_default()[which] += n);
            }
        }
        let class = |(class, [ok, failed]): (u32, [u64; 2])| {
            let (from_ns, to_ns) = bounds_of(class);
            LatencyClass { from_ns, to_ns, ok, failed }
        };
        counts.into_iter().map(class).collect()
    }

    /// Those of the successes.
    pub fn latency_ok(&self) -> LatencyOverTime {
        LatencyOverTime::new(self.parts.iter().map(|part| part.ok.clone()))
    }
}

/// How many requests had a latency in this class, 0.8 % wide at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyClass {
    /// The shortest, ns.
    pub from_ns: u64,
    /// The longest.
    pub to_ns: u64,
    /// Those that succeeded.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
}

/// Quantiles of the latencies of what ended in each part, ms; `None` where too few ended: fewer than 2, 20 and 100.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyOverTime {
    /// The median.
    pub p50: Vec<Option<f64>>,
    /// 95 of 100 were faster.
    pub p95: Vec<Option<f64>>,
    /// 99 of 100 were faster.
    pub p99: Vec<Option<f64>>,
}

impl LatencyOverTime {
    fn new(parts: impl Iterator<Item = Latencies>) -> LatencyOverTime {
        let mut over_time = LatencyOverTime::default();
        for part in parts {
            let [p50, p95, p99] = QUANTILES.map(|q| part.quantile(q));
            over_time.p50.push(p50);
            over_time.p95.push(p95);
            over_time.p99.push(p99);
        }
        over_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_its_middle() {
        for ns in [0, 1, 127, 128, 129, 255, 256, 1_000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let middle = middle_of(class_of(ns));
            assert_eq!(class_of(middle), class_of(ns), "{ns}");
            assert!(ns.abs_diff(middle) as f64 <= ns as f64 / 128.0, "{ns} {middle}");
        }
        assert!((class_of(u64::MAX) as usize) < CLASSES);
    }

    #[test]
    fn parts_keep_everything_when_they_are_merged() {
        let mut ends = Ends::default();
        for _ in 0..5 {
            for n in 1..=100u64 {
                ends.add(Some(n * 1_000_000), None, n <= 50);
            }
            ends.add(Some(7_000_000_000), Some(Kind::Timeout), false);
            ends.add(None, Some(Kind::Lost), false);
            ends.finish_part();
        }
        assert_eq!(ends.good(), [50; 5]);
        ends.halve();
        assert_eq!(ends.good(), [100, 100, 50]);
        ends.join_last();
        assert_eq!(ends.good(), [100, 150]);
        ends.join_last();
        assert_eq!(ends.good(), [250]);
        assert_eq!(ends.failures(), [(Kind::Timeout, vec![5]), (Kind::Lost, vec![5])]);
        let ok = ends.latency_ok();
        let near = |got: Option<f64>, want: f64| got.is_some_and(|got| (got / want - 1.0).abs() < 0.008);
        assert!(near(ok.p50[0], 50.0) && near(ok.p95[0], 95.0) && near(ok.p99[0], 99.0), "{ok:?}");
        let classes = ends.classes();
        assert_eq!(
            classes.iter().map(|c| (c.ok, c.failed)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
            (500, 5)
        );
        assert!(classes.iter().all(|c| c.from_ns <= c.to_ns) && classes.is_sorted_by_key(|c| c.from_ns));
        // Five of 505 are slower.
        assert!(near(ends.latency_all().p99[0], 100.0), "{:?}", ends.latency_all());
    }

    #[test]
    fn a_quantile_of_too_few_is_unknown() {
        let of = |number: u64| {
            let mut ends = Ends::default();
            (0..number).for_each(|_| ends.add(Some(3_000_000), None, true));
            ends.finish_part();
            let ok = ends.latency_ok();
            (ok.p50[0], ok.p95[0], ok.p99[0])
        };
        assert_eq!(of(1), (None, None, None));
        assert_eq!(of(19), (Some(3.0), None, None));
        assert_eq!(of(99), (Some(3.0), Some(3.0), None));
        assert_eq!(of(100), (Some(3.0), Some(3.0), Some(3.0)));
    }
}
