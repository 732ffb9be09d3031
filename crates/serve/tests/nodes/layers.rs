//! Listeners behind others: each is a hop of its own, reached over its address.

use crate::common::transport::is_http2;
use crate::common::{
    Conn, Origin, Reply, RunningBalancer, get, get_with, near, pause, serve, serve_with, timed, until,
};

/// The outermost listener: the last of the file.
fn outer(served: &RunningBalancer) -> &str {
    served.addrs.last().expect("a listener")
}

/// The values of a field that an origin was sent, request by request.
fn field(origin: &Origin, name: &str) -> Vec<String> {
    let prefix = format!("{name}: ");
    let of = |head: &str| {
        let all = head
            .lines()
            .filter_map(|line| line.to_ascii_lowercase().strip_prefix(&prefix).map(str::to_owned));
        all.collect::<Vec<_>>().join(", ")
    };
    origin.seen().iter().map(|(head, _)| of(head)).collect()
}

/// Requests go through both over sockets: two hops in Via, and each address answers by itself.
#[test]
pub fn two_layers_are_two_hops() {
    for inner in ["", ", http=http(versions=[\"h2\"])"] {
        let origin = Origin::named("o");
        let served = serve(&format!(
            "inner = listen(\"127.0.0.1:0\", server(\"o\", addr=\"{}\"){inner}, name=\"inner\")\n\
             listen(\"127.0.0.1:0\", lb.first([inner]), name=\"outer\")",
            origin.addr
        ));
        let mut conn = Conn::new(outer(&served));
        for _ in 0..3 {
            assert_eq!(conn.get("/a?b", "").body, "o");
        }
        let hops: Vec<usize> = field(&origin, "via").iter().map(|via| via.split(", ").count()).collect();
        assert_eq!(hops, [2, 2, 2], "{inner}");
        if inner.is_empty() {
            assert_eq!(get(&served.addrs[0], "/").body, "o");
        }
    }
}

/// What fails behind an inner listener is an answer for the outer one, which tries again by its status, and ejects.
#[test]
pub fn what_fails_behind_is_an_answer() {
    let dead = "server(\"dead\", addr=\"127.0.0.1:1\")";
    let slow = "timeout(30*ms, server(\"slow\", model=9*s))";
    for (node, status) in [
        (dead, 503),
        (slow, 504),
        ("flaky(1.0, server(), kind=\"reset\")", 502),
        ("respond(507)", 507),
        ("respond(404)", 404),
        ("limit.rate(server(), 0.001, burst=1)", 429),
        ("route([(when(path=\"/b\"), server())])", 404),
    ] {
        let text = |on: &str| {
            format!(
                "bad = listen(\"127.0.0.1:0\", {node}, name=\"bad\")\n\
                 good = listen(\"127.0.0.1:0\", server(\"good\"), name=\"good\")\n\
                 listen(\"127.0.0.1:0\", retry(2, lb.round_robin([bad, good], start=\"first\"), on={on}), name=\"outer\")"
            )
        };
        let kinds = serve(&text("[\"connect_failed\", \"refused\", \"overloaded\", \"timeout\", \"reset\"]"));
        // The first has the token.
        let asked = |served: &RunningBalancer| {
            if status == 429 {
                assert_eq!(get(&served.addrs[0], "/").status, 200);
            }
            get(outer(served), "/")
        };
        let answer = asked(&kinds);
        assert_eq!(answer.status, status, "{node}: no kind comes out");
        assert_eq!(answer.header("retry-after").is_some(), status == 429, "{node}");
        let by_status = serve(&text(&format!("[{status}]")));
        assert_eq!(asked(&by_status).server(), "good", "{node}");
        let by_kind = serve(&text("[\"status_5xx\"]"));
        assert_eq!(asked(&by_kind).status, if status >= 500 { 200 } else { status }, "{node}");
    }
}

#[test]
pub fn answers_of_an_inner_listener_eject_it() {
    let served = serve(
        "bad = listen(\"127.0.0.1:0\", respond(503), name=\"bad\")\n\
         good = listen(\"127.0.0.1:0\", server(\"good\"), name=\"good\")\n\
         listen(\"127.0.0.1:0\", lb.first([bad, good], eject=eject(consecutive=2, base=1*hours, max_percent=100), panic=0), name=\"outer\")",
    );
    let mut conn = Conn::new(outer(&served));
    assert_eq!([conn.get("/", "").status, conn.get("/", "").status], [503, 503]);
    until(|| conn.get("/", "").server() == "good");
    assert_eq!(get(&served.addrs[0], "/").status, 503, "who is there is asked by others all the same");
}

/// An inner listener takes the client's address from its own process, and from no other.
#[test]
pub fn forwarded_fields_of_the_own_process_are_believed() {
    let path = std::env::temp_dir().join(format!("weir-layers-{}", std::process::id()));
    let unix = format!("unix:{}", path.display());
    for inner in ["127.0.0.1:0", "0.0.0.0:0", ":0", &unix] {
        let origin = Origin::named("o");
        let served = serve(&format!(
            "inner = listen(\"{inner}\", server(\"o\", addr=\"{}\"), name=\"inner\")\n\
             strict = listen(\"127.0.0.1:0\", inner, name=\"strict\")\n\
             listen(\"127.0.0.1:0\", lb.first([inner]), name=\"trusting\", http=http(trusted=[\"127.0.0.1\"]))",
            origin.addr
        ));
        let said = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n";
        for addr in &served.addrs[1..] {
            let mut conn = Conn::new(addr);
            conn.get("/", said);
            conn.get("/", said);
        }
        let mut expected = vec!["127.0.0.1", "127.0.0.1", "203.0.113.9, 127.0.0.1", "203.0.113.9, 127.0.0.1"];
        if inner == "127.0.0.1:0" {
            // Another client of the inner one, though from the same address.
            get_with(&served.addrs[0], "/", said);
            expected.push("127.0.0.1");
        }
        assert_eq!(field(&origin, "x-forwarded-for"), expected, "{inner}");
        let proto = field(&origin, "x-forwarded-proto");
        assert_eq!(proto[2..4], ["https", "https"], "{inner}");
    }
}

/// The client that a route reads is the one that the outermost listener saw.
#[test]
pub fn the_client_is_known_behind() {
    let served = serve(
        "inner = listen(\"127.0.0.1:0\", route([(when(client=\"203.0.113.0/24\"), server(\"there\"))], otherwise=server(\"here\")), name=\"inner\")\n\
         listen(\"127.0.0.1:0\", inner, name=\"outer\", http=http(trusted=[\"127.0.0.1\"]))",
    );
    let asked = |addr: &str, client: &str| {
        get_with(addr, "/", &format!("X-Forwarded-For: {client}\r\n")).server().to_owned()
    };
    let (inner, outer) = (&served.addrs[0], outer(&served));
    assert_eq!(asked(outer, "203.0.113.9"), "there");
    assert_eq!(asked(outer, "198.51.100.9"), "here");
    assert_eq!(asked(outer, "203.0.113.9, 198.51.100.9"), "here", "who is not trusted vouches for nobody");
    assert_eq!(asked(inner, "203.0.113.9"), "here");
}

/// Sixteen routers with loops of their own, each of which has its requests.
#[test]
pub fn many_routers_with_loops_of_their_own() {
    let served = serve_with(
        "def router(i):\n    return listen(\"127.0.0.1:0\", respond(200, \"r%d\" % i), name=\"r%d\" % i, loops=1 + i % 3)\n\n\
         listen(\"127.0.0.1:0\", lb.round_robin(pool(16, router), scope=\"process\"), name=\"outer\")",
        3,
        false,
    );
    assert_eq!(served.addrs.len(), 17);
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..4 {
        let mut conn = Conn::new(outer(&served));
        for _ in 0..24 {
            *seen.entry(conn.get("/", "").body).or_insert(0) += 1;
        }
    }
    assert!(seen.len() == 16 && seen.values().all(|n| *n == 6), "{seen:?}");
}

/// A check of a listener is a request to it, or a connection; the nodes before it are crossed.
#[test]
pub fn listeners_are_checked() {
    for (check, server) in [("health.http(\"/\", ", "spare"), ("health.tcp(", "")] {
        let served = serve(&format!(
            "bad = listen(\"127.0.0.1:0\", respond(503), name=\"bad\")\n\
             target = cable(1*ms, bad)\n\
             listen(\"127.0.0.1:0\", lb.first([target, server(\"spare\")], health={check}interval=20*ms, timeout=500*ms, fall=1, rise=1)), name=\"outer\")"
        ));
        if server.is_empty() {
            pause(100);
            assert_eq!(get(outer(&served), "/").status, 503);
        } else {
            until(|| get(outer(&served), "/").server() == server);
        }
    }
}

/// Models before a listener behind which all is built in act.
#[test]
pub fn models_before_a_listener_act() {
    let served = serve(
        "inner = listen(\"127.0.0.1:0\", server(\"s\", model=10*ms), name=\"inner\")\n\
         listen(\"127.0.0.1:0\", cable(20*ms, inner), name=\"outer\")",
    );
    let mut conn = Conn::new(outer(&served));
    conn.get("/", "");
    let (ms, answer) = timed(|| conn.get("/", ""));
    assert_eq!(answer.server(), "s");
    near(ms, 50.0);
}

/// Inner listeners are there until the outer ones are empty: a request that comes to one after the drain began is
/// served.
#[test]
pub fn inner_listeners_drain_last() {
    for loops in [1, 3] {
        let path = std::env::temp_dir().join(format!("weir-drain-{}-{loops}", std::process::id()));
        for inner in ["127.0.0.1:0".to_owned(), format!("unix:{}", path.display())] {
            let served = serve_with(
                &format!(
                    "inner = listen(\"{inner}\", server(\"s\", model=50*ms), name=\"inner\")\n\
                     middle = listen(\"127.0.0.1:0\", delay(200*ms, inner), name=\"middle\")\n\
                     listen(\"127.0.0.1:0\", delay(200*ms, middle), name=\"outer\")"
                ),
                loops,
                false,
            );
            let addrs = served.addrs.clone();
            let mut conns: Vec<Conn> = (0..5).map(|_| Conn::new(&addrs[2])).collect();
            for conn in &mut conns {
                conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            }
            pause(100);
            drop(served);
            for conn in &mut conns {
                let answer = conn.response();
                assert_eq!((answer.status, answer.server()), (200, "s"));
                let ends = if is_http2() { None } else { Some("close") };
                assert_eq!(answer.header("connection"), ends);
            }
            until(|| addrs[1..].iter().all(|addr| std::net::TcpStream::connect(addr).is_err()));
        }
        until(|| !path.exists());
    }
}

/// A broken body is one for the nodes before it too, and counts as `reset`.
#[test]
pub fn a_broken_body_stays_broken() {
    let origin = Origin::new(|n, _| match n {
        0 | 1 => Reply::Parts(vec![
            (0, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab".to_vec()),
            (30, Vec::new()),
        ]),
        _ => Reply::Ok("whole".to_owned()),
    });
    let served = serve(&format!(
        "inner = listen(\"127.0.0.1:0\", timeout(100*ms, server(\"o\", addr=\"{}\")), name=\"inner\")\n\
         listen(\"127.0.0.1:0\", lb.first([inner, server(\"spare\")], eject=eject(consecutive=2, base=1*hours, max_percent=100), panic=0), name=\"outer\")",
        origin.addr
    ));
    for _ in 0..2 {
        let mut conn = Conn::new(outer(&served));
        conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(conn.try_response().is_none(), "it does not look whole");
    }
    until(|| get(outer(&served), "/").server() == "spare");
}
