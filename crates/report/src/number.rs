//! Numbers for people: as many digits as the interval can bear, and durations as the language writes them.

use weir_stats::Estimate;

/// Digits of a number that comes without an interval.
const DIGITS_WITHOUT_INTERVAL: i32 = 4;

/// Digits of a quantile that comes without one: a histogram tells it to within 0.05 %.
const DIGITS_OF_A_HISTOGRAM: i32 = 3;

/// An interval that is narrower than this share of its value is only the rounding of equal figures.
const ROUNDING: f64 = 1e-13;

/// The placeholder for an unknown value.
pub(crate) const UNKNOWN: &str = "–";

/// `141.7 ±0.5`: the value rounded to the precision of its interval, and half of the interval's width; `885 (60..1 800)`
/// where the value is not in the middle of it.
pub(crate) fn with_interval(e: &Estimate) -> String {
    written(e, has_ends(e))
}

/// Figures of one column: all by their ends, if one of them needs it.
pub(crate) fn alike(all: &[Estimate], alone: fn(&Estimate) -> String) -> Vec<String> {
    let by_ends = all.iter().any(has_ends);
    let cell = |e: &Estimate| if half_width(e).is_some() { written(e, by_ends) } else { alone(e) };
    all.iter().map(cell).collect()
}

/// Whether `±` would show an interval that is not there.
fn has_ends(e: &Estimate) -> bool {
    half_width(e)
        .is_some_and(|half| half > e.value.unwrap_or_default().abs() * ROUNDING && is_lopsided(e, half))
}

fn written(e: &Estimate, by_ends: bool) -> String {
    let Some(value) = e.value else { return UNKNOWN.into() };
    match half_width(e) {
        Some(half) if half > value.abs() * ROUNDING && by_ends => {
            let show = |x: Option<f64>| fixed(x.unwrap_or(value), places_of(half));
            format!("{} ({}..{})", show(e.value), show(e.low), show(e.high))
        }
        Some(half) if half > value.abs() * ROUNDING => {
            let places = places_of(half);
            format!("{} ±{}", fixed(value, places), fixed(half, places))
        }
        Some(_) => exact((value * 1e9).round() / 1e9),
        None => significant(value, DIGITS_WITHOUT_INTERVAL),
    }
}

/// A quantile with its interval; without one, no finer than the histogram that it comes from.
pub(crate) fn quantile(e: &Estimate) -> String {
    match (e.value, half_width(e)) {
        (Some(value), None) => significant(value, DIGITS_OF_A_HISTOGRAM),
        _ => with_interval(e),
    }
}

/// The value alone, rounded in the same way.
pub(crate) fn alone(e: &Estimate) -> String {
    let Some(value) = e.value else { return UNKNOWN.into() };
    match half_width(e) {
        Some(half) if half > value.abs() * ROUNDING => fixed(value, places_of(half).min(5)),
        Some(_) => exact((value * 1e9).round() / 1e9),
        None => significant(value, DIGITS_WITHOUT_INTERVAL),
    }
}

/// A share as a percentage, with its interval: `99.93 ±0.02 %`.
pub(crate) fn percentage(e: &Estimate) -> String {
    match e.value {
        Some(_) => format!("{} %", with_interval(&in_percent(e))),
        None => UNKNOWN.into(),
    }
}

/// A share in per cent.
pub(crate) fn in_percent(e: &Estimate) -> Estimate {
    let percent = |x: Option<f64>| x.map(|x| x * 100.0);
    Estimate { value: percent(e.value), low: percent(e.low), high: percent(e.high) }
}

/// The lower bound (95 %) of a share that was 100 % in all of `n` samples, in per cent, rounded down; `None` if
/// it is practically 100 %.
pub(crate) fn at_least(n: u64) -> Option<String> {
    const AS_GOOD_AS_ALL: f64 = 1e-4;
    let missed = 1.0 - weir_stats::math::pow(0.05, 1.0 / n as f64);
    if n == 0 || missed < AS_GOOD_AS_ALL {
        return None;
    }
    let percent = missed * 100.0;
    let places = (-percent.log10().floor()).max(0.0) as usize;
    let unit = 10f64.powi(places as i32);
    Some(format!("{:.places$} %", ((100.0 - percent) * unit).floor() / unit))
}

/// A number without an interval, or the placeholder.
pub(crate) fn plain(x: Option<f64>) -> String {
    x.map_or_else(|| UNKNOWN.into(), |x| significant(x, DIGITS_WITHOUT_INTERVAL))
}

/// A count with its thousands apart: `1 000 000`.
pub(crate) fn count(n: u64) -> String {
    group_digits(n, ' ')
}

/// A number with a separator between its groups of three digits.
pub fn group_digits(n: u64, separator: char) -> String {
    grouped(&n.to_string(), separator)
}

fn grouped(digits: &str, separator: char) -> String {
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(separator);
        }
        grouped.push(digit);
    }
    grouped
}

/// A duration as the language writes it: `5ms`, `1.5s`, `250us`, exactly.
pub fn duration(ns: i64) -> String {
    let magnitude = ns.unsigned_abs();
    let (unit, per_unit) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)]
        .into_iter()
        .find(|&(_, per_unit)| magnitude >= per_unit)
        .unwrap_or(("s", 1_000_000_000));
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, rest) = (magnitude / per_unit, magnitude % per_unit);
    if rest == 0 {
        return format!("{sign}{whole}{unit}");
    }
    let places = per_unit.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{sign}{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// Whether the value is so far from the middle of its interval that `±` would show one that is not there. Of an interval as
/// narrow as a histogram's bucket nobody wants the ends.
fn is_lopsided(e: &Estimate, half: f64) -> bool {
    const ALIKE: f64 = 0.05;
    const NARROW: f64 = 1e-3;
    if half < e.value.unwrap_or_default().abs() * NARROW {
        return false;
    }
    let Some(middle) = e.low.zip(e.high).map(|(low, high)| 0.5 * (low + high)) else { return false };
    e.value.is_some_and(|value| (value - middle).abs() > ALIKE * half)
}

fn half_width(e: &Estimate) -> Option<f64> {
    let half = (e.high? - e.low?) / 2.0;
    half.is_finite().then_some(half.max(0.0))
}

/// Decimal places at which a half width shows one digit, or two where the first is a 1.
fn places_of(half: f64) -> usize {
    let written = format!("{half:.1e}");
    let exponent = exponent_of(&written);
    let digits = if written.starts_with('1') { 2 } else { 1 };
    usize::try_from(digits - 1 - exponent).unwrap_or(0).min(12)
}

fn significant(x: f64, digits: i32) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { UNKNOWN.into() };
    }
    let exponent = exponent_of(&format!("{x:.*e}", digits as usize - 1));
    let places = usize::try_from(digits - 1 - exponent).unwrap_or(0).min(12);
    trimmed(fixed(x, places))
}

/// A number on which all replications agree: up to nine digits, without trailing zeros.
fn exact(x: f64) -> String {
    if !x.is_finite() {
        return UNKNOWN.into();
    }
    let exponent = if x == 0.0 { 0 } else { exponent_of(&format!("{x:.8e}")) };
    trimmed(fixed(x, usize::try_from(8 - exponent).unwrap_or(0).min(6)))
}

/// The decimal exponent of a number written by `{:e}`: without a logarithm, so the same everywhere.
pub(crate) fn exponent_of(written: &str) -> i32 {
    written.rsplit('e').next().and_then(|e| e.parse().ok()).unwrap_or(0)
}

/// With so many decimal places, and thousands apart as in [`count`].
fn fixed(x: f64, places: usize) -> String {
    let s = format!("{x:.places$}");
    let zero = s.starts_with('-') && s.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    let (sign, s) = match s.strip_prefix('-') {
        Some(rest) => (if zero { "" } else { "-" }, rest),
        None => ("", &s[..]),
    };
    let (whole, fraction) = s.split_at(s.find('.').unwrap_or(s.len()));
    format!("{sign}{}{fraction}", grouped(whole, ' '))
}

fn trimmed(s: String) -> String {
    if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(value: f64, half: f64) -> Estimate {
        Estimate { value: Some(value), low: Some(value - half), high: Some(value + half) }
    }

    #[test]
    fn a_value_is_rounded_to_the_precision_of_its_interval() {
        assert_eq!(percentage(&e(0.9, 1e-17)), "90 %", "an interval of rounding errors");
        assert_eq!(with_interval(&e(141.7346, 0.52)), "141.7 ±0.5");
        assert_eq!(with_interval(&e(141.7346, 0.1249)), "141.73 ±0.12");
        assert_eq!(with_interval(&e(1732.46, 12.4)), "1 732 ±12");
        assert_eq!(with_interval(&e(0.5, 0.0096)), "0.500 ±0.010");
        assert_eq!(with_interval(&e(20.0, 0.0)), "20");
        assert_eq!(with_interval(&e(-0.001, 0.3)), "0.0 ±0.3");
        assert_eq!(with_interval(&Estimate { value: Some(141.7346), low: None, high: None }), "141.7");
        assert_eq!(with_interval(&Estimate::default()), "–");
        assert_eq!(quantile(&Estimate { value: Some(99.98343), low: None, high: None }), "100");
        assert_eq!(quantile(&e(141.7346, 0.52)), "141.7 ±0.5");
        assert_eq!(percentage(&e(0.99934, 0.0002)), "99.93 ±0.02 %");
        assert_eq!(percentage(&e(1.0, 0.0)), "100 %");
        assert_eq!(alone(&e(0.81234, 0.004)), "0.812");
    }

    #[test]
    fn an_interval_is_written_by_its_ends_where_the_sides_differ() {
        let between = |value, low, high| Estimate { value: Some(value), low: Some(low), high: Some(high) };
        assert_eq!(with_interval(&between(885.3, 60.1, 1800.2)), "885 (60..1 800)");
        assert_eq!(percentage(&between(1.0, 0.963_783, 1.0)), "100.0 (96.4..100.0) %");
        assert_eq!(percentage(&between(0.0, 0.0, 0.000_2)), "0.000 (0.000..0.020) %");
        assert_eq!(with_interval(&between(10.01, 9.0, 11.0)), "10.0 ±1.0");
    }

    /// One that is not in the middle of its interval takes the others of its column along.
    #[test]
    fn figures_of_a_column_are_written_alike() {
        let ends = Estimate { value: Some(885.3), low: Some(60.1), high: Some(1800.2) };
        assert_eq!(alike(&[e(141.7, 0.52), e(20.0, 0.0)], with_interval), ["141.7 ±0.5", "20"]);
        let told = alike(&[e(141.7, 0.52), ends, e(20.0, 0.0), Estimate::default()], with_interval);
        assert_eq!(told, ["141.7 (141.2..142.2)", "885 (60..1 800)", "20", "–"]);
    }

    #[test]
    fn thousands_are_apart_in_all_figures() {
        assert_eq!(with_interval(&e(15928.4, 1005.0)), "15 928 ±1 005");
        assert_eq!(plain(Some(-1234567.0)), "-1 234 567");
        assert_eq!(plain(Some(1234.5)), "1 234");
        assert_eq!(plain(Some(0.1234)), "0.1234");
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000_000), "1 000 000");
        assert_eq!(group_digits(1_234_567, ','), "1,234,567");
    }

    #[test]
    fn durations_are_written_as_the_language_reads_them() {
        for (ns, text) in [
            (0, "0s"),
            (10, "10ns"),
            (250_000, "250us"),
            (5_000_000, "5ms"),
            (1_500_000, "1.5ms"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "90s"),
            (1_000_000_001, "1.000000001s"),
            (-5_000_000, "-5ms"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    /// No failure among a thousand says 99.7 %: the rule of three.
    #[test]
    fn all_of_few_is_not_all() {
        let told = [0, 20, 100, 1000, 10_000, 29_000, 30_000].map(at_least);
        let want = [None, Some("86 %"), Some("97 %"), Some("99.7 %"), Some("99.97 %"), Some("99.98 %"), None];
        assert_eq!(told, want.map(|w| w.map(str::to_owned)));
    }
}
