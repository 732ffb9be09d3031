//! What happened at members that changes move, in each part of a run.

use crate::state::watch::{MemberSample, WHOLE, WatchSample};
use serde::{Deserialize, Serialize};

/// The sums of a member, or of several, in one slice: of one replication or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberSums {
    /// Requests that were sent to it.
    pub sent: u64,
    in_flight_ns: u64,
    connections_ns: u64,
    /// At the end of the slice.
    share: u64,
}

/// The members in one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberSlice {
    /// The time in which they were counted, ns, and of how many replications.
    pub length_ns: u64,
    runs: u64,
    /// Those that are shown one by one.
    pub sites: Vec<MemberSums>,
    /// All others together.
    pub others: MemberSums,
}

impl MemberSums {
    fn between(before: MemberSample, now: MemberSample) -> MemberSums {
        let ns = |before: i128, now: i128| u64::try_from(now - before).unwrap_or(0);
        MemberSums {
            sent: now.sent - before.sent,
            in_flight_ns: ns(before.inside_ns, now.inside_ns),
            connections_ns: ns(before.connections_ns, now.connections_ns),
            share: u64::from(now.share),
        }
    }

    fn add(&mut self, more: &MemberSums) {
        self.sent += more.sent;
        self.in_flight_ns = self.in_flight_ns.saturating_add(more.in_flight_ns);
        self.connections_ns = self.connections_ns.saturating_add(more.connections_ns);
        self.share += more.share;
    }
}

impl MemberSlice {
    /// Those of a run from samples at the ends of its slices.
    pub fn all(samples: Vec<WatchSample>) -> Vec<MemberSlice> {
        let mut all: Vec<MemberSlice> = Vec::new();
        let mut before = WatchSample::default();
        for sample in samples {
            // The latest arrival may be at the end of a slice.
            if sample.at_ns == before.at_ns {
                continue;
            }
            let earlier = |site: usize| before.sites.get(site).copied().unwrap_or_default();
            let sites = sample.sites.iter().enumerate();
            all.push(MemberSlice {
                length_ns: sample.at_ns - before.at_ns,
                runs: 1,
                sites: sites.map(|(site, now)| MemberSums::between(earlier(site), *now)).collect(),
                others: MemberSums::between(before.others, sample.others),
            });
            before = sample;
        }
        all
    }

    /// Adds those of the same slice of another replication.
    pub fn add(&mut self, more: &MemberSlice) {
        self.length_ns += more.length_ns;
        self.runs += more.runs;
        self.sites.iter_mut().zip(&more.sites).for_each(|(own, more)| own.add(more));
        self.others.add(&more.others);
    }

    /// Requests per second of these.
    pub fn per_s(&self, of: &MemberSums) -> f64 {
        if self.length_ns > 0 { of.sent as f64 / (self.length_ns as f64 / 1e9) } else { 0.0 }
    }

    /// Requests in flight on average.
    pub fn in_flight(&self, of: &MemberSums) -> f64 {
        self.average(of.in_flight_ns)
    }

    /// Connections on average.
    pub fn connections(&self, of: &MemberSums) -> f64 {
        self.average(of.connections_ns)
    }

    /// The mean share of its weight.
    pub fn share(&self, of: &MemberSums) -> f64 {
        if self.runs > 0 { of.share as f64 / (WHOLE * self.runs as f64) } else { 0.0 }
    }

    fn average(&self, sum_ns: u64) -> f64 {
        if self.length_ns > 0 { sum_ns as f64 / self.length_ns as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_what_came_between_two_samples() {
        let of = |sent, inside_ns, share| MemberSample { sent, inside_ns, connections_ns: 0, share };
        let sample = |at_ns, site, others| WatchSample { at_ns, sites: vec![site], others };
        let samples = vec![
            sample(1_000_000_000, of(3, 500_000_000, 250_000), of(10, 0, 0)),
            sample(2_000_000_000, of(7, 2_500_000_000, 1_000_000), of(30, 0, 0)),
            sample(2_000_000_000, of(8, 2_500_000_000, 1_000_000), of(30, 0, 0)),
        ];
        let mut all = MemberSlice::all(samples);
        assert_eq!(all.len(), 2, "the latest arrival is at the end of the second");
        let second = all[1].clone();
        assert_eq!((second.per_s(&second.sites[0]), second.in_flight(&second.sites[0])), (4.0, 2.0));
        assert_eq!((second.per_s(&second.others), second.share(&second.sites[0])), (20.0, 1.0));
        all[0].add(&second);
        let both = &all[0];
        assert_eq!((both.per_s(&both.sites[0]), both.share(&both.sites[0])), (3.5, 0.625));
    }
}
