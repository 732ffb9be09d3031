//! A request as nodes behind a `rewrite` see it: its head with the changes so far.

use super::Exchange;
use std::borrow::Cow;
use std::net::IpAddr;
use weir_http1::Edits;
use weir_net::transport::tls::ClientCertificate;
use weir_plan::KeySource;
use weir_plan::MatchInput;
use weir_plan::template::{Piece, pieces};
use weir_policy::key;

/// The request.
pub(crate) struct View<'a> {
    ex: &'a Exchange,
    edits: Option<&'a Edits>,
}

impl<'a> View<'a> {
    /// The request with these changes.
    pub fn new(ex: &'a Exchange, edits: Option<&'a Edits>) -> View<'a> {
        View { ex, edits }
    }

    /// Path and query.
    pub fn target(&self) -> &'a [u8] {
        self.edits.and_then(|e| e.target.as_deref()).unwrap_or(self.ex.request.target())
    }

    /// The path, byte for byte.
    pub fn path(&self) -> &'a [u8] {
        let target = self.target();
        &target[..target.iter().position(|b| *b == b'?').unwrap_or(target.len())]
    }

    /// The Host that is forwarded, with its port.
    pub fn host(&self) -> &'a [u8] {
        self.edits.and_then(|e| value(e, b"host")).unwrap_or(self.ex.request.host())
    }

    /// The client's address.
    pub fn client(&self) -> Option<IpAddr> {
        self.ex.checked.client
    }

    /// The client's verified certificate.
    fn certificate(&self) -> Option<&'a ClientCertificate> {
        self.ex.client.session().tls_parameters()?.client()
    }

    /// The first value of the field with this name (lower case).
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        match self.edits {
            Some(edits) if drops(edits, name.as_bytes()) => value(edits, name.as_bytes()),
            _ => self.ex.request.field(name),
        }
    }

    /// The hash of the request's key; `None` if it has none.
    pub fn key(&self, source: &KeySource) -> Option<u64> {
        let Some(edits) = self.edits else { return self.ex.key(source) };
        match source {
            KeySource::Header(name) => self.field(name).map(key::hash).or(self.ex.of_run.get().sender),
            KeySource::Cookie(name) if drops(edits, b"cookie") => {
                let cookies = value(edits, b"cookie")?.split(|b| *b == b';');
                let named =
                    |pair: &'a [u8]| pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"=");
                cookies.filter_map(named).next().map(key::hash)
            }
            KeySource::Path => Some(key::hash(self.path())),
            KeySource::Cookie(_) | KeySource::Client => self.ex.key(source),
        }
    }

    /// Fills a template in.
    pub fn fill(&self, template: &str) -> Vec<u8> {
        self.fill_with(template, self.host())
    }

    /// The same for a Location: a port belongs to a scheme, so the request's port is left out for another scheme.
    /// `None`: the request lacks a part of it: the host (HTTP/1.0), a path (`OPTIONS *`), a certificate.
    pub fn fill_location(&self, template: &str) -> Option<Vec<u8>> {
        let lacks = |piece| match piece {
            Piece::Host => self.host().is_empty(),
            Piece::Uri => !self.target().starts_with(b"/"),
            Piece::Text(_) | Piece::Client => false,
            Piece::ClientSubject | Piece::ClientName | Piece::ClientSha256 => {
                self.of_certificate(piece).is_empty()
            }
        };
        if pieces(template).into_iter().any(lacks) {
            return None;
        }
        let other = if self.ex.is_https() { "http://" } else { "https://" };
        let host = if template.starts_with(other) { without_port(self.host()) } else { self.host() };
        Some(self.fill_with(template, host))
    }

    /// A part of the client's certificate; empty without one.
    fn of_certificate(&self, piece: Piece<'_>) -> &'a str {
        let Some(certificate) = self.certificate() else { return "" };
        match piece {
            Piece::ClientSubject => &certificate.subject,
            Piece::ClientName => certificate.names.first().map_or("", String::as_str),
            Piece::ClientSha256 => &certificate.sha256,
            Piece::Text(_) | Piece::Host | Piece::Uri | Piece::Client => "",
        }
    }

    fn fill_with(&self, template: &str, host: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for piece in pieces(template) {
            match piece {
                Piece::Text(plain) => text.extend_from_slice(plain.as_bytes()),
                Piece::Host => text.extend_from_slice(host),
                Piece::Uri => text.extend_from_slice(self.target()),
                Piece::ClientSubject | Piece::ClientName | Piece::ClientSha256 => {
                    text.extend_from_slice(self.of_certificate(piece).as_bytes());
                }
                Piece::Client => {
                    if let Some(client) = self.client() {
                        text.extend_from_slice(client.to_canonical().to_string().as_bytes());
                    }
                }
            }
        }
        text
    }

    /// The request as conditions see it.
    pub fn matched(&'a self) -> ToMatch<'a> {
        ToMatch { view: self, path: Cow::Borrowed(self.path()) }
    }

    /// The same, with the path as a file system would resolve it; `None` if that is the same path.
    pub fn normalised(&'a self) -> Option<ToMatch<'a>> {
        let path = normalised(self.path())?;
        Some(ToMatch { view: self, path: Cow::Owned(path) })
    }
}

/// A request with a path to match.
pub(crate) struct ToMatch<'a> {
    view: &'a View<'a>,
    path: Cow<'a, [u8]>,
}

impl MatchInput for ToMatch<'_> {
    fn method(&self) -> &[u8] {
        self.view.ex.request.method()
    }

    fn path(&self) -> &[u8] {
        &self.path
    }

    fn host(&self) -> Option<&[u8]> {
        let host = without_port(self.view.host());
        (!host.is_empty()).then_some(host)
    }

    fn has(&self, name: &str, fits: &dyn Fn(&[u8]) -> bool) -> bool {
        match self.view.edits {
            Some(edits) if drops(edits, name.as_bytes()) => value(edits, name.as_bytes()).is_some_and(fits),
            _ => self.view.ex.request.values(name).any(fits),
        }
    }

    fn client(&self) -> Option<IpAddr> {
        self.view.client()
    }

    fn has_client_name(&self, fits: &dyn Fn(&[u8]) -> bool) -> bool {
        self.view.certificate().is_some_and(|own| own.names.iter().any(|name| fits(name.as_bytes())))
    }
}

fn value<'a>(edits: &'a Edits, name: &[u8]) -> Option<&'a [u8]> {
    edits.set.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| &v[..])
}

fn drops(edits: &Edits, name: &[u8]) -> bool {
    value(edits, name).is_some() || edits.remove.iter().any(|n| n.eq_ignore_ascii_case(name))
}

fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|b| *b == b':') {
        Some(at) if host[at..].iter().skip(1).all(u8::is_ascii_digit) && host.first() != Some(&b'[') => {
            &host[..at]
        }
        Some(at) if at > 0 && host[at - 1] == b']' => &host[..at],
        _ => host,
    }
}

/// The byte that the escape at the beginning encodes.
fn percent(text: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(1..3)?).ok()?;
    (text[0] == b'%').then_some(())?;
    u8::from_str_radix(digits, 16).ok()
}

fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~".contains(&b)
}

fn decode(path: &[u8], also: impl Fn(u8) -> bool) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(path.len()), 0);
    while at < path.len() {
        match percent(&path[at..]).filter(|b| also(*b)) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(path[at]);
                at += 1;
            }
        }
    }
    out
}

/// Resolves dot segments, `//`, `\`, `%2f`, `%5c` and `%00`, as a server behind might do; `None` if nothing changes.
fn normalised(path: &[u8]) -> Option<Vec<u8>> {
    let suspicious = path.windows(2).any(|w| matches!(w, b"//" | b"/." | b"/\\"))
        || path.iter().any(|b| b"%\\".contains(b));
    if !suspicious {
        return None;
    }
    let mut plain = decode(path, |b| is_unreserved(b) || matches!(b, b'/' | b'\\' | 0));
    plain.iter_mut().filter(|b| **b == b'\\').for_each(|b| *b = b'/');
    if let Some(end) = plain.iter().position(|b| *b == 0) {
        plain.truncate(end);
    }
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut folder = false;
    for segment in plain.split(|b| *b == b'/').skip(1) {
        folder = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => _ = segments.pop(),
            _ => segments.push(segment),
        }
    }
    let mut out = Vec::with_capacity(plain.len());
    for segment in &segments {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if folder || out.is_empty() {
        out.push(b'/');
    }
    (out[..] != *decode(path, is_unreserved)).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for (path, want) in [
            ("/a/b", None),
            ("/a%20b", None),
            ("/%61", None),
            ("/a/../b", Some("/b")),
            ("/a//b", Some("/a/b")),
            ("/a/%2e%2e/b", Some("/b")),
            ("/a%2fb", Some("/a/b")),
            ("/a\\b", Some("/a/b")),
            ("/a%5c..%5cb/", Some("/b/")),
            ("/a/..", Some("/")),
            ("/../..", Some("/")),
            ("/a%00b", Some("/a")),
            ("/.hidden", None),
        ] {
            let got = normalised(path.as_bytes()).map(|p| String::from_utf8_lossy(&p).into_owned());
            assert_eq!(got.as_deref(), want, "{path}");
        }
    }

    #[test]
    fn hosts_lose_their_port() {
        for (host, want) in
            [("a:80", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a:", "a")]
        {
            assert_eq!(without_port(host.as_bytes()), want.as_bytes(), "{host}");
        }
    }
}
