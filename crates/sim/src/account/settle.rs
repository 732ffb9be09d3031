//! `window="auto"`: each replication runs once with all requests counted, in batches of five in order of arrival;
//! MSER-5 on the average of these series says how many requests came before the scenario had settled, and each
//! replication runs again without those.
//!
//! The cut is one number for all replications: a cut by each replication's own series would choose, of the batches at
//! hand, those that happen to be alike, and so leave out the busy periods that belong to the figure.

use serde::{Deserialize, Serialize};
use weir_stats::{truncation, two_tails};
use weir_workload::Window;

/// Requests in a batch, to begin with.
const BATCH: u64 = 5;
/// The most batches: beyond that each two are merged, so that memory does not grow with the run.
const MOST: usize = 1 << 17;

/// Latencies by batch.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    batch: u64,
    /// Sum and number of each batch.
    batches: Vec<(u64, u32)>,
}

/// Where a scenario settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettlingPoint {
    /// How many requests came before.
    pub after: u64,
    /// Whether it settled at all: if not, the second half is taken.
    pub settled: bool,
}

impl Series {
    pub fn new() -> Series {
        Series { batch: BATCH, batches: Vec::new() }
    }

    /// Records the latency of request number `ordinal`, ns. In any order: sums do not depend on it.
    pub fn record(&mut self, ordinal: u64, latency: u64) {
        let mut at = (ordinal / self.batch) as usize;
        while at >= MOST {
            self.halve();
            at = (ordinal / self.batch) as usize;
        }
        if at >= self.batches.len() {
            self.batches.resize(at + 1, (0, 0));
        }
        let (sum, n) = &mut self.batches[at];
        (*sum, *n) = (sum.saturating_add(latency), *n + 1);
    }

    fn halve(&mut self) {
        let pair = |two: &[(u64, u32)]| {
            two.iter().fold((0u64, 0), |(sum, n), (more, m)| (sum.saturating_add(*more), n + m))
        };
        self.batches = self.batches.chunks(2).map(pair).collect();
        self.batch *= 2;
    }

    /// Adds the latencies of another replication, batch by batch.
    fn join(&mut self, mut other: Series) {
        while self.batch < other.batch {
            self.halve();
        }
        while other.batch < self.batch {
            other.halve();
        }
        if other.batches.len() > self.batches.len() {
            self.batches.resize(other.batches.len(), (0, 0));
        }
        for ((sum, n), (more, m)) in self.batches.iter_mut().zip(other.batches) {
            (*sum, *n) = (sum.saturating_add(more), *n + m);
        }
    }

    /// The request after which MSER-5 sees no beginning, of the first `arrived`; `None`: it finds none.
    fn truncation(&self, arrived: u64) -> Option<u64> {
        // A batch without an answer (all lost) says nothing about latencies; the last one may be incomplete.
        let whole = (arrived / self.batch) as usize;
        let told = self.batches.iter().take(whole).enumerate().filter(|(_, (_, n))| *n > 0);
        let (numbers, means): (Vec<usize>, Vec<f64>) =
            told.map(|(i, (sum, n))| (i, *sum as f64 / f64::from(*n))).unzip();
        let first = truncation(&means).and_then(|d| numbers.get(d))?;
        Some(*first as u64 * self.batch)
    }

    /// How much the mean latency from request `after` to request `arrived` exceeds that of the requests before it, ns.
    fn step_at(&self, after: u64, arrived: u64) -> Option<f64> {
        let (at, end) = ((after / self.batch) as usize, (arrived / self.batch) as usize);
        let mean = |part: &[(u64, u32)]| {
            let (sum, n) =
                part.iter().fold((0.0, 0.0), |(s, n), (sum, m)| (s + *sum as f64, n + f64::from(*m)));
            (n > 0.0).then(|| sum / n)
        };
        let end = end.min(self.batches.len());
        Some(mean(self.batches.get(at..end)?)? - mean(self.batches.get(..at)?)?)
    }
}

/// The series of a scenario's replications, in their order.
pub(crate) struct ScenarioSeries {
    all: Series,
    /// Those of the first replications, in few batches.
    first: Vec<Series>,
    /// The fewest arrivals of a replication.
    arrived: u64,
}

/// Replications whose series are kept, to see whether a beginning is more than chance; a thousand would not say more.
const JUDGED: usize = 100;
/// Batches of a series that is kept: a beginning shorter than one of them is taken as it is.
const FEW: usize = 1 << 12;
/// What comes before a cut is a beginning if chance alone makes it so unlike the rest with less than this probability.
const UNLIKELY: f64 = 0.01;

impl ScenarioSeries {
    pub fn new() -> ScenarioSeries {
        ScenarioSeries { all: Series::new(), first: Vec::new(), arrived: u64::MAX }
    }

    /// Adds a replication to which `arrived` requests came.
    pub fn add(&mut self, mut series: Series, arrived: u64) {
        self.arrived = self.arrived.min(arrived);
        self.all.join(series.clone());
        if self.first.len() < JUDGED {
            while series.batches.len() > FEW {
                series.halve();
            }
            self.first.push(series);
        }
    }

    /// Where the scenario settled: one point for all replications.
    pub fn settled(&self) -> SettlingPoint {
        let arrived = if self.first.is_empty() { 0 } else { self.arrived };
        match self.all.truncation(arrived) {
            Some(after) if self.is_chance(after, arrived) => SettlingPoint { after: 0, settled: true },
            Some(after) => SettlingPoint { after, settled: true },
            None => SettlingPoint { after: arrived / 2, settled: false },
        }
    }

    /// Whether what MSER-5 would cut is not known to differ from the rest: a paired t test over the replications. One
    /// replication alone cannot tell. Without it a system that has no start-up loses what chance made unlike.
    fn is_chance(&self, after: u64, arrived: u64) -> bool {
        let steps: Vec<f64> = self.first.iter().filter_map(|s| s.step_at(after, arrived)).collect();
        let n = steps.len() as f64;
        if steps.len() < 2 || steps.len() < self.first.len() {
            return false;
        }
        let mean = steps.iter().sum::<f64>() / n;
        let variance = steps.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        if error > 0.0 { two_tails(mean.abs() / error, n - 1.0) > UNLIKELY } else { mean == 0.0 }
    }
}

impl SettlingPoint {
    /// The requests that count, out of `arrived`.
    pub fn window(self, arrived: u64) -> Window {
        Window::Requests(self.after.min(arrived), arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where replications settle that have these latencies.
    fn settled(replications: u64, arrived: u64, latency: impl Fn(u64, u64) -> u64) -> SettlingPoint {
        let mut all = ScenarioSeries::new();
        for r in 0..replications {
            let mut series = Series::new();
            (0..arrived).rev().for_each(|i| series.record(i, latency(r, i)));
            all.add(series, arrived);
        }
        all.settled()
    }

    fn noise(r: u64, i: u64) -> u64 {
        weir_stats::Key::new(r).nth(i).below(1000)
    }

    #[test]
    fn a_beginning_is_left_out_in_whole_batches() {
        for replications in [1, 10] {
            let of = |r, i| if i < 1000 { i } else { 1000 + noise(r, i) % 7 };
            let SettlingPoint { after, settled } = settled(replications, 10_000, of);
            assert!(settled && after.is_multiple_of(5) && (950..1050).contains(&after), "{after}");
        }
        assert!(!settled(10, 50, noise).settled, "ten batches are too few");
    }

    /// One replication of ten begins with what a run of its length has now and then; the others do not.
    #[test]
    fn a_busy_period_of_one_replication_is_not_a_beginning() {
        let of = |r, i| noise(r, i) + if r == 3 && i < 1500 { 5000 } else { 0 };
        assert_eq!(settled(10, 10_000, of), SettlingPoint { after: 0, settled: true });
        let all = |r, i| noise(r, i) + if i < 1500 { 5000 } else { 0 };
        assert!((1450..1550).contains(&settled(10, 10_000, all).after));
    }

    /// What has no beginning loses at most a hundredth.
    #[test]
    fn nothing_is_left_out_without_a_beginning() {
        for seed in 0..50 {
            let SettlingPoint { after, settled } = settled(10, 2000, |r, i| noise(1000 * seed + r, i));
            assert!(settled && after <= 20, "{seed}: {after}");
        }
    }

    #[test]
    fn replications_of_unlike_length_are_cut_at_one_request() {
        let mut all = ScenarioSeries::new();
        for arrived in [20_000, 1_000_000, 8000] {
            let mut series = Series::new();
            (0..arrived).for_each(|i| series.record(i, if i < 2000 { 1 } else { 9 }));
            all.add(series, arrived);
        }
        assert_eq!(all.settled(), SettlingPoint { after: 2000, settled: true });
    }

    #[test]
    fn memory_does_not_grow_with_the_run() {
        let mut series = Series::new();
        let n = 4 * BATCH * MOST as u64;
        (0..n).for_each(|i| series.record(i, if i < n / 8 { 1 } else { 2 }));
        assert!(series.batches.len() <= MOST);
        assert_eq!(series.truncation(n), Some(n / 8));
    }
}
