//! Paths as a file may write them. Each check says what is wrong with one, and what to write instead.

use super::{is_escape, without_dots};
use crate::http::{InvalidWord, short};
use std::fmt::Write;
use weir_http1::{Limits, check_target};

/// The path of a request, perhaps with a query: what a target may be.
pub fn target(text: &str) -> Result<(), InvalidWord> {
    check(text, "")
}

/// A path to match: exact, or ending in `*`. One that no request can match is refused.
pub fn pattern(text: &str) -> Result<(), InvalidWord> {
    let (stem, star) = text.strip_suffix('*').map_or((text, ""), |stem| (stem, "*"));
    let shown = shown(text);
    if stem.contains('*') {
        return Err(InvalidWord::new(
            format!("\"{shown}\" is not a path to match: a `*` can only be at its end"),
            None,
        ));
    }
    if let Some((path, _)) = stem.split_once('?') {
        let why = format!("\"{shown}\" must not have a query: paths are matched without it");
        return Err(InvalidWord::new(why, Some(format!("write \"{}\"", short(path)))));
    }
    if text == "*" {
        return Ok(());
    }
    let cut = |stem: &str| matches!(stem.as_bytes(), [.., b'%'] | [.., b'%', _]);
    if !star.is_empty() && cut(stem) {
        let whole = stem.get(..stem.rfind('%').unwrap_or(0)).unwrap_or_default();
        let why = format!(
            "\"{shown}\" is not a path to match: its `*` splits a %XX, but a character matches as a \
                whole or not at all"
        );
        return Err(InvalidWord::new(
            why,
            Some(format!("write both digits before the `*`, or \"{}*\"", short(whole))),
        ));
    }
    check(stem, star)?;
    no_dots(stem, star, !star.is_empty())
}

/// The beginning of a path.
pub fn prefix(text: &str) -> Result<(), InvalidWord> {
    if text.contains(['?', '*']) {
        return Err(InvalidWord::new(
            format!("\"{}\": a path prefix has no `?` and no `*`", shown(text)),
            None,
        ));
    }
    if matches!(text.as_bytes(), [.., b'%'] | [.., b'%', _]) {
        let why = format!(
            "\"{}\" ends inside a %XX, but a character is replaced as a whole or not at all",
            shown(text)
        );
        return Err(InvalidWord::new(why, Some("write both digits, or leave it out".to_owned())));
    }
    check(text, "")?;
    no_dots(text, "", true)
}

/// A path as a target may have it; `star` is what was written behind it.
fn check(text: &str, star: &str) -> Result<(), InvalidWord> {
    let both = shown(&format!("{text}{star}"));
    if !text.starts_with('/') {
        let why = format!("\"{both}\" is not a path: a path begins with \"/\"");
        let rooted = encoded(&format!("/{text}"));
        return Err(InvalidWord::new(why, Some(format!("write \"{}{star}\"", short(&rooted)))));
    }
    if check_target(text.as_bytes(), Limits::TARGET).is_ok() {
        return Ok(());
    }
    let why =
        first_wrong(text).unwrap_or_else(|| format!("a request target has at most {} bytes", Limits::TARGET));
    let encoded = encoded(text);
    let help = (encoded != text).then(|| format!("write \"{}{star}\"", short(&encoded)));
    Err(InvalidWord::new(format!("\"{both}\" is not a path: {why}"), help))
}

/// No dot segment, plain or encoded; with `open` the last segment may go on, and is none yet.
fn no_dots(text: &str, star: &str, open: bool) -> Result<(), InvalidWord> {
    let Some(resolved) = without_dots(text, open) else { return Ok(()) };
    let both = shown(&format!("{text}{star}"));
    let why = format!("\"{both}\" has a segment `.` or `..`, which clients resolve before they send it");
    Err(InvalidWord::new(why, Some(format!("write \"{}{star}\"", short(&resolved)))))
}

/// The first character that is not allowed at its position.
fn first_wrong(text: &str) -> Option<String> {
    let (_, c, query) = characters(text).find(|(at, c, query)| !stands(text, *at, *c, *query))?;
    Some(match c {
        '%' => "a percent sign must be followed by two hexadecimal digits".to_owned(),
        ' ' => "a request target has no space".to_owned(),
        c if c.is_control() => "a request target has no control character".to_owned(),
        c => format!("a request target has no `{c}` in its {}", if query { "query" } else { "path" }),
    })
}

/// The text with every character that is not allowed at its position as %XX.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c, query) in characters(text) {
        if stands(text, at, c, query) {
            out.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing into a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// The characters, each with its position and whether it is in the query.
fn characters(text: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let query = text.find('?').unwrap_or(text.len());
    text.char_indices().map(move |(at, c)| (at, c, at > query))
}

/// Whether a target may have this character there.
fn stands(text: &str, at: usize, c: char, query: bool) -> bool {
    let alone = if query { format!("/?{c}") } else { format!("/{c}") };
    match c {
        '%' => is_escape(&text.as_bytes()[at..]),
        _ => check_target(alone.as_bytes(), alone.len()).is_ok(),
    }
}

/// A text for a message.
fn shown(text: &str) -> String {
    short(&text.escape_debug().to_string())
}
