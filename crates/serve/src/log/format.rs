//! The lines of the access log: JSON, or nginx's and Apache's combined format. What each field means: `docs/logs.md`.

use super::fields::{LogFields, write_value};
use super::notes::Notes;
use super::stamp::Stamp;
use super::{Line, LoopLog};
use crate::metrics::{HeadAnswer, LabelValue as _, RequestLimit};
use data_encoding::{BASE64_NOPAD, Encoding};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::LazyLock;
use weir_http1::{Request, Trace, Version};
use weir_net::transport::tls::TlsParameters;
use weir_plan::LogFormat;
use weir_policy::{Kind, Outcome};

/// The contents of a line about an exchange.
pub(crate) struct Entry<'a> {
    pub listener: &'a str,
    pub client: Option<IpAddr>,
    pub request: &'a Request,
    pub line: &'a Line,
    /// The target that was tried last, and its address.
    pub target: Option<&'a str>,
    pub upstream: Option<&'a str>,
    /// Whether the client uses TLS, by its connection or by what a trusted peer says.
    pub is_https: bool,
    /// The parameters of the connection's TLS.
    pub tls: Option<&'a TlsParameters>,
    pub attempts: u32,
    /// The trace that it belongs to.
    pub trace: Option<Trace>,
    pub reused: bool,
    pub resent: bool,
    pub received: u64,
    pub took_ns: u64,
    /// The generation of the graph that it began in.
    pub generation: u32,
    /// Its name.
    pub id: Option<&'a str>,
    /// Its parts, and the targets that it tried.
    pub notes: Option<&'a Notes>,
}

/// The contents of a line about a request that was refused for its head.
pub(super) struct RefusedRequest<'a> {
    pub listener: &'a str,
    pub client: Option<IpAddr>,
    pub tls: Option<&'a TlsParameters>,
    /// The request, or the first line of the bytes received.
    pub what: Result<&'a Request, &'a [u8]>,
    pub answer: &'a HeadAnswer,
}

impl Entry<'_> {
    /// Writes it as a line.
    pub(super) fn format(&self, log: &LoopLog, text: &mut String) {
        match log.format {
            LogFormat::Json => self.json(&log.stamp, &log.fields, text),
            LogFormat::Combined => self.combined(&log.stamp, text),
        }
    }

    fn json(&self, now: &Stamp, fields: &LogFields, text: &mut String) {
        begin(text, now, self.listener, self.client);
        asked(text, self.request);
        text.push_str(match self.request.version() {
            Version::H10 => ",\"version\":\"1.0\",\"status\":",
            Version::H11 => ",\"version\":\"1.1\",\"status\":",
            Version::H2 => ",\"version\":\"2\",\"status\":",
        });
        number(text, u64::from(self.line.status));
        match self.line.failure {
            Some(kind) => {
                text.push_str(",\"error\":\"");
                text.push_str(kind.name());
                text.push('"');
            }
            None => text.push_str(",\"error\":null"),
        }
        limit(text, self.line.limit);
        text.push_str(",\"target\":");
        match self.target {
            Some(name) => {
                text.push('"');
                escape_own(text, name);
                text.push_str("\",\"attempts\":");
            }
            None => text.push_str("null,\"attempts\":"),
        }
        number(text, u64::from(self.attempts));
        text.push_str(if self.reused { ",\"reused\":true" } else { ",\"reused\":false" });
        text.push_str(if self.resent { ",\"resent\":true" } else { ",\"resent\":false" });
        text.push_str(if self.line.aborted { ",\"aborted\":true" } else { ",\"aborted\":false" });
        text.push_str(",\"received\":");
        number(text, self.received);
        text.push_str(",\"sent\":");
        number(text, self.line.sent);
        text.push_str(",\"duration_ms\":");
        ms(text, Some(self.took_ns));
        self.parts(text);
        let scheme = if self.is_https { "https" } else { "http" };
        connection(text, Some(self.request), scheme, self.tls);
        text.push_str(",\"upstream\":");
        write_value(text, self.upstream.map(str::as_bytes));
        let noted = self.notes.map(|notes| notes.response.borrow());
        fields.write(text, Some(self.request), noted.as_deref().map_or(&[], Vec::as_slice));
        text.push_str("}\n");
    }

    /// Its name, the times of its parts, the targets that it tried.
    fn parts(&self, text: &mut String) {
        text.push_str(",\"generation\":");
        number(text, u64::from(self.generation));
        match self.id {
            Some(id) => {
                text.push_str(",\"request_id\":");
                quote(text, id.as_bytes());
            }
            None => text.push_str(",\"request_id\":null"),
        }
        match self.trace {
            Some(trace) => {
                let _ = write!(text, ",\"trace_id\":\"{:032x}\"", trace.id);
            }
            None => text.push_str(",\"trace_id\":null"),
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
            text.push_str(if at == 0 { "{\"target\":\"" } else { ",{\"target\":\"" });
            escape_own(text, tried.target.name());
            text.push_str("\",\"outcome\":\"");
            text.push_str(outcome(tried.outcome.unwrap_or(Some(Kind::Cancelled))));
            text.push_str("\"}");
        }
        text.push(']');
    }

    fn combined(&self, now: &Stamp, text: &mut String) {
        write_combined_start(text, now, self.client, user(self.request).as_deref());
        request_line(text, self.request);
        let _ = write!(text, "\" {} {} \"", self.line.status, self.line.sent);
        escape_clf(text, self.request.field("referer").unwrap_or(b"-"));
        text.push_str("\" \"");
        escape_clf(text, self.request.field("user-agent").unwrap_or(b"-"));
        text.push_str("\"\n");
    }
}

impl RefusedRequest<'_> {
    /// Writes it as a line.
    pub(super) fn format(&self, log: &LoopLog, text: &mut String) {
        match log.format {
            LogFormat::Json => self.json(&log.stamp, &log.fields, text),
            LogFormat::Combined => self.combined(&log.stamp, text),
        }
    }

    /// The fields of every line, as far as they are known, and `line` if nothing could be parsed.
    fn json(&self, now: &Stamp, fields: &LogFields, text: &mut String) {
        begin(text, now, self.listener, self.client);
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
        let HeadAnswer { status, sent, .. } = self.answer;
        let _ = write!(text, ",\"status\":{status},\"error\":\"{}\"", Kind::BadRequest.name());
        limit(text, self.answer.limit);
        let _ = write!(
            text,
            ",\"target\":null,\"attempts\":0,\"reused\":false,\"resent\":false,\"aborted\":false,\"received\":0,\"sent\":{sent},\"duration_ms\":0,\"generation\":null,\"request_id\":null,\"trace_id\":null,\"request\":null,\"queue\":0,\"connect\":null,\"response\":null,\"total\":0,\"tried\":[]"
        );
        let request = self.what.ok();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        connection(text, request, scheme, self.tls);
        text.push_str(",\"upstream\":null");
        fields.write(text, request, &[]);
        text.push_str("}\n");
    }

    /// As nginx does: the received bytes in place of the request.
    fn combined(&self, now: &Stamp, text: &mut String) {
        write_combined_start(text, now, self.client, self.what.ok().and_then(user).as_deref());
        match self.what {
            Ok(request) => request_line(text, request),
            Err(first) => escape_clf(text, first),
        }
        let _ = writeln!(text, "\" {} {} \"-\" \"-\"", self.answer.status, self.answer.sent);
    }
}

/// The start of a JSON line.
fn begin(text: &mut String, now: &Stamp, listener: &str, client: Option<IpAddr>) {
    text.push_str("{\"time\":\"");
    now.write(text);
    text.push_str("\",\"listener\":\"");
    escape_own(text, listener);
    match client {
        Some(client) => {
            text.push_str("\",\"client\":\"");
            address(text, client);
            text.push('"');
        }
        None => text.push_str("\",\"client\":null"),
    }
}

/// As `Display`, but an IPv4 address, the common case, without its machinery.
fn address(text: &mut String, client: IpAddr) {
    match client {
        IpAddr::V4(client) => {
            for (at, octet) in client.octets().into_iter().enumerate() {
                if at > 0 {
                    text.push('.');
                }
                number(text, u64::from(octet));
            }
        }
        IpAddr::V6(client) => {
            let _ = write!(text, "{client}");
        }
    }
}

/// The limit that ended it.
fn limit(text: &mut String, limit: Option<RequestLimit>) {
    match limit {
        Some(limit) => {
            text.push_str(",\"limit\":\"");
            text.push_str(limit.name());
            text.push('"');
        }
        None => text.push_str(",\"limit\":null"),
    }
}

/// What the client says of itself, and how it has connected.
fn connection(text: &mut String, request: Option<&Request>, scheme: &str, tls: Option<&TlsParameters>) {
    for (key, name) in [(",\"user_agent\":", "user-agent"), (",\"referer\":", "referer")] {
        text.push_str(key);
        write_value(text, request.and_then(|request| request.field(name)));
    }
    text.push_str(",\"scheme\":\"");
    text.push_str(scheme);
    text.push_str("\",\"tls\":");
    write_value(text, tls.map(|tls| tls.version().as_bytes()));
    text.push_str(",\"server_name\":");
    write_value(text, tls.and_then(TlsParameters::server_name).map(str::as_bytes));
}

/// Method, host and path.
fn asked(text: &mut String, request: &Request) {
    for (name, value) in [
        (",\"method\":\"", request.method()),
        ("\",\"host\":\"", request.host()),
        ("\",\"path\":\"", request.target()),
    ] {
        text.push_str(name);
        escape(text, value);
    }
    text.push('"');
}

/// The start of a combined line: client, user, time, up to the quote before the request.
fn write_combined_start(text: &mut String, now: &Stamp, client: Option<IpAddr>, user: Option<&[u8]>) {
    match client {
        Some(client) => address(text, client),
        None => text.push('-'),
    }
    text.push_str(" - ");
    escape_clf(text, user.filter(|user| !user.is_empty()).unwrap_or(b"-"));
    text.push_str(" [");
    now.write(text);
    text.push_str("] \"");
}

fn request_line(text: &mut String, request: &Request) {
    escape_clf(text, request.method());
    text.push(' ');
    escape_clf(text, request.target());
    text.push_str(" HTTP/");
    text.push_str(version(request.version()));
}

/// The user of Basic authentication (RFC 7617): the text before the first colon, with blanks and controls escaped
/// like all else. Other schemes, and invalid base64, have none.
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

/// Base64 (RFC 4648, 4) as most origins decode it: with or without padding, with any bits after the last byte.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    static BASE64: LazyLock<Encoding> = LazyLock::new(|| {
        let mut lenient = BASE64_NOPAD.specification();
        lenient.check_trailing_bits = false;
        lenient.encoding().unwrap_or(BASE64_NOPAD)
    });
    let end = text.iter().rposition(|b| *b != b'=').map_or(0, |at| at + 1);
    BASE64.decode(&text[..end]).ok()
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

/// No byte from a client can end a line or a string of the log (JSON's escapes).
pub(crate) fn escape(text: &mut String, bytes: &[u8]) {
    escape_by(text, bytes, |text, b| {
        let _ = match b {
            b'\\' => write!(text, "\\\\"),
            _ => write!(text, "\\u{b:04x}"),
        };
    });
}

/// The same escapes as those of nginx and Apache in their combined format.
fn escape_clf(text: &mut String, bytes: &[u8]) {
    escape_by(text, bytes, |text, b| {
        let _ = write!(text, "\\x{b:02X}");
    });
}

/// A text of the configuration: nearly always plain throughout.
fn escape_own(text: &mut String, own: &str) {
    if own.bytes().all(|b| is_plain(&b)) {
        text.push_str(own);
    } else {
        escape(text, own.as_bytes());
    }
}

/// Whether a byte needs no escape in a string.
fn is_plain(b: &u8) -> bool {
    matches!(b, 0x20..=0x7e) && !matches!(b, b'"' | b'\\')
}

/// Copies plain runs, and calls `escape` for the other bytes.
fn escape_by(text: &mut String, bytes: &[u8], escape: impl Fn(&mut String, u8)) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let n = rest.iter().position(|b| !is_plain(b)).unwrap_or(rest.len());
        // Plain bytes are ASCII.
        text.push_str(std::str::from_utf8(&rest[..n]).unwrap_or_default());
        if let Some(b) = rest.get(n) {
            escape(text, *b);
        }
        rest = rest.get(n + 1..).unwrap_or_default();
    }
}

/// The outcome of an attempt.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    outcome.map_or("ok", Kind::name)
}

/// Milliseconds to the microsecond.
fn ms(text: &mut String, ns: Option<u64>) {
    let Some(ns) = ns else { return text.push_str("null") };
    let us = ns.saturating_add(500) / 1000;
    number(text, us / 1000);
    text.push('.');
    text.push_str(three((us % 1000) as usize));
}

/// All numbers of three digits, one after another: most numbers of a line are no larger, and this is the fastest way
/// to write them.
const THREES: [u8; 3000] = {
    let (mut all, mut n) = ([b'0'; 3000], 0);
    while n < 1000 {
        all[3 * n] += (n / 100) as u8;
        all[3 * n + 1] += (n / 10 % 10) as u8;
        all[3 * n + 2] += (n % 10) as u8;
        n += 1;
    }
    all
};
const THREES_AS_TEXT: &str = match std::str::from_utf8(&THREES) {
    Ok(text) => text,
    Err(_) => panic!("digits are text"),
};

/// A number below 1,000 with its leading zeros.
fn three(n: usize) -> &'static str {
    &THREES_AS_TEXT[3 * n..3 * n + 3]
}

/// A number without a sign.
fn number(text: &mut String, n: u64) {
    match n {
        0..10 => text.push_str(&three(n as usize)[2..]),
        10..100 => text.push_str(&three(n as usize)[1..]),
        100..1000 => text.push_str(three(n as usize)),
        _ => {
            number(text, n / 1000);
            text.push_str(three((n % 1000) as usize));
        }
    }
}

/// The last `N` digits of a number.
pub(super) fn digits<const N: usize>(text: &mut String, mut n: u64) {
    let mut out = [b'0'; N];
    for digit in out.iter_mut().rev() {
        *digit += (n % 10) as u8;
        n /= 10;
    }
    text.push_str(std::str::from_utf8(&out).unwrap_or_default());
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
            ("Basic YSBiOmN=", Some("a_b")),
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
        for n in [0, 9, 10, 99, 100, 999, 1000, 1234, 1_000_001, u64::MAX] {
            let mut text = String::new();
            number(&mut text, n);
            assert_eq!(text, n.to_string());
        }
        let mut text = String::new();
        digits::<3>(&mut text, 12_042);
        assert_eq!(text, "042");
    }
}
