//! `respond`, `redirect`, `listen`, built-in servers.

use crate::common::{Conn, Origin, Reply, get, send, serve, serve_node, timed, transport};

#[test]
pub fn respond_answers_as_it_is_told() {
    let served = serve_node("respond(201, body=\"hi\", headers={\"x-a\": \"b\"})");
    let mut conn = Conn::new(&served.addr);
    let response = conn.get("/", "");
    assert_eq!((response.status, response.body.as_str(), response.header("x-a")), (201, "hi", Some("b")));
    let last = conn.get("/", "Connection: close\r\n");
    assert_eq!(last.header("connection"), Some("close"));
    assert!(conn.try_response().is_none());
}

#[test]
pub fn redirect_fills_its_template() {
    // A port belongs to its scheme.
    let (own, other) = if transport::is_tls() { ("https", "http") } else { ("http", "https") };
    let served = serve_node(&format!("redirect(\"{other}://{{host}}{{uri}}\", status=308)"));
    let response = send(&served.addr, "GET /a?b=c HTTP/1.1\r\nHost: x.example:80\r\n\r\n");
    let location = format!("{other}://x.example/a?b=c");
    assert_eq!((response.status, response.header("location")), (308, Some(&*location)));
    let served = serve_node(&format!("redirect(\"{own}://{{host}}/x{{uri}}\")"));
    let response = send(&served.addr, "GET /a HTTP/1.1\r\nHost: x.example:8080\r\n\r\n");
    let location = format!("{own}://x.example:8080/x/a");
    assert_eq!((response.status, response.header("location")), (302, Some(&*location)));
}

/// RFC 9110 §4.2.2: no URL has an empty host, and `*` is no path.
#[test]
pub fn a_redirect_lacks_no_part() {
    let served = serve_node("redirect(\"https://{host}{uri}\")");
    for request in ["GET /x HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\n\r\n"] {
        let response = send(&served.addr, request);
        assert_eq!((response.status, response.header("location")), (400, None), "{request}");
    }
    let whole = serve_node("redirect(\"https://example.test/\")");
    assert_eq!(
        send(&whole.addr, "GET /x HTTP/1.0\r\n\r\n").header("location"),
        Some("https://example.test/")
    );
}

#[test]
pub fn built_in_servers_say_their_name() {
    let served = serve_node("server(\"app\")");
    let mut conn = Conn::new(&served.addr);
    for _ in 0..3 {
        let response = conn.get("/", "");
        assert_eq!((response.status, response.body.as_str(), response.server()), (200, "app\n", "app"));
        assert_eq!(response.header("content-type"), Some("text/plain"));
    }
    conn.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(conn.response().status, 200);
    conn.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    let (ms, told) = timed(|| conn.response());
    assert!(told.status == 100 && ms < 500.0, "{ms}");
    conn.send("abc");
    assert_eq!(conn.response().status, 200);
    conn.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut head = [0; 4];
    std::io::Read::read_exact(&mut conn.stream, &mut head).expect("a head");
    assert_eq!(&head, b"HTTP");
}

#[test]
pub fn a_fleet_alone_is_built_in_servers() {
    let served = serve_node("lb.round_robin([fleet(3, lambda: server(\"app\"))])");
    let names: Vec<String> = (0..3).map(|_| get(&served.addr, "/").body).collect();
    assert_eq!(names, ["app\n"; 3]);
}

#[test]
pub fn a_model_without_an_end_of_its_own_answers_for_its_server() {
    let served = serve_node("server(\"app\", model=respond(418, body=\"tea\"))");
    let response = get(&served.addr, "/");
    assert_eq!((response.status, response.body.as_str()), (418, "tea"), "a fixed answer stays what it is");
    let served = serve_node("server(\"app\", model=0.1*ms)");
    assert_eq!(get(&served.addr, "/").server(), "app");
}

#[test]
pub fn several_listeners_share_nodes() {
    let served = serve(
        "a = respond(200, body=\"a\")\nlisten(\"127.0.0.1:0\", a, name=\"one\")\nlisten(\"127.0.0.1:0\", a, name=\"two\")",
    );
    assert_eq!(served.addrs.len(), 2);
    served.addrs.iter().for_each(|addr| assert_eq!(get(addr, "/").body, "a"));
}

/// What weir's own loops make of a request its own servers take.
#[test]
pub fn built_in_servers_take_what_comes_to_them() {
    let served = serve_node("lb.first([server(\"app\")])");
    // HTTP/2 names a host always.
    if !transport::is_http2() {
        assert_eq!(send(&served.addr, "GET / HTTP/1.0\r\n\r\n").body, "app\n", "no Host");
    }
    let hops = |n| format!("GET / HTTP/1.1\r\nHost: a\r\nVia: {}\r\n\r\n", vec!["1.1 weir"; n].join(", "));
    assert_eq!([send(&served.addr, hops(10)).status, send(&served.addr, hops(11)).status], [200, 508]);
}

/// RFC 9110 §15.5.22: 426 names the protocols that the server wants.
#[test]
pub fn a_refusal_without_upgrade_keeps_its_protocols() {
    let answer = "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n";
    let origin = Origin::new(move |_, _| Reply::Raw(answer.as_bytes().to_vec()));
    let served = serve_node(&format!("server(\"a\", addr=\"{}\")", origin.addr));
    let mut conn = Conn::new(&served.addr);
    let kept = conn.get("/", "");
    assert_eq!((kept.status, kept.header("upgrade")), (426, Some("websocket")));
    assert_eq!(kept.header("connection"), Some("upgrade"));
    let last = conn.get("/", "Connection: close\r\n");
    assert_eq!(
        (last.header("upgrade"), last.header("connection")),
        (Some("websocket"), Some("close, upgrade"))
    );
}
