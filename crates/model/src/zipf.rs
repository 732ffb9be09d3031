//! Zipf's law over more keys than a table could hold: drawn by rejection-inversion, in constant memory.
//!
//! - In virtual time: each request draws its key.
//! - In the proxy: nothing; `weir load` draws the keys of its requests this way.
//! - Draws: one or a few per key: a value of the continuous law is accepted, or (rarely) drawn again.
//! - Source: W. Hörmann and G. Derflinger, Rejection-inversion to generate variates from monotone discrete
//!   distributions, ACM TOMACS 6 (1996).

use weir_stats::{Key, math};

/// Key k of n (from 0) with a share in proportion to 1/(k+1)^s.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    s: f64,
    /// The integral of the law up to 1.5, less the first key's share; and up to n + 1/2.
    first: f64,
    last: f64,
    /// Where nothing need be looked at.
    sure: f64,
}

impl Zipf {
    /// `n` at least 1, `s` not negative.
    pub fn new(n: u64, s: f64) -> Zipf {
        let mut law = Zipf { n: n.max(1) as f64, s, first: 0.0, last: 0.0, sure: 0.0 };
        law.first = law.integral(1.5) - 1.0;
        law.last = law.integral(law.n + 0.5);
        law.sure = 2.0 - law.inverse(law.integral(2.5) - law.density(2.0));
        law
    }

    /// The key that these draws give.
    pub fn draw(&self, key: Key) -> u64 {
        let mut i = 0;
        loop {
            let u = self.last + key.nth(i).unit() * (self.first - self.last);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
            i += 1;
        }
    }

    fn density(&self, x: f64) -> f64 {
        math::exp(-self.s * math::ln(x))
    }

    /// (x^(1−s) − 1)/(1−s), which is ln x at s = 1.
    fn integral(&self, x: f64) -> f64 {
        let ln = math::ln(x);
        let t = (1.0 - self.s) * ln;
        if t.abs() > 1e-8 { math::exp_m1(t) / t * ln } else { ln * (1.0 + t / 2.0) }
    }

    fn inverse(&self, y: f64) -> f64 {
        // Rounding must not leave where the logarithm is.
        let t = (y * (1.0 - self.s)).max(-1.0 + f64::EPSILON);
        let ln = if t.abs() > 1e-8 { math::ln_1p(t) / t * y } else { y * (1.0 - t / 2.0) };
        math::exp(ln)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of the first keys, against their sums.
    #[test]
    fn shares_are_those_of_the_law() {
        for (n, s) in [(10u64, 0.0), (10, 0.5), (1000, 1.0), (1_000_000, 1.0), (50, 2.0), (1, 1.0), (3, 8.0)]
        {
            let law = Zipf::new(n, s);
            let draws = 100_000u64;
            let mut seen = [0u64; 10];
            for i in 0..draws {
                let k = law.draw(Key::new(5).with(i));
                assert!(k < n);
                if let Some(seen) = seen.get_mut(k as usize) {
                    *seen += 1;
                }
            }
            let total: f64 = (1..=n).map(|k| math::exp(-s * math::ln(k as f64))).sum();
            for k in 0..n.min(10) {
                let p = math::exp(-s * math::ln((k + 1) as f64)) / total;
                let got = seen[k as usize] as f64 / draws as f64;
                let sd = (p * (1.0 - p) / draws as f64).sqrt();
                assert!((got - p).abs() <= 4.5 * sd + 1e-9, "{n} {s}, key {k}: {got} {p}");
            }
        }
    }

    /// A trillion keys take no memory; with s = 1 half of the requests go to the first two million or so.
    #[test]
    fn a_trillion_keys_are_drawn() {
        let law = Zipf::new(1_000_000_000_000, 1.0);
        let below = (0..20_000u64).filter(|i| law.draw(Key::new(1).with(*i)) < 747_000).count();
        // H(747 000) is 14.10 of H(10^12) = 28.21.
        assert!((below as f64 / 20_000.0 - 0.5).abs() < 0.015, "{below}");
    }
}
