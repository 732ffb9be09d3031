//! `window="auto"`: a replication runs once with all requests counted, batch by batch of five in order of arrival; MSER-5 says
//! how many of them were before it had settled, and it runs again without those.

use serde::{Deserialize, Serialize};
use weir_stats::truncation;
use weir_workload::Window;

/// Requests in a batch, to begin with.
const BATCH: u64 = 5;
/// No more batches than that: then each two are put together, so that memory does not grow with the run.
const MOST: usize = 1 << 17;

/// Latencies by batch.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    batch: u64,
    /// Sum and number of each.
    batches: Vec<(u64, u32)>,
}

/// Where a replication had settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    /// So many requests came before.
    pub after: u64,
    /// Whether it had at all: else the second half is taken.
    pub settled: bool,
}

impl Series {
    pub fn new() -> Series {
        Series { batch: BATCH, batches: Vec::new() }
    }

    /// A request of that number took so long, ns. In any order: sums do not depend on it.
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

    /// Where it had settled, of so many requests that there were.
    pub fn settled(&self, arrived: u64) -> Settled {
        // A batch without an answer (all lost) tells nothing of how long answers take; the last one may not be whole.
        let whole = (arrived / self.batch) as usize;
        let told = self.batches.iter().take(whole).enumerate().filter(|(_, (_, n))| *n > 0);
        let (numbers, means): (Vec<usize>, Vec<f64>) =
            told.map(|(i, (sum, n))| (i, *sum as f64 / f64::from(*n))).unzip();
        match truncation(&means).and_then(|d| numbers.get(d)) {
            Some(first) => Settled { after: *first as u64 * self.batch, settled: true },
            None => Settled { after: arrived / 2, settled: false },
        }
    }
}

impl Settled {
    /// The requests that count, of so many.
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
        let Settled { after, settled } = series.settled(10_000);
        assert!(settled && after.is_multiple_of(5) && (950..1050).contains(&after), "{after}");
        assert!(!series.settled(50).settled, "ten batches are too few");
    }

    #[test]
    fn memory_does_not_grow_with_the_run() {
        let mut series = Series::new();
        let n = 4 * BATCH * MOST as u64;
        (0..n).for_each(|i| series.record(i, if i < n / 8 { 1 } else { 2 }));
        assert!(series.batches.len() <= MOST);
        assert_eq!(series.settled(n), Settled { after: n / 8, settled: true });
    }
}
