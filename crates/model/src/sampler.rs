//! Drawing from a distribution: one [`Key`], one duration, by inversion where there is a closed form.
//!
//! Inversion takes a single uniform per draw and is monotone, so two systems that share a key stay as close as
//! possible (common random numbers). All arithmetic is ours or `libm`'s: the same bits with any C library.

use crate::Dist;
use std::sync::Arc;
use weir_stats::{Key, math};

/// The longest duration that is ever drawn: a century. Heavy tails are cut there, and longer constants too.
pub const LONGEST_NS: u64 = 100 * 366 * 24 * 3_600 * 1_000_000_000;

/// A distribution ready for drawing. The tag has a byte of its own: hidden in a vector's capacity it takes seven
/// instructions to read at each draw.
#[derive(Clone, Debug)]
#[repr(u8)]
pub enum Sampler {
    /// A constant.
    Fixed(u64),
    /// By inversion: -mean ln u.
    Exponential(f64),
    /// Low bound and width.
    Uniform(f64, f64),
    /// Location and scale of the logarithm.
    Lognormal(f64, f64),
    /// Minimum and -1/alpha.
    Pareto(f64, f64),
    /// Number and mean of the phases in sequence.
    Erlang(u32, f64),
    /// Cumulative probability and mean of the parallel phases.
    Hyperexponential(Vec<(f64, f64)>),
    /// Values to draw from.
    Empirical(Arc<[u64]>),
    /// The sum of two independent draws.
    Sum(Box<Sampler>, Box<Sampler>),
    /// Rounded half up to a multiple.
    Rounded(Box<Sampler>, u64),
}

/// To whole ns, half to even; a negative value or NaN is 0.
#[inline]
pub(crate) fn whole(ns: f64) -> u64 {
    const SHIFT: f64 = (1u64 << 52) as f64;
    if (0.0..SHIFT / 2.0).contains(&ns) {
        // Adding 2^52 leaves the rounded number in the mantissa: two instructions instead of a saturating cast.
        (ns + SHIFT).to_bits() & ((1 << 52) - 1)
    } else {
        (ns as u64).min(LONGEST_NS)
    }
}

impl Sampler {
    /// For a distribution whose arguments have been checked.
    pub fn new(dist: &Dist) -> Sampler {
        match dist {
            Dist::Fixed { ns } => Sampler::Fixed((*ns).min(LONGEST_NS)),
            Dist::Exponential { mean_ns } => Sampler::Exponential(*mean_ns as f64),
            Dist::Uniform { low_ns, high_ns } => Sampler::Uniform(*low_ns as f64, (high_ns - low_ns) as f64),
            Dist::Lognormal { mean_ns, cv } => {
                let variance = libm::log1p(cv * cv);
                Sampler::Lognormal(libm::log(*mean_ns as f64) - variance / 2.0, math::sqrt(variance))
            }
            Dist::Pareto { minimum_ns, alpha } => Sampler::Pareto(*minimum_ns as f64, -1.0 / alpha),
            Dist::Erlang { k, mean_ns } => Sampler::Erlang(*k, *mean_ns as f64 / f64::from(*k)),
            Dist::Hyperexponential { phases } => {
                let mut sum = 0.0;
                let cumulate = |&(p, mean): &(f64, u64)| {
                    sum += p;
                    (sum, mean as f64)
                };
                Sampler::Hyperexponential(phases.iter().map(cumulate).collect())
            }
            Dist::Empirical { values_ns, .. } => Sampler::Empirical(values_ns.clone()),
            Dist::Sum { a, b } => Sampler::Sum(Box::new(Sampler::new(a)), Box::new(Sampler::new(b))),
            Dist::Rounded { of, to_ns } => Sampler::Rounded(Box::new(Sampler::new(of)), *to_ns),
        }
    }

    /// The constant, if it is one.
    pub fn constant(&self) -> Option<u64> {
        if let Sampler::Fixed(ns) = self { Some(*ns) } else { None }
    }

    /// The duration in ns for this key.
    #[inline]
    pub fn draw(&self, key: Key) -> u64 {
        match self {
            Sampler::Fixed(ns) => *ns,
            Sampler::Exponential(mean) => whole(-math::ln(key.unit()) * mean),
            _ => self.draw_rare(key),
        }
    }

    fn draw_rare(&self, key: Key) -> u64 {
        match self {
            Sampler::Fixed(_) | Sampler::Exponential(_) => self.draw(key),
            Sampler::Uniform(low, width) => whole(low + width * key.unit()),
            Sampler::Lognormal(location, scale) => {
                whole(math::exp(location + scale * math::normal_quantile(key.unit())))
            }
            Sampler::Pareto(minimum, power) => whole(minimum * math::exp(power * math::ln(key.unit()))),
            Sampler::Erlang(k, mean) => {
                let sum: f64 = (0..u64::from(*k)).map(|i| -math::ln(key.nth(i).unit())).sum();
                whole(sum * mean)
            }
            Sampler::Hyperexponential(phases) => {
                let u = key.nth(1).unit();
                let phase = phases.iter().find(|(p, _)| u < *p).or(phases.last());
                whole(-math::ln(key.unit()) * phase.map_or(0.0, |(_, mean)| *mean))
            }
            Sampler::Empirical(values) if values.is_empty() => 0,
            Sampler::Empirical(values) => values[key.below(values.len() as u64) as usize].min(LONGEST_NS),
            Sampler::Sum(a, b) => (a.draw(key.nth(1)) + b.draw(key.nth(2))).min(LONGEST_NS),
            Sampler::Rounded(of, to) => {
                let ns = of.draw(key);
                (ns.saturating_add(to / 2) / to.max(&1)).saturating_mul(*to).min(LONGEST_NS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn moments(dist: &Dist) -> (f64, f64) {
        let sampler = Sampler::new(dist);
        let n = 400_000u64;
        let (mut sum, mut squares) = (0.0, 0.0);
        for i in 0..n {
            let x = sampler.draw(Key::new(11).with(i)) as f64 / MS as f64;
            sum += x;
            squares += x * x;
        }
        let mean = sum / n as f64;
        (mean, (squares / n as f64 - mean * mean).sqrt())
    }

    /// Mean and standard deviation of each family against its formulas, ms.
    #[test]
    fn moments_are_those_of_the_formulas() {
        let exp = Dist::Exponential { mean_ns: 100 * MS };
        let cases = [
            (Dist::Fixed { ns: 17 * MS }, 17.0, 0.0),
            (exp.clone(), 100.0, 100.0),
            (Dist::Uniform { low_ns: 20 * MS, high_ns: 120 * MS }, 70.0, 100.0 / 12f64.sqrt()),
            (Dist::Lognormal { mean_ns: 60 * MS, cv: 0.5 }, 60.0, 30.0),
            (Dist::Pareto { minimum_ns: 40 * MS, alpha: 5.0 }, 50.0, 40.0 * (5.0f64 / 48.0).sqrt()),
            (Dist::Erlang { k: 4, mean_ns: 70 * MS }, 70.0, 35.0),
            (
                Dist::Hyperexponential { phases: vec![(0.9, 40 * MS), (0.1, 240 * MS)] },
                60.0,
                (2.0 * (0.9 * 1600.0 + 0.1 * 57600.0) - 3600.0f64).sqrt(),
            ),
            (Dist::Empirical { source: None, values_ns: vec![MS, 3 * MS].into() }, 2.0, 1.0),
            (Dist::Sum { a: Box::new(exp.clone()), b: Box::new(exp.clone()) }, 200.0, 20_000f64.sqrt()),
            // e^-h / (1 - e^-2h) with h = 1/(2m): `docs/spec/background.md#rounded-exponentials`.
            (
                Dist::Rounded { of: Box::new(Dist::Exponential { mean_ns: MS }), to_ns: MS },
                0.959_517,
                1.2553f64.sqrt() * 0.959_517,
            ),
        ];
        for (dist, mean, sd) in cases {
            let (m, s) = moments(&dist);
            assert!((m - mean).abs() <= 4.0 * sd / 632.0 + 1e-6, "{dist:?}: mean {m}, want {mean}");
            assert!((s - sd).abs() <= 0.02 * sd + 1e-6, "{dist:?}: sd {s}, want {sd}");
        }
    }

    /// Known answers in ns: a change here changes every published result.
    #[test]
    fn draws_are_pinned() {
        let key = Key::new(1).with(2);
        let draw = |d: Dist| Sampler::new(&d).draw(key);
        let got = [
            draw(Dist::Exponential { mean_ns: 100 * MS }),
            draw(Dist::Lognormal { mean_ns: 100 * MS, cv: 1.0 }),
            draw(Dist::Pareto { minimum_ns: 40 * MS, alpha: 2.5 }),
            draw(Dist::Erlang { k: 3, mean_ns: 90 * MS }),
        ];
        assert_eq!(got, PINNED);
    }

    const PINNED: [u64; 4] = [52_600_045, 85_635_935, 49_366_874, 30_576_860];

    #[test]
    fn heavy_tails_end_at_a_century() {
        let sampler = Sampler::new(&Dist::Pareto { minimum_ns: MS, alpha: 0.01 });
        assert!((0..10_000).all(|i| sampler.draw(Key::new(i)) <= LONGEST_NS));
    }
}
