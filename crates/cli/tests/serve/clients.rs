//! Clients at their worst: they leave, stall, read nothing or send everything at once. Others are served meanwhile.

use crate::shared::serve;
use crate::shared::serve::{Fault, Origin, Peer, Stream, Weir, pause, reply, until};
use std::time::{Duration, Instant};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// At most what a limit of one or two seconds takes on a busy machine, s: less than any that weir has by default.
const LATE: f64 = 9.0;

/// Before weir says on its own that a body may come, s.
const ALONE: f64 = 0.9;

fn server(origin: &Origin) -> String {
    format!("server(addr = \"{}\", idle_timeout = 60*s)", origin.addr())
}

/// An origin that takes a request and says nothing until its connection ends.
fn silent() -> Origin {
    Origin::new(|peer| {
        peer.request()?;
        peer.wait_for_end()
    })
}

#[track_caller]
fn took(begun: Instant, at_least: f64, at_most: f64) {
    let took = begun.elapsed().as_secs_f64();
    assert!((at_least..at_most).contains(&took), "took {took:.2} s, not {at_least} to {at_most}");
}

#[test]
fn a_half_close_after_a_request_is_its_clients_leaving() {
    let origin = silent();
    let weir = Weir::before(&server(&origin));
    let mut client = weir.client();
    client.send(GET).expect("it is sent");
    assert!(until(|| origin.arrivals().len() == 1));
    client.half_close();
    assert!(until(|| origin.open() == 0), "the origin still works for nobody");
    assert!(client.ends_within(Duration::from_secs_f64(LATE)));
}

#[test]
fn a_half_close_is_answered_where_the_file_says_so() {
    let origin = Origin::new(|peer| {
        peer.request()?;
        pause(300);
        peer.send(reply("late"))
    });
    let weir = Weir::set("half_close = \"answer\"", &server(&origin));
    let mut client = weir.client();
    client.send(GET).expect("it is sent");
    client.half_close();
    assert_eq!(client.response("GET").expect("an answer").body_text(), "late");
    assert_eq!(client.ending(), Fault::End);
}

#[test]
fn a_client_that_leaves_while_it_waits_is_not_worked_for() {
    let origin = silent();
    let weir = Weir::before(&server(&origin));
    // What lies unread behind the request, and how the client leaves. 90,000 bytes are more than weir reads ahead, and
    // the rest fits into any receive buffer: behind what does not fit, the system cannot report the end.
    for (at, (unread, breaks)) in
        [(0, false), (0, true), (10, false), (10, true), (90_000, false), (90_000, true)]
            .into_iter()
            .enumerate()
    {
        let mut client = weir.client();
        client.send(GET).expect("it is sent");
        assert!(until(|| origin.arrivals().len() == at + 1), "{unread}");
        let next = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "n".repeat(970)).repeat(unread / 1000 + 1);
        let _ = client.send(&next[..unread]);
        pause(50);
        assert_eq!(origin.open(), 1, "{unread}");
        if breaks {
            client.reset()
        } else {
            drop(client)
        }
        assert!(until(|| origin.open() == 0), "with {unread} bytes unread, breaks: {breaks}");
    }
    assert_eq!(origin.arrivals().len(), 6, "{:?}", origin.arrivals());
}

#[test]
fn a_client_that_leaves_amid_its_answer_or_its_body_is_not_worked_for() {
    let origin = Origin::new(|peer| {
        let mut head = peer.head()?;
        if head.method() == "POST" {
            return peer.body(&mut head);
        }
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")?;
        loop {
            peer.send([b'x'; 65536])?;
        }
    });
    let mut weir = Weir::before(&server(&origin));
    let mut asked = 0;
    for breaks in [false, true] {
        asked += 1;
        let mut client = weir.client();
        client.send(GET).expect("it is sent");
        assert_eq!(client.skip(100_000), (100_000, None));
        assert_eq!(origin.open(), 1);
        if breaks {
            client.reset()
        } else {
            drop(client)
        }
        assert!(until(|| origin.open() == 0), "amid the answer, breaks: {breaks}");
        for framing in ["Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n186a0\r\n"] {
            let mut client = weir.client();
            client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}some")).expect("it is sent");
            asked += 1;
            assert!(until(|| origin.arrivals().len() == asked), "{framing}");
            if breaks {
                client.reset()
            } else {
                drop(client)
            }
            assert!(until(|| origin.open() == 0), "amid the body, {framing}, breaks: {breaks}");
        }
    }
    assert_eq!(origin.arrivals().len(), 6);
    weir.assert_alive();
}

#[test]
fn heads_and_bodies_that_come_slowly_are_cut_off_and_others_are_served() {
    let origin = Origin::answering(|_| reply("fine"));
    let mut weir = Weir::set("head_timeout = 1*s, body_timeout = 1*s, idle_timeout = 1*s", &server(&origin));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let weir = &weir;
        // A byte now and then does not make a head's time longer.
        for _ in 0..20 {
            scope.spawn(move || {
                let mut client = weir.client();
                let begun = Instant::now();
                for byte in GET.as_bytes().iter().cycle().take(15) {
                    if client.send([*byte]).is_err() {
                        break;
                    }
                    pause(200);
                }
                let answer = client.response("GET");
                assert!(answer.as_ref().is_ok_and(|a| a.status() == 408 && a.closes()), "{answer:?}");
                took(begun, 0.9, LATE);
            });
        }
        for framing in ["Content-Length: 10\r\n\r\nhal", "Transfer-Encoding: chunked\r\n\r\n5\r\nhal"] {
            scope.spawn(move || {
                let mut client = weir.client();
                let begun = Instant::now();
                client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}")).expect("it is sent");
                let answer = client.response("POST").expect("an answer");
                assert_eq!((answer.status(), answer.closes()), (408, true), "{framing:?}");
                took(begun, 0.9, LATE);
            });
        }
        // A client without a request gets no answer: from the start, and after an answer.
        for first in [false, true] {
            scope.spawn(move || {
                let mut client = weir.client();
                let begun = Instant::now();
                if first {
                    client.get("/").expect("an answer");
                }
                assert_eq!(client.ending(), Fault::End);
                took(begun, 0.9, LATE);
            });
        }
        // A body that comes slowly, but comes.
        scope.spawn(move || {
            let mut client = weir.client();
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n").expect("it is sent");
            for _ in 0..6 {
                pause(300);
                client.send("x").expect("it is sent");
            }
            assert_eq!(client.response("POST").expect("an answer").status(), 200);
        });
        while begun.elapsed() < Duration::from_secs(2) {
            let asked = Instant::now();
            assert_eq!(weir.get("/").status(), 200);
            took(asked, 0.0, LATE);
            pause(20);
        }
    });
    origin.read_only_http();
    weir.assert_alive();
}

/// A client that takes nothing is let go, and its origin with it; one that takes little, but steadily, is not.
#[test]
fn readers_that_read_nothing_are_let_go() {
    let origin = Origin::new(|peer| {
        let request = peer.request()?;
        let length: u64 = request.target().trim_start_matches('/').parse().expect("a number");
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"))?;
        for _ in 0..length / 65536 {
            peer.send([b'x'; 65536])?;
        }
        peer.wait_for_end()
    });
    let weir = Weir::set("write_timeout = 1500*ms", &server(&origin));
    let ask = |length: u64| {
        let mut client = weir.client();
        client.send(format!("GET /{length} HTTP/1.1\r\nHost: h\r\n\r\n")).expect("it is sent");
        client
    };
    let begun = Instant::now();
    let stalled = ask(64 << 20);
    assert!(until(|| origin.open() == 1));
    assert!(until(|| origin.open() == 0), "the origin waits for a client that reads nothing");
    took(begun, 1.4, LATE);
    drop(stalled);
    // 24 MiB in 4 s. (The system reports room only when a third of its buffer is free, so that "little" is relative.)
    let length = 24 << 20;
    let mut slow = ask(length);
    let mut read = 0;
    while read < length {
        let (n, why) = slow.skip((length / 40).min(length - read));
        read += n;
        assert_eq!(why, None, "cut off after {read} bytes, {:?}", begun.elapsed());
        pause(100);
    }
}

/// The same wherever the answer has got to: some of these fit into the buffers of the system, some into weir's as well.
#[test]
fn answers_that_nobody_reads_hold_nothing() {
    let origin = Origin::answering(|request| {
        reply(&"x".repeat(request.target().trim_start_matches('/').parse().expect("a number")))
    });
    let mut weir = Weir::set("write_timeout = 1*s", &server(&origin));
    assert_eq!(weir.get("/1").status(), 200);
    assert!(until(|| weir.descriptors() > 0));
    let before = weir.descriptors();
    let clients: Vec<Stream> = (1..60)
        .map(|i| {
            let mut client = weir.client();
            let request = format!("GET /{} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", i * 150_000);
            client.send(request).expect("it is sent");
            client
        })
        .collect();
    assert!(until(|| weir.descriptors() >= before + 59));
    // The write timeout, then at most two seconds of a lingering close; idle connections to the origin may be left.
    assert!(until(|| weir.descriptors() < before + 5 + origin.open()), "{} descriptors", weir.descriptors());
    drop(clients);
    weir.assert_alive();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::answering(|request| {
        pause(request.body.len() as u64 % 7);
        reply(&format!("{} {} {}", request.method(), request.target(), request.body_text()))
    });
    let weir = Weir::before(&server(&origin));
    let mut client = weir.client();
    let mut all = String::new();
    for i in 0..30 {
        all += &match i % 3 {
            0 => format!("GET /{i} HTTP/1.1\r\nHost: h\r\n\r\n"),
            1 => format!("POST /{i} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}", i, "b".repeat(i)),
            _ => format!(
                "PUT /{i} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
            ),
        };
    }
    all += "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\nHost: h\r\n\r\n";
    client.send(&all).expect("it is sent");
    for i in 0..30 {
        let body = match i % 3 {
            0 => format!("GET /{i} "),
            1 => format!("POST /{i} {}", "b".repeat(i)),
            _ => format!("PUT /{i} abcd"),
        };
        assert_eq!(client.response("GET").expect("an answer").body_text(), body);
    }
    let last = client.response("GET").expect("an answer");
    assert_eq!((last.body_text().as_str(), last.closes()), ("GET /last ", true));
    assert_eq!(client.ending(), Fault::End);
    assert_eq!(origin.arrivals().len(), 31);
}

const EXPECT: &str = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";

/// What the client reads first, as text.
fn first(client: &mut Stream) -> String {
    let some = client.some().expect("something").to_vec();
    String::from_utf8_lossy(&some).into_owned()
}

#[test]
fn an_expectation_is_the_origins_to_meet() {
    let origin = Origin::new(|peer| {
        loop {
            let mut head = peer.head()?;
            assert_eq!(head.field("expect"), (head.method() == "POST").then_some("100-continue"));
            peer.send("HTTP/1.1 100 Continue\r\n\r\n")?;
            peer.send("HTTP/1.1 100 Continue\r\n\r\n")?;
            peer.body(&mut head)?;
            peer.send(reply(&head.body_text()))?;
        }
    });
    let weir = Weir::before(&server(&origin));
    let mut client = weir.client();
    let mut quickest = f64::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        client.send(EXPECT).expect("it is sent");
        assert_eq!(first(&mut client), "HTTP/1.1 100 Continue\r\n\r\n");
        quickest = quickest.min(begun.elapsed().as_secs_f64());
        client.send("body").expect("it is sent");
        let answer = client.response("POST").expect("an answer");
        assert_eq!((answer.body_text().as_str(), answer.interim), ("body", vec![100]), "told once");
    }
    assert!(quickest < ALONE, "weir said it, {quickest} s later");
    // Without a body there is nothing to continue with, and another expectation is not met.
    let answer = client.ask("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n").expect("an answer");
    assert_eq!(answer.status(), 200);
    let answer = weir.ask("GET / HTTP/1.1\r\nHost: h\r\nExpect: better\r\n\r\n").expect("an answer");
    assert_eq!(answer.status(), 417);
}

#[test]
fn an_expectation_may_be_refused_and_silence_is_consent() {
    let refusing = Origin::new(|peer| {
        peer.head()?;
        peer.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")?;
        peer.wait_for_end()
    });
    let weir = Weir::before(&server(&refusing));
    let mut client = weir.client();
    let answer = client.ask(EXPECT).expect("an answer");
    assert_eq!((answer.status(), answer.closes(), answer.interim.len()), (417, true, 0));
    assert_eq!(client.ending(), Fault::End);
    assert!(until(|| refusing.open() == 0), "the origin still waits for a body");

    let patient = Origin::answering(|request| reply(&request.body_text()));
    let weir = Weir::before(&server(&patient));
    let mut client = weir.client();
    let begun = Instant::now();
    client.send(EXPECT).expect("it is sent");
    assert_eq!(first(&mut client), "HTTP/1.1 100 Continue\r\n\r\n");
    took(begun, 0.9, LATE);
    client.send("body").expect("it is sent");
    assert_eq!(client.response("POST").expect("an answer").body_text(), "body");
    // A client that does not wait for it is answered all the same.
    let asked = (0..3).map(|_| {
        let begun = Instant::now();
        let answer = weir.ask(&format!("{EXPECT}body")).expect("an answer");
        assert_eq!(answer.body_text(), "body");
        begun.elapsed().as_secs_f64()
    });
    let quickest = asked.fold(f64::MAX, f64::min);
    assert!(quickest < ALONE, "it took {quickest} s");
}

/// An answer that comes while the client still sends is not destroyed by the bytes that are never read.
#[test]
fn an_early_answer_to_a_large_upload_arrives() {
    for length in [Some(32 << 20), None] {
        let origin = Origin::new(|peer| {
            peer.head()?;
            peer.send(
                "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge",
            )?;
            pause(100);
            Ok(())
        });
        let weir = Weir::before(&server(&origin));
        let mut client = weir.client();
        let mut upload = client.twin();
        let sender = std::thread::spawn(move || {
            let head =
                length.map_or("Transfer-Encoding: chunked".into(), |n: u64| format!("Content-Length: {n}"));
            upload.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{head}\r\n\r\n")).expect("it is sent");
            for _ in 0..512 {
                let chunk = ["10000\r\n", &"x".repeat(65536), "\r\n"].concat();
                let sent = if length.is_some() { upload.send([b'x'; 65536]) } else { upload.send(chunk) };
                if sent.is_err() {
                    return;
                }
            }
        });
        let answer = client.response("POST").expect("an answer");
        assert_eq!((answer.status(), answer.closes(), answer.body_text().as_str()), (413, true, "large"));
        assert!(until(|| origin.open() == 0));
        drop(client);
        sender.join().expect("no panic");
        assert_eq!(weir.get("/").status(), 413);
    }
}

#[test]
fn clients_of_http_1_0_are_spared_what_they_do_not_know() {
    let origin = Origin::new(|peer| {
        loop {
            let request = peer.request()?;
            peer.send(match request.target() {
                "/chunked" => "HTTP/1.1 103 Early Hints\r\n\r\n\
                               HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n0\r\nX-T: 1\r\n\r\n"
                    .into(),
                _ => reply(request.field("host").unwrap_or("none")),
            })?;
        }
    });
    let weir = Weir::before(&server(&origin));
    // Without Host, and the connection ends.
    let mut client = weir.client();
    let answer = client.ask("GET / HTTP/1.0\r\n\r\n").expect("an answer");
    assert_eq!((answer.status(), answer.body_text().as_str(), answer.closes()), (200, "", true));
    assert_eq!(client.ending(), Fault::End);
    // Kept where it asks for that and the length is known.
    let mut client = weir.client();
    for _ in 0..3 {
        let answer =
            client.ask("GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n").expect("an answer");
        assert_eq!((answer.body_text().as_str(), answer.field("connection")), ("h", Some("keep-alive")));
    }
    // No chunks, no interim answer: the end of the connection ends the body.
    let answer = client.ask("GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").expect("an answer");
    assert_eq!((answer.body_text().as_str(), answer.field("transfer-encoding")), ("some", None));
    assert_eq!((answer.framing, answer.interim.len(), answer.closes()), (serve::Framing::Close, 0, true));
    assert_eq!(client.ending(), Fault::End);
    origin.read_only_http();
}

/// What is kept of a body is what the next attempt sends; what is not kept is not sent twice.
#[test]
fn bodies_are_sent_again_whole_or_not_at_all() {
    let bad = Origin::new(|peer: &mut Peer| peer.request().and_then(|_| peer.breaks()));
    let good = Origin::answering(|request| {
        let sum = request.body.iter().fold(0u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(*b)));
        reply(&format!("{} {sum}", request.body.len()))
    });
    let weir = Weir::new(&format!(
        "both = [server(\"bad\", addr = \"{}\"), server(\"good\", addr = \"{}\")]\n\
         listen(\"127.0.0.1:0\", retry(3, lb.first(both)), name = \"web\")\n",
        bad.addr(),
        good.addr()
    ));
    for (length, again) in
        [(0, true), (1, true), (30_000, true), (65_536, true), (65_537, false), (1_000_000, false)]
    {
        let body: String =
            (0..length).map(|i: u32| char::from(b'a' + (i.wrapping_mul(7919) >> 3) as u8 % 26)).collect();
        let sum = body.bytes().fold(0u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(b)));
        let chunks: String = body
            .as_bytes()
            .chunks(10_007)
            .map(|c| format!("{:x}\r\n{}\r\n", c.len(), String::from_utf8_lossy(c)))
            .collect();
        for request in [
            format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}"),
            format!("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"),
        ] {
            bad.take_arrivals();
            good.take_arrivals();
            let answer = weir.ask(&request).expect("an answer");
            if again {
                assert_eq!(
                    (answer.status(), answer.body_text()),
                    (200, format!("{length} {sum}")),
                    "{length}"
                );
            } else {
                assert_eq!(answer.status(), 502, "{length}");
            }
            assert_eq!((bad.arrivals().len(), good.arrivals().len()), (1, usize::from(again)), "{length}");
        }
    }
    good.read_only_http();
}
