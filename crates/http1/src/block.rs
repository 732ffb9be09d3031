//! Field lines and the bytes that they lie in.

use crate::name::{Name, Names};

/// One field line, by offsets into its block's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Where the name begins.
    pub(crate) name: u32,
    /// Where it ends: at the colon.
    pub(crate) colon: u32,
    /// Where the trimmed value begins and ends.
    pub(crate) value: u32,
    pub(crate) value_end: u32,
    /// Behind the line's CR LF.
    pub(crate) end: u32,
    pub(crate) known: Name,
    /// `Name: value` with one space and nothing behind: may be copied unchanged.
    pub(crate) canonical: bool,
    /// It ends here: Connection names it, or [`crate::check_request`] has taken it out.
    pub(crate) ends_here: bool,
    /// It came as never to be indexed ([`crate::SensitiveNames`]).
    pub(crate) is_sensitive: bool,
}

/// Bytes and lines that are kept for the next head.
const KEPT_BYTES: usize = 8 * 1024;
const KEPT_LINES: usize = 128;

/// A head's bytes and its field lines.
#[derive(Default, Debug, Clone)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lines: Vec<Line>,
    /// The known names that occur.
    pub(crate) seen: Names,
}

impl Block {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.lines.clear();
        self.seen = Names::default();
    }

    /// Frees a buffer that is larger than most heads need.
    pub(crate) fn trim(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES || self.lines.capacity() > KEPT_LINES {
            *self = Block::default();
        }
    }

    /// The bytes between two offsets; empty if there are none.
    pub(crate) fn slice(&self, from: u32, to: u32) -> &[u8] {
        self.bytes.get(from as usize..to as usize).unwrap_or_default()
    }

    pub(crate) fn name(&self, line: &Line) -> &[u8] {
        self.slice(line.name, line.colon)
    }

    pub(crate) fn value(&self, line: &Line) -> &[u8] {
        self.slice(line.value, line.value_end)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines.iter().map(|l| (self.name(l), self.value(l)))
    }

    /// The first value of this name, in any case.
    pub(crate) fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
    }

    /// All values of a known name, in order.
    pub(crate) fn known(&self, name: Name) -> impl DoubleEndedIterator<Item = &[u8]> {
        let lines = if self.seen.has(name) { &self.lines[..] } else { &[] };
        lines.iter().filter(move |l| l.known == name).map(|l| self.value(l))
    }

    /// All values of a known name that go on, in order.
    pub(crate) fn passing(&self, name: Name) -> impl DoubleEndedIterator<Item = &[u8]> {
        let lines = if self.seen.has(name) { &self.lines[..] } else { &[] };
        lines.iter().filter(move |l| l.known == name && !l.ends_here).map(|l| self.value(l))
    }

    /// Takes the lines with these names out of the message; they can still be read by [`Block::known`].
    pub(crate) fn end(&mut self, names: Names) {
        if self.seen.meets(names) {
            self.lines.iter_mut().filter(|l| names.has(l.known)).for_each(|l| l.ends_here = true);
        }
    }

    /// Whether any value of this name has the token in its list.
    pub(crate) fn has_token(&self, name: Name, token: &[u8]) -> bool {
        self.known(name).any(|v| crate::byte::elements(v).any(|e| e.eq_ignore_ascii_case(token)))
    }
}

impl Block {
    /// Whether Connection has this field's name among its options.
    pub(crate) fn has_token_of(&self, field: &[u8]) -> bool {
        self.has_token(Name::Connection, field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_not_kept() {
        let of = |bytes: usize, lines: usize| Block {
            bytes: Vec::with_capacity(bytes),
            lines: Vec::with_capacity(lines),
            seen: Names::default(),
        };
        let kept = |mut block: Block| {
            block.trim();
            (block.bytes.capacity(), block.lines.capacity())
        };
        assert_eq!(kept(of(KEPT_BYTES, KEPT_LINES)), (KEPT_BYTES, KEPT_LINES));
        assert_eq!(kept(of(KEPT_BYTES + 1, 1)), (0, 0));
        assert_eq!(kept(of(1, KEPT_LINES + 1)), (0, 0));
    }
}
