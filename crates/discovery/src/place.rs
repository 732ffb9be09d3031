//! Places in a text: lines and columns of its offsets.

use std::fmt;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl Place {
    /// Where every text begins.
    pub(crate) const START: Place = Place { line: 1, column: 1 };
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Finds places in a text. It goes on from where it was, so that many ascending offsets cost one pass.
pub(crate) struct Places<'a> {
    text: &'a str,
    offset: usize,
    place: Place,
}

impl<'a> Places<'a> {
    pub(crate) fn new(text: &'a str) -> Places<'a> {
        Places { text, offset: 0, place: Place::START }
    }

    /// Finds the place of the character that this byte belongs to; of the end for a greater offset.
    pub(crate) fn find(&mut self, offset: usize) -> Place {
        let offset = self.text.floor_char_boundary(offset);
        if offset < self.offset {
            *self = Places::new(self.text);
        }
        let passed = &self.text[self.offset..offset];
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        match passed.rfind('\n') {
            Some(last) => {
                let lines = passed.bytes().filter(|b| *b == b'\n').count();
                self.place.line += u32::try_from(lines).unwrap_or(u32::MAX);
                self.place.column = 1 + count(&passed[last + 1..]);
            }
            None => self.place.column += count(passed),
        }
        self.offset = offset;
        self.place
    }
}

/// The offset of a line's byte, both from 1.
pub(crate) fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = match line {
        0 | 1 => 0,
        _ => text.bytes().enumerate().filter(|(_, b)| *b == b'\n').nth(line - 2).map_or(0, |(i, _)| i + 1),
    };
    (start + column.saturating_sub(1)).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters_and_go_on_from_line_to_line() {
        let text = "a\u{e9}b\n\n\u{1f600}c";
        let mut places = Places::new(text);
        let mut find = |offset| places.find(offset).to_string();
        assert_eq!(["1:1", "1:2", "1:2", "1:3", "1:4", "2:1", "3:1"], [0, 1, 2, 3, 4, 5, 6].map(&mut find));
        assert_eq!(["3:1", "3:2", "3:3", "3:3", "1:2", "3:2"], [9, 10, 11, 99, 1, 10].map(&mut find));
        assert_eq!(
            [0, 3, 4, 5, 6, 11],
            [(1, 1), (1, 4), (1, 5), (2, 1), (3, 1), (3, 99)].map(|(l, c)| offset(text, l, c))
        );
    }
}
