//! The access log: a line for each exchange, written by a thread of its own; a loop never waits for it.
//!
//! Loops hand lines over through a bounded queue; what does not fit is dropped and counted, and the count is written as soon
//! as there is room. `SIGUSR1` reopens files, so that they can be rotated. What each field means: `docs/logs.md`; how whole
//! lines are written, and lost ones counted: `log/out.rs`.

pub(crate) mod error_log;
mod out;
mod writer;

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::failure::Failure;
use crate::h1::server::Conn;
use out::Out;
use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_http1::{Request, Version};
use weir_policy::Kind;
use weir_topology::plan::LogFormat;
use weir_topology::plan::fixed::{
    self, ACCESS_LOG_FIRST_LINE_BYTES as FIRST_LINE, ACCESS_LOG_QUEUE as QUEUE,
};
use writer::Writer;

/// How long the end of the process waits for the last lines.
const FINISH: Duration = Duration::from_nanos(fixed::ACCESS_LOG_FINISH_NS);

/// What an exchange notes for its line.
pub(crate) struct Line {
    /// The status that the client saw; 499 where it left.
    pub status: u16,
    /// What went wrong.
    pub failure: Option<Kind>,
    /// Bytes of the response's body that the client's socket took.
    pub sent: u64,
}

impl Line {
    /// The line of an exchange that begins.
    pub fn new() -> Line {
        Line { status: 0, failure: None, sent: 0 }
    }

    /// The client left, or did not take its answer.
    pub fn left(&mut self) {
        let gone = Failure::gone();
        (self.status, self.failure) = (gone.status, Some(gone.kind));
    }
}

/// What waits for the writer.
enum Entry {
    Line(String),
    /// All that came before is to be written, and this told.
    Written(SyncSender<()>),
    /// There is something to do beside the lines.
    Look,
}

/// A log that loops write to.
#[derive(Clone)]
pub(crate) struct Log {
    lines: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
    reopen: Arc<AtomicBool>,
    format: LogFormat,
}

impl Log {
    /// Opens it: `stdout`, `stderr`, or a file that is appended to.
    pub fn open(to: &str, format: LogFormat) -> io::Result<Log> {
        let out = Out::open(to)?;
        let (lines, queue) = sync_channel(QUEUE);
        let (dropped, reopen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let log = Log { lines, dropped: dropped.clone(), reopen: reopen.clone(), format };
        let to = to.to_owned();
        std::thread::Builder::new()
            .name("weir-log".to_owned())
            .spawn(move || Writer::new(out, to, &dropped, &reopen).run(&queue))?;
        Ok(log)
    }

    /// The same log, with lines of this format.
    pub fn with_format(mut self, format: LogFormat) -> Log {
        self.format = format;
        self
    }

    /// The file is opened anew, at once.
    pub fn reopen(&self) {
        self.reopen.store(true, Ordering::Relaxed);
        // Where there is no room, the writer is at work, and looks before the next lines.
        let _ = self.lines.try_send(Entry::Look);
    }

    /// Hands a line over.
    pub fn write(&self, lp: &Loop, ex: &Exchange, line: &Line) {
        let text = match self.format {
            LogFormat::Json => json(lp, ex, line),
            LogFormat::Combined => combined(ex, line),
        };
        self.hand_over(text);
    }

    /// Hands over the line of a request that was refused for its head: what it asked, if that could be read, else the first
    /// line of what came. `sent`: bytes of the answer's body.
    pub fn refused(&self, conn: &Conn, read: Option<&Request>, status: u16, sent: usize) {
        let wire = conn.wire.borrow();
        let input = &wire.input()[..wire.input().len().min(FIRST_LINE)];
        let first = || input.split(|b| matches!(b, b'\r' | b'\n')).next().unwrap_or_default();
        let refused = Refused { what: read.ok_or_else(first), status, sent };
        let client = conn.peer.map(|p| p.ip().to_canonical());
        self.hand_over(match self.format {
            LogFormat::Json => refused.json(&conn.listener.name, client),
            LogFormat::Combined => refused.combined(client),
        });
    }

    fn hand_over(&self, text: String) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Entry::Line(text)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, for as long as a process that ends may be kept by a pipe that nobody reads.
    pub fn finish(&self) {
        let (tell, told) = sync_channel(1);
        let end = Instant::now() + FINISH;
        while let Err(TrySendError::Full(_)) = self.lines.try_send(Entry::Written(tell.clone())) {
            if Instant::now() >= end {
                return;
            }
            let _ = told.recv_timeout(FINISH / 100);
        }
        let _ = told.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}

fn json(lp: &Loop, ex: &Exchange, line: &Line) -> String {
    let mut text = String::with_capacity(320);
    let took_ns = lp.now().saturating_sub(ex.begun_ns);
    text.push_str("{\"time\":\"");
    text.push_str(&rfc3339());
    text.push_str("\",\"listener\":");
    quote(&mut text, ex.conn.listener.name.as_bytes());
    text.push_str(",\"client\":");
    match ex.checked.client {
        Some(client) => quote(&mut text, client.to_string().as_bytes()),
        None => text.push_str("null"),
    }
    asked(&mut text, &ex.request);
    let _ = write!(text, ",\"version\":\"{}\",\"status\":{}", version(ex.version()), line.status);
    match line.failure {
        Some(kind) => {
            let _ = write!(text, ",\"error\":\"{}\"", kind.name());
        }
        None => text.push_str(",\"error\":null"),
    }
    text.push_str(",\"target\":");
    match ex.origin.borrow().as_deref() {
        Some(server) => quote(&mut text, server.name.as_bytes()),
        None => text.push_str("null"),
    }
    let _ = writeln!(
        text,
        ",\"attempts\":{},\"reused\":{},\"resent\":{},\"received\":{},\"sent\":{},\"duration_ms\":{:.3}}}",
        // What weir answered itself, or nobody, was no attempt.
        if ex.origin.borrow().is_some() { ex.attempts() } else { 0 },
        ex.reused.get(),
        ex.resent.get(),
        ex.body.borrow().received,
        line.sent,
        took_ns as f64 / 1e6
    );
    text
}

/// A request that was refused for its head.
struct Refused<'a> {
    /// What was asked, or the first line of what came.
    what: Result<&'a Request, &'a [u8]>,
    status: u16,
    sent: usize,
}

impl Refused<'_> {
    /// The fields of every line, as far as they are known, and `line` where nothing could be read.
    fn json(&self, listener: &str, client: Option<IpAddr>) -> String {
        let mut text = String::with_capacity(320);
        let _ = write!(text, "{{\"time\":\"{}\",\"listener\":", rfc3339());
        quote(&mut text, listener.as_bytes());
        text.push_str(",\"client\":");
        match client {
            Some(client) => quote(&mut text, client.to_string().as_bytes()),
            None => text.push_str("null"),
        }
        match self.what {
            Ok(request) => {
                asked(&mut text, request);
                let _ = write!(text, ",\"version\":\"{}\"", version(request.version()));
            }
            Err(first) => {
                text.push_str(",\"method\":null,\"host\":null,\"path\":null,\"version\":null,\"line\":");
                quote(&mut text, first);
            }
        }
        let _ = writeln!(
            text,
            ",\"status\":{},\"error\":\"{}\",\"target\":null,\"attempts\":0,\"reused\":false,\"resent\":false,\"received\":0,\"sent\":{},\"duration_ms\":0}}",
            self.status,
            Kind::BadRequest.name(),
            self.sent
        );
        text
    }

    /// As nginx has it: what came stands where the request would.
    fn combined(&self, client: Option<IpAddr>) -> String {
        let mut text = client.map_or_else(|| "-".to_owned(), |c| c.to_string());
        let _ = write!(text, " - - [{}] \"", clf());
        match self.what {
            Ok(request) => request_line(&mut text, request),
            Err(first) => escape(&mut text, first),
        }
        let _ = writeln!(text, "\" {} {} \"-\" \"-\"", self.status, self.sent);
        text
    }
}

/// Method, host and path.
fn asked(text: &mut String, request: &Request) {
    for (name, value) in [("method", request.method()), ("host", request.host()), ("path", request.target())]
    {
        let _ = write!(text, ",\"{name}\":");
        quote(text, value);
    }
}

fn request_line(text: &mut String, request: &Request) {
    escape(text, request.method());
    text.push(' ');
    escape(text, request.target());
    let _ = write!(text, " HTTP/{}", version(request.version()));
}

/// nginx's and Apache's combined format.
fn combined(ex: &Exchange, line: &Line) -> String {
    let mut text = String::with_capacity(240);
    match ex.checked.client {
        Some(client) => {
            let _ = write!(text, "{client}");
        }
        None => text.push('-'),
    }
    let _ = write!(text, " - - [{}] \"", clf());
    request_line(&mut text, &ex.request);
    let _ = write!(text, "\" {} {} \"", line.status, line.sent);
    escape(&mut text, ex.request.field("referer").unwrap_or(b"-"));
    text.push_str("\" \"");
    escape(&mut text, ex.request.field("user-agent").unwrap_or(b"-"));
    text.push_str("\"\n");
    text
}

fn version(version: Version) -> &'static str {
    match version {
        Version::H10 => "1.0",
        Version::H11 => "1.1",
        Version::H2 => "2",
    }
}

fn quote(text: &mut String, bytes: &[u8]) {
    text.push('"');
    escape(text, bytes);
    text.push('"');
}

/// Nothing that a client sends can end a line or a string of the log.
pub(crate) fn escape(text: &mut String, bytes: &[u8]) {
    for &b in bytes {
        match b {
            b'"' => text.push_str("\\u0022"),
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(b)),
            _ => {
                let _ = write!(text, "\\u{:04x}", b);
            }
        }
    }
}

/// `2026-11-21T18:40:02.123Z`.
fn rfc3339() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let t = crate::io::date::Civil::new(now.as_secs());
    let ms = now.subsec_millis();
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        t.year, t.month, t.day, t.hour, t.minute, t.second
    )
}

/// `21/Nov/2026:18:40:02 +0000`.
fn clf() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let t = crate::io::date::Civil::new(now.as_secs());
    format!(
        "{:02}/{}/{:04}:{:02}:{:02}:{:02} +0000",
        t.day,
        t.month_name(),
        t.year,
        t.hour,
        t.minute,
        t.second
    )
}
