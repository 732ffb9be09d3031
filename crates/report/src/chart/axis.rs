//! Axes: from a value to a place between 0 and 1, and the ticks. No mathematics of the C library, so the same bytes
//! everywhere.

use crate::number::{exponent_of, plain};
use weir_stats::math::ln;

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear { low: f64, high: f64 },
    Log { low: f64, high: f64 },
}

/// An axis with its ticks: place and label.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Ticks at most, beside the first.
const MOST: f64 = 5.0;
/// Beyond this factor between what is usual and the highest an axis of latencies is logarithmic.
const STEEP: f64 = 40.0;
/// The highest of a logarithmic axis of latencies is at most so many times the lowest.
const WIDEST: f64 = 1e6;

impl Axis {
    /// From 0 to a round number at or above `high`.
    pub(crate) fn from_zero(high: f64) -> Axis {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let step = round_step(high / MOST);
        let count = (high / step - 1e-9).ceil().max(1.0);
        Axis::ticked(0.0, step, count as usize)
    }

    /// From 0 to that number, which need not be round: an axis of time ends where time does.
    pub(crate) fn until(end: f64) -> Axis {
        let end = if end.is_finite() && end > 0.0 { end } else { 1.0 };
        let step = round_step(end / MOST);
        let count = (end / step + 1e-9).floor() as usize;
        let scale = Scale::Linear { low: 0.0, high: end };
        let ticks = (0..=count).map(|n| step * n as f64);
        Axis { scale, ticks: ticks.map(|x| (scale.position(x), plain(Some(x)))).collect() }
    }

    /// Round numbers around both, for values that are far from 0 and near to each other.
    pub(crate) fn around(low: f64, high: f64) -> Axis {
        if low >= high {
            return Axis::from_zero(high);
        }
        let step = round_step((high - low) / MOST);
        let first = (low / step + 1e-9).floor();
        let count = ((high / step - 1e-9).ceil() - first).max(1.0);
        Axis::ticked(first * step, step, count as usize)
    }

    /// Of latencies: logarithmic where the highest is far above what is usual. `low`: the least above 0, if there is
    /// one.
    pub(crate) fn of_latencies(low: Option<f64>, usual: f64, high: f64) -> Axis {
        match low.filter(|low| *low > 0.0 && *low <= high) {
            Some(low) if high > STEEP * usual => Axis::log(low.max(high / WIDEST), high),
            _ => Axis::from_zero(high),
        }
    }

    fn ticked(low: f64, step: f64, count: usize) -> Axis {
        let high = low + step * count as f64;
        let tick = |n: usize| (n as f64 / count as f64, plain(Some(low + step * n as f64)));
        Axis { scale: Scale::Linear { low, high }, ticks: (0..=count).map(tick).collect() }
    }

    /// Logarithmic, between 1, 2 or 5 times powers of ten; both are positive.
    pub(crate) fn log(low: f64, high: f64) -> Axis {
        let mut rounds: Vec<f64> = Vec::new();
        for exponent in decade(low)..=decade(high) + 1 {
            rounds.extend([1.0, 2.0, 5.0].map(|n| n * power(exponent)));
        }
        let first = rounds.iter().rposition(|n| *n <= low * (1.0 + 1e-9)).unwrap_or(0);
        let last = rounds.iter().position(|n| *n >= high * (1.0 - 1e-9)).unwrap_or(rounds.len() - 1);
        let rounds = &rounds[first..=last.max(first + 1).min(rounds.len() - 1)];
        let (low, high) = (rounds[0], rounds[rounds.len() - 1]);
        let scale = Scale::Log { low, high };
        let few = rounds.len() <= 8;
        let ticks = rounds.iter().filter(|n| few || plain(Some(**n)).trim_matches('0').starts_with('1'));
        Axis { scale, ticks: ticks.map(|n| (scale.position(*n), plain(Some(*n)))).collect() }
    }

    /// The position of a value from 0 to 1; clamped to the ends.
    pub(crate) fn position(&self, value: f64) -> f64 {
        self.scale.position(value)
    }

    /// Whether it is logarithmic.
    pub(crate) fn is_log(&self) -> bool {
        matches!(self.scale, Scale::Log { .. })
    }
}

impl Scale {
    fn position(self, value: f64) -> f64 {
        let at = match self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => ln(value.max(low) / low) / ln(high / low),
        };
        at.clamp(0.0, 1.0)
    }
}

/// How many nines a quantile has: 0.9 one, 0.99 two.
pub(crate) fn nines(q: f64) -> f64 {
    if q > 0.0 { -ln(1.0 - q) / std::f64::consts::LN_10 } else { 0.0 }
}

/// 1, 2, 2.5 or 5 times a power of ten, at or above.
fn round_step(step: f64) -> f64 {
    let unit = power(decade(step));
    [1.0, 2.0, 2.5, 5.0]
        .map(|n| n * unit)
        .into_iter()
        .find(|n| *n >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * unit)
}

/// The exponent of the power of ten at or below.
fn decade(x: f64) -> i32 {
    exponent_of(&format!("{x:e}")).clamp(-300, 300)
}

fn power(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| &label[..]).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&Axis::from_zero(2894.0)), ["0", "1 000", "2 000", "3 000"]);
        assert_eq!(labels(&Axis::from_zero(494.0)), ["0", "100", "200", "300", "400", "500"]);
        assert_eq!(labels(&Axis::from_zero(0.03)), ["0", "0.01", "0.02", "0.03"]);
        assert_eq!(labels(&Axis::from_zero(0.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&Axis::until(45.9)), ["0", "10", "20", "30", "40"]);
        assert_eq!(Axis::until(45.9).position(45.9), 1.0);
        assert_eq!(labels(&Axis::around(95.3, 99.9)), ["95", "96", "97", "98", "99", "100"]);
        assert_eq!(
            labels(&Axis::log(34.0, 2900.0)),
            ["20", "50", "100", "200", "500", "1 000", "2 000", "5 000"]
        );
        assert_eq!(
            labels(&Axis::log(1.0, 1e6)),
            ["1", "10", "100", "1 000", "10 000", "100 000", "1 000 000"]
        );
        assert_eq!(labels(&Axis::log(1.0, 1.0)), ["1", "2"]);
    }

    #[test]
    fn places_are_between_the_ends() {
        let axis = Axis::from_zero(100.0);
        assert_eq!([-5.0, 0.0, 50.0, 100.0, 900.0].map(|v| axis.position(v)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        let axis = Axis::log(1.0, 100.0);
        assert!((axis.position(10.0) - 0.5).abs() < 1e-9 && axis.position(0.0) < 1e-9);
        assert!((nines(0.999) - 3.0).abs() < 1e-9 && nines(0.0) == 0.0);
    }
}
