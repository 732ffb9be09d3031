//! An answer of weir's own.

use crate::reason::reason;
use crate::render_response::Client;
use crate::write::{field, number};

/// Appends an answer of weir's own: status line, Date (unless `extra` has one), Content-Type if there is a body
/// (`text/plain`, unless `extra` has one; an empty one means none), Content-Length, `Connection: close` if `to.close`,
/// the extra fields. The body is left out for HEAD, and body and length for 1xx, 204 and 304 (RFC 9110 §8.6).
pub fn render_answer(
    status: u16,
    extra: &[(&str, &[u8])],
    body: &[u8],
    to: Client,
    date: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    number(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
    let has = |name: &str| extra.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let interim = status < 200;
    let bodiless = interim || matches!(status, 204 | 304);
    if let Some(date) = date
        && !interim
        && !has("date")
    {
        field(out, b"Date", date);
    }
    let none = |name: &str, value: &[u8]| value.is_empty() && name.eq_ignore_ascii_case("content-type");
    for (name, value) in extra.iter().filter(|(name, value)| !none(name, value)) {
        field(out, name.as_bytes(), value);
    }
    if !bodiless {
        if !body.is_empty() && !has("content-type") {
            field(out, b"Content-Type", b"text/plain");
        }
        out.extend_from_slice(b"Content-Length: ");
        number(out, body.len() as u64);
        out.extend_from_slice(b"\r\n");
    }
    if !interim {
        if to.close {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if to.keep_alive_10 {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
    }
    out.extend_from_slice(b"\r\n");
    if !bodiless && !to.head {
        out.extend_from_slice(body);
    }
}
