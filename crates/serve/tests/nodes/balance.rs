//! Every policy of balancers, and the nodes around them.

use crate::common::{Conn, Origin, Reply, Response, get, get_with, pause, serve_node, transport, until};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

fn ask(addr: &str, n: usize) -> Vec<String> {
    let mut conn = Conn::new(addr);
    (0..n).map(|_| conn.get("/", "").server().to_owned()).collect()
}

fn shares(addr: &str, n: usize) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    ask(addr, n).into_iter().for_each(|name| *shares.entry(name).or_insert(0.0) += 1.0 / n as f64);
    shares
}

const THREE: &str = "[server(\"a\"), server(\"b\"), server(\"c\")]";

fn even(lb: &str) {
    let served = serve_node(lb);
    let shares = shares(&served.addr, 1500);
    assert_eq!(shares.len(), 3, "{lb}");
    let slack = 5.0 * (2.0f64 / 9.0 / 1500.0).sqrt();
    assert!(shares.values().all(|s| (s - 1.0 / 3.0).abs() < slack), "{lb}: {shares:?}");
}

#[test]
pub fn round_robin_goes_round() {
    let served = serve_node(&format!("lb.round_robin({THREE}, start=\"first\")"));
    assert_eq!(ask(&served.addr, 7), ["a", "b", "c", "a", "b", "c", "a"]);
    let weighted = "[weight(5, server(\"a\")), weight(1, server(\"b\")), weight(1, server(\"c\"))]";
    let served = serve_node(&format!("lb.round_robin({weighted}, start=\"first\")"));
    assert_eq!(ask(&served.addr, 7), ["a", "a", "b", "a", "c", "a", "a"], "nginx's smooth one");
    let served = serve_node(&format!("lb.round_robin({THREE})"));
    let seen = ask(&served.addr, 6);
    assert!(
        seen[..3] == seen[3..] && seen.iter().take(3).collect::<std::collections::BTreeSet<_>>().len() == 3
    );
}

#[test]
pub fn random_is_even_and_by_weight() {
    even(&format!("lb.random({THREE})"));
    let served = serve_node(
        "lb.random([weight(3, server(\"a\")), weight(1, server(\"b\")), weight(0, server(\"c\"))])",
    );
    let shares = shares(&served.addr, 1500);
    assert!((shares["a"] - 0.75).abs() < 0.06 && !shares.contains_key("c"), "{shares:?}");
}

#[test]
pub fn p2c_is_even_when_idle() {
    even(&format!("lb.p2c({THREE})"));
    let served = serve_node(&format!("lb.p2c({THREE}, choices=3, ties=\"first\")"));
    assert!(ask(&served.addr, 5).iter().all(|name| name == "a"));
    idle_by_weight("lb.p2c(LIST)");
}

/// Idle targets of the weights 2 and 1 get these shares.
fn idle_by_weight(policy: &str) {
    let list = "[weight(2, server(\"a\")), weight(1, server(\"b\"))]";
    let served = serve_node(&policy.replace("LIST", list));
    let shares = shares(&served.addr, 900);
    assert!((shares["a"] - 2.0 / 3.0).abs() < 0.08, "{policy}: {shares:?}");
}

fn busy(n: usize) -> (Vec<Origin>, String) {
    let origins: Vec<Origin> = (0..n)
        .map(|i| {
            Origin::new(move |_, head| match head.contains("/slow") {
                true => Reply::After(300, Box::new(Reply::Ok(i.to_string()))),
                false => Reply::Ok(i.to_string()),
            })
        })
        .collect();
    let list: Vec<String> = origins.iter().map(|o| format!("server(\"s\", addr=\"{}\")", o.addr)).collect();
    (origins, format!("[{}]", list.join(", ")))
}

fn slow(addr: &str) -> Conn {
    let mut conn = Conn::new(addr);
    conn.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    conn
}

#[test]
pub fn least_conn_takes_the_least_busy() {
    let (origins, list) = busy(3);
    let served = serve_node(&format!("lb.least_conn({list}, ties=\"first\")"));
    assert_eq!(get(&served.addr, "/").body, "0");
    let first = slow(&served.addr);
    until(|| origins[0].busy() == 1);
    let second = slow(&served.addr);
    until(|| origins[1].busy() == 1);
    assert_eq!((get(&served.addr, "/").body, get(&served.addr, "/").body), ("2".into(), "2".into()));
    drop((first, second));
    until(|| get(&served.addr, "/").body == "0");
    even(&format!("lb.least_conn({THREE})"));
    idle_by_weight("lb.least_conn(LIST)");
    idle_by_weight("lb.least_conn(LIST, ties=\"rotate\")");
    let served = serve_node(&format!("lb.least_conn({THREE}, ties=\"rotate\")"));
    let seen = ask(&served.addr, 6);
    assert!(seen[..3] == seen[3..] && seen[0] != seen[1] && seen[1] != seen[2]);
}

#[test]
pub fn an_error_is_held_against_a_target() {
    let (bad, good) = (Origin::new(|_, _| Reply::Status(500)), Origin::named("good"));
    let list = format!("[server(\"bad\", addr=\"{}\"), server(\"good\", addr=\"{}\")]", bad.addr, good.addr);
    for lb in ["least_conn", "p2c"] {
        let served = serve_node(&format!("lb.{lb}({list}, ties=\"first\", error_hold=150*ms)"));
        assert_eq!(get(&served.addr, "/").status, 500, "{lb}: the first of equals");
        assert_eq!(
            (get(&served.addr, "/").body.as_str(), get(&served.addr, "/").body.as_str()),
            ("good", "good")
        );
        pause(250);
        assert_eq!(get(&served.addr, "/").status, 500, "{lb}: it is forgiven");
    }
}

#[test]
pub fn peak_ewma_and_prequal_avoid_who_is_slow() {
    let list = "[server(\"slow\", model=25*ms), server(\"fast\", model=0.2*ms)]";
    // With `process` another thread measures, which reads no socket of its own.
    for scope in ["loop", "process"] {
        let served = serve_node(&format!("lb.peak_ewma({list}, scope=\"{scope}\")"));
        let shares = shares(&served.addr, 60);
        assert!(shares["fast"] > 0.8, "peak_ewma, {scope}: {shares:?}");
    }
    for scope in ["loop", "process"] {
        let served = serve_node(&format!("lb.prequal({list}, scope=\"{scope}\")"));
        let addr = &served.addr;
        // Four at once, so that it shows what is in flight as well.
        let answers: Vec<String> = std::thread::scope(|s| {
            let asks: Vec<_> = (0..4).map(|_| s.spawn(|| ask(addr, 40))).collect();
            asks.into_iter().flat_map(|a| a.join().expect("answers")).collect()
        });
        let slow = answers.iter().filter(|name| *name == "slow").count();
        assert!(slow < 24, "prequal, {scope}: {slow} of {}", answers.len());
    }
}

/// With `scope="process"` the owner's thread measures, which reads no socket between a pick and its return. Had it not
/// read the clock, a slow target would be tried about three times before one measurement is right.
#[test]
pub fn the_owner_measures_with_a_clock_of_now() {
    let list = "[server(\"slow\", model=25*ms), server(\"fast\", model=0.2*ms)]";
    let tries = || -> usize {
        let served = serve_node(&format!("lb.peak_ewma({list}, scope=\"process\")"));
        ask(&served.addr, 60).iter().filter(|name| *name == "slow").count()
    };
    // A stall of the machine makes the fast one slow as well: another batch tells.
    let mut batches = Vec::new();
    while batches.len() < 5 {
        batches.push((0..8).map(|_| tries()).sum::<usize>());
        if batches.last().is_some_and(|slow| *slow <= 10) {
            return;
        }
    }
    panic!("of 480 requests each: {batches:?}");
}

/// Requests in flight alone decide here: had those that were cancelled stayed in the count, their target would get
/// none.
#[test]
pub fn prequal_forgets_who_was_cancelled() {
    let (origins, list) = busy(2);
    for scope in ["loop", "process"] {
        let around = format!("q_rif=0.0, sticky=\"srv\", scope=\"{scope}\"");
        let served = serve_node(&format!("lb.prequal({list}, {around})"));
        let first =
            (0..100).map(|_| get(&served.addr, "/")).find(|r| r.body == "0").expect("the first target");
        let cookie =
            first.header("set-cookie").and_then(|c| c.split(';').next()).expect("a cookie").to_owned();
        for _ in 0..4 {
            let mut gone: Vec<Conn> = (0..4).map(|_| Conn::new(&served.addr)).collect();
            let slow = format!("GET /slow HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
            gone.iter_mut().for_each(|conn| conn.send(&slow));
            until(|| origins[0].busy() == 4);
            drop(gone);
            until(|| origins[0].busy() == 0);
        }
        let to_first = (0..60).filter(|_| get(&served.addr, "/").body == "0").count();
        assert!(to_first > 12, "{scope}: one of two equals, {to_first} of 60 times");
    }
}

#[test]
pub fn hashes_stick_to_their_keys() {
    for lb in ["ring_hash", "maglev"] {
        let served = serve_node(&format!("lb.{lb}({THREE}, key=key.header(\"x-user\"))"));
        let mut conn = Conn::new(&served.addr);
        let mut seen = BTreeMap::new();
        for user in 0..60 {
            let field = format!("x-user: {user}\r\n");
            let first = conn.get("/", &field).server().to_owned();
            assert!((0..3).all(|_| conn.get("/", &field).server() == first), "{lb}");
            *seen.entry(first).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 3, "{lb}: {seen:?}");
        let without: Vec<String> = ask(&served.addr, 60);
        assert!(
            without.iter().collect::<std::collections::BTreeSet<_>>().len() > 1,
            "{lb}: at random without a key"
        );
        let path = serve_node(&format!("lb.{lb}({THREE}, key=key.path())"));
        let first = get(&path.addr, "/x?y").server().to_owned();
        assert!((0..5).all(|i| get(&path.addr, &format!("/x?{i}")).server() == first), "{lb}");
        let client = serve_node(&format!("lb.{lb}({THREE}, key=key.client())"));
        let all = ask(&client.addr, 10);
        assert!(all.iter().all(|name| *name == all[0]));
    }
}

#[test]
pub fn a_bound_moves_the_surplus() {
    for lb in ["ring_hash", "maglev"] {
        let (origins, list) = busy(3);
        let served = serve_node(&format!("lb.{lb}({list}, key=key.header(\"x\"), bound=1.0)"));
        let first = slow(&served.addr);
        until(|| origins.iter().any(|o| o.busy() == 1));
        let own = get_with(&served.addr, "/", "x: 1\r\n").body;
        let mut conn = Conn::new(&served.addr);
        conn.send("GET /slow HTTP/1.1\r\nHost: a\r\nx: 1\r\n\r\n");
        until(|| origins.iter().map(Origin::busy).sum::<usize>() == 2);
        let moved = get_with(&served.addr, "/", "x: 1\r\n").body;
        assert_ne!(own, moved, "{lb}");
        drop((first, conn));
    }
}

#[test]
pub fn first_is_a_hot_spare() {
    let spare = Origin::named("spare");
    let dead = closed_port();
    let list = format!("[server(\"dead\", addr=\"{dead}\"), server(\"spare\", addr=\"{}\")]", spare.addr);
    let served = serve_node(&format!("lb.first({list}, pass_over=200*ms)"));
    assert_eq!(get(&served.addr, "/").status, 503);
    assert!((0..5).all(|_| get(&served.addr, "/").body == "spare"), "passed over");
    pause(300);
    assert_eq!(get(&served.addr, "/").status, 503, "asked again");
    let served = serve_node(&format!("lb.first({THREE})"));
    assert!(ask(&served.addr, 5).iter().all(|name| name == "a"));
}

/// An address that refuses connections. Its port stays taken while the program runs, so that no other test gets it.
fn closed_port() -> SocketAddr {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    let addr = socket.local_addr().expect("bound").as_socket().expect("an IP address");
    std::mem::forget(socket);
    addr
}

/// A target is passed over if no connection reached it; not a router that lives, though the only origin behind it is
/// dead.
#[test]
pub fn who_was_reached_is_not_passed_over() {
    let dead = format!("server(\"dead\", addr=\"{}\")", closed_port());
    let router = format!("lb.first([{dead}], pass_over=0*s)");
    let limited = format!("timeout(9*s, cable(0*ms, {router}))");
    // What fails between two balancers is no word of the inner one.
    let between = "flaky(1.0, lb.first([server(\"x\")]), kind=\"connect_failed\")";
    let cases = [
        (dead.as_str(), [503, 200, 200, 200]),
        (router.as_str(), [503, 200, 503, 200]),
        (limited.as_str(), [503, 200, 503, 200]),
        (between, [503, 200, 200, 200]),
    ];
    for scope in ["loop", "process"] {
        for (first, statuses) in cases {
            let served = serve_node(&format!(
                "lb.round_robin([{first}, server(\"well\")], start=\"first\", pass_over=1*hours, scope=\"{scope}\")"
            ));
            let mut conn = Conn::new(&served.addr);
            assert_eq!([0; 4].map(|_| conn.get("/", "").status), statuses, "{scope} {first}");
        }
    }
    // Nor is it left out by a further attempt that leaves out targets without a connection.
    for (first, status) in [(&dead, 200), (&router, 503)] {
        let served = serve_node(&format!(
            "retry(2, lb.first([{first}, server(\"well\")], pass_over=0*s), on=[\"connect_failed\"], \
             exclude=\"connect_failed\")"
        ));
        assert_eq!(get(&served.addr, "/").status, status, "{first}");
    }
}

#[test]
pub fn without_a_target_there_is_the_spare_or_503() {
    let lb = "lb.random([flaky(1.0, server(\"a\"))], eject=eject(consecutive=1, max_percent=100)";
    let served = serve_node(&format!("{lb}, panic=0.0)"));
    assert_eq!(get(&served.addr, "/").status, 500);
    // Health is another thread's: a request that follows at once may come before its word.
    assert!((0..1000).any(|_| get(&served.addr, "/").status == 503));
    let served = serve_node(&format!("{lb}, on_empty=respond(200, body=\"sorry\"))"));
    assert_eq!(get(&served.addr, "/").status, 500);
    assert!((0..1000).any(|_| get(&served.addr, "/").body == "sorry"));
}

#[test]
pub fn eject_takes_a_failing_target_out() {
    let list = "[flaky(1.0, server(\"bad\")), server(\"good\")]";
    let served = serve_node(&format!(
        "lb.round_robin({list}, start=\"first\", eject=eject(consecutive=3, base=10*s))"
    ));
    let mut conn = Conn::new(&served.addr);
    let mut failed = |of: u32| (0..of).filter(|_| conn.get("/", "").status == 500).count();
    assert_eq!(failed(6), 3, "the two by turns");
    // Health is another thread's: a request that follows at once may come before its word.
    assert!((0..100).any(|_| failed(2) == 0));
    assert_eq!(failed(40), 0);
}

/// A `timeout` around a balancer that cuts off what is at a target, before its answer or within, is an error of it;
/// with more than a `retry` between them it is none.
#[test]
pub fn a_timeout_around_ejects() {
    let (good, head) = (Origin::named("good"), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec());
    let eject = "eject=eject(consecutive=2, base=1*hours), panic=0.0";
    for (root, ejects) in [
        ("timeout(60*ms, LB)", true),
        ("timeout(60*ms, retry(2, LB))", true),
        ("timeout(60*ms, rewrite(LB, set={\"x-a\": \"b\"}))", false),
        ("timeout(60*ms, lb.first([LB]))", false),
    ] {
        for scope in ["loop", "process"] {
            for within in [false, true] {
                let head = head.clone();
                let bad = Origin::new(move |_, _| match within {
                    true => Reply::Raw(head.clone()),
                    false => Reply::After(3000, Box::new(Reply::Status(200))),
                });
                let list = format!(
                    "[server(\"bad\", addr=\"{}\"), server(\"good\", addr=\"{}\")]",
                    bad.addr, good.addr
                );
                let lb = format!("lb.first({list}, {eject}, scope=\"{scope}\")");
                let served = serve_node(&root.replace("LB", &lb));
                (0..2).for_each(|_| assert!(!is_whole(&served.addr)));
                // Health is another thread's: a request that follows at once may come before its word.
                let recovers = (0..if ejects { 20 } else { 2 }).any(|_| is_whole(&served.addr));
                assert_eq!(recovers, ejects, "{root}, {scope}, within the body: {within}");
            }
        }
    }
}

/// Whether an answer comes, and all of it.
fn is_whole(addr: &str) -> bool {
    let mut conn = Conn::new(addr);
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    conn.try_response().is_some_and(|response| response.body == "good")
}

#[test]
pub fn sticky_clients_return() {
    let served = serve_node(&format!("lb.random({THREE}, sticky=\"srv\")"));
    let cookie = |r: &Response| r.header("set-cookie").map(|c| c.split(';').next().unwrap_or("").to_owned());
    for _ in 0..10 {
        let first = get(&served.addr, "/");
        let full = first.header("set-cookie").expect("a cookie");
        assert!(full.contains("HttpOnly") && full.contains("SameSite=Lax"), "{full}");
        assert_eq!(full.contains("Secure"), transport::is_tls(), "{full}");
        let field = format!("Cookie: {}\r\n", cookie(&first).expect("a cookie"));
        for _ in 0..5 {
            let again = get_with(&served.addr, "/", &field);
            assert_eq!((again.server(), again.header("set-cookie")), (first.server(), None));
        }
    }
    assert!(cookie(&get_with(&served.addr, "/", "Cookie: srv=0123456789abcdef\r\n")).is_some());
}

/// Clairvoyant: in models only.
#[test]
pub fn least_work_answers_in_a_model() {
    let served = serve_node(&format!("server(\"m\", model=lb.least_work({THREE}))"));
    assert!(ask(&served.addr, 5).iter().all(|name| name == "m"));
}
