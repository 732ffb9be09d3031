//! Entry points for any bytes of a peer, with what must hold of them: run here on what a generator makes, and by `fuzz/`.

use weir_http2::*;

/// Any bytes of a client behind its preface and SETTINGS.
pub fn server(bytes: &[u8]) {
    let opening = [&PREFACE[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    check(bytes, || {
        let mut end = End::new(Role::Server, Config::SERVER);
        end.take(&opening);
        end
    });
}

/// Any bytes of an origin behind its SETTINGS, to which some requests were sent.
pub fn client(bytes: &[u8]) {
    check(bytes, || {
        let mut end = End::new(Role::Client, Config::CLIENT);
        end.take(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        for method in [&b"GET"[..], b"HEAD", b"POST", b"CONNECT", b"PUT"] {
            end.ask(method);
        }
        end
    });
}

/// However the bytes are cut, the same happens and the same is written; memory is bounded, and in the end nothing of it is
/// left.
fn check(bytes: &[u8], begin: impl Fn() -> End) {
    let whole = run(begin(), &mut [bytes].into_iter());
    for length in [1, 2, 7, 100] {
        let cut = run(begin(), &mut bytes.chunks(length));
        assert_eq!(cut.0, whole.0, "in pieces of {length}");
        assert_eq!(cut.1, whole.1, "in pieces of {length}");
    }
}

/// A frame: kind, flags, stream, payload.
type Frame = (u8, u8, u32, Vec<u8>);

fn run(mut end: End, pieces: &mut dyn Iterator<Item = &[u8]>) -> (Vec<String>, Vec<Frame>) {
    for piece in pieces {
        end.take(piece);
        assert!(end.conn.footprint() < 200_000, "{}", end.conn.footprint());
    }
    end.write();
    end.finish_all();
    let frames = frames(&end.out);
    (end.happenings, frames)
}

/// The frames of what was written, which are whole and no longer than a peer must take.
fn frames(out: &[u8]) -> Vec<Frame> {
    let mut rest = out.strip_prefix(&PREFACE[..]).unwrap_or(out);
    let mut frames = Vec::new();
    while let Some(([a, b, c, kind, flags, stream @ ..], behind)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        assert!(length <= 16_384);
        let (payload, behind) = behind.split_at(length);
        frames.push((*kind, *flags, u32::from_be_bytes(*stream), payload.to_vec()));
        rest = behind;
    }
    assert!(rest.is_empty(), "the last frame is whole");
    frames
}

/// Notes fields.
#[derive(Default)]
struct Heads(String);

impl FieldSink for Heads {
    fn begin(&mut self, _stream: u32, _block: Block) {
        self.0.clear();
    }
    fn pseudo(&mut self, pseudo: Pseudo, field: Field<'_>) {
        self.0.push_str(&format!("{pseudo:?} {} ", field.value.escape_ascii()));
    }
    fn field(&mut self, field: Field<'_>) {
        assert!(!field.name.is_empty() && !field.name.iter().any(u8::is_ascii_uppercase));
        assert!(!field.value.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')));
        self.0.push_str(&format!("{} {} ", field.name.escape_ascii(), field.value.escape_ascii()));
    }
}

/// A connection whose user does something on each event.
struct End {
    conn: Connection,
    heads: Heads,
    scratch: Scratch,
    happenings: Vec<String>,
    out: Vec<u8>,
    /// Bytes of bodies that were not passed on.
    held: Vec<(u32, usize)>,
    /// Streams that are not finished.
    open: Vec<u32>,
    has_failed: bool,
}

impl End {
    fn new(role: Role, config: Config) -> End {
        End {
            conn: Connection::new(role, config),
            heads: Heads::default(),
            scratch: Scratch::default(),
            happenings: Vec::new(),
            out: Vec::new(),
            held: Vec::new(),
            open: Vec::new(),
            has_failed: false,
        }
    }

    fn ask(&mut self, method: &[u8]) {
        let is_connect = method == b"CONNECT";
        let line = RequestLine {
            method,
            scheme: (!is_connect).then_some(b"http"),
            authority: Some(b"h"),
            path: (!is_connect).then_some(b"/"),
            protocol: None,
            marks: PseudoMarks::NONE,
        };
        let is_end = matches!(method, b"GET" | b"HEAD");
        let Ok(stream) = self.conn.send_request(1, &line, [], is_end, &mut self.out) else { return };
        self.open.push(stream);
        if method == b"POST" {
            self.conn.set_pending(stream, 100_000, true);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let received = self.conn.receive(1, rest, &mut self.heads, &mut self.scratch);
            let (read, behind) = rest.split_at(received.used);
            let Some(event) = received.event else {
                assert!(behind.is_empty(), "all is read");
                return;
            };
            assert!(!self.has_failed, "nothing happens after an error");
            self.note(&event, read);
            self.act(&event);
            rest = behind;
        }
    }

    fn note(&mut self, event: &Event, read: &[u8]) {
        let happening = match event {
            // It comes in as many pieces as the bytes.
            Event::Data { stream, range, is_end } => {
                assert!(self.open.contains(stream));
                self.held.push((*stream, range.len()));
                let prefix = format!("data {stream} ");
                let text = read[range.clone()].escape_ascii().to_string();
                match self.happenings.last_mut() {
                    Some(last) if last.starts_with(&prefix) => last.push_str(&text),
                    _ if text.is_empty() => {}
                    _ => self.happenings.push(prefix + &text),
                }
                if !is_end {
                    return;
                }
                format!("end {stream}")
            }
            Event::Request { .. } | Event::Answer { .. } | Event::Interim { .. } | Event::Trailers { .. } => {
                format!("{event:?} {}", self.heads.0)
            }
            event => format!("{event:?}"),
        };
        self.happenings.push(happening);
    }

    /// Does something that depends on the stream alone.
    fn act(&mut self, event: &Event) {
        match *event {
            Event::Request { stream, .. } => {
                self.open.push(stream);
                self.answer(stream);
            }
            Event::Malformed { stream, may_answer: true, .. } => {
                self.open.push(stream);
                self.conn.send_answer(1, stream, 400, [], true, &mut self.out).expect("it may be answered");
                self.finish(stream);
            }
            Event::Malformed { stream, .. } | Event::Reset { stream, .. } | Event::Unprocessed { stream } => {
                self.finish(stream);
            }
            Event::Data { stream, is_end: true, .. } | Event::Trailers { stream } => {
                self.finish_if_over(stream);
            }
            Event::Answer { stream, is_end: true, .. } => self.finish_if_over(stream),
            Event::Failed(_) => self.has_failed = true,
            _ => {}
        }
    }

    fn answer(&mut self, stream: u32) {
        let fields = [Field { name: b"Server", value: b"weir", is_sensitive: false }];
        let kind = stream / 2 % 4;
        if kind == 0 {
            return;
        }
        if kind == 3 {
            self.conn.send_answer(1, stream, 103, fields, false, &mut self.out).expect("it is open");
        }
        self.conn.send_answer(1, stream, 200, fields, kind == 1, &mut self.out).expect("it is open");
        if kind > 1 {
            self.conn.set_pending(stream, if kind == 2 { 70_000 } else { 10 }, kind == 2);
        }
        self.finish_if_over(stream);
    }

    fn finish_if_over(&mut self, stream: u32) {
        if self.conn.is_over(stream) {
            self.finish(stream);
        }
    }

    fn finish(&mut self, stream: u32) {
        let before = self.open.len();
        self.open.retain(|open| *open != stream);
        assert_eq!(self.open.len() + 1, before, "stream {stream} was open");
        self.conn.finish(1, stream);
    }

    /// All that there is to send: control frames, and bodies as far as the windows go.
    fn write(&mut self) {
        for (stream, bytes) in std::mem::take(&mut self.held) {
            self.conn.release(stream, bytes);
        }
        self.conn.write(1, &mut self.out);
        while let Some(turn) = self.conn.next_data(1, 20_000, &mut self.out) {
            assert!(self.open.contains(&turn.stream) && !self.has_failed);
            self.out.resize(self.out.len() + turn.length, 0);
            if turn.pending == 0 && !turn.is_end {
                self.conn.send_trailers(1, turn.stream, [], &mut self.out).expect("its body was sent");
            }
        }
    }

    fn finish_all(&mut self) {
        for stream in std::mem::take(&mut self.open) {
            self.conn.finish(1, stream);
        }
        self.conn.write(1, &mut self.out);
        assert!(self.conn.next_data(1, 20_000, &mut self.out).is_none());
        assert_eq!(self.conn.streams(), 0);
        let _ = self.conn.on_time(1_000_000_000_000);
        self.conn.write(1, &mut self.out);
        assert_eq!(self.conn.footprint(), self.gathered());
    }

    /// A block of fields that has not come whole may be held.
    fn gathered(&self) -> usize {
        if self.conn.is_between_frames() || self.has_failed { 0 } else { self.conn.footprint() }
    }
}
