//! Durations: whole nanoseconds with units, signed while they are computed with, and never silently wrapped.

use super::{Poison, stop};
use crate::suggest;
use allocative::Allocative;
use starlark::collections::StarlarkHasher;
use starlark::values::float::UnpackFloat;
use starlark::values::{
    Heap, NoSerialize, ProvidesStaticType, StarlarkPagable, StarlarkValue, UnpackValue, Value, ValueLike,
    starlark_value,
};
use std::cmp::Ordering;
use std::fmt;
use std::hash::Hash;

/// A duration in ns; at most 292 years either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagable)]
pub(crate) struct DurationValue(pub(crate) i64);

starlark::starlark_simple_value!(DurationValue);

impl fmt::Display for DurationValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_ns(i128::from(self.0)))
    }
}

/// Units, the greatest first, with their ns.
pub(crate) const UNITS: [(&str, i64); 6] = [
    ("hours", 3_600_000_000_000),
    ("minutes", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A duration in words: the greatest unit in which it is whole up to three digits after the point.
pub(crate) fn show_ns(ns: i128) -> String {
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

/// The ns of a text such as `5ms`, `1.5 s` or `2 minutes`.
///
/// # Errors
/// A sentence: no number, no unit, an unknown unit, or out of range.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let wrong = |why: String| format!("\"{text}\" is no duration: {why}");
    if number.is_empty() {
        return Err(wrong("it does not start with a number".to_owned()));
    }
    if unit.is_empty() {
        return Err(wrong(format!("it has no unit; write \"{number}ms\" or \"{number}s\"")));
    }
    let unit = if unit == "µs" || unit == "μs" { "us" } else { unit };
    let Some((_, each)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let names: Vec<&str> = UNITS.iter().rev().map(|u| u.0).collect();
        return Err(wrong(format!("`{unit}` is no unit; take {}", suggest::either(&names))));
    };
    let ns = if let Ok(whole) = number.parse::<i64>() {
        whole.checked_mul(*each)
    } else if let Ok(real) = number.parse::<f64>() {
        rounded(real * *each as f64)
    } else {
        return Err(wrong(format!("`{number}` is no number")));
    };
    ns.ok_or_else(|| wrong(TOO_LONG.to_owned()))
}

const TOO_LONG: &str = "a duration this long is out of range (292 years at most)";

/// To the nearest ns, halves away from zero; `None` out of range and for NaN.
fn rounded(ns: f64) -> Option<i64> {
    let ns = ns.round();
    (ns.abs() < 9.2e18).then_some(ns as i64)
}

/// The type of a value in words.
fn with_article(value: Value<'_>) -> String {
    let kind = value.get_type();
    format!("{} {kind}", if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" })
}

/// A number of Starlark.
enum Number {
    Int(i64),
    Float(f64),
}

fn number(value: Value<'_>) -> Option<Number> {
    if value.get_type() == "bool" {
        return None;
    }
    match i64::unpack_value(value) {
        Ok(Some(i)) => Some(Number::Int(i)),
        // An int beyond 64 bits: as a float it is out of range wherever it matters.
        _ => match UnpackFloat::unpack_value(value) {
            Ok(Some(f)) => Some(Number::Float(f.0)),
            _ => None,
        },
    }
}

impl DurationValue {
    fn times<'v>(self, other: Value<'v>, heap: Heap<'v>) -> Option<starlark::Result<Value<'v>>> {
        let ns = match number(other)? {
            Number::Int(i) => i64::try_from(i128::from(self.0) * i128::from(i)).ok(),
            Number::Float(f) if !f.is_finite() => {
                return Some(Err(stop(format!(
                    "a duration cannot be multiplied by {f}: it must be a finite number"
                ))));
            }
            Number::Float(f) => rounded(self.0 as f64 * f),
        };
        Some(ns.map(|ns| heap.alloc(DurationValue(ns))).ok_or_else(|| stop(TOO_LONG)))
    }

    fn combine<'v>(self, sign: &str, other: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        if other.downcast_ref::<Poison>().is_some() {
            return Ok(heap.alloc(Poison));
        }
        let Some(other) = other.downcast_ref::<DurationValue>() else {
            return Err(stop(format!(
                "a duration and {} cannot be combined by `{sign}`: give the number a unit, as in `{self} {sign} 3*ms`",
                with_article(other)
            )));
        };
        let ns = if sign == "+" { self.0.checked_add(other.0) } else { self.0.checked_sub(other.0) };
        ns.map(|ns| heap.alloc(DurationValue(ns))).ok_or_else(|| stop(TOO_LONG))
    }
}

#[starlark_value(type = "duration")]
impl<'v> StarlarkValue<'v> for DurationValue {
    fn to_bool(&self) -> bool {
        self.0 != 0
    }

    fn write_hash(&self, hasher: &mut StarlarkHasher) -> starlark::Result<()> {
        self.0.hash(hasher);
        Ok(())
    }

    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(other.downcast_ref::<DurationValue>().is_some_and(|o| o.0 == self.0))
    }

    fn compare(&self, other: Value<'v>) -> starlark::Result<Ordering> {
        match other.downcast_ref::<DurationValue>() {
            Some(o) => Ok(self.0.cmp(&o.0)),
            None if other.downcast_ref::<Poison>().is_some() => Ok(Ordering::Equal),
            None => Err(stop(format!(
                "a duration cannot be compared with {}: give the number a unit, as in `3*ms`",
                with_article(other)
            ))),
        }
    }

    fn plus(&self, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        Ok(heap.alloc(*self))
    }

    fn minus(&self, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        self.0.checked_neg().map(|ns| heap.alloc(DurationValue(ns))).ok_or_else(|| stop(TOO_LONG))
    }

    fn add(&self, other: Value<'v>, heap: Heap<'v>) -> Option<starlark::Result<Value<'v>>> {
        Some(self.combine("+", other, heap))
    }

    fn radd(&self, other: Value<'v>, heap: Heap<'v>) -> Option<starlark::Result<Value<'v>>> {
        Some(self.combine("+", other, heap))
    }

    fn sub(&self, other: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        self.combine("-", other, heap)
    }

    fn mul(&self, other: Value<'v>, heap: Heap<'v>) -> Option<starlark::Result<Value<'v>>> {
        self.times(other, heap)
    }

    fn rmul(&self, other: Value<'v>, heap: Heap<'v>) -> Option<starlark::Result<Value<'v>>> {
        self.times(other, heap)
    }

    fn div(&self, other: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        if let Some(other) = other.downcast_ref::<DurationValue>() {
            return if other.0 == 0 {
                Err(stop("division of a duration by a duration of 0"))
            } else {
                Ok(heap.alloc(self.0 as f64 / other.0 as f64))
            };
        }
        let by = match number(other) {
            Some(Number::Int(i)) => i as f64,
            Some(Number::Float(f)) => f,
            None if other.downcast_ref::<Poison>().is_some() => return Ok(heap.alloc(Poison)),
            None => return Err(stop(format!("a duration cannot be divided by {}", with_article(other)))),
        };
        if by == 0.0 || !by.is_finite() {
            return Err(stop(format!("a duration cannot be divided by {by}")));
        }
        let ns = match number(other) {
            Some(Number::Int(i)) => divided(self.0, i),
            _ => rounded(self.0 as f64 / by),
        };
        ns.map(|ns| heap.alloc(DurationValue(ns))).ok_or_else(|| stop(TOO_LONG))
    }
}

/// To the nearest ns, halves away from zero.
fn divided(ns: i64, by: i64) -> Option<i64> {
    let (n, d) = (i128::from(ns), i128::from(by));
    let half = d.abs() / 2;
    let sign = if (n < 0) == (d < 0) { 1 } else { -1 };
    i64::try_from(sign * ((n.abs() + half) / d.abs())).ok()
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
        for bad in ["", "5", "ms", "5 parsecs", "1e400s", "999999999999 hours", "1.2.3s", "nan s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shown_in_the_greatest_unit_that_is_exact() {
        assert_eq!(show_ns(5_000_000), "5ms");
        assert_eq!(show_ns(1_500_000_000), "1.5s");
        assert_eq!(show_ns(-3_000_000), "-3ms");
        assert_eq!(show_ns(1_234_567), "1234.567us");
        assert_eq!(show_ns(7), "7ns");
        assert_eq!(divided(10, 4), Some(3));
        assert_eq!(divided(-10, 4), Some(-3));
    }
}
