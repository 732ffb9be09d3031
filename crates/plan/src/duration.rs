//! Durations as text: how a file writes them, and how messages show them.

use crate::suggest;
use std::fmt;
use weir_stats::{Decimal, ProductError};

/// Units, the greatest first, with their ns.
pub const UNITS: [(&str, i64); 6] = [
    ("hours", 3_600_000_000_000),
    ("minutes", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Units that a text may abbreviate, as operators write them: `10m`, `1h`.
const SHORT_UNITS: [(&str, &str); 2] = [("h", "hours"), ("m", "minutes")];

/// A duration in words: the greatest unit in which it is whole up to three digits after the point.
pub fn show_ns(ns: i128) -> String {
    if ns == 0 {
        return "0s".to_owned();
    }
    let sign = if ns < 0 { "-" } else { "" };
    let size = ns.unsigned_abs();
    for (unit, each) in [("s", 1_000_000_000u128), ("ms", 1_000_000), ("us", 1_000)] {
        let thousandth = each / 1000;
        if size >= each && size.is_multiple_of(thousandth) {
            let rest = (size % each) / thousandth;
            let mut text = format!("{}", size / each);
            if rest > 0 {
                text.push_str(format!(".{rest:03}").trim_end_matches('0'));
            }
            return format!("{sign}{text}{unit}");
        }
    }
    format!("{sign}{size}ns")
}

/// Why a text is not a duration, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDuration(String);

impl fmt::Display for InvalidDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidDuration {}

/// The ns of a text such as `5ms`, `1.5 s`, `2 minutes` or `10m`.
///
/// # Errors
/// A sentence: no number, no unit, an unknown unit, or out of range.
pub fn parse_duration(text: &str) -> Result<i64, InvalidDuration> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let wrong = |why: String| InvalidDuration(format!("\"{text}\" is not a duration: {why}"));
    if number.is_empty() {
        return Err(wrong("it does not start with a number".to_owned()));
    }
    if unit.is_empty() {
        return Err(wrong(format!("it has no unit; write \"{number}ms\" or \"{number}s\"")));
    }
    let unit = if unit == "µs" || unit == "μs" { "us" } else { unit };
    let unit = SHORT_UNITS.iter().find(|(short, _)| *short == unit).map_or(unit, |(_, long)| long);
    let Some((_, each)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let names: Vec<&str> = UNITS.iter().rev().map(|u| u.0).collect();
        return Err(wrong(format!("`{unit}` is not a unit; use {}", suggest::either(&names))));
    };
    let Some(decimal) = Decimal::parse(&number) else {
        return Err(wrong(format!("`{number}` is not a number")));
    };
    whole_ns(&decimal, *each).map_err(wrong)
}

/// The ns of a number of units of `each` ns, exactly. A number as a program prints a float may have more digits than
/// there are ns, and is rounded (half away from zero): its last digits are of no meaning.
///
/// # Errors
/// Why it cannot be had, in words: it is too long, or no whole number of ns.
pub fn whole_ns(number: &Decimal, each: i64) -> Result<i64, String> {
    match number.times(each) {
        Ok(ns) => Ok(ns),
        Err(ProductError::TooLarge) => Err(TOO_LONG.to_owned()),
        Err(ProductError::Fraction(nearest)) if number.is_like_a_float() => Ok(nearest),
        Err(ProductError::Fraction(nearest)) => Err(format!(
            "it is not a whole number of nanoseconds; the nearest is {}",
            show_ns(i128::from(nearest))
        )),
    }
}

/// The message for a duration that is out of range.
pub const TOO_LONG: &str = "a duration this long is out of range (292 years at most)";

/// A duration of an option or of the admin interface, ns: as the language writes it (`30s`, `1.5 ms`), or `10m`, `1h`
/// (`docs/spec/operating.md#changes-of-state`).
///
/// # Errors
/// If it is not a duration, or not above 0.
pub fn positive_duration_ns(text: &str) -> Result<u64, InvalidDuration> {
    let long = [("m", "minutes"), ("h", "hours")].into_iter().find_map(|(short, unit)| {
        let number = text.trim_end().strip_suffix(short)?;
        number.trim_end().ends_with(|c: char| c.is_ascii_digit()).then(|| format!("{number}{unit}"))
    });
    let ns = parse_duration(long.as_deref().unwrap_or(text))?;
    let positive = u64::try_from(ns).ok().filter(|ns| *ns > 0);
    positive.ok_or_else(|| InvalidDuration("write a time above 0, such as 30s".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parsed() {
        assert_eq!(parse_duration("250us"), Ok(250_000));
        assert_eq!(parse_duration(" 1.5 s"), Ok(1_500_000_000));
        assert_eq!(parse_duration("-2minutes"), Ok(-120_000_000_000));
        assert_eq!(parse_duration("9µs"), Ok(9_000));
        assert_eq!(parse_duration("10m"), parse_duration("10minutes"));
        assert_eq!(
            (parse_duration("1h"), parse_duration("1.5h")),
            (parse_duration("1hours"), Ok(5_400_000_000_000))
        );
        for bad in ["", "5", "ms", "5 parsecs", "1e400s", "999999999999 hours", "1.2.3s", "nan s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn texts_are_exact_to_the_ns_or_refused() {
        assert_eq!(parse_duration("1732600000.123456789s"), Ok(1_732_600_000_123_456_789));
        assert_eq!(parse_duration("0.1234567890000ms").map_err(|e| e.0), Err(
            "\"0.1234567890000ms\" is not a duration: it is not a whole number of nanoseconds; the nearest is 123.457us".to_owned()
        ));
        assert_eq!(parse_duration("0.100000000000ms"), Ok(100_000));
        assert_eq!(parse_duration("2.562047788015215hours"), Ok(9_223_372_036_855));
        // As a program prints 0.1 + 0.2.
        assert_eq!(parse_duration("0.30000000000000004ms"), Ok(300_000));
        assert!(parse_duration("0.5ns").is_err() && parse_duration("1.0ns").is_ok());
    }

    #[test]
    fn options_take_minutes_and_hours_in_a_letter() {
        for (text, s) in [("10m", 600), ("1h", 3600), ("1.5 h", 5400), ("2minutes", 120), ("30s", 30)] {
            assert_eq!(positive_duration_ns(text), Ok(s * 1_000_000_000), "{text}");
        }
        assert_eq!(positive_duration_ns("5ms"), Ok(5_000_000));
        for bad in ["0m", "-1h", "m", "5 hm", "5"] {
            assert!(positive_duration_ns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shown_in_the_greatest_unit_that_is_exact() {
        assert_eq!(show_ns(5_000_000), "5ms");
        assert_eq!(show_ns(1_500_000_000), "1.5s");
        assert_eq!(show_ns(-3_000_000), "-3ms");
        assert_eq!(show_ns(1_234_567), "1234.567us");
        assert_eq!(show_ns(7), "7ns");
    }
}
