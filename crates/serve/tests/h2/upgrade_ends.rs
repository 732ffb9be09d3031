//! How tunnels of both versions end, and what they hold until then.

use crate::common::{pause, serve, serve_node, until};
use crate::peer::{Client, run, write};
use crate::raw::{HEADERS, PREFACE, SETTINGS, frame};
use crate::switches::{Origin, PAIRS, Says, Speaks, extended, open, until_allowed};
use crate::upgrades::{MUCH, end, passes, tunnel};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;
use weir_serve::Exposition;

#[test]
fn a_tunnel_ends_when_nothing_moves() {
    for (front, behind) in PAIRS {
        let origin = Origin::new(behind, true, Says::Yes);
        let node = origin.node(behind, "");
        let served = serve(&format!("listen(\"127.0.0.1:0\", {node}, http=http(tunnel_idle=300*ms))"));
        let mut client = open(front, &served.addr, "websocket");
        let mut arrived = origin.next();
        for _ in 0..4 {
            pause(100);
            passes(&client.stream, &arrived.stream, 1);
        }
        let by_h1 =
            |speaks| if speaks == Speaks::H1 { ErrorKind::UnexpectedEof } else { ErrorKind::ConnectionReset };
        assert_eq!(end(&mut client.stream), by_h1(front), "{front:?} {behind:?}");
        assert_eq!(end(&mut arrived.stream), by_h1(behind), "{front:?} {behind:?}");
    }
}

#[test]
fn a_drain_leaves_a_tunnel_its_time() {
    for (front, behind) in PAIRS {
        let (served, client, origin) = tunnel(front, behind);
        drop(served);
        pause(100);
        passes(&client.stream, &origin.stream, 100_000);
        passes(&origin.stream, &client.stream, 100_000);
    }
}

/// It has its place until it is closed.
#[test]
fn a_tunnel_counts_until_it_ends() {
    for (front, behind) in PAIRS {
        let origin = Origin::new(behind, true, Says::Yes);
        let node = format!("queue({}, concurrency=1, capacity=1, timeout=50*ms)", origin.node(behind, ""));
        let served = serve_node(&node);
        let client = open(front, &served.addr, "websocket");
        let arrived = origin.next();
        assert!(open(front, &served.addr, "websocket").head.line.starts_with("504"), "{front:?} {behind:?}");
        drop(client);
        drop(arrived);
        until(|| !open(front, &served.addr, "websocket").head.line.starts_with("504"));
    }
}

#[test]
fn a_client_that_leaves_before_the_answer_is_gone() {
    for behind in [Speaks::H1, Speaks::H2] {
        let origin = Origin::new(behind, true, Says::Silence);
        let served = serve_node(&origin.node(behind, ""));
        let mut arrived = run(async {
            let mut client = Client::new(&served.addr).await;
            until_allowed(&client).await;
            let (answer, mut up) = client.begin(extended("websocket"), false).await;
            let arrived = loop {
                match origin.arrived.try_recv() {
                    Ok(arrived) => break arrived,
                    Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            up.send_reset(h2::Reason::CANCEL);
            drop(answer);
            tokio::time::sleep(Duration::from_millis(50)).await;
            arrived
        });
        assert_eq!(end(&mut arrived.stream), ErrorKind::UnexpectedEof, "{behind:?}");
    }
}

/// Many on one connection, each way.
#[test]
fn tunnels_share_a_connection_with_requests() {
    let origin = Origin::new(Speaks::H2, true, Says::Yes);
    let served = serve_node(&origin.node(Speaks::H2, ""));
    let tunnels: Vec<_> = (0..20)
        .map(|n| {
            let client = open(if n % 2 == 0 { Speaks::H1 } else { Speaks::H2 }, &served.addr, "websocket");
            (client, origin.next())
        })
        .collect();
    for (client, arrived) in tunnels.iter().rev() {
        passes(&client.stream, &arrived.stream, 100_000);
        passes(&arrived.stream, &client.stream, 100_000);
    }
    let text = served.scrape(Exposition::OpenMetrics);
    let opened = text.lines().find(|line| line.starts_with("weir_upstream_connections_opened_total{"));
    assert!(opened.is_some_and(|line| line.ends_with(" 1")), "{opened:?}");
}

/// A tunnel is no body that ends with the head.
#[test]
fn a_connect_to_an_origin_of_http_2_passes_both_ways() {
    let origin = Origin::new(Speaks::H2, true, Says::Yes);
    let node = origin.node(Speaks::H2, "");
    let served = serve(&format!("listen(\"127.0.0.1:0\", {node}, http=http(connect=[\"db.test:5432\"]))"));
    let mut client = TcpStream::connect(&served.addr).expect("a connection");
    client.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    client.write_all(b"CONNECT db.test:5432 HTTP/1.1\r\nHost: db.test:5432\r\n\r\n").expect("taken");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    let mut arrived = origin.next();
    assert_eq!(arrived.head.line, "CONNECT db.test:5432");
    passes(&client, &arrived.stream, MUCH);
    passes(&arrived.stream, &client, MUCH);
    client.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(end(&mut arrived.stream), ErrorKind::UnexpectedEof);
}

/// Chrome sends its last message and the end in one frame, and hypercorn takes the message for the end.
#[test]
fn an_end_leaves_with_the_bytes_before_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")"));
    let origin = std::thread::spawn(move || {
        let (mut weir, _) = listener.accept().expect("a connection");
        weir.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
        // ENABLE_CONNECT_PROTOCOL (RFC 8441 §3).
        weir.write_all(&frame(SETTINGS, 0, 0, &[0, 8, 0, 0, 0, 1])).expect("taken");
        weir.read_exact(&mut vec![0; PREFACE.len()]).expect("the preface");
        loop {
            let mut head = [0; 9];
            weir.read_exact(&mut head).expect("a frame");
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            weir.read_exact(&mut payload).expect("a payload");
            match head[3] {
                HEADERS => weir.write_all(&frame(HEADERS, 4, 1, &[0x88])).expect("taken"),
                0 => return (payload, head[4]),
                _ => {}
            }
        }
    });
    run(async {
        let mut client = Client::new(&served.addr).await;
        until_allowed(&client).await;
        let (answer, mut up) = client.begin(extended("websocket"), false).await;
        assert_eq!(answer.await.expect("an answer").status().as_u16(), 200);
        write(&mut up, bytes::Bytes::from_static(b"bye"), true).await.expect("it goes");
        let came = tokio::task::spawn_blocking(|| origin.join().expect("no panic")).await;
        assert_eq!(came.expect("no panic"), (b"bye".to_vec(), 1));
    });
}
