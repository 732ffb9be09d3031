//! What the requests near a quantile of the latency consist of.
//!
//! The part of a node in a quantile q(L) of the latency L = ΣXᵢ is E[Xᵢ | L = q(L)]: these parts add up to the
//! quantile, and each says how much it would change if that node were a little slower (D. Tasche, Risk Contributions
//! and Performance Measurement, 1999; C. Gourieroux, J.-P. Laurent, O. Scaillet, Sensitivity Analysis of Values at
//! Risk, 2000). No request has exactly that latency, so the mean is taken over those near it, as P. Glasserman does
//! (Measuring Marginal Risk Contributions in Credit Portfolios, 2005, section 3): those whose rank is within half of
//! 1 − q of it, but never further than 0.05. So p50 comes from the requests between p45 and p55, p99 from those
//! between p98.5 and p99.5.
//!
//! Sums are kept per class of latencies that differ by 3 % at most, not per request: memory does not grow with the
//! number of requests.

use super::tracks::RecordedRequest;
use crate::code::Code;
use crate::code::SiteId;
use std::collections::BTreeMap;
use weir_plan::Point;
use weir_policy::history::StageKind;
use weir_stats::samples_needed;

/// The quantiles that are explained.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Latencies of 2^DIGITS neighbouring numbers form a class; larger latencies have as many classes per power of two.
const DIGITS: u32 = 5;

/// A part of a typical request.
#[derive(Clone, Debug, PartialEq)]
pub struct TimePart {
    /// The site, in words.
    pub place: String,
    /// What happened in it.
    pub what: StageKind,
    /// Its length on average, ms.
    pub ms: f64,
    /// Its share of the latency.
    pub share: f64,
}

/// What the requests near a quantile consist of.
#[derive(Clone, Debug, PartialEq)]
pub struct Typical {
    /// The quantile: 0.5 is the median.
    pub q: f64,
    /// How many requests are near it.
    pub requests: u64,
    /// Their mean latency, ms.
    pub ms: f64,
    /// The parts, the largest first; they add up to `ms`.
    pub parts: Vec<TimePart>,
}

/// The times of requests of about the same latency.
#[derive(Default)]
struct Sum {
    requests: u64,
    ns: u128,
    parts: BTreeMap<(SiteId, StageKind), u128>,
}

/// The sums of a replication, by class of latency.
pub(crate) struct Sums {
    /// The site of each stage.
    sites: Vec<SiteId>,
    by_latency: BTreeMap<u32, Sum>,
}

/// The class of a latency.
fn bucket(ns: u64) -> u32 {
    let shift = (64 - ns.leading_zeros()).saturating_sub(DIGITS + 1);
    (shift << DIGITS) + (ns >> shift) as u32
}

/// The quantiles that this number of requests can show.
fn known(requests: u64) -> impl Iterator<Item = f64> {
    QUANTILES.into_iter().filter(move |q| requests >= samples_needed(*q))
}

impl Sums {
    pub fn new(code: &Code) -> Sums {
        Sums { sites: code.stages.iter().map(|s| s.site).collect(), by_latency: BTreeMap::new() }
    }

    pub fn add(&mut self, latency: u64, noted: &RecordedRequest) {
        let sum = self.by_latency.entry(bucket(latency)).or_default();
        sum.requests += 1;
        sum.ns += u128::from(latency);
        for (stay, _) in noted.stays.iter().filter(|(stay, counts)| *counts && stay.to > stay.from) {
            let key = (self.sites[stay.stage.index()], stay.what);
            *sum.parts.entry(key).or_default() += u128::from(stay.to - stay.from);
        }
    }

    /// The typical requests; quantiles with too few requests are missing.
    pub fn typical(&self, point: &Point) -> Vec<Typical> {
        let all: u64 = self.by_latency.values().map(|sum| sum.requests).sum();
        known(all).filter_map(|q| self.near(point, q, all)).collect()
    }

    fn near(&self, point: &Point, q: f64, all: u64) -> Option<Typical> {
        let half = ((1.0 - q) / 2.0).min(0.05);
        let (from, to) = ((q - half) * all as f64, (q + half) * all as f64);
        let mut near = Sum::default();
        let mut rank = 0.0;
        for sum in self.by_latency.values() {
            let next = rank + sum.requests as f64;
            if next > from && rank < to {
                near.requests += sum.requests;
                near.ns += sum.ns;
                sum.parts.iter().for_each(|(key, ns)| *near.parts.entry(*key).or_default() += ns);
            }
            rank = next;
        }
        let requests = (near.requests > 0).then_some(near.requests)?;
        let ms = |ns: u128| ns as f64 / 1e6 / requests as f64;
        let part = |(&(site, what), &ns): (&(SiteId, StageKind), &u128)| TimePart {
            place: point.sites[site.index()].label.clone(),
            what,
            ms: ms(ns),
            share: if near.ns > 0 { ns as f64 / near.ns as f64 } else { 0.0 },
        };
        let mut parts: Vec<TimePart> = near.parts.iter().map(part).collect();
        parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        Some(Typical { q, requests, ms: ms(near.ns), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_known_from_ten_requests_beyond_it_on() {
        assert_eq!(known(100).collect::<Vec<_>>(), [0.5, 0.9]);
        assert_eq!(known(99).collect::<Vec<_>>(), [0.5]);
        assert_eq!(known(10_000).last(), Some(0.999));
    }

    #[test]
    fn latencies_that_fall_together_differ_by_3_percent_at_most() {
        let mut last = 0;
        for ns in (0..5000).chain((0..50).map(|n| (1 << 40) + (n << 33))) {
            let of = bucket(ns);
            assert!(of >= last, "{ns}");
            last = of;
        }
        assert_eq!(bucket(31), 31);
        assert_eq!(bucket(64), bucket(65));
        assert_ne!(bucket(1000), bucket(1040));
        assert!(bucket(u64::MAX) < 2048);
    }
}
