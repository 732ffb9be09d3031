//! A block of fields is judged while it is decoded (RFC 9113 §8.2, §8.3), under running limits, so that it is never held
//! as a whole. After the first fault nothing more is passed on, and decoding goes on for the sake of its table.

use super::bytes::{check_name, check_value, decimal, is_token};
use super::sink::{Block, FieldSink, Pseudo};
use crate::hpack::Field;
use crate::malformed::Id;
use crate::priority::Priority;

/// How much a block may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    /// Bytes as HTTP/1.1 would write them: name, value, and 4 for each field.
    pub(crate) bytes: u32,
    /// Fields; all crumbs of Cookie (RFC 9113 §8.2.3) count as one.
    pub(crate) fields: u32,
    /// Whether `:protocol` was offered (RFC 8441 §3).
    pub(crate) has_protocol: bool,
}

/// Crumbs of Cookie for each field that is allowed: a browser sends each cookie by itself, and may have 180 of a site.
const CRUMBS: u32 = 4;

/// What is known of a lawful block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Verdict {
    /// Of an answer.
    pub(crate) status: u16,
    /// Content-Length.
    pub(crate) length: Option<u64>,
    pub(crate) is_connect: bool,
    /// An extended CONNECT (RFC 8441).
    pub(crate) has_protocol: bool,
    /// Of a request: the `priority` field.
    pub(crate) priority: Option<Priority>,
}

/// The judge of one block.
pub(crate) struct Judge<'a> {
    block: Block,
    limits: HeadLimits,
    authority: &'a mut Vec<u8>,
    verdict: Verdict,
    fault: Option<Id>,
    /// The pseudo-fields that came, a bit each.
    seen: u8,
    has_fields: bool,
    has_host: bool,
    bytes: u32,
    fields: u32,
    crumbs: u32,
    is_options: bool,
    is_asterisk: bool,
}

const fn bit(pseudo: Pseudo) -> u8 {
    1 << pseudo as u8
}

impl<'a> Judge<'a> {
    pub(crate) fn new(block: Block, limits: HeadLimits, authority: &'a mut Vec<u8>) -> Judge<'a> {
        authority.clear();
        Judge {
            block,
            limits,
            authority,
            verdict: Verdict::default(),
            fault: None,
            seen: 0,
            has_fields: false,
            has_host: false,
            bytes: 0,
            fields: 0,
            crumbs: 0,
            is_options: false,
            is_asterisk: false,
        }
    }

    /// Judges a field, and passes it on if nothing was wrong so far.
    pub(crate) fn take(&mut self, field: Field<'_>, sink: &mut impl FieldSink) {
        if self.fault.is_some() {
            return;
        }
        let judged = self.count(field).and_then(|()| match field.name.first() {
            Some(b':') => self.pseudo(field).map(Some),
            _ => self.field(field).map(|()| None),
        });
        match judged {
            Ok(Some(pseudo)) => sink.pseudo(pseudo, field),
            Ok(None) => sink.field(field),
            Err(fault) => self.fault = Some(fault),
        }
    }

    fn count(&mut self, field: Field<'_>) -> Result<(), Id> {
        let bytes = u32::try_from(field.name.len() + field.value.len() + 4).unwrap_or(u32::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        let is_crumb = field.name == b"cookie";
        self.crumbs += u32::from(is_crumb);
        self.fields +=
            u32::from(!is_crumb || self.crumbs == 1) * u32::from(field.name.first() != Some(&b':'));
        match () {
            () if self.bytes > self.limits.bytes => Err(Id::HeadTooLarge),
            () if self.fields > self.limits.fields
                || self.crumbs > self.limits.fields.saturating_mul(CRUMBS) =>
            {
                Err(Id::TooManyFields)
            }
            () => Ok(()),
        }
    }

    fn pseudo(&mut self, field: Field<'_>) -> Result<Pseudo, Id> {
        if self.block == Block::Trailers {
            return Err(Id::PseudoInTrailers);
        }
        let pseudo = Pseudo::parse(field.name).ok_or(Id::PseudoUnknown)?;
        if (pseudo == Pseudo::Status) != (self.block == Block::Answer) {
            return Err(Id::PseudoUnknown);
        }
        if self.has_fields {
            return Err(Id::PseudoLate);
        }
        if self.seen & bit(pseudo) != 0 {
            return Err(Id::PseudoTwice);
        }
        self.seen |= bit(pseudo);
        let value = field.value;
        check_value(value)?;
        match pseudo {
            Pseudo::Method => {
                self.verdict.is_connect = value == b"CONNECT";
                self.is_options = value == b"OPTIONS";
                is_token(value).then_some(()).ok_or(Id::Method)?;
            }
            Pseudo::Scheme => is_scheme(value).then_some(()).ok_or(Id::Scheme)?,
            Pseudo::Authority => {
                let is_good = !value.is_empty() && !value.contains(&b'@');
                is_good.then_some(()).ok_or(Id::Authority)?;
                self.authority.extend_from_slice(value);
            }
            Pseudo::Path => self.is_asterisk = value == b"*",
            Pseudo::Protocol => {
                let is_good = self.limits.has_protocol && is_token(value);
                is_good.then_some(()).ok_or(Id::Protocol)?;
                self.verdict.has_protocol = true;
            }
            Pseudo::Status => self.verdict.status = status(value).ok_or(Id::Status)?,
        }
        if pseudo == Pseudo::Path && !self.is_asterisk && value.first() != Some(&b'/') {
            return Err(Id::Path);
        }
        Ok(pseudo)
    }

    fn field(&mut self, field: Field<'_>) -> Result<(), Id> {
        self.has_fields = true;
        check_name(field.name)?;
        check_value(field.value)?;
        match field.name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade"
            | b"http2-settings" => Err(Id::ConnectionField),
            b"te" if !field.value.eq_ignore_ascii_case(b"trailers") => Err(Id::Te),
            b"content-length" if self.block != Block::Trailers => self.length(field.value),
            b"host" if self.block == Block::Request => self.host(field.value),
            b"priority" if self.block == Block::Request => {
                self.verdict.priority = Some(Priority::parse(field.value));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Id> {
        let length = decimal(value).ok_or(Id::LengthInvalid)?;
        match self.verdict.length.replace(length) {
            None => Ok(()),
            Some(_) => Err(Id::LengthTwice),
        }
    }

    fn host(&mut self, value: &[u8]) -> Result<(), Id> {
        if std::mem::replace(&mut self.has_host, true) {
            return Err(Id::HostTwice);
        }
        let has_authority = self.seen & bit(Pseudo::Authority) != 0;
        if has_authority && !self.authority.eq_ignore_ascii_case(value) {
            return Err(Id::AuthorityDiffers);
        }
        Ok(())
    }

    /// The fault of a block that is over its limits before it has come whole.
    pub(crate) fn end_early(self) -> Id {
        self.fault.unwrap_or(Id::HeadTooLarge)
    }

    /// The verdict on the whole block.
    pub(crate) fn end(self) -> Result<Verdict, Id> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        match self.block {
            Block::Trailers => {}
            Block::Answer if self.seen == 0 => return Err(Id::PseudoMissing),
            Block::Answer if self.verdict.status == 101 => return Err(Id::Switching),
            Block::Answer => {}
            Block::Request => self.end_request()?,
        }
        Ok(self.verdict)
    }

    /// Which pseudo-fields a request has (RFC 9113 §8.3.1, §8.5, RFC 8441 §4).
    fn end_request(&self) -> Result<(), Id> {
        const LINE: u8 = bit(Pseudo::Method) | bit(Pseudo::Scheme) | bit(Pseudo::Path);
        const CONNECT: u8 = bit(Pseudo::Method) | bit(Pseudo::Authority);
        const EXTENDED: u8 = LINE | CONNECT;
        let Verdict { is_connect, has_protocol, .. } = self.verdict;
        match (is_connect, has_protocol) {
            (false, true) => return Err(Id::Protocol),
            (true, true) if self.seen & EXTENDED != EXTENDED => return Err(Id::PseudoMissing),
            (true, false) if self.seen & CONNECT != CONNECT => return Err(Id::PseudoMissing),
            (true, false) if self.seen != CONNECT => return Err(Id::PseudoOfConnect),
            (false, false) if self.seen & LINE != LINE => return Err(Id::PseudoMissing),
            // As in HTTP/1.1: what follows belongs to the tunnel, and an origin would take it for a body.
            (true, _) if self.verdict.length.is_some() => return Err(Id::LengthOfConnect),
            _ => {}
        }
        if self.is_asterisk && !self.is_options { Err(Id::Path) } else { Ok(()) }
    }
}

/// RFC 3986 §3.1.
fn is_scheme(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_alphabetic)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// Three digits, 100 to 999, as in HTTP/1.1.
fn status(value: &[u8]) -> Option<u16> {
    match value {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
        }
        _ => None,
    }
}
