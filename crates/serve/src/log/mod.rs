//! The logs: the access log ([`AccessLog`], a line for each exchange) and the error log ([`ErrorLog`], messages for
//! people). Each is written by a thread of its own; a loop never waits for it.
//!
//! A loop gathers its lines of the access log ([`LoopLog`]) and sends them through a bounded queue, at each of its
//! ticks at the latest; lines without room are dropped and counted, and the count is written as soon as there is
//! room. `SIGUSR1` reopens files, so that they can be rotated. For whole lines and the count of lost ones see
//! `out.rs`.

mod changes;
mod error_log;
mod fields;
mod format;
mod gather;
mod history;
pub(crate) mod notes;
mod out;
mod stamp;
mod writer;

pub(crate) use changes::TargetChange;
pub(crate) use error_log::ErrorLog;
pub(crate) use format::{Entry, escape};
pub(crate) use history::History;

use crate::metrics::{HeadAnswer, RequestLimit};
use crate::sync::channel::{Sender, channel};
use fields::LogFields;
use format::RefusedRequest;
use gather::{LineBuffer, Waiting};
use out::Output;
use stamp::Stamp;
use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use weir_http1::Request;
use weir_net::transport::tls::TlsParameters;
use weir_plan::LogFormat;
use weir_plan::fixed::{self, ACCESS_LOG_FIRST_LINE_BYTES as FIRST_LINE, ACCESS_LOG_QUEUE as QUEUE};
use weir_policy::Kind;
use writer::Writer;

/// How long the end of the process waits for the last lines.
const FINISH: Duration = Duration::from_nanos(fixed::ACCESS_LOG_FINISH_NS);

/// A client.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    /// The name of the listener that it came to.
    pub listener: &'a str,
    pub ip: Option<IpAddr>,
    /// The parameters of its connection; `None`: cleartext, or before the handshake.
    pub tls: Option<&'a TlsParameters>,
}

/// The outcome of an exchange, for its line.
#[derive(Default)]
pub(crate) struct Line {
    /// The status that the client saw; 499 if it left, 0 if it got none.
    pub status: u16,
    /// The failure.
    pub failure: Option<Kind>,
    /// The limit of weir that ended it.
    pub limit: Option<RequestLimit>,
    /// weir ended it: its target was removed, and its `drain_timeout` was over.
    pub aborted: bool,
    /// Bytes of the response's body that the client's connection accepted.
    pub sent: u64,
}

impl Line {
    /// The client left: the status in nginx's log, which no client sees.
    pub fn left(&mut self) {
        (self.status, self.failure) = (499, Some(Kind::Cancelled));
    }

    /// The client saw an incomplete answer, since this limit ended its connection or its stream.
    pub fn cut_off(&mut self, limit: RequestLimit) {
        let kind = if limit == RequestLimit::Flood { Kind::BadRequest } else { Kind::Timeout };
        (self.status, self.failure, self.limit) = (499, Some(kind), Some(limit));
    }

    /// weir ended it.
    pub fn give_up(&mut self) {
        (self.aborted, self.failure, self.limit) =
            (true, Some(Kind::Reset), Some(RequestLimit::DrainTimeout));
    }
}

/// A message to the writer.
enum Message {
    /// A number of lines.
    Lines(String, usize),
    /// Everything before is to be written, then this is signalled.
    Written(SyncSender<()>),
    /// There is a command.
    Look,
}

/// The commands to the writer, besides lines.
#[derive(Default)]
struct Flags {
    /// The contents of the queue.
    waiting: Waiting,
    /// Lines that found no room in the queue.
    dropped: AtomicU64,
    /// Lost lines, as far as the writer has counted them.
    lost: AtomicU64,
    /// The file is to be reopened.
    reopen: AtomicBool,
    /// The process is about to end.
    ending: AtomicBool,
}

/// An access log, shared by all threads.
#[derive(Clone)]
pub(crate) struct AccessLog {
    to_writer: Sender<Message>,
    flags: Arc<Flags>,
    format: LogFormat,
    fields: Arc<LogFields>,
}

impl AccessLog {
    /// Opens it: `stdout`, `stderr`, or a file that is appended to.
    pub fn open(to: &str, format: LogFormat) -> io::Result<AccessLog> {
        let out = Output::open(to)?;
        let (to_writer, queue) = channel();
        let flags = Arc::new(Flags::default());
        let log = AccessLog { to_writer, flags: flags.clone(), format, fields: Arc::default() };
        let to = to.to_owned();
        std::thread::Builder::new()
            .name("weir-log".to_owned())
            .spawn(move || Writer::new(out, to, &flags).run(&queue))?;
        Ok(log)
    }

    /// The same log, with lines of this format.
    pub fn with_format(mut self, format: LogFormat) -> AccessLog {
        self.format = format;
        self
    }

    /// The same log, with these fields of messages in its lines.
    pub fn with_fields(mut self, fields: &[String]) -> AccessLog {
        self.fields = Arc::new(LogFields::new(fields));
        self
    }

    /// The log for this loop; `others` are those that the loop has already. Listeners with one log gather in one
    /// place, so that its lines are in the order in which they were written on the loop.
    pub fn on_loop<'a>(&self, number: u32, mut others: impl Iterator<Item = &'a LoopLog>) -> LoopLog {
        let same = others.find(|log| log.gathered.is_of(&self.flags));
        let gathered = match same {
            Some(log) => log.gathered.clone(),
            None => LineBuffer::new(self.to_writer.clone(), self.flags.clone()),
        };
        LoopLog {
            gathered,
            format: self.format,
            fields: self.fields.clone(),
            stamp: Stamp::new(self.format),
            number,
            histories: Cell::new(0),
        }
    }

    /// Lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.flags.lost.load(Ordering::Relaxed) + self.flags.dropped.load(Ordering::Relaxed)
    }

    /// Reopens the file, at once.
    pub fn reopen(&self) {
        // A writer that has ended writes no file; a running one will check.
        if !self.flags.reopen.swap(true, Ordering::Relaxed) {
            let _ = self.to_writer.send(Message::Look);
        }
    }

    /// Waits until all lines are written, for the time that a pipe without a reader may delay the end of a process.
    pub fn finish(&self) {
        let (tell, told) = sync_channel(1);
        self.flags.ending.store(true, Ordering::Relaxed);
        let _ = self.to_writer.send(Message::Written(tell));
        // The writer itself gives up after that time, and reports the lost lines.
        let _ = told.recv_timeout(2 * FINISH);
    }
}

/// An access log for one listener of one loop.
pub(crate) struct LoopLog {
    gathered: Rc<LineBuffer>,
    format: LogFormat,
    /// Fields of messages in its lines.
    pub fields: Arc<LogFields>,
    stamp: Stamp,
    /// The loop.
    number: u32,
    /// Histories written so far.
    histories: Cell<u64>,
}

impl LoopLog {
    /// Writes the line of an exchange.
    pub fn write(&self, entry: &Entry<'_>) {
        self.gathered.add(|text| entry.format(self, text));
    }

    /// Whether its lines contain the parts of an exchange.
    pub fn tells_all(&self) -> bool {
        self.format == LogFormat::Json
    }

    /// Writes the history of a request.
    pub fn history(&self, history: &History<'_>) {
        let number = self.histories.get();
        self.histories.set(number + 1);
        self.gathered.add(|text| history.format(self.number, number, text));
    }

    /// Writes the line of a request that was refused for its head.
    pub fn refused(&self, by: Client<'_>, request: &Request, answer: &HeadAnswer) {
        self.refuse(by, Ok(request), answer);
    }

    /// The same if the head could not be parsed, with the first line of the bytes received.
    pub fn unreadable(&self, by: Client<'_>, input: &[u8], answer: &HeadAnswer) {
        let input = &input[..input.len().min(FIRST_LINE)];
        let first = input.split(|b| matches!(b, b'\r' | b'\n')).next().unwrap_or_default();
        self.refuse(by, Err(first), answer);
    }

    fn refuse(&self, by: Client<'_>, what: Result<&Request, &[u8]>, answer: &HeadAnswer) {
        let Client { listener, ip, tls } = by;
        let refused = RefusedRequest { listener, client: ip.map(|ip| ip.to_canonical()), tls, what, answer };
        self.gathered.add(|text| refused.format(self, text));
    }

    /// Sends the lines gathered since the last time.
    pub fn hand_over(&self) {
        self.gathered.hand_over();
    }
}
