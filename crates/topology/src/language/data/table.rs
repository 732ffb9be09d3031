//! The text of a CSV file (RFC 4180, read by the `csv` crate): a header, and rows of fields.

use csv::{Reader, ReaderBuilder, StringRecord, Terminator};
use std::io::{Chain, Read};

/// Text that is read after a file: a separate record, unless a quote is open at the file's end. The `csv` crate accepts
/// such a quote.
const SENTINEL: &[u8] = b"\n\"end";

/// A CSV file as text.
pub(super) struct Table<'a> {
    /// The names in its header.
    pub columns: Vec<String>,
    text: &'a str,
}

/// Reads the rows of a table, one after another.
pub(super) struct Rows<'a> {
    text: &'a str,
    reader: Reader<Chain<&'a [u8], &'static [u8]>>,
    record: StringRecord,
}

/// A row of a table.
pub(super) struct Row<'a> {
    /// The line of the file in which it begins; the first is 1.
    pub line: u64,
    record: &'a StringRecord,
}

impl<'a> Table<'a> {
    /// Reads a table from a file's bytes.
    ///
    /// # Errors
    /// It is not text, or has no header, or one that is malformed.
    pub fn parse(bytes: &'a [u8]) -> Result<Table<'a>, String> {
        let text =
            std::str::from_utf8(bytes).map_err(|e| format!("is not UTF-8 (at byte {})", e.valid_up_to()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows = Rows::new(text);
        let Some(header) = rows.read()? else {
            return Err("is empty: it needs a header and values".to_owned());
        };
        let name = |(at, name): (usize, &str)| header.field(at, name.trim()).map(str::to_owned);
        let columns = header.record.iter().enumerate().map(name).collect::<Result<_, _>>()?;
        Ok(Table { columns, text })
    }

    /// The rows below its header.
    pub fn rows(&self) -> Rows<'a> {
        let mut rows = Rows::new(self.text);
        // The header, which was read without an error before.
        let _ = rows.read();
        rows
    }

    /// The one column of that name, if there is any.
    ///
    /// # Errors
    /// There are several.
    pub fn column(&self, name: &str) -> Result<Option<usize>, String> {
        let mut found = (0..).zip(&self.columns).filter(|(_, c)| *c == name).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(format!("has several columns `{name}`: keep one")),
            (at, None) => Ok(at),
        }
    }
}

impl<'a> Rows<'a> {
    fn new(text: &'a str) -> Rows<'a> {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            // So that a record begins right behind the line break of the one before; fields lose a `\r` when they are
            // trimmed.
            .terminator(Terminator::Any(b'\n'))
            .from_reader(text.as_bytes().chain(SENTINEL));
        Rows { text, reader, record: StringRecord::new() }
    }

    /// The next row that is not blank; `None` at the end.
    ///
    /// # Errors
    /// A quote in it does not close.
    pub fn read(&mut self) -> Result<Option<Row<'_>>, String> {
        loop {
            let (from, line) = (self.reader.position().byte() as usize, self.reader.position().line());
            // The reader skips empty lines before a record.
            let rest = self.text.as_bytes().get(from..).unwrap_or_default();
            let empty = rest.iter().take_while(|b| **b == b'\n').count();
            if empty == rest.len() {
                return Ok(None);
            }
            let line = line + empty as u64;
            self.reader.read_record(&mut self.record).map_err(|e| format!("cannot be read: {e}"))?;
            let to = self.reader.position().byte() as usize;
            if to == self.text.len() + SENTINEL.len() {
                return Err(format!(
                    "has a quote that does not close in row {line}: close it, and double the quotes inside"
                ));
            }
            let is_blank = || self.text[from..to.min(self.text.len())].trim().is_empty();
            if self.record.len() > 1 || !is_blank() {
                return Ok(Some(Row { line, record: &self.record }));
            }
        }
    }
}

impl<'a> Row<'a> {
    /// The field in a column of that name.
    ///
    /// # Errors
    /// The row is too short, or the field's quotes are not its first character: they would be part of the value.
    pub fn field(&self, column: usize, name: &str) -> Result<&'a str, String> {
        let line = self.line;
        let whole = self.record.get(column).ok_or_else(|| format!("has no column `{name}` in row {line}"))?;
        let field = whole.trim();
        if field.starts_with('"') && !whole.starts_with('"') {
            return Err(format!("has a blank before the quotes in row {line}, column `{name}`: remove it"));
        }
        Ok(field)
    }
}

/// Shortened for a message, on one line.
pub(super) fn cut(text: &str) -> String {
    let mut cut = String::new();
    for c in text.chars().take(40) {
        if c.is_control() { cut.extend(c.escape_default()) } else { cut.push(c) }
    }
    cut
}
