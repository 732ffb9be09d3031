//! What weir writes down: the access log ([`AccessLog`], a line for each exchange) and the error log ([`ErrorLog`], what a
//! person should read). Each is written by a thread of its own; a loop never waits for it.
//!
//! A loop gathers its lines of the access log ([`LoopLog`]) and hands them over through a bounded queue, at each of its ticks
//! at the latest; what does not fit is dropped and counted, and the count is written as soon as there is room. `SIGUSR1`
//! reopens files, so that they can be rotated. How whole lines are written, and lost ones counted: `out.rs`.

mod error_log;
mod format;
mod gather;
mod history;
pub(crate) mod notes;
mod out;
mod stamp;
mod writer;

pub(crate) use error_log::ErrorLog;
pub(crate) use format::{Entry, escape};
pub(crate) use history::History;

use crate::metrics::{HeadAnswer, RequestLimit};
use format::Refused;
use gather::{Gathered, Waiting};
use out::Out;
use stamp::Stamp;
use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use weir_http1::Request;
use weir_plan::LogFormat;
use weir_plan::fixed::{self, ACCESS_LOG_FIRST_LINE_BYTES as FIRST_LINE, ACCESS_LOG_QUEUE as QUEUE};
use weir_policy::Kind;
use writer::Writer;

/// How long the end of the process waits for the last lines.
const FINISH: Duration = Duration::from_nanos(fixed::ACCESS_LOG_FINISH_NS);

/// The listener that a client came to, and its address.
pub(crate) type Client<'a> = (&'a str, Option<IpAddr>);

/// What an exchange notes for its line.
#[derive(Default)]
pub(crate) struct Line {
    /// The status that the client saw; 499 where it left, 0 where it got none.
    pub status: u16,
    /// What went wrong.
    pub failure: Option<Kind>,
    /// The limit of weir's own that ended it.
    pub limit: Option<RequestLimit>,
    /// weir gave it up: its target was removed, and its `drain_timeout` was over.
    pub aborted: bool,
    /// Bytes of the response's body that the client's connection took.
    pub sent: u64,
}

impl Line {
    /// The client left: what nginx writes to its log, and no client sees.
    pub fn left(&mut self) {
        (self.status, self.failure) = (499, Some(Kind::Cancelled));
    }

    /// The client saw no whole answer, since this limit ended its connection or its stream.
    pub fn cut_off(&mut self, limit: RequestLimit) {
        let kind = if limit == RequestLimit::Flood { Kind::BadRequest } else { Kind::Timeout };
        (self.status, self.failure, self.limit) = (499, Some(kind), Some(limit));
    }

    /// weir gave it up.
    pub fn give_up(&mut self) {
        (self.aborted, self.failure, self.limit) =
            (true, Some(Kind::Reset), Some(RequestLimit::DrainTimeout));
    }
}

/// What waits for the writer.
enum Message {
    /// So many lines.
    Lines(String, usize),
    /// All that came before is to be written, and this told.
    Written(SyncSender<()>),
    /// There is something to do beside the lines.
    Look,
}

/// What the writer is told beside the lines.
#[derive(Default)]
struct Flags {
    /// What is in the queue.
    waiting: Waiting,
    /// Lines that found no room in the queue.
    dropped: AtomicU64,
    /// Lines that are lost, as far as the writer has counted them.
    lost: AtomicU64,
    /// The file is to be opened anew.
    reopen: AtomicBool,
    /// The process is about to end.
    ending: AtomicBool,
}

/// An access log, as all threads have it.
#[derive(Clone)]
pub(crate) struct AccessLog {
    to_writer: Sender<Message>,
    flags: Arc<Flags>,
    format: LogFormat,
}

impl AccessLog {
    /// Opens it: `stdout`, `stderr`, or a file that is appended to.
    pub fn open(to: &str, format: LogFormat) -> io::Result<AccessLog> {
        let out = Out::open(to)?;
        let (to_writer, queue) = channel();
        let flags = Arc::new(Flags::default());
        let log = AccessLog { to_writer, flags: flags.clone(), format };
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

    /// The log as this loop writes to it; `others` are those that the loop has already. Listeners with one log gather in one
    /// place, so that its lines are in the order in which they were written on the loop.
    pub fn on_loop<'a>(&self, number: u32, mut others: impl Iterator<Item = &'a LoopLog>) -> LoopLog {
        let same = others.find(|log| log.gathered.is_of(&self.flags));
        let gathered = match same {
            Some(log) => log.gathered.clone(),
            None => Gathered::new(self.to_writer.clone(), self.flags.clone()),
        };
        LoopLog {
            gathered,
            format: self.format,
            stamp: Stamp::new(self.format),
            number,
            histories: Cell::new(0),
        }
    }

    /// Lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.flags.lost.load(Ordering::Relaxed) + self.flags.dropped.load(Ordering::Relaxed)
    }

    /// The file is opened anew, at once.
    pub fn reopen(&self) {
        // A writer that has ended writes no file; one that was told will look.
        if !self.flags.reopen.swap(true, Ordering::Relaxed) {
            let _ = self.to_writer.send(Message::Look);
        }
    }

    /// Waits until all lines are written, for as long as a process that ends may be kept by a pipe that nobody reads.
    pub fn finish(&self) {
        let (tell, told) = sync_channel(1);
        self.flags.ending.store(true, Ordering::Relaxed);
        let _ = self.to_writer.send(Message::Written(tell));
        // The writer itself gives up after that time, and says what is lost.
        let _ = told.recv_timeout(2 * FINISH);
    }
}

/// An access log, as one loop writes to it for one listener.
pub(crate) struct LoopLog {
    gathered: Rc<Gathered>,
    format: LogFormat,
    stamp: Stamp,
    /// Which loop.
    number: u32,
    /// Histories that were written.
    histories: Cell<u64>,
}

impl LoopLog {
    /// Takes the line of an exchange.
    pub fn write(&self, entry: &Entry<'_>) {
        self.gathered.add(|text| entry.format(self.format, &self.stamp, text));
    }

    /// Whether its lines tell of the parts of an exchange.
    pub fn tells_all(&self) -> bool {
        self.format == LogFormat::Json
    }

    /// Takes the history of a request.
    pub fn history(&self, history: &History<'_>) {
        let number = self.histories.get();
        self.histories.set(number + 1);
        self.gathered.add(|text| history.format((self.number, number), text));
    }

    /// Takes the line of a request that was refused for what its head asks.
    pub fn refused(&self, by: Client<'_>, request: &Request, answer: &HeadAnswer) {
        self.refuse(by, Ok(request), answer);
    }

    /// The same where the head could not be read, with the first line of what came.
    pub fn unreadable(&self, by: Client<'_>, input: &[u8], answer: &HeadAnswer) {
        let input = &input[..input.len().min(FIRST_LINE)];
        let first = input.split(|b| matches!(b, b'\r' | b'\n')).next().unwrap_or_default();
        self.refuse(by, Err(first), answer);
    }

    fn refuse(&self, by: Client<'_>, what: Result<&Request, &[u8]>, answer: &HeadAnswer) {
        let (listener, client) = by;
        let refused = Refused { listener, client: client.map(|ip| ip.to_canonical()), what, answer };
        self.gathered.add(|text| refused.format(self.format, &self.stamp, text));
    }

    /// Hands over what was taken since the last time.
    pub fn hand_over(&self) {
        self.gathered.hand_over();
    }
}
