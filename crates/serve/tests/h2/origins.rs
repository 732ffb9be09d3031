//! Origins of HTTP/2: multiplexing, streaming both ways, refusals and ends.

use crate::common::{self, Conn, serve_node, until};
use crate::peer::{Client, Origin, Reply, collect, fields, get, post, run};
use crate::raw::leaving;
use bytes::Bytes;
use h2::Reason;

fn before(origin: &Origin) -> common::RunningBalancer {
    serve_node(&node(&origin.addr))
}

fn node(addr: &str) -> String {
    format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")")
}

/// The last labels and the values of a metric, of those series that are not 0.
fn series(served: &common::RunningBalancer, name: &str) -> Vec<String> {
    let text = served.scrape(weir_serve::Exposition::Prometheus);
    let lines = text.lines().filter(|line| line.starts_with(name) && !line.ends_with(" 0"));
    lines.map(|line| line.rsplit([',', '{']).next().unwrap_or_default().to_owned()).collect()
}

fn ok(body: &str) -> Reply {
    Reply::Ok(&[], body.as_bytes().to_vec(), None)
}

#[test]
fn http_1_goes_on_as_http_2() {
    let origin = Origin::new(100, |_, _| Reply::Ok(&[], vec![b'x'; 200_000], None));
    let served = before(&origin);
    let mut client = Conn::new(&served.addr);
    client.send("POST /a?b HTTP/1.1\r\nHost: h:1\r\nX-One: 1\r\nConnection: x-two\r\nX-Two: 2\r\nContent-Length: 3\r\n\r\nabc");
    let answer = client.response();
    assert_eq!((answer.status, answer.body.len()), (200, 200_000));
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    let got = &origin.got()[0];
    assert_eq!((got.uri.to_string(), got.method.as_str()), ("http://h:1/a?b".to_owned(), "POST"));
    let field = |name: &str| got.headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!((field("x-one"), field("x-two"), field("content-length")), (Some("1"), None, Some("3")));
    assert_eq!((field("via"), field("host"), field("connection")), (Some("1.1 weir"), None, None));
}

#[test]
fn one_connection_carries_many_and_another_is_made_when_streams_run_out() {
    // What the origin allows, and what the file does.
    for (most, own, connections) in [(100, 100, 1), (10, 100, 2), (100, 5, 4), (1, 100, 20)] {
        let origin = Origin::new(most, |_, _| Reply::Silence);
        let limits = format!("protocol=\"h2\", max_streams={own}");
        let served = serve_node(&node(&origin.addr).replace("protocol=\"h2\"", &limits));
        run(async {
            let mut client = Client::new(&served.addr).await;
            let mut answers = Vec::new();
            for _ in 0..20 {
                answers.push(client.begin(get("/"), true).await);
            }
            while origin.got().len() < 20 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            assert_eq!(origin.connections(), connections);
            // The client leaves: each is cancelled.
            drop(answers);
            while origin.resets().len() < 20 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            assert!(origin.resets().iter().all(|reason| *reason == Reason::CANCEL));
        });
    }
}

/// An idle connection is kept for 60 s, unless the file says for how long.
#[test]
fn an_idle_connection_is_kept_for_longer_than_one_of_http_1() {
    for (given, connections) in [("", 1), (", idle_timeout=50*ms", 2)] {
        let origin = Origin::new(100, |_, _| ok("x"));
        let served = serve_node(&node(&origin.addr).replace("\"h2\"", &format!("\"h2\"{given}")));
        let answered = |_| assert_eq!(common::get(&served.addr, "/").status, 200);
        answered(0);
        // Longer than 4 s.
        common::pause(if given.is_empty() { 4_500 } else { 200 });
        answered(1);
        assert_eq!(origin.connections(), connections, "{given}");
    }
}

/// A server of weir's own is spoken to as an origin in its place would be.
#[test]
fn built_in_servers_speak_it() {
    for (arguments, connections) in [
        ("protocol=\"h2\"", 1),
        ("tls=tls.client()", 1),
        ("protocol=\"h2\", max_streams=4", 5),
        ("protocol=\"h1\", tls=tls.client()", 20),
    ] {
        let served = serve_node(&format!("queue(delay(300*ms, server(\"a\", {arguments})), concurrency=20)"));
        run(async {
            let mut client = Client::new(&served.addr).await;
            let mut answers = Vec::new();
            for n in 0..20 {
                let (answer, mut up) = client.begin(post(&format!("/{n}")), false).await;
                up.send_data(Bytes::from(vec![b'x'; 1000]), true).expect("it goes on");
                answers.push(answer);
            }
            for answer in answers {
                let answer = crate::peer::read(answer).await.expect("an answer");
                assert_eq!((answer.status, answer.text().as_str()), (200, "a\n"));
            }
        });
        let text = served.scrape(weir_serve::Exposition::Prometheus);
        let line = text.lines().find(|line| line.starts_with("weir_upstream_connections_opened_total{"));
        assert!(line.is_some_and(|line| line.ends_with(&format!(" {connections}"))), "{arguments}: {line:?}");
    }
}

#[test]
fn a_call_streams_both_ways_with_trailers() {
    let origin = Origin::new(100, |_, _| Reply::Echo);
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let mut request = post("/grpc.Echo/Stream");
        request.headers_mut().insert("te", http::HeaderValue::from_static("trailers"));
        request.headers_mut().insert("content-type", http::HeaderValue::from_static("application/grpc"));
        let (answer, mut up) = client.begin(request, false).await;
        let (head, mut down) = answer.await.expect("a head before any of the body").into_parts();
        assert_eq!(head.status.as_u16(), 200);
        for n in 0..20 {
            let message = Bytes::from(format!("message {n}"));
            up.send_data(message.clone(), false).expect("it goes on");
            let mut echo = Vec::new();
            while echo.len() < message.len() {
                let piece = down.data().await.expect("more").expect("no error");
                down.flow_control().release_capacity(piece.len()).expect("it was read");
                echo.extend_from_slice(&piece);
            }
            assert_eq!(echo, message);
        }
        up.send_trailers(fields(&[("grpc-status", "0"), ("x-end", "1")])).expect("it goes on");
        assert!(collect(&mut down).await.expect("an end").is_empty());
        let trailers = down.trailers().await.expect("trailers");
        assert_eq!(trailers, Some(fields(&[("grpc-status", "0"), ("x-end", "1")])));
    });
    let te = origin.got()[0].headers.get("te").cloned();
    assert_eq!(te.expect("te goes on"), "trailers");
}

#[test]
fn large_bodies_pass_both_ways() {
    let origin = Origin::new(100, |_, _| Reply::Echo);
    let served = before(&origin);
    let data: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    run(async {
        let mut client = Client::new(&served.addr).await;
        let answer = client.send(post("/"), &data, None).await.expect("an answer");
        assert!(answer.body == data, "{} bytes came", answer.body.len());
    });
}

#[test]
fn interim_responses_pass() {
    let origin = Origin::new(100, |_, _| Reply::Ok(&[103, 102], b"x".to_vec(), None));
    let served = before(&origin);
    let mut client = Conn::new(&served.addr);
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut statuses = Vec::new();
    while statuses.last() != Some(&200) {
        statuses.push(client.response().status);
    }
    assert_eq!(statuses, [103, 102, 200]);
}

#[test]
fn resets_are_told_from_refusals() {
    for (reason, part, status, asked) in [
        (Reason::REFUSED_STREAM, None, 503, 2),
        (Reason::INTERNAL_ERROR, None, 502, 1),
        (Reason::CANCEL, None, 502, 1),
    ] {
        let origin = Origin::new(100, move |_, _| Reply::Reset(reason, part));
        let served = before(&origin);
        assert_eq!(common::get(&served.addr, "/").status, status, "{reason:?}");
        assert_eq!(origin.got().len(), asked);
    }
    let origin = Origin::new(100, |_, _| Reply::Reset(Reason::INTERNAL_ERROR, Some("part")));
    let served = before(&origin);
    let mut client = Conn::new(&served.addr);
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.try_response(), None, "it is no whole answer");
}

/// For any method: nothing was done. On another connection, and without an attempt of a `retry`.
#[test]
fn a_refused_request_is_sent_once_more() {
    let origin = Origin::new(100, |n, _| match n {
        1 => Reply::Reset(Reason::REFUSED_STREAM, None),
        _ => ok("again"),
    });
    let served = serve_node(&format!("lb.random([{}])", node(&origin.addr)));
    run(async {
        let mut client = Client::new(&served.addr).await;
        for _ in 0..2 {
            let answer = client.send(post("/"), b"abc", None).await.expect("an answer");
            assert_eq!((answer.status, answer.text().as_str()), (200, "again"));
        }
    });
    assert_eq!((origin.got().len(), origin.connections()), (3, 2));
    assert_eq!(series(&served, "weir_attempts_total{"), ["outcome=\"ok\"} 2"]);
    assert!(series(&served, "weir_resends_total{")[0].ends_with("\"} 1"));
}

/// An origin that refuses everything gets two connections, and each request no more than twice.
#[test]
fn an_origin_that_refuses_everything_gets_no_connection_for_each_request() {
    let origin = Origin::new(100, |_, _| Reply::Reset(Reason::REFUSED_STREAM, None));
    let served = serve_node(&format!("lb.random([{}])", node(&origin.addr)));
    for _ in 0..20 {
        assert_eq!(common::get(&served.addr, "/").status, 503);
    }
    assert!(origin.connections() == 2 && origin.got().len() <= 22, "{}", origin.got().len());
    assert_eq!(series(&served, "weir_attempts_total{"), ["outcome=\"refused\"} 20"]);
}

/// What is not kept cannot be sent again.
#[test]
fn a_refused_upload_is_sent_again_as_far_as_it_is_kept() {
    for (sent, read, status) in [(60_000, 60_000, 200), (200_000, 100_000, 503)] {
        let origin = Origin::new(100, move |n, _| match n {
            0 => Reply::ResetBehind(Reason::REFUSED_STREAM, read),
            _ => ok("again"),
        });
        let served = before(&origin);
        run(async {
            let mut client = Client::new(&served.addr).await;
            let answer = client.send(post("/"), &vec![b'x'; sent], None).await.expect("an answer");
            assert_eq!(answer.status, status, "of {sent} bytes");
        });
    }
}

#[test]
fn a_refused_request_may_be_retried() {
    let origin = Origin::new(100, |n, _| match n {
        0 | 1 => Reply::Reset(Reason::REFUSED_STREAM, None),
        _ => ok("again"),
    });
    let served = serve_node(&format!("retry(2, {}, exclude=\"none\")", node(&origin.addr)));
    run(async {
        let mut client = Client::new(&served.addr).await;
        let answer = client.send(post("/"), b"abc", None).await.expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (200, "again"));
    });
}

#[test]
fn a_goaway_below_the_stream_sends_it_elsewhere() {
    let origin = Origin::new(100, |_, _| ok("second"));
    let served = serve_node(&node(&leaving(origin.addr.clone())));
    run(async {
        let mut client = Client::new(&served.addr).await;
        let answer = client.send(post("/"), b"abc", None).await.expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (200, "second"));
    });
    assert_eq!(origin.got().len(), 1);
}

#[test]
fn an_origin_of_another_version_is_said_to_be_one() {
    let origin = common::Origin::named("x");
    let served = serve_node(&node(&origin.addr));
    assert_eq!(common::get(&served.addr, "/").status, 503);
    until(|| origin.open() == 0);
}

/// Each of these clients sends what a connection bears; what all of them send goes over one to the origin, which bears
/// no more.
#[test]
fn small_pieces_of_many_clients_are_put_together() {
    let origin = Origin::new(100, |_, _| ok("done"));
    let served = before(&origin);
    run(async {
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(Client::new(&served.addr).await);
        }
        for _ in 0..3 {
            let mut answers = Vec::new();
            for client in &mut clients {
                let (answer, mut stream) = client.begin(post("/"), false).await;
                for n in 0..90 {
                    stream.send_data(Bytes::from_static(b"x"), n == 89).expect("a window");
                }
                answers.push(answer);
            }
            for answer in answers {
                assert_eq!(crate::peer::read(answer).await.expect("an answer").text(), "done");
            }
        }
    });
    assert_eq!((origin.got().len(), origin.connections()), (24, 1));
}
