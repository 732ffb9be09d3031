//! Much of everything: bodies of gigabytes in constant memory, echoes, stalled readers, tunnels.
//!
//! `WEIR_LARGE_GIB=10` makes the bodies so large; 1 GiB by default.

use crate::shared::serve;
use crate::shared::serve::{Fault, Origin, Peer, Stream, Weir, pause, tell, until};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Memory that bodies of any length may take beyond what a short one takes, KiB.
const MORE_KIB: u64 = 16 * 1024;

fn length() -> u64 {
    std::env::var("WEIR_LARGE_GIB").ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(1) << 30
}

/// Bytes of a body: not the same in any two blocks of a megabyte.
struct Pattern {
    bytes: Vec<u8>,
    at: u64,
}

impl Pattern {
    fn new() -> Pattern {
        let mut random = weir_testkit::Random::new(7);
        Pattern {
            bytes: (0..1_048_573 / 8 + 1).flat_map(|_| random.bits().to_le_bytes()).take(1_048_573).collect(),
            at: 0,
        }
    }

    /// The next bytes, at most so many.
    fn next(&mut self, most: u64) -> &[u8] {
        let from = (self.at % self.bytes.len() as u64) as usize;
        let n = (self.bytes.len() - from).min(65_537).min(usize::try_from(most).unwrap_or(usize::MAX));
        self.at += n as u64;
        &self.bytes[from..from + n]
    }

    /// Reads `n` bytes of a stream: each must be the next.
    fn meets(&mut self, stream: &mut Stream, mut n: u64) -> Result<(), Fault> {
        let mut block = Vec::new();
        while n > 0 {
            let expected = self.next(n);
            block.clear();
            stream.take(expected.len() as u64, &mut block)?;
            if block != expected {
                return Err(Fault::Malformed(format!(
                    "another byte in the {} before {}",
                    expected.len(),
                    self.at
                )));
            }
            n -= block.len() as u64;
        }
        Ok(())
    }
}

/// The highest resident memory while something runs, above what it is now, KiB.
fn growth_kib(weir: &Weir, run: impl FnOnce()) -> u64 {
    let (before, highest, done) = (weir.resident_kib(), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                highest.fetch_max(weir.resident_kib(), Ordering::Relaxed);
                pause(20);
            }
        });
        run();
        done.store(true, Ordering::Relaxed);
    });
    highest.into_inner().saturating_sub(before)
}

/// Gives and takes bodies of the length that the target says, and answers what it has taken.
fn bulk(peer: &mut Peer) -> Result<(), Fault> {
    loop {
        let mut head = peer.head()?;
        let length: u64 = head.target().trim_start_matches('/').parse().unwrap_or(0);
        let mut pattern = Pattern::new();
        match head.method() {
            "GET" => {
                peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"))?;
                while pattern.at < length {
                    let piece = pattern.next(length - pattern.at).to_vec();
                    peer.send(piece)?;
                }
            }
            _ => {
                if head.framing == serve::Framing::Length {
                    pattern.meets(&mut peer.stream, length)?;
                } else {
                    chunks(&mut peer.stream, &mut pattern)?;
                }
                head.body.clear();
                peer.send(serve::reply(&pattern.at.to_string()))?;
            }
        }
    }
}

/// Reads a chunked body of a pattern.
fn chunks(stream: &mut Stream, pattern: &mut Pattern) -> Result<(), Fault> {
    loop {
        let line = stream.line()?;
        let size = u64::from_str_radix(&String::from_utf8_lossy(&line), 16);
        let size = size.map_err(|_| Fault::Malformed(format!("the chunk line {line:?}")))?;
        pattern.meets(stream, size)?;
        if !stream.line()?.is_empty() {
            return Err(Fault::Malformed("a chunk without its end".to_owned()));
        }
        if size == 0 {
            return Ok(());
        }
    }
}

#[test]
fn gigabytes_pass_in_constant_memory() {
    let origin = Origin::new(bulk);
    let mut weir = Weir::before(&format!("retry(3, server(addr = \"{}\"))", origin.addr()));
    let length = length();
    // One short body each way, so that what is allocated once is there.
    assert_eq!(weir.get("/1000000").body.len(), 1_000_000);
    for way in ["down", "up by length", "up in chunks"] {
        let begun = Instant::now();
        let growth = growth_kib(&weir, || {
            let mut client = weir.client();
            let mut pattern = Pattern::new();
            match way {
                "down" => {
                    client.send(format!("GET /{length} HTTP/1.1\r\nHost: h\r\n\r\n")).expect("it is sent");
                    while !client.line().expect("a head").is_empty() {}
                    pattern.meets(&mut client, length).expect("the body");
                }
                "up by length" => {
                    let head =
                        format!("POST /{length} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
                    client.send(head).expect("it is sent");
                    while pattern.at < length {
                        let piece = pattern.next(length - pattern.at);
                        client.send(piece).expect("it is taken");
                    }
                    assert_eq!(client.response("POST").expect("an answer").body_text(), length.to_string());
                }
                _ => {
                    let head =
                        format!("POST /{length} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
                    client.send(head).expect("it is sent");
                    while pattern.at < length {
                        let piece = pattern.next(length - pattern.at);
                        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                        client.send(chunk).expect("it is taken");
                    }
                    client.send("0\r\n\r\n").expect("it is taken");
                    assert_eq!(client.response("POST").expect("an answer").body_text(), length.to_string());
                }
            }
        });
        tell(&format!(
            "{way}: {} MiB in {:.1} s, {growth} KiB more",
            length >> 20,
            begun.elapsed().as_secs_f64()
        ));
        assert!(growth < MORE_KIB, "{way}: {growth} KiB more");
    }
    origin.read_only_http();
    weir.is_well();
}

/// Both ways at once: what comes back before all was sent is passed on as it comes.
#[test]
fn an_echo_flows_both_ways_at_once() {
    const LENGTH: u64 = 64 << 20;
    let origin = Origin::new(|peer| {
        peer.head()?;
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"))?;
        let mut twin = peer.stream.twin();
        let mut left = LENGTH;
        while left > 0 {
            let mut some = Vec::new();
            let n = peer.stream.some()?.len() as u64;
            peer.stream.take(n, &mut some)?;
            twin.send(&some)?;
            left -= n;
        }
        Ok(())
    });
    let mut weir = Weir::before(&format!("server(addr = \"{}\")", origin.addr()));
    let growth = growth_kib(&weir, || {
        let mut client = weir.client();
        let mut upload = client.twin();
        let sender = std::thread::spawn(move || {
            let mut pattern = Pattern::new();
            upload
                .send(format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {LENGTH}\r\n\r\n"))
                .expect("it is sent");
            while pattern.at < LENGTH {
                let piece = pattern.next(LENGTH - pattern.at);
                upload.send(piece).expect("it is taken");
            }
        });
        let mut head = Vec::new();
        while let Ok(line @ [_, ..]) = client.line().as_deref() {
            head.push(String::from_utf8_lossy(line).into_owned());
        }
        assert_eq!(head[0], "HTTP/1.1 200 OK");
        assert!(head.iter().any(|l| l == "Connection: close"), "{head:?}");
        Pattern::new().meets(&mut client, LENGTH).expect("the body");
        sender.join().expect("no panic");
    });
    assert!(growth < MORE_KIB, "{growth} KiB more");
    weir.is_well();
}

/// Readers that stall hold what fits into buffers, and no more.
#[test]
fn stalled_readers_cost_little() {
    const READERS: u64 = 100;
    let origin = Origin::new(bulk);
    let mut weir = Weir::before(&format!("server(addr = \"{}\")", origin.addr()));
    assert_eq!(weir.get("/1000000").body.len(), 1_000_000);
    let growth = growth_kib(&weir, || {
        let mut readers: Vec<Stream> = (0..READERS).map(|_| weir.client()).collect();
        for reader in &mut readers {
            reader.send("GET /100000000 HTTP/1.1\r\nHost: h\r\n\r\n").expect("it is sent");
        }
        assert!(until(|| origin.open() as u64 == READERS));
        pause(1500);
    });
    tell(&format!("{READERS} stalled readers: {growth} KiB more"));
    assert!(growth < READERS * 320, "{growth} KiB more");
    weir.is_well();
}

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// Accepts an upgrade, says hello at once, sends back what comes; at the end it has a last word.
fn chat(peer: &mut Peer) -> Result<(), Fault> {
    let mut head = peer.head()?;
    while head.method() != "CONNECT" && head.field("upgrade") != Some("websocket") {
        peer.send(serve::reply(head.field("upgrade").unwrap_or("no upgrade")))?;
        head = peer.head()?;
    }
    let accepted = if head.method() == "CONNECT" { "HTTP/1.1 200 OK\r\n\r\n" } else { SWITCHED };
    peer.send(format!("{accepted}hello"))?;
    loop {
        match peer.stream.some().map(<[u8]>::to_vec) {
            Ok(some) => {
                peer.stream.skip(some.len() as u64);
                peer.send(some)?;
            }
            Err(Fault::End) => {
                // The client has ended its half; this one is still open.
                pause(100);
                return peer.send("bye");
            }
            Err(fault) => return Err(fault),
        }
    }
}

#[track_caller]
fn says(stream: &mut Stream, text: &str) {
    let mut read = Vec::new();
    stream.take(text.len() as u64, &mut read).expect("it comes");
    assert_eq!(String::from_utf8_lossy(&read), text);
}

#[test]
fn websockets_pass_through() {
    let origin = Origin::new(chat);
    let mut weir =
        Weir::before(&format!("timeout(1*s, server(addr = \"{}\", response_timeout = 1*s))", origin.addr()));
    let mut client = weir.client();
    let answer = client.ask(UPGRADE).expect("an answer");
    assert_eq!((answer.status(), answer.field("upgrade")), (101, Some("websocket")));
    assert!(
        answer.field("connection").is_some_and(|c| c.eq_ignore_ascii_case("upgrade")),
        "{:?}",
        answer.fields
    );
    says(&mut client, "hello");
    // Pings, and silence that is longer than any timeout of requests.
    for i in 0..8 {
        client.send(format!("ping {i}")).expect("it is sent");
        says(&mut client, &format!("ping {i}"));
        pause(250);
    }
    // Much, both ways at once.
    let mut upload = client.twin();
    let sender = std::thread::spawn(move || {
        let mut pattern = Pattern::new();
        while pattern.at < 32 << 20 {
            let piece = pattern.next((32 << 20) - pattern.at);
            upload.send(piece).expect("it is taken");
        }
    });
    Pattern::new().meets(&mut client, 32 << 20).expect("the echo");
    sender.join().expect("no panic");
    // Each half ends by itself.
    client.half_close();
    says(&mut client, "bye");
    assert_eq!(client.ending(), Fault::End);
    assert!(until(|| origin.open() == 0));
    weir.is_well();
}

#[test]
fn only_what_is_allowed_is_upgraded() {
    let origin = Origin::new(chat);
    let addr = origin.addr();
    let weir = Weir::new(&format!(
        "app = server(addr = \"{addr}\")\n\
         listen(\"127.0.0.1:0\", app, name = \"plain\")\n\
         listen(\"127.0.0.1:0\", app, name = \"never\", http = http(upgrade = []))\n\
         listen(\"127.0.0.1:0\", app, name = \"connect\", http = http(connect = [\"db.example:5432\"]))\n"
    ));
    // h2c is not passed on, and an upgrade that is not allowed is an ordinary request.
    let h2c = UPGRADE.replace("websocket", "h2c");
    for (listener, request) in [("plain", h2c.as_str()), ("never", UPGRADE)] {
        let answer = weir.connect(listener).ask(request).expect("an answer");
        assert_eq!((answer.status(), answer.body_text().as_str()), (200, "no upgrade"), "{listener}");
    }
    let connect = |to: &str| format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
    for (listener, to) in
        [("plain", "db.example:5432"), ("connect", "other.example:5432"), ("connect", "db.example:22")]
    {
        let answer = weir.connect(listener).ask(&connect(to)).expect("an answer");
        assert!((400..502).contains(&answer.status()), "{listener} {to}: {}", answer.line);
        assert!(answer.closes(), "{listener} {to}");
    }
    let arrived = origin.arrivals();
    assert!(arrived.iter().all(|a| !a.starts_with("CONNECT")), "{arrived:?}");
    let mut client = weir.connect("connect");
    assert_eq!(client.ask(&connect("db.example:5432")).expect("an answer").status(), 200);
    says(&mut client, "hello");
    client.send("select 1").expect("it is sent");
    says(&mut client, "select 1");
    client.half_close();
    says(&mut client, "bye");
    assert_eq!(client.ending(), Fault::End);
}

#[test]
fn tunnels_end_when_nothing_moves_or_one_side_breaks() {
    let origin = Origin::new(chat);
    let mut weir =
        Weir::set("tunnel_idle = 1*s, drain_timeout = 1*s", &format!("server(addr = \"{}\")", origin.addr()));
    let open = || {
        let mut client = weir.client();
        assert_eq!(client.ask(UPGRADE).expect("an answer").status(), 101);
        says(&mut client, "hello");
        client
    };
    let begun = Instant::now();
    let mut client = open();
    assert!(client.ends_within(serve::PATIENCE));
    assert!(begun.elapsed() > Duration::from_millis(900), "{:?}", begun.elapsed());
    assert!(until(|| origin.open() == 0));
    // A drain lets them go on for its timeout, and no longer: ten seconds by default.
    let mut client = open();
    weir.signal(Signal::TERM);
    let begun = Instant::now();
    for _ in 0..4 {
        client.send("still").expect("it is sent");
        says(&mut client, "still");
        pause(100);
    }
    assert_eq!(weir.ends(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    assert!(until(|| origin.open() == 0));
    let weir = Weir::before(&format!("server(addr = \"{}\")", origin.addr()));
    let mut client = weir.client();
    assert_eq!(client.ask(UPGRADE).expect("an answer").status(), 101);
    says(&mut client, "hello");
    client.reset();
    assert!(until(|| origin.open() == 0), "the origin still talks to nobody");
}
