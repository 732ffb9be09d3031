//! A request target: its form, its bytes and the authority in it (RFC 9112 §3.2).

use crate::byte::{PERCENT, QUERY, QUERY_ONLY, class, is_uri};
use crate::host::{percents, split};
use crate::rule::{Id, Refusal, refuse};

/// A target's parts, by offsets from its beginning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The authority of an absolute-form or of CONNECT.
    pub(crate) authority: Option<(usize, usize)>,
    /// Where path and query begin, which are forwarded.
    pub(crate) path: usize,
    /// Where the path ends: at `?` or at the target's end.
    pub(crate) path_end: usize,
    /// The forwarded target needs a prefix: `http://h?q` means `/?q`, `OPTIONS http://h` means `*`.
    pub(crate) lacks: &'static [u8],
}

/// Reads the target of a request with this method. All its bytes are allowed in one; `classes` is the union of their
/// classes.
pub(crate) fn read(method: &[u8], target: &[u8], classes: u8) -> Result<Target, Refusal> {
    let form = || refuse(Id::TargetForm);
    if method == b"CONNECT" {
        if !matches!(split(target), Some((_, Some([_, ..])))) {
            return Err(form());
        }
        return Ok(Target {
            authority: Some((0, target.len())),
            path: 0,
            path_end: target.len(),
            lacks: b"",
        });
    }
    if target == b"*" {
        if method != b"OPTIONS" {
            return Err(form());
        }
        return Ok(Target { authority: None, path: 0, path_end: 1, lacks: b"" });
    }
    let (authority, path) = if target.first() == Some(&b'/') { (None, 0) } else { absolute(target)? };
    let rest = &target[path..];
    if classes & PERCENT != 0 && !percents(rest) {
        return Err(refuse(Id::TargetPercent));
    }
    let query = if classes & QUERY != 0 { rest.iter().position(|&b| b == b'?') } else { None };
    let path_end = path + query.unwrap_or(rest.len());
    if classes & QUERY_ONLY != 0 && target[path..path_end].iter().any(|&b| class(b) & QUERY_ONLY != 0) {
        return Err(refuse(Id::TargetBytes));
    }
    let lacks: &[u8] = match rest.first() {
        Some(b'/') => b"",
        None if method == b"OPTIONS" => b"*",
        _ => b"/",
    };
    Ok(Target { authority, path, path_end, lacks })
}

/// Whether a request may have this path and query as its target: the rules of [`crate::Request::parse`], for what a
/// file says or a rewrite makes. `most`: bytes at most.
pub fn check_target(target: &[u8], most: usize) -> Result<(), Refusal> {
    if target.len() > most {
        return Err(refuse(Id::TargetTooLong));
    }
    if target.first() != Some(&b'/') {
        return Err(refuse(Id::TargetForm));
    }
    let classes = target.iter().fold(0, |any, &b| any | class(b));
    if !target.iter().all(|&b| is_uri(b)) {
        return Err(refuse(Id::TargetBytes));
    }
    read(b"GET", target, classes).map(|_| ())
}

/// The authority of an absolute-form, and where its path begins.
fn absolute(target: &[u8]) -> Result<(Option<(usize, usize)>, usize), Refusal> {
    let begin = [&b"http://"[..], b"https://"]
        .iter()
        .find(|s| target.get(..s.len()).is_some_and(|t| t.eq_ignore_ascii_case(s)))
        .map(|s| s.len())
        .ok_or_else(|| refuse(Id::TargetForm))?;
    let rest = &target[begin..];
    let end = begin + rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    if split(&target[begin..end]).is_none() {
        return Err(refuse(Id::HostInvalid));
    }
    Ok((Some((begin, end)), end))
}

/// Whether a path has an encoded NUL, CR or LF: nothing that a path means, but what ends strings and lines behind weir.
pub(crate) fn has_encoded_control(path: &[u8]) -> bool {
    let mut rest = path;
    while let Some(i) = rest.iter().position(|&b| b == b'%') {
        if let Some([b'0', b'0' | b'd' | b'D' | b'a' | b'A']) = rest.get(i + 1..i + 3) {
            return true;
        }
        rest = &rest[i + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(method: &str, target: &str) -> Result<Target, Refusal> {
        let classes = target.bytes().fold(0, |any, b| any | crate::byte::class(b));
        read(method.as_bytes(), target.as_bytes(), classes)
    }

    fn name(method: &str, target: &str) -> &'static str {
        read_all(method, target).map_or_else(|r| r.0.name, |_| "ok")
    }

    #[test]
    fn forms() {
        for (method, target, verdict) in [
            ("GET", "/", "ok"),
            ("GET", "/a?b?c", "ok"),
            ("GET", "*", "target-form"),
            ("OPTIONS", "*", "ok"),
            ("OPTIONS", "*x", "target-form"),
            ("GET", "?x", "target-form"),
            ("GET", "", "target-form"),
            ("GET", "a", "target-form"),
            ("GET", "/%4", "target-percent"),
            ("GET", "/%", "target-percent"),
            ("GET", "/?x=%zz", "target-percent"),
            ("GET", "http://h", "ok"),
            ("GET", "HTTPS://h:1/x", "ok"),
            ("GET", "ftp://h/", "target-form"),
            ("GET", "http://", "host-invalid"),
            ("GET", "http://u@h/", "host-invalid"),
            ("GET", "http:///x", "host-invalid"),
            ("GET", "/[a]|b^c?[d]|e^f{g}\\`", "ok"),
            ("GET", "/a?{b", "ok"),
            ("GET", "/{a}?b", "target-bytes"),
            ("GET", "/a`b", "target-bytes"),
            ("GET", "/a\\b", "target-bytes"),
            ("GET", "http://h/{a}", "target-bytes"),
            ("GET", "http://h?{a}", "ok"),
            ("GET", "http://h|x/", "host-invalid"),
            ("GET", "http://{h}/", "host-invalid"),
            ("CONNECT", "h|x:443", "target-form"),
            ("CONNECT", "h:443", "ok"),
            ("CONNECT", "h", "target-form"),
            ("CONNECT", "h:", "target-form"),
            ("CONNECT", "/", "target-form"),
            ("CONNECT", "http://h:1/", "target-form"),
        ] {
            assert_eq!(name(method, target), verdict, "{method} {target}");
        }
    }

    #[test]
    fn what_a_file_says_is_judged_as_what_a_client_sends() {
        let name = |target: &[u8]| check_target(target, 9).map_or_else(|r| r.0.name, |()| "ok");
        for (target, verdict) in [
            ("/a|b?{c}", "ok"),
            ("/{a}", "target-bytes"),
            ("/\u{e9}", "target-bytes"),
            ("/a b", "target-bytes"),
            ("/a?#", "target-bytes"),
            ("/%zz", "target-percent"),
            ("/a?%4", "target-percent"),
            ("a", "target-form"),
            ("*", "target-form"),
            ("", "target-form"),
            ("http://h", "target-form"),
            ("/123456789", "target-too-long"),
        ] {
            assert_eq!(name(target.as_bytes()), verdict, "{target}");
        }
    }

    #[test]
    fn parts() {
        let t = read_all("GET", "http://h:1/p?q?r").unwrap();
        assert_eq!((t.authority, t.path, t.path_end, t.lacks), (Some((7, 10)), 10, 12, &b""[..]));
        assert_eq!(read_all("GET", "http://h?q").unwrap().lacks, b"/");
        assert_eq!(read_all("GET", "http://h").unwrap().lacks, b"/");
        assert_eq!(read_all("OPTIONS", "http://h").unwrap().lacks, b"*");
    }
}
