//! An encoder with lists for its tables.

use super::naive::{Code, Line, Pair, integer, size};
use weir_http2::Policy;

const HIDDEN: &[&str] = &["authorization", "proxy-authorization"];
const SINGLE: &[&str] = &[
    ":path",
    "age",
    "content-length",
    "content-location",
    "content-range",
    "date",
    "etag",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "range",
    "retry-after",
    "set-cookie",
];

/// Whether no table may have the field.
pub fn is_hidden(line: &Line) -> bool {
    let (name, value, is_sensitive) = line;
    let is_among = |names: &[&str]| names.iter().any(|n| n.as_bytes() == name);
    *is_sensitive || is_among(HIDDEN) || name == b"cookie" && value.len() < 20
}

pub struct NaiveEncoder<'a> {
    policy: Policy,
    code: &'a Code,
    fixed: &'a [Pair],
    /// The newest first.
    recent: Vec<Pair>,
    /// The last 32 fields that the table did not have.
    once: Vec<Pair>,
    limits: Vec<u32>,
    agreed: u32,
}

impl<'a> NaiveEncoder<'a> {
    pub fn new(policy: Policy, code: &'a Code, fixed: &'a [Pair]) -> NaiveEncoder<'a> {
        let (recent, once, limits) = Default::default();
        NaiveEncoder { policy, code, fixed, recent, once, limits, agreed: 4096 }
    }

    pub fn set_limit(&mut self, bytes: u32) {
        self.limits.push(bytes);
    }

    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let most = u32::from(self.policy.capacity);
        let (Some(&lowest), Some(&last)) = (self.limits.iter().min(), self.limits.last()) else { return };
        let mut sizes = Vec::new();
        if lowest < self.agreed {
            sizes.push(lowest.min(most));
        }
        let agreed = sizes.last().copied().unwrap_or(self.agreed);
        if last.min(most) > agreed {
            sizes.push(last.min(most));
        }
        for size in sizes {
            integer(size as usize, 0x20, 5, out);
            self.agreed = size;
            self.evict();
        }
        self.limits.clear();
    }

    fn capacity(&self) -> usize {
        self.agreed.min(self.policy.capacity.into()) as usize
    }

    fn evict(&mut self) {
        while size(&self.recent) > self.capacity() {
            self.recent.pop();
        }
    }

    pub fn encode(&mut self, line: &Line, out: &mut Vec<u8>) {
        let pair = (line.0.clone(), line.1.clone());
        let named = |table: &[Pair]| table.iter().position(|(name, _)| *name == pair.0);
        let fixed_name = named(self.fixed).map(|i| i + 1);
        let index = fixed_name.or_else(|| Some(named(&self.recent)? + 62)).unwrap_or(0);
        if is_hidden(line) {
            return self.write_literal(0x10, 4, fixed_name.unwrap_or(0), &pair, out);
        }
        // Values that are empty are not values of the static table (appendix A).
        let equal = |table: &[Pair]| table.iter().position(|known| *known == pair);
        if let Some(i) = equal(self.fixed).filter(|_| !pair.1.is_empty()) {
            return integer(i + 1, 0x80, 7, out);
        }
        if SINGLE.iter().any(|name| name.as_bytes() == pair.0) {
            return self.write_literal(0, 4, index, &pair, out);
        }
        if let Some(i) = equal(&self.recent) {
            return integer(i + 62, 0x80, 7, out);
        }
        if size(std::slice::from_ref(&pair)) > self.capacity() / 4 * 3 {
            return self.write_literal(0, 4, index, &pair, out);
        }
        if !self.once.contains(&pair) {
            self.write_literal(0, 4, index, &pair, out);
            self.once.insert(0, pair);
            self.once.truncate(32);
            return;
        }
        self.write_literal(0x40, 6, index, &pair, out);
        self.recent.insert(0, pair);
        self.evict();
    }

    fn write_literal(&self, pattern: u8, prefix: u32, index: usize, pair: &Pair, out: &mut Vec<u8>) {
        let (name, value) = pair;
        integer(index, pattern, prefix, out);
        let strings = if index == 0 { vec![name, value] } else { vec![value] };
        for string in strings {
            let coded = self.code.encode(string);
            let is_coded = self.policy.is_huffman && coded.len() < string.len();
            let bytes = if is_coded { &coded } else { string };
            integer(bytes.len(), if is_coded { 0x80 } else { 0 }, 7, out);
            out.extend_from_slice(bytes);
        }
    }
}
