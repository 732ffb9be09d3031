//! A connection that requests share: the codec, the socket, and what has become of each request.

use super::Failure;
use crate::shape::body;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_http2::{Config, Connection, Event, Head, Rendered, Role, Scratch};
use weir_net::io::Core;
use weir_net::io::runtime::{AfterOthers, Waiter};
use weir_net::transport::wire::Wire;
use weir_plan::fixed::{
    H2_CONNECTION_WINDOW_BYTES, H2_STREAM_WINDOW_BYTES, MAX_RESPONSE_HEAD_BYTES, MAX_RESPONSE_HEADERS,
};
use weir_policy::Kind;

/// Bytes in the queue of the socket above which bodies wait.
const AT_ONCE: usize = 64 * 1024;

/// The largest piece of a body that leaves in one frame.
const FRAME: usize = 16 * 1024;

/// What this side announces. The server alone limits how many requests there are at once.
const CONFIG: Config = Config {
    max_streams: 1 << 20,
    max_head: MAX_RESPONSE_HEAD_BYTES as u32,
    max_fields: MAX_RESPONSE_HEADERS as u32,
    stream_window: H2_STREAM_WINDOW_BYTES,
    connection_window: H2_CONNECTION_WINDOW_BYTES,
    ..Config::CLIENT
};

/// A connection.
pub(super) struct Conn {
    core: Rc<Core>,
    wire: RefCell<Wire>,
    codec: RefCell<Connection>,
    is_https: bool,
    /// What reads heads.
    parser: RefCell<(Head, Scratch)>,
    /// Sorted by the number of their stream.
    answers: RefCell<Vec<Answer>>,
    driver: Waiter,
    has_settings: Cell<bool>,
    /// Requests that were given to it.
    pub streams: Cell<usize>,
    /// Whether it takes no more of them.
    pub is_ending: Cell<bool>,
}

/// What has come of an answer.
struct Answer {
    stream: u32,
    status: u16,
    /// Its cookies, if they matter.
    given: Option<Vec<Vec<u8>>>,
    end: Option<Result<u16, Failure>>,
    waiter: Waiter,
}

/// A request in flight; dropping it cancels it.
pub(super) struct InFlight {
    conn: Rc<Conn>,
    stream: u32,
}

impl Conn {
    /// A connection on which nothing was sent.
    pub fn new(core: &Rc<Core>, wire: Wire, is_https: bool) -> Rc<Conn> {
        Rc::new(Conn {
            core: core.clone(),
            wire: RefCell::new(wire),
            codec: RefCell::new(Connection::new(Role::Client, CONFIG)),
            is_https,
            parser: RefCell::default(),
            answers: RefCell::default(),
            driver: Waiter::default(),
            has_settings: Cell::new(false),
            streams: Cell::new(0),
            is_ending: Cell::new(false),
        })
    }

    /// Whether the server's settings have come.
    pub fn has_settings(&self) -> bool {
        self.has_settings.get()
    }

    /// Whether it takes one more request.
    pub fn has_room(&self) -> bool {
        let most = self.codec.borrow().peer_settings().max_concurrent_streams as usize;
        !self.is_ending.get() && self.streams.get() < most && self.codec.borrow().can_open()
    }

    /// Sends a request, given by its head in HTTP/1.1 syntax, with a body of this length; `None`: it takes none now.
    pub fn begin(self: &Rc<Self>, head: &[u8], body_bytes: u64, keeps_cookies: bool) -> Option<InFlight> {
        let rendered = Rendered::new(head);
        let line = rendered.request_line(self.is_https);
        let is_end = body_bytes == 0;
        let (now_ns, mut wire) = (self.core.recent(), self.wire.borrow_mut());
        let mut codec = self.codec.borrow_mut();
        let sent = codec.send_request(now_ns, &line, rendered.fields(), is_end, wire.queue_to());
        let Ok(stream) = sent else {
            self.is_ending.set(codec.is_ending());
            return None;
        };
        if !is_end {
            codec.set_pending(stream, body_bytes, true);
        }
        let given = keeps_cookies.then(Vec::new);
        let answer = Answer { stream, status: 0, given, end: None, waiter: Waiter::default() };
        self.answers.borrow_mut().push(answer);
        self.driver.wake(&self.core.runtime);
        Some(InFlight { conn: self.clone(), stream })
    }

    /// Reads what has come, and sends what is queued; ready at the end of the connection.
    pub fn poll(&self, cx: &mut Context<'_>, turn: &mut AfterOthers) -> Poll<()> {
        self.driver.set(&self.core.runtime, cx);
        let is_over = self.poll_read(cx).is_ready()
            || self.codec.borrow_mut().on_time(self.core.recent()).is_err()
            || matches!(self.poll_write(cx, turn), Poll::Ready(Err(_)))
            || self.codec.borrow().is_done() && self.wire.borrow().unsent() == 0;
        if !is_over {
            return Poll::Pending;
        }
        self.is_ending.set(true);
        self.end_all(Failure::With(Kind::Reset));
        Poll::Ready(())
    }

    fn poll_read(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.read_input();
            match ready!(self.wire.borrow_mut().poll_fill(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => self.core.now(),
            };
        }
    }

    fn read_input(&self) {
        let input = std::mem::take(self.wire.borrow_mut().input_mut());
        let (mut rest, now_ns) = (input.bytes(), self.core.recent());
        let (head, scratch) = &mut *self.parser.borrow_mut();
        loop {
            let received = self.codec.borrow_mut().receive(now_ns, rest, head, scratch);
            let Some(event) = received.event else { return };
            self.take(event, head);
            rest = &rest[received.used..];
        }
    }

    fn take(&self, event: Event, head: &Head) {
        match event {
            Event::Data { stream, range, is_end } => {
                self.codec.borrow_mut().release(stream, range.len());
                if is_end {
                    self.end(stream, None);
                }
            }
            Event::Answer { stream, status, is_end } => {
                self.take_head(stream, status, head);
                if is_end {
                    self.end(stream, None);
                }
            }
            Event::Trailers { stream } => self.end(stream, None),
            Event::Malformed { stream, .. } => self.end(stream, Some(Failure::With(Kind::BadResponse))),
            Event::Reset { stream, .. } => self.end(stream, Some(Failure::With(Kind::Reset))),
            Event::Unprocessed { stream } => self.end(stream, Some(Failure::Unprocessed)),
            Event::SettingsChanged => self.has_settings.set(true),
            Event::GoAway { .. } => self.is_ending.set(true),
            Event::Failed(_) => {
                self.is_ending.set(true);
                self.end_all(Failure::With(Kind::BadResponse));
            }
            Event::Interim { .. } | Event::SettingsAcknowledged | Event::Pong | Event::Request { .. } => {}
        }
    }

    fn take_head(&self, stream: u32, status: u16, head: &Head) {
        let mut answers = self.answers.borrow_mut();
        let Some(answer) = find(&mut answers, stream) else { return };
        answer.status = status;
        if let Some(given) = &mut answer.given {
            let cookies = head.fields().filter(|field| field.name == b"set-cookie");
            given.extend(cookies.map(|field| field.value.to_vec()));
        }
    }

    /// Ends a request; `None`: its answer has come whole.
    fn end(&self, stream: u32, failure: Option<Failure>) {
        if let Some(answer) = find(&mut self.answers.borrow_mut(), stream) {
            answer.end.get_or_insert(failure.map_or(Ok(answer.status), Err));
            answer.waiter.wake(&self.core.runtime);
        }
    }

    fn end_all(&self, failure: Failure) {
        for answer in &mut *self.answers.borrow_mut() {
            answer.end.get_or_insert(Err(failure));
            answer.waiter.wake(&self.core.runtime);
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, turn: &mut AfterOthers) -> Poll<io::Result<()>> {
        loop {
            let has_output = {
                let codec = self.codec.borrow();
                codec.has_output() || codec.has_data() || self.wire.borrow().unsent() > 0
            };
            if !has_output {
                break;
            }
            ready!(turn.poll(&self.core.runtime, cx));
            self.fill();
            let mut wire = self.wire.borrow_mut();
            if wire.unsent() == 0 {
                break;
            }
            ready!(wire.poll_flush(cx))?;
        }
        *turn = AfterOthers::default();
        self.wire.borrow_mut().rest();
        Poll::Ready(Ok(()))
    }

    /// Puts into the queue of the socket what is owed, and bodies.
    fn fill(&self) {
        let (mut codec, mut wire) = (self.codec.borrow_mut(), self.wire.borrow_mut());
        let now_ns = self.core.recent();
        if wire.unsent() < AT_ONCE {
            codec.write(now_ns, wire.queue_to());
        }
        while wire.unsent() < AT_ONCE
            && let Some(turn) = codec.next_data(now_ns, FRAME, wire.queue_to())
        {
            wire.queue(body(turn.length as u64));
        }
    }
}

fn find(answers: &mut [Answer], stream: u32) -> Option<&mut Answer> {
    let at = answers.binary_search_by_key(&stream, |answer| answer.stream).ok()?;
    answers.get_mut(at)
}

impl InFlight {
    /// How it has ended.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<u16, Failure>> {
        let mut answers = self.conn.answers.borrow_mut();
        let Some(answer) = find(&mut answers, self.stream) else {
            return Poll::Ready(Err(Failure::With(Kind::Reset)));
        };
        if let Some(end) = answer.end {
            return Poll::Ready(end);
        }
        answer.waiter.set(&self.conn.core.runtime, cx);
        Poll::Pending
    }

    /// The cookies that came with it.
    pub fn take_cookies(&self) -> Vec<Vec<u8>> {
        let mut answers = self.conn.answers.borrow_mut();
        find(&mut answers, self.stream).and_then(|answer| answer.given.take()).unwrap_or_default()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Conn { answers, codec, core, driver, .. } = &*self.conn;
        let mut answers = answers.borrow_mut();
        if let Ok(at) = answers.binary_search_by_key(&self.stream, |answer| answer.stream) {
            answers.remove(at);
        }
        codec.borrow_mut().finish(core.recent(), self.stream);
        driver.wake(&core.runtime);
    }
}
