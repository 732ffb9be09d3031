//! Clients of HTTP/2 before origins of HTTP/1.1: bodies, trailers, interim responses, ends of all kinds.

use crate::common::{self, Origin, Reply, serve, serve_node, until};
use crate::peer::{Client, fields, get, post, read, run};
use h2::Reason;
use http::Request;

fn before(origin: &Origin) -> common::RunningBalancer {
    serve_node(&format!("server(\"origin\", addr=\"{}\")", origin.addr))
}

#[test]
fn a_request_goes_on_as_http_1() {
    let origin = Origin::new(|_, _| Reply::Ok("hello".to_owned()));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let request = Request::get("http://a.test:81/p?q")
            .header("cookie", "a=1")
            .header("x-one", "1")
            .header("cookie", "b=2")
            .header("te", "trailers");
        let answer = client.ask(request.body(()).expect("a request")).await.expect("an answer");
        assert_eq!((answer.status, answer.text()), (200, "hello".to_owned()));
        assert!(answer.field("date").is_some());
    });
    let (head, _) = &origin.seen()[0];
    assert!(head.starts_with("GET /p?q HTTP/1.1\r\nHost: a.test:81\r\n"), "{head}");
    for line in
        ["cookie: a=1; b=2\r\n", "Via: 2.0 weir\r\n", "X-Forwarded-Proto: http\r\n", "TE: trailers\r\n"]
    {
        assert!(head.contains(line), "{line} in {head}");
    }
}

#[test]
fn bodies_pass_both_ways_at_the_pace_of_who_reads() {
    let data: String = (0..1_500_000u32).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let answer = data.clone();
    let origin = Origin::new(move |_, _| Reply::Ok(answer.clone()));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        for length in [true, false] {
            let mut request = post("/up");
            if length {
                request.headers_mut().insert("content-length", data.len().into());
            }
            let answer = client.send(request, data.as_bytes(), None).await.expect("an answer");
            assert!(answer.body == data.as_bytes(), "{} bytes came", answer.body.len());
        }
    });
    let seen = origin.seen();
    assert!(
        seen[0].0.contains(&format!("Content-Length: {}\r\n", data.len())) && seen[0].1 == data.as_bytes()
    );
    assert!(seen[1].0.contains("Transfer-Encoding: chunked\r\n") && seen[1].1.len() > data.len());
}

#[test]
fn many_requests_share_a_connection() {
    let origin = Origin::new(|_, head| Reply::Ok(head.split(' ').nth(1).unwrap_or_default().to_owned()));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        for round in 0..3 {
            let mut answers = Vec::new();
            for n in 0..100 {
                answers.push(client.begin(get(&format!("/{round}/{n}")), true).await.0);
            }
            for (n, answer) in answers.into_iter().enumerate() {
                assert_eq!(read(answer).await.expect("an answer").text(), format!("/{round}/{n}"));
            }
        }
    });
    assert_eq!(origin.count(), 300);
}

/// Answers that end while the queue of the socket is full: the last byte of one had room, its end had none.
#[test]
fn answers_that_fill_the_queue_come_whole() {
    let body = "x".repeat(64 * 1024);
    let own = body.clone();
    let origin = Origin::new(move |_, _| Reply::Ok(own.clone()));
    let served = before(&origin);
    run(async {
        let stream = tokio::net::TcpStream::connect(&served.addr).await.expect("a connection");
        let mut wide = h2::client::Builder::new();
        wide.initial_window_size(1 << 24).initial_connection_window_size(1 << 28);
        let (sender, connection) = wide.handshake(stream).await.expect("HTTP/2");
        let mut client = Client { sender, ended: tokio::spawn(connection) };
        for _ in 0..30 {
            let mut answers = Vec::new();
            for _ in 0..16 {
                answers.push(client.begin(get("/"), true).await.0);
            }
            for answer in answers {
                let answer = read(answer).await.expect("an answer");
                assert_eq!((answer.status, answer.body.len()), (200, body.len()));
            }
        }
    });
}

#[test]
fn trailers_and_interim_responses_reach_the_client() {
    let raw = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
        Connection: x-hop\r\nX-Hop: 1\r\nTrailer: grpc-status\r\n\r\n3\r\nabc\r\n0\r\ngrpc-status: 0\r\nx-hop: 2\r\n\r\n";
    let origin = Origin::new(|_, _| Reply::Raw(raw.as_bytes().to_vec()));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (mut answer, _) = client.begin(get("/"), true).await;
        let hint = std::future::poll_fn(|cx| answer.poll_informational(cx)).await;
        let hint = hint.expect("a hint").expect("a hint");
        assert_eq!((hint.status().as_u16(), hint.headers().len()), (103, 1));
        let answer = read(answer).await.expect("an answer");
        assert_eq!((answer.text().as_str(), answer.field("x-hop")), ("abc", None));
        assert_eq!(answer.trailers, Some(fields(&[("grpc-status", "0")])));
    });
}

#[test]
fn heads_alone_end_their_streams() {
    let answers = [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", 200, Some("7")),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, None),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, Some("9")),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, Some("0")),
    ];
    let origin = Origin::new(move |n, _| Reply::Raw(answers[n].1.as_bytes().to_vec()));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        for (method, _, status, length) in answers {
            let request = Request::builder().method(method).uri("http://test/").body(()).expect("a request");
            let answer = client.ask(request).await.expect("an answer");
            assert_eq!((answer.status, answer.field("content-length")), (status, length));
            assert!(answer.body.is_empty());
        }
    });
}

#[test]
fn an_answer_that_breaks_off_is_no_whole_one() {
    for raw in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n",
    ] {
        let origin = common::Origin::new(move |n, _| match n {
            0 => Reply::Raw(raw.as_bytes().to_vec()),
            _ => Reply::Ok("next".to_owned()),
        });
        let served = serve(&format!(
            "listen(\"127.0.0.1:0\", server(\"origin\", addr=\"{}\", body_timeout=100*ms))",
            origin.addr
        ));
        run(async {
            let mut client = Client::new(&served.addr).await;
            let broken = client.ask(get("/")).await.expect_err("it breaks off");
            assert_eq!(broken.reason(), Some(Reason::INTERNAL_ERROR));
            // The connection is none the worse for it.
            assert_eq!(client.get("/").await.text(), "next");
        });
    }
}

#[test]
fn a_client_that_resets_is_gone() {
    let origin = Origin::new(|_, _| Reply::After(15_000, Box::new(Reply::Ok(String::new()))));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, mut stream) = client.begin(get("/"), true).await;
        while origin.busy() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        stream.send_reset(Reason::CANCEL);
        drop(answer);
        while origin.open() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    });
    assert_eq!(origin.busy(), 0);
}

#[test]
fn an_answer_before_the_request_is_whole_ends_the_upload() {
    let served = serve_node("respond(403, body=\"no\")");
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, mut stream) = client.begin(post("/"), false).await;
        let answer = read(answer).await.expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
        let reason = std::future::poll_fn(|cx| stream.poll_reset(cx)).await.expect("a reset");
        assert_eq!(reason, Reason::NO_ERROR);
    });
}

#[test]
fn a_drain_says_goaway_and_finishes_what_is_under_way() {
    let origin = Origin::new(|_, _| Reply::After(100, Box::new(Reply::Ok("late".to_owned()))));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, _) = client.begin(get("/"), true).await;
        while origin.busy() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        drop(served);
        assert_eq!(read(answer).await.expect("an answer").text(), "late");
        // In order: GOAWAY with NO_ERROR.
        client.ended.await.expect("no panic").expect("no error");
    });
    until(|| origin.open() == 0);
}

#[test]
fn a_connection_ends_by_its_number_of_requests() {
    let text = "listen(\"127.0.0.1:0\", respond(200, body=\"x\"), http=http(max_requests=3))";
    let served = serve(text);
    run(async {
        let mut client = Client::new(&served.addr).await;
        for _ in 0..3 {
            assert_eq!(client.get("/").await.status, 200);
        }
        client.ended.await.expect("no panic").expect("no error");
    });
}

/// Peers end a connection on which many small frames wait unread, so that those that come together leave together.
#[test]
fn small_chunks_are_put_together() {
    let chunks = "8\r\n01234567\r\n".repeat(2000);
    let raw = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n").into_bytes();
    let origin = Origin::new(move |_, _| Reply::Raw(raw.clone()));
    let served = before(&origin);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, _) = client.begin(get("/"), true).await;
        let mut body = answer.await.expect("a head").into_body();
        // Long enough for all of it to lie unread.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert_eq!(crate::peer::collect(&mut body).await.expect("a body").len(), 16_000);
    });
}
