//! Paths as they are compared and rewritten: one place for simulated requests, served ones and what a file says.
//!
//! Two paths are one if only their writing differs: an unreserved character as %XX or as itself, the digits of another
//! %XX in either case (RFC 3986 §6.2.2.1, §6.2.2.2). A plan holds a file's pattern in its normal form, that without
//! such %XX and with capitals; a request's path is compared as it came, without a copy, and is forwarded byte for byte.

use std::borrow::Cow;
use weir_http1::Limits;

pub mod written;

/// Brings a path into normal form. A percent sign without two digits, which no request has, stays.
pub fn normalised(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return Cow::Borrowed(path);
    }
    let (mut out, mut rest) = (Vec::with_capacity(path.len()), path);
    while let Some((character, after)) = first(rest) {
        out.extend_from_slice(character.bytes());
        rest = after;
    }
    Cow::Owned(out)
}

/// Whether a pattern in normal form matches a path: exactly, or up to a `*` at its end.
pub fn matches(pattern: &str, path: &[u8]) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => behind(stem, path).is_some(),
        None => behind(pattern, path).is_some_and(<[u8]>::is_empty),
    }
}

/// The rest of a target after a prefix in normal form, unchanged; `None`: the target begins otherwise.
pub fn behind<'a>(prefix: &str, target: &'a [u8]) -> Option<&'a [u8]> {
    let (mut prefix, mut rest) = (prefix.as_bytes(), target);
    while let Some((&wanted, more)) = prefix.split_first() {
        // Nearly all characters came as they are compared.
        match rest.split_first() {
            Some((&came, after)) if came == wanted && came != b'%' => (prefix, rest) = (more, after),
            Some((b'%', _)) => {
                let (character, after) = first(rest)?;
                prefix = prefix.strip_prefix(character.bytes())?;
                rest = after;
            }
            _ => return None,
        }
    }
    Some(rest)
}

/// The bytes of a path in normal form, without a copy, each with whether a character ends with it: a pattern matches
/// whole characters.
pub fn normal_bytes(path: &[u8]) -> impl Iterator<Item = (u8, bool)> {
    let mut rest = path;
    let characters = std::iter::from_fn(move || {
        let (character, after) = first(rest)?;
        rest = after;
        Some(character)
    });
    characters.flat_map(|c| (0..c.long).map(move |i| (c.bytes[i], i + 1 == c.long)))
}

/// Applies `rewrite(path=(from, to))` to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathRewrite {
    /// It begins differently, and stays unchanged.
    Same,
    /// The new path and query: a legal target, as `to` is one and what follows came in one.
    To(Vec<u8>),
    /// The new one would be longer than any target may be: 414 (RFC 9110 §15.5.15).
    TooLong,
}

/// Puts one prefix in the place of another; `from` is in normal form.
pub fn rewritten(from: &str, to: &str, target: &[u8]) -> PathRewrite {
    match behind(from, target) {
        None => PathRewrite::Same,
        Some(rest) if to.len() + rest.len() > Limits::TARGET => PathRewrite::TooLong,
        Some(rest) => PathRewrite::To([to.as_bytes(), rest].concat()),
    }
}

/// Removes dot segments, including encoded ones (RFC 3986 §5.2.4); `None`: it has none. With `open` its last segment
/// may go on, and is none yet.
pub fn without_dots(path: &str, open: bool) -> Option<String> {
    let path = normal(path);
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    let mut found = false;
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        if !matches!(segment, "." | "..") || last && open {
            kept.push(segment);
            continue;
        }
        found = true;
        if segment == ".." {
            kept.pop();
        }
        if last {
            kept.push("");
        }
    }
    found.then(|| format!("/{}", kept.join("/")))
}

/// A text in normal form.
pub fn normal(path: &str) -> String {
    // Only ASCII is decoded.
    String::from_utf8_lossy(&normalised(path.as_bytes())).into_owned()
}

/// A character of a path in its normal form.
struct Character {
    bytes: [u8; 3],
    long: usize,
}

impl Character {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.long]
    }
}

/// The first character, and what follows it.
fn first(path: &[u8]) -> Option<(Character, &[u8])> {
    let (&first, rest) = path.split_first()?;
    if first == b'%'
        && let Some((&[high, low], after)) = rest.split_first_chunk::<2>()
        && let Some(byte) = byte(high, low)
    {
        let character = match byte {
            b if is_unreserved(b) => Character { bytes: [b, 0, 0], long: 1 },
            _ => Character { bytes: [b'%', high.to_ascii_uppercase(), low.to_ascii_uppercase()], long: 3 },
        };
        return Some((character, after));
    }
    Some((Character { bytes: [first, 0, 0], long: 1 }, rest))
}

/// Whether a text begins with a %XX.
fn is_escape(text: &[u8]) -> bool {
    matches!(text, [b'%', high, low, ..] if byte(*high, *low).is_some())
}

/// The value of two hexadecimal digits.
fn byte(high: u8, low: u8) -> Option<u8> {
    let digit = |d: u8| char::from(d).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// RFC 3986 §2.3.
fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_forms() {
        for (path, want) in [
            ("/a/b", "/a/b"),
            ("/%7Ez%7e", "/~z~"),
            ("/%61%2Fb%2fc", "/a%2Fb%2Fc"),
            ("/caf%c3%A9", "/caf%C3%A9"),
            ("/%2e%2E/", "/../"),
            ("/%2561", "/%2561"),
            ("/%zz%4%", "/%zz%4%"),
            ("", ""),
        ] {
            assert_eq!(normal(path), want, "{path}");
            assert_eq!(normal(want), want, "a normal form stays");
            let bytes: Vec<u8> = normal_bytes(path.as_bytes()).map(|(byte, _)| byte).collect();
            assert_eq!(bytes, want.as_bytes(), "{path}");
        }
    }

    #[test]
    fn patterns_match_however_a_path_is_written() {
        for (pattern, path, fits) in [
            ("/~z", "/%7Ez", true),
            ("/~z", "/%7ez", true),
            ("/~z", "/~z", true),
            ("/~z", "/%7Ezz", false),
            ("/caf%C3%A9", "/caf%c3%a9", true),
            ("/caf%C3%A9", "/c%61f%C3%a9", true),
            ("/a%2Fb", "/a/b", false),
            ("/a/b", "/a%2Fb", false),
            ("/a*", "/%61bc", true),
            ("/a%C3*", "/a%c3%a9", true),
            ("/a%C*", "/a%c3%a9", false),
            ("/a/*", "/a", false),
            ("*", "*", true),
            ("*", "/", true),
            ("/a", "/a%", false),
            ("/a", "", false),
        ] {
            assert_eq!(matches(pattern, path.as_bytes()), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn a_prefix_gives_way_and_the_rest_stays_as_it_came() {
        let of = |target: &str| match rewritten("/~api/", "/", target.as_bytes()) {
            PathRewrite::To(made) => String::from_utf8(made).unwrap(),
            other => format!("{other:?}"),
        };
        assert_eq!(of("/~api/%7Ea%2fb?/~api/"), "/%7Ea%2fb?/~api/");
        assert_eq!(of("/%7eapi/x"), "/x");
        assert_eq!(of("/%7eapi%2fx"), "Same");
        assert_eq!(of("/~api?x"), "Same");
        assert_eq!(of("*"), "Same");
    }

    #[test]
    fn a_rewritten_target_keeps_the_limit() {
        let target = format!("/a/{}", "x".repeat(Limits::TARGET - 3));
        let of = |to: &str| rewritten("/a/", to, target.as_bytes());
        let PathRewrite::To(made) = of("/b/") else { panic!("it is as long as before") };
        assert_eq!(weir_http1::check_target(&made, Limits::TARGET), Ok(()));
        assert_eq!(of("/bb/"), PathRewrite::TooLong);
        assert_eq!(rewritten("/b/", "/bb/", target.as_bytes()), PathRewrite::Same);
    }

    #[test]
    fn dot_segments_are_known_however_they_are_written() {
        for (path, open, want) in [
            ("/a/../b", false, Some("/b")),
            ("/a/%2e%2E/b", false, Some("/b")),
            ("/./", false, Some("/")),
            ("/a/.", false, Some("/a/")),
            ("/a/..", false, Some("/")),
            ("/..", false, Some("/")),
            ("/a/..", true, None),
            ("/a/../", true, Some("/")),
            ("/a/.b/..c/...", false, None),
            ("/", false, None),
        ] {
            assert_eq!(without_dots(path, open).as_deref(), want, "{path}");
        }
    }
}
