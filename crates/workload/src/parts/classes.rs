//! Latencies by class, in as few bytes as they need: what is kept of each of up to 10,000 parts of a run.
//!
//! Latencies of 2^7 neighbouring numbers form a class, so one is 0.8 % wide at most. Most classes of a part hold one
//! latency, and lie close to the next one: distance and number take a byte each.

use serde::{Deserialize, Serialize};
use weir_stats::samples_needed;

/// Latencies of 2^DIGITS neighbouring numbers form a class.
const DIGITS: u32 = 7;
/// Classes have numbers below this power of two.
pub(super) const BITS: u32 = 13;

/// The class of a latency.
pub(super) fn class_of(ns: u64) -> u32 {
    let shift = (64 - ns.leading_zeros()).saturating_sub(DIGITS + 1);
    (shift << DIGITS) + (ns >> shift) as u32
}

/// The least of a class, ns, and how many values it spans.
fn bounds_of(class: u32) -> (u64, u64) {
    let shift = (class >> DIGITS).saturating_sub(1);
    (u64::from(class - (shift << DIGITS)) << shift, 1 << shift)
}

/// How many latencies each class has, ascending: the distance to the class before, and the number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes(Vec<u8>);

/// Writes a number, seven bits a byte, the lowest first.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 1 << 7 {
        bytes.push(number as u8 | 1 << 7);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number; one that is cut off ends there.
fn take(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let byte = bytes.next()?;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte < 1 << 7 {
            return Some(number);
        }
    }
}

impl Classes {
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let (mut bytes, mut class) = (self.0.iter().copied(), 0u32);
        std::iter::from_fn(move || {
            class = class.wrapping_add(take(&mut bytes)? as u32);
            Some((class, take(&mut bytes)?))
        })
    }

    /// Adds classes with their numbers, ascending; `room` is used for the result meanwhile.
    pub fn add(&mut self, more: impl Iterator<Item = (u32, u64)>, room: &mut Vec<u8>) {
        room.clear();
        let (mut last, mut own, mut more) = (0, self.iter().peekable(), more.peekable());
        loop {
            let (class, number) = match (own.peek().copied(), more.peek().copied()) {
                (Some(a), Some(b)) if a.0 == b.0 => {
                    own.next();
                    more.next();
                    (a.0, a.1 + b.1)
                }
                (Some(a), Some(b)) if a.0 > b.0 => more.next().unwrap_or(b),
                (Some(a), _) => own.next().unwrap_or(a),
                (None, Some(b)) => more.next().unwrap_or(b),
                (None, None) => break,
            };
            put(room, u64::from(class - last));
            put(room, number);
            last = class;
        }
        drop(own);
        // No room to grow: there are as many of these as parts.
        self.0 = room.as_slice().to_vec();
    }

    /// Adds all of another.
    pub fn join(&mut self, more: &Classes, room: &mut Vec<u8>) {
        if self.0.is_empty() {
            self.0.clone_from(&more.0);
        } else if !more.0.is_empty() {
            self.add(more.iter(), room);
        }
    }

    /// Ascending quantiles of latencies of which these are the least and the greatest, ns, interpolated between order
    /// statistics; `None` where fewer than ten lie beyond.
    pub fn quantiles<const N: usize>(&self, ascending: [f64; N], least: u64, most: u64) -> [Option<f64>; N] {
        let total: u64 = self.iter().map(|(_, n)| n).sum();
        let (mut classes, mut below) = (self.iter().peekable(), 0);
        // The members of a class are spread evenly, between the true extremes.
        let mut order = |k: u64| {
            while let Some(&(class, n)) = classes.peek() {
                if below + n > k {
                    let (low, span) = bounds_of(class);
                    let within = if span == 1 { 0.0 } else { ((k - below) as f64 + 0.5) / n as f64 };
                    return (low as f64 + within * span as f64).clamp(least as f64, most as f64);
                }
                below += n;
                classes.next();
            }
            most as f64
        };
        ascending.map(|q| {
            if total < samples_needed(q) {
                return None;
            }
            // The next rank is that of the lower one at most, but for a quantile so near that it does not matter.
            let rank = q * (total - 1) as f64;
            let a = order(rank as u64);
            let part = rank.fract();
            Some(if part > 0.0 { a + (order(rank as u64 + 1) - a) * part } else { a })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::{Histogram, Key};

    fn classify(latencies: &[u64]) -> Classes {
        let (mut sorted, mut room) = (latencies.to_vec(), Vec::new());
        sorted.sort_unstable();
        let mut classes = Classes::default();
        let equal = sorted.chunk_by(|a, b| class_of(*a) == class_of(*b));
        classes.add(equal.map(|equal| (class_of(equal[0]), equal.len() as u64)), &mut room);
        classes
    }

    #[test]
    fn every_latency_has_a_class_below_the_last() {
        for ns in [0, 1, 127, 128, 255, 256, 1_000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let (low, span) = bounds_of(class_of(ns));
            assert!(low <= ns && ns - low < span, "{ns}");
            assert!(span == 1 || span as f64 <= low as f64 / 128.0, "{ns}");
            assert!(class_of(ns) < 1 << BITS);
        }
    }

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, 1 << 20, u64::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|n| put(&mut bytes, *n));
        let mut bytes = bytes.into_iter();
        assert_eq!(numbers.map(|_| take(&mut bytes)), numbers.map(Some));
        assert_eq!(take(&mut [0x80].into_iter()), None);
    }

    /// Within the width of a class of what a histogram twenty times as fine gives, and the same in any order.
    #[test]
    fn quantiles_are_those_of_a_histogram() {
        let mut fine = Histogram::new();
        let all: Vec<u64> = (0..30_000u64)
            .map(|i| (-weir_stats::math::ln(Key::new(4).nth(i).unit()) * 1e8) as u64)
            .inspect(|ns| fine.record(*ns))
            .collect();
        let (least, most) = (fine.min().unwrap(), fine.max().unwrap());
        let whole = classify(&all);
        let (mut parts, mut room) = (classify(&all[20_000..]), Vec::new());
        parts.join(&classify(&all[..20_000]), &mut room);
        let asked = [0.5, 0.95, 0.99, 0.999];
        assert_eq!(whole.quantiles(asked, least, most), parts.quantiles(asked, least, most));
        for (q, got) in asked.into_iter().zip(whole.quantiles(asked, least, most)) {
            let (got, want) = (got.unwrap(), fine.quantile(q).unwrap());
            assert!((got / want - 1.0).abs() < 0.008, "{q}: {got} {want}");
        }
    }

    #[test]
    fn equal_latencies_are_exact_and_too_few_are_unknown() {
        let classes = classify(&[10_000_001; 999]);
        let quantiles = classes.quantiles([0.5, 0.99], 10_000_001, 10_000_001);
        assert_eq!(quantiles, [Some(10_000_001.0), None]);
        assert_eq!(Classes::default().quantiles([0.5], u64::MAX, 0), [None]);
    }
}
