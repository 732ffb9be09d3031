//! A parsed response head that owns its bytes.

use crate::block::Block;
use crate::connection::{Options, options};
use crate::framing::{Framing, Version, framing};
use crate::limits::Limits;
use crate::name::Name;
use crate::rule::{Id, Refusal, refuse};
use crate::sensitive::SensitiveNames;
use crate::split::{self, StatusLine};

/// The properties of the request that a response answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// HEAD: the response has no body.
    pub head: bool,
    /// CONNECT: a 2xx is a tunnel.
    pub connect: bool,
    /// An upgrade was passed on: 101 may come.
    pub upgrade: bool,
}

/// A parsed response head. Reused from response to response.
#[derive(Default, Debug, Clone)]
pub struct Response {
    pub(crate) block: Block,
    pub(crate) options: Options,
    status: u16,
    reason: u32,
    version: Version,
    framing: Framing,
    length: Option<u64>,
}

impl Response {
    /// Frees the buffers that are larger than most heads need; what was read is gone then. For one that is kept to be read into
    /// again.
    pub fn trim(&mut self) {
        self.block.trim();
    }

    /// Reads a whole head that answers `asked`. Every refusal is a 502 (RFC 9112 §4 to §6).
    pub fn parse(&mut self, head: &[u8], asked: RequestInfo, limits: &Limits) -> Result<(), Refusal> {
        self.read(head, asked, limits).map_err(Refusal::in_response)
    }

    fn read(&mut self, head: &[u8], asked: RequestInfo, limits: &Limits) -> Result<(), Refusal> {
        self.block.clear();
        let line = split::response(head, limits, &mut self.block)?;
        self.understand(&line, asked)
    }

    /// The quick way, as [`crate::Request::take`] is.
    pub fn take(&mut self, bytes: &[u8], asked: RequestInfo, limits: &Limits) -> Option<usize> {
        self.block.clear();
        let (line, end) = split::begun_response(bytes, limits, &mut self.block)?;
        self.understand(&line, asked).ok()?;
        Some(end)
    }

    /// Interprets the lines of a head.
    fn understand(&mut self, line: &StatusLine, asked: RequestInfo) -> Result<(), Refusal> {
        self.status = line.status;
        self.version = line.version;
        self.reason = line.reason as u32;
        self.options = options(&mut self.block)?;
        // A 1xx ends at its empty line regardless of its fields (RFC 9112 §6.3); bytes after it that are not a response
        // are refused.
        let said = if line.status < 200 { None } else { framing(&self.block, line.version)? };
        self.length = match said {
            Some(Framing::Length(n)) => Some(n),
            _ => None,
        };
        self.framing = match line.status {
            101 if !asked.upgrade => return Err(refuse(Id::Unasked)),
            100..=199 | 204 | 304 => Framing::None,
            200..=299 if asked.connect => Framing::None,
            _ if asked.head => Framing::None,
            _ => said.unwrap_or(Framing::Close),
        };
        Ok(())
    }

    /// It came by HTTP/2: where no length was said, its body ends with its stream.
    pub(crate) fn came_by_h2(&mut self, has_body: bool) {
        self.version = Version::H2;
        if self.framing == Framing::Close {
            self.framing = if has_body { Framing::Chunked } else { Framing::None };
        }
    }

    /// Notes which fields came as never to be indexed, by their names.
    pub fn mark_sensitive(&mut self, is_sensitive: impl Fn(&[u8]) -> bool) {
        self.block.mark_sensitive(is_sensitive);
    }

    /// Which fields are never to be indexed.
    pub fn sensitive_names(&self) -> SensitiveNames<'_> {
        SensitiveNames::of_lines(&self.block)
    }

    /// The status, 100 to 999.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The origin's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How long the body is.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the origin's connection can be used again after the body (RFC 9112 §9.3).
    pub fn keep_alive(&self) -> bool {
        let kept = match self.version {
            Version::H10 => self.options.keep_alive && !self.options.close,
            _ => !self.options.close,
        };
        kept && self.framing != Framing::Close && self.status != 101
    }

    /// 1xx but 101: a final response follows.
    pub fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != 101
    }

    /// All fields in order: the name as sent, the value trimmed.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.block.fields()
    }

    /// The first value of the field with this name, in any case.
    pub fn field(&self, lower_name: &str) -> Option<&[u8]> {
        self.block.field(lower_name)
    }

    /// Whether Connection names this field: it is of the origin's hop, in the head and in trailers.
    pub fn names(&self, field: &[u8]) -> bool {
        self.block.has_token_of(field)
    }

    /// A connection-bound authentication (NTLM, Negotiate) was begun: this origin connection serves one client only
    /// (RFC 4559 §6).
    pub fn binds_connection(&self) -> bool {
        matches!(self.status, 401 | 407)
            && self.block.known(Name::Authenticate).flat_map(crate::byte::elements).any(|challenge| {
                let scheme = challenge.split(|&b| b == b' ').next().unwrap_or_default();
                scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate")
            })
    }

    /// The value of Content-Length, with or without a body.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Behind the three digits: nothing, or a space and the reason phrase.
    pub(crate) fn reason(&self) -> &[u8] {
        self.block.slice(12, self.reason)
    }
}
