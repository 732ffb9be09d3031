//! How sure a share is that was counted (Clopper and Pearson 1934, "The use of confidence or fiducial limits
//! illustrated in the case of the binomial").

use crate::student::incomplete_beta;

/// The exact bounds of a probability after `k` of `n` independent trials succeeded; each is missed with at most the
/// probability `tail`. Without trials: 0 and 1.
pub fn clopper_pearson(k: u64, n: u64, tail: f64) -> (f64, f64) {
    let (k, n) = (k as f64, n as f64);
    // P(at least k of n | p) = I_p(k, n - k + 1), which rises with p.
    let low = if k == 0.0 { 0.0 } else { root(|p| incomplete_beta(k, n - k + 1.0, p) - tail) };
    let high = if k >= n { 1.0 } else { root(|p| incomplete_beta(k + 1.0, n - k, p) - (1.0 - tail)) };
    (low, high)
}

/// Where a rising function between 0 and 1 crosses 0, by bisection: it always ends, and in the same place.
fn root(rising: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if rising(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `binom.test(k, n)$conf.int`.
    #[test]
    fn the_bounds_are_those_of_r() {
        for (k, n, low, high) in [
            (0, 10, 0.0, 0.308_497_1),
            (10, 10, 0.691_502_9, 1.0),
            (7, 20, 0.153_909_2, 0.592_188_5),
            (100, 100, 0.963_783_3, 1.0),
            (0, 0, 0.0, 1.0),
        ] {
            let got = clopper_pearson(k, n, 0.025);
            assert!((got.0 - low).abs() < 1e-6 && (got.1 - high).abs() < 1e-6, "{k} of {n}: {got:?}");
        }
    }

    /// One-sided, none of n failed: the rule of three, exactly.
    #[test]
    fn one_side_is_the_rule_of_three() {
        let (low, _) = clopper_pearson(1_000_000, 1_000_000, 0.05);
        assert!((low - crate::math::pow(0.05, 1e-6)).abs() < 1e-12, "{low}");
    }

    /// Each side is missed as often as it may be, or less: exact sums over all outcomes.
    #[test]
    fn each_side_is_missed_at_most_so_often() {
        let n = 30u64;
        for step in 1..20 {
            let p = f64::from(step) / 20.0;
            let mut chance = vec![crate::math::pow(1.0 - p, n as f64)];
            for k in 1..=n {
                chance.push(chance[k as usize - 1] * (n - k + 1) as f64 / k as f64 * p / (1.0 - p));
            }
            let missed = |side: fn((f64, f64), f64) -> bool| -> f64 {
                (0..=n).filter(|k| side(clopper_pearson(*k, n, 0.025), p)).map(|k| chance[k as usize]).sum()
            };
            assert!(
                missed(|(low, _), p| low > p) <= 0.025 && missed(|(_, high), p| high < p) <= 0.025,
                "{p}"
            );
        }
    }
}
