//! Prose: words of a dialect, counted per thousand words of comments; each may have a share, since all have a use
//! somewhere.

use super::Source;
use proc_macro2::{TokenStream, TokenTree};
use std::ops::Range;

/// A group of words that is counted.
pub(super) struct Pattern {
    pub(super) name: &'static str,
    /// Sequences of words, each word by its alternatives.
    sequences: &'static [&'static [&'static [&'static str]]],
}

/// What is counted. Quinn, h2, pingora, ripgrep, linkerd2-proxy and rust-analyzer have 0.0 to 0.2 of each.
pub(super) const PATTERNS: &[Pattern] = &[
    Pattern { name: "whoever|whatever", sequences: &[&[&["whoever", "whatever"]]] },
    Pattern { name: "nobody|somebody", sequences: &[&[&["nobody", "somebody"]]] },
    Pattern { name: "who|whom", sequences: &[&[&["who", "whom"]]] },
    Pattern { name: "so many|so long", sequences: &[&[&["so"], &["many", "long"]]] },
    Pattern {
        name: "is told|tells of",
        sequences: &[&[&["is", "are", "was", "were", "been"], &["told"]], &[&["tell", "tells"], &["of"]]],
    },
    Pattern { name: "stands", sequences: &[&[&["stand", "stands", "stood"]]] },
];

/// The most of each pattern that comments may have, per ten thousand words.
pub(super) const MOST_PER_10_000: usize = 3;

/// A word of a comment, in lower case.
pub(super) struct Word {
    pub(super) line: usize,
    text: String,
}

impl Pattern {
    /// The lines on which it occurs. Sequences may go over the end of a line.
    pub(super) fn lines(&self, words: &[Word]) -> Vec<usize> {
        let occurs = |from: usize| {
            self.sequences.iter().any(|sequence| {
                words.get(from..from + sequence.len()).is_some_and(|words| {
                    words.iter().zip(*sequence).all(|(word, any)| any.contains(&word.text.as_str()))
                })
            })
        };
        (0..words.len()).filter(|i| occurs(*i)).map(|i| words[i].line).collect()
    }
}

/// The words of all `//` comments of a file, documentation included.
pub(super) fn words(file: &Source) -> Vec<Word> {
    let literals = literals(&file.text);
    let mut words = Vec::new();
    let mut start = 0;
    for (i, line) in file.text.split_inclusive('\n').enumerate() {
        let is_literal = |slash: usize| literals.iter().any(|l| l.contains(&(start + slash)));
        if let Some((slash, _)) = line.match_indices("//").find(|(slash, _)| !is_literal(*slash)) {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let found =
                line[slash..].split(|c| !is_word(c)).filter(|word| word.contains(char::is_alphabetic));
            words.extend(found.map(|word| Word { line: i + 1, text: word.to_lowercase() }));
        }
        start += line.len();
    }
    words
}

/// The words in the comments of these files, and how often each pattern occurs.
pub(super) fn count(files: &[Source]) -> (usize, Vec<usize>) {
    let mut total = 0;
    let mut counts = vec![0; PATTERNS.len()];
    for file in files {
        let words = words(file);
        total += words.len();
        for (count, pattern) in counts.iter_mut().zip(PATTERNS) {
            *count += pattern.lines(&words).len();
        }
    }
    (total, counts)
}

/// Where a source has literals, which contain no comments.
fn literals(text: &str) -> Vec<Range<usize>> {
    fn collect(stream: TokenStream, text: &str, found: &mut Vec<Range<usize>>) {
        for token in stream {
            match token {
                TokenTree::Group(group) => collect(group.stream(), text, found),
                TokenTree::Literal(literal) => {
                    let range = literal.span().byte_range();
                    // A comment of documentation is a literal as well.
                    if !text.get(range.clone()).is_some_and(|t| t.starts_with('/')) {
                        found.push(range);
                    }
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    // What cannot be parsed is reported with the names.
    collect(text.parse().unwrap_or_default(), text, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pattern: usize, text: &str) -> Vec<usize> {
        PATTERNS[pattern].lines(&words(&Source { path: "a.rs".into(), text: text.into() }))
    }

    #[test]
    fn words_are_counted_in_comments_only() {
        let text =
            "//! Whoever asks.\nlet nobody = \"http://who\"; // a whoever, WHATEVER\n/// whatever\nfn f() {}";
        assert_eq!(lines(0, text), [1, 2, 2, 3]);
        assert_eq!(lines(1, text), [0; 0]);
        assert_eq!(lines(2, text), [0; 0]);
        assert_eq!(lines(2, "let a = r#\"\n// who\n\"#; // to whom?\n"), [3]);
        assert_eq!(
            words(&Source { path: "a.rs".into(), text: "/// Waits 3 `ns`.\nfn f() {}".into() }).len(),
            2
        );
    }

    #[test]
    fn sequences_go_over_the_end_of_a_line() {
        assert_eq!(lines(3, "// so\n// long, and so many, so much\n"), [1, 2]);
        assert_eq!(lines(4, "// it is told; they tell of it; it tells that\n"), [1, 1]);
    }
}
