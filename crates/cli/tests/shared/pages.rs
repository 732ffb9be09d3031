//! Pages whose tables are written by tests.

use crate::shared::figures::{Estimate, root};
use std::fmt::Write as _;

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

/// `text` is what the page has between the marks of that name; `path` is from the folder of the workspace.
#[track_caller]
pub(crate) fn assert_shown(path: &str, name: &str, text: &str) {
    weir_testkit::assert_section(root().join(path), name, text);
}
