//! A request's head as the origin gets it.

use crate::check::{Checked, Hop, max_forwards, upgrades};
use crate::edits::Edits;
use crate::encoder::BodyOut;
use crate::framing::Version;
use crate::name::{FORWARDED, HOP, Name, Names};
use crate::request::Request;
use crate::write::{address, field, kept, number, set};
use std::net::IpAddr;

/// Fields that are always written anew, or not at all.
const ANEW: Names = HOP.with(Names::new(&[Name::Host, Name::ContentLength]));

/// Appends the head as the origin gets it: request line, Host, kept fields, Via, X-Forwarded-*, framing, Connection
/// (nothing for keep-alive; an allowed upgrade and `TE: trailers` are re-created).
/// `docs/spec/background.md#hop-by-hop-fields`.
pub fn render_request(
    request: &Request,
    checked: &Checked,
    hop: &Hop<'_>,
    edits: &Edits,
    body: BodyOut,
    out: &mut Vec<u8>,
) {
    let trusted = checked.trusted;
    let options = request.method() == b"OPTIONS";
    out.reserve(request.block.bytes.len() + 256);
    out.extend_from_slice(request.method());
    out.push(b' ');
    out.extend_from_slice(edits.target.as_deref().unwrap_or(request.target()));
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(edits.value(b"host").unwrap_or(request.host()));
    out.extend_from_slice(b"\r\n");

    let mut drop = ANEW;
    if !checked.expect {
        drop.add(Name::Expect);
    }
    if !trusted {
        drop = drop.with(FORWARDED);
    } else {
        drop.add(Name::ForwardedFor);
    }
    if options {
        drop.add(Name::MaxForwards);
    }
    kept(&request.block, drop, edits, out);
    if options && request.block.seen.has(Name::MaxForwards) && !edits.drops(b"max-forwards") {
        // Zero is answered here, and anything but a number was refused.
        let left = max_forwards(request).ok().flatten().unwrap_or(0).saturating_sub(1);
        out.extend_from_slice(b"Max-Forwards: ");
        number(out, left);
        out.extend_from_slice(b"\r\n");
    }
    match hop.peer {
        Some(peer) if !trusted && !edits.any() => own_plain(request, hop, peer, out),
        _ => own(request, hop, trusted, edits, out),
    }
    if edits.any() {
        set(edits, out);
    }
    framing(request.method(), body, out);
    connection(request, checked, hop, out);
    out.extend_from_slice(b"\r\n");
}

/// Writes the same as [`own`] in the usual case, in fewer pieces.
fn own_plain(request: &Request, hop: &Hop<'_>, peer: IpAddr, out: &mut Vec<u8>) {
    out.extend_from_slice(match request.version() {
        Version::H10 => b"Via: 1.0 weir\r\nX-Forwarded-For: ",
        Version::H11 => b"Via: 1.1 weir\r\nX-Forwarded-For: ",
        Version::H2 => b"Via: 2.0 weir\r\nX-Forwarded-For: ",
    });
    address(out, peer);
    out.extend_from_slice(match (hop.https, request.host().is_empty()) {
        (false, false) => b"\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: ",
        (true, false) => b"\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: ",
        (false, true) => b"\r\nX-Forwarded-Proto: http",
        (true, true) => b"\r\nX-Forwarded-Proto: https",
    });
    out.extend_from_slice(request.host());
    if let Some(port) = hop.port {
        out.extend_from_slice(b"\r\nX-Forwarded-Port: ");
        number(out, u64::from(port));
    }
    out.extend_from_slice(b"\r\n");
}

/// Via and X-Forwarded-*, after those of trusted peers.
fn own(request: &Request, hop: &Hop<'_>, trusted: bool, edits: &Edits, out: &mut Vec<u8>) {
    let edited = edits.any();
    let may = |name: &[u8]| !(edited && edits.drops(name));
    if may(b"via") {
        out.extend_from_slice(match request.version() {
            Version::H10 => b"Via: 1.0 weir\r\n",
            Version::H11 => b"Via: 1.1 weir\r\n",
            Version::H2 => b"Via: 2.0 weir\r\n",
        });
    }
    // Fields of a trusted peer stay; fields named by Connection are removed.
    let said = |name: Name| trusted && request.lines().iter().any(|l| l.known == name && !l.ends_here);
    if may(b"x-forwarded-for") {
        let chain = said(Name::ForwardedFor);
        if chain || hop.peer.is_some() {
            out.extend_from_slice(b"X-Forwarded-For: ");
            let mut first = true;
            if chain {
                let lines = request.lines().iter().filter(|l| l.known == Name::ForwardedFor && !l.ends_here);
                for value in lines.map(|l| request.block.value(l)).filter(|v| !v.is_empty()) {
                    out.extend_from_slice(if first { b"" } else { b", " });
                    out.extend_from_slice(value);
                    first = false;
                }
            }
            if let Some(peer) = hop.peer {
                out.extend_from_slice(if first { b"" } else { b", " });
                address(out, peer);
            }
            out.extend_from_slice(b"\r\n");
        }
    }
    if !said(Name::ForwardedProto) && may(b"x-forwarded-proto") {
        out.extend_from_slice(if hop.https {
            b"X-Forwarded-Proto: https\r\n"
        } else {
            b"X-Forwarded-Proto: http\r\n"
        });
    }
    if !said(Name::ForwardedHost) && !request.host().is_empty() && may(b"x-forwarded-host") {
        field(out, b"X-Forwarded-Host", request.host());
    }
    if let Some(port) = hop.port
        && !said(Name::ForwardedPort)
        && may(b"x-forwarded-port")
    {
        out.extend_from_slice(b"X-Forwarded-Port: ");
        number(out, u64::from(port));
        out.extend_from_slice(b"\r\n");
    }
}

/// A method that means a body says so if there is none (RFC 9110 §8.6).
fn framing(method: &[u8], body: BodyOut, out: &mut Vec<u8>) {
    match body {
        BodyOut::None if matches!(method, b"POST" | b"PUT" | b"PATCH") => {
            out.extend_from_slice(b"Content-Length: 0\r\n");
        }
        BodyOut::None => {}
        BodyOut::Length(n) => {
            out.extend_from_slice(b"Content-Length: ");
            number(out, n);
            out.extend_from_slice(b"\r\n");
        }
        BodyOut::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}

fn connection(request: &Request, checked: &Checked, hop: &Hop<'_>, out: &mut Vec<u8>) {
    let upgrade = checked.upgrade && !request.is_connect();
    let te = request.te_trailers();
    out.extend_from_slice(match (upgrade, te) {
        (true, true) => b"Connection: upgrade, TE\r\n",
        (true, false) => b"Connection: upgrade\r\n",
        (false, true) => b"Connection: TE\r\n",
        (false, false) => b"",
    });
    if te {
        out.extend_from_slice(b"TE: trailers\r\n");
    }
    if upgrade {
        out.extend_from_slice(b"Upgrade: ");
        for (i, protocol) in upgrades(request, hop).enumerate() {
            out.extend_from_slice(if i == 0 { b"" } else { b", " });
            out.extend_from_slice(protocol);
        }
        out.extend_from_slice(b"\r\n");
    }
}
