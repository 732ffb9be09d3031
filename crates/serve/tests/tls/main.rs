//! TLS on both sides, with clients and origins by rustls. Real clients: `cli/tests/serve/tls.rs`.

mod bad_origins;
#[path = "../common/mod.rs"]
mod common;
mod deploys;
mod hello;
mod identity;
mod inner;
mod renewals;
mod upgrades;

use common::certificates::Authority;
use common::configs::{client, server};
use common::transport::{Transport, with_transport};
use common::{Conn, Origin, Reply, serve, serve_node, until};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn connect(config: &Arc<ClientConfig>, addr: &str, name: &str) -> Tls {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let tcp = TcpStream::connect(addr).expect("a connection");
    StreamOwned::new(ClientConnection::new(config.clone(), name).expect("a client"), tcp)
}

/// The status of a GET for this host.
fn status(tls: &mut Tls, host: &str) -> u16 {
    write!(tls, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("it is taken");
    let mut read = Vec::new();
    while !read.ends_with(b"\n\n") && !read.ends_with(b"ok") {
        let mut piece = [0; 4096];
        let n = tls.read(&mut piece).expect("an answer");
        assert!(n > 0, "an answer");
        read.extend_from_slice(&piece[..n]);
        if read.windows(4).any(|w| w == b"\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&read)[9..12].parse().expect("a status")
}

/// A listener with these certificates before a fixed answer.
fn listen(tls: &str) -> common::RunningBalancer {
    serve(&format!("listen(\"127.0.0.1:0\", respond(200, body=\"ok\"), tls=tls.server({tls}))"))
}

#[test]
fn the_first_certificate_that_covers_the_name_is_shown_else_the_first() {
    let authority = Authority::new("sni");
    let (a, b) = (authority.words(&["a.test", "c.test"]), authority.words(&["b.test", "*.b.test"]));
    let served = listen(&format!("[({a}), ({b})]"));
    let config = Arc::new(client(&authority));
    for name in ["a.test", "b.test", "x.b.test", "c.test"] {
        let mut tls = connect(&config, &served.addr, name);
        assert_eq!(status(&mut tls, name), 200, "{name} is covered");
        assert_eq!(tls.conn.alpn_protocol(), None, "none was offered");
    }
    let mut other = connect(&config, &served.addr, "d.test");
    let failed = other.write(b"GET").and_then(|_| other.flush()).map(|_| other.read(&mut [0]));
    assert!(failed.is_err() || failed.is_ok_and(|read| read.is_err()), "the first does not cover it");
}

#[test]
fn a_host_that_the_certificate_does_not_cover_is_421() {
    let authority = Authority::new("misdirected");
    let (a, b) = (authority.words(&["a.test", "c.test"]), authority.words(&["b.test"]));
    let served = listen(&format!("[({a}), ({b})]"));
    let config = Arc::new(client(&authority));
    for (name, host, is) in [
        ("a.test", "a.test", 200),
        ("a.test", "A.Test:443", 200),
        ("a.test", "c.test", 200),
        ("a.test", "b.test", 421),
        ("b.test", "a.test", 421),
        ("b.test", "b.test", 200),
    ] {
        assert_eq!(status(&mut connect(&config, &served.addr, name), host), is, "{name} {host}");
    }
}

#[test]
fn a_session_is_resumed_and_another_protocol_refused() {
    let authority = Authority::new("sessions");
    let served = listen(&authority.words(&["a.test"]));
    let mut config = client(&authority);
    config.alpn_protocols = vec![b"x".to_vec(), b"http/1.1".to_vec()];
    let config = Arc::new(config);
    for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
        let mut tls = connect(&config, &served.addr, "a.test");
        assert_eq!(status(&mut tls, "a.test"), 200);
        assert_eq!(tls.conn.handshake_kind(), Some(kind));
        assert_eq!(tls.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
    let mut none = client(&authority);
    none.alpn_protocols = vec![b"x".to_vec()];
    let mut tls = connect(&Arc::new(none), &served.addr, "a.test");
    assert!(tls.write_all(b"GET").and_then(|()| tls.flush()).and_then(|()| tls.read(&mut [0])).is_err());
}

/// An answer whose end is its connection's has an end only where close_notify says so.
#[test]
fn a_body_that_ends_without_close_notify_is_cut_off() {
    let authority = Authority::new("cut");
    for in_order in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let config = server(&authority, &["origin.test"]);
        let origin = std::thread::spawn(move || {
            let (tcp, _) = listener.accept().expect("a client");
            let tls = rustls::ServerConnection::new(config).expect("a server");
            let mut tls = StreamOwned::new(tls, tcp);
            let _ = tls.read(&mut [0; 4096]).expect("a request");
            tls.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it").expect("it is taken");
            if in_order {
                tls.conn.send_close_notify();
            }
            tls.flush().expect("it is taken");
        });
        let ca = &authority.file;
        let tls = format!("tls.client(ca=\"{ca}\", name=\"origin.test\")");
        let served = serve_node(&format!("server(addr=\"{addr}\", tls={tls})"));
        let mut conn = Conn::new(&served.addr);
        conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let response = conn.try_response();
        origin.join().expect("it has answered");
        assert_eq!(response.map(|r| r.body).as_deref(), in_order.then_some("all of it"));
    }
}

/// Tickets that an origin sends after its handshake are not taken for an answer without a request.
#[test]
fn connections_to_an_origin_are_used_again() {
    with_transport(Transport::Tls, || {
        let origin = Origin::named("app");
        let served = serve_node(&format!("server(addr=\"{}\")", origin.addr));
        let mut conn = Conn::new(&served.addr);
        for _ in 0..20 {
            assert_eq!(conn.get("/", "").body, "app");
        }
        assert_eq!((origin.count(), origin.connections()), (20, 1));
    });
}

/// Targets of one name each resume their own sessions.
#[test]
fn each_target_has_its_own_sessions() {
    let authority = Authority::new("targets");
    let rounds = 3;
    let mut origins = Vec::new();
    for _ in 0..2 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let config = server(&authority, &["origin.test"]);
        let kinds = std::thread::spawn(move || {
            let mut kinds = Vec::new();
            for _ in 0..rounds {
                let (tcp, _) = listener.accept().expect("a client");
                let tls = rustls::ServerConnection::new(config.clone()).expect("a server");
                let mut tls = StreamOwned::new(tls, tcp);
                let _ = tls.read(&mut [0; 4096]).expect("a request");
                kinds.push(tls.conn.handshake_kind());
                tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .expect("it is taken");
                tls.conn.send_close_notify();
                tls.flush().expect("it is taken");
            }
            kinds
        });
        origins.push((addr, kinds));
    }
    let tls = format!("tls=tls.client(ca=\"{}\", name=\"origin.test\")", authority.file);
    let servers: Vec<String> =
        origins.iter().map(|(addr, _)| format!("server(addr=\"{addr}\", {tls})")).collect();
    let served = serve_node(&format!("lb.round_robin([{}], start=\"first\")", servers.join(", ")));
    let mut conn = Conn::new(&served.addr);
    for _ in 0..2 * rounds {
        assert_eq!(conn.get("/", "").status, 200);
    }
    for (_, kinds) in origins {
        use HandshakeKind::{Full, Resumed};
        assert_eq!(kinds.join().expect("it has answered"), [Full, Resumed, Resumed].map(Some));
    }
}

/// More than any buffer, both ways at once, with readers that take their time.
#[test]
fn large_bodies_go_both_ways() {
    with_transport(Transport::Tls, || {
        let large: String = "0123456789abcdef".repeat(200_000);
        let answer = large.clone();
        let origin = Origin::new(move |_, _| Reply::Ok(answer.clone()));
        let served = serve_node(&format!("server(addr=\"{}\")", origin.addr));
        let mut conn = Conn::new(&served.addr);
        for _ in 0..2 {
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", large.len());
            conn.send(head + &large);
            assert!(conn.response().body == large);
        }
        assert!(origin.seen().iter().all(|(_, body)| body == large.as_bytes()));
        assert_eq!(origin.connections(), 1);
    });
}

#[test]
fn origins_learn_that_the_client_came_by_https() {
    with_transport(Transport::Tls, || {
        let origin = Origin::named("app");
        let served = serve_node(&format!("server(addr=\"{}\")", origin.addr));
        assert_eq!(Conn::new(&served.addr).get("/", "").status, 200);
        assert!(origin.seen()[0].0.contains("X-Forwarded-Proto: https\r\n"), "{}", origin.seen()[0].0);
        let served = serve_node("lb.first([server(\"a\")], sticky=\"srv\")");
        let told = Conn::new(&served.addr).get("/", "");
        assert!(told.header("set-cookie").is_some_and(|c| c.ends_with("; Secure")), "{told:?}");
    });
}

#[test]
fn a_tunnel_passes_both_ways() {
    with_transport(Transport::Tls, || {
        let switch =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi";
        let origin = Origin::new(move |_, _| Reply::Raw(switch.to_vec()));
        let served = serve_node(&format!("server(addr=\"{}\")", origin.addr));
        let mut conn = Conn::new(&served.addr);
        conn.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\nhi") {
            let mut piece = [0; 1024];
            let n = conn.stream.read(&mut piece).expect("more");
            assert!(n > 0);
            read.extend_from_slice(&piece[..n]);
        }
        assert!(read.starts_with(b"HTTP/1.1 101"));
    });
}

/// A check sees what a request would: an origin that another authority has signed for is down.
#[test]
fn health_checks_go_over_tls() {
    let authority = Authority::new("health");
    // As for the host that clients of the test ask for.
    let origin = listen(&authority.words(&["origin.test", "test"]));
    let other = Authority::new("other");
    for (ca, is) in [(&authority.file, 200), (&other.file, 503)] {
        let tls = format!("tls.client(ca=\"{ca}\", name=\"origin.test\")");
        let health = "health.http(\"/\", interval=20*ms, rise=1, fall=1, initial=\"down\")";
        let server = format!("server(addr=\"{}\", tls={tls})", origin.addr);
        let served = serve_node(&format!("lb.first([{server}], health={health}, panic=None)"));
        if is == 200 {
            until(|| common::get(&served.addr, "/").status == 200);
        } else {
            common::pause(100);
        }
        assert_eq!(common::get(&served.addr, "/").status, is);
    }
}

/// An origin that has chosen HTTP/1.1 is asked again once no connection is left that says so: it may be another by
/// then.
#[test]
fn who_chose_http_1_is_asked_again() {
    let authority = Authority::new("again");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let plain = server(&authority, &["origin.test"]);
    let origin = std::thread::spawn(move || {
        let mut both = (*plain).clone();
        both.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        [plain, Arc::new(both)].map(|config| {
            let (tcp, _) = listener.accept().expect("a client");
            let mut tls = StreamOwned::new(rustls::ServerConnection::new(config).expect("a server"), tcp);
            let _ = tls.read(&mut [0; 4096]).expect("a request, or a preface");
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            tls.write_all(answer).and_then(|()| tls.flush()).expect("it is taken");
            tls.conn.alpn_protocol().map(<[u8]>::to_vec)
        })
    });
    let tls = format!("tls.client(ca=\"{}\", name=\"origin.test\")", authority.file);
    let served = serve_node(&format!("server(addr=\"{addr}\", tls={tls})"));
    assert_eq!(common::get(&served.addr, "/").status, 200);
    common::get(&served.addr, "/");
    assert_eq!(origin.join().expect("two connections"), [None, Some(b"h2".to_vec())]);
}
