//! Targets and paths, served and simulated: what matches what, what passes as it came, what a file may not say.

use crate::shared::common::{Scratch, run, run_with_input};
use crate::shared::serve::{Origin, Weir, reply};

/// Patterns as a file may write them, and what each answers.
const RULES: [(&str, &str); 3] = [("/%7Ez", "tilde"), ("/caf%c3%a9*", "coffee"), ("/a%2Fb", "slash")];

/// Paths as clients write them, and which rule is theirs; "": none.
const PATHS: [(&str, &str); 10] = [
    ("/~z", "tilde"),
    ("/%7Ez", "tilde"),
    ("/%7ez", "tilde"),
    ("/%7Ezz", ""),
    ("/caf%C3%A9", "coffee"),
    ("/caf%c3%a9/x", "coffee"),
    ("/c%61f%C3%a9", "coffee"),
    ("/cafe", ""),
    ("/a%2fb", "slash"),
    ("/a/b", ""),
];

fn rules(node: impl Fn(&str) -> String) -> String {
    let rules: Vec<String> =
        RULES.iter().map(|(pattern, name)| format!("(when(path=\"{pattern}\"), {})", node(name))).collect();
    format!("[{}]", rules.join(", "))
}

#[test]
fn a_pattern_matches_however_a_path_is_written() {
    // `%2f` in a path is refused where it could mean `/`, unless the file says otherwise.
    let respond = |name: &str| format!("respond(200, body=\"{name}\")");
    let node = format!("route({}, otherwise=respond(404))", rules(respond));
    let weir = Weir::set("paths=\"raw\"", &node);
    for (path, name) in PATHS {
        let answer = weir.get(path);
        let got = if answer.status() == 404 { String::new() } else { answer.body_text() };
        assert_eq!(got, name, "{path}");
    }
}

#[test]
fn the_simulator_matches_as_it_is_served() {
    for (path, name) in PATHS {
        let server = |name: &str| format!("server(\"{name}\", model=1*ms)");
        let ran = run_with_input(
            &["sim", "-", "--output", "json", "--replications", "2"],
            &format!(
                "app = route({})\n\
                 mix = traffic.mix(traffic.poisson(every=10*ms), [(1, request(path=\"{path}\"))])\n\
                 scenario(\"s\", app, mix, requests=20, window=\"all\")\n",
                rules(server)
            ),
        );
        let result: serde_json::Value = serde_json::from_str(ran.succeeds()).expect("JSON");
        let failed = ran.out.contains("\"no_route\"");
        assert_eq!(failed, name.is_empty(), "{path}: {}", result["scenarios"][0]["errors"]);
    }
}

/// The `*` of OPTIONS is no path: `/*` does not match it, and `check` says no more than that.
#[test]
fn options_for_the_server_passes_a_rule_for_all_paths() {
    let rule = |condition: &str, body: &str| format!("(when({condition}), respond(200, body=\"{body}\"))");
    let rules = [rule("path=\"/*\"", "path"), rule("host=\"h\"", "host"), rule("path=\"*\"", "all")];
    let weir = Weir::before(&format!("route([{}])", rules.join(", ")));
    let ask = |target: &str, host: &str| {
        let request = format!("OPTIONS {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        weir.ask(&request).expect("an answer").body_text()
    };
    assert_eq!([ask("/", "h"), ask("*", "h"), ask("*", "g")], ["path", "host", "all"]);
}

/// What browsers send unescaped (WHATWG URL), and what is never allowed.
#[test]
fn targets_pass_as_they_came_or_not_at_all() {
    let origin = Origin::answering(|request| reply(request.target()));
    let mut weir = Weir::before(&format!("server(\"o\", addr=\"{}\")", origin.addr()));
    for target in ["/a|b^c[d]", "/?a|b^c[d]{e}\\`", "/%7Ea%2fb?%7e", "/a;b=1,2'(3)!$*?/?", "/a//b/../c/."] {
        assert_eq!(weir.get(target).body_text(), target);
    }
    assert_eq!(weir.get("http://h?{q}").body_text(), "/?{q}");
    assert_eq!(weir.ask("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").expect("an answer").body_text(), "*");
    origin.take_arrivals();
    for target in [
        "", "?x", "#x", "/a#b", "a", "*", "/{a}", "/a`b", "/a\\b", "/a\"b", "/<a>", "/\u{7f}", "/é", "/?é",
        "/?\"", "/?#",
    ] {
        assert_eq!(weir.get(target).status(), 400, "{target:?}");
    }
    assert_eq!(origin.take_arrivals(), Vec::<String>::new());
    origin.read_only_http();
    weir.assert_alive();
}

/// A length in a 1xx, an expectation in any case, a trailer that resembles a length: all of them pass, and harm
/// nothing.
#[test]
fn what_other_proxies_take_is_taken() {
    let origin = Origin::new(|peer| {
        loop {
            let mut request = peer.head()?;
            if request.target() == "/switch" {
                peer.send(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                     Content-Length: 0\r\n\r\nhello",
                )?;
                return peer.wait_for_end();
            }
            peer.send("HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\nTransfer-Encoding: gzip\r\n\r\n")?;
            if request.field("expect").is_some() {
                peer.send("HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n")?;
            }
            peer.body(&mut request)?;
            let trailers = format!("{:?} {}", request.trailers, request.body_text());
            peer.send(reply(&trailers))?;
        }
    });
    let mut weir = Weir::before(&format!("server(\"o\", addr=\"{}\")", origin.addr()));
    let mut client = weir.client();
    let answer = client
        .ask("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nContent_Length: 5\r\nX-T: 1\r\n\r\n")
        .expect("an answer");
    assert_eq!((answer.status(), answer.interim.as_slice()), (200, &[103][..]));
    assert_eq!(answer.body_text(), "[(\"x-t\", \"1\")] hi");
    for expect in ["100-continue", "100-Continue", "100-CONTINUE"] {
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nExpect: {expect}\r\nContent-Length: 2\r\n\r\n");
        client.send(head).expect("it is sent");
        client.send("hi").expect("it is sent");
        let answer = client.response("POST").expect("an answer");
        assert_eq!((answer.status(), answer.interim.as_slice()), (200, &[103, 100][..]), "{expect}");
    }
    let switched =
        client.ask("GET /switch HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    let switched = switched.expect("an answer");
    assert_eq!((switched.status(), switched.field("content-length")), (101, None));
    assert_eq!(client.some().expect("the other protocol"), b"hello");
    origin.read_only_http();
    weir.assert_alive();
}

#[test]
fn paths_that_no_request_has_are_errors() {
    for (source, place, remedy) in [
        ("x = 1\ny = when(path=\"/é\")\n", "<stdin>:2:5", "/%C3%A9"),
        ("y = when(path=\"/%zz\")\n", "<stdin>:1:5", "/%25zz"),
        ("y = when(path=\"/a%4*\")\n", "<stdin>:1:5", "\"/a*\""),
        ("y = when(path=\"/a/../b\")\n", "<stdin>:1:5", "\"/b\""),
        ("y = when(path=\"/./\")\n", "<stdin>:1:5", "\"/\""),
        ("y = when(path=\"a\")\n", "<stdin>:1:5", "\"/a\""),
        ("y = rewrite(server(), path=(\"/a\", \"/é\"))\n", "<stdin>:1:5", "/%C3%A9"),
    ] {
        let ran = run_with_input(&["check", "-"], source);
        ran.fails(2, place);
        assert!(ran.err.contains(remedy), "{remedy}: {}", ran.err);
    }
}

#[test]
fn a_sticky_key_is_looked_for_beside_its_file() {
    let scratch = Scratch::new("sticky-key");
    let source = "x = 1\nlb.random([server()], sticky=\"srv\", sticky_key=\"srv.key\")\n";
    let path = scratch.file("topology.star", source);
    run(&["check", &path]).fails(2, "topology.star:2:1");
    scratch.file("srv.key", "too short");
    let ran = run(&["check", &path]);
    ran.fails(2, "has 9 bytes, but a key needs at least 16");
    assert!(ran.err.contains("/dev/urandom"), "{}", ran.err);
    scratch.file("srv.key", "long enough to be a key");
    run(&["check", &path]).succeeds();
    let plan = run(&["plan", &path]);
    assert!(plan.succeeds().contains("srv.key"), "{}", plan.out);
}
