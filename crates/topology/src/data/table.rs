//! The text of a CSV file: a header, and rows of fields, which are copied only where quotes make it necessary.

use std::borrow::Cow;

/// A CSV file as text.
pub(super) struct Table<'a> {
    /// The names in its header.
    pub columns: Vec<String>,
    lines: Vec<(usize, &'a str)>,
}

impl<'a> Table<'a> {
    /// Of a file's bytes.
    ///
    /// # Errors
    /// It is no text, or empty.
    pub fn of(bytes: &'a [u8]) -> Result<Table<'a>, String> {
        let text =
            std::str::from_utf8(bytes).map_err(|e| format!("is not UTF-8 (at byte {})", e.valid_up_to()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty());
        let Some((_, header)) = lines.next() else {
            return Err("is empty: a header and values are wanted".to_owned());
        };
        let columns = fields(header).iter().map(|f| f.trim().to_owned()).collect();
        Ok(Table { columns, lines: lines.collect() })
    }

    /// Its rows by their number, the header's being 1, with their fields.
    pub fn rows(&self) -> impl Iterator<Item = (usize, Vec<Cow<'a, str>>)> {
        self.lines.iter().map(|(row, line)| (*row, fields(line)))
    }

    /// The one column of that name, if there is any.
    ///
    /// # Errors
    /// There are several.
    pub fn column(&self, name: &str) -> Result<Option<usize>, String> {
        let mut found = (0..).zip(&self.columns).filter(|(_, c)| *c == name).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(format!("has several columns `{name}`: one is wanted")),
            (at, None) => Ok(at),
        }
    }
}

/// A field of a row.
///
/// # Errors
/// The row is too short.
pub(super) fn field<'a>(
    all: &'a [Cow<'_, str>],
    column: usize,
    name: &str,
    row: usize,
) -> Result<&'a str, String> {
    all.get(column).map(|f| f.trim()).ok_or_else(|| format!("has no column `{name}` in row {row}"))
}

/// Shortened for a message.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The fields of a line; quotes may hold commas, and a doubled quote stands for one.
fn fields(line: &str) -> Vec<Cow<'_, str>> {
    if !line.contains('"') {
        return line.split(',').map(Cow::Borrowed).collect();
    }
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let last = fields.len() - 1;
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields[last].push(c),
        }
    }
    fields.into_iter().map(Cow::Owned).collect()
}
