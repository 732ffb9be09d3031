//! Upgrades between the versions of HTTP: by HTTP/1.1 with Upgrade, by HTTP/2 as extended CONNECT (RFC 8441).

use crate::common::{RunningBalancer, serve, serve_node};
use crate::peer::{Client, run};
use crate::switches::{End, KEY, Origin, PAIRS, Says, Speaks, open, proof};
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use weir_serve::Exposition;

/// More than the windows and buffers on the way.
pub const MUCH: usize = 3_000_000;

/// A tunnel, and both ends of it.
pub fn tunnel(front: Speaks, behind: Speaks) -> (RunningBalancer, End, End) {
    let origin = Origin::new(behind, true, Says::Yes);
    let served = serve_node(&origin.node(behind, ""));
    let client = open(front, &served.addr, "websocket");
    let arrived = origin.next();
    (served, client, arrived)
}

/// Sends bytes while the other end reads them, and checks that they are the same.
pub fn passes(from: &TcpStream, to: &TcpStream, bytes: usize) {
    let data: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
    let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(&data).expect("taken"));
        let mut came = vec![0; bytes];
        to.read_exact(&mut came).expect("it arrives");
        assert!(came == data);
    });
}

/// How a stream ended; nothing is left before that.
pub fn end(stream: &mut TcpStream) -> ErrorKind {
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    match stream.read(&mut [0; 1]) {
        Ok(n) => {
            assert_eq!(n, 0, "more bytes came");
            ErrorKind::UnexpectedEof
        }
        Err(e) => e.kind(),
    }
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket");
}

#[test]
fn heads_are_those_of_each_version() {
    for (front, behind) in PAIRS {
        let (_served, client, origin) = tunnel(front, behind);
        let what = format!("{front:?} {behind:?}");
        let asked = &origin.head;
        let key = asked.field("sec-websocket-key");
        match behind {
            Speaks::H1 => {
                assert_eq!(
                    (asked.line.as_str(), asked.field("upgrade")),
                    ("GET /chat?x", Some("websocket")),
                    "{what}"
                );
                assert_eq!(asked.field("connection"), Some("upgrade"), "{what}");
                let is_own = front == Speaks::H2;
                assert!(key.is_some_and(|key| (key != KEY) == is_own && key.len() == 24), "{what}: {key:?}");
            }
            Speaks::H2 => {
                assert_eq!((asked.line.as_str(), key), ("CONNECT websocket http://h/chat?x", None), "{what}");
            }
        }
        assert_eq!(asked.field("sec-websocket-protocol"), Some("chat"), "{what}");
        assert_eq!(asked.field("sec-websocket-version"), Some("13"), "{what}");
        let (answer, accept) = (&client.head, client.head.field("sec-websocket-accept"));
        match front {
            Speaks::H1 => {
                assert!(answer.line.starts_with("101"), "{what}: {answer:?}");
                assert_eq!(
                    (answer.field("upgrade"), answer.field("connection")),
                    (Some("websocket"), Some("upgrade"))
                );
                assert_eq!(accept, Some(&*proof(KEY)), "{what}");
            }
            Speaks::H2 => assert_eq!((answer.line.as_str(), accept), ("200", None), "{what}"),
        }
        assert_eq!(answer.field("sec-websocket-protocol"), Some("chat"), "{what}");
    }
}

#[test]
fn bytes_pass_both_ways_and_each_half_ends_by_itself() {
    for (front, behind) in PAIRS {
        for client_first in [true, false] {
            let (_served, client, origin) = tunnel(front, behind);
            let (client, origin) = (client.stream, origin.stream);
            std::thread::scope(|scope| {
                scope.spawn(|| passes(&client, &origin, MUCH));
                scope.spawn(|| passes(&origin, &client, MUCH));
            });
            let (mut first, mut last) = if client_first { (client, origin) } else { (origin, client) };
            first.shutdown(Shutdown::Write).expect("a socket");
            assert_eq!(end(&mut last), ErrorKind::UnexpectedEof, "{front:?} {behind:?}");
            passes(&last, &first, 100_000);
            last.shutdown(Shutdown::Write).expect("a socket");
            assert_eq!(end(&mut first), ErrorKind::UnexpectedEof, "{front:?} {behind:?}");
        }
    }
}

#[test]
fn a_reset_of_one_side_reaches_the_other() {
    for (front, behind) in PAIRS {
        for by_client in [true, false] {
            let (_served, client, origin) = tunnel(front, behind);
            let (client, origin) = (client.stream, origin.stream);
            passes(&client, &origin, 10);
            passes(&origin, &client, 10);
            let (broken, mut other) = if by_client { (client, origin) } else { (origin, client) };
            reset(broken);
            assert_eq!(end(&mut other), ErrorKind::ConnectionReset, "{front:?} {behind:?} {by_client}");
        }
    }
}

#[test]
fn a_refusal_passes_as_it_is() {
    for (front, behind) in PAIRS {
        let origin = Origin::new(behind, true, Says::Status(403));
        let served = serve_node(&origin.node(behind, ""));
        let mut answer = open(front, &served.addr, "websocket");
        assert!(answer.head.line.starts_with("403"), "{front:?} {behind:?}: {:?}", answer.head);
        let mut body = [0; 64];
        let n = answer.stream.read(&mut body).expect("a body");
        let body = String::from_utf8_lossy(&body[..n]).into_owned();
        assert!(body.contains("body"), "{front:?} {behind:?}: {body}");
    }
}

/// By HTTP/2 it would open a tunnel at the client.
#[test]
fn a_2xx_that_is_no_agreement_is_none() {
    let origin = Origin::new(Speaks::H1, true, Says::Status(200));
    let served = serve_node(&origin.node(Speaks::H1, ""));
    assert!(open(Speaks::H1, &served.addr, "websocket").head.line.starts_with("200"));
    assert_eq!(open(Speaks::H2, &served.addr, "websocket").head.line, "501");
    let own = serve_node("respond(200, body=\"own\")");
    assert!(open(Speaks::H1, &own.addr, "websocket").head.line.starts_with("200"));
    assert_eq!(open(Speaks::H2, &own.addr, "websocket").head.line, "501");
    let other = serve_node("respond(404)");
    assert_eq!(open(Speaks::H2, &other.addr, "websocket").head.line, "404");
}

/// A client of HTTP/1.1 checks it by itself.
#[test]
fn an_origin_proves_that_it_has_understood() {
    let origin = Origin::new(Speaks::H1, true, Says::WrongProof);
    let served = serve_node(&origin.node(Speaks::H1, ""));
    assert!(open(Speaks::H1, &served.addr, "websocket").head.line.starts_with("101"));
    assert_eq!(open(Speaks::H2, &served.addr, "websocket").head.line, "502");
}

#[test]
fn only_protocols_of_the_listener_pass() {
    for behind in [Speaks::H1, Speaks::H2] {
        let origin = Origin::new(behind, true, Says::Yes);
        let node = origin.node(behind, "");
        let listen = |http: &str| serve(&format!("listen(\"127.0.0.1:0\", {node}, http=http({http}))"));
        let served = listen("upgrade=[\"websocket\", \"custom\"]");
        for front in [Speaks::H1, Speaks::H2] {
            let client = open(front, &served.addr, "custom");
            let arrived = origin.next();
            let named = if behind == Speaks::H1 {
                arrived.head.field("upgrade")
            } else {
                arrived.head.line.split(' ').nth(1)
            };
            assert_eq!(named, Some("custom"), "{:?}", arrived.head);
            passes(&client.stream, &arrived.stream, 10);
        }
        let refuses = listen("");
        assert_eq!(open(Speaks::H2, &refuses.addr, "custom").head.line, "501");
        let text = refuses.scrape(Exposition::OpenMetrics);
        assert!(text.contains("weir_bad_requests_total{listener=\"listen\",rule=\"upgrade\"} 1"));
        assert!(origin.arrived.try_recv().is_err());
    }
}

#[test]
fn a_listener_without_upgrades_offers_none() {
    let served = serve("listen(\"127.0.0.1:0\", respond(200), http=http(upgrade=[]))");
    run(async {
        let mut client = Client::new(&served.addr).await;
        // Its settings have come with the answer.
        assert_eq!(client.get("/").await.status, 200);
        assert!(!client.sender.is_extended_connect_protocol_enabled());
    });
}

/// It is neither tried again nor held against the target.
#[test]
fn an_origin_that_does_not_allow_it_gets_none() {
    let origin = Origin::new(Speaks::H2, false, Says::Status(201));
    let node = origin.node(Speaks::H2, "");
    let served =
        serve_node(&format!("retry(3, lb.first([{node}], eject=eject(consecutive=1, max_percent=100)))"));
    for front in [Speaks::H1, Speaks::H2] {
        for _ in 0..2 {
            assert!(open(front, &served.addr, "websocket").head.line.starts_with("501"));
        }
    }
    assert!(origin.arrived.try_recv().is_err());
    run(async {
        let mut client = Client::new(&served.addr).await;
        assert_eq!(client.get("/").await.status, 201);
    });
    let text = served.scrape(Exposition::OpenMetrics);
    let opened = text.lines().find(|line| line.starts_with("weir_upstream_connections_opened_total{"));
    assert!(opened.is_some_and(|line| line.ends_with(" 1")), "{opened:?}");
}
