//! Where spans are in the text, for many of them: of spans on one line, each is counted on from the one before, and only as much
//! of the line is kept as a message shows. A generated file is one line, so to count from its beginning would cost the square.

use super::load_argument::as_written;
use super::to_u32;
use starlark::codemap::{CodeMapId, FileSpan, Pos};
use weir_plan::diagnostic::{Excerpt, Location};

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
    /// Where that span began, in bytes and characters.
    byte: usize,
    column: usize,
}

impl Locator {
    /// The place of a span.
    pub(crate) fn locate(&mut self, span: &FileSpan) -> Location {
        let (begin, end) = (span.span.begin(), span.span.end());
        let number = span.file.find_line(begin);
        let line_span = span.file.line_span(number);
        // With its end, where a span may be as well.
        let line = span.file.source_span(line_span);
        let (begin, end) = (offset(line_span.begin(), begin), offset(line_span.begin(), end));
        let column = self.column(span.file.id(), number, line, begin);
        let text = line.trim_end();
        let excerpt = Excerpt::around(text, begin.min(text.len())..end.min(text.len()));
        Location {
            file: span.filename().to_owned(),
            line: to_u32(number + 1),
            column: to_u32(column + 1),
            // A span that ends on a later line is marked to the end of this one.
            excerpt: excerpt.shown_as(|part| {
                #[cfg(test)]
                (self.counted += part.chars().count());
                as_written(part)
            }),
        }
    }

    /// The characters of a line before one of its bytes.
    fn column(&mut self, file: CodeMapId, number: usize, text: &str, begin: usize) -> usize {
        let last = self.line.take().filter(|line| (line.file, line.number) == (file, number));
        let mut line = last.unwrap_or(Line { file, number, byte: 0, column: 0 });
        let between = text.get(begin.min(line.byte)..begin.max(line.byte)).unwrap_or_default();
        let moved = between.chars().count();
        #[cfg(test)]
        (self.counted += moved);
        line.column = if begin < line.byte { line.column - moved } else { line.column + moved };
        line.byte = begin;
        self.line.insert(line).column
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

    /// As starlark resolves a span.
    fn resolved(span: &FileSpan) -> Location {
        let at = span.resolve_span();
        let line = span.file.source_line(at.begin.line).trim_end();
        let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let end = if at.end.line == at.begin.line { byte(at.end.column) } else { line.len() };
        Location {
            file: span.filename().to_owned(),
            line: to_u32(at.begin.line + 1),
            column: to_u32(at.begin.column + 1),
            excerpt: Excerpt::around(line, byte(at.begin.column)..end),
        }
    }

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
                assert_eq!(locator.locate(&span), resolved(&span), "{begin}..{end}");
            }
        }
    }

    /// Of a long line each character is counted once, not once for each span.
    #[test]
    fn a_line_of_many_spans_is_read_once() {
        let call = "server(\"a\"), ";
        let map = CodeMap::new("t".to_owned(), call.repeat(1_000));
        let mut locator = Locator::default();
        for at in (0..1_000).map(|i| (i * call.len()) as u32) {
            locator.locate(&map.file_span(Span::new(Pos::new(at), Pos::new(at + 11))));
        }
        // And what is shown of it, once for each.
        assert!(locator.counted <= (call.len() + 160) * 1_000, "{}", locator.counted);
    }
}
