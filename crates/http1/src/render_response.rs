//! A response's head as the client gets it.

use crate::edits::Edits;
use crate::framing::{Framing, Version};
use crate::name::{HOP, Name, Names};
use crate::response::Response;
use crate::write::{field, kept, number, set};

/// The client that a response is sent to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The client's version: HTTP/1.0 gets no chunks and no interim responses.
    pub version: Version,
    /// HEAD was asked.
    pub head: bool,
    /// The client takes trailers.
    pub te_trailers: bool,
    /// Say `Connection: close`.
    pub close: bool,
    /// Say `Connection: keep-alive`, to an HTTP/1.0 client that asked for it.
    pub keep_alive_10: bool,
}

/// How a response's body is sent to this client, given the origin's framing, the client's version, HEAD and the status.
pub fn body_to_client(response: &Response, to: Client) -> Framing {
    match response.framing() {
        _ if to.head => Framing::None,
        Framing::Chunked | Framing::Close if to.version == Version::H10 => Framing::Close,
        Framing::Close => Framing::Chunked,
        framing => framing,
    }
}

/// Appends the head as the client gets it; `body` is how the body will be written (`Close`: until the connection ends,
/// which the head then says). `add` are fields of weir's own (`Set-Cookie`), after the origin's. `date` are the 29
/// bytes of a Date field, used if the origin sent none (RFC 9110 §6.6.1). Framing is written anew; a length is
/// announced for HEAD and 304, which have no body.
pub fn render_response(
    response: &Response,
    to: Client,
    edits: &Edits,
    add: &[(&str, &[u8])],
    body: Framing,
    date: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    const ANEW: Names = HOP.with(Names::new(&[Name::ContentLength]));
    out.reserve(response.block.bytes.len() + 128);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(response.block.slice(9, 12));
    match response.reason() {
        // The space is not optional (RFC 9112 §4).
        [] => out.push(b' '),
        reason => out.extend_from_slice(reason),
    }
    out.extend_from_slice(b"\r\n");
    let mut drop = ANEW;
    // It announces what does not come.
    if body != Framing::Chunked || !to.te_trailers {
        drop.add(Name::Trailer);
    }
    kept(&response.block, drop, edits, out);
    let status = response.status();
    if edits.any() {
        set(edits, out);
    }
    for (name, value) in add {
        field(out, name.as_bytes(), value);
    }
    if let Some(date) = date
        && status >= 200
        && !has_date(response, edits)
    {
        field(out, b"Date", date);
    }
    match body {
        Framing::Length(n) => length(out, n),
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::None if (to.head && status >= 200 && status != 204) || status == 304 => {
            if let Some(n) = response.length() {
                length(out, n);
            }
        }
        Framing::None | Framing::Close => {}
    }
    if status == 101 {
        out.extend_from_slice(b"Connection: upgrade\r\n");
        for protocol in response.block.known(Name::Upgrade) {
            field(out, b"Upgrade", protocol);
        }
    } else if status >= 200 {
        // RFC 9110 §15.5.22: 426 names the protocols that the server wants, which belong to the connection.
        let upgrades = status == 426 && response.block.seen.has(Name::Upgrade);
        match (to.close || body == Framing::Close, upgrades) {
            (true, true) => out.extend_from_slice(b"Connection: close, upgrade\r\n"),
            (true, false) => out.extend_from_slice(b"Connection: close\r\n"),
            (false, true) => out.extend_from_slice(b"Connection: upgrade\r\n"),
            (false, false) if to.keep_alive_10 => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (false, false) => {}
        }
        if upgrades {
            for protocol in response.block.known(Name::Upgrade) {
                field(out, b"Upgrade", protocol);
            }
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn has_date(response: &Response, edits: &Edits) -> bool {
    let lines = &response.block.lines;
    response.block.seen.has(Name::Date) && lines.iter().any(|l| l.known == Name::Date && !l.ends_here)
        || edits.value(b"date").is_some()
}

fn length(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(b"Content-Length: ");
    number(out, n);
    out.extend_from_slice(b"\r\n");
}
