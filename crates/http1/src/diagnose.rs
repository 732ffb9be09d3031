//! Why a head was not taken: a slow walk over it that names the first rule that it breaks.

use crate::byte::{is_token, is_value};
use crate::limits::Limits;
use crate::rule::{Id, Refusal, refuse};
use crate::seek::Seek;

/// Finds the error in a request head.
#[cold]
pub(crate) fn request_fault(head: &[u8], limits: &Limits) -> Refusal {
    if let Some(early) = Seek::early_fault(head, limits, true) {
        return early;
    }
    refuse(walk(head, |line| request_line(line, limits)).unwrap_or(Id::HeadUnfinished))
}

/// Finds the error in a response head.
#[cold]
pub(crate) fn response_fault(head: &[u8]) -> Refusal {
    refuse(walk(head, status_line).unwrap_or(Id::HeadUnfinished))
}

/// Finds the error in field lines that end with an empty one.
#[cold]
pub(crate) fn fields_fault(lines: &[u8]) -> Refusal {
    refuse(ends(lines).or_else(|| fields(lines)).unwrap_or(Id::HeadUnfinished))
}

fn walk(head: &[u8], first: impl Fn(&[u8]) -> Option<Id>) -> Option<Id> {
    if let Some(id) = ends(head) {
        return Some(id);
    }
    let (line, rest) = next_line(head)?;
    first(line).or_else(|| fields(rest))
}

/// A bare LF anywhere, which is seen before the head is whole; then a bare CR.
fn ends(head: &[u8]) -> Option<Id> {
    let mut bytes = head.iter().enumerate();
    if bytes.any(|(i, &b)| b == b'\n' && (i == 0 || head[i - 1] != b'\r')) {
        return Some(Id::BareLf);
    }
    let mut bytes = head.iter().enumerate();
    bytes.any(|(i, &b)| b == b'\r' && head.get(i + 1) != Some(&b'\n')).then_some(Id::BareCr)
}

fn next_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|w| w == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

fn request_line(line: &[u8], limits: &Limits) -> Option<Id> {
    let mut parts = line.split(|&b| b == b' ');
    let method = parts.next().unwrap_or_default();
    if method.len() > limits.max_method {
        return Some(Id::MethodTooLong);
    }
    if method.is_empty() || !method.iter().all(|&b| is_token(b)) {
        return Some(Id::MethodInvalid);
    }
    let (Some(target), Some(version), None) = (parts.next(), parts.next(), parts.next()) else {
        return Some(Id::RequestLine);
    };
    if target.is_empty() {
        return Some(Id::RequestLine);
    }
    match version {
        b"HTTP/1.0" | b"HTTP/1.1" => {}
        [b'H', b'T', b'T', b'P', b'/', a, b'.', b] if a.is_ascii_digit() && b.is_ascii_digit() => {
            return Some(Id::VersionUnknown);
        }
        _ => return Some(Id::VersionInvalid),
    }
    (!target.iter().all(|&b| crate::byte::is_uri(b))).then_some(Id::TargetBytes)
}

fn status_line(line: &[u8]) -> Option<Id> {
    let good = match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', b'1'..=b'9', b, c, rest @ ..] => {
            b.is_ascii_digit()
                && c.is_ascii_digit()
                && matches!(rest, [] | [b' ', ..])
                && rest.iter().all(|&b| is_value(b))
        }
        _ => false,
    };
    (!good).then_some(Id::StatusLine)
}

fn fields(mut rest: &[u8]) -> Option<Id> {
    while let Some((line, after)) = next_line(rest) {
        rest = after;
        if line.is_empty() {
            // The bytes that follow do not belong to a head.
            return None;
        }
        if matches!(line[0], b' ' | b'\t') {
            return Some(Id::Fold);
        }
        let Some(colon) = line.iter().position(|&b| b == b':') else { return Some(Id::NoColon) };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        match name {
            [] => return Some(Id::NameEmpty),
            [rest @ .., b' ' | b'\t'] if rest.iter().all(|&b| is_token(b)) => return Some(Id::NameSpace),
            _ if !name.iter().all(|&b| is_token(b)) => return Some(Id::NameInvalid),
            _ => {}
        }
        if !value.iter().all(|&b| is_value(b)) {
            return Some(Id::ValueInvalid);
        }
    }
    None
}
