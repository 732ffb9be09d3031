//! A run part by part: requests by the instants at which they were due, and connections.
//!
//! No timer runs for it. Between two changes the number of open connections is constant, so what there was of them at the
//! end of a part is computed at the next change.

use super::job::Job;
use crate::outcome::OverTime;
use weir_plan::over_time::{MOST_PARTS, parts};
use weir_policy::Outcome;
use weir_workload::parts::{ConnectionCount, Slices};

/// The parts of a run that goes on.
pub(crate) struct Parts {
    every_ns: u64,
    /// When arrivals end at the latest.
    until_ns: u64,
    slices: Slices,
    /// Connections that are open.
    open: u64,
    /// What there was of connections until the last change of their number.
    counted: ConnectionCount,
    /// The same until the last arrival.
    at_arrival: ConnectionCount,
    /// The next end of a part; `u64::MAX` after the last one.
    boundary_ns: u64,
}

impl Parts {
    /// Of a run whose requests arrive until then at the latest (`u64::MAX`: until there are enough of them).
    pub fn new(every_ns: u64, until_ns: u64) -> Parts {
        Parts {
            every_ns,
            until_ns,
            slices: Slices::new_live(every_ns),
            open: 0,
            counted: ConnectionCount::default(),
            at_arrival: ConnectionCount::default(),
            boundary_ns: every_ns.min(until_ns),
        }
    }

    /// A request is due; those before it were due before.
    pub fn arrive(&mut self, intended_ns: u64) {
        self.at_arrival = self.count_at(intended_ns);
    }

    /// A request has ended.
    pub fn end(&mut self, job: &Job, latency_ns: u64, outcome: Outcome) {
        self.slices.end(job.intended_ns, Some(latency_ns), outcome);
    }

    /// A connection was opened.
    pub fn open(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.open += 1;
        self.counted.opened += 1;
    }

    /// A connection has ended.
    pub fn close(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.open = self.open.saturating_sub(1);
    }

    /// Counts up to an instant, at which the number of connections may change.
    fn advance(&mut self, now_ns: u64) {
        while self.boundary_ns <= now_ns && self.boundary_ns < u64::MAX {
            self.slices.count_connections(self.count_at(self.boundary_ns));
            self.boundary_ns = self.boundary_after(self.boundary_ns);
        }
        self.counted = self.count_at(now_ns);
    }

    /// The end of the part that begins then; there is none after the end of arrivals, nor after the last part that may be.
    fn boundary_after(&self, at_ns: u64) -> u64 {
        let next_ns = at_ns.saturating_add(self.every_ns);
        let is_last = at_ns >= self.until_ns || next_ns / self.every_ns > MOST_PARTS + 1;
        if is_last { u64::MAX } else { next_ns.min(self.until_ns) }
    }

    /// What there was of connections until an instant after the last change of their number. A request that began late was due
    /// a little before that change, which is then taken as made.
    fn count_at(&self, at_ns: u64) -> ConnectionCount {
        let since_ns = i128::from(at_ns) - i128::from(self.counted.at_ns);
        let open_ns = self.counted.open_ns + since_ns * i128::from(self.open);
        ConnectionCount { at_ns, open_ns, opened: self.counted.opened }
    }

    /// The sums of all parts. `end_ns`: when arrivals ended, if not with the last one. `None`: there are more than there may
    /// be.
    pub fn finish(mut self, end_ns: Option<u64>) -> Option<OverTime> {
        let end_ns = end_ns.unwrap_or(self.at_arrival.at_ns);
        if self.slices.is_beyond() || parts(end_ns, self.every_ns) > MOST_PARTS {
            return None;
        }
        self.advance(end_ns.max(self.counted.at_ns));
        self.slices.drop_connections_after(end_ns);
        if self.at_arrival.at_ns == end_ns {
            self.slices.count_connections(self.at_arrival);
        }
        Some(OverTime { every_ns: self.every_ns, parts: self.slices.finish(end_ns) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::job::request_due;
    use weir_policy::Kind;
    use weir_workload::parts::SliceSums;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    fn end(parts: &mut Parts, intended_ns: u64, latency_ns: u64, outcome: Outcome) {
        parts.end(&request_due(intended_ns), latency_ns, outcome);
    }

    #[test]
    fn a_request_counts_in_the_part_in_which_it_was_due() {
        let mut parts = Parts::new(S, 3 * S);
        for (intended_ns, latency_ns, outcome) in
            [(0, 100 * MS, None), (900 * MS, 2 * S, None), (1_500 * MS, 100 * MS, Some(Kind::Timeout))]
        {
            parts.arrive(intended_ns);
            end(&mut parts, intended_ns, latency_ns, outcome);
        }
        let all = parts.finish(Some(3 * S)).expect("three parts").parts;
        let of = |what: fn(&SliceSums) -> u64| all.iter().map(what).collect::<Vec<u64>>();
        assert_eq!(
            (of(|p| p.arrivals), of(|p| p.ok), of(|p| p.responses)),
            (vec![2, 1, 0], vec![2, 0, 0], vec![1, 1, 1])
        );
        assert_eq!(of(|p| p.errors[Kind::Timeout as usize]), [0, 1, 0]);
        let longest: Vec<_> = all.iter().map(|p| p.latency_ms()[4]).collect();
        assert_eq!(longest, [Some(2_000.0), Some(100.0), None]);
    }

    #[test]
    fn connections_are_means_over_parts() {
        let mut parts = Parts::new(S, u64::MAX);
        parts.arrive(0);
        parts.open(500 * MS);
        parts.open(S);
        parts.close(2_250 * MS);
        parts.arrive(2_500 * MS);
        // After the end of arrivals, in the same part and in the next.
        parts.close(2_750 * MS);
        parts.open(3_500 * MS);
        [0, 2_500 * MS].into_iter().for_each(|at_ns| end(&mut parts, at_ns, 10 * MS, None));
        let all = parts.finish(None).expect("three parts").parts;
        assert_eq!(all.iter().map(|p| p.length_ns).collect::<Vec<_>>(), [S, S, 500 * MS]);
        assert_eq!(all.iter().map(SliceSums::connections).collect::<Vec<_>>(), [0.5, 2.0, 1.5]);
        assert_eq!(all.iter().map(|p| p.opened).collect::<Vec<_>>(), [1, 1, 0]);
    }

    /// The end is known beforehand, and the last answer comes before it.
    #[test]
    fn what_is_open_at_the_end_is_open_until_arrivals_end() {
        let mut parts = Parts::new(S, 2_500 * MS);
        parts.open(500 * MS);
        parts.arrive(S);
        end(&mut parts, S, MS, None);
        let all = parts.finish(Some(2_500 * MS)).expect("three parts").parts;
        assert_eq!(all.iter().map(SliceSums::connections).collect::<Vec<_>>(), [0.5, 1.0, 1.0]);
        assert_eq!(all.iter().map(|p| p.connected_ns).collect::<Vec<_>>(), [S, S, 500 * MS]);
    }

    #[test]
    fn more_parts_than_there_may_be_are_none() {
        let run = |last_ns: u64| {
            let mut parts = Parts::new(10 * MS, u64::MAX);
            parts.arrive(last_ns);
            end(&mut parts, last_ns, MS, None);
            parts.open(u64::MAX - 1);
            parts.finish(None).map(|of| of.parts.len() as u64)
        };
        assert_eq!(run(MOST_PARTS * 10 * MS), Some(MOST_PARTS));
        assert_eq!(run(MOST_PARTS * 10 * MS + 1), None);
    }
}
