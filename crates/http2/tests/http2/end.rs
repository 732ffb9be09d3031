//! One end of a connection, which notes what happens as text.

use crate::wire;
use weir_http2::{
    Block, Config, Connection, ConnectionError, ErrorCode, Event, Field, FieldSink, Pseudo, PseudoMarks,
    RequestLine, Role, Scratch,
};

/// The fields of the last block.
#[derive(Default)]
pub struct Heads(Vec<String>);

impl FieldSink for Heads {
    fn begin(&mut self, _stream: u32, _block: Block) {
        self.0.clear();
    }
    fn pseudo(&mut self, pseudo: Pseudo, field: Field<'_>) {
        let mark = if field.is_sensitive { "!" } else { "" };
        self.0.push(format!("{pseudo:?}={}{mark}", String::from_utf8_lossy(field.value)));
    }
    fn field(&mut self, field: Field<'_>) {
        let mark = if field.is_sensitive { "!" } else { "" };
        let (name, value) = (String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.value));
        self.0.push(format!("{name}={value}{mark}"));
    }
}

/// A connection, what it was sent, and what it has to say.
pub struct End {
    pub conn: Connection,
    pub now_ns: u64,
    heads: Heads,
    scratch: Scratch,
    /// Whether bytes of bodies are passed on at once.
    pub is_passing: bool,
}

/// Something that happened, as text: DATA in one piece, however it came.
pub type Happening = String;

impl End {
    pub fn new(role: Role, config: Config) -> End {
        End {
            conn: Connection::new(role, config),
            now_ns: 1,
            heads: Heads::default(),
            scratch: Scratch::default(),
            is_passing: true,
        }
    }

    /// A server to which a client has sent its preface and SETTINGS.
    pub fn server() -> End {
        let mut end = End::new(Role::Server, Config::SERVER);
        assert_eq!(end.take(&wire::opening()), ["settings"]);
        end.write();
        assert_eq!(end.take(&wire::frame(wire::SETTINGS, wire::ACK, 0, &[])), ["acknowledged"]);
        end
    }

    /// A client that has opened streams 1, 3, … by GET, and has its server's SETTINGS.
    pub fn client(streams: u32) -> End {
        let mut end = End::new(Role::Client, Config::CLIENT);
        for _ in 0..streams {
            end.ask(b"GET", true);
        }
        let ack = wire::frame(wire::SETTINGS, wire::ACK, 0, &[]);
        end.take(&wire::settings(&[]));
        end.write();
        end.take(&ack);
        end
    }

    /// Opens a stream; returns its frames.
    pub fn ask(&mut self, method: &[u8], is_end: bool) -> Vec<u8> {
        let line = RequestLine {
            method,
            scheme: Some(b"http"),
            authority: Some(b"h"),
            path: Some(b"/"),
            protocol: None,
            marks: PseudoMarks::NONE,
        };
        let mut out = Vec::new();
        self.conn.send_request(self.now_ns, &line, [], is_end, &mut out).expect("a stream is free");
        out
    }

    /// Answers a stream; returns the frames.
    pub fn answer(&mut self, stream: u32, status: u16, is_end: bool) -> Vec<u8> {
        let mut out = Vec::new();
        self.conn.send_answer(self.now_ns, stream, status, [], is_end, &mut out).expect("it is open");
        out
    }

    /// The events of received bytes.
    pub fn events(&mut self, bytes: &[u8]) -> Vec<Event> {
        let (mut events, mut at) = (Vec::new(), 0);
        loop {
            let rest = &bytes[at..];
            let received = self.conn.receive(self.now_ns, rest, &mut self.heads, &mut self.scratch);
            assert!(received.used <= rest.len());
            let Some(event) = received.event else {
                assert_eq!(received.used, rest.len(), "all is read");
                return events;
            };
            at += received.used;
            events.push(event);
        }
    }

    /// What happens by received bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Happening> {
        let (mut happenings, mut at) = (Vec::new(), 0);
        loop {
            let rest = &bytes[at..];
            let received = self.conn.receive(self.now_ns, rest, &mut self.heads, &mut self.scratch);
            let Some(event) = received.event else { return happenings };
            self.note(&event, rest, &mut happenings);
            at += received.used;
        }
    }

    fn note(&mut self, event: &Event, bytes: &[u8], happenings: &mut Vec<Happening>) {
        let fields = || self.heads.0.join(" ");
        let end = |is_end: bool| if is_end { " end" } else { "" };
        let happening = match event {
            Event::Request { stream, is_end } => format!("request {stream}{} {}", end(*is_end), fields()),
            Event::Interim { stream, status } => format!("interim {stream} {status}"),
            Event::Answer { stream, status, is_end } => {
                format!("answer {stream} {status}{}", end(*is_end))
            }
            Event::Trailers { stream } => format!("trailers {stream} {}", fields()),
            Event::Data { stream, range, is_end } => {
                let prefix = format!("data {stream} ");
                let text: String = bytes[range.clone()].iter().map(|b| char::from(*b)).collect();
                if self.is_passing {
                    self.conn.release(*stream, range.len());
                }
                match happenings.last_mut() {
                    Some(last) if last.starts_with(&prefix) => last.push_str(&text),
                    _ if text.is_empty() => {}
                    _ => happenings.push(prefix + &text),
                }
                if !is_end {
                    return;
                }
                format!("end {stream}")
            }
            Event::Malformed { stream, why, may_answer } => {
                let answer = if *may_answer { " may-answer" } else { "" };
                format!("malformed {stream} {}{answer}", why.name())
            }
            Event::Reset { stream, code } => format!("reset {stream} {code}"),
            Event::Unprocessed { stream } => format!("unprocessed {stream}"),
            Event::SettingsChanged => "settings".to_owned(),
            Event::SettingsAcknowledged => "acknowledged".to_owned(),
            Event::Pong => "pong".to_owned(),
            Event::GoAway { last, code, text } => match String::from_utf8_lossy(text) {
                text if text.is_empty() => format!("goaway {last} {code}"),
                text => format!("goaway {last} {code} {text}"),
            },
            Event::Failed(ConnectionError { code, .. }) => format!("failed {code}"),
        };
        happenings.push(happening);
    }

    /// The fields of the last block.
    pub fn fields(&self) -> String {
        self.heads.0.join(" ")
    }

    /// The control frames that it owes.
    pub fn write(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.conn.write(self.now_ns, &mut out);
        out
    }

    /// Its turns of DATA, with nothing but zeros: frames, and the order of streams with lengths.
    pub fn turns(&mut self) -> (Vec<u8>, Vec<(u32, usize)>) {
        let (mut out, mut order) = (Vec::new(), Vec::new());
        while let Some(turn) = self.conn.next_data(self.now_ns, usize::MAX, &mut out) {
            out.resize(out.len() + turn.length, 0);
            order.push((turn.stream, turn.length));
        }
        (out, order)
    }

    /// Why the connection has failed by these bytes; `None`: it has not.
    pub fn fails(&mut self, bytes: &[u8]) -> Option<ErrorCode> {
        self.events(bytes).into_iter().find_map(|event| match event {
            Event::Failed(error) => Some(error.code),
            _ => None,
        })
    }

    /// Whether the connection is alive: it answers PING.
    pub fn is_alive(&mut self) -> bool {
        self.take(&wire::frame(wire::PING, 0, 0, b"is alive"));
        let frames = wire::frames(&self.write());
        frames.iter().any(|frame| frame.kind == wire::PING && frame.payload == b"is alive")
    }
}
