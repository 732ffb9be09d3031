//! The PROXY protocol, in (`proxy_from`) and out (`send_proxy`): weir before weir, as a balancer before another.

use crate::common::{Conn, Origin, Reply, RunningBalancer, serve, until};
use std::io::{Read, Write};

const FROM: &str = "http=http(proxy_from=[\"127.0.0.1\"])";

/// An outer weir that believes the header of the test, before an inner one that gets the client's address from it,
/// before an origin.
fn chain(version: &str, origin: &Origin) -> (RunningBalancer, RunningBalancer) {
    let inner = serve(&format!("listen(\"127.0.0.1:0\", server(\"o\", addr=\"{}\"), {FROM})", origin.addr));
    let outer = serve(&format!(
        "listen(\"127.0.0.1:0\", server(\"w\", addr=\"{}\", send_proxy=\"{version}\"), {FROM})",
        inner.addr
    ));
    (outer, inner)
}

/// The client that an origin's fields name, for each request that it saw.
fn clients(origin: &Origin) -> Vec<String> {
    let of = |head: &str| {
        let field = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("x-forwarded-for: ").map(str::to_owned));
        field.unwrap_or_else(|| head.to_owned())
    };
    origin.seen().iter().map(|(head, _)| of(head)).collect()
}

fn named(addr: &str, client: &str) -> Conn {
    let mut conn = Conn::new(addr);
    let family = if client.contains(':') { "TCP6" } else { "TCP4" };
    let local = if client.contains(':') { "::1" } else { "127.0.0.1" };
    conn.send(format!("PROXY {family} {client} {local} 4000 80\r\n"));
    conn
}

#[test]
pub fn who_the_client_is_goes_through_both() {
    for version in ["v1", "v2"] {
        let origin = Origin::named("o");
        let (outer, _inner) = chain(version, &origin);
        let mut one = named(&outer.addr, "203.0.113.7");
        let mut two = named(&outer.addr, "2001:db8::7");
        for _ in 0..2 {
            assert_eq!(one.get("/", "").status, 200);
            assert_eq!(two.get("/", "").status, 200);
        }
        assert_eq!(
            clients(&origin),
            ["203.0.113.7", "2001:db8::7", "203.0.113.7", "2001:db8::7"],
            "{version}"
        );
    }
}

/// A header in pieces, before a request that comes with its last byte; then another request on the same connection.
#[test]
pub fn a_header_may_come_in_pieces() {
    let origin = Origin::named("o");
    let (outer, _inner) = chain("v2", &origin);
    let mut conn = Conn::new(&outer.addr);
    let bytes = b"PROXY TCP4 203.0.113.9 127.0.0.1 4000 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for byte in bytes {
        conn.send([*byte]);
    }
    assert_eq!(conn.response().status, 200);
    assert_eq!(conn.get("/", "").status, 200);
    assert_eq!(clients(&origin), ["203.0.113.9", "203.0.113.9"]);
}

/// What is no header is no request either: it is not answered, and nothing of it goes on.
#[test]
pub fn without_a_header_nothing_is_served() {
    let origin = Origin::named("o");
    let (outer, _inner) = chain("v1", &origin);
    let wrong: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 99999\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c",
        b"PROXY TCP4 203.0.113.7 127.0.0.1 4000 80\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for bytes in wrong {
        let mut conn = Conn::new(&outer.addr);
        conn.stream.write_all(bytes).expect("it is taken");
        let mut rest = Vec::new();
        // It ends, by a reset where bytes were unread.
        let _ = conn.stream.read_to_end(&mut rest);
        assert_eq!(rest, b"", "{bytes:?}");
    }
    assert_eq!(origin.count(), 0);
}

/// The balancer's own checks name no client.
#[test]
pub fn a_balancer_may_speak_for_itself() {
    let origin = Origin::named("o");
    let (outer, _inner) = chain("v1", &origin);
    let mut unknown = Conn::new(&outer.addr);
    unknown.send("PROXY UNKNOWN\r\n");
    assert_eq!(unknown.get("/", "").status, 200);
    assert_eq!(clients(&origin), ["127.0.0.1"]);
}

/// Limits by address apply to the client that the header names: the balancer's own address has all of them.
#[test]
pub fn limits_by_address_are_of_clients() {
    let served = serve(
        "listen(\"127.0.0.1:0\", respond(200), http=http(proxy_from=[\"127.0.0.0/8\"], max_clients_per_address=1))",
    );
    let mut one = named(&served.addr, "203.0.113.7");
    let mut two = named(&served.addr, "203.0.113.8");
    assert_eq!((one.get("/", "").status, two.get("/", "").status), (200, 200));
    // A second one of an address has its place once the first is gone.
    let mut third = named(&served.addr, "203.0.113.7");
    third.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    drop(one);
    assert_eq!(third.response().status, 200);
}

/// A check says that it comes from weir itself, so that the origin does not take it for a client.
#[test]
pub fn checks_begin_with_a_header_too() {
    for (version, begin) in
        [("v1", &b"PROXY UNKNOWN\r\nGET"[..]), ("v2", &b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0GET"[..])]
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let _served = serve(&format!(
            "listen(\"127.0.0.1:0\", lb.random([server(\"a\", addr=\"{addr}\", send_proxy=\"{version}\")], \
             health=health.http(\"/\", interval=100*ms)))"
        ));
        let (mut stream, _) = listener.accept().expect("a check");
        let mut read = vec![0; begin.len()];
        stream.read_exact(&mut read).expect("its beginning");
        assert_eq!(read, begin, "{version}");
    }
}

/// An origin that closes after each answer gets a header on each connection.
#[test]
pub fn every_connection_begins_with_one() {
    let origin = Origin::new(|_, _| {
        Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec())
    });
    let (outer, _inner) = chain("v2", &origin);
    let mut conn = named(&outer.addr, "203.0.113.7");
    assert!((0..3).all(|_| conn.get("/", "").status == 200));
    until(|| clients(&origin).len() == 3);
    assert!(clients(&origin).iter().all(|client| client == "203.0.113.7"));
}
