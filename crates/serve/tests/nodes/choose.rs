//! `route` and `split`.

use crate::common::{Conn, get, get_with, send, serve_node, transport};

fn respond_with(name: &str) -> String {
    format!("respond(200, body=\"{name}\")")
}

fn raw(addr: &str, request: &str) -> (u16, String) {
    let response = send(addr, request);
    (response.status, response.body)
}

#[test]
pub fn the_first_rule_that_matches_decides() {
    let served = serve_node(&format!(
        "route([(when(path=\"/v1/*\", method=[\"GET\", \"PUT\"]), {}), (when(host=\"*.example.com\"), {}), \
         (when(header=(\"x-tier\", \"gold*\")), {}), (when(client=\"127.0.0.0/8\", path=\"/me\"), {}), \
         (when(client=\"10.0.0.0/8\"), {})], otherwise={})",
        respond_with("path"),
        respond_with("host"),
        respond_with("header"),
        respond_with("client"),
        respond_with("ten"),
        respond_with("rest")
    ));
    let a = &served.addr;
    assert_eq!(get(a, "/v1/x?y=z").body, "path");
    assert_eq!(get(a, "/%761/x").body, "path", "unreserved characters are decoded");
    assert_eq!(raw(a, "POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").1, "rest");
    assert_eq!(raw(a, "GET / HTTP/1.1\r\nHost: A.Example.COM.:8080\r\n\r\n").1, "host");
    assert_eq!(raw(a, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").1, "rest");
    assert_eq!(get_with(a, "/", "X-Tier: silver\r\nX-TIER: golden\r\n").body, "header");
    assert_eq!(get(a, "/me").body, "client");
    assert_eq!(get(a, "/me?x").body, "client");
    // HTTP/2 names a host always.
    if !transport::is_http2() {
        assert_eq!(raw(a, "GET / HTTP/1.0\r\n\r\n").1, "rest");
    }
}

#[test]
pub fn no_rule_is_404_and_two_meanings_are_400() {
    let served = serve_node(&format!(
        "route([(when(path=\"/admin/*\"), {}), (when(path=\"/a*\"), {})])",
        respond_with("x"),
        respond_with("y")
    ));
    let a = &served.addr;
    assert_eq!(get(a, "/b").status, 404);
    for path in ["/a/../admin/x", "/abc/..%2fadmin/x", "//admin/x", "/a\\..\\admin/x", "/a/%2e%2e/b"] {
        assert_eq!(get(a, path).status, 400, "{path}");
    }
    assert_eq!(get(a, "/a/./b").body, "y", "both mean the same way");
    let served = serve_node(&format!(
        "route([(when(path=\"/admin/*\"), {}), (when(path=\"/a*\"), {})]), http=http(paths=\"raw\")",
        respond_with("x"),
        respond_with("y")
    ));
    assert_eq!(get(&served.addr, "/a/../admin/x").body, "y");
}

#[test]
pub fn split_has_shares() {
    let served = serve_node(&format!("split([(1, {}), (3, {})])", respond_with("a"), respond_with("b")));
    let mut conn = Conn::new(&served.addr);
    let n = 2000;
    let a = (0..n).filter(|_| conn.get("/", "").body == "a").count() as f64 / f64::from(n);
    assert!((a - 0.25).abs() < 5.0 * (0.1875f64 / f64::from(n)).sqrt(), "{a}");
}

#[test]
pub fn split_by_key_keeps_its_clients() {
    let served = serve_node(&format!(
        "split([(1, {}), (1, {})], key=key.header(\"x-user\"))",
        respond_with("a"),
        respond_with("b")
    ));
    let mut conn = Conn::new(&served.addr);
    let mut seen = std::collections::BTreeSet::new();
    for user in 0..50 {
        let field = format!("x-user: {user}\r\n");
        let first = conn.get("/", &field).body;
        assert!((0..3).all(|_| conn.get("/", &field).body == first));
        seen.insert(first);
    }
    assert_eq!(seen.len(), 2);
    let cookie = serve_node(&format!(
        "split([(1, {}), (1, {})], key=key.cookie(\"u\"))",
        respond_with("a"),
        respond_with("b")
    ));
    let first = get_with(&cookie.addr, "/", "Cookie: a=b; u=77\r\n").body;
    assert!((0..20).all(|_| get_with(&cookie.addr, "/", "Cookie: u=77\r\n").body == first));
}

#[test]
pub fn what_goes_no_further_decides_nothing() {
    let rules = [
        "x-forwarded-proto",
        "x-forwarded-host",
        "x-real-ip",
        "forwarded",
        "x-forwarded-client-cert",
        "proxy",
        "traceparent",
        "te",
    ]
    .map(|name| format!("(when(header=(\"{name}\", \"*\")), respond(200, body=\"{name}\"))"))
    .join(", ");
    let node = format!("route([{rules}], otherwise=respond(200, body=\"rest\"))");
    let served = serve_node(&node);
    let forged = [
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: admin.example",
        "X-Real-IP: 10.0.0.1",
        "Forwarded: for=10.0.0.1;proto=https",
        "X-Forwarded-Client-Cert: Hash=1",
        "Proxy: http://a",
        "Traceparent: nothing of the kind",
    ];
    for field in forged {
        assert_eq!(get_with(&served.addr, "/", &format!("{field}\r\n")).body, "rest", "{field}");
    }
    assert_eq!(get_with(&served.addr, "/", "TE: trailers\r\n").body, "te");
    let trusts = serve_node(&format!("{node}, http=http(trusted=[\"127.0.0.1\"])"));
    assert_eq!(get_with(&trusts.addr, "/", "X-Real-IP: 10.0.0.1\r\n").body, "x-real-ip");

    let key = "key=key.header(\"x-forwarded-for\")";
    let limited = serve_node(&format!("limit.rate(respond(200), 0.001, burst=1, {key})"));
    let statuses: Vec<u16> = (0..3)
        .map(|n| get_with(&limited.addr, "/", &format!("X-Forwarded-For: 198.51.100.{n}\r\n")).status)
        .collect();
    assert_eq!(statuses, [200, 429, 429]);
}

#[test]
pub fn what_connection_names_decides_nothing() {
    let served = serve_node(
        "route([(when(header=(\"x-tier\", \"gold\")), respond(200, body=\"gold\")), \
         (when(header=(\"host\", \"b\")), respond(200, body=\"other host\")), \
         (when(header=(\"upgrade\", \"*\")), respond(200, body=\"upgrade\"))], \
         otherwise=respond(200, body=\"rest\"))",
    );
    let a = &served.addr;
    assert_eq!(get_with(a, "/", "X-Tier: gold\r\n").body, "gold");
    assert_eq!(get_with(a, "/", "X-Tier: gold\r\nConnection: x-tier\r\n").body, "rest");
    assert_eq!(get_with(a, "/", "Upgrade: websocket\r\nConnection: upgrade\r\n").body, "upgrade");
    assert_eq!(get_with(a, "/", "Upgrade: other\r\nConnection: upgrade\r\n").body, "rest");
    let absolute = "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n";
    assert_eq!(raw(a, absolute).1, "rest", "the authority of the target is the host");
}
