//! Messages that came by HTTP/2, as the same objects as those by HTTP/1.1: their parts are written as a head, which
//! then goes through the one parser. So targets, hosts, names and values are checked equally strictly in all versions
//! of HTTP.

use crate::byte::trim;
use crate::limits::Limits;
use crate::request::Request;
use crate::response::{RequestInfo, Response};
use crate::rule::{Id, Refusal, refuse};
use crate::write::{field, number};

/// The pseudo-header fields of HTTP/2 (RFC 9113 §8.3.1).
#[derive(Clone, Copy, Debug)]
pub struct Pseudo<'a> {
    /// `:method`, a token.
    pub method: &'a [u8],
    /// `:path`; CONNECT has none.
    pub path: &'a [u8],
    /// `:authority`, if it was sent.
    pub authority: Option<&'a [u8]>,
    /// `:protocol` of an extended CONNECT, a token. The request is then read as the GET with Upgrade that it represents
    /// (RFC 8441 §5), whatever its method.
    pub protocol: Option<&'a [u8]>,
    /// Whether the stream continues after the head.
    pub has_body: bool,
}

impl Request {
    /// Reads a request that came by HTTP/2. `head`: a buffer to write it to. Of `fields`, which are walked more than
    /// once, names must be lower case, and nothing may have line ends: parsers of HTTP/2 see to that (RFC 9113 §8.2.1).
    pub fn convert<'f, F: Iterator<Item = (&'f [u8], &'f [u8])>>(
        &mut self,
        pseudo: &Pseudo<'_>,
        fields: impl Fn() -> F,
        limits: &Limits,
        head: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        head.clear();
        request_line(pseudo, head);
        host(pseudo, fields().filter(|(name, _)| *name == b"host").map(|(_, value)| value), head)?;
        let mut cookies = false;
        for (name, value) in fields() {
            if trim(value).len() != value.len() {
                return Err(refuse(Id::ValueBlank));
            }
            match name {
                b"host" => {}
                b"cookie" if cookies => {}
                b"cookie" => {
                    cookies = true;
                    crumbs(fields(), head);
                }
                _ => field(head, name, value),
            }
        }
        if let Some(protocol) = pseudo.protocol {
            field(head, b"connection", b"upgrade");
            field(head, b"upgrade", protocol);
        }
        head.extend_from_slice(b"\r\n");
        self.parse(head, limits)?;
        match pseudo.protocol {
            Some(_) => self.came_by_extended_connect(),
            None => self.came_by_h2(pseudo.has_body),
        }
        Ok(())
    }
}

impl Response {
    /// Reads the head of a response that came by HTTP/2, as [`Request::convert`] does. `has_body`: the stream continues
    /// after it.
    pub fn convert<'f>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        asked: RequestInfo,
        has_body: bool,
        limits: &Limits,
        head: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        head.clear();
        head.extend_from_slice(b"HTTP/1.1 ");
        number(head, u64::from(status));
        head.extend_from_slice(b" \r\n");
        for (name, value) in fields {
            field(head, name, value);
        }
        head.extend_from_slice(b"\r\n");
        self.parse(head, asked, limits)?;
        self.came_by_h2(has_body);
        Ok(())
    }
}

/// CONNECT has its authority for a target, unless it is extended.
fn request_line(pseudo: &Pseudo<'_>, head: &mut Vec<u8>) {
    let (method, target) = match pseudo.method {
        _ if pseudo.protocol.is_some() => (&b"GET"[..], pseudo.path),
        b"CONNECT" => (pseudo.method, pseudo.authority.unwrap_or_default()),
        method => (method, pseudo.path),
    };
    for part in [method, b" ", target, b" HTTP/1.1\r\n"] {
        head.extend_from_slice(part);
    }
}

/// `:authority` and Host say the same, if they say anything (RFC 9113 §8.3.1); neither is missing as Host is.
fn host<'f>(
    pseudo: &Pseudo<'_>,
    mut hosts: impl Iterator<Item = &'f [u8]>,
    head: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let host = match (pseudo.authority, hosts.next()) {
        (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => {
            return Err(refuse(Id::AuthorityDiffers));
        }
        (Some(host), _) | (None, Some(host)) => host,
        (None, None) => return Ok(()),
    };
    if hosts.next().is_some() {
        return Err(refuse(Id::HostTwice));
    }
    field(head, b"host", host);
    Ok(())
}

/// The crumbs of Cookie become one line (RFC 9113 §8.2.3).
fn crumbs<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>, head: &mut Vec<u8>) {
    head.extend_from_slice(b"cookie: ");
    for (i, (_, crumb)) in fields.filter(|(name, _)| *name == b"cookie").enumerate() {
        head.extend_from_slice(if i == 0 { b"" } else { b"; " });
        head.extend_from_slice(crumb);
    }
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::{Framing, Version};

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn convert(
        pseudo: (&str, &str, Option<&str>, bool),
        fields: Fields<'_>,
    ) -> Result<Request, &'static str> {
        let (method, path, authority, has_body) = pseudo;
        let pseudo = Pseudo {
            method: method.as_bytes(),
            path: path.as_bytes(),
            authority: authority.map(str::as_bytes),
            protocol: None,
            has_body,
        };
        let mut request = Request::default();
        let fields = || fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        let converted = request.convert(&pseudo, fields, &Limits::default(), &mut Vec::new());
        converted.map(|()| request).map_err(|refusal| refusal.0.name)
    }

    fn verdict(pseudo: (&str, &str, Option<&str>, bool), fields: Fields<'_>) -> &'static str {
        convert(pseudo, fields).map_or_else(|name| name, |_| "ok")
    }

    #[test]
    fn authority_and_host_say_the_same() {
        for (authority, hosts, expected) in [
            (Some("a:1"), &[][..], "ok"),
            (None, &[("host", "a")], "ok"),
            (Some("a"), &[("host", "A")], "ok"),
            (Some("a"), &[("host", "b")], "authority-differs"),
            (Some("a"), &[("host", "a"), ("host", "a")], "host-twice"),
            (None, &[("host", "a"), ("host", "a")], "host-twice"),
            (None, &[], "host-missing"),
            (Some("a/b"), &[], "host-invalid"),
            (Some("u@a"), &[], "host-invalid"),
        ] {
            assert_eq!(verdict(("GET", "/", authority, false), hosts), expected, "{authority:?} {hosts:?}");
        }
    }

    #[test]
    fn what_http2_lets_through_is_judged_as_http1() {
        for (method, path, fields, expected) in [
            ("GET", "*", &[][..], "target-form"),
            ("OPTIONS", "*", &[], "ok"),
            ("GET", "?x", &[], "target-form"),
            ("GET", "/\u{e9}", &[], "target-bytes"),
            ("GET", "/", &[("a", " b")], "value-blank"),
            ("GET", "/", &[("a", "b\t")], "value-blank"),
            ("GET", "/", &[("a", "")], "ok"),
            ("GET", "/", &[("x_forwarded_for", "1")], "name-alias"),
            ("GET", "/", &[("content-length", "+1")], "length-invalid"),
            ("GET", "/", &[("content-length", "1"), ("content-length", "1")], "length-twice"),
            ("CONNECT", "", &[], "target-form"),
        ] {
            let verdict = verdict((method, path, Some("a"), false), fields);
            assert_eq!(verdict, expected, "{method} {path} {fields:?}");
        }
        assert_eq!(verdict(("CONNECT", "", Some("a:443"), true), &[]), "ok");
    }

    #[test]
    fn an_extended_connect_is_the_upgrade_that_it_stands_for() {
        let pseudo = Pseudo {
            method: b"CONNECT",
            path: b"/chat",
            authority: Some(b"h"),
            protocol: Some(b"websocket"),
            has_body: true,
        };
        let mut request = Request::default();
        let fields = [(&b"sec-websocket-version"[..], &b"13"[..])];
        let limits = Limits::default();
        request.convert(&pseudo, || fields.into_iter(), &limits, &mut Vec::new()).expect("lawful");
        assert_eq!(
            (request.method(), request.target(), request.host()),
            (&b"GET"[..], &b"/chat"[..], &b"h"[..])
        );
        assert_eq!((request.version(), request.framing()), (Version::H2, Framing::None));
        assert!(request.is_extended_connect() && !request.is_connect());
        assert_eq!(request.field("upgrade"), Some(&b"websocket"[..]));
        // The same object may be another request next.
        request.parse(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", &limits).expect("lawful");
        assert!(!request.is_extended_connect());
    }

    #[test]
    fn responses_end_with_their_streams() {
        for (status, head, has_body, length, expected) in [
            (200, false, true, None, Framing::Chunked),
            (200, false, false, None, Framing::None),
            (200, false, true, Some("3"), Framing::Length(3)),
            (200, true, false, Some("3"), Framing::None),
            (204, false, false, None, Framing::None),
            (304, false, false, Some("3"), Framing::None),
            (103, false, true, None, Framing::None),
        ] {
            let mut response = Response::default();
            let fields = length.iter().map(|n: &&str| (&b"content-length"[..], n.as_bytes()));
            let asked = RequestInfo { head, ..RequestInfo::default() };
            let limits = Limits::default();
            response.convert(status, fields, asked, has_body, &limits, &mut Vec::new()).expect("lawful");
            assert_eq!((response.framing(), response.status()), (expected, status));
        }
    }

    #[test]
    fn crumbs_are_joined_and_bodies_framed() {
        let fields = &[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")];
        let request = convert(("POST", "/p?q", Some("h"), true), fields).expect("lawful");
        assert_eq!(request.field("cookie"), Some(&b"a=1; b=2"[..]));
        assert_eq!((request.version(), request.framing()), (Version::H2, Framing::Chunked));
        assert_eq!((request.cookie("b"), request.fields().count()), (Some(&b"2"[..]), 3));
        let length = convert(("POST", "/", Some("h"), true), &[("content-length", "7")]).expect("lawful");
        assert_eq!(length.framing(), Framing::Length(7));
        let nothing = convert(("POST", "/", Some("h"), true), &[("content-length", "0")]).expect("lawful");
        assert_eq!(nothing.framing(), Framing::Chunked);
        let none = convert(("GET", "/", Some("h"), false), &[]).expect("lawful");
        assert_eq!(none.framing(), Framing::None);
        let tunnel = convert(("CONNECT", "", Some("h:1"), true), &[]).expect("lawful");
        assert_eq!((tunnel.framing(), tunnel.host()), (Framing::None, &b"h:1"[..]));
    }
}
