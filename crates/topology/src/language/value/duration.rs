//! Durations: whole nanoseconds with units, signed while they are computed with, and never silently wrapped.

use super::{Poison, stop};
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
use weir_plan::duration::{TOO_LONG, show_ns};
use weir_stats::Decimal;

/// A duration in ns; at most 292 years either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagable)]
pub(crate) struct DurationValue(pub(crate) i64);

starlark::starlark_simple_value!(DurationValue);

impl fmt::Display for DurationValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_ns(i128::from(self.0)))
    }
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
            Number::Float(f) => scaled(self.0, f),
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
        let ns = match number(other) {
            Some(Number::Int(0)) => return Err(stop("a duration cannot be divided by 0")),
            Some(Number::Int(i)) => divided(self.0, i),
            Some(Number::Float(f)) => match Decimal::shortest(f).filter(|_| f != 0.0) {
                Some(by) => by.divide_rounded(self.0),
                None => return Err(stop(format!("a duration cannot be divided by {f}"))),
            },
            None if other.downcast_ref::<Poison>().is_some() => return Ok(heap.alloc(Poison)),
            None => return Err(stop(format!("a duration cannot be divided by {}", with_article(other)))),
        };
        ns.map(|ns| heap.alloc(DurationValue(ns))).ok_or_else(|| stop(TOO_LONG))
    }
}

/// A duration times a float, taken as the decimal as which it is written, to the nearest ns, halves away from zero;
/// `None` out of range.
fn scaled(ns: i64, by: f64) -> Option<i64> {
    Decimal::shortest(by)?.times_rounded(ns)
}

/// Rounds to the nearest ns, halves away from zero.
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
    fn divisions_round_halves_away_from_zero() {
        assert_eq!(divided(10, 4), Some(3));
        assert_eq!(divided(-10, 4), Some(-3));
    }

    #[test]
    fn products_are_those_of_the_decimals() {
        let hours = 3_600_000_000_000;
        assert_eq!(scaled(9_007_199_254_740_993, 1.1), Some(9_907_919_180_215_092));
        assert_eq!(scaled(hours, 24_000.1), Some(86_400_360_000_000_000));
        assert_eq!(scaled(hours, 1e300), None);
        assert_eq!(scaled(1_000_000, 0.1 + 0.2), Some(300_000));
    }

    /// Above 104 days a float no longer tells each nanosecond from the next.
    #[test]
    fn a_long_product_is_rounded_to_the_nearest_ns() {
        let s = 1_000_000_000;
        assert_eq!(scaled(s, 1_732_600_000.123_456_7), Some(1_732_600_000_123_456_700));
        assert_eq!(scaled(86_400 * s, 365.0 / 3.0), Some(10_512_000_000_000_000));
        assert_eq!(scaled(86_400 * s, 200_000.123_456_789), None, "547 years");
    }
}
