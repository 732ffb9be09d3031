//! Attacks by lawful frames, each on a connection of its own: it ends with ENHANCE_YOUR_CALM, few of its requests reach the
//! origin, and a client beside it is answered on. `http2/tests/http2/floods.rs` has each class at the codec.

use crate::common::{Conn, Origin, Reply, serve, serve_node};
use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Field, HEADERS, PING, PRIORITY, RST_STREAM, RawPeer,
    WINDOW_UPDATE, block, data, head,
};
use crate::raw::{GOAWAY, SETTINGS, frame};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// ENHANCE_YOUR_CALM.
const CALM: u32 = 11;

const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// Requests of an attacker that may reach the origin.
const MOST: usize = 1100;

fn line(method: &'static [u8], path: &'static [u8]) -> Vec<Field<'static>> {
    vec![(b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", b"attacker")]
}

fn get(stream: u32) -> Vec<u8> {
    head(stream, true, &line(b"GET", b"/"))
}

/// An open POST with this field.
fn post(stream: u32, field: Field<'static>) -> Vec<u8> {
    head(stream, false, &[line(b"POST", b"/"), vec![field]].concat())
}

/// The frames of an attack: what comes first, and what comes again and again, by its number.
struct Attack {
    name: &'static str,
    first: Vec<u8>,
    again: Box<dyn Fn(u32) -> Vec<u8>>,
    /// How often it comes.
    times: u32,
}

fn attack(name: &'static str, times: u32, again: impl Fn(u32) -> Vec<u8> + 'static) -> Attack {
    Attack { name, first: Vec::new(), again: Box::new(again), times }
}

/// One that needs a stream, which is 1.
fn on_stream(name: &'static str, times: u32, again: impl Fn(u32) -> Vec<u8> + 'static) -> Attack {
    Attack { first: post(1, (b"x", b"y")), ..attack(name, times, again) }
}

/// One that breaks off or spoils a stream of its own each time.
fn on_each(name: &'static str, again: impl Fn(u32) -> Vec<u8> + 'static) -> Attack {
    attack(name, 3000, move |i| again(2 * i + 1))
}

fn frames_without_progress() -> Vec<Attack> {
    vec![
        attack("PING", 3000, |_| frame(PING, 0, 0, b"12345678")),
        attack("SETTINGS", 3000, |_| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255])),
        attack("unknown frames", 3000, |_| frame(0x42, 0, 0, b"abc")),
        on_stream("PRIORITY", 3000, |i| frame(PRIORITY, 0, 1, &[0, 0, 0, i as u8 & 0xfe, 1])),
        on_stream("empty DATA", 3000, |_| data(1, false, b"")),
        on_stream("WINDOW_UPDATE", 3000, |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
    ]
}

fn resets() -> Vec<Attack> {
    let reset = |stream| frame(RST_STREAM, 0, stream, &CANCEL);
    vec![
        on_each("rapid reset", move |stream| [get(stream), reset(stream)].concat()),
        // Many are out, and some with the origin, before they are reset.
        attack("rapid reset in batches", 60, move |i| {
            let streams = (0..64).map(|n| 128 * i + 2 * n + 1);
            let pings = frame(PING, 0, 0, b"12345678").repeat(10);
            [streams.clone().flat_map(get).collect(), pings, streams.flat_map(reset).collect()].concat()
        }),
        on_each("an update of nothing", |stream| {
            [get(stream), frame(WINDOW_UPDATE, 0, stream, &[0; 4])].concat()
        }),
        on_each("a window too large", |stream| {
            [get(stream), frame(WINDOW_UPDATE, 0, stream, &[0x7f, 255, 255, 255])].concat()
        }),
        on_each("DATA behind the end", |stream| [get(stream), data(stream, true, b"late")].concat()),
        on_each("a wrong length", |stream| {
            [post(stream, (b"content-length", b"1")), data(stream, true, b"ab")].concat()
        }),
        on_each("a stream that depends on itself", |stream| {
            let priority = [&stream.to_be_bytes()[..], &[0]].concat();
            [get(stream), frame(PRIORITY, 0, stream, &priority)].concat()
        }),
        on_each("malformed heads", |stream| {
            head(stream, true, &[line(b"GET", b"/"), vec![(b"X-Upper", b"1")]].concat())
        }),
    ]
}

fn heads() -> Vec<Attack> {
    let open = || frame(HEADERS, 0, 1, &block(&line(b"GET", b"/")));
    let endless = |name, payload: Vec<u8>| Attack {
        first: open(),
        ..attack(name, 100, move |_| frame(CONTINUATION, 0, 1, &payload))
    };
    // A large field goes into the table; each octet of the later heads refers to it.
    let mut entry = block(&line(b"GET", b"/"));
    entry.extend_from_slice(&[0x40, 1, b'x', 0x7f, 0xd9, 0x1c]);
    entry.extend_from_slice(&[b'a'; 3800]);
    let mut bomb = block(&line(b"GET", b"/"));
    bomb.resize(8000, 0xbe);
    static LARGE: [u8; 200_000] = [b'v'; 200_000];
    vec![
        endless("CONTINUATION", block(&[(b"x", b"y")]).repeat(200)),
        endless("empty CONTINUATION", Vec::new()),
        endless("large CONTINUATION", block(&[(b"x", &LARGE[..100])]).repeat(150)),
        Attack {
            first: frame(HEADERS, END_HEADERS | END_STREAM, 1, &entry),
            ..attack("references to a large field", 300, move |i| {
                frame(HEADERS, END_HEADERS | END_STREAM, 2 * i + 3, &bomb)
            })
        },
        attack("large heads", 20, |i| {
            head(2 * i + 1, true, &[line(b"GET", b"/"), vec![(&b"x"[..], &LARGE[..])]].concat())
        }),
    ]
}

/// The code of the GOAWAY by which the connection ends.
fn end_of(addr: &str, attack: &Attack) -> Option<u32> {
    let mut peer = RawPeer::client(addr);
    let mut is_taken = peer.try_send(&attack.first);
    for i in 0..attack.times {
        // The connection may end before all was taken.
        is_taken = is_taken && peer.try_send(&(attack.again)(i));
    }
    reason(&mut peer)
}

/// The code of the GOAWAY that comes.
fn reason(peer: &mut RawPeer) -> Option<u32> {
    let goaway = std::iter::from_fn(|| peer.try_next()).find(|frame| frame.kind == GOAWAY)?;
    goaway.payload[4..].first_chunk().map(|code| u32::from_be_bytes(*code))
}

/// Tries attacks, while another client asks on; each of its requests is answered.
fn hold(attacks: &[Attack]) {
    let attacked = Origin::new(|_, _| Reply::After(20, Box::new(Reply::Ok("attacked".to_owned()))));
    let origin = Origin::named("ok");
    let served = serve_node(&format!(
        "route([(when(path=\"/good\"), server(\"good\", addr=\"{}\"))], \
         otherwise=server(\"attacked\", addr=\"{}\"))",
        origin.addr, attacked.addr
    ));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut client = Conn::new(&served.addr);
            let mut answered = 0;
            while !is_over.load(SeqCst) {
                client.send("GET /good HTTP/1.1\r\nHost: good\r\n\r\n");
                let answer = client.response();
                assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
                answered += 1;
            }
            answered
        });
        for attack in attacks {
            let before = attacked.seen().len();
            assert_eq!(end_of(&served.addr, attack), Some(CALM), "{}", attack.name);
            let reached = attacked.seen().len() - before;
            assert!(reached <= MOST, "{}: {reached} requests reached the origin", attack.name);
        }
        is_over.store(true, SeqCst);
        assert!(beside.join().expect("all are answered") > 0);
    });
}

#[test]
fn frames_without_progress_end_their_connection_alone() {
    hold(&frames_without_progress());
}

#[test]
fn resets_of_both_kinds_end_their_connection_alone() {
    hold(&resets());
}

#[test]
fn heads_without_end_end_their_connection_alone() {
    hold(&heads());
}

/// A client that takes a byte of each of many answers holds them no longer than `write_timeout` (CVE-2019-9511, 9517).
#[test]
fn answers_that_are_hardly_taken_end_in_time() {
    const STREAMS: u32 = 100;
    let body = "x".repeat(1 << 20);
    let origin = Origin::new(move |_, _| Reply::Ok(body.clone()));
    let served = serve(&format!(
        "listen(\"127.0.0.1:0\", server(\"origin\", addr=\"{}\"), http=http(write_timeout=1*s))",
        origin.addr
    ));
    let mut peer = RawPeer::client(&served.addr);
    // INITIAL_WINDOW_SIZE of 1.
    peer.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]));
    (0..STREAMS).for_each(|n| peer.send(&get(2 * n + 1)));
    let (mut taken, mut ended) = (0, 0);
    while ended < STREAMS {
        let frame = peer.next();
        match frame.kind {
            DATA => taken += frame.payload.len(),
            RST_STREAM => ended += 1,
            kind => assert_eq!(kind, HEADERS),
        }
    }
    assert!(taken <= STREAMS as usize, "{taken}");
    // The connection serves on.
    peer.send(&head(2 * STREAMS + 1, true, &line(b"HEAD", b"/")));
    assert_eq!(peer.next().field(":status"), Some("200"));
}

/// A head of an origin that does not end ends its connection, and the client gets 502 (nginx 44c66e92c).
#[test]
fn an_origin_whose_head_does_not_end_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let origin = std::thread::spawn(move || {
        let mut peer = RawPeer::origin(&listener, &[]);
        let stream = peer.next_request();
        // A field of 4 MiB.
        let mut begin = block(&[(b":status", b"200")]);
        begin.extend_from_slice(&[0, 1, b'x', 0x7f, 0x81, 0xff, 0xff, 0x01]);
        let mut is_taken = peer.try_send(&frame(HEADERS, 0, stream, &begin));
        for _ in 0..260 {
            is_taken = is_taken && peer.try_send(&frame(CONTINUATION, 0, stream, &[b'x'; 16_384]));
        }
        reason(&mut peer)
    });
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")"));
    let mut client = RawPeer::client(&served.addr);
    client.send(&get(1));
    assert_eq!(client.next().field(":status"), Some("502"));
    // Its own bytes may have thrown the reason away with the connection.
    assert!(matches!(origin.join().expect("no panic"), Some(CALM) | None));
}
