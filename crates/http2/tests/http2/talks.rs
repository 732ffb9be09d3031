//! Both roles talk to each other, at random: what one writes the other reads as it was meant, and at the end nothing is
//! left on either side.

use crate::wire::{RST_STREAM, frames};
use std::collections::BTreeMap;
use weir_http2::{
    Block, Config, Connection, ErrorCode, Event, Field, FieldSink, Pseudo, PseudoMarks, RequestLine, Role,
    Scratch,
};
use weir_testkit::Random;

/// A byte of a body: by its sender, stream and place, so that none is mistaken for another.
fn byte(role: Role, stream: u32, at: u64) -> u8 {
    (at as u8).wrapping_mul(31).wrapping_add(stream as u8).wrapping_add(u8::from(role == Role::Server) * 7)
}

#[derive(Default)]
struct Heads(usize);

impl FieldSink for Heads {
    fn begin(&mut self, _stream: u32, _block: Block) {
        self.0 = 0;
    }
    fn pseudo(&mut self, _pseudo: Pseudo, _field: Field<'_>) {}
    fn field(&mut self, field: Field<'_>) {
        assert!(field.name.starts_with(b"x-") && field.value.len() < 5000);
        self.0 += 1;
    }
}

/// What one side knows of a stream.
#[derive(Default, Debug)]
struct Work {
    /// Bytes of its own body, and how many were sent.
    length: u64,
    sent: u64,
    has_trailers: bool,
    has_head: bool,
    has_sent_all: bool,
    received: u64,
    /// Received, and not passed on.
    held: usize,
    has_received_all: bool,
    is_reset: bool,
}

struct Side {
    role: Role,
    conn: Connection,
    scratch: Scratch,
    heads: Heads,
    work: BTreeMap<u32, Work>,
    out: Vec<u8>,
    whole: usize,
    has_goaway: bool,
}

impl Side {
    fn new(role: Role, config: Config) -> Side {
        Side {
            role,
            conn: Connection::new(role, config),
            scratch: Scratch::default(),
            heads: Heads::default(),
            work: BTreeMap::new(),
            out: Vec::new(),
            whole: 0,
            has_goaway: false,
        }
    }

    fn plan(&self, random: &mut Random) -> Work {
        let length = match random.below(5) {
            0 => 0,
            1 => random.below(10) as u64,
            2 => random.below(200_000) as u64,
            _ => random.below(20_000) as u64,
        };
        Work { length, has_trailers: random.percent(30), ..Work::default() }
    }

    fn open(&mut self, now_ns: u64, random: &mut Random) {
        let work = self.plan(random);
        let line = RequestLine {
            method: b"POST",
            scheme: Some(b"https"),
            authority: Some(b"example.org"),
            path: Some(b"/"),
            protocol: None,
            marks: PseudoMarks::NONE,
        };
        let most = if random.percent(5) { 5000 } else { 50 };
        let value = vec![b'v'; random.below(most)];
        let fields = (0..random.below(5)).map(|_| Field { name: b"x-a", value: &value, is_sensitive: false });
        let is_end = work.length == 0 && !work.has_trailers;
        let Ok(stream) = self.conn.send_request(now_ns, &line, fields, is_end, &mut self.out) else { return };
        let pending = work.length;
        let ends = !work.has_trailers;
        self.work.insert(stream, Work { has_head: true, has_sent_all: is_end, ..work });
        if !is_end {
            self.conn.set_pending(stream, pending, ends && pending > 0);
        }
    }

    fn answer(&mut self, now_ns: u64, stream: u32, random: &mut Random) {
        let Some(work) = self.work.get_mut(&stream) else { return };
        if work.has_head || work.is_reset {
            return;
        }
        if random.percent(10) {
            self.conn.send_answer(now_ns, stream, 103, [], false, &mut self.out).expect("open");
        }
        let is_end = work.length == 0 && !work.has_trailers;
        self.conn.send_answer(now_ns, stream, 200, [], is_end, &mut self.out).expect("open");
        (work.has_head, work.has_sent_all) = (true, is_end);
        let (pending, ends) = (work.length, !work.has_trailers);
        if !is_end {
            self.conn.set_pending(stream, pending, ends && pending > 0);
        }
    }

    /// One write: control frames, DATA with trailers behind it.
    fn write(&mut self, now_ns: u64, random: &mut Random) {
        self.conn.write(now_ns, &mut self.out);
        let most = 1 + random.below(30_000);
        for _ in 0..random.below(8) {
            let Some(turn) = self.conn.next_data(now_ns, most, &mut self.out) else { break };
            let work = self.work.get_mut(&turn.stream).expect("its stream is there");
            for at in work.sent..work.sent + turn.length as u64 {
                self.out.push(byte(self.role, turn.stream, at));
            }
            work.sent += turn.length as u64;
            assert_eq!(turn.pending, work.length - work.sent);
            assert_eq!(turn.is_end, work.sent == work.length && !work.has_trailers);
            work.has_sent_all = turn.is_end;
        }
        let ready: Vec<u32> =
            self.work.iter().filter(|(_, w)| may_send_trailers(w)).map(|(s, _)| *s).collect();
        for stream in ready {
            let fields = [Field { name: b"x-trailer", value: b"t", is_sensitive: true }];
            self.conn.send_trailers(now_ns, stream, fields, &mut self.out).expect("open");
            self.work.get_mut(&stream).expect("there").has_sent_all = true;
        }
    }

    fn receive(&mut self, now_ns: u64, bytes: &[u8], random: &mut Random) {
        let other = if self.role == Role::Server { Role::Client } else { Role::Server };
        let mut at = 0;
        loop {
            let received = self.conn.receive(now_ns, &bytes[at..], &mut self.heads, &mut self.scratch);
            let from = at;
            at += received.used;
            let Some(event) = received.event else { return assert_eq!(at, bytes.len()) };
            match event {
                Event::Request { stream, is_end } => {
                    let work = self.plan(random);
                    self.work.insert(stream, Work { has_received_all: is_end, ..work });
                }
                Event::Answer { stream, is_end, .. } => self.work(stream).has_received_all = is_end,
                Event::Data { stream, range, is_end } => {
                    let work = self.work.get_mut(&stream).expect("it is there");
                    for (i, b) in bytes[from..][range.clone()].iter().enumerate() {
                        assert_eq!(*b, byte(other, stream, work.received + i as u64), "stream {stream}");
                    }
                    work.received += range.len() as u64;
                    work.held += range.len();
                    work.has_received_all = is_end;
                }
                Event::Trailers { stream } => {
                    assert_eq!(self.heads.0, 1);
                    self.work(stream).has_received_all = true;
                }
                Event::Reset { stream, .. } | Event::Unprocessed { stream } => {
                    self.work(stream).is_reset = true
                }
                Event::GoAway { .. } => self.has_goaway = true,
                Event::Malformed { .. } | Event::Failed(_) => panic!("{event:?}"),
                Event::Interim { .. }
                | Event::SettingsChanged
                | Event::SettingsAcknowledged
                | Event::Pong => {}
            }
        }
    }

    fn work(&mut self, stream: u32) -> &mut Work {
        self.work.get_mut(&stream).expect("its stream is there")
    }

    /// Passes received bytes on, and finishes what is over; `is_last`: everything.
    fn pass(&mut self, now_ns: u64, random: &mut Random, is_last: bool) {
        let mut finished = Vec::new();
        for (stream, work) in &mut self.work {
            let n = if is_last { work.held } else { random.below(work.held + 1) };
            self.conn.release(*stream, n);
            work.held -= n;
            if work.is_reset || work.has_received_all && work.has_sent_all && work.held == 0 {
                finished.push(*stream);
            }
        }
        for stream in finished {
            self.conn.finish(now_ns, stream);
            let work = self.work.remove(&stream).expect("it was there");
            self.whole += usize::from(!work.is_reset);
        }
    }

    fn cancel(&mut self, now_ns: u64, random: &mut Random) {
        let streams: Vec<u32> = self.work.keys().copied().collect();
        if let Some(stream) = streams.get(random.below(streams.len().max(1))) {
            self.conn.reset(now_ns, *stream, ErrorCode::CANCEL);
            self.work(*stream).is_reset = true;
        }
    }
}

fn may_send_trailers(work: &Work) -> bool {
    work.has_head && !work.is_reset && work.has_trailers && !work.has_sent_all && work.sent == work.length
}

/// Moves a random part of what one side has written; all of it if `is_last`.
fn carry(from: &mut Side, to: &mut Side, now_ns: u64, random: &mut Random, is_last: bool) {
    let n = if is_last { from.out.len() } else { random.below(from.out.len() + 1) };
    let piece: Vec<u8> = from.out.drain(..n).collect();
    to.receive(now_ns, &piece, random);
}

fn config(random: &mut Random, config: Config) -> Config {
    Config {
        max_streams: 1 + random.below(10) as u32,
        stream_window: [100, 16_384, 65_535, 65_536, 1 << 20][random.below(5)],
        max_stream_window: 1 << 20,
        connection_window: [65_535, 1 << 20, 3 << 20][random.below(3)],
        header_table: [0, 100, 4096][random.below(3)],
        ..config
    }
}

fn talk(seed: u64) -> (usize, usize) {
    let random = &mut Random::new(seed);
    let mut client = Side::new(Role::Client, config(random, Config::CLIENT));
    let mut server = Side::new(Role::Server, config(random, Config::SERVER));
    let mut now_ns = 0;
    for _ in 0..random.below(400) {
        // Slowly enough that no reset is a flood.
        now_ns += 20_000_000;
        match random.below(20) {
            0..=3 => client.open(now_ns, random),
            4..=6 => {
                let streams: Vec<u32> = server.work.keys().copied().collect();
                if !streams.is_empty() {
                    server.answer(now_ns, streams[random.below(streams.len())], random);
                }
            }
            7..=9 => client.write(now_ns, random),
            10..=12 => server.write(now_ns, random),
            13 | 14 => carry(&mut client, &mut server, now_ns, random, false),
            15 | 16 => carry(&mut server, &mut client, now_ns, random, false),
            17 => client.pass(now_ns, random, false),
            18 => server.pass(now_ns, random, false),
            _ if random.percent(50) => {
                let side = if random.percent(50) { &mut client } else { &mut server };
                side.cancel(now_ns, random);
            }
            _ if random.percent(5) => server.conn.drain(now_ns),
            _ => {}
        }
    }
    settle(&mut client, &mut server, now_ns, random);
    for side in [&mut client, &mut server] {
        assert!(side.work.is_empty(), "seed {seed}: {:?} {:?}", side.role, side.work);
        assert_eq!(side.conn.streams(), 0, "seed {seed}");
        side.conn.on_time(now_ns + 100_000_000_000).expect("nothing is late");
        assert_eq!(side.conn.footprint(), 0, "seed {seed}");
    }
    (client.whole, server.whole)
}

/// Goes on until nothing moves.
fn settle(client: &mut Side, server: &mut Side, now_ns: u64, random: &mut Random) {
    for _ in 0..600 {
        for stream in server.work.keys().copied().collect::<Vec<_>>() {
            server.answer(now_ns, stream, random);
        }
        client.write(now_ns, random);
        server.write(now_ns, random);
        carry(client, server, now_ns, random, true);
        carry(server, client, now_ns, random, true);
        client.pass(now_ns, random, true);
        server.pass(now_ns, random, true);
        let is_quiet = client.work.is_empty() && server.work.is_empty();
        if is_quiet && !client.conn.has_output() && !server.conn.has_output() {
            return;
        }
    }
}

#[test]
fn what_one_role_writes_the_other_reads() {
    let mut whole = (0, 0);
    for seed in 0..600 {
        let (client, server) = talk(seed);
        whole = (whole.0 + client, whole.1 + server);
    }
    assert!(whole.0 > 1500 && whole.1 > 1500, "{whole:?}");
}

#[test]
fn a_cancelled_upload_leaves_nothing() {
    let random = &mut Random::new(1);
    let mut client = Side::new(Role::Client, Config::CLIENT);
    let mut server = Side::new(Role::Server, Config::SERVER);
    while client.work.is_empty() {
        client.open(0, random);
    }
    client.cancel(0, random);
    client.write(0, random);
    assert!(frames(&client.out).iter().any(|frame| frame.kind == RST_STREAM));
    settle(&mut client, &mut server, 0, random);
    assert_eq!((client.conn.streams(), server.conn.streams()), (0, 0));
}
