//! CSV files: a header, a column `duration_ns`, `_us`, `_ms` or `_s` (or `arrival_...`); other columns are ignored.

use crate::call::Call;
use crate::plan::DataFile;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No data file is larger than this.
const MOST_BYTES: u64 = 256 << 20;

/// What is read of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    /// `duration_...`, in any order.
    Duration,
    /// `arrival_...`, ascending.
    Arrival,
}

impl Column {
    /// Its name without the unit.
    fn name(self) -> &'static str {
        match self {
            Column::Duration => "duration",
            Column::Arrival => "arrival",
        }
    }

    /// What one of its values is.
    fn item(self) -> &'static str {
        match self {
            Column::Duration => "a duration",
            Column::Arrival => "an instant",
        }
    }
}

/// A column of a file named in a call, ns; findings where it cannot be read or is malformed.
pub(crate) fn column(call: &mut Call<'_, '_, '_, '_>, path: &str, column: Column) -> Option<Arc<[u64]>> {
    let key = (beside(call, path), column);
    if let Some(values) = call.context.state.borrow().data.get(&key) {
        return Some(values.clone());
    }
    let read = read(&key.0).and_then(|bytes| {
        let (values, unread) = parse(&bytes, column)?;
        Ok((values, unread, blake3::hash(&bytes).to_hex().to_string()))
    });
    match read {
        Ok((values, unread, hash)) => {
            if !unread.is_empty() {
                call.warn(
                    format!("{} not read yet (\"{path}\"): requests are as `traffic.mix` says", said(&unread)),
                    "leave them out, or describe the requests, as in `traffic.mix(traffic.trace(...), [(1, request(path=\"/\"))])`",
                );
            }
            let values: Arc<[u64]> = values.into();
            let mut state = call.context.state.borrow_mut();
            state.data.insert(key, values.clone());
            let file = DataFile { path: path.to_owned(), hash };
            if !state.data_files.contains(&file) {
                state.data_files.push(file);
            }
            Some(values)
        }
        Err(why) => {
            let message = format!("the data file \"{path}\" {why}");
            if key.0.exists() {
                call.wrong(message);
            } else {
                call.wrong_but(message, "its path begins in the folder of the file that names it");
            }
            None
        }
    }
}

/// A path as the file that names it means it: from its folder on.
pub(crate) fn beside(call: &Call<'_, '_, '_, '_>, path: &str) -> PathBuf {
    let state = call.context.state.borrow();
    let file = call.span().and_then(|s| state.files.get(s.file.id()).map(|f| f.folder.join(path)));
    file.unwrap_or_else(|| PathBuf::from(path))
}

/// Columns in words: `the column `path` is`.
fn said(columns: &[String]) -> String {
    let quoted: Vec<String> = columns.iter().map(|c| format!("`{c}`")).collect();
    match quoted.as_slice() {
        [one] => format!("the column {one} is"),
        several => format!("the columns {} are", several.join(", ")),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let wrong = |e: std::io::Error| format!("cannot be read: {}", plainly(&e));
    let meta = std::fs::metadata(path).map_err(wrong)?;
    if !meta.is_file() {
        return Err("is no regular file".to_owned());
    }
    if meta.len() > MOST_BYTES {
        return Err(format!("is larger than {} MiB", MOST_BYTES >> 20));
    }
    std::fs::read(path).map_err(wrong)
}

/// An error of the system without its number.
pub(crate) fn plainly(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// What a trace may say of its requests, and nobody reads yet.
const UNREAD: [&str; 3] = ["method", "path", "key"];

/// The values of the column `duration_ns|us|ms|s` or `arrival_...`, in ns; and the columns of a trace that are not read,
/// though the language has a meaning for them.
///
/// # Errors
/// What is wrong, with row (counted from 1, the header being row 1) and column.
fn parse(bytes: &[u8], of: Column) -> Result<(Vec<u64>, Vec<String>), String> {
    let what = of.name();
    let text =
        std::str::from_utf8(bytes).map_err(|e| format!("is not UTF-8 (at byte {})", e.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let Some((_, header)) = lines.next() else {
        return Err("is empty: a header and values are wanted".to_owned());
    };
    let columns: Vec<String> = fields(header).into_iter().map(|f| f.trim().to_owned()).collect();
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let matching =
        |name: &str| units.iter().find(|(u, _)| *name == format!("{what}_{u}")).map(|(_, each)| *each);
    let found: Vec<(usize, f64)> =
        columns.iter().enumerate().filter_map(|(i, c)| matching(c).map(|each| (i, each))).collect();
    let (column, each) = match found.as_slice() {
        [one] => *one,
        [] if columns.iter().any(|c| c == what) => {
            return Err(format!(
                "has a column `{what}` without a unit: call it `{what}_ms`, `{what}_s`, `{what}_us` or `{what}_ns`"
            ));
        }
        [] => {
            return Err(format!(
                "has no column `{what}_ms` (or `_s`, `_us`, `_ns`); its columns are {}",
                columns.join(", ")
            ));
        }
        _ => return Err(format!("has several columns `{what}_...`: one is wanted")),
    };
    let name = &columns[column];
    let mut values: Vec<u64> = Vec::new();
    for (i, line) in lines {
        let row = i + 1;
        let all = fields(line);
        let Some(field) = all.get(column).map(|f| f.trim()) else {
            return Err(format!("has no column `{name}` in row {row}"));
        };
        let number: f64 = field.parse().map_err(|_| {
            format!("holds \"{}\" in row {row}, column `{name}`: a number is wanted", cut(field))
        })?;
        let ns = (number * each).round();
        if !number.is_finite() || number < 0.0 || ns > 9.2e18 {
            return Err(format!(
                "holds {} in row {row}, column `{name}`: {} must be finite, not negative and at most 292 years",
                cut(field),
                of.item()
            ));
        }
        let ns = ns as u64;
        if of == Column::Arrival && values.last().is_some_and(|before| *before > ns) {
            return Err(format!(
                "holds {} in row {row}, column `{name}`, which is before the instant above it: sort the rows by `{name}`",
                cut(field)
            ));
        }
        values.push(ns);
    }
    if values.is_empty() {
        return Err("has no values below its header: at least one is wanted".to_owned());
    }
    let unread = columns.into_iter().filter(|c| of == Column::Arrival && UNREAD.contains(&c.as_str()));
    Ok((values, unread.collect()))
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The fields of a line; quotes may hold commas, and a doubled quote stands for one.
fn fields(line: &str) -> Vec<String> {
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
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_carry_their_unit() {
        assert_eq!(
            parse(b"path,duration_ms\n/a,1.5\n\"/b,c\",2\n", Column::Duration),
            Ok((vec![1_500_000, 2_000_000], vec![]))
        );
        assert_eq!(parse(b"duration_s\r\n1\r\n", Column::Duration), Ok((vec![1_000_000_000], vec![])));
    }

    #[test]
    fn what_is_malformed_is_named() {
        for (text, part) in [
            ("", "empty"),
            ("duration\n1\n", "without a unit"),
            ("a,b\n1,2\n", "its columns are a, b"),
            ("duration_ms\n", "no values"),
            ("a,duration_ms\n1,x\n", "\"x\" in row 2, column `duration_ms`"),
            ("a,duration_ms\n1,2\n1\n", "row 3"),
            ("duration_ms\n-1\n", "row 2"),
            ("duration_ms\nnan\n", "row 2"),
            ("duration_ms,duration_s\n1,1\n", "several"),
        ] {
            let why = parse(text.as_bytes(), Column::Duration).expect_err(text);
            assert!(why.contains(part), "{text:?}: {why}");
        }
        assert!(parse(b"\xff", Column::Duration).is_err());
    }

    #[test]
    fn instants_ascend() {
        let of = |text: &str| parse(text.as_bytes(), Column::Arrival);
        assert_eq!(of("arrival_s\n0\n0.5\n0.5\n"), Ok((vec![0, 500_000_000, 500_000_000], vec![])));
        let unread = vec!["path".to_owned(), "key".to_owned()];
        assert_eq!(of("path,arrival_s,key,size\n/,1,a,9\n"), Ok((vec![1_000_000_000], unread)));
        let why = of("arrival_ns\n7\n5\n").expect_err("descends");
        assert!(why.contains("row 3") && why.contains("sort the rows"), "{why}");
    }
}
