//! What a request costs in the codec: `cargo run --release -p weir-http2 --example request_cost` prints ns of each role for a
//! request and its answer, the least of rounds; payload is neither read nor copied.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this program measures time")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use weir_http2::{
    Block, Config, Connection, Event, Field, FieldSink, Pseudo, PseudoMarks, RequestLine, Role, Scratch,
};

const LINE: RequestLine<'_> = RequestLine {
    method: b"GET",
    scheme: Some(b"http"),
    authority: Some(b"127.0.0.1:8080"),
    path: Some(b"/64"),
    protocol: None,
    marks: PseudoMarks::NONE,
};

const fn field(name: &'static [u8], value: &'static [u8]) -> Field<'static> {
    Field { name, value, is_sensitive: false }
}

const ASKED: [Field<'_>; 1] = [field(b"user-agent", b"h2load nghttp2/1.52.0")];

const ANSWER: [Field<'_>; 6] = [
    field(b"server", b"nginx/1.22.1"),
    field(b"date", b"Sun, 06 Nov 1994 08:49:37 GMT"),
    field(b"content-type", b"text/plain"),
    field(b"last-modified", b"Sun, 06 Nov 1994 08:49:37 GMT"),
    field(b"etag", b"\"65a1b2c3-40\""),
    field(b"accept-ranges", b"bytes"),
];

struct Bytes(usize);

impl FieldSink for Bytes {
    fn begin(&mut self, _stream: u32, _block: Block) {}
    fn pseudo(&mut self, _pseudo: Pseudo, field: Field<'_>) {
        self.0 += field.value.len();
    }
    fn field(&mut self, field: Field<'_>) {
        self.0 += field.value.len();
    }
}

/// Both ends, what they have written, and how long each worked.
struct Pair {
    client: Connection,
    server: Connection,
    scratch: Scratch,
    sink: Bytes,
    spent: [Duration; 2],
}

impl Pair {
    fn new() -> Pair {
        Pair {
            client: Connection::new(Role::Client, Config::CLIENT),
            server: Connection::new(Role::Server, Config::SERVER),
            scratch: Scratch::default(),
            sink: Bytes(0),
            spent: [Duration::ZERO; 2],
        }
    }

    /// Sends `streams` requests at once, each of which is answered by `bytes` bytes.
    fn turn(&mut self, streams: usize, bytes: usize) {
        let begin = Instant::now();
        let mut out = Vec::with_capacity(streams * (bytes + 1000) + 1000);
        self.client.write(0, &mut out);
        for _ in 0..streams {
            self.client.send_request(0, &LINE, ASKED, true, &mut out).expect("free");
        }
        let sent = Instant::now();
        let answers = self.serve(&out, bytes);
        let served = Instant::now();
        take(&mut self.client, &answers, &mut self.sink, &mut self.scratch);
        let taken = Instant::now();
        self.spent[0] += (sent - begin) + (taken - served);
        self.spent[1] += served - sent;
    }

    fn serve(&mut self, requests: &[u8], bytes: usize) -> Vec<u8> {
        let asked = take(&mut self.server, requests, &mut self.sink, &mut self.scratch);
        let mut out = Vec::with_capacity(asked.len() * (bytes + 1000) + 1000);
        self.server.write(0, &mut out);
        for stream in &asked {
            self.server.send_answer(0, *stream, 200, ANSWER, false, &mut out).expect("open");
            self.server.set_pending(*stream, bytes as u64, true);
        }
        while let Some(turn) = self.server.next_data(0, 1 << 20, &mut out) {
            out.resize(out.len() + turn.length, 0);
        }
        for stream in asked {
            self.server.finish(0, stream);
        }
        out
    }
}

/// Reads all bytes; returns the streams that have come whole.
fn take(conn: &mut Connection, bytes: &[u8], sink: &mut Bytes, scratch: &mut Scratch) -> Vec<u32> {
    let (mut whole, mut at) = (Vec::with_capacity(100), 0);
    loop {
        let received = conn.receive(0, &bytes[at..], sink, scratch);
        at += received.used;
        match received.event {
            None => return whole,
            Some(Event::Request { stream, is_end: true }) => whole.push(stream),
            Some(Event::Data { stream, range, is_end }) => {
                conn.release(stream, range.len());
                if is_end {
                    conn.finish(0, stream);
                }
            }
            Some(_) => {}
        }
    }
}

fn main() {
    for (streams, bytes) in [(1, 64), (16, 64), (100, 64), (16, 0), (1, 60_000)] {
        let mut least = [f64::MAX; 2];
        let mut pair = Pair::new();
        for _ in 0..200 {
            pair.spent = [Duration::ZERO; 2];
            let turns = 2000 / streams;
            for _ in 0..turns {
                pair.turn(streams, bytes);
            }
            for (least, spent) in least.iter_mut().zip(pair.spent) {
                *least = least.min(spent.as_nanos() as f64 / (turns * streams) as f64);
            }
        }
        black_box(pair.sink.0);
        println!(
            "{streams:>3} at once, {bytes:>5} bytes: client {:>5.0} ns, server {:>5.0} ns",
            least[0], least[1]
        );
    }
}
