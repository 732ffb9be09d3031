//! What a file expects, in the colours of its verdicts: a section of a page.

use crate::expected::Row;
use crate::page;
use std::io::{self, Write};

/// Writes the section, if the file expects anything.
pub(crate) fn write(rows: Vec<Row>, out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    page::section("Expectations", "What the file requires of its scenarios.", out)?;
    writeln!(
        out,
        "<div class=\"wide\" tabindex=\"0\">\n<table class=\"expected\">\n<thead><tr><th>scenario</th><th>expected</th><th></th><th class=\"n\">is</th></tr></thead>\n<tbody>"
    )?;
    for row in rows {
        let [scenario, expect, word, figure] = row.cells.map(|cell| crate::escaped(&cell));
        let why =
            row.reason.map_or_else(String::new, |why| format!("<small>{}</small>", crate::escaped(&why)));
        let class = match row.holds {
            Some(true) => "good",
            Some(false) => "bad",
            None => "warn",
        };
        writeln!(
            out,
            "<tr><td>{scenario}</td><td>{expect}</td><td class=\"{class}\"><b>{word}</b></td><td class=\"n\">{figure}{why}</td></tr>"
        )?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>\n</section>")
}
