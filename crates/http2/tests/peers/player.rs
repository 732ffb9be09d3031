//! weir's codec as either side of a list of exchanges.

use crate::exchange::{Exchange, Fields, Message};
use std::collections::{BTreeMap, VecDeque};
use weir_http2::*;

/// The last block of fields.
#[derive(Default)]
struct Heads {
    path: String,
    fields: Fields,
}

impl FieldSink for Heads {
    fn begin(&mut self, _stream: u32, _block: Block) {
        self.path.clear();
        self.fields.clear();
    }
    fn pseudo(&mut self, pseudo: Pseudo, field: Field<'_>) {
        if pseudo == Pseudo::Path {
            self.path = text(field.value);
        }
    }
    fn field(&mut self, field: Field<'_>) {
        assert_eq!(field.is_sensitive, field.name == b"authorization", "marks pass");
        self.fields.push((text(field.name), text(field.value)));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn fields(fields: &Fields) -> impl Iterator<Item = Field<'_>> {
    fields.iter().map(|(name, value)| Field {
        name: name.as_bytes(),
        value: value.as_bytes(),
        is_sensitive: name == "authorization",
    })
}

/// A stream on this side.
#[derive(Default)]
struct Work {
    number: usize,
    sent: usize,
    /// What of its own message waits.
    message: Message,
    status: u16,
    received: Message,
}

/// One side.
pub struct Player<'a> {
    pub conn: Connection,
    role: Role,
    exchanges: &'a [Exchange],
    heads: Heads,
    scratch: Scratch,
    work: BTreeMap<u32, Work>,
    /// Exchanges that are to be begun, by number.
    waiting: VecDeque<usize>,
    /// By the number of the exchange: the status, and the message that came whole.
    pub whole: BTreeMap<usize, (u16, Message)>,
    /// Streams that the other side has reset.
    pub resets: Vec<(usize, ErrorCode)>,
    out: Vec<u8>,
}

impl<'a> Player<'a> {
    pub fn new(role: Role, config: Config, exchanges: &'a [Exchange]) -> Player<'a> {
        Player {
            conn: Connection::new(role, config),
            role,
            exchanges,
            heads: Heads::default(),
            scratch: Scratch::default(),
            work: BTreeMap::new(),
            waiting: (0..exchanges.len()).filter(|_| role == Role::Client).collect(),
            whole: BTreeMap::new(),
            resets: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Whether it has nothing to do any more.
    pub fn is_idle(&self) -> bool {
        self.work.is_empty() && self.waiting.is_empty()
    }

    /// A turn: reads these bytes, and returns what is to be sent.
    pub fn turn(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.read(bytes);
        while self.conn.can_open()
            && let Some(number) = self.waiting.pop_front()
        {
            self.open(number);
        }
        self.conn.write(1, &mut self.out);
        while let Some(turn) = self.conn.next_data(1, 9_999, &mut self.out) {
            let work = self.work.get_mut(&turn.stream).expect("its stream is there");
            self.out.extend_from_slice(&work.message.body[work.sent..work.sent + turn.length]);
            work.sent += turn.length;
            if turn.pending == 0 && !turn.is_end {
                let trailers = work.message.trailers.take().expect("something follows");
                let sent = self.conn.send_trailers(1, turn.stream, fields(&trailers), &mut self.out);
                sent.expect("its body was sent");
            }
            self.finish_if_over(turn.stream);
        }
        std::mem::take(&mut self.out)
    }

    fn open(&mut self, number: usize) {
        let exchange = &self.exchanges[number];
        let path = Exchange::path(number);
        let line = RequestLine {
            method: exchange.method.as_bytes(),
            scheme: Some(b"http"),
            authority: Some(b"example.org"),
            path: Some(path.as_bytes()),
            protocol: None,
            marks: PseudoMarks::NONE,
        };
        let message = exchange.request.clone();
        let is_end = message.body.is_empty() && message.trailers.is_none();
        let opened = self.conn.send_request(1, &line, fields(&message.fields), is_end, &mut self.out);
        let stream = opened.expect("a stream is free");
        self.send_body(stream, &message);
        self.work.insert(stream, Work { number, message, ..Work::default() });
    }

    /// What follows a head.
    fn send_body(&mut self, stream: u32, message: &Message) {
        match (&message.body[..], &message.trailers) {
            (b"", None) => {}
            (b"", Some(trailers)) => {
                self.conn.send_trailers(1, stream, fields(trailers), &mut self.out).expect("it is open");
            }
            (body, trailers) => self.conn.set_pending(stream, body.len() as u64, trailers.is_none()),
        }
    }

    fn answer(&mut self, stream: u32) {
        let Some(work) = self.work.get_mut(&stream) else { return };
        let exchange = &self.exchanges[work.number];
        work.message = exchange.answer.clone();
        let message = work.message.clone();
        if exchange.has_interim {
            self.conn.send_answer(1, stream, 103, [], false, &mut self.out).expect("it is open");
        }
        let is_end = message.body.is_empty() && message.trailers.is_none();
        let fields = fields(&message.fields);
        self.conn.send_answer(1, stream, exchange.status, fields, is_end, &mut self.out).expect("it is open");
        self.send_body(stream, &message);
        self.finish_if_over(stream);
    }

    fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let received = self.conn.receive(1, rest, &mut self.heads, &mut self.scratch);
            let (read, behind) = rest.split_at(received.used);
            let Some(event) = received.event else { return };
            self.take(event, read);
            rest = behind;
        }
    }

    fn take(&mut self, event: Event, read: &[u8]) {
        match event {
            Event::Request { stream, is_end } => self.take_request(stream, is_end),
            Event::Answer { stream, status, is_end } => {
                let Some(work) = self.work.get_mut(&stream) else { return };
                work.status = status;
                work.received.fields.clone_from(&self.heads.fields);
                if self.exchanges[work.number].is_cancelled && !is_end {
                    self.finish(stream);
                } else if is_end {
                    self.end(stream);
                }
            }
            Event::Data { stream, range, is_end } => {
                self.conn.release(stream, range.len());
                let Some(work) = self.work.get_mut(&stream) else { return };
                work.received.body.extend_from_slice(&read[range]);
                if is_end {
                    self.end(stream);
                }
            }
            Event::Trailers { stream } => {
                let Some(work) = self.work.get_mut(&stream) else { return };
                work.received.trailers = Some(self.heads.fields.clone());
                self.end(stream);
            }
            Event::Reset { stream, code } => {
                self.resets.push((self.work[&stream].number, code));
                self.finish(stream);
            }
            Event::Unprocessed { stream } => {
                let number = self.work[&stream].number;
                // One that was sent before the limit was known is sent again.
                if !self.exchanges[number].is_refused {
                    self.waiting.push_back(number);
                }
                self.finish(stream);
            }
            // What the `h2` crate's client says when it has nothing more to ask.
            Event::GoAway { code: ErrorCode::NO_ERROR, .. } => {}
            Event::Malformed { .. } | Event::Failed(_) | Event::GoAway { .. } => panic!("{event:?}"),
            Event::Interim { .. } | Event::SettingsChanged | Event::SettingsAcknowledged | Event::Pong => {}
        }
    }

    fn take_request(&mut self, stream: u32, is_end: bool) {
        let number = self.heads.path.rsplit('/').next().and_then(|n| n.parse().ok()).expect("a number");
        let received = Message { fields: self.heads.fields.clone(), ..Message::default() };
        self.work.insert(stream, Work { number, received, ..Work::default() });
        if self.exchanges[number].is_refused {
            self.conn.refuse_request(1, stream);
            self.finish(stream);
        } else if is_end {
            self.end(stream);
        }
    }

    /// The peer's message has come whole.
    fn end(&mut self, stream: u32) {
        let Some(work) = self.work.get_mut(&stream) else { return };
        let message = std::mem::take(&mut work.received);
        self.whole.insert(work.number, (work.status, message));
        match self.role {
            Role::Server => self.answer(stream),
            Role::Client => self.finish_if_over(stream),
        }
    }

    fn finish_if_over(&mut self, stream: u32) {
        if self.conn.is_over(stream) {
            self.finish(stream);
        }
    }

    fn finish(&mut self, stream: u32) {
        self.work.remove(&stream);
        self.conn.finish(1, stream);
    }
}
