//! Resets of tunnels: one of either side reaches the other as one, behind every byte that came before it.

use crate::common::{pause, serve, until};
use crate::peer::{Client, run, write};
use bytes::Bytes;
use h2::Reason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
const CONNECT: &str = "CONNECT db.test:5432 HTTP/1.1\r\nHost: db.test:5432\r\n\r\n";
const ACCEPTED: &str = "HTTP/1.1 200 OK\r\n\r\n";

/// More than the small window of a client takes, and less than what fits between the two sides.
const PART: usize = 100_000;

/// How a stream ended, behind how many bytes.
fn end(stream: &mut TcpStream) -> (usize, ErrorKind) {
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let (mut piece, mut came) = (vec![0; 64 * 1024], 0);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return (came, ErrorKind::UnexpectedEof),
            Ok(n) => came += n,
            Err(e) => return (came, e.kind()),
        }
    }
}

/// Reads up to the end of a head.
fn head(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket");
}

/// Waits until weir's system has what was written.
fn delivered(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    socket.set_tcp_notsent_lowat(1).and_then(|()| socket.set_send_buffer_size(1)).expect("a socket");
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    until(|| poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&now)).is_ok_and(|ready| ready > 0));
}

/// A client whose system takes little that it does not read.
fn connect(addr: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a buffer");
    socket.connect(&addr.parse::<SocketAddr>().expect("an address").into()).expect("a connection");
    socket.into()
}

/// A tunnel from a client to an origin, both by hand.
fn tunnel(ask: &str, accept: &'static str) -> (crate::common::RunningBalancer, TcpStream, TcpStream) {
    let (served, opened) = served(accept);
    let mut client = connect(&served.addr);
    client.write_all(ask.as_bytes()).expect("taken");
    let answer = head(&mut client);
    assert_eq!(answer.split(' ').nth(1), accept.split(' ').nth(1), "{answer}");
    (served, client, opened.recv().expect("a tunnel"))
}

/// What accepts tunnels, and the origin's end of each.
fn served(accept: &'static str) -> (crate::common::RunningBalancer, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (open, opened) = channel();
    std::thread::spawn(move || {
        for mut weir in listener.incoming().flatten() {
            head(&mut weir);
            weir.write_all(accept.as_bytes()).expect("taken");
            let _ = open.send(weir);
        }
    });
    let http = "http=http(connect=[\"db.test:5432\"])";
    (serve(&format!("listen(\"127.0.0.1:0\", server(addr=\"{addr}\"), {http})")), opened)
}

#[test]
fn a_reset_of_the_origin_reaches_the_client() {
    for (ask, accept) in [(UPGRADE, SWITCH), (CONNECT, ACCEPTED)] {
        let (_served, mut client, mut origin) = tunnel(ask, accept);
        origin.write_all(&[b'x'; PART]).expect("taken");
        delivered(&origin);
        reset(origin);
        pause(300);
        assert_eq!(end(&mut client), (PART, ErrorKind::ConnectionReset), "{ask}");
    }
}

#[test]
fn a_reset_of_the_client_reaches_the_origin() {
    for (ask, accept) in [(UPGRADE, SWITCH), (CONNECT, ACCEPTED)] {
        let (_served, mut client, mut origin) = tunnel(ask, accept);
        SockRef::from(&origin).set_recv_buffer_size(4096).expect("a buffer");
        client.write_all(&[b'x'; PART]).expect("taken");
        delivered(&client);
        reset(client);
        pause(300);
        assert_eq!(end(&mut origin), (PART, ErrorKind::ConnectionReset), "{ask}");
    }
}

/// What the origin had sent is not lost where its reset shows in a write to it.
#[test]
fn a_reset_that_a_write_meets_overtakes_nothing() {
    let (_served, mut client, mut origin) = tunnel(UPGRADE, SWITCH);
    origin.write_all(&[b'x'; PART]).expect("taken");
    delivered(&origin);
    // A close with unread bytes is a reset, too.
    client.write_all(b"unread").expect("taken");
    until(|| origin.peek(&mut [0; 6]).is_ok_and(|n| n == 6));
    drop(origin);
    let _ = client.write_all(b"late");
    pause(300);
    let _ = client.write_all(b"later");
    assert_eq!(end(&mut client), (PART, ErrorKind::ConnectionReset));
}

/// An end in order stays one, each way by itself.
#[test]
fn an_end_in_order_is_no_reset() {
    let (_served, mut client, mut origin) = tunnel(UPGRADE, SWITCH);
    client.write_all(b"last words").expect("taken");
    client.shutdown(std::net::Shutdown::Write).expect("a socket");
    assert_eq!(end(&mut origin), (10, ErrorKind::UnexpectedEof));
    origin.write_all(&[b'x'; PART]).expect("taken");
    drop(origin);
    assert_eq!(end(&mut client), (PART, ErrorKind::UnexpectedEof));
}

/// By HTTP/2 it is RST_STREAM, which must not overtake data that waits for the client's window.
#[test]
fn a_reset_of_the_origin_resets_the_stream() {
    let (served, opened) = served(ACCEPTED);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, _up) = client.begin(connect_request(), false).await;
        let (head, mut down) = answer.await.expect("an answer").into_parts();
        assert_eq!(head.status.as_u16(), 200);
        let mut origin = opened.recv().expect("a tunnel");
        let sent = tokio::task::spawn_blocking(move || {
            origin.write_all(&[b'x'; PART]).expect("taken");
            delivered(&origin);
            reset(origin);
        });
        sent.await.expect("no panic");
        let mut came = 0;
        let reason = loop {
            match down.data().await {
                Some(Ok(piece)) => {
                    came += piece.len();
                    down.flow_control().release_capacity(piece.len()).expect("it was read");
                }
                Some(Err(e)) => break e.reason(),
                None => break None,
            }
        };
        assert_eq!((came, reason), (PART, Some(Reason::CONNECT_ERROR)));
    });
}

#[test]
fn a_reset_of_the_stream_reaches_the_origin() {
    let (served, opened) = served(ACCEPTED);
    let mut origin = run(async {
        let mut client = Client::new(&served.addr).await;
        let (answer, mut up) = client.begin(connect_request(), false).await;
        assert_eq!(answer.await.expect("an answer").status().as_u16(), 200);
        let origin = opened.recv().expect("a tunnel");
        write(&mut up, Bytes::from(vec![b'x'; 50_000]), false).await.expect("it goes");
        // The library's reset overtakes its own data, so that has to be gone first.
        origin.set_nonblocking(true).expect("a socket");
        while origin.peek(&mut vec![0; 50_000]).ok() != Some(50_000) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        origin.set_nonblocking(false).expect("a socket");
        up.send_reset(Reason::CANCEL);
        tokio::time::sleep(Duration::from_millis(100)).await;
        origin
    });
    assert_eq!(end(&mut origin), (50_000, ErrorKind::ConnectionReset));
}

fn connect_request() -> http::Request<()> {
    http::Request::connect("db.test:5432").body(()).expect("a request")
}
