//! A random peer, lawful or not, against either role: nothing panics, nothing is held beyond a bound, and no stream is left
//! behind.

use crate::end::End;
use crate::wire::*;
use std::collections::BTreeSet;
use weir_http2::{Config, ErrorCode, Event, Field, Role};
use weir_testkit::Random;

/// What one connection may hold: a block of the largest size, its streams, and what is owed.
const MOST_HELD: usize = 128 * 1024 + 100 * 300 + 64 * 1024;

fn fields(random: &mut Random, role: Role) -> Vec<u8> {
    let mut fields: Vec<(&str, &str)> = match role {
        Role::Server => if random.percent(50) { GET } else { POST }.to_vec(),
        Role::Client => OK.to_vec(),
    };
    let odd: &[(&str, &str)] = &[
        ("a", "b"),
        ("A", "b"),
        ("", ""),
        ("content-length", "10"),
        ("content-length", "0"),
        ("te", "trailers"),
        ("connection", "close"),
        ("cookie", "a=b"),
        (":path", "/"),
        (":status", "103"),
        (":protocol", "websocket"),
        ("host", "h"),
        ("priority", "u=1, i"),
        ("a", "\0"),
    ];
    for _ in 0..random.below(3) {
        fields.push(odd[random.below(odd.len())]);
    }
    if random.percent(10) {
        fields.remove(random.below(fields.len()));
    }
    let mut block = block(&fields);
    match random.below(300) {
        0 => block.push(random.below(256) as u8),
        1 => block.extend_from_slice(b"\x40\x01n\x01v"),
        2 => block.extend_from_slice(b"\xbe"),
        _ => {}
    }
    block
}

/// The stream of a frame: one that is there or was, a new one, or any.
fn some_stream(random: &mut Random, user: &User, is_head: bool) -> u32 {
    let is_new = is_head && user.role == Role::Server && random.percent(60);
    match user.last {
        _ if random.percent(1) => random.below(40) as u32,
        last if is_new || last == 0 => last + 1 + last % 2,
        last => 1 + 2 * random.below(8).min(last as usize / 2) as u32 + last.saturating_sub(16) / 2 * 2,
    }
}

/// A few frames.
fn some_frames(random: &mut Random, user: &mut User) -> Vec<u8> {
    let kind = random.below(26);
    let role = user.role;
    if kind > 5 && user.last == 0 {
        return settings(&[]);
    }
    let stream = some_stream(random, user, kind <= 5);
    if kind <= 5 && role == Role::Server {
        user.last = user.last.max(stream);
    }
    let number = [1, 10, 16_384, 100_000][random.below(4)];
    let odd = [0, 65_535, 0x7fff_ffff, u32::MAX][random.below(4)];
    let number = if random.percent(3) { odd } else { number };
    let flags = if random.percent(99) { random.below(2) as u8 } else { random.below(256) as u8 };
    match kind {
        0..=5 => {
            let block = fields(random, role);
            if random.percent(80) {
                return frame(HEADERS, END_HEADERS | flags & 0x2d, stream, &block);
            }
            let (first, rest) = block.split_at(random.below(block.len()));
            let kind = if random.percent(98) { CONTINUATION } else { DATA };
            [frame(HEADERS, flags & 1, stream, first), frame(kind, END_HEADERS, stream, rest)].concat()
        }
        6..=13 => {
            let length = [0, 1, 5, 10, 1000, 16_384][random.below(6)];
            frame(DATA, flags & 9, stream, &vec![random.below(4) as u8; length])
        }
        14 | 15 => reset(stream, ErrorCode(number)),
        16 => settings(&[([1, 3, 4, 6, 8, 9, 77][random.below(7)], number & 0xffff)][..random.below(2)]),
        17 => frame(SETTINGS, ACK, 0, &[]),
        18 => frame(PING, flags & 1, 0, &[0; 8]),
        19 if random.percent(10) => goaway(stream, ErrorCode(number)),
        19..=21 => update(if random.percent(50) { 0 } else { stream }, number),
        22 => frame(PRIORITY, 0, stream, &[0, 0, 0, random.below(9) as u8, 0][..4 + random.below(2)]),
        23 if role == Role::Server => {
            frame(PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes()[..], b"u=1, i"].concat())
        }
        24 if random.percent(5) => frame(random.below(256) as u8, flags, stream, &[0; 8]),
        _ => data(stream, b"", true),
    }
}

/// What a user does with the events of a connection: sometimes it answers, passes on, gives up.
struct User {
    end: End,
    role: Role,
    streams: BTreeSet<u32>,
    over: BTreeSet<u32>,
    held: Vec<(u32, usize)>,
    has_failed: bool,
    /// The last stream that was opened.
    last: u32,
    /// Window of the connection that the peer was given, less what it sent.
    window: i64,
}

impl User {
    fn take(&mut self, bytes: &[u8]) {
        for event in self.end.events(bytes) {
            assert!(!self.has_failed, "nothing happens after the end");
            match event {
                Event::Request { stream, .. } => assert!(self.streams.insert(stream)),
                Event::Malformed { stream, may_answer, .. } => {
                    self.streams.insert(stream);
                    if !may_answer {
                        self.over.insert(stream);
                    }
                }
                Event::Data { stream, range, .. } => {
                    assert!(self.streams.contains(&stream) && !self.over.contains(&stream));
                    self.held.push((stream, range.len()));
                }
                Event::Reset { stream, .. } | Event::Unprocessed { stream } => {
                    assert!(self.streams.contains(&stream) && self.over.insert(stream));
                }
                Event::Failed(_) => self.has_failed = true,
                _ => {}
            }
        }
        assert_eq!(self.end.conn.streams(), self.streams.len());
        assert!(self.end.conn.footprint() < MOST_HELD, "{}", self.end.conn.footprint());
    }

    fn act(&mut self, random: &mut Random) {
        let now_ns = self.end.now_ns;
        let streams: Vec<u32> = self.streams.iter().copied().collect();
        let stream = streams.get(random.below(streams.len())).copied().unwrap_or(1);
        let mut out = Vec::new();
        match random.below(12) {
            0 | 1 if self.role == Role::Client && self.end.conn.can_open() => {
                let method: &[u8] = if random.percent(20) { b"HEAD" } else { b"GET" };
                let line = weir_http2::RequestLine {
                    method,
                    scheme: Some(b"http"),
                    authority: None,
                    path: Some(b"/"),
                    protocol: None,
                    marks: weir_http2::PseudoMarks::NONE,
                };
                let is_end = random.percent(50);
                let stream = self.end.conn.send_request(now_ns, &line, [], is_end, &mut out);
                self.last = stream.expect("it can open");
                self.streams.insert(self.last);
            }
            0 | 1 if self.role == Role::Server => {
                let field = Field { name: b"a", value: b"b", is_sensitive: random.percent(10) };
                let status = if random.percent(10) { 103 } else { 200 };
                let is_end = status == 200 && random.percent(50);
                let _ = self.end.conn.send_answer(now_ns, stream, status, [field], is_end, &mut out);
            }
            2 => self.end.conn.set_pending(stream, random.below(100_000) as u64, random.percent(50)),
            3 => drop(self.end.conn.send_trailers(now_ns, stream, [], &mut out)),
            4 | 5 => self.finish(stream),
            6 => self.end.conn.reset(now_ns, stream, ErrorCode::CANCEL),
            7 => {
                for (stream, bytes) in std::mem::take(&mut self.held) {
                    self.end.conn.release(stream, bytes);
                }
            }
            8 if random.percent(3) => self.end.conn.drain(now_ns),
            8 => self.end.conn.ping(),
            9 => drop(self.end.conn.on_time(now_ns)),
            _ => {
                self.end.conn.write(now_ns, &mut out);
                while let Some(turn) = self.end.conn.next_data(now_ns, 20_000, &mut out) {
                    out.resize(out.len() + turn.length, 0);
                }
            }
        }
        self.window += frames(&out)
            .iter()
            .filter(|frame| frame.kind == WINDOW_UPDATE && frame.stream == 0)
            .map(|frame| i64::from(frame.number(0)))
            .sum::<i64>();
        assert!(self.window <= i64::from(Config::CLIENT.connection_window));
    }

    fn finish(&mut self, stream: u32) {
        self.end.conn.finish(self.end.now_ns, stream);
        self.streams.remove(&stream);
        self.over.remove(&stream);
        self.held.retain(|held| held.0 != stream);
    }
}

fn run(seed: u64) -> bool {
    let random = &mut Random::new(seed);
    let role = if random.percent(50) { Role::Server } else { Role::Client };
    let config = if role == Role::Server { Config::SERVER } else { Config::CLIENT };
    let mut user = User {
        end: End::new(role, config),
        role,
        streams: BTreeSet::new(),
        over: BTreeSet::new(),
        held: Vec::new(),
        has_failed: false,
        last: 0,
        window: 65_535,
    };
    user.end.is_passing = false;
    user.take(&if role == Role::Server { opening() } else { settings(&[]) });
    for _ in 0..random.below(300) {
        user.end.now_ns += random.below(20_000_000) as u64;
        if random.percent(50) {
            user.act(random);
            continue;
        }
        let mut bytes = some_frames(random, &mut user);
        if random.percent(1) && random.percent(20) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        let (first, second) = bytes.split_at(random.below(bytes.len() + 1));
        user.take(first);
        user.take(second);
    }
    let has_failed = user.has_failed;
    user.streams.clone().into_iter().for_each(|stream| user.finish(stream));
    let mut out = Vec::new();
    user.end.conn.write(user.end.now_ns, &mut out);
    frames(&out);
    assert_eq!(user.end.conn.streams(), 0);
    let _ = user.end.conn.on_time(user.end.now_ns + 100_000_000_000);
    // A block, or a value of PRIORITY_UPDATE, may be half there.
    assert!(user.end.conn.footprint() == 0 || !user.end.conn.is_between_frames(), "seed {seed}");
    has_failed
}

#[test]
fn either_role_withstands_any_peer() {
    let failed = (0..3000).filter(|seed| run(*seed)).count();
    assert!((500..2900).contains(&failed), "{failed} of 3000 connections failed");
}
