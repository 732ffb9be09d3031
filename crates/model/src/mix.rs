//! The kinds of simulated requests, by their shares, and the keys that identify their senders.
//!
//! - In virtual time: each request draws its kind, and its key if the kind has keys; or a trace gives both. Served,
//!   requests carry them.
//! - Draws: one number for the kind and one for the key, by the request alone, so equal traffic has equal requests.

use crate::zipf::Zipf;
use std::sync::Arc;
use weir_policy::key::hash_number;
use weir_stats::{Key, math};

/// More keys than this are drawn without a table.
const MOST_IN_TABLE: u64 = 1 << 20;

/// How keys are drawn: numbers from 0.
#[derive(Clone, Debug)]
pub enum Keys {
    /// A number of keys with equal shares.
    Uniform(u64),
    /// Cumulated shares of the keys.
    Shares(Vec<f64>),
    /// Zipf's law over more keys than a table should hold.
    Zipf(Zipf),
}

impl Keys {
    /// Key k of n with a share in proportion to 1/(k+1)^s (Zipf).
    pub fn zipf(n: u64, s: f64) -> Keys {
        if n > MOST_IN_TABLE {
            return Keys::Zipf(Zipf::new(n, s));
        }
        let mut sum = 0.0;
        let cumulate = |k: u64| {
            sum += math::exp(-s * math::ln(k as f64));
            sum
        };
        Keys::Shares((1..=n).map(cumulate).collect())
    }

    fn draw(&self, key: Key) -> u64 {
        match self {
            Keys::Uniform(n) => key.below((*n).max(1)),
            Keys::Zipf(law) => law.draw(key),
            Keys::Shares(upto) => {
                let at = (1.0 - key.unit()) * upto.last().copied().unwrap_or(0.0);
                upto.partition_point(|u| *u <= at).min(upto.len().saturating_sub(1)) as u64
            }
        }
    }
}

/// The kind of a request (its index), and the hash of its key if it has one.
pub type KindAndKey = (u32, Option<u64>);

/// The kinds of a traffic's requests.
#[derive(Clone, Debug, Default)]
pub struct Mix {
    /// Cumulated weights.
    upto: Vec<f64>,
    keys: Vec<Option<Keys>>,
    /// Kind and sender of each request, if they are not drawn.
    recorded: Option<Arc<[KindAndKey]>>,
}

impl Mix {
    /// Weight and keys of each kind.
    pub fn new(kinds: Vec<(f64, Option<Keys>)>) -> Mix {
        let mut sum = 0.0;
        let cumulate = |k: &(f64, Option<Keys>)| {
            sum += k.0;
            sum
        };
        Mix {
            upto: kinds.iter().map(cumulate).collect(),
            keys: kinds.into_iter().map(|k| k.1).collect(),
            recorded: None,
        }
    }

    /// The same kinds, with the given kind and key hash for each request.
    pub fn recorded(self, requests: Arc<[KindAndKey]>) -> Mix {
        Mix { recorded: Some(requests), ..self }
    }

    /// Whether all requests are of the one kind that they have without a mix.
    pub fn is_empty(&self) -> bool {
        self.upto.is_empty()
    }

    /// The kind of the request with this number (its index), and the hash of its key.
    #[inline]
    pub fn request(&self, number: u64, key: Key) -> KindAndKey {
        if let Some(requests) = &self.recorded {
            let at = usize::try_from(number).ok();
            return at.and_then(|at| requests.get(at)).copied().unwrap_or((0, None));
        }
        let (kind, sender) = self.draw(key);
        (kind, sender.map(hash_number))
    }

    /// The kind of a request (its index), and its key as a number, if it has one; not for recorded traffic.
    pub fn draw(&self, key: Key) -> (u32, Option<u64>) {
        let Some(total) = self.upto.last() else { return (0, None) };
        let kind = match self.upto.len() {
            1 => 0,
            n => {
                let at = (1.0 - key.nth(0).unit()) * total;
                self.upto.partition_point(|u| *u <= at).min(n - 1)
            }
        };
        (kind as u32, self.keys[kind].as_ref().map(|k| k.draw(key.nth(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(mix: &Mix, n: u64) -> Vec<(u32, Option<u64>)> {
        (0..n).map(|i| mix.draw(Key::new(7).with(i))).collect()
    }

    #[test]
    fn what_is_recorded_is_not_drawn() {
        let mix = Mix::new(vec![(1.0, None), (1.0, None)]);
        let rows = [(1, Some(7)), (0, None), (1, None)];
        let recorded = mix.recorded(rows.into());
        assert_eq!([0, 1, 2].map(|n| recorded.request(n, Key::new(3))), rows);
    }

    #[test]
    fn kinds_have_their_shares() {
        let mix = Mix::new(vec![(3.0, None), (0.0, None), (1.0, Some(Keys::Uniform(4)))]);
        let drawn = shares(&mix, 80_000);
        let count = |kind: u32| drawn.iter().filter(|d| d.0 == kind).count() as f64;
        // Four standard errors of a share of a quarter.
        assert!((count(2) - 20_000.0).abs() < 4.0 * 122.5 && count(1) == 0.0);
        for key in 0..4 {
            let n = drawn.iter().filter(|d| d.1 == Some(key)).count() as f64;
            assert!((n - 5000.0).abs() < 4.0 * 68.5, "{key}: {n}");
        }
        assert!(drawn.iter().all(|d| d.1.is_some() == (d.0 == 2) && d.1.is_none_or(|k| k < 4)));
    }

    /// Both methods agree at their border: the first key of a million, with s = 1, has 1/H(2^20) = 1/14.440 of all.
    #[test]
    fn a_table_and_none_agree() {
        for n in [MOST_IN_TABLE, MOST_IN_TABLE + 1] {
            let mix = Mix::new(vec![(1.0, Some(Keys::zipf(n, 1.0)))]);
            let first = shares(&mix, 50_000).iter().filter(|d| d.1 == Some(0)).count() as f64 / 50_000.0;
            let p: f64 = 1.0 / 14.440;
            assert!((first - p).abs() < 4.0 * (p * (1.0 - p) / 50_000.0).sqrt(), "{n}: {first} {p}");
        }
    }

    /// Zipf's law with s = 1 over ten keys: key k has 1/(k+1)/H10, H10 = 2.928968.
    #[test]
    fn zipf_keys() {
        let mix = Mix::new(vec![(1.0, Some(Keys::zipf(10, 1.0)))]);
        let n = 100_000u64;
        let drawn = shares(&mix, n);
        for k in 0..10u64 {
            let p = 1.0 / (k + 1) as f64 / 2.928_968;
            let seen = drawn.iter().filter(|d| d.1 == Some(k)).count() as f64 / n as f64;
            assert!((seen - p).abs() < 4.0 * (p * (1.0 - p) / n as f64).sqrt(), "{k}: {seen} {p}");
        }
    }
}
