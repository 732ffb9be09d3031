//! CSV files: a header, a column `duration_ns`, `_us`, `_ms` or `_s` (or `arrival_...`); in traces also what requests
//! were. Other columns are ignored.

mod rows;
mod table;

use crate::language::call::Call;
use crate::reading::read_regular;
pub(crate) use rows::Rows;
use std::path::PathBuf;
use std::sync::Arc;
use table::Table;
use weir_plan::DataFile;
use weir_plan::duration::whole_ns;
use weir_stats::Decimal;

/// No data file is larger than this, MiB.
const MOST_MIB: u64 = 256;

/// The name of a column of instants or durations.
#[derive(Clone, Copy)]
struct Column {
    /// Its name without the unit.
    name: &'static str,
    /// The meaning of one of its values.
    item: &'static str,
    ascends: bool,
    /// Whether a value between two ns is refused and not rounded: instants whose last digits are lost would fall
    /// together.
    is_exact: bool,
}

const DURATION: Column = Column { name: "duration", item: "a duration", ascends: false, is_exact: false };
const ARRIVAL: Column = Column { name: "arrival", item: "an instant", ascends: true, is_exact: true };

/// A trace: its instants, ns, and what its rows say of their requests, where they say anything.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub arrivals_ns: Arc<[u64]>,
    pub rows: Option<Arc<Rows>>,
}

/// The durations of a file named in a call, ns; findings where it cannot be read or is malformed.
pub(crate) fn durations(call: &mut Call<'_, '_, '_, '_>, path: &str) -> Option<Arc<[u64]>> {
    let key = beside(call, path);
    if let Some(values) = call.context.state.borrow().durations.get(&key) {
        return Some(values.clone());
    }
    let values: Arc<[u64]> = parsed(call, path, |table| values(table, DURATION))?.into();
    call.context.state.borrow_mut().durations.insert(key, values.clone());
    Some(values)
}

/// The trace of a file named in a call; findings where it cannot be read or is malformed.
pub(crate) fn trace(call: &mut Call<'_, '_, '_, '_>, path: &str) -> Option<Trace> {
    let key = beside(call, path);
    if let Some(trace) = call.context.state.borrow().traces.get(&key) {
        return Some(trace.clone());
    }
    let of = |table: &Table| {
        let arrivals_ns = values(table, ARRIVAL)?.into();
        Ok(Trace { arrivals_ns, rows: rows::parse(table)?.map(Arc::new) })
    };
    let trace = parsed(call, path, of)?;
    call.context.state.borrow_mut().traces.insert(key, trace.clone());
    Some(trace)
}

/// The content of a file named in a call.
fn parsed<T>(
    call: &mut Call<'_, '_, '_, '_>,
    path: &str,
    parse: impl Fn(&Table) -> Result<T, String>,
) -> Option<T> {
    let at = beside(call, path);
    let read = read_regular(&at, MOST_MIB)
        .and_then(|bytes| Ok((parse(&Table::parse(&bytes)?)?, blake3::hash(&bytes).to_hex().to_string())));
    match read {
        Ok((values, hash)) => {
            let file = DataFile { path: path.to_owned(), hash };
            let mut state = call.context.state.borrow_mut();
            if !state.data_files.contains(&file) {
                state.data_files.push(file);
            }
            state.files_read.insert(at);
            Some(values)
        }
        Err(why) => {
            let message = format!("the data file \"{path}\" {why}");
            if at.exists() {
                call.wrong(message);
            } else {
                call.wrong_but(message, "its path is relative to the folder of the file that names it");
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

/// The values of the column `duration_ns|us|ms|s` or `arrival_...`, in ns.
///
/// # Errors
/// The error, with row (the line of the file in which it begins) and column.
fn values(table: &Table, of: Column) -> Result<Vec<u64>, String> {
    let (column, each) = timed(table, of.name)?;
    let name = &table.columns[column];
    let mut values: Vec<u64> = Vec::new();
    let mut rows = table.rows();
    while let Some(row) = rows.read()? {
        let field = row.field(column, name)?;
        let row = row.line;
        let ns = ns_of(field, each, of).map_err(|why| {
            let quote = if field.parse::<f64>().is_ok() { "" } else { "\"" };
            format!("holds {quote}{}{quote} in row {row}, column `{name}`: {why}", table::cut(field))
        })?;
        if of.ascends && values.last().is_some_and(|before| *before > ns) {
            return Err(format!(
                "holds {} in row {row}, column `{name}`, which is before the instant above it: sort the \
                    rows by `{name}`",
                table::cut(field)
            ));
        }
        values.push(ns);
    }
    if values.is_empty() {
        return Err("has no values below its header: it needs at least one".to_owned());
    }
    Ok(values)
}

/// The ns of a field whose unit has `each` of them; never through a float, which lacks the digits of Unix time.
///
/// # Errors
/// Why it has none, in words.
fn ns_of(field: &str, each: i64, of: Column) -> Result<u64, String> {
    let range = || format!("{} must be finite, not negative and at most 292 years", of.item);
    // Of more digits than a decimal holds a float keeps those that can be a ns of a service time.
    let float = || field.parse::<f64>().ok().filter(|_| !of.is_exact).and_then(Decimal::shortest);
    let Some(number) = Decimal::parse(field).or_else(float) else {
        return Err(if field.parse::<f64>().is_ok() { range() } else { "it must be a number".to_owned() });
    };
    let is_negative = field.starts_with('-') && number.times(1) != Ok(0);
    let Some(rounded) = number.times_rounded(each).filter(|_| !is_negative) else { return Err(range()) };
    let ns = if of.is_exact { whole_ns(&number, each)? } else { rounded };
    u64::try_from(ns).map_err(|_| range())
}

/// The one column of that name with a unit, and how many ns that is.
fn timed(table: &Table, what: &str) -> Result<(usize, i64), String> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let matching =
        |name: &str| units.iter().find(|(u, _)| *name == format!("{what}_{u}")).map(|(_, each)| *each);
    let columns = &table.columns;
    let found: Vec<(usize, i64)> =
        columns.iter().enumerate().filter_map(|(i, c)| matching(c).map(|each| (i, each))).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] if columns.iter().any(|c| c == what) => Err(format!(
            "has a column `{what}` without a unit: call it `{what}_ms`, `{what}_s`, `{what}_us` or \
                `{what}_ns`"
        )),
        [] => Err(format!(
            "has no column `{what}_ms` (or `_s`, `_us`, `_ns`); its columns are {}",
            columns.iter().map(|name| table::cut(name)).collect::<Vec<_>>().join(", ")
        )),
        _ => Err(format!("has several columns `{what}_...`: keep one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], of: Column) -> Result<Vec<u64>, String> {
        values(&Table::parse(bytes)?, of)
    }

    #[test]
    fn columns_carry_their_unit() {
        assert_eq!(
            parse(b"path,duration_ms\n/a,1.5\n\"/b,c\",2\n", DURATION),
            Ok(vec![1_500_000, 2_000_000])
        );
        assert_eq!(parse(b"duration_s\r\n1\r\n", DURATION), Ok(vec![1_000_000_000]));
    }

    /// A float of today's Unix time is off by up to 120 ns.
    #[test]
    fn instants_are_exact_to_the_ns_or_refused() {
        let of = |field: &str| parse(format!("arrival_s\n{field}\n").as_bytes(), ARRIVAL);
        assert_eq!(of("1732600000.123456789"), Ok(vec![1_732_600_000_123_456_789]));
        assert_eq!(of("0.1234567890000"), Ok(vec![123_456_789]));
        assert_eq!(of("1.7326000001e9"), Ok(vec![1_732_600_000_100_000_000]));
        assert_eq!(of("0.30000000000000004"), Ok(vec![300_000_000]), "as programs print floats");
        let why = of("1732600000.1234567891").expect_err("a tenth of a ns");
        assert!(why.contains("row 2, column `arrival_s`: it is not a whole number of nanoseconds"), "{why}");
        assert!(of("0.0000000001").is_err());
    }

    /// A tool that divides writes more digits than there are ns, and a service time is no worse for half a ns.
    #[test]
    fn durations_are_rounded_to_the_ns() {
        let of = |text: &str| parse(format!("{text}\n").as_bytes(), DURATION);
        assert_eq!(of("duration_ns\n1.5\n2.5\n0.4999\n0"), Ok(vec![2, 3, 0, 0]), "halves up");
        assert_eq!(of("duration_ms\n0.1234567891"), Ok(vec![123_457]));
        let long = "0.1234567890123456789012345678901234567890123456789";
        assert_eq!(
            of(&format!("duration_s\n{long}")),
            Ok(vec![123_456_789]),
            "more digits than a decimal has"
        );
        assert_eq!(of("duration_s\n1e-12"), Ok(vec![0]));
        assert!(
            of("duration_s\n1e10").is_err()
                && of("duration_ns\n-0.2").is_err()
                && of("duration_s\ninf").is_err()
        );
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
            let why = parse(text.as_bytes(), DURATION).expect_err(text);
            assert!(why.contains(part), "{text:?}: {why}");
        }
        assert!(parse(b"\xff", DURATION).is_err());
    }

    #[test]
    fn instants_ascend() {
        let of = |text: &str| parse(text.as_bytes(), ARRIVAL);
        assert_eq!(of("arrival_s\n0\n0.5\n0.5\n"), Ok(vec![0, 500_000_000, 500_000_000]));
        assert_eq!(of("path,arrival_s,key,size\n/,1,a,9\n"), Ok(vec![1_000_000_000]));
        let why = of("arrival_ns\n7\n5\n").expect_err("descends");
        assert!(why.contains("row 3") && why.contains("sort the rows"), "{why}");
    }
}
