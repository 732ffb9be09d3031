//! How many streams an origin allows: fewer than before, or none.

use crate::common::{Conn, RunningBalancer, serve_node};
use crate::frames::{RawPeer, head};
use crate::raw::{SETTINGS, frame};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// SETTINGS_MAX_CONCURRENT_STREAMS.
fn most(streams: u32) -> Vec<u8> {
    [&[0, 3][..], &streams.to_be_bytes()].concat()
}

fn ask(served: &RunningBalancer) -> Conn {
    let mut client = Conn::new(&served.addr);
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    client
}

/// An origin, and what serves with it in front of it.
fn before(more: &str) -> (TcpListener, RunningBalancer) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let served = serve_node(&format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\"{more})"));
    (listener, served)
}

/// Whether nothing connects for a while.
fn no_other_comes(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).expect("a socket");
    crate::common::pause(50);
    listener.accept().is_err()
}

const OK: &[(&[u8], &[u8])] = &[(b":status", b"204")];

/// The requests wait for the origin's next settings, and make no connections.
#[test]
fn an_origin_that_allows_no_streams_is_waited_for() {
    let (listener, served) = before(", connect_timeout=10*s");
    let mut first = ask(&served);
    let mut origin = RawPeer::origin(&listener, &most(0));
    let stream = origin.next_request();
    origin.send(&head(stream, true, OK));
    assert_eq!(first.response().status, 204);
    let mut clients: Vec<Conn> = (0..10).map(|_| ask(&served)).collect();
    assert!(no_other_comes(&listener));
    origin.send(&frame(SETTINGS, 0, 0, &most(100)));
    for _ in 0..10 {
        let stream = origin.next_request();
        origin.send(&head(stream, true, OK));
    }
    for client in &mut clients {
        assert_eq!(client.response().status, 204);
    }
    assert!(no_other_comes(&listener));
}

/// What is refused because of the limit, which it could not know, waits as well.
#[test]
fn a_request_that_was_refused_waits_for_room() {
    let (listener, served) = before(", connect_timeout=10*s");
    let mut client = ask(&served);
    let mut origin = RawPeer::origin(&listener, &most(0));
    let stream = origin.next_request();
    origin.send(&frame(crate::frames::RST_STREAM, 0, stream, &7u32.to_be_bytes()));
    assert!(no_other_comes(&listener));
    origin.send(&frame(SETTINGS, 0, 0, &most(1)));
    let stream = origin.next_request();
    origin.send(&head(stream, true, OK));
    assert_eq!(client.response().status, 204);
    assert!(no_other_comes(&listener));
}

/// As long as a request waits for any connection.
#[test]
fn waiting_for_streams_has_an_end() {
    let (listener, served) = before(", connect_timeout=300*ms");
    let mut first = ask(&served);
    let mut origin = RawPeer::origin(&listener, &most(0));
    let stream = origin.next_request();
    origin.send(&head(stream, true, OK));
    assert_eq!(first.response().status, 204);
    let begun = Instant::now();
    let mut clients: Vec<Conn> = (0..10).map(|_| ask(&served)).collect();
    for client in &mut clients {
        let answer = client.response();
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
        assert_eq!(answer.body, "503 Service Unavailable (connect_timeout)\n");
    }
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
    assert!(no_other_comes(&listener));
}

/// Requests beyond the new limit go on a new connection, and those under way end where they are.
#[test]
fn a_limit_that_shrinks_cuts_nothing_off() {
    let (listener, served) = before("");
    let mut first = ask(&served);
    let mut origin = RawPeer::origin(&listener, &most(100));
    let mut second = {
        let stream = origin.next_request();
        assert_eq!(stream, 1);
        let second = ask(&served);
        assert_eq!(origin.next_request(), 3);
        second
    };
    origin.send(&frame(SETTINGS, 0, 0, &most(1)));
    // Its acknowledgement says that the settings hold.
    crate::common::pause(50);
    let mut third = ask(&served);
    let mut other = RawPeer::origin(&listener, &most(1));
    assert_eq!(other.next_request(), 1);
    other.send(&head(1, true, OK));
    assert_eq!(third.response().status, 204);
    origin.send(&head(3, true, OK));
    origin.send(&head(1, true, OK));
    assert_eq!((first.response().status, second.response().status), (204, 204));
    let mut fourth = ask(&served);
    let stream = origin.next_request();
    assert_eq!(stream, 5);
    origin.send(&head(stream, true, OK));
    assert_eq!(fourth.response().status, 204);
}
