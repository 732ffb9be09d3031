//! Files that freeze an output. `UPDATE=1 cargo test` accepts the new one; read the difference as carefully as code.
//!
//! Neither `expect-test` nor `insta` fits: the files are pages, pictures and results that are read as they are, without
//! a header of a library's own, and one variable updates all of them.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Tests of one process may rewrite different sections of one page.
static WRITING: Mutex<()> = Mutex::new(());

/// Whether the tests run with `UPDATE=1`, and so accept what has changed.
pub fn is_updating() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// Asserts that the file holds `text`.
///
/// # Panics
/// If it does not and `UPDATE` is not set, or if the file cannot be written.
#[track_caller]
pub fn assert_frozen(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    let frozen = fs::read_to_string(path).unwrap_or_default();
    if frozen == text {
        return;
    }
    if is_updating() {
        return fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let differs = |(_, (now, was)): &(usize, (&str, &str))| now != was;
    let ends = ["the end"];
    let lines = |text| str::lines(text).chain(ends);
    let first = lines(text).zip(lines(&frozen)).enumerate().find(differs);
    let (line, (now, was)) = first.map_or((0, ("", "")), |(i, pair)| (i + 1, pair));
    panic!(
        "{}:{line}: the output has changed (UPDATE=1 accepts it)\nis:  {now}\nwas: {was}\nall of it:\n{text}",
        path.display()
    );
}

/// Asserts that `text` is what the page has between `<!-- NAME -->` and the next `<!-- end -->`.
///
/// # Panics
/// If it is not and `UPDATE` is not set, or if the page has no such section.
#[track_caller]
pub fn assert_section(path: impl AsRef<Path>, name: &str, text: &str) {
    let path = path.as_ref();
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let page = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mark = format!("<!-- {name} -->\n");
    let section = page.split_once(&mark).and_then(|(before, rest)| {
        let (_, after) = rest.split_once("<!-- end -->\n")?;
        Some(format!("{before}{mark}{text}<!-- end -->\n{after}"))
    });
    let page = section.unwrap_or_else(|| panic!("{}: there is no section {name}", path.display()));
    assert_frozen(path, &page);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn the_first_line_that_differs_is_reported() {
        if is_updating() {
            return;
        }
        let path = std::env::temp_dir().join(format!("weir-testkit-{}", std::process::id()));
        fs::write(&path, "a\n<!-- b -->\nc\n<!-- end -->\nd\n").unwrap();
        assert_section(&path, "b", "c\n");
        let message = |test: &(dyn Fn() + std::panic::RefUnwindSafe)| -> String {
            *catch_unwind(test).expect_err("a panic").downcast().expect("a message")
        };
        let changed = message(&|| assert_section(&path, "b", "e\n"));
        assert!(
            changed.contains(":3: the output has changed") && changed.contains("is:  e\nwas: c"),
            "{changed}"
        );
        let longer = message(&|| assert_frozen(&path, "a\n"));
        assert!(longer.contains("is:  the end\nwas: <!-- b -->"), "{longer}");
        assert!(message(&|| assert_section(&path, "x", "")).contains("no section x"));
        fs::remove_file(path).unwrap();
    }
}
