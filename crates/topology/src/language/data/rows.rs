//! A trace's description of its requests, row by row: the columns `method`, `path`, `host`, `key` and `body` (bytes).
//! An empty field is as if the column were not there: GET, `/`, no host, a separate client, no body.

use super::table::{Table, cut};
use std::collections::HashMap;
use weir_plan::http::{self, InvalidWord};
use weir_plan::path;
use weir_plan::{Recording, RequestShape};

const COLUMNS: [&str; 5] = ["method", "path", "host", "key", "body"];

/// The requests of a trace.
#[derive(Debug, PartialEq)]
pub(crate) struct Rows {
    /// The distinct kinds, each weighted by how often it occurs.
    pub mix: Vec<RequestShape>,
    /// The kind and the key of each row.
    pub recorded: Recording,
}

/// The identity of a row's request.
#[derive(PartialEq, Eq, Hash)]
struct RequestKey {
    method: String,
    path: String,
    host: Option<String>,
    body_bytes: u64,
}

/// The requests of a table; `None` where it has none of the columns.
///
/// # Errors
/// The error, with row and column.
pub(super) fn parse(table: &Table) -> Result<Option<Rows>, String> {
    let mut at = [None; COLUMNS.len()];
    for (at, name) in at.iter_mut().zip(COLUMNS) {
        *at = table.column(name)?;
    }
    if at.iter().all(Option::is_none) {
        return Ok(None);
    }
    let (mut kinds, mut keys): (HashMap<RequestKey, u32>, HashMap<String, u32>) = <_>::default();
    // By the fields' text, so that most rows are neither checked nor copied. A field that holds a line break is refused
    // by its check, so a key here has exactly one for each field.
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut text = String::new();
    let mut rows = Rows { mix: Vec::new(), recorded: Recording::default() };
    let mut reader = table.rows();
    while let Some(row) = reader.read()? {
        let said = |i: usize| match at[i] {
            Some(column) => row.field(column, COLUMNS[i]).map(|f| Some(f).filter(|f| !f.is_empty())),
            None => Ok(None),
        };
        let says = [said(0)?, said(1)?, said(2)?, said(4)?];
        text.clear();
        says.iter().for_each(|part| text.extend([part.unwrap_or_default(), "\n"]));
        let kind = match known.get(&text) {
            Some(kind) => *kind,
            None => {
                let kind = *kinds.entry(request(row.line, says)?).or_insert_with_key(|same| {
                    rows.mix.push(shape(same));
                    rows.mix.len() as u32 - 1
                });
                known.insert(text.clone(), kind);
                kind
            }
        };
        rows.mix[kind as usize].weight += 1.0;
        rows.recorded.kinds.push(kind);
        if at[3].is_some() {
            let sender = said(3)?.map(|key| {
                keys.get(key).copied().unwrap_or_else(|| {
                    rows.recorded.keys.push(key.to_owned());
                    let new = rows.recorded.keys.len() as u32 - 1;
                    keys.insert(key.to_owned(), new);
                    new
                })
            });
            rows.recorded.senders.push(sender);
        }
    }
    Ok(Some(rows))
}

fn shape(key: &RequestKey) -> RequestShape {
    let (method, path, host) = (key.method.clone(), key.path.clone(), key.host.clone());
    RequestShape { weight: 0.0, method, path, host, body_bytes: key.body_bytes, ..RequestShape::plain() }
}

/// The request of a row, from its method, path, host and body.
fn request(row: u64, [method, path, host, body]: [Option<&str>; 4]) -> Result<RequestKey, String> {
    let plain = RequestShape::plain();
    let word = |name: &str, text: &str, check: fn(&str) -> Result<(), InvalidWord>| {
        check(text).map_err(|e| format!("is wrong in row {row}, column `{name}`: {e}"))
    };
    method.map_or(Ok(()), |text| word("method", text, http::method))?;
    path.map_or(Ok(()), |text| word("path", text, path::written::target))?;
    host.map_or(Ok(()), |text| word("host", text, http::host))?;
    let bytes = |text: &str| {
        let n = text.parse::<u64>().ok().filter(|n| i64::try_from(*n).is_ok());
        n.ok_or_else(|| {
            format!("holds \"{}\" in row {row}, column `body`: it must be a whole number of bytes", cut(text))
        })
    };
    Ok(RequestKey {
        method: method.map_or(plain.method, str::to_owned),
        path: path.map_or(plain.path, str::to_owned),
        host: host.map(|h| h.strip_suffix('.').unwrap_or(h).to_ascii_lowercase()),
        body_bytes: body.map_or(Ok(0), bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Option<Rows>, String> {
        super::parse(&Table::parse(bytes)?)
    }

    #[test]
    fn rows_are_told_apart_by_all_they_say() {
        let text = "arrival_s,method,path,host,key,body\n0,,,,,\n1,POST,/a,Example.com.,ann,9\n2,GET,/,,bob,0\n3,POST,/a,example.com,ann,9\n";
        let rows = parse(text.as_bytes()).expect("reads").expect("rows");
        let post = RequestShape {
            weight: 2.0,
            method: "POST".to_owned(),
            path: "/a".to_owned(),
            host: Some("example.com".to_owned()),
            body_bytes: 9,
            ..RequestShape::plain()
        };
        assert_eq!(rows.mix, [RequestShape { weight: 2.0, ..RequestShape::plain() }, post]);
        assert_eq!(rows.recorded.kinds, [0, 1, 0, 1]);
        assert_eq!(rows.recorded.keys, ["ann", "bob"]);
        assert_eq!(rows.recorded.senders, [None, Some(0), Some(1), Some(0)]);
        assert_eq!(parse(b"arrival_s,size\n0,1\n"), Ok(None));
        let keyless = parse(b"arrival_s,path\n0,/x\n").expect("reads").expect("rows");
        assert!(keyless.recorded.senders.is_empty());
    }

    #[test]
    fn quotes_hold_commas_quotes_and_lines() {
        let text = "\u{feff}arrival_s,\"key\",note\r\n0,\"a,b\",x\r\n\r\n1,\"a\r\nb\",y\r\n2,\"a\"\"b\",\"\n\n\"\n3,c";
        let rows = parse(text.as_bytes()).expect("reads").expect("rows");
        assert_eq!(rows.recorded.keys, ["a,b", "a\r\nb", "a\"b", "c"]);
        let ends_quoted = parse(b"arrival_s,key\n0,\"a\"").expect("reads").expect("rows");
        assert_eq!(ends_quoted.recorded.keys, ["a"]);
        let ends_in_a_line_break = parse(b"arrival_s,key\n0,\"a\n\"").expect("reads").expect("rows");
        assert_eq!(ends_in_a_line_break.recorded.keys, ["a"]);
    }

    #[test]
    fn what_is_malformed_is_named() {
        for (text, part) in [
            ("arrival_s,method\n0,get\n", "row 2, column `method`"),
            ("arrival_s,path\n0,/\n1,x\n", "row 3, column `path`"),
            ("arrival_s,host\n0,a:80\n", "without it"),
            ("arrival_s,body\n0,1.5\n", "whole number of bytes"),
            ("arrival_s,key,key\n0,a,b\n", "several columns `key`"),
            ("arrival_s,path\n0\n", "no column `path` in row 2"),
        ] {
            let why = parse(text.as_bytes()).expect_err(text);
            assert!(why.contains(part), "{text:?}: {why}");
        }
    }
}
