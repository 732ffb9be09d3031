//! Student's t: the quantile behind every interval.

/// The two-sided 95 % quantile of Student's t with `df` degrees of freedom (`df` at least 1), to 1e-9.
///
/// Newton's method on the tail, which is convex and falling: from the left it never passes the root. The tail is the
/// regularised incomplete beta function (Numerical Recipes 6.4, continued fraction by Lentz).
pub fn t95(df: u32) -> f64 {
    t95_of(f64::from(df))
}

/// The same for degrees of freedom that need not be whole (Welch's), at least 1.
pub fn t95_of(df: f64) -> f64 {
    let (n, target) = (df, 0.05);
    let scale =
        libm::exp(libm::lgamma((n + 1.0) / 2.0) - libm::lgamma(n / 2.0)) / (n * std::f64::consts::PI).sqrt();
    let mut t = 1.9;
    for _ in 0..100 {
        let density = scale * libm::pow(1.0 + t * t / n, -(n + 1.0) / 2.0);
        let step = (two_tails(t, n) - target) / (2.0 * density);
        t += step;
        if step.abs() < 1e-12 * t {
            break;
        }
    }
    t
}

/// P(|T| > t) for Student's T with `df` degrees of freedom; `t` not negative.
pub fn two_tails(t: f64, df: f64) -> f64 {
    incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
}

/// The regularised incomplete beta function, for `a` and `b` above 0 and `x` from 0 to 1.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log(1.0 - x),
    );
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, 1.0 - x) / b
    }
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    let tiny = 1e-300;
    let guard = |v: f64| if v.abs() < tiny { tiny } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    // Where it converges slowest, around the mean, it takes some root of the greater of the two.
    for m in 1..30_000u32 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        h *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published table of the two-sided 95 % quantile.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (df, t) in [
            (1, 12.706_205),
            (2, 4.302_653),
            (9, 2.262_157),
            (19, 2.093_024),
            (59, 2.000_995),
            (999, 1.962_341),
        ] {
            assert!((t95(df) - t).abs() < 2e-6, "{df}: {}", t95(df));
        }
    }

    /// Published tails: R's `2 * pt(-t, df)`, and the table the other way round.
    #[test]
    fn tails_are_those_of_the_tables() {
        for (t, df, p) in [(4.0621, 9.0, 0.002_833), (1.8608, 17.776, 0.079_39), (2.262_157, 9.0, 0.05)] {
            assert!((two_tails(t, df) - p).abs() < 1e-5, "{t} {df}: {}", two_tails(t, df));
        }
        assert_eq!((two_tails(0.0, 5.0), two_tails(f64::INFINITY, 5.0)), (1.0, 0.0));
        assert!(t95(18) < t95_of(17.5) && t95_of(17.5) < t95(17), "between those of whole ones");
    }
}
