//! A head into its lines: httparse finds them, and every byte between its finds is looked at once more here.
//!
//! httparse is lenient where a proxy must not be (bare LF, bytes above 0x7f in a target); what lies between method,
//! target, version, names and values is therefore compared with the only form that is accepted. A head that is not
//! taken is walked slowly by `diagnose`, which says why.

use crate::block::{Block, Line};
use crate::diagnose::{fields_fault, request_fault, response_fault};
use crate::framing::Version;
use crate::limits::Limits;
use crate::name::{Name, Names, classify};
use crate::rule::{Id, Refusal, refuse};
use crate::seek::Seek;
use httparse::{Header, Status};
use std::mem::MaybeUninit;

/// A request line: method `..method`, then a space, then the target `method+1..target`.
pub(crate) struct RequestLine {
    pub(crate) method: usize,
    pub(crate) target: usize,
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
    if limits.max_headers <= 100 {
        request_of::<100>(head, limits, block)
    } else {
        request_of::<{ Limits::MOST_HEADERS }>(head, limits, block)
    }
}

fn request_of<const N: usize>(
    head: &[u8],
    limits: &Limits,
    block: &mut Block,
) -> Result<RequestLine, Refusal> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; N];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(head, &mut headers) {
        Ok(Status::Complete(n)) if n == head.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(too_many(head, limits, true)),
        _ => return Err(request_fault(head, limits)),
    }
    let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(request_fault(head, limits));
    };
    let (m, t) = (method.len(), method.len() + 1 + target.len());
    let version: &[u8] = if minor == 1 { b" HTTP/1.1\r\n" } else { b" HTTP/1.0\r\n" };
    if head.get(m) != Some(&b' ') || head.get(t..t + version.len()) != Some(version) {
        return Err(request_fault(head, limits));
    }
    take_lines(head, t + version.len(), parsed.headers, limits, false, block)
        .unwrap_or_else(|| Err(request_fault(head, limits)))?;
    Ok(RequestLine { method: m, target: t, version: if minor == 1 { Version::H11 } else { Version::H10 } })
}

/// Splits a whole response head; fills `block` with its bytes and lines.
pub(crate) fn response(head: &[u8], limits: &Limits, block: &mut Block) -> Result<StatusLine, Refusal> {
    check_size(head, limits)?;
    if limits.max_headers <= 100 {
        response_of::<100>(head, limits, block)
    } else {
        response_of::<{ Limits::MOST_HEADERS }>(head, limits, block)
    }
}

fn response_of<const N: usize>(
    head: &[u8],
    limits: &Limits,
    block: &mut Block,
) -> Result<StatusLine, Refusal> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; N];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut parsed, head, &mut headers) {
        Ok(Status::Complete(n)) if n == head.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(too_many(head, limits, false)),
        _ => return Err(response_fault(head)),
    }
    let (Some(minor), Some(status @ 100..=999)) = (parsed.version, parsed.code) else {
        return Err(response_fault(head));
    };
    // httparse hides a reason with bytes above 0x7f, so the line's end is looked for here.
    let Some(reason) = head.iter().position(|&b| b == b'\r') else { return Err(response_fault(head)) };
    if reason < 12 || head.get(reason + 1) != Some(&b'\n') || !head.starts_with(b"HTTP/1.") {
        return Err(response_fault(head));
    }
    take_lines(head, reason + 2, parsed.headers, limits, true, block)
        .unwrap_or_else(|| Err(response_fault(head)))?;
    Ok(StatusLine { version: if minor == 1 { Version::H11 } else { Version::H10 }, status, reason })
}

/// Splits the lines of trailers, the blank line included; fills `block`.
pub(crate) fn trailers(lines: &[u8], limits: &Limits, block: &mut Block) -> Result<(), Refusal> {
    if limits.max_headers <= 100 {
        trailers_of::<100>(lines, limits, block)
    } else {
        trailers_of::<{ Limits::MOST_HEADERS }>(lines, limits, block)
    }
}

fn trailers_of<const N: usize>(lines: &[u8], limits: &Limits, block: &mut Block) -> Result<(), Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; N];
    let parsed = match httparse::parse_headers(lines, &mut headers) {
        Ok(Status::Complete((n, parsed))) if n == lines.len() => parsed,
        Err(httparse::Error::TooManyHeaders) => return Err(refuse(Id::TooManyFields)),
        _ => return Err(fields_fault(lines)),
    };
    take_lines(lines, 0, parsed, limits, false, block).unwrap_or_else(|| Err(fields_fault(lines)))
}

/// Too many fields, unless something was wrong before them.
#[cold]
fn too_many(head: &[u8], limits: &Limits, request: bool) -> Refusal {
    Seek::early_fault(head, limits, request).unwrap_or_else(|| refuse(Id::TooManyFields))
}

fn check_size(head: &[u8], limits: &Limits) -> Result<(), Refusal> {
    if head.len() > limits.max_head.min(u32::MAX as usize) { Err(refuse(Id::HeadTooLarge)) } else { Ok(()) }
}

/// Notes every line by offsets that follow from the lengths alone. `None`: a line does not have the strict form. With
/// `aliases`, a name with `_` is just another one: it is origins that read `_` as `-`, so in responses it is harmless.
fn take_lines(
    head: &[u8],
    mut at: usize,
    headers: &[Header<'_>],
    limits: &Limits,
    aliases: bool,
    block: &mut Block,
) -> Option<Result<(), Refusal>> {
    block.clear();
    block.lines.reserve(headers.len());
    let mut seen = Names::default();
    let mut aliased = false;
    for header in headers {
        let (name, len) = (at, header.value.len());
        let colon = name + header.name.len();
        // `name: value` CR LF, as nearly all write it. CR LF stands nowhere but at a line's end, so if it stands where
        // the trimmed value would end, then nothing was trimmed.
        let mut value = colon + 2;
        let mut end = value + len + 2;
        let canonical = matches!(head.get(colon..end), Some([b':', b' ', .., b'\r', b'\n']));
        if !canonical {
            (value, end) = odd_line(head, colon, len)?;
        }
        let (mut known, alias) = classify(header.name.as_bytes());
        if alias {
            aliased = true;
            known = Name::Other;
        }
        seen.add(known);
        block.lines.push(Line {
            name: name as u32,
            colon: colon as u32,
            value: value as u32,
            value_end: (value + len) as u32,
            end: end as u32,
            known,
            canonical,
            named: false,
        });
        at = end;
    }
    block.seen = seen;
    if head.get(at..)? != b"\r\n" {
        return None;
    }
    if headers.len() > limits.max_headers {
        return Some(Err(refuse(Id::TooManyFields)));
    }
    if aliased && !aliases {
        return Some(Err(refuse(Id::NameAlias)));
    }
    block.bytes.extend_from_slice(head);
    Some(Ok(()))
}

/// Where the value begins and the line ends if blanks around the value are none, several or tabs.
fn odd_line(head: &[u8], colon: usize, len: usize) -> Option<(usize, usize)> {
    if *head.get(colon)? != b':' {
        return None;
    }
    let mut value = colon + 1;
    while len > 0 && matches!(head.get(value)?, b' ' | b'\t') {
        value += 1;
    }
    let mut end = value + len;
    while matches!(head.get(end)?, b' ' | b'\t') {
        end += 1;
    }
    (head.get(end..end + 2)? == b"\r\n").then_some((value, end + 2))
}
