//! Where spans are in the text, for many of them: of spans on one line, each is counted on from the one before, and all share
//! the line. A generated file is one line, so to count from its beginning would cost the square.

use super::{at_of, to_u32};
use starlark::codemap::{CodeMapId, FileSpan, Pos};
use std::sync::Arc;
use weir_plan::diagnostic::Location;

/// Finds the places of spans.
#[derive(Default)]
pub(crate) struct Locator {
    line: Option<Line>,
    #[cfg(test)]
    counted: usize,
}

/// The line of the last span.
struct Line {
    file: CodeMapId,
    number: usize,
    text: Arc<str>,
    /// Where that span began, in bytes and characters.
    byte: usize,
    column: usize,
}

impl Locator {
    /// The place of a span.
    pub(crate) fn locate(&mut self, span: &FileSpan) -> Location {
        let (begin, end) = (span.span.begin(), span.span.end());
        let number = span.file.find_line(begin);
        let line_begin = span.file.line_span(number).begin();
        let (begin, end) = (offset(line_begin, begin), offset(line_begin, end));
        if self.line.as_ref().is_none_or(|line| (line.file, line.number) != (span.file.id(), number)) {
            let text = Arc::from(span.file.source_line(number).trim_end());
            self.line = Some(Line { file: span.file.id(), number, text, byte: 0, column: 0 });
        }
        let Some(line) = &mut self.line else { return at_of(span) };
        let (low, high) = (begin.min(line.byte), begin.max(line.byte));
        // A span that ends on a later line is marked to the end of this one.
        let ends_later = end > line.text.len() && span.file.find_line(span.span.end()) > number;
        let within = line.text.get(begin..if ends_later { line.text.len() } else { end });
        let (Some(between), Some(within)) = (line.text.get(low..high), within) else {
            return at_of(span);
        };
        #[cfg(test)]
        (self.counted += between.len() + within.len());
        let moved = between.chars().count();
        let column = if begin < line.byte { line.column - moved } else { line.column + moved };
        (line.byte, line.column) = (begin, column);
        Location {
            file: span.filename().to_owned(),
            line: to_u32(number + 1),
            column: to_u32(column + 1),
            end_column: to_u32(column + within.chars().count() + 1),
            snippet: line.text.clone(),
        }
    }
}

/// Bytes from one position to a later one.
fn offset(from: Pos, to: Pos) -> usize {
    to.get().saturating_sub(from.get()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use starlark::codemap::{CodeMap, Span};

    /// As resolved by starlark, for all spans in any order, also beyond the ends of lines.
    #[test]
    fn places_are_those_that_starlark_resolves() {
        let source = "f(ä, g(ö))\r\n\n  h(\n1)\nλ(λ(λ()))   \n";
        let map = CodeMap::new("t".to_owned(), source.to_owned());
        let at: Vec<usize> = source.char_indices().map(|(at, _)| at).chain([source.len()]).collect();
        let mut locator = Locator::default();
        for &end in &at {
            for &begin in at.iter().filter(|begin| **begin <= end) {
                let span = Span::new(Pos::new(begin as u32), Pos::new(end as u32));
                let span = map.file_span(span);
                assert_eq!(locator.locate(&span), at_of(&span), "{begin}..{end}");
            }
        }
    }

    /// Of a long line each character is counted a few times, not once for each span.
    #[test]
    fn a_line_of_many_spans_is_read_once() {
        let call = "server(\"a\"), ";
        let map = CodeMap::new("t".to_owned(), call.repeat(1_000));
        let mut locator = Locator::default();
        let mut texts = Vec::new();
        for at in (0..1_000).map(|i| (i * call.len()) as u32) {
            texts.push(locator.locate(&map.file_span(Span::new(Pos::new(at), Pos::new(at + 11)))).snippet);
        }
        assert!(locator.counted <= 2 * call.len() * 1_000, "{}", locator.counted);
        assert!(texts.iter().all(|text| Arc::ptr_eq(text, &texts[0])), "the line is there once");
    }
}
