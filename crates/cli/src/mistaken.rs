//! Files that are given where a topology is wanted, and are something else: a result, a table, a part.

use std::path::Path;

/// What weir writes, by its schema, and what reads it.
const SCHEMAS: [(&str, &str); 8] = [
    ("weir.sim/1", "a result of `weir sim`: `weir compare` reads it"),
    ("weir.part/1", "a part of a simulation (--shard): `weir merge` reads it"),
    ("weir.compare/1", "a result of `weir compare`: no command reads it"),
    ("weir.load/1", "a result of `weir load`: no command reads it"),
    ("weir.verify/1", "a result of `weir verify`: no command reads it"),
    ("weir.find/1", "a result of `weir find`: no command reads it"),
    ("weir.trace/1", "a trace of `weir sim`: Perfetto or a program of yours reads it"),
    ("weir.record/1", "a record of `weir verify`: `weir verify --replay` reads it"),
];

/// The bytes in which a schema must stand: it comes first.
const HEAD: usize = 200;

/// What a file is that is no topology, and what reads it, as a sentence; `None`: nothing that is known.
pub(crate) fn sentence(path: &Path, bytes: &[u8]) -> Option<String> {
    let what = kind(path, bytes)?;
    Some(format!("`{}` is {what}; a topology file or its plan (JSON) is wanted here", path.display()))
}

fn kind(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    let head = head.trim_start_matches('\u{feff}').trim_start();
    if bytes.starts_with(b"PAR1") {
        return Some("a Parquet file: weir reads data from CSV (`dist.empirical`, `traffic.trace`)");
    }
    if head.starts_with('{') {
        return SCHEMAS.iter().find(|(schema, _)| head.contains(&format!("\"{schema}\""))).map(|(_, is)| *is);
    }
    if head.to_ascii_lowercase().starts_with("<!doctype html") {
        return Some("a page: a browser shows it");
    }
    let named = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    (named || is_header(head.lines().next().unwrap_or_default()))
        .then_some("a table (CSV): a topology names it, as in `traffic.trace(\"file.csv\")` or `dist.empirical(\"file.csv\")`")
}

/// Whether a line is names with commas between them, which no topology begins with.
fn is_header(line: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim();
        // One pair of quotes: three begin a text of a topology.
        let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
    };
    line.contains(',') && line.split(',').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_topology_are_named() {
        let of =
            |path: &str, text: &str| kind(Path::new(path), text.as_bytes()).map(|is| is.split(':').next());
        assert_eq!(of("r.json", "{\n \"schema\": \"weir.sim/1\",\n"), Some(Some("a result of `weir sim`")));
        assert_eq!(
            of("s.json", "{\"schema\":\"weir.part/1\""),
            Some(Some("a part of a simulation (--shard)"))
        );
        assert_eq!(of("x", "PAR1\0"), Some(Some("a Parquet file")));
        assert_eq!(of("x", "arrival_s, \"path\"\n0.1,/\n"), Some(Some("a table (CSV)")));
        assert_eq!(of("page.html", "<!DOCTYPE html>"), Some(Some("a page")));
        for topology in
            ["a = server()\n", "# a, b\n", "{\"schema\":\"weir.plan/1\"", "\"\"\"a, b\"\"\"", "f(a, b)", ""]
        {
            assert_eq!(of("a.star", topology), None, "{topology}");
        }
    }
}
