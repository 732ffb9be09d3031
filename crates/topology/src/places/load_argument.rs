//! The argument `load=` of a call, although `load` is a keyword of Starlark.
//!
//! The parser refuses the keyword where an argument's name should be, before any function could say what it means. So it
//! reads a name of the same length in its place, at the same offsets: every location stays, and where a line of the text
//! is shown the keyword is put back. What is left alone: `load("file.star", ...)` itself, strings and comments, the
//! parameters of a `def`, and the calls of `dict` and `struct`, whose keys are names of the file's own.

/// The keyword that is an argument's name.
const KEYWORD: &str = "load";
/// What the parser reads in its place; as long as that.
const STAND_IN: &str = "lo_d";
const _: () = assert!(KEYWORD.len() == STAND_IN.len());

/// The text as the parser is to read it.
pub(crate) fn readable(text: &str) -> String {
    let mut out = text.to_owned();
    if text.contains(KEYWORD) {
        for at in arguments(text) {
            out.replace_range(at..at + KEYWORD.len(), STAND_IN);
        }
    }
    out
}

/// A part of the text as its author wrote it.
pub(crate) fn as_written(part: &str) -> String {
    part.replace(STAND_IN, KEYWORD)
}

/// The name of an argument as its author wrote it.
pub(crate) fn argument_name(name: &str) -> &str {
    if name == STAND_IN { KEYWORD } else { name }
}

/// A piece of the text that matters here.
#[derive(Clone, Copy, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Sign(u8),
    Text,
}

/// Where the keyword is the name of an argument in a call.
fn arguments(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    // For each open bracket: whether it is that of a call whose arguments have names.
    let mut open = Vec::new();
    let (mut before, mut last) = (None, None);
    let mut at = 0;
    while let Some((begin, token, end)) = next(text, at) {
        let in_call = open.last() == Some(&true);
        match token {
            Token::Sign(b'(') => open.push(is_call(before, last)),
            Token::Sign(b'[' | b'{') => open.push(false),
            Token::Sign(b')' | b']' | b'}') => _ = open.pop(),
            Token::Word(KEYWORD) if in_call && matches!(last, Some(Token::Sign(b'(' | b','))) => {
                let rest = text[end..].trim_start();
                if rest.starts_with('=') && !rest.starts_with("==") {
                    found.push(begin);
                }
            }
            _ => {}
        }
        (before, last) = (last, Some(token));
        at = end;
    }
    found
}

/// Whether a parenthesis behind these two tokens begins the arguments of a call.
fn is_call(before: Option<Token<'_>>, last: Option<Token<'_>>) -> bool {
    match last {
        // The statement, whose names are those of the other file.
        Some(Token::Word(KEYWORD)) => false,
        Some(Token::Word("dict" | "struct")) => before == Some(Token::Sign(b'.')),
        Some(Token::Word(_)) => before != Some(Token::Word("def")),
        Some(Token::Sign(sign)) => matches!(sign, b')' | b']'),
        Some(Token::Text) | None => false,
    }
}

/// The next token from an offset on, with where it begins and ends. Blanks and comments are skipped.
fn next(text: &str, mut at: usize) -> Option<(usize, Token<'_>, usize)> {
    let bytes = text.as_bytes();
    loop {
        match *bytes.get(at)? {
            b'#' => at += bytes[at..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - at),
            b if b.is_ascii_whitespace() => at += 1,
            b'"' | b'\'' => return Some((at, Token::Text, end_of_string(bytes, at))),
            b if is_of_word(b) => {
                let length = bytes[at..].iter().position(|b| !is_of_word(*b)).unwrap_or(bytes.len() - at);
                return Some((at, Token::Word(&text[at..at + length]), at + length));
            }
            sign => return Some((at, Token::Sign(sign), at + 1)),
        }
    }
}

/// Bytes of names and numbers; letters beyond ASCII are of no keyword.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The offset behind a string that begins here.
fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let quote = bytes[begin];
    let long = bytes[begin..].starts_with(&[quote; 3]);
    let close: &[u8] = if long { &[quote; 3] } else { &[quote] };
    let mut at = begin + close.len();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' if !long => return at,
            _ if bytes[at..].starts_with(close) => return at + close.len(),
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_alone_is_read_otherwise() {
        for (text, read) in [
            ("lb.zuul(apps, load=\"x\")", "lb.zuul(apps, lo_d=\"x\")"),
            ("f(load = 1, b = g(load=2))", "f(lo_d = 1, b = g(lo_d=2))"),
            ("f(\n  a,  # load=1, (\n  load\n  =1)", "f(\n  a,  # load=1, (\n  lo_d\n  =1)"),
            ("f([1, load], load=2)[0](load=3)", "f([1, load], lo_d=2)[0](lo_d=3)"),
            ("x.struct(load=1)", "x.struct(lo_d=1)"),
            ("f(\"é, (load=1\", '\\', load=1', load=2)", "f(\"é, (load=1\", '\\', load=1', lo_d=2)"),
            ("f(\"\"\"a\n\", load=1\"\"\", load=2)", "f(\"\"\"a\n\", load=1\"\"\", lo_d=2)"),
        ] {
            assert_eq!(readable(text), read);
            assert_eq!(as_written(read), text);
        }
        for same in [
            "load(\"a.star\", \"b\")",
            "load(\"a.star\", load=\"b\")",
            "def f(load=1): pass",
            "dict(load=1), struct(load=2)",
            "f(load == 1)",
            "f(payload=1, load_of=2)",
            "(load=1)",
            "f(a if load=1)",
            "f({load=1})",
            "\"(load=1",
            "f(load",
        ] {
            assert_eq!(readable(same), same);
        }
        assert_eq!((argument_name("lo_d"), argument_name("decay")), ("load", "decay"));
    }
}
