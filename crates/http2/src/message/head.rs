//! Heads between the codec and `weir_http1`, whose objects a proxy decides by: one strictness for both versions.

use super::RequestLine;
use super::sink::{Block, FieldSink, Pseudo, PseudoMarks};
use crate::hpack::Field;
use weir_http1::{Limits, Refusal, Request, RequestInfo, Response, SensitiveNames, Trailers};

/// A block of fields as it came, to be read as a message. Reused: nothing is allocated once its buffers have grown.
#[derive(Debug, Default)]
pub struct Head {
    stream: u32,
    bytes: Vec<u8>,
    /// Where pseudo-fields lie, by number.
    pseudo: [Option<(u32, u32)>; 6],
    marks: PseudoMarks,
    lines: Vec<Line>,
    /// Whether any of it came as never to be indexed.
    has_marks: bool,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    name: u32,
    value: u32,
    end: u32,
    is_sensitive: bool,
}

impl FieldSink for Head {
    fn begin(&mut self, stream: u32, _block: Block) {
        self.stream = stream;
        self.bytes.clear();
        self.pseudo = [None; 6];
        self.marks = PseudoMarks::NONE;
        self.lines.clear();
        self.has_marks = false;
    }

    fn pseudo(&mut self, pseudo: Pseudo, field: Field<'_>) {
        let begin = self.bytes.len() as u32;
        self.bytes.extend_from_slice(field.value);
        self.pseudo[pseudo as usize] = Some((begin, self.bytes.len() as u32));
        self.marks.set(pseudo, field.is_sensitive);
        self.has_marks |= field.is_sensitive;
    }

    fn field(&mut self, field: Field<'_>) {
        let name = self.bytes.len() as u32;
        self.bytes.extend_from_slice(field.name);
        let value = self.bytes.len() as u32;
        self.bytes.extend_from_slice(field.value);
        let end = self.bytes.len() as u32;
        self.lines.push(Line { name, value, end, is_sensitive: field.is_sensitive });
        self.has_marks |= field.is_sensitive;
    }
}

impl Head {
    /// The stream that it came on.
    pub fn stream(&self) -> u32 {
        self.stream
    }

    /// A pseudo-field.
    pub fn pseudo_field(&self, pseudo: Pseudo) -> Option<&[u8]> {
        let (begin, end) = self.pseudo[pseudo as usize]?;
        Some(self.slice(begin, end))
    }

    /// All fields in order.
    pub fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines.iter().map(|line| Field {
            name: self.slice(line.name, line.value),
            value: self.slice(line.value, line.end),
            is_sensitive: line.is_sensitive,
        })
    }

    /// Whether a field of this name came never-indexed, which it stays on every later connection (RFC 7541 §6.2.3).
    pub fn is_sensitive(&self, name: &[u8]) -> bool {
        match Pseudo::parse(name) {
            Some(pseudo) => self.marks.has(pseudo),
            None => self.fields().any(|field| field.is_sensitive && field.name.eq_ignore_ascii_case(name)),
        }
    }

    fn slice(&self, begin: u32, end: u32) -> &[u8] {
        self.bytes.get(begin as usize..end as usize).unwrap_or_default()
    }

    fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields().map(|field| (field.name, field.value))
    }

    /// Reads it as a request, by all rules of HTTP/1.1's parser. An extended CONNECT (RFC 8441) is read as the GET with
    /// Upgrade that it represents. `has_body`: the stream did not end with it. `scratch`: a buffer.
    ///
    /// # Errors
    /// The request breaks a rule; it may be answered by the refusal's status.
    pub fn request(
        &self,
        has_body: bool,
        limits: &Limits,
        request: &mut Request,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let pseudo = weir_http1::Pseudo {
            method: self.pseudo_field(Pseudo::Method).unwrap_or_default(),
            path: self.pseudo_field(Pseudo::Path).unwrap_or_default(),
            authority: self.pseudo_field(Pseudo::Authority),
            protocol: self.pseudo_field(Pseudo::Protocol),
            has_body,
        };
        request.convert(&pseudo, || self.pairs(), limits, scratch)?;
        if self.has_marks {
            request.mark_sensitive(|name| self.is_sensitive(name));
        }
        Ok(())
    }

    /// Reads it as a response with this status, which answers `asked`. A 2xx to an extended CONNECT is read as the 101 that
    /// it represents.
    ///
    /// # Errors
    /// The response breaks a rule.
    pub fn response(
        &self,
        status: u16,
        asked: RequestInfo,
        has_body: bool,
        limits: &Limits,
        response: &mut Response,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let is_switch = asked.upgrade && (200..300).contains(&status);
        let status = if is_switch { 101 } else { status };
        response.convert(status, self.pairs(), asked, has_body, limits, scratch)?;
        if self.has_marks {
            response.mark_sensitive(|name| self.is_sensitive(name));
        }
        Ok(())
    }

    /// Reads it as trailers.
    pub fn trailers(&self) -> Trailers {
        let mut trailers = Trailers::default();
        self.fields().for_each(|field| trailers.push(field.name, field.value, field.is_sensitive));
        trailers
    }
}

/// A head that `weir_http1` has rendered, to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Rendered<'a> {
    /// The line before the fields.
    line: &'a [u8],
    fields: &'a [u8],
    sensitive: SensitiveNames<'a>,
    /// What follows the head: a body that was rendered with it.
    pub body: &'a [u8],
}

impl<'a> Rendered<'a> {
    /// Splits what was rendered. None of its fields is marked as never to be indexed.
    pub fn new(rendered: &'a [u8]) -> Rendered<'a> {
        let (line, rest) = split_line(rendered);
        let mut fields = rest;
        loop {
            let (field, after) = split_line(fields);
            if field.is_empty() {
                let length = rest.len() - fields.len();
                let sensitive = SensitiveNames::default();
                return Rendered { line, fields: &rest[..length], sensitive, body: after };
            }
            fields = after;
        }
    }

    /// Marks these fields as never to be indexed: those of the message that it was rendered from.
    pub fn mark(self, sensitive: SensitiveNames<'a>) -> Rendered<'a> {
        Rendered { sensitive, ..self }
    }

    /// The pseudo-fields of a request: Host is `:authority` (RFC 9113 §8.3.1), unless it is empty.
    pub fn request_line(&self, is_https: bool) -> RequestLine<'a> {
        let mut words = self.line.split(|byte| *byte == b' ');
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let mut marks = PseudoMarks::NONE;
        for pseudo in [Pseudo::Method, Pseudo::Authority, Pseudo::Path] {
            marks.set(pseudo, self.sensitive.has(pseudo.name()));
        }
        if method == b"CONNECT" {
            let authority = Some(target);
            return RequestLine { method, scheme: None, authority, path: None, protocol: None, marks };
        }
        let host = self.lines().find(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, value)| value);
        RequestLine {
            method,
            scheme: Some(if is_https { b"https" } else { b"http" }),
            authority: host.filter(|host| !host.is_empty()),
            path: Some(target),
            protocol: None,
            marks,
        }
    }

    /// The fields but Host.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let sensitive = self.sensitive;
        let others = self.lines().filter(|(name, _)| !name.eq_ignore_ascii_case(b"host"));
        others.map(move |(name, value)| Field { name, value, is_sensitive: sensitive.has(name) })
    }

    fn lines(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.fields;
        std::iter::from_fn(move || {
            let (line, after) = split_line(rest);
            rest = after;
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }
}

/// A line without its end, and what follows.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]), &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a [u8], &'a [u8])];

    fn head(pseudo: &[(Pseudo, &[u8])], fields: Pairs<'_>) -> Head {
        let mut head = Head::default();
        head.begin(1, Block::Request);
        for (pseudo, value) in pseudo {
            let field = Field { name: pseudo.name(), value, is_sensitive: false };
            FieldSink::pseudo(&mut head, *pseudo, field);
        }
        fields.iter().for_each(|(name, value)| head.field(Field { name, value, is_sensitive: true }));
        head
    }

    fn request(head: &Head) -> Result<Request, &'static str> {
        let mut request = Request::default();
        let read = head.request(true, &Limits::default(), &mut request, &mut Vec::new());
        read.map(|()| request).map_err(|refusal| refusal.0.name)
    }

    #[test]
    fn requests_are_judged_as_in_http1() {
        let line = [(Pseudo::Method, &b"GET"[..]), (Pseudo::Authority, b"h"), (Pseudo::Path, b"/a?b")];
        let lawful = head(&line, &[(b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2")]);
        let read = request(&lawful).expect("lawful");
        assert_eq!(
            (read.target(), read.host(), read.field("cookie")),
            (&b"/a?b"[..], &b"h"[..], Some(&b"a=1; b=2"[..]))
        );
        assert!(lawful.fields().all(|field| field.is_sensitive) && lawful.stream() == 1);
        let alias = head(&line, &[(b"content_length", b"1")]);
        assert_eq!(request(&alias).map(|_| ()), Err("name-alias"));
        let target =
            head(&[(Pseudo::Method, b"GET"), (Pseudo::Authority, b"h"), (Pseudo::Path, b"/\xff")], &[]);
        assert_eq!(request(&target).map(|_| ()), Err("target-bytes"));
    }

    #[test]
    fn an_extended_connect_is_the_get_that_it_replaces() {
        let line = [
            (Pseudo::Method, &b"CONNECT"[..]),
            (Pseudo::Protocol, b"websocket"),
            (Pseudo::Authority, b"h"),
            (Pseudo::Path, b"/chat"),
        ];
        let head = head(&line, &[]);
        let read = request(&head).expect("lawful");
        assert_eq!((read.method(), read.target(), read.is_connect()), (&b"GET"[..], &b"/chat"[..], false));
        assert!(read.is_extended_connect());
        assert_eq!(head.pseudo_field(Pseudo::Protocol), Some(&b"websocket"[..]));
    }

    #[test]
    fn a_2xx_to_an_extended_connect_is_the_101_that_it_stands_for() {
        let asked = RequestInfo { upgrade: true, ..RequestInfo::default() };
        for (status, read) in [(200, 101), (204, 101), (299, 101), (199, 199), (302, 302), (403, 403)] {
            let head = head(&[(Pseudo::Status, b"-")], &[(b"content-length", b"3")]);
            let mut response = Response::default();
            let limits = Limits::default();
            head.response(status, asked, true, &limits, &mut response, &mut Vec::new()).expect("lawful");
            assert_eq!(response.status(), read, "{status}");
        }
        let plain = RequestInfo::default();
        let head = head(&[(Pseudo::Status, b"200")], &[]);
        let mut response = Response::default();
        head.response(200, plain, true, &Limits::default(), &mut response, &mut Vec::new()).expect("lawful");
        assert_eq!(response.status(), 200);
    }

    #[test]
    fn answers_and_trailers() {
        let head = head(&[(Pseudo::Status, b"200")], &[(b"content-length", b"3"), (b"a", b"b")]);
        let mut response = Response::default();
        let asked = RequestInfo::default();
        head.response(200, asked, true, &Limits::default(), &mut response, &mut Vec::new()).expect("lawful");
        assert_eq!((response.status(), response.framing()), (200, weir_http1::Framing::Length(3)));
        let trailers = head.trailers();
        assert_eq!(trailers.fields().last(), Some((&b"a"[..], &b"b"[..])));
    }

    #[test]
    fn rendered_heads_are_split() {
        let rendered = Rendered::new(b"POST /a?b HTTP/1.1\r\nX: y z\r\nHost: h:1\r\nEmpty: \r\n\r\nbody");
        let line = rendered.request_line(true);
        assert_eq!(
            (line.method, line.scheme, line.path),
            (&b"POST"[..], Some(&b"https"[..]), Some(&b"/a?b"[..]))
        );
        assert_eq!((line.authority, rendered.body), (Some(&b"h:1"[..]), &b"body"[..]));
        let fields: Vec<_> = rendered.fields().map(|field| (field.name, field.value)).collect();
        assert_eq!(fields, [(&b"X"[..], &b"y z"[..]), (b"Empty", b"")]);
        let tunnel = Rendered::new(b"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n").request_line(false);
        assert_eq!((tunnel.authority, tunnel.path, tunnel.scheme), (Some(&b"h:1"[..]), None, None));
        let old = Rendered::new(b"OPTIONS * HTTP/1.1\r\nHost: \r\n\r\n").request_line(false);
        assert_eq!((old.authority, old.path), (None, Some(&b"*"[..])));
        assert_eq!(Rendered::new(b"HTTP/1.1 200 OK\r\n\r\n").fields().count(), 0);
        assert_eq!(Rendered::new(b"HTTP/1.1 200 OK\r\nA: b").fields().count(), 1);
        assert_eq!(Rendered::new(b"").fields().count(), 0);
    }
}
