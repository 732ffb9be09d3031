//! A rate limit: a token bucket per key, full at the start.
//!
//! - Idea: `per_s` on average, `burst` at once. - State: per key how full its bucket was and when. - Cost: O(1), no
//!   allocation once the table has grown.
//! - Formula: tokens = min(burst, tokens + per_s · dt); a request takes 1, or is refused with the time until the
//!   next.
//! - Bounded: at most [`KEYS`] keys. A full bucket is as good as none; if all slots that a key may have are taken,
//!   the fullest bucket is dropped: a limited key stays limited. A caller with very many keys can still displace
//!   those of others.
//! - Poisson arrivals at rate λ pass as customers of M/D/1 with `burst` waiting slots.
//! - Source: Turner 1986; nginx `limit_req`. In the language: `limit.rate(node, per_s, burst=per_s, key=None)`.

use crate::key;
use serde::{Deserialize, Serialize};
use weir_stats::Ratio;

/// `limit.rate(node, per_s, burst=per_s, key=None)`, without the node and the key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens per second.
    pub per_s: f64,
    /// Tokens that a full bucket holds; at least 1.
    pub burst: f64,
}

/// The most keys that are remembered.
pub const KEYS: usize = 1 << 18;
/// Slots that a key may have.
const WAYS: usize = 8;
/// A token.
const TOKEN: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// The key's hash, never 0; 0: free.
    key: u64,
    tokens: u64,
    stamp: u64,
    /// What the refill left over: parts of a unit, so that the rate is kept however often it is asked.
    carried: u64,
}

/// The buckets of one limit.
#[derive(Clone, Debug)]
pub struct RateLimit {
    /// Units per ns, which is tokens per second.
    per_s: Ratio,
    burst: u64,
    buckets: Vec<Bucket>,
    used: usize,
}

impl RateLimit {
    /// All buckets full.
    pub fn new(config: &Rate) -> RateLimit {
        let burst = (config.burst.max(1.0) * TOKEN as f64) as u64;
        RateLimit { per_s: Ratio::near(config.per_s), burst, buckets: vec![Bucket::default(); WAYS], used: 0 }
    }

    /// Admits a request under a key (its hash; `None`: the common bucket). `Err`: the time in ns until there is a
    /// token.
    pub fn take(&mut self, now_ns: u64, key: Option<u64>) -> Result<(), u64> {
        let (per_s, burst) = (self.per_s, self.burst);
        let bucket = self.bucket(now_ns, key.map_or(u64::MAX, key::spread));
        fill(bucket, now_ns, per_s, burst);
        if bucket.tokens >= TOKEN {
            bucket.tokens -= TOKEN;
            return Ok(());
        }
        // Rounded up: after this time the token is there. If none ever comes, an age.
        Err(per_s.least_for(TOKEN - bucket.tokens, bucket.carried))
    }

    /// The number of remembered keys.
    pub fn keys(&self) -> usize {
        self.used
    }

    fn places(&self, key: u64) -> std::ops::Range<usize> {
        let sets = self.buckets.len() / WAYS;
        let first = (key as usize & (sets - 1)) * WAYS;
        first..first + WAYS
    }

    /// The bucket of a key; a new one is full.
    fn bucket(&mut self, now_ns: u64, key: u64) -> &mut Bucket {
        let key = key.max(1);
        if let Some(at) = self.places(key).find(|&i| self.buckets[i].key == key) {
            return &mut self.buckets[at];
        }
        let new = Bucket { key, tokens: self.burst, stamp: now_ns, carried: 0 };
        let at = loop {
            if let Some(at) = self.places(key).find(|&i| self.buckets[i].key == 0) {
                self.used += 1;
                break at;
            }
            let fullest = self.fullest(now_ns, key);
            let is_full = level(&self.buckets[fullest], now_ns, self.per_s, self.burst).0 >= self.burst;
            if is_full || self.buckets.len() >= KEYS {
                break fullest;
            }
            self.grow();
        };
        self.buckets[at] = new;
        &mut self.buckets[at]
    }

    fn fullest(&self, now_ns: u64, key: u64) -> usize {
        let full = |i: &usize| level(&self.buckets[*i], now_ns, self.per_s, self.burst).0;
        let places = self.places(key);
        let first = places.start;
        places.max_by_key(full).unwrap_or(first)
    }

    #[cold]
    fn grow(&mut self) {
        let double = self.buckets.len() * 2;
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::default(); double]);
        for bucket in old.into_iter().filter(|b| b.key != 0) {
            // Each set splits in two, so that there is a free slot.
            if let Some(at) = self.places(bucket.key).find(|&i| self.buckets[i].key == 0) {
                self.buckets[at] = bucket;
            }
        }
    }
}

/// The units in a bucket, and the parts of one that are left over.
fn level(bucket: &Bucket, now_ns: u64, per_s: Ratio, burst: u64) -> (u64, u64) {
    let (gained, carried) = per_s.times_carrying(now_ns.saturating_sub(bucket.stamp), bucket.carried);
    match bucket.tokens.saturating_add(gained) {
        level if level < burst => (level, carried),
        _ => (burst, 0),
    }
}

fn fill(bucket: &mut Bucket, now_ns: u64, per_s: Ratio, burst: u64) {
    (bucket.tokens, bucket.carried) = level(bucket, now_ns, per_s, burst);
    bucket.stamp = bucket.stamp.max(now_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::{Key, math};

    const S: u64 = 1_000_000_000;

    fn limit(per_s: f64, burst: f64) -> RateLimit {
        RateLimit::new(&Rate { per_s, burst })
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut lim = limit(10.0, 3.0);
        assert!((0..3).all(|_| lim.take(5 * S, None).is_ok()));
        let wait = lim.take(5 * S, None).unwrap_err();
        assert!((S / 10..=S / 10 + 2).contains(&wait), "{wait}");
        assert!(lim.take(5 * S + wait - 3, None).is_err());
        assert!(lim.take(5 * S + wait, None).is_ok());
        let passed = (0..10_000).filter(|i| lim.take(6 * S + i * S / 1000, None).is_ok()).count();
        assert!((100..=103).contains(&passed), "{passed} in 10 s");
        assert!((0..3).all(|_| lim.take(100 * S, None).is_ok()) && lim.take(100 * S, None).is_err());
    }

    /// Units that no ns fills are carried: asked 3,000,000 times at odd instants, a third of a token a second is
    /// exactly that.
    #[test]
    fn the_average_is_kept_exactly() {
        for (per_s, s) in [(1.0 / 3.0, 3_000_000), (0.3, 3_000_000), (3e-5, 30_000_000)] {
            let mut lim = limit(per_s, 2.0);
            let step = s * S / 3_000_000 - 7;
            let asked = (0..3_000_000).map(|i| i * step).chain([s * S]);
            let passed = asked.filter(|now| lim.take(*now, None).is_ok()).count();
            // At odd instants a token waits for the next one: none is lost, but for what the last instants bring.
            let tokens = (per_s * s as f64).round() as usize + 2;
            assert!((tokens - 1..=tokens).contains(&passed), "{per_s}: {passed} of {tokens}");
        }
    }

    /// Poisson arrivals at 100/s against 80/s, burst 10, and 110/s, burst 5: M/D/1 with `burst` slots (the acceptance
    /// checks `rate` and `rate_burst`).
    #[test]
    fn the_share_that_passes_is_that_of_a_queue() {
        for (per_s, burst, want) in
            [(80.0, 10.0, lossy(100.0 / 80.0, 10)), (110.0, 5.0, lossy(100.0 / 110.0, 5))]
        {
            let mut lim = limit(per_s, burst);
            let (mut now, mut passed, n) = (0.0, 0, 400_000);
            for i in 0..n {
                now += -math::ln(Key::new(6).with(i).unit()) / 100.0 * 1e9;
                passed += u32::from(lim.take(now as u64, None).is_ok());
            }
            let got = f64::from(passed) / n as f64;
            assert!((got - want).abs() < 0.003, "{got} {want}");
        }
    }

    /// The share of M/D/1/K that is served, from the chain at departures.
    fn lossy(rho: f64, places: usize) -> f64 {
        let mut a = vec![math::exp(-rho)];
        (1..=places).for_each(|k| a.push(a[k - 1] * rho / k as f64));
        let mut p = vec![1.0];
        for j in 0..places - 1 {
            let sum: f64 = (1..=j).map(|i| p[i] * a[j - i + 1]).sum();
            p.push((p[j] - p[0] * a[j] - sum) / a[0]);
        }
        1.0 / (1.0 / p.iter().sum::<f64>() + rho)
    }

    /// The obvious model: a map of exact buckets. With fewer keys than slots both agree.
    #[test]
    fn keys_have_buckets_of_their_own() {
        let mut lim = limit(2.0, 4.0);
        let mut naive = std::collections::BTreeMap::new();
        for step in 0..60_000u64 {
            let draw = Key::new(9).with(step);
            let (now, key) = (step * S / 500, draw.below(900));
            let bucket = naive.entry(key).or_insert((4.0, now));
            bucket.0 = f64::min(4.0, bucket.0 + (now - bucket.1) as f64 * 2e-9);
            bucket.1 = now;
            let near = (bucket.0 - 1.0f64).abs() < 1e-6;
            let got = lim.take(now, Some(key::hash_number(key))).is_ok();
            assert!(got == (bucket.0 >= 1.0) || near, "key {key}");
            bucket.0 -= f64::from(u8::from(got));
        }
        assert!(lim.take(0, Some(0)).is_ok() && lim.take(0, Some(u64::MAX)).is_ok());
    }

    /// Memory is bounded, and an unlimited number of new keys frees no limited key from its limit at once.
    #[test]
    fn memory_is_bounded() {
        let mut lim = limit(1.0, 2.0);
        for i in 0..3 * KEYS as u64 {
            _ = lim.take(i, Some(key::hash_number(i)));
        }
        assert!(lim.keys() <= KEYS && lim.buckets.len() == KEYS);
        let mut calm = limit(1.0, 2.0);
        for i in 0..100_000u64 {
            _ = calm.take(i * 100 * S, Some(key::hash_number(i)));
        }
        assert!(calm.buckets.len() <= 64, "full buckets are given away: {}", calm.buckets.len());
    }

    #[test]
    fn slow_rates_are_not_lost_and_none_is_an_age() {
        let mut slow = limit(0.001, 1.0);
        assert!(slow.take(0, None).is_ok());
        let passed = (1..=4_000_000u64).filter(|i| slow.take(i * S / 1000, None).is_ok()).count();
        assert_eq!(passed, 4);
        let mut never = limit(0.0, 1.0);
        assert!(never.take(0, None).is_ok());
        assert_eq!(never.take(S, None), Err(u64::MAX));
    }
}
