//! Upgrades to origins that choose their version by ALPN: where those allow no extended CONNECT they go by HTTP/1.1, and
//! all else as before.

use crate::common::certificates::Authority;
use crate::common::transport::{Transport, with_transport};
use crate::common::{self, Conn, configs, serve, serve_node, until};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::LazyConfigAcceptor;
use weir_serve::Exposition;

/// A connection as the origin has met it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ObservedConnection {
    /// What was offered by ALPN, in order.
    offered: Vec<String>,
    /// What was chosen; `None`: nothing, and the handshake failed.
    chosen: Option<String>,
    /// Requests on it, by path.
    asked: Vec<String>,
    closed: bool,
}

/// An origin by TLS that echoes on what is upgraded at `/ws`, and answers 404 to other upgrades and 200 to other
/// requests, each with the version that it came by.
struct Origin {
    addr: String,
    authority: Authority,
    met: Arc<Mutex<Vec<ObservedConnection>>>,
}

/// What an origin does by HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByH2 {
    Answers,
    /// Says nothing, not even its settings.
    Mute,
    /// Allows extended CONNECT.
    Upgrades,
}

impl Origin {
    /// One that speaks these. `mute`: by HTTP/2 it says nothing, not even its settings.
    fn new(name: &str, speaks: &'static [&'static str], mute: bool) -> Origin {
        Origin::that(name, speaks, if mute { ByH2::Mute } else { ByH2::Answers })
    }

    fn that(name: &str, speaks: &'static [&'static str], does: ByH2) -> Origin {
        let authority = Authority::new(name);
        let mut config = (*configs::server(&authority, &["origin.test"])).clone();
        config.alpn_protocols = speaks.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let config = Arc::new(config);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let addr = listener.local_addr().expect("an address").to_string();
        let origin = Origin { addr, authority, met: Arc::default() };
        let met = origin.met.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((tcp, _)) = listener.accept().await {
                    tokio::spawn(connection(tcp, config.clone(), does, met.clone()));
                }
            });
        });
        origin
    }

    /// As the file says it; `more`: further arguments, each behind a comma.
    fn node(&self, more: &str) -> String {
        let ca = &self.authority.file;
        let tls = format!("tls.client(ca=\"{ca}\", name=\"origin.test\")");
        format!("server(\"a\", addr=\"{}\", tls={tls}{more})", self.addr)
    }

    fn met(&self) -> Vec<ObservedConnection> {
        self.met.lock().expect("no panic").clone()
    }

    /// What was offered on each connection, and chosen.
    fn alpn(&self) -> Vec<(String, Option<String>)> {
        self.met().into_iter().map(|met| (met.offered.join(" "), met.chosen)).collect()
    }

    /// Requests that were asked by this version.
    fn asked(&self, version: &str) -> usize {
        let of = |met: &ObservedConnection| met.chosen.as_deref() == Some(version);
        self.met().iter().filter(|met| of(met)).map(|met| met.asked.len()).sum()
    }
}

const BOTH: &str = "h2 http/1.1";
const H1: &str = "http/1.1";

fn chose(offered: &str, chosen: &str) -> (String, Option<String>) {
    (offered.to_owned(), Some(chosen.to_owned()))
}

async fn connection(
    tcp: tokio::net::TcpStream,
    config: Arc<rustls::ServerConfig>,
    does: ByH2,
    met: Arc<Mutex<Vec<ObservedConnection>>>,
) {
    let Ok(start) = LazyConfigAcceptor::new(Default::default(), tcp).await else { return };
    let hello = start.client_hello();
    let offered = hello.alpn().into_iter().flatten().map(|p| String::from_utf8_lossy(p).into_owned());
    let offered: Vec<String> = offered.collect();
    let at = {
        let mut met = met.lock().expect("no panic");
        met.push(ObservedConnection { offered, ..ObservedConnection::default() });
        met.len() - 1
    };
    let change = |how: &dyn Fn(&mut ObservedConnection)| how(&mut met.lock().expect("no panic")[at]);
    if let Ok(tls) = start.into_stream(config).await {
        let chosen = tls.get_ref().1.alpn_protocol().map(|p| String::from_utf8_lossy(p).into_owned());
        change(&|met| met.chosen.clone_from(&chosen));
        let asked = |path: &str| change(&|met| met.asked.push(path.to_owned()));
        match chosen.as_deref() {
            Some("h2") if does == ByH2::Mute => std::future::pending().await,
            Some("h2") => by_h2(tls, does, asked).await,
            _ => drop(by_h1(tls, asked).await),
        }
    }
    change(&|met| met.closed = true);
}

async fn by_h2(tls: impl AsyncRead + AsyncWrite + Unpin, does: ByH2, asked: impl Fn(&str)) {
    let mut builder = h2::server::Builder::new();
    if does == ByH2::Upgrades {
        builder.enable_connect_protocol();
    }
    let Ok(mut connection) = builder.handshake::<_, bytes::Bytes>(tls).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        asked(request.uri().path());
        let sent = respond.send_response(http::Response::new(()), false);
        if request.extensions().get::<h2::ext::Protocol>().is_some() {
            let (mut up, mut down) = (sent.expect("it may be sent"), request.into_body());
            tokio::spawn(async move {
                while let Some(Ok(piece)) = down.data().await {
                    let _ = down.flow_control().release_capacity(piece.len());
                    let _ = up.send_data(piece, false);
                }
            });
            continue;
        }
        let _ = sent.and_then(|mut stream| stream.send_data(bytes::Bytes::from_static(b"h2"), true));
    }
}

async fn by_h1(mut tls: impl AsyncRead + AsyncWrite + Unpin, asked: impl Fn(&str)) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tls.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        asked(&path);
        let upgrades = head.contains("\r\nupgrade: websocket\r\n");
        if upgrades && path == "/ws" {
            let switch =
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
            tls.write_all(switch.as_bytes()).await?;
            tls.flush().await?;
            loop {
                let mut piece = [0; 1024];
                let n = tls.read(&mut piece).await?;
                if n == 0 {
                    return Ok(());
                }
                tls.write_all(&piece[..n]).await?;
                tls.flush().await?;
            }
        }
        let status = if upgrades { "404 Not Found" } else { "200 OK" };
        tls.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nh1").as_bytes()).await?;
        tls.flush().await?;
    }
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

/// A tunnel through which something has gone there and back.
fn tunnel(addr: &str, fields: &str) -> Conn {
    let mut conn = Conn::new(addr);
    let answer = conn.get("/ws", &format!("{UPGRADE}{fields}"));
    assert_eq!((answer.status, answer.header("upgrade")), (101, Some("websocket")), "{answer:?}");
    echoes(&mut conn, "hello");
    conn
}

fn echoes(conn: &mut Conn, what: &str) {
    conn.send(what);
    let back = conn.take(what.len()).expect("it comes back");
    assert_eq!(String::from_utf8_lossy(&back), what);
}

/// A plain request is answered by this version.
fn plain(addr: &str, by: &str) {
    let answer = common::get(addr, "/");
    assert_eq!((answer.status, answer.body.as_str()), (200, by));
}

#[test]
fn an_upgrade_to_an_origin_of_both_versions_goes_by_http_1() {
    for transport in [Transport::Cleartext, Transport::Tls] {
        with_transport(transport, || {
            let origin = Origin::new("upgrade", &["h2", H1], false);
            let served = serve_node(&origin.node(", idle_timeout=60*s"));
            plain(&served.addr, "h2");
            let mut first = tunnel(&served.addr, "");
            plain(&served.addr, "h2");
            let mut second = tunnel(&served.addr, "");
            plain(&served.addr, "h2");
            echoes(&mut first, "still there");
            echoes(&mut second, "and here");
            assert_eq!(origin.alpn(), [chose(BOTH, "h2"), chose(H1, H1), chose(H1, H1)]);
            assert_eq!((origin.asked("h2"), origin.asked(H1)), (3, 2));
            let text = served.scrape(Exposition::OpenMetrics);
            for (state, n) in [("active", 2), ("idle", 1)] {
                let line = text.lines().find(|line| {
                    line.starts_with("weir_upstream_connections{") && line.contains(&format!("\"{state}\""))
                });
                assert!(line.is_some_and(|line| line.ends_with(&format!(" {n}"))), "{state}: {line:?}");
            }
            // Its end is the origin's connection's end, and of none of the others.
            drop(first);
            until(|| origin.met()[1].closed);
            assert!(!origin.met()[0].closed && !origin.met()[2].closed);
        });
    }
}

#[test]
fn several_at_once_find_their_way_to_a_cold_target() {
    let origin = Origin::new("cold", &["h2", H1], false);
    let served = serve_node(&origin.node(", idle_timeout=60*s"));
    let addr = &served.addr;
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| tunnel(addr, ""));
            scope.spawn(|| plain(addr, "h2"));
        }
    });
    assert_eq!((origin.asked("h2"), origin.asked(H1)), (6, 6));
    let count = |of| origin.alpn().into_iter().filter(|met| *met == of).count();
    assert_eq!((count(chose(BOTH, "h2")), count(chose(H1, H1))), (1, 6));
}

/// Nor does its own connection count as the one of HTTP/2 that others wait for.
#[test]
fn an_upgrade_does_not_wait_for_a_connection_of_http_2() {
    let origin = Origin::new("mute", &["h2", H1], true);
    let served = serve_node(&origin.node(", connect_timeout=20*s"));
    let mut waiting = Conn::new(&served.addr);
    waiting.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| origin.alpn() == [chose(BOTH, "h2")]);
    tunnel(&served.addr, "");
    assert_eq!(origin.alpn(), [chose(BOTH, "h2"), chose(H1, H1)]);
}

#[test]
fn a_connection_on_which_an_upgrade_was_refused_serves_the_next_upgrade_alone() {
    let origin = Origin::new("refused", &["h2", H1], false);
    let served = serve_node(&origin.node(", idle_timeout=60*s"));
    let mut client = Conn::new(&served.addr);
    assert_eq!(client.get("/none", UPGRADE).status, 404);
    assert_eq!(client.get("/", "").body, "h2");
    assert_eq!(client.get("/", "").body, "h2");
    assert_eq!(client.get("/none", UPGRADE).status, 404);
    tunnel(&served.addr, "");
    plain(&served.addr, "h2");
    assert_eq!(origin.alpn(), [chose(H1, H1), chose(BOTH, "h2")]);
    assert_eq!((origin.asked("h2"), origin.asked(H1)), (3, 3));
}

#[test]
fn a_connection_on_which_an_upgrade_was_refused_is_not_kept_for_ever() {
    let origin = Origin::new("swept", &["h2", H1], false);
    let served = serve_node(&origin.node(", idle_timeout=100*ms"));
    assert_eq!(common::get_with(&served.addr, "/none", UPGRADE).status, 404);
    until(|| origin.met()[0].closed);
    tunnel(&served.addr, "");
    assert_eq!(origin.alpn(), [chose(H1, H1), chose(H1, H1)]);
}

#[test]
fn an_origin_that_is_known_to_choose_http_1_stays_so() {
    let origin = Origin::new("chosen", &[H1], false);
    let served = serve_node(&origin.node(", idle_timeout=60*s"));
    plain(&served.addr, "h1");
    let _tunnel = tunnel(&served.addr, "");
    plain(&served.addr, "h1");
    // The first was used again. The next asks anew, since what an origin chooses may change.
    assert_eq!(origin.alpn(), [chose(BOTH, H1), chose(BOTH, H1)]);
}

/// That it took HTTP/1.1 where nothing else was offered is no choice.
#[test]
fn an_upgrade_says_nothing_of_what_an_origin_chooses() {
    let origin = Origin::new("unsaid", &[H1], false);
    let served = serve_node(&origin.node(", idle_timeout=60*s"));
    let _tunnel = tunnel(&served.addr, "");
    plain(&served.addr, "h1");
    plain(&served.addr, "h1");
    assert_eq!(origin.alpn(), [chose(H1, H1), chose(BOTH, H1)]);
}

#[test]
fn by_http_1_alone_all_is_as_it_was() {
    let origin = Origin::new("h1", &["h2", H1], false);
    let served = serve_node(&origin.node(", protocol=\"h1\", idle_timeout=60*s"));
    plain(&served.addr, "h1");
    let _tunnel = tunnel(&served.addr, "");
    plain(&served.addr, "h1");
    assert_eq!(origin.alpn(), [chose(H1, H1), chose(H1, H1)]);
}

#[test]
fn where_it_is_allowed_an_upgrade_goes_on_an_open_connection_of_http_2() {
    let origin = Origin::that("extended", &["h2", H1], ByH2::Upgrades);
    let served = serve_node(&origin.node(", idle_timeout=60*s"));
    // None is made for it.
    let _first = tunnel(&served.addr, "");
    plain(&served.addr, "h2");
    let mut second = tunnel(&served.addr, "");
    plain(&served.addr, "h2");
    echoes(&mut second, "still there");
    assert_eq!(origin.alpn(), [chose(H1, H1), chose(BOTH, "h2")]);
    assert_eq!((origin.asked("h2"), origin.asked(H1)), (3, 1));
}

#[test]
fn where_only_http_2_is_spoken_and_allows_it_an_upgrade_goes_by_it() {
    for protocol in ["auto", "h2"] {
        let origin = Origin::that("extended-h2", &["h2"], ByH2::Upgrades);
        let served = serve_node(&origin.node(&format!(", protocol=\"{protocol}\", idle_timeout=60*s")));
        let _first = tunnel(&served.addr, "");
        let _second = tunnel(&served.addr, "");
        plain(&served.addr, "h2");
        let made = origin.alpn().into_iter().filter(|(_, chosen)| chosen.is_some()).count();
        assert_eq!((made, origin.asked("h2")), (1, 3));
    }
}

/// It is neither tried again nor held against the target: the file says so, or the origin speaks nothing else.
#[test]
fn where_only_http_2_is_spoken_an_upgrade_is_501() {
    for (speaks, protocol) in [(&["h2", H1][..], "h2"), (&["h2"], "auto")] {
        let origin = Origin::new("h2", speaks, false);
        let server = origin.node(&format!(", protocol=\"{protocol}\""));
        let lb = format!("lb.first([{server}], eject=eject(consecutive=1, max_percent=100))");
        let served = serve_node(&format!("retry(3, {lb})"));
        for _ in 0..2 {
            assert_eq!(common::get_with(&served.addr, "/ws", UPGRADE).status, 501);
            plain(&served.addr, "h2");
        }
        let tries = origin.alpn().iter().filter(|(_, chosen)| chosen.is_none()).count();
        assert_eq!(tries, if protocol == "auto" { 2 } else { 0 });
        assert_eq!(origin.asked("h2"), 2);
    }
}

#[test]
fn limits_checks_and_cookies_hold_for_upgrades() {
    let [a, b] = ["limit-a", "limit-b"].map(|name| Origin::new(name, &["h2", H1], false));
    let nodes = [&a, &b].map(|origin| origin.node(", idle_timeout=60*s"));
    let health = "health.http(\"/up\", interval=500*ms, rise=1, fall=1, initial=\"down\")";
    let [first, second] = &nodes;
    let served = serve(&format!(
        "listen(\"127.0.0.1:0\", lb.round_robin([{first}, {}], sticky=\"srv\", max_connections=1, health={health}))",
        second.replace("\"a\"", "\"b\"")
    ));
    until(|| common::get(&served.addr, "/").status == 200);
    until(|| [&a, &b].iter().all(|origin| origin.met().iter().any(|met| met.asked == ["/up"])));
    let cookie = common::get(&served.addr, "/").header("set-cookie").expect("a cookie").to_owned();
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().expect("a value"));
    let at = |origin: &Origin| origin.met().iter().filter(|met| met.asked == ["/ws"]).count();
    for n in 1..=3 {
        // What was idle makes room, of either version.
        drop(tunnel(&served.addr, &cookie));
        until(|| [at(&a), at(&b)].contains(&n) && [at(&a), at(&b)].contains(&0));
        until(|| common::get_with(&served.addr, "/", &cookie).body == "h2");
    }
}

/// Elsewhere if it may be tried again, and by the name of what is wrong.
#[test]
fn what_fails_before_an_upgrade_is_sent_fails_as_for_others() {
    let [good, strange] = ["good", "strange"].map(|name| Origin::new(name, &["h2", H1], false));
    let untrusted = strange.node("").replace(&strange.authority.file, &good.authority.file);
    let dead = "server(\"dead\", addr=\"127.0.0.1:1\", tls=tls.client(name=\"origin.test\"))";
    for broken in [&untrusted, dead] {
        let name = broken.split('"').nth(1).expect("a name");
        let first = broken.replace(&format!("\"{name}\""), "\"first\"");
        let served = serve_node(&format!("retry(2, lb.first([{first}, {}]))", good.node("")));
        tunnel(&served.addr, "");
        let text = served.scrape(Exposition::OpenMetrics);
        let failed = text.lines().find(|line| {
            let words = ["weir_attempts_total{", "target=\"first\"", "outcome=\"connect_failed\""];
            words.iter().all(|word| line.contains(word))
        });
        assert!(failed.is_some_and(|line| line.ends_with(" 1")), "{failed:?}\n{text}");
        let alone = serve_node(broken);
        assert_eq!(common::get_with(&alone.addr, "/ws", UPGRADE).status, 503);
    }
}

#[test]
fn a_tunnel_ends_with_the_drain_of_a_target_that_is_removed() {
    let [gone, stays] = ["gone", "stays"].map(|name| Origin::new(name, &["h2", H1], false));
    let text = |nodes: &str| {
        format!(
            "listen(\"127.0.0.1:0\", lb.first([{nodes}], name=\"lb\"), http=http(drain_timeout=\"200ms\"))"
        )
    };
    let served = serve(&text(&format!("{}, {}", gone.node(""), stays.node(""))));
    let mut cut = tunnel(&served.addr, "");
    assert_eq!(common::get_with(&served.addr, "/none", UPGRADE).status, 404);
    served.reload(&text(&stays.node("")));
    assert_eq!(cut.take(1), None);
    until(|| gone.met().iter().all(|met| met.closed));
    tunnel(&served.addr, "");
    assert_eq!(stays.alpn(), [chose(H1, H1)]);
}
