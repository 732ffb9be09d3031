//! A head into its lines: one pass that takes the strict form and nothing else.
//!
//! A head that is not taken is walked again, slowly, by `diagnose`, which says why. Where values end is found eight
//! bytes at a time ([`crate::scan`]): they are most of a head.

use crate::block::{Block, Line};
use crate::byte::{URI, class, is_token};
use crate::diagnose::{fields_fault, request_fault, response_fault};
use crate::framing::Version;
use crate::limits::Limits;
use crate::name::{Name, classify};
use crate::rule::{Id, Refusal, refuse};
use crate::scan::{control, find};
use crate::seek::Seek;

/// A request line: method `..method`, then a space, then the target `method+1..target`.
pub(crate) struct RequestLine {
    pub(crate) method: usize,
    pub(crate) target: usize,
    /// The classes of all bytes of the target.
    pub(crate) classes: u8,
    pub(crate) version: Version,
}

/// A status line: the reason phrase lies at `12..reason`, with the space before it if there is one.
pub(crate) struct StatusLine {
    pub(crate) version: Version,
    pub(crate) status: u16,
    pub(crate) reason: usize,
}

/// Splits a whole request head; fills `block` with its bytes and lines.
pub(crate) fn request(head: &[u8], limits: &Limits, block: &mut Block) -> Result<RequestLine, Refusal> {
    check_size(head, limits)?;
    let (line, at) = request_line(head).ok_or_else(|| request_fault(head, limits))?;
    match take_lines(head, at, limits, block) {
        TakeResult::Whole(end) if end == head.len() => {}
        TakeResult::Whole(_) | TakeResult::Malformed => return Err(request_fault(head, limits)),
        TakeResult::TooMany => return Err(too_many(head, limits, true)),
        TakeResult::Aliased(_) => return Err(refuse(Id::NameAlias)),
    }
    block.bytes.extend_from_slice(head);
    Ok(line)
}

/// Splits the request head that `bytes` begin with, and says where it ends; `None`: there is none that is whole and
/// fine.
pub(crate) fn begun_request(
    bytes: &[u8],
    limits: &Limits,
    block: &mut Block,
) -> Option<(RequestLine, usize)> {
    let (line, at) = request_line(bytes)?;
    Some((line, begun(bytes, at, limits, block, false)?))
}

/// The same of a response head.
pub(crate) fn begun_response(
    bytes: &[u8],
    limits: &Limits,
    block: &mut Block,
) -> Option<(StatusLine, usize)> {
    let (line, at) = status_line(bytes)?;
    Some((line, begun(bytes, at, limits, block, true)?))
}

/// Where the head ends whose lines begin at `at`, if it is whole and fine; `aliases`: a name may be one.
fn begun(bytes: &[u8], at: usize, limits: &Limits, block: &mut Block, aliases: bool) -> Option<usize> {
    let end = match take_lines(bytes, at, limits, block) {
        TakeResult::Whole(end) => end,
        TakeResult::Aliased(end) if aliases => end,
        _ => return None,
    };
    let head = &bytes[..end];
    check_size(head, limits).ok()?;
    block.bytes.extend_from_slice(head);
    Some(end)
}

/// Splits a whole response head; fills `block` with its bytes and lines.
pub(crate) fn response(head: &[u8], limits: &Limits, block: &mut Block) -> Result<StatusLine, Refusal> {
    check_size(head, limits)?;
    let (line, at) = status_line(head).ok_or_else(|| response_fault(head))?;
    match take_lines(head, at, limits, block) {
        // Only origins read `_` as `-`: in responses such a name has no special meaning.
        TakeResult::Whole(end) | TakeResult::Aliased(end) if end == head.len() => {}
        TakeResult::Whole(_) | TakeResult::Aliased(_) | TakeResult::Malformed => {
            return Err(response_fault(head));
        }
        TakeResult::TooMany => return Err(too_many(head, limits, false)),
    }
    block.bytes.extend_from_slice(head);
    Ok(line)
}

/// Splits the lines of trailers, the blank line included; fills `block`.
pub(crate) fn trailers(lines: &[u8], limits: &Limits, block: &mut Block) -> Result<(), Refusal> {
    match take_lines(lines, 0, limits, block) {
        TakeResult::Whole(end) | TakeResult::Aliased(end) if end == lines.len() => {}
        TakeResult::Whole(_) | TakeResult::Aliased(_) | TakeResult::Malformed => {
            return Err(fields_fault(lines));
        }
        TakeResult::TooMany => return Err(refuse(Id::TooManyFields)),
    }
    // An alias is dropped as the field whose name it resembles: nothing is framed or routed by a trailer.
    for line in &mut block.lines {
        line.known = classify(&lines[line.name as usize..line.colon as usize]).0;
    }
    block.bytes.extend_from_slice(lines);
    Ok(())
}

fn request_line(head: &[u8]) -> Option<(RequestLine, usize)> {
    let method = head.iter().position(|&b| !is_token(b))?;
    if method == 0 || head[method] != b' ' {
        return None;
    }
    let target = method + 1 + find(&head[method + 1..], b' ')?;
    let fold = |(all, any), &b: &u8| (all & class(b), any | class(b));
    let (all, classes) = head[method + 1..target].iter().fold((URI, 0), fold);
    if all == 0 || target == method + 1 {
        return None;
    }
    let version = match head.get(target..target + 11)? {
        b" HTTP/1.1\r\n" => Version::H11,
        b" HTTP/1.0\r\n" => Version::H10,
        _ => return None,
    };
    Some((RequestLine { method, target, classes, version }, target + 11))
}

fn status_line(head: &[u8]) -> Option<(StatusLine, usize)> {
    let version = match head.get(..9)? {
        b"HTTP/1.1 " => Version::H11,
        b"HTTP/1.0 " => Version::H10,
        _ => return None,
    };
    let status = match head.get(9..12)? {
        &[a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
        }
        _ => return None,
    };
    let (reason, end) = match head.get(12)? {
        b' ' => value_end(head, 12)?,
        _ => (12, line_end(head, 12)?),
    };
    Some((StatusLine { version, status, reason }, end))
}

fn check_size(head: &[u8], limits: &Limits) -> Result<(), Refusal> {
    if head.len() > limits.max_head.min(u32::MAX as usize) { Err(refuse(Id::HeadTooLarge)) } else { Ok(()) }
}

/// Too many fields, unless something was wrong before them.
#[cold]
fn too_many(head: &[u8], limits: &Limits, request: bool) -> Refusal {
    Seek::early_fault(head, limits, request).unwrap_or_else(|| refuse(Id::TooManyFields))
}

enum TakeResult {
    /// Up to here, the blank line included.
    Whole(usize),
    /// A line does not have the strict form.
    Malformed,
    TooMany,
    /// Whole, but a name that weir knows is written with `_` for `-`.
    Aliased(usize),
}

/// Notes every line from `at` to the blank one.
fn take_lines(head: &[u8], mut at: usize, limits: &Limits, block: &mut Block) -> TakeResult {
    block.clear();
    let mut aliased = false;
    loop {
        if head.get(at) == Some(&b'\r') {
            let Some(end) = line_end(head, at) else { return TakeResult::Malformed };
            return if aliased { TakeResult::Aliased(end) } else { TakeResult::Whole(end) };
        }
        let Some((mut line, alias)) = take_line(head, at) else { return TakeResult::Malformed };
        if block.lines.len() >= limits.max_headers {
            return TakeResult::TooMany;
        }
        if alias {
            aliased = true;
            line.known = Name::Other;
        }
        at = line.end as usize;
        block.seen.add(line.known);
        block.lines.push(line);
    }
}

/// One field line, and whether its name is an alias.
fn take_line(head: &[u8], name: usize) -> Option<(Line, bool)> {
    let rest = &head[name..];
    let length = rest.iter().position(|&b| !is_token(b))?;
    if length == 0 || rest[length] != b':' {
        return None;
    }
    let colon = name + length;
    let mut value = colon + 1;
    let one_space = *head.get(value)? == b' ';
    while matches!(head.get(value)?, b' ' | b'\t') {
        value += 1;
    }
    let (line_end, end) = value_end(head, value)?;
    let mut value_end = line_end;
    while value_end > value && matches!(head[value_end - 1], b' ' | b'\t') {
        value_end -= 1;
    }
    let (known, alias) = classify(&rest[..length]);
    let canonical = one_space && value == colon + 2 && value_end == line_end;
    let line = Line {
        name: name as u32,
        colon: colon as u32,
        value: value as u32,
        value_end: value_end as u32,
        end: end as u32,
        known,
        canonical,
        ends_here: false,
        is_sensitive: false,
    };
    Some((line, alias))
}

/// Behind CR LF at `at`.
fn line_end(head: &[u8], at: usize) -> Option<usize> {
    (head.get(at..at + 2)? == b"\r\n").then_some(at + 2)
}

/// Where the value from `at` on ends, and its line: at the first CR LF. The only control character allowed before it is
/// a tab.
fn value_end(head: &[u8], mut at: usize) -> Option<(usize, usize)> {
    loop {
        at += control(&head[at..])?;
        match head[at] {
            b'\t' => at += 1,
            b'\r' => return line_end(head, at).map(|end| (at, end)),
            _ => return None,
        }
    }
}
