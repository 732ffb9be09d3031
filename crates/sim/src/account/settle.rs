//! `window="auto"`: a replication runs once with all requests counted, in batches of five in order of arrival; MSER-5
//! says how many of them came before it had settled, and it runs again without those.

use serde::{Deserialize, Serialize};
use weir_stats::truncation;
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

/// Where a replication settled.
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

    /// Where the replication settled, after `arrived` requests.
    pub fn settled(&self, arrived: u64) -> SettlingPoint {
        // A batch without an answer (all lost) says nothing about latencies; the last one may be incomplete.
        let whole = (arrived / self.batch) as usize;
        let told = self.batches.iter().take(whole).enumerate().filter(|(_, (_, n))| *n > 0);
        let (numbers, means): (Vec<usize>, Vec<f64>) =
            told.map(|(i, (sum, n))| (i, *sum as f64 / f64::from(*n))).unzip();
        match truncation(&means).and_then(|d| numbers.get(d)) {
            Some(first) => SettlingPoint { after: *first as u64 * self.batch, settled: true },
            None => SettlingPoint { after: arrived / 2, settled: false },
        }
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

    #[test]
    fn a_beginning_is_left_out_in_whole_batches() {
        let mut series = Series::new();
        for i in (0..10_000u64).rev() {
            series.record(i, if i < 1000 { i } else { 1000 + i % 7 });
        }
        let SettlingPoint { after, settled } = series.settled(10_000);
        assert!(settled && after.is_multiple_of(5) && (950..1050).contains(&after), "{after}");
        assert!(!series.settled(50).settled, "ten batches are too few");
    }

    #[test]
    fn memory_does_not_grow_with_the_run() {
        let mut series = Series::new();
        let n = 4 * BATCH * MOST as u64;
        (0..n).for_each(|i| series.record(i, if i < n / 8 { 1 } else { 2 }));
        assert!(series.batches.len() <= MOST);
        assert_eq!(series.settled(n), SettlingPoint { after: n / 8, settled: true });
    }
}
