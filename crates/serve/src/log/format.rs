//! The lines of the access log: JSON, or nginx's and Apache's combined format. What each field means: `docs/logs.md`.

use super::Line;
use super::notes::Notes;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_http1::{Request, Trace, Version};
use weir_net::io::date::Civil;
use weir_policy::{Kind, Outcome};
use weir_topology::plan::LogFormat;

/// What a line tells of an exchange.
pub(crate) struct Entry<'a> {
    pub listener: &'a str,
    pub client: Option<IpAddr>,
    pub request: &'a Request,
    pub line: &'a Line,
    /// The target that was tried last.
    pub target: Option<&'a str>,
    pub attempts: u32,
    /// The trace that it belongs to.
    pub trace: Option<Trace>,
    pub reused: bool,
    pub resent: bool,
    pub received: u64,
    pub took_ns: u64,
    /// The generation of the graph that it began in.
    pub generation: u32,
    /// What it is named by.
    pub id: Option<&'a str>,
    /// Its parts, and whom it tried.
    pub notes: Option<&'a Notes>,
}

/// What it tells of a request that was refused for its head.
pub(super) struct Refused<'a> {
    pub listener: &'a str,
    pub client: Option<IpAddr>,
    /// What was asked, or the first line of what came.
    pub what: Result<&'a Request, &'a [u8]>,
    pub status: u16,
    /// Bytes of the answer's body.
    pub sent: usize,
}

impl Entry<'_> {
    /// Writes it as a line.
    pub(super) fn format(&self, format: LogFormat, text: &mut String) {
        match format {
            LogFormat::Json => self.json(text),
            LogFormat::Combined => self.combined(text),
        }
    }

    fn json(&self, text: &mut String) {
        begin(text, self.listener, self.client);
        asked(text, self.request);
        text.push_str(",\"version\":\"");
        text.push_str(version(self.request.version()));
        text.push_str("\",\"status\":");
        number(text, u64::from(self.line.status));
        text.push_str(",\"error\":");
        match self.line.failure {
            Some(kind) => {
                text.push('"');
                text.push_str(kind.name());
                text.push('"');
            }
            None => text.push_str("null"),
        }
        text.push_str(",\"target\":");
        match self.target {
            Some(name) => quote(text, name.as_bytes()),
            None => text.push_str("null"),
        }
        text.push_str(",\"attempts\":");
        number(text, u64::from(self.attempts));
        for (name, value) in [
            (",\"reused\":", self.reused),
            (",\"resent\":", self.resent),
            (",\"aborted\":", self.line.aborted),
        ] {
            text.push_str(name);
            text.push_str(if value { "true" } else { "false" });
        }
        text.push_str(",\"received\":");
        number(text, self.received);
        text.push_str(",\"sent\":");
        number(text, self.line.sent);
        text.push_str(",\"duration_ms\":");
        ms(text, Some(self.took_ns));
        self.parts(text);
        text.push_str("}\n");
    }

    /// Where it belongs, how long its parts took, whom it tried.
    fn parts(&self, text: &mut String) {
        text.push_str(",\"generation\":");
        number(text, u64::from(self.generation));
        text.push_str(",\"request_id\":");
        match self.id {
            Some(id) => quote(text, id.as_bytes()),
            None => text.push_str("null"),
        }
        text.push_str(",\"trace_id\":");
        match self.trace {
            Some(trace) => {
                let _ = write!(text, "\"{:032x}\"", trace.id);
            }
            None => text.push_str("null"),
        }
        let Some(notes) = self.notes else { return };
        for (name, ns) in [
            (",\"request\":", notes.request_ns.get()),
            (",\"queue\":", Some(notes.queue_ns.get())),
            (",\"connect\":", notes.connect_ns.get()),
            (",\"response\":", notes.response_ns.get()),
            (",\"total\":", Some(self.took_ns)),
        ] {
            text.push_str(name);
            ms(text, ns);
        }
        text.push_str(",\"tried\":[");
        for (at, tried) in notes.tried.borrow().iter().enumerate() {
            text.push_str(if at == 0 { "{\"target\":" } else { ",{\"target\":" });
            quote(text, tried.target.name().as_bytes());
            text.push_str(",\"outcome\":\"");
            text.push_str(outcome(tried.outcome.unwrap_or(Some(Kind::Cancelled))));
            text.push_str("\"}");
        }
        text.push(']');
    }

    fn combined(&self, text: &mut String) {
        who(text, self.client, user(self.request).as_deref());
        request_line(text, self.request);
        let _ = write!(text, "\" {} {} \"", self.line.status, self.line.sent);
        escape_clf(text, self.request.field("referer").unwrap_or(b"-"));
        text.push_str("\" \"");
        escape_clf(text, self.request.field("user-agent").unwrap_or(b"-"));
        text.push_str("\"\n");
    }
}

impl Refused<'_> {
    /// Writes it as a line.
    pub(super) fn format(&self, format: LogFormat, text: &mut String) {
        match format {
            LogFormat::Json => self.json(text),
            LogFormat::Combined => self.combined(text),
        }
    }

    /// The fields of every line, as far as they are known, and `line` where nothing could be read.
    fn json(&self, text: &mut String) {
        begin(text, self.listener, self.client);
        match self.what {
            Ok(request) => {
                asked(text, request);
                let _ = write!(text, ",\"version\":\"{}\"", version(request.version()));
            }
            Err(first) => {
                text.push_str(",\"method\":null,\"host\":null,\"path\":null,\"version\":null,\"line\":");
                quote(text, first);
            }
        }
        let _ = writeln!(
            text,
            ",\"status\":{},\"error\":\"{}\",\"target\":null,\"attempts\":0,\"reused\":false,\"resent\":false,\"aborted\":false,\"received\":0,\"sent\":{},\"duration_ms\":0,\"generation\":null,\"request_id\":null,\"trace_id\":null,\"request\":null,\"queue\":0,\"connect\":null,\"response\":null,\"total\":0,\"tried\":[]}}",
            self.status,
            Kind::BadRequest.name(),
            self.sent
        );
    }

    /// As nginx has it: what came stands where the request would.
    fn combined(&self, text: &mut String) {
        who(text, self.client, self.what.ok().and_then(user).as_deref());
        match self.what {
            Ok(request) => request_line(text, request),
            Err(first) => escape_clf(text, first),
        }
        let _ = writeln!(text, "\" {} {} \"-\" \"-\"", self.status, self.sent);
    }
}

/// How a JSON line begins.
fn begin(text: &mut String, listener: &str, client: Option<IpAddr>) {
    text.push_str("{\"time\":\"");
    rfc3339(text);
    text.push_str("\",\"listener\":");
    quote(text, listener.as_bytes());
    text.push_str(",\"client\":");
    match client {
        Some(client) => {
            let _ = write!(text, "\"{client}\"");
        }
        None => text.push_str("null"),
    }
}

/// Method, host and path.
fn asked(text: &mut String, request: &Request) {
    for (name, value) in
        [(",\"method\":", request.method()), (",\"host\":", request.host()), (",\"path\":", request.target())]
    {
        text.push_str(name);
        quote(text, value);
    }
}

/// How a combined line begins: client, user, time, up to the quote before the request.
fn who(text: &mut String, client: Option<IpAddr>, user: Option<&[u8]>) {
    match client {
        Some(client) => {
            let _ = write!(text, "{client}");
        }
        None => text.push('-'),
    }
    text.push_str(" - ");
    escape_clf(text, user.filter(|user| !user.is_empty()).unwrap_or(b"-"));
    text.push_str(" [");
    clf(text);
    text.push_str("] \"");
}

fn request_line(text: &mut String, request: &Request) {
    escape_clf(text, request.method());
    text.push(' ');
    escape_clf(text, request.target());
    text.push_str(" HTTP/");
    text.push_str(version(request.version()));
}

/// The user of Basic authentication (RFC 7617): what stands before the first colon, with blanks and controls escaped as all
/// else is. What is no Basic, or no base64, has none.
fn user(request: &Request) -> Option<Vec<u8>> {
    let value = request.field("authorization")?;
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut plain = base64(rest.trim_ascii())?;
    let end = plain.iter().position(|b| *b == b':')?;
    plain.truncate(end);
    // A blank would end the column.
    plain.iter_mut().filter(|b| **b == b' ').for_each(|b| *b = b'_');
    Some(plain)
}

/// Base64 (RFC 4648, 4), with or without padding.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let value = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let end = text.iter().rposition(|b| *b != b'=').map_or(0, |at| at + 1);
    let mut out = Vec::with_capacity(end * 3 / 4);
    let (mut bits, mut n) = (0u32, 0);
    for b in &text[..end] {
        bits = bits << 6 | u32::from(value(*b)?);
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push((bits >> n) as u8);
            bits &= (1 << n) - 1;
        }
    }
    Some(out)
}

fn version(version: Version) -> &'static str {
    match version {
        Version::H10 => "1.0",
        Version::H11 => "1.1",
        Version::H2 => "2",
    }
}

pub(super) fn quote(text: &mut String, bytes: &[u8]) {
    text.push('"');
    escape(text, bytes);
    text.push('"');
}

/// Nothing that a client sends can end a line or a string of the log (JSON's escapes).
pub(crate) fn escape(text: &mut String, bytes: &[u8]) {
    escape_by(text, bytes, |text, b| {
        let _ = match b {
            b'\\' => write!(text, "\\\\"),
            _ => write!(text, "\\u{b:04x}"),
        };
    });
}

/// The same as nginx and Apache do it in their combined format.
fn escape_clf(text: &mut String, bytes: &[u8]) {
    escape_by(text, bytes, |text, b| {
        let _ = write!(text, "\\x{b:02X}");
    });
}

/// Copies what is plain in runs, and hands over the rest.
fn escape_by(text: &mut String, bytes: &[u8], escape: impl Fn(&mut String, u8)) {
    let is_plain = |b: &u8| matches!(b, 0x20..=0x7e) && !matches!(b, b'"' | b'\\');
    let mut rest = bytes;
    while !rest.is_empty() {
        let n = rest.iter().position(|b| !is_plain(b)).unwrap_or(rest.len());
        // What is plain is ASCII.
        text.push_str(std::str::from_utf8(&rest[..n]).unwrap_or_default());
        if let Some(b) = rest.get(n) {
            escape(text, *b);
        }
        rest = rest.get(n + 1..).unwrap_or_default();
    }
}

/// How an attempt came back.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    outcome.map_or("ok", Kind::name)
}

/// Milliseconds to the microsecond.
fn ms(text: &mut String, ns: Option<u64>) {
    let Some(ns) = ns else { return text.push_str("null") };
    let us = ns.saturating_add(500) / 1000;
    number(text, us / 1000);
    text.push('.');
    digits::<3>(text, us % 1000);
}

/// A number without a sign.
fn number(text: &mut String, mut n: u64) {
    let mut out = [0; 20];
    let mut at = out.len();
    loop {
        at -= 1;
        out[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    text.push_str(std::str::from_utf8(&out[at..]).unwrap_or_default());
}

/// The last `N` digits of a number.
fn digits<const N: usize>(text: &mut String, mut n: u64) {
    let mut out = [b'0'; N];
    for digit in out.iter_mut().rev() {
        *digit += (n % 10) as u8;
        n /= 10;
    }
    text.push_str(std::str::from_utf8(&out).unwrap_or_default());
}

/// `2026-11-21T18:40:02.123Z`.
fn rfc3339(text: &mut String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let t = Civil::new(now.as_secs());
    digits::<4>(text, t.year);
    for (sign, n) in [('-', t.month), ('-', t.day), ('T', t.hour), (':', t.minute), (':', t.second)] {
        text.push(sign);
        digits::<2>(text, n);
    }
    text.push('.');
    digits::<3>(text, u64::from(now.subsec_millis()));
    text.push('Z');
}

/// `21/Nov/2026:18:40:02 +0000`.
fn clf(text: &mut String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let t = Civil::new(now.as_secs());
    digits::<2>(text, t.day);
    text.push('/');
    text.push_str(t.month_name());
    text.push('/');
    digits::<4>(text, t.year);
    for n in [t.hour, t.minute, t.second] {
        text.push(':');
        digits::<2>(text, n);
    }
    text.push_str(" +0000");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &str) -> Request {
        let mut request = Request::default();
        let head = format!("GET /a\"b%01 HTTP/1.1\r\nHost: x\r\n{fields}\r\n").replace('"', "%22");
        request.parse(head.as_bytes(), &weir_http1::Limits::default()).expect("a head");
        request
    }

    #[test]
    fn the_user_of_basic_is_named() {
        for (value, want) in [
            ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", Some("Aladdin")),
            ("basic YSBiOmM", Some("a_b")),
            ("Basic !!!", None),
            ("Bearer QWxhZGRpbjpvcGVu", None),
            ("Basic bm8tY29sb24=", None),
        ] {
            let user = user(&request(&format!("Authorization: {value}\r\n")));
            assert_eq!(user.as_deref(), want.map(str::as_bytes), "{value}");
        }
    }

    #[test]
    fn escapes_are_those_of_nginx_and_of_json() {
        let (mut clf, mut json) = (String::new(), String::new());
        let bytes = b"a\"b\\c\x01\n\x7f\xc3 ~";
        escape_clf(&mut clf, bytes);
        escape(&mut json, bytes);
        assert_eq!(clf, "a\\x22b\\x5Cc\\x01\\x0A\\x7F\\xC3 ~");
        assert_eq!(json, "a\\u0022b\\\\c\\u0001\\u000a\\u007f\\u00c3 ~");
    }

    #[test]
    fn numbers_are_as_the_standard_library_writes_them() {
        for n in [0, 9, 10, 1234, u64::MAX] {
            let mut text = String::new();
            number(&mut text, n);
            assert_eq!(text, n.to_string());
        }
        let mut text = String::new();
        digits::<3>(&mut text, 12_042);
        assert_eq!(text, "042");
    }
}
