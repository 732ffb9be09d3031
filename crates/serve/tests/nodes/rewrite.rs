//! `rewrite` with real traffic.

use crate::common::{Origin, Reply, get, get_with, serve_node};

#[test]
pub fn requests_change_on_their_way() {
    let origin = Origin::named("x");
    let served = serve_node(&format!(
        "rewrite(rewrite(server(\"a\", addr=\"{}\"), set={{\"x-b\": \"{{uri}}\"}}, remove=[\"x-c\"]), path=(\"/api/\", \"/\"), \
         set={{\"x-a\": \"{{host}} {{client}}\", \"x-c\": \"1\"}}, remove=[\"x-gone\"])",
        origin.addr
    ));
    assert_eq!(get_with(&served.addr, "/api/v1?q=/api/", "X-Gone: 1\r\nX-B: 2\r\nX-Stays: 3\r\n").body, "x");
    let head = origin.seen()[0].0.to_ascii_lowercase();
    assert!(head.starts_with("get /v1?q=/api/ http/1.1\r\n"), "{head}");
    assert!(head.contains("x-a: test 127.0.0.1\r\n"), "{head}");
    assert!(head.contains("x-b: /v1?q=/api/\r\n") && !head.contains("x-b: 2"), "{head}");
    assert!(!head.contains("x-gone") && !head.contains("x-c:") && head.contains("x-stays: 3"), "{head}");
    get(&served.addr, "/apis");
    assert!(origin.seen()[1].0.starts_with("GET /apis "));
}

#[test]
pub fn responses_change_on_their_way() {
    let raw = b"HTTP/1.1 200 OK\r\nServer: secret\r\nX-A: 1\r\nX-B: 2\r\nContent-Length: 1\r\n\r\nx".to_vec();
    let origin = Origin::new(move |_, _| Reply::Raw(raw.clone()));
    let inner = format!(
        "rewrite(server(\"a\", addr=\"{}\"), response_set={{\"x-c\": \"inner\", \"x-b\": \"3\"}})",
        origin.addr
    );
    let served = serve_node(&format!(
        "rewrite({inner}, response_remove=[\"server\", \"x-c\"], response_set={{\"x-a\": \"{{uri}}\"}})"
    ));
    let response = get(&served.addr, "/p?q");
    assert_eq!(response.header("server"), None);
    assert_eq!(
        (response.header("x-a"), response.header("x-b"), response.header("x-c")),
        (Some("/p?q"), Some("3"), None)
    );
    let served = serve_node("rewrite(respond(200, headers={\"x-a\": \"1\"}), response_set={\"x-a\": \"2\"})");
    assert_eq!(get(&served.addr, "/").header("x-a"), Some("2"));
}

/// Routes and keys behind see the new request.
#[test]
pub fn what_is_behind_sees_it() {
    let served = serve_node(
        "rewrite(route([(when(path=\"/v1\", header=(\"x-tier\", \"gold\")), respond(200, body=\"new\"))], \
         otherwise=respond(200, body=\"old\")), path=(\"/api/\", \"/\"), set={\"x-tier\": \"gold\"})",
    );
    assert_eq!(
        (get(&served.addr, "/api/v1").body, get(&served.addr, "/api/v2").body),
        ("new".into(), "old".into())
    );
    let served = serve_node(
        "rewrite(limit.rate(respond(200), 0.001, burst=1, key=key.header(\"x-user\")), set={\"x-user\": \"all\"})",
    );
    assert_eq!(get_with(&served.addr, "/", "x-user: a\r\n").status, 200);
    assert_eq!(get_with(&served.addr, "/", "x-user: b\r\n").status, 429);
}

/// A prefix fits as it does in `when`: a client cannot choose by the way it writes a path whether it is rewritten.
#[test]
pub fn encoded_letters_are_letters() {
    let origin = Origin::named("x");
    let served = serve_node(&format!(
        "rewrite(server(\"a\", addr=\"{}\"), path=(\"/api/\", \"/v1/\"), response_set={{\"x-came\": \"{{uri}}\"}})",
        origin.addr
    ));
    assert_eq!(get(&served.addr, "/%61p%69/%61?b").header("x-came"), Some("/%61p%69/%61?b"));
    get(&served.addr, "/api%2Fx");
    let seen: Vec<String> = origin.seen().into_iter().map(|(head, _)| head).collect();
    assert!(seen[0].starts_with("GET /v1/%61?b ") && seen[1].starts_with("GET /api%2Fx "), "{seen:?}");
}

/// Fields that weir would add itself.
#[test]
pub fn answers_of_weirs_own_change_too() {
    let dates = |text: &str| {
        let response = get(&serve_node(text).addr, "/");
        let dates = response.headers.iter().filter(|(name, _)| name == "date").count();
        (dates, response.header("content-type").is_some())
    };
    assert_eq!(dates("respond(200, body=\"x\", headers={\"Date\": \"q\"})"), (1, true));
    assert_eq!(dates("rewrite(respond(200, body=\"x\"), response_set={\"Date\": \"q\"})"), (1, true));
    assert_eq!(dates("rewrite(respond(200, body=\"x\"), response_remove=[\"Content-Type\"])"), (1, false));
}
