//! Fields after a chunked body (RFC 9110 §6.5).

use crate::block::{Block, Line};
use crate::limits::Limits;
use crate::name::{NO_TRAILER, Name};
use crate::rule::Refusal;
use crate::sensitive::SensitiveNames;
use crate::split;

/// The trailers of a body, as they came.
#[derive(Default, Debug, Clone)]
pub struct Trailers {
    block: Block,
}

/// Fields that mean something only before a body: how to read it, or whether to.
const NEVER: [&str; 20] = [
    "content-encoding",
    "content-type",
    "content-range",
    "content-location",
    "cache-control",
    "age",
    "expires",
    "vary",
    "location",
    "retry-after",
    "warning",
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    "authentication-info",
    "cookie2",
    "set-cookie2",
];

impl Trailers {
    /// No trailers.
    pub(crate) const NONE: &'static Trailers = &Trailers {
        block: Block { bytes: Vec::new(), lines: Vec::new(), seen: crate::name::Names::new(&[]) },
    };

    /// All fields in order, including those that are not forwarded.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.block.fields()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.block.lines.is_empty()
    }

    /// Appends a field, for bodies that came by another protocol. `name` and `value` must be valid already.
    /// `is_sensitive`: it came as never to be indexed.
    pub fn push(&mut self, name: &[u8], value: &[u8], is_sensitive: bool) {
        let from = self.block.bytes.len() as u32;
        crate::write::field(&mut self.block.bytes, name, value);
        let (colon, end) = (from + name.len() as u32, self.block.bytes.len() as u32);
        let known = crate::name::classify(name).0;
        self.block.seen.add(known);
        let line = Line {
            name: from,
            colon,
            value: colon + 2,
            value_end: end - 2,
            end,
            known,
            canonical: true,
            ends_here: false,
            is_sensitive,
        };
        self.block.lines.push(line);
    }

    /// Which fields are never to be indexed.
    pub fn sensitive_names(&self) -> SensitiveNames<'_> {
        SensitiveNames::of_lines(&self.block)
    }

    /// The fields that may go on: none of framing, routing, credentials or cookies, nothing that forwards, and nothing
    /// that `named` says is of one hop (RFC 9110 §6.5.1).
    pub fn passed_on(&self, named: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.block
            .lines
            .iter()
            .filter(|l| l.known == Name::Other || !NO_TRAILER.has(l.known))
            .map(|l| (self.block.name(l), self.block.value(l)))
            .filter(move |(name, _)| {
                !NEVER.iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes())) && !named(name)
            })
    }

    /// Reads trailer lines, the blank one included.
    pub(crate) fn read(&mut self, lines: &[u8], limits: &Limits) -> Result<(), Refusal> {
        split::trailers(lines, limits, &mut self.block)
    }
}
