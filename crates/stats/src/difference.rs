//! Two designs compared: the difference of a statistic, and which differences are significant.
//!
//! If replication r of both had the same requests, the differences of the pairs count (common random numbers),
//! otherwise those of independent samples (Welch 1947, degrees of freedom by Satterthwaite). Over many statistics,
//! Holm's procedure (1979) selects the significant ones: the chance that it selects any without a real difference is
//! 5 % at most.

use crate::math::{exp, ln};
use crate::student::{t95_of, two_tails};
use crate::{Estimate, clopper_pearson};

/// A statistic of one design.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its value: the mean over replications, or a quantile of all samples together.
    pub value: f64,
    /// The value of each replication.
    pub each: &'a [f64],
}

/// How much the second design differs from the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// Second less first, with its 95 % interval.
    pub estimate: Estimate,
    /// The probability that chance alone differs as much; `None` if unknown.
    pub p: Option<f64>,
}

/// Differences smaller than this share of the values are rounding errors of equal ones.
const ROUNDING: f64 = 1e-12;

impl Side<'_> {
    /// Sum of squares around the value.
    fn squares(&self) -> f64 {
        self.each.iter().map(|v| (v - self.value) * (v - self.value)).sum()
    }

    /// Variance of the value.
    fn variance(&self) -> f64 {
        let n = self.each.len() as f64;
        self.squares() / (n * (n - 1.0))
    }
}

impl Difference {
    /// The same for a share that was counted among `n` requests of each design. If no request ends otherwise in the
    /// other design, all replications agree, and only the number of requests shows how little that proves: the interval
    /// has at least the half width of the exact binomial bound of none of `n`. The sign test (McNemar 1947) bounds the
    /// probability: of so many requests that differ, all would differ in the same direction.
    #[must_use]
    pub fn of_counts(self, n: u64) -> Difference {
        let (Some(value), Some(p)) = (self.estimate.value, self.p) else { return self };
        let least = no_other_end(n);
        let Estimate { low, high, .. } = self.estimate;
        let differing = (value.abs() * n as f64).round();
        Difference {
            estimate: Estimate {
                value: Some(value),
                low: low.map(|low| low.min(value - least)),
                high: high.map(|high| high.max(value + least)),
            },
            p: Some(p.max((2.0 * exp(-ln(2.0) * differing)).min(1.0))),
        }
    }
}

/// The largest share of requests that may end otherwise, if none of `n` did (97.5 %).
pub fn no_other_end(n: u64) -> f64 {
    clopper_pearson(0, n, 0.025).1
}

/// By pairs: replication r of both had the same requests. Spread is around the difference of the values, as in
/// [`Estimate::sectioned`]. `blur`: the error bound of the values, so that no interval is narrower.
pub fn paired(a: &Side<'_>, b: &Side<'_>, blur: f64) -> Difference {
    let value = b.value - a.value;
    if a.each.len() != b.each.len() || a.each.len() < 2 {
        return alone(value);
    }
    let each: Vec<f64> = a.each.iter().zip(b.each).map(|(a, b)| b - a).collect();
    let deviation = Side { value, each: &each }.variance().sqrt();
    judged(a, b, deviation, each.len() as f64 - 1.0, blur)
}

/// Of independent samples, whose variances and numbers may differ.
pub fn welch(a: &Side<'_>, b: &Side<'_>, blur: f64) -> Difference {
    if a.each.len() < 2 || b.each.len() < 2 {
        return alone(b.value - a.value);
    }
    let freedom = |s: &Side<'_>| s.each.len() as f64 - 1.0;
    let (of_a, of_b) = (a.variance(), b.variance());
    let both = of_a + of_b;
    let df = both * both / (of_a * of_a / freedom(a) + of_b * of_b / freedom(b));
    // Without any spread it does not matter.
    let df = if df.is_finite() { df } else { freedom(a) + freedom(b) };
    judged(a, b, both.sqrt(), df, blur)
}

/// A difference of unknown precision.
fn alone(value: f64) -> Difference {
    Difference { estimate: Estimate { value: Some(value), low: None, high: None }, p: None }
}

fn judged(a: &Side<'_>, b: &Side<'_>, deviation: f64, df: f64, blur: f64) -> Difference {
    let value = b.value - a.value;
    if !value.is_finite() || !deviation.is_finite() {
        return Difference::default();
    }
    let half = (t95_of(df) * deviation).max(blur);
    let rounding = ROUNDING * (a.value.abs() + b.value.abs());
    let p = match value.abs() {
        small if small <= blur.max(rounding) => 1.0,
        // Whole numbers that are the same in every replication.
        _ if deviation == 0.0 => 0.0,
        size => two_tails(size / deviation, df),
    };
    Difference {
        estimate: Estimate { value: Some(value), low: Some(value - half), high: Some(value + half) },
        p: Some(p),
    }
}

/// The significant differences: the probability of naming any that is not real is `level` at most. An unknown
/// difference is not significant.
pub fn holm(p: &[Option<f64>], level: f64) -> Vec<bool> {
    let mut order: Vec<(usize, f64)> = p.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let mut named = vec![false; p.len()];
    for (rank, (i, p)) in order.iter().enumerate() {
        if *p > level / (order.len() - rank) as f64 {
            break;
        }
        named[*i] = true;
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two replications of twenty requests, of which one fails in each: no more than two heads in a row. With ten times
    /// as many it is beyond chance.
    #[test]
    fn few_requests_prove_little() {
        let (all, most) = ([1.0, 1.0], [0.95, 0.95]);
        let (a, b) = (Side { value: 1.0, each: &all }, Side { value: 0.95, each: &most });
        let difference = paired(&a, &b, 0.0);
        assert_eq!(difference.p, Some(0.0), "alone it looks sure");
        assert!((difference.of_counts(40).p.unwrap() - 0.5).abs() < 1e-9);
        assert!(difference.of_counts(400).p.unwrap() < 1e-5);
        let same = paired(&a, &a, 0.0).of_counts(100);
        assert!((same.estimate.high.unwrap() - 0.0362).abs() < 1e-4, "{same:?}");
        assert_eq!(same.p, Some(1.0));
    }

    fn side(each: &[f64]) -> Side<'_> {
        Side { value: each.iter().sum::<f64>() / each.len() as f64, each }
    }

    fn near(found: &Difference, value: f64, low: f64, high: f64, p: f64) {
        let Estimate { value: Some(v), low: Some(l), high: Some(h) } = found.estimate else {
            panic!("{found:?}")
        };
        let off = (v - value).abs().max((l - low).abs()).max((h - high).abs());
        assert!(off < 5e-6 && (found.p.unwrap() - p).abs() < 5e-6, "{found:?}");
    }

    /// Student's own data (Biometrika 1908), as R's `t.test(extra ~ group, data = sleep)` has them.
    const FIRST: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const SECOND: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    #[test]
    fn pairs_give_the_published_figures() {
        let found = paired(&side(&FIRST), &side(&SECOND), 0.0);
        near(&found, 1.58, 0.700_114_2, 2.459_885_8, 0.002_833);
    }

    #[test]
    fn independent_samples_give_the_published_figures() {
        let found = welch(&side(&FIRST), &side(&SECOND), 0.0);
        near(&found, 1.58, -0.205_483_2, 3.365_483_2, 0.079_394);
    }

    /// Around a pooled quantile, which is not the mean of the replications' own, the spread is wider.
    #[test]
    fn the_spread_is_around_the_values() {
        let (a, b) =
            (Side { value: 10.0, each: &[9.0, 9.0, 8.0] }, Side { value: 11.0, each: &[10.0, 10.0, 10.0] });
        // Differences 1, 1, 2 around 1: one square of 1; t(2) = 4.302653.
        let half = 4.302_653 * (1.0f64 / 6.0).sqrt();
        assert!((paired(&a, &b, 0.0).estimate.half_width().unwrap() - half).abs() < 1e-6);
        assert_eq!(
            paired(&a, &b, 5.0).estimate.half_width(),
            Some(5.0),
            "no finer than what it was told with"
        );
        assert_eq!(paired(&a, &b, 5.0).p, Some(1.0));
    }

    #[test]
    fn what_is_equal_does_not_differ_and_what_never_varies_does() {
        let same = side(&FIRST);
        assert_eq!(paired(&same, &same, 0.0).p, Some(1.0));
        let (one, two) = (side(&[1.0; 4]), side(&[2.0; 4]));
        assert_eq!((paired(&one, &two, 0.0).p, welch(&one, &two, 0.0).p), (Some(0.0), Some(0.0)));
        assert_eq!(welch(&one, &one, 0.0).p, Some(1.0));
        let rounded = Side { value: 1.0 + 1e-15, each: &[1.0 + 1e-15; 4] };
        assert_eq!(paired(&one, &rounded, 0.0).p, Some(1.0), "rounding is no difference");
        assert_eq!(paired(&side(&[1.0]), &side(&[2.0]), 0.0).p, None, "one replication tells nothing");
    }

    /// The textbook example of Holm's procedure: of 0.01, 0.04, 0.03 and 0.005 the last and the first are named.
    #[test]
    fn holm_names_what_he_should() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005].map(Some), 0.05), [true, false, false, true]);
        assert_eq!(holm(&[Some(0.04), None], 0.05), [true, false]);
        assert_eq!(holm(&[], 0.05), [false; 0]);
    }
}
