//! A reload says what it has changed: every kind of change has its word (`docs/spec/operating.md#reload-result`).

use crate::support::serve_whole;
use weir_serve::Options;

/// A canary beside a pool, behind routes.
const BEFORE: &str = r#"
apps = lb.p2c([server("a", addr="127.0.0.1:9"), server("b", addr="127.0.0.1:10")], name="apps", health=health.tcp(interval=60*s))
canary = lb.random([server("c", addr="127.0.0.1:11")], name="canary")
site = queue(timeout(2*s, split([(95, apps), (5, canary)])), 8, name="line")
listen("127.0.0.1:0", route([(when(path="/a*"), site)], otherwise=respond(200, "x")), name="web")
"#;

#[test]
fn every_kind_of_change_has_its_word() {
    let mut wrong = Vec::new();
    for (from, to, words) in [
        ("(95, apps), (5, canary)", "(5, apps), (95, canary)", "shares of site/split"),
        ("/a*", "/b*", "routes"),
        ("lb.p2c(", "lb.least_conn(", "policy of apps"),
        ("interval=60*s", "interval=50*s", "health of apps"),
        ("name=\"canary\"", "name=\"canary\", max_in_flight=3", "limits of canary"),
        ("name=\"canary\"", "name=\"canary\", panic=0.1", "settings of canary"),
        ("name=\"canary\"", "name=\"canary\", eject=eject(consecutive=5)", "ejection of canary"),
        (" 8, name", " 9, name", "settings of line"),
        ("timeout(2*s,", "timeout(3*s,", "settings of site/timeout"),
        ("respond(200, \"x\")", "respond(200, \"y\")", "settings of respond"),
        ("127.0.0.1:11\"", "127.0.0.1:11\", connect_timeout=3*s", "settings of c"),
        (
            "timeout(2*s, split([(95, apps), (5, canary)]))",
            "split([(95, apps), (5, canary)])",
            "way of line, +0 -1 node",
        ),
        (
            "server(\"a\", addr=\"127.0.0.1:9\"), server(\"b\", addr=\"127.0.0.1:10\")",
            "server(\"b\", addr=\"127.0.0.1:10\"), server(\"a\", addr=\"127.0.0.1:9\")",
            "order of apps",
        ),
        (
            "server(\"c\", addr=\"127.0.0.1:11\")",
            "weight(2, server(\"c\", addr=\"127.0.0.1:11\"))",
            "1 weight",
        ),
        ("server(\"c\", addr=\"127.0.0.1:11\")", "server(\"c\", addr=\"127.0.0.1:12\")", "+1 -1 targets"),
        ("name=\"web\"", "name=\"web\", http=http(idle_timeout=9*s)", "listener web: http"),
    ] {
        assert!(BEFORE.contains(from), "{from}");
        let x = serve_whole(BEFORE, Options { loops: Some(1), quiet: true, ..Options::default() });
        let said = x.reload(&BEFORE.replace(from, to)).expect("it can be served");
        if said != format!("generation 1: {words}") {
            wrong.push(format!("{from} -> {to}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_same_topology_is_said_to_be_the_same() {
    let x = serve_whole(BEFORE, Options { loops: Some(1), quiet: true, ..Options::default() });
    let changed = BEFORE.replace("2*s", "3*s");
    assert!(x.reload(&changed).is_ok());
    let moved = format!("\n{changed}");
    assert_eq!(x.reload(&moved), Ok("generation 2: the same topology".to_owned()));
    assert_eq!(x.reload(&moved), Ok("generation 2: nothing has changed".to_owned()));
}
