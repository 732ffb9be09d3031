//! What real applications do and no flood is: answers that end in trailers, small messages, PINGs, clients that give
//! up; and the floods beside them. Streams that a client only listens to. Answers that come before the end of an
//! upload.

use crate::common::{pause, serve, serve_node, until};
use crate::peer::{Client, Origin, Reply, fields, get, post, read, run, write};
use crate::raw::{GOAWAY, HEADERS, PREFACE, SETTINGS, frame};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use weir_serve::Exposition;

const DATA: u8 = 0;
const PING: u8 = 6;

/// More than the frames without progress that end a connection.
const MANY: usize = 1300;

fn before(origin: &Origin) -> crate::common::RunningBalancer {
    serve_node(&format!("server(\"origin\", addr=\"{}\", protocol=\"h2\")", origin.addr))
}

fn counted(served: &crate::common::RunningBalancer, series: &str) -> bool {
    served
        .scrape(Exposition::Prometheus)
        .lines()
        .any(|line| line.starts_with(series) && !line.ends_with(" 0"))
}

/// gRPC's answers end in trailers: none of them has DATA that ends its stream.
#[test]
fn answers_that_end_in_trailers_end_no_connection() {
    let trailers = || fields(&[("grpc-status", "0"), ("grpc-message", "fine")]);
    let with_trailers = move |_: usize, _: &_| Reply::Ok(&[], b"12345".to_vec(), Some(trailers()));
    all_are_answered(&Origin::new(100, with_trailers));
    all_are_answered(&Origin::new(100, |_, _| Reply::Ok(&[], Vec::new(), None)));
}

fn all_are_answered(origin: &Origin) {
    let served = before(origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        for n in 0..MANY / 50 {
            let mut answers = Vec::new();
            for _ in 0..50 {
                let (answer, mut up) = client.begin(post("/"), false).await;
                write(&mut up, Bytes::from_static(b"0123456789"), true).await.expect("it goes");
                answers.push(answer);
            }
            for answer in answers {
                let answer = read(answer).await.unwrap_or_else(|e| panic!("among {n} times 50: {e}"));
                assert_eq!(answer.status, 200, "among {n} times 50");
            }
        }
    });
    assert_eq!(origin.connections(), 1);
}

/// An origin that sends nothing but PINGs gets the reason with the close, and the requests on its connection fail for
/// that.
#[test]
fn a_flood_by_an_origin_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    let flood = std::thread::spawn(move || {
        let (mut weir, _) = listener.accept().expect("a connection");
        weir.set_read_timeout(Some(Duration::from_secs(15))).expect("a socket");
        weir.write_all(&frame(SETTINGS, 0, 0, &[])).expect("taken");
        let mut bytes = [0; 4096];
        while !has_head(&bytes) {
            let n = weir.read(&mut bytes).expect("a request");
            assert_ne!(n, 0, "a request comes");
        }
        let _ = weir.write_all(&frame(PING, 0, 0, b"12345678").repeat(2 * MANY));
        let mut rest = Vec::new();
        let _ = weir.read_to_end(&mut rest);
        rest
    });
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")"));
    run(async {
        let mut client = Client::new(&served.addr).await;
        assert_eq!(client.get("/").await.status, 502);
    });
    let sent = flood.join().expect("no panic");
    // Behind its length: debug data follow.
    let goaway = &frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0xb])[3..];
    assert!(sent.windows(goaway.len()).any(|part| part == goaway), "it is told ENHANCE_YOUR_CALM");
    until(|| counted(&served, "weir_limit_reached_total{limit=\"flood\"}"));
}

/// Whether a frame of HEADERS is among these bytes, wherever it begins.
fn has_head(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|part| part[0] == HEADERS && part[2..] == [0, 0, 0, 1])
}

/// gRPC asks by a PING for each message how fast the connection is; a hundred streams of small messages are no flood.
#[test]
fn small_messages_and_their_pings_end_no_connection() {
    let origin = Origin::new(200, |_, _| Reply::Echo);
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let mut streams = Vec::new();
        for _ in 0..50 {
            let (answer, up) = client.begin(post("/"), false).await;
            let down = answer.await.expect("an answer").into_body();
            streams.push((up, down));
        }
        for _ in 0..60 {
            for (up, down) in &mut streams {
                write(up, Bytes::from_static(b"tiny"), false).await.expect("it goes on");
                let piece = down.data().await.expect("more").expect("no error");
                down.flow_control().release_capacity(piece.len()).expect("it was read");
            }
        }
    });
    assert_eq!(origin.connections(), 1);
}

/// As [`small_messages_and_their_pings_end_no_connection`], with the PINGs that the `h2` crate does not send.
#[test]
fn a_ping_for_each_message_that_is_sent_ends_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut weir, _) = listener.accept().expect("a connection");
        let mut asked = [0; 2048];
        let _ = weir.read(&mut asked).expect("a request");
        weir.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").expect("taken");
        while weir.write_all(b"5\r\nevent\r\n").is_ok() {
            pause(1);
        }
    });
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\")"));
    let mut stream = TcpStream::connect(&served.addr).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(15))).expect("a socket");
    stream.write_all(PREFACE).expect("taken");
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).expect("taken");
    let _ = stream.set_nodelay(true);
    let window = frame(8, 0, 0, &[0x10, 0, 0, 0]);
    // GET / of the static table, the authority as a literal.
    let head = [0x82, 0x84, 0x86, 0x41, 0x01, b'h'];
    stream.write_all(&[window, frame(HEADERS, 5, 1, &head)].concat()).expect("taken");
    let (mut messages, mut bytes, mut piece) = (0, Vec::new(), [0; 4096]);
    while messages < MANY {
        let n = stream.read(&mut piece).expect("it goes on");
        assert_ne!(n, 0, "ended after {messages} messages");
        bytes.extend_from_slice(&piece[..n]);
        while let Some(length) = whole_frame(&bytes) {
            assert_ne!(bytes[3], GOAWAY, "after {messages} messages");
            if bytes[3] == DATA {
                messages += 1;
                stream.write_all(&frame(PING, 0, 0, b"bandwide")).expect("taken");
            }
            bytes.drain(..length);
        }
    }
}

/// The length of the first frame, once it is there whole.
fn whole_frame(bytes: &[u8]) -> Option<usize> {
    let head = bytes.get(..9)?;
    let length = 9 + u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    (bytes.len() >= length).then_some(length)
}

/// A client that says something once and then listens (gRPC's subscriptions) is not late, for as long as something
/// moves.
#[test]
fn a_client_that_listens_is_answered_on() {
    let origin = events(30, Duration::from_millis(100));
    let served = serve(&format!(
        "listen(\"127.0.0.1:0\", server(\"origin\", addr=\"{origin}\", body_timeout=1*s), http=http(body_timeout=1*s))"
    ));
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, mut up) = client.begin(post("/watch"), false).await;
        write(&mut up, Bytes::from_static(b"hello"), false).await.expect("it goes");
        let mut down = answer.await.expect("an answer").into_body();
        let got = crate::peer::collect(&mut down).await.expect("a whole answer");
        assert_eq!(got, b"event".repeat(30));
    });
}

/// Silence of both sides is ended by the server's `body_timeout`, which metrics name.
#[test]
fn silence_of_both_is_the_end() {
    let origin = events(1, Duration::from_secs(60));
    let served = serve(&format!(
        "listen(\"127.0.0.1:0\", server(\"origin\", addr=\"{origin}\", body_timeout=500*ms), http=http(body_timeout=1*s))"
    ));
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, mut up) = client.begin(post("/watch"), false).await;
        write(&mut up, Bytes::from_static(b"hello"), false).await.expect("it goes");
        let mut down = answer.await.expect("an answer").into_body();
        crate::peer::collect(&mut down).await.expect_err("it is cut short");
    });
    until(|| counted(&served, "weir_limit_reached_total{limit=\"body_timeout\"}"));
    assert!(!counted(&served, "weir_request_errors_total{listener=\"l1\",kind=\"cancelled\"}"));
}

/// An origin of HTTP/1.1 that answers with this number of events, this far apart, once it has received anything.
fn events(many: usize, apart: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        while let Ok((mut weir, _)) = listener.accept() {
            std::thread::spawn(move || -> std::io::Result<()> {
                let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
                while !bytes.windows(5).any(|part| part == b"hello") {
                    let n = weir.read(&mut piece)?;
                    bytes.extend_from_slice(&piece[..n]);
                }
                weir.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                for _ in 0..many {
                    weir.write_all(b"5\r\nevent\r\n")?;
                    pause(apart.as_millis() as u64);
                }
                weir.write_all(b"0\r\n\r\n")
            });
        }
    });
    addr
}

/// What a client still sends after its answer is taken, so that it can read that answer; weir's own answers too.
#[test]
fn an_upload_may_go_on_after_its_answer() {
    let early = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = early.local_addr().expect("an address");
    std::thread::spawn(move || {
        while let Ok((mut weir, _)) = early.accept() {
            let mut head = [0; 4096];
            let _ = weir.read(&mut head);
            let _ = weir
                .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
            let _ = weir.read_to_end(&mut Vec::new());
        }
    });
    for (node, status) in [
        (format!("server(\"origin\", addr=\"{addr}\")"), 413),
        ("respond(403)".to_owned(), 403),
        ("redirect(\"https://other.example/\")".to_owned(), 302),
        ("route([(when(path=\"/a\"), respond(200))])".to_owned(), 404),
    ] {
        uploads(&serve_node(&node).addr, status, None);
    }
    let limited = "listen(\"127.0.0.1:0\", server(\"origin\"), http=http(max_body=1000))";
    uploads(&serve(limited).addr, 413, None);
    uploads(&serve(limited).addr, 413, Some("1000000"));
}

fn uploads(addr: &str, status: u16, length: Option<&'static str>) {
    run(async {
        let mut client = Client::new(addr).await;
        let mut request = post("/up");
        if let Some(length) = length {
            request.headers_mut().insert("content-length", http::HeaderValue::from_static(length));
        }
        let (answer, mut up) = client.begin(request, false).await;
        write(&mut up, vec![b'x'; 2000].into(), false).await.expect("it goes");
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status().as_u16(), status);
        // Far more than the window that there was.
        write(&mut up, vec![b'x'; 998_000].into(), true).await.unwrap_or_else(|e| panic!("{status}: {e}"));
        // The connection serves on.
        client.get("/a").await;
    });
}

/// A client that stops sending learns, after a while, that no more is wanted.
#[test]
fn an_upload_that_stalls_after_its_answer_is_reset() {
    let served = serve_node("respond(403)");
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, mut up) = client.begin(post("/up"), false).await;
        assert_eq!(answer.await.expect("an answer").status().as_u16(), 403);
        let begun = std::time::Instant::now();
        let reason = std::future::poll_fn(|cx| up.poll_reset(cx)).await.expect("a reset");
        assert_eq!(reason, h2::Reason::NO_ERROR);
        assert!(begun.elapsed() > Duration::from_secs(1), "not at once");
    });
}

/// An origin of HTTP/2 that answers early and wants no more of the request (RFC 9113 §8.1) has answered whole.
#[test]
fn no_error_after_a_whole_answer_is_none() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let (mut weir, _) = listener.accept().expect("a connection");
        weir.write_all(&frame(SETTINGS, 0, 0, &[])).expect("taken");
        let mut bytes = [0; 4096];
        while !has_head(&bytes) {
            let _ = weir.read(&mut bytes).expect("a request");
        }
        let answer = [
            frame(HEADERS, 4, 1, &[0x88]),
            frame(DATA, 0, 1, b"all "),
            frame(DATA, 1, 1, b"of it"),
            frame(3, 0, 1, &[0; 4]),
        ];
        weir.write_all(&answer.concat()).expect("taken");
        let _ = weir.read_to_end(&mut Vec::new());
    });
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")"));
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, _up) = client.begin(post("/up"), false).await;
        let mut down = answer.await.expect("an answer").into_body();
        let got = crate::peer::collect(&mut down).await.expect("a whole answer");
        assert_eq!(got, b"all of it");
    });
}

/// Requests that a client gives up after a while, as at deadlines of its own, are no flood; those that it gives up at
/// once are.
#[test]
fn giving_up_is_no_flood() {
    let origin = Origin::new(1000, |_, _| Reply::Silence);
    let served = serve(&format!(
        "listen(\"127.0.0.1:0\", server(\"origin\", addr=\"{}\", protocol=\"h2\"), http=http(max_streams=1000))",
        origin.addr
    ));
    run(async {
        let mut client = Client::new(&served.addr).await;
        for _ in 0..3 {
            let mut open = Vec::new();
            for _ in 0..400 {
                open.push(client.begin(get("/"), true).await);
            }
            tokio::time::sleep(Duration::from_millis(400)).await;
            let before = origin.resets().len();
            drop(open);
            while origin.resets().len() < before + 400 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let (_answer, _) = client.begin(get("/"), true).await;
    });
    assert!(!counted(&served, "weir_connections_closed_total{listener=\"l1\",reason=\"flood\"}"));
}

/// A gRPC server resets a call with CANCEL at the deadline that its client has told it; as 502 it would be the server's
/// fault.
#[test]
fn a_call_that_its_server_cancels_is_cancelled() {
    let origin = Origin::new(100, |_, _| Reply::Reset(h2::Reason::CANCEL, None));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        assert_eq!(client.get("/").await.status, 502);
        let mut call = get("/");
        call.headers_mut().insert("content-type", http::HeaderValue::from_static("application/grpc"));
        let reset = client.ask(call).await.map(|answer| answer.status).expect_err("a reset");
        assert_eq!(reset.reason(), Some(h2::Reason::CANCEL));
        let whole = client.get("/").await;
        assert_eq!(whole.status, 502, "the connection serves on");
    });
}

/// An origin that closes its connection behind an early answer has answered whole.
#[test]
fn an_end_behind_a_whole_answer_is_none() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let (mut weir, _) = listener.accept().expect("a connection");
        weir.write_all(&frame(SETTINGS, 0, 0, &[])).expect("taken");
        let mut bytes = [0; 4096];
        while !has_head(&bytes) {
            let _ = weir.read(&mut bytes).expect("a request");
        }
        let answer = [frame(HEADERS, 4, 1, &[0x88]), frame(DATA, 1, 1, b"too large")];
        weir.write_all(&answer.concat()).expect("taken");
        weir.shutdown(std::net::Shutdown::Write).expect("a socket");
        let _ = weir.read_to_end(&mut Vec::new());
    });
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")"));
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, _up) = client.begin(post("/up"), false).await;
        let mut down = answer.await.expect("an answer").into_body();
        assert_eq!(crate::peer::collect(&mut down).await.expect("a whole answer"), b"too large");
    });
}

/// A browser that leaves a page gives up all its requests at once.
#[test]
fn many_resets_at_once_end_no_connection() {
    let origin = Origin::new(1000, |_, _| Reply::Silence);
    let served = before(&origin);
    let mut stream = TcpStream::connect(&served.addr).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(15))).expect("a socket");
    let mut bytes = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].concat();
    for n in 0..90 {
        bytes.extend(frame(HEADERS, 5, 2 * n + 1, &[0x82, 0x84, 0x86, 0x41, 0x01, b'h']));
        bytes.extend(frame(3, 0, 2 * n + 1, &[0, 0, 0, 8]));
    }
    bytes.extend(frame(PING, 0, 0, b"12345678"));
    stream.write_all(&bytes).expect("taken");
    let (mut got, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        while let Some(length) = whole_frame(&got) {
            assert_ne!(got[3], GOAWAY);
            if got[3] == PING {
                return;
            }
            got.drain(..length);
        }
        let n = stream.read(&mut piece).expect("an answer to the PING");
        assert_ne!(n, 0, "the connection ends");
        got.extend_from_slice(&piece[..n]);
    }
}
