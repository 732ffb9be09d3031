//! What every page has around it: style, script, and nothing from elsewhere.

use crate::table::escaped;
use std::io::{self, Write};

/// The beginning, up to the heading.
pub(crate) fn begin(title: &str, heading: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{} · weir</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<h1>{}</h1>",
        escaped(title),
        include_str!("style.css"),
        crate::graph::STYLE,
        escaped(heading)
    )
}

/// The end. `signature`: what the page was made from.
pub(crate) fn end(signature: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<footer>{}</footer>\n<script>\n{}</script>\n</body>\n</html>",
        escaped(signature),
        include_str!("page.js")
    )
}

/// The warnings, before everything else.
pub(crate) fn warning(text: &str, of: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<p class=\"warning\">{} <span class=\"note\">{}</span></p>", escaped(text), escaped(of))
}

/// Where a section begins.
pub(crate) fn section(heading: &str, note: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section>\n<h2>{}</h2>", escaped(heading))?;
    if note.is_empty() { Ok(()) } else { writeln!(out, "<p class=\"note\">{}</p>", escaped(note)) }
}
