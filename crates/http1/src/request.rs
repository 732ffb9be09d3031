//! A parsed request head that owns its bytes.

use crate::block::{Block, Line};
use crate::byte::trim;
use crate::connection::{Options, options};
use crate::framing::{Framing, Version, framing};
use crate::host::is_authority;
use crate::limits::Limits;
use crate::name::Name;
use crate::rule::{Id, Refusal, refuse};
use crate::sensitive::SensitiveNames;
use crate::split::{self, RequestLine};
use crate::target;

/// A parsed request head. Reused from request to request: nothing is allocated once its buffers have grown.
#[derive(Default, Debug, Clone)]
pub struct Request {
    pub(crate) block: Block,
    pub(crate) options: Options,
    method_end: u32,
    target: (u32, u32),
    path_end: u32,
    host: (u32, u32),
    version: Version,
    framing: Framing,
    is_extended: bool,
    has_sensitive_method: bool,
    has_sensitive_target: bool,
}

impl Request {
    /// Frees the buffers that are larger than most heads need; what was read is gone then. For one that is kept to be read into
    /// again.
    pub fn trim(&mut self) {
        self.block.trim();
    }

    /// Reads a whole HTTP/1.x head: `head` as [`crate::Seek::request`] found it. Everything of syntax and framing is
    /// checked here; after an error the object holds nothing of use. (RFC 9112 §2 to §6, RFC 9110 §5 and §7.2.)
    pub fn parse(&mut self, head: &[u8], limits: &Limits) -> Result<(), Refusal> {
        let head = skip_empty_lines(head)?;
        self.block.clear();
        let line = split::request(head, limits, &mut self.block)?;
        self.understand(head, &line, limits)
    }

    /// The quick way: reads the head that `bytes` begin with, if it has come whole and nothing is wrong with it, and
    /// gives its length. `None` says no more than that it is not so: [`crate::Seek::request`] and [`Request::parse`]
    /// say why.
    pub fn take(&mut self, bytes: &[u8], limits: &Limits) -> Option<usize> {
        self.block.clear();
        let (line, end) = split::begun_request(bytes, limits, &mut self.block)?;
        self.understand(&bytes[..end], &line, limits).ok()?;
        Some(end)
    }

    /// Interprets the lines of a head.
    fn understand(&mut self, head: &[u8], line: &RequestLine, limits: &Limits) -> Result<(), Refusal> {
        if line.method > limits.max_method {
            return Err(refuse(Id::MethodTooLong));
        }
        let method = &head[..line.method];
        let begin = line.method + 1;
        let raw = &head[begin..line.target];
        if raw.len() > limits.max_target {
            return Err(refuse(Id::TargetTooLong));
        }
        let target = target::read(method, raw, line.classes)?;
        self.version = line.version;
        self.is_extended = false;
        (self.has_sensitive_method, self.has_sensitive_target) = (false, false);
        self.method_end = line.method as u32;
        self.target = ((begin + target.path) as u32, line.target as u32);
        self.path_end = (begin + target.path_end) as u32;
        self.host = self.read_host(limits.empty_host)?;
        if let Some((from, to)) = target.authority {
            self.host = ((begin + from) as u32, (begin + to) as u32);
        }
        // A port that is empty is none (RFC 3986 §3.2.3).
        if let (from, to @ 1..) = self.host
            && self.block.slice(from, to).ends_with(b":")
        {
            self.host.1 = to - 1;
        }
        if !target.lacks.is_empty() {
            self.complete_target(target.lacks);
        }
        self.options = options(&mut self.block)?;
        self.framing = framing(&self.block, self.version)?.unwrap_or(Framing::None);
        if self.is_connect() && !matches!(self.framing, Framing::None) {
            return Err(refuse(Id::CodingHere));
        }
        Ok(())
    }

    /// Exactly one valid Host; none, or an empty one, is HTTP/1.0's alone (RFC 9112 §3.2).
    fn read_host(&self, may_be_empty: bool) -> Result<(u32, u32), Refusal> {
        let mut host = None;
        if self.block.seen.has(Name::Host) {
            for line in self.block.lines.iter().filter(|l| l.known == Name::Host) {
                if host.is_some() {
                    return Err(refuse(Id::HostTwice));
                }
                host = Some((line.value, line.value_end));
            }
        }
        let (from, to) = match host {
            Some(host) => host,
            None if self.version == Version::H10 => return Ok((0, 0)),
            None => return Err(refuse(Id::HostMissing)),
        };
        let may_be_empty = may_be_empty || self.version == Version::H10;
        if from == to && may_be_empty || is_authority(self.block.slice(from, to)) {
            Ok((from, to))
        } else {
            Err(refuse(Id::HostInvalid))
        }
    }

    /// Writes what an absolute-form left out, and its query, behind the head.
    fn complete_target(&mut self, lacks: &[u8]) {
        let bytes = &mut self.block.bytes;
        let begin = bytes.len();
        let (from, to) = (self.target.0 as usize, self.target.1 as usize);
        bytes.extend_from_slice(lacks);
        bytes.extend_from_within(from..to);
        self.target = (begin as u32, bytes.len() as u32);
        self.path_end = (begin + lacks.len()) as u32;
    }

    /// It came by HTTP/2: where no length was said, its body ends with its stream, which HTTP/1.1 says in chunks.
    pub(crate) fn came_by_h2(&mut self, has_body: bool) {
        self.version = Version::H2;
        // A length of nothing is believed once the stream has ended without any.
        if has_body && matches!(self.framing, Framing::None | Framing::Length(0)) && !self.is_connect() {
            self.framing = Framing::Chunked;
        }
    }

    /// It came by HTTP/2 as an extended CONNECT: what follows its head is no body.
    pub(crate) fn came_by_extended_connect(&mut self) {
        self.version = Version::H2;
        self.is_extended = true;
    }

    /// Notes which fields came as never to be indexed; `is_sensitive` gets their names and those of pseudo-fields.
    pub fn mark_sensitive(&mut self, is_sensitive: impl Fn(&[u8]) -> bool) {
        self.has_sensitive_method = is_sensitive(b":method");
        self.has_sensitive_target = is_sensitive(b":path");
        let has_sensitive_host = is_sensitive(b":authority");
        self.block.mark_sensitive(|name| {
            is_sensitive(name) || has_sensitive_host && name.eq_ignore_ascii_case(b"host")
        });
    }

    /// Which fields are never to be indexed.
    pub fn sensitive_names(&self) -> SensitiveNames<'_> {
        let names = SensitiveNames::of_lines(&self.block);
        names.with_line(self.has_sensitive_method, self.has_sensitive_target)
    }

    /// The method, as sent: methods are case-sensitive (RFC 9110 §9.1).
    pub fn method(&self) -> &[u8] {
        self.block.slice(0, self.method_end)
    }

    /// The client's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How long the body is; never [`Framing::Close`].
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Origin-form (path and query, byte for byte), `*`, or an authority for CONNECT.
    pub fn target(&self) -> &[u8] {
        self.block.slice(self.target.0, self.target.1)
    }

    /// The target without its query.
    pub fn path(&self) -> &[u8] {
        self.block.slice(self.target.0, self.path_end)
    }

    /// Host as passed on, with its port: the target's authority, if it has one, wins (RFC 9112 §3.2.2). Empty for
    /// HTTP/1.0 without.
    pub fn host(&self) -> &[u8] {
        self.block.slice(self.host.0, self.host.1)
    }

    /// Whether the client wants its connection kept (RFC 9112 §9.3).
    pub fn keep_alive(&self) -> bool {
        match self.version {
            Version::H10 => self.options.keep_alive && !self.options.close,
            _ => !self.options.close,
        }
    }

    /// Whether the answer has no body because HEAD was asked.
    pub fn is_head(&self) -> bool {
        self.method() == b"HEAD"
    }

    /// Whether a tunnel is asked for.
    pub fn is_connect(&self) -> bool {
        self.method() == b"CONNECT"
    }

    /// Whether it came as an extended CONNECT (RFC 8441), and is here the GET with Upgrade that it represents.
    pub fn is_extended_connect(&self) -> bool {
        self.is_extended
    }

    /// Whether asking twice means the same as asking once (RFC 9110 §9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(self.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
    }

    /// All fields in order, as they came, those that go no further included: the name as sent, the value trimmed.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.block.fields()
    }

    /// The values of the field with this name (lower case) that go on. Host is what [`Request::host`] says.
    pub fn values(&self, lower_name: &str) -> impl Iterator<Item = &[u8]> {
        let is_host = lower_name == "host";
        let host = Some(self.host()).filter(|host| is_host && !host.is_empty());
        let lines = if is_host { &[] } else { &self.block.lines[..] };
        let named = move |l: &&Line| self.block.name(l).eq_ignore_ascii_case(lower_name.as_bytes());
        let lines = lines.iter().filter(|l| !l.ends_here).filter(named);
        host.into_iter().chain(lines.map(|l| self.block.value(l)))
    }

    /// The first value of the field with this name (lower case) that goes on.
    pub fn field(&self, lower_name: &str) -> Option<&[u8]> {
        self.values(lower_name).next()
    }

    /// The value of the first cookie of this name that goes on (RFC 6265 §4.2).
    pub fn cookie(&self, name: &str) -> Option<&[u8]> {
        self.block.passing(Name::Cookie).flat_map(|v| v.split(|&b| b == b';')).find_map(|pair| {
            let pair = trim(pair);
            let rest = pair.strip_prefix(name.as_bytes())?;
            rest.strip_prefix(b"=")
        })
    }

    /// Whether the client takes trailers (RFC 9110 §10.1.4).
    pub fn te_trailers(&self) -> bool {
        self.block.has_token(Name::Te, b"trailers")
    }

    /// Whether the client waits for 100 before it sends its body: HTTP/1.1, and there is a body (RFC 9110 §10.1.1).
    pub fn expects_continue(&self) -> bool {
        self.block.seen.has(Name::Expect) && self.version != Version::H10 && self.has_body()
    }

    /// Whether Connection names this field: it is of the client's hop, in the head and in trailers.
    pub fn names(&self, field: &[u8]) -> bool {
        self.block.has_token_of(field)
    }

    pub(crate) fn has_body(&self) -> bool {
        !matches!(self.framing, Framing::None | Framing::Length(0))
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.block.lines
    }
}

/// Skips the empty lines before the request line (RFC 9112 §2.2).
fn skip_empty_lines(mut head: &[u8]) -> Result<&[u8], Refusal> {
    for _ in 0..=Limits::EMPTY_LINES {
        match head.strip_prefix(b"\r\n") {
            Some(rest) => head = rest,
            None => return Ok(head),
        }
    }
    Err(refuse(Id::EmptyLines))
}
