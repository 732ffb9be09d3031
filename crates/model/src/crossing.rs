//! One crossing of a link that loses messages.
//!
//! - In virtual time: the crossing is delayed, or never ends. In the proxy: the same, between built-in servers.
//! - Draws: one, for any number of losses: the number is geometric and drawn by inversion.
//! - Formula: sent again after d, then 2d, 4d, ... as TCP would: (2^k - 1)·d after k losses in a row, p·d / (1 - 2p) on
//!   average for p below 1/2, and without a mean beyond.

use crate::sampler::LONGEST_NS;
use weir_stats::Key;

/// The delay that losses add to a crossing, ns: 0 if it is not lost; a century at most. `None`: it never arrives
/// (lost and not sent again, or every crossing is lost).
#[inline]
pub fn extra_ns(loss: f64, resend_ns: Option<u64>, key: Key) -> Option<u64> {
    let u = key.unit();
    if u < loss { late(u, loss, resend_ns?) } else { Some(0) }
}

/// At least k losses have probability p^k, so k is the whole part of ln u / ln p.
#[cold]
fn late(u: f64, loss: f64, resend_ns: u64) -> Option<u64> {
    if loss >= 1.0 {
        return None;
    }
    // Not the table logarithm, whose error is absolute: p may be close to 1.
    let losses = (libm::log(u) / libm::log(loss)) as u32;
    let waits = 1u64.checked_shl(losses.max(1)).map_or(u64::MAX, |w| w - 1);
    Some(waits.saturating_mul(resend_ns).min(LONGEST_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: u64 = 200_000_000;
    const N: u64 = 400_000;

    fn crossings(loss: f64, resend: Option<u64>) -> impl Iterator<Item = Option<u64>> {
        (0..N).map(move |i| extra_ns(loss, resend, Key::new(4).with(i)))
    }

    /// d, 3d, 7d, 15d with probabilities (1-p) p^k, and p d / (1 - 2p) on average.
    #[test]
    fn doubling_delays_with_geometric_shares() {
        for p in [0.001, 0.01, 0.1, 0.2, 0.4] {
            let all: Vec<u64> = crossings(p, Some(D)).flatten().collect();
            assert_eq!(all.len() as u64, N);
            let mut left = 1.0;
            for extra in [0, D, 3 * D, 7 * D, 15 * D] {
                let share = all.iter().filter(|x| **x == extra).count() as f64 / N as f64;
                let want = left * (1.0 - p);
                assert!(
                    (share - want).abs() < 5.0 * (want / N as f64).sqrt() + 1e-9,
                    "{p}: {extra}: {share}"
                );
                left *= p;
            }
            assert!(all.iter().all(|x| (x / D + 1).is_power_of_two() && x % D == 0));
            // The variance, sum of 4^k p^k, is finite below 1/4 only.
            if p <= 0.2 {
                let mean = all.iter().sum::<u64>() as f64 / N as f64 / D as f64;
                let want = p / (1.0 - 2.0 * p);
                let square = (1.0 - p) * (1.0 / (1.0 - 4.0 * p) - 2.0 / (1.0 - 2.0 * p) + 1.0 / (1.0 - p));
                let slack = 5.0 * ((square - want * want) / N as f64).sqrt();
                assert!((mean - want).abs() < slack, "{p}: {mean}, want {want} ± {slack}");
            }
        }
    }

    #[test]
    fn without_resend_it_is_gone() {
        let gone = crossings(0.03, None).filter(|x| x.is_none()).count() as f64 / N as f64;
        assert!((gone - 0.03).abs() < 5.0 * (0.03f64 / N as f64).sqrt(), "{gone}");
        assert!(crossings(0.03, None).flatten().all(|x| x == 0));
    }

    #[test]
    fn edges() {
        assert!(crossings(0.0, None).all(|x| x == Some(0)));
        assert!(crossings(f64::NAN, Some(D)).all(|x| x == Some(0)));
        assert!(crossings(1.0, None).all(|x| x.is_none()));
        assert!(crossings(1.0, Some(D)).all(|x| x.is_none()), "sent again and lost again, for good");
        assert!(crossings(0.5, Some(0)).all(|x| x == Some(0)));
        assert!(crossings(1.0 - 1e-16, Some(D)).flatten().all(|x| x <= LONGEST_NS));
        assert!(crossings(0.99, Some(u64::MAX)).flatten().all(|x| x == 0 || x == LONGEST_NS));
    }
}
