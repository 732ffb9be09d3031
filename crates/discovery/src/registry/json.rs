//! What is wrong with JSON of a registry, in words and with the place. A parser's own words are those of a program,
//! and may hold any amount of the text: they are left out.

use crate::fault::FaultKind;
use serde_json::error::Category;

/// Why JSON of a registry is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) kind: FaultKind,
    /// What the text does, with the place: `ends too early, at its line 1 and column 9`.
    pub(super) words: String,
}

impl Flaw {
    /// The flaw that an error shows. `shape`: the words for valid JSON of another form, as "is no list of numbers".
    pub(super) fn new(e: &serde_json::Error, shape: &str) -> Flaw {
        let (kind, problem) = match e.classify() {
            Category::Eof => (FaultKind::Cut, "ends too early"),
            Category::Data => (FaultKind::Shape, shape),
            Category::Syntax | Category::Io => (FaultKind::Syntax, "is not JSON that can be read"),
        };
        Flaw { kind, words: format!("{problem}, at its line {} and column {}", e.line(), e.column()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flaw_has_a_place_and_no_words_of_the_text() {
        for (text, kind, words) in [
            ("[1,\n 2", FaultKind::Cut, "ends too early, at its line 2 and column 2"),
            ("[1,\n secret]", FaultKind::Syntax, "is not JSON that can be read, at its line 2 and column 2"),
            ("[1,\n \"secret\"]", FaultKind::Shape, "is no list of numbers, at its line 2 and column 9"),
        ] {
            let e = serde_json::from_str::<Vec<u8>>(text).expect_err(text);
            assert_eq!(Flaw::new(&e, "is no list of numbers"), Flaw { kind, words: words.to_owned() });
        }
    }
}
