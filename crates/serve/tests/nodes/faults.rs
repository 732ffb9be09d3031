//! `faulty`, `block`, `flaky`, `warmup`.

use crate::common::{Conn, Origin, Reply, get, pause, serve_node, serve_with, timed, until};
use weir_serve::Exposition;

fn down(mode: &str, more: &str) -> String {
    format!(
        "faulty(1000*hours, 1000*hours, server(\"a\", model=20*ms), starts=\"down\", mode=\"{mode}\"{more})"
    )
}

#[test]
pub fn faulty_by_its_modes() {
    assert_eq!(get(&serve_node(&down("refuse", "")).addr, "/").status, 503);
    assert_eq!(get(&serve_node(&down("crash", "")).addr, "/").status, 503);
    let served = serve_node(&format!("timeout(30*ms, lb.first([{}]))", down("blackhole", "")));
    assert_eq!(get(&served.addr, "/").status, 504);
    let served = serve_node(&down("slow", ", slow=5.0"));
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert!(response.status == 200 && ms > 99.0 && ms < 250.0, "{ms}");
    let up = serve_node("faulty(1000*hours, 1*ms, server(\"a\"), mode=\"crash\")");
    assert_eq!(get(&up.addr, "/").server(), "a");
}

/// A process is up for 10 ms at a time and stands still for 40: 20 ms of work are inside during a pause at least,
/// whenever they begin. What enters waits.
#[test]
pub fn a_pause_stops_what_is_inside() {
    for model in ["20*ms", "queue(delay(20*ms, server()))", "concurrent(20*ms, cores=1)"] {
        let server = format!("server(\"a\", model={model})");
        let served =
            serve_node(&format!("faulty(dist.fixed(10*ms), dist.fixed(40*ms), {server}, mode=\"pause\")"));
        for _ in 0..5 {
            let (ms, response) = timed(|| get(&served.addr, "/"));
            assert!(response.status == 200 && ms > 59.0, "{model}: {ms}");
        }
    }
    let served = serve_node(&format!("timeout(30*ms, lb.first([{}]))", down("pause", "")));
    assert_eq!(get(&served.addr, "/").status, 504);
}

/// What came during a pause enters what is behind in the order in which it came.
#[test]
pub fn a_pause_keeps_the_order() {
    let origin = Origin::named("a");
    let node = format!("queue(server(\"a\", addr=\"{}\"), concurrency=1)", origin.addr);
    let times = "dist.fixed(1000*hours), dist.fixed(1*s)";
    let text = format!("listen(\"127.0.0.1:0\", faulty({times}, {node}, starts=\"down\", mode=\"pause\"))");
    let served = serve_with(&text, 1, true);
    let mut all: Vec<Conn> = Vec::new();
    for i in 0..20 {
        let mut conn = Conn::new(&served.addr);
        conn.send(format!("GET /{i} HTTP/1.1\r\nHost: a\r\n\r\n"));
        all.push(conn);
        // The next one is sent when this one has come.
        let inside = format!("\nweir_requests_in_flight{{listener=\"listen\"}} {}\n", i + 1);
        until(|| served.scrape(Exposition::Prometheus).contains(&inside));
    }
    assert!(all.iter_mut().all(|conn| conn.response().status == 200));
    let seen: Vec<String> = origin.seen().into_iter().map(|(head, _)| head).collect();
    let sent: Vec<String> = (0..20).map(|i| format!("GET /{i} ")).collect();
    assert!(seen.len() == 20 && seen.iter().zip(&sent).all(|(a, b)| a.starts_with(b)), "{seen:?}");
}

/// What is inside is cut off as it goes down: much sooner than its work ends.
#[test]
pub fn a_crash_resets_what_is_inside() {
    let served = serve_node("faulty(30*ms, 1*ms, server(\"a\", model=20*s), mode=\"crash\")");
    let mut reset = 0;
    for _ in 0..20 {
        let (ms, response) = timed(|| get(&served.addr, "/"));
        assert!(ms < 2000.0, "{ms}");
        // 502: it was inside; 503: it was down already.
        assert!(matches!(response.status, 502 | 503), "{}", response.status);
        reset += usize::from(response.status == 502);
        pause(8);
    }
    assert!(reset > 12, "{reset}");
}

/// A lazy one goes down when a request finds it so; those inside are reset.
#[test]
pub fn a_lazy_crash_resets_what_is_inside() {
    let served =
        serve_node("faulty(40*ms, 1000*hours, server(\"a\", model=5*s), mode=\"crash\", clock=\"lazy\")");
    let mut first = Conn::new(&served.addr);
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| {
        let mut probe = Conn::new(&served.addr);
        probe.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        probe.stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).expect("a socket");
        probe.try_response().is_some_and(|r| r.status == 503)
    });
    let (ms, response) = timed(|| first.response());
    assert!(matches!(response.status, 502 | 503) && ms < 1000.0, "{} after {ms} ms", response.status);
}

/// In front of a real server, with `--inject`, a crash breaks the body as well.
#[test]
pub fn a_crash_breaks_a_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345".to_vec();
    let stuck = Origin::new(move |_, _| Reply::Raw(head.clone()));
    let text = format!(
        "listen(\"127.0.0.1:0\", faulty(50*ms, 1*us, server(\"a\", addr=\"{}\"), mode=\"crash\"))",
        stuck.addr
    );
    let served = serve_with(&text, 2, true);
    for _ in 0..5 {
        let mut conn = Conn::new(&served.addr);
        conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (ms, response) = timed(|| conn.try_response());
        assert!(response.is_none_or(|r| r.status >= 502) && ms < 2000.0);
    }
    until(|| stuck.open() == 0);
    let left_out = serve_with(&text.replace("faulty(50*ms, 1*us", "faulty(1*us, 1000*hours"), 1, false);
    let mut conn = Conn::new(&left_out.addr);
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(conn.take(10).is_some(), "without `--inject` it is left out");
}

/// Nodes of one `block`, or with the same `together`, are up and down at the same times.
#[test]
pub fn a_block_fails_together() {
    for text in [
        "b = block(40*ms, 40*ms, [server(\"a\"), server(\"b\")])\nlisten(\"127.0.0.1:0\", lb.round_robin(b))",
        "f = lambda n: faulty(40*ms, 40*ms, server(n), together=\"rack\")\n\
         listen(\"127.0.0.1:0\", lb.round_robin([f(\"a\"), f(\"b\")]))",
    ] {
        let served = crate::common::serve(text);
        let mut conn = Conn::new(&served.addr);
        let (mut all, mut same, mut ups, mut downs) = (0, 0, 0, 0);
        // However long the first times are that it draws.
        while all < 60 || ups < 6 || downs < 6 {
            all += 1;
            let pair = [conn.get("/", "").status, conn.get("/", "").status];
            same += usize::from(pair[0] == pair[1]);
            ups += usize::from(pair[0] == 200);
            downs += usize::from(pair[0] == 503);
            assert!(all < 2000, "{ups} up, {downs} down");
            pause(5);
        }
        assert!(same * 6 >= all * 5, "{same} alike of {all}, {ups} up, {downs} down");
    }
}

#[test]
pub fn flaky_fails_after_the_work() {
    let served = serve_node("flaky(0.3, server(\"a\"))");
    let mut conn = Conn::new(&served.addr);
    let n = 1500;
    let failed = (0..n).filter(|_| conn.get("/", "").status == 500).count() as f64 / f64::from(n);
    assert!((failed - 0.3).abs() < 5.0 * (0.21f64 / f64::from(n)).sqrt(), "{failed}");
    for (kind, status) in [("refused", 503), ("timeout", 504), ("reset", 502), ("status_5xx", 500)] {
        let served = serve_node(&format!("flaky(1.0, server(\"a\", model=20*ms), kind=\"{kind}\")"));
        let (ms, response) = timed(|| get(&served.addr, "/"));
        assert!(response.status == status && ms >= 19.8, "{kind}: {} after {ms} ms", response.status);
        assert_eq!(response.header("x-weir-kind"), None);
    }
}

#[test]
pub fn warmup_is_slow_at_first() {
    let served = serve_node("warmup(server(\"a\", model=10*ms), 9.0, requests=4)");
    let times: Vec<f64> = (0..6).map(|_| timed(|| get(&served.addr, "/")).0).collect();
    for (ms, want) in times.iter().zip([90.0, 70.0, 50.0, 30.0, 10.0, 10.0]) {
        crate::common::near(*ms, want);
    }
}

/// A process that comes back from a crash is cold again.
#[test]
pub fn warmup_begins_anew_after_a_crash() {
    let served = serve_node(
        "faulty(100*ms, 1*ms, warmup(server(\"a\", model=1*ms), 11.0, requests=2), mode=\"crash\", clock=\"lazy\")",
    );
    let mut conn = Conn::new(&served.addr);
    let mut cold_again = false;
    let mut warm = false;
    // A busy machine hides a warm answer now and then.
    for _ in 0..4000 {
        let (ms, response) = timed(|| conn.get("/", ""));
        if response.status == 200 {
            cold_again |= warm && ms > 10.5;
            warm |= ms < 3.0;
        } else {
            conn = Conn::new(&served.addr);
        }
        if cold_again {
            return;
        }
    }
    panic!("never cold again");
}

/// Requests pass a gate. Checks of a process that ran before pass too; after a crash they fail at first.
#[test]
pub fn a_gate_answers_checks_alone() {
    let open = serve_node(
        "lb.random([gate(server(\"a\"), ramp=1*hours)], health=health.http(\"/\", interval=20*ms, timeout=20*ms, initial=\"checked\"), panic=0)",
    );
    until(|| get(&open.addr, "/").status == 200);
    let crashed = |inside: &str| {
        let node = format!(
            "faulty(dist.fixed(1*hours), dist.fixed(30*ms), {inside}, starts=\"down\", mode=\"crash\")"
        );
        serve_node(&format!(
            "lb.first([{node}], health=health.http(\"/\", interval=20*ms, timeout=20*ms, rise=1, fall=1), panic=0)"
        ))
    };
    // Back from the crash for an hour, it is let in where no gate is closed.
    let (gated, plain) = (crashed("gate(server(\"a\"), ramp=1*hours)"), crashed("server(\"a\")"));
    until(|| get(&plain.addr, "/").status == 200);
    pause(200);
    assert_eq!(get(&gated.addr, "/").status, 503);
    assert_eq!(get(&serve_node("gate(server(\"a\"), ramp=1*hours)").addr, "/").server(), "a");
}
