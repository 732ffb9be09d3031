//! Pages whose tables are written by tests.

use crate::shared::figures::{Estimate, root};
use std::fmt::Write as _;
use std::fs;

/// A markdown table, its first row the heading.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: Vec<[String; N]>) -> String {
    let mut text = format!("| {} |\n|{}\n", heading.join(" | "), "---|".repeat(N));
    for row in rows {
        writeln!(text, "| {} |", row.join(" | ")).expect("a string takes all");
    }
    text
}

/// With half of its interval: whole numbers, or tenths where the half is less than one. Hardly any half is left out.
pub(crate) fn shown(e: Estimate) -> String {
    match e.half {
        half if half < 0.05 && e.value < 100.0 => format!("{:.1}", e.value),
        half if half < 0.05 => format!("{:.0}", e.value),
        half if half < 1.0 => format!("{:.1} ±{half:.1}", e.value),
        half => format!("{:.0} ±{half:.0}", e.value),
    }
}

/// In lines of at most 120 characters.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("one at least");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > 120 {
            lines.push(word.to_owned());
        } else {
            *last += if last.is_empty() { "" } else { " " };
            *last += word;
        }
    }
    lines.join("\n") + "\n"
}

/// Whether one is certainly lower than the other, certainly higher, or neither.
pub(crate) fn lower(a: Estimate, b: Estimate) -> Option<bool> {
    match () {
        () if a.value + a.half < b.value - b.half => Some(true),
        () if a.value - a.half > b.value + b.half => Some(false),
        () => None,
    }
}

/// `text` stands between the marks of that name in the file.
#[track_caller]
pub(crate) fn stands(path: &str, name: &str, text: &str) {
    let page = fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mark = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("{path} has no {mark}"));
    let (then, after) =
        rest.split_once("<!-- end -->\n").unwrap_or_else(|| panic!("{path}: {name} has no end"));
    if then == text {
        return;
    }
    assert!(std::env::var_os("UPDATE").is_some(), "{path} is old (UPDATE=1 accepts the new); now:\n{text}");
    fs::write(root().join(path), format!("{before}{mark}{text}<!-- end -->\n{after}"))
        .expect("the page can be written");
}
