//! `retry`, `hedge` and `budget`.

use crate::common::{Conn, Origin, Reply, get, near, pause, send, serve_node, timed, until};

fn server(name: &str, origin: &Origin) -> String {
    format!("server(\"{name}\", addr=\"{}\")", origin.addr)
}

const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";

#[test]
pub fn retry_leaves_out_who_was_tried() {
    let (bad, good) = (Origin::new(|_, _| Reply::Close), Origin::named("good"));
    let both = format!("[{}, {}]", server("bad", &bad), server("good", &good));
    let served = serve_node(&format!("retry(3, lb.round_robin({both}, start=\"first\"))"));
    assert_eq!(get(&served.addr, "/").body, "good");
    assert_eq!((bad.count(), good.count()), (1, 1));
    let served = serve_node(&format!("retry(2, lb.first({both}), exclude=\"none\")"));
    assert_eq!(get(&served.addr, "/").status, 502);
    assert_eq!((bad.count(), good.count()), (3, 1));
    // A POST may have had effects.
    let served = serve_node(&format!("retry(3, lb.first({both}))"));
    assert_eq!(send(&served.addr, POST).status, 502);
    assert_eq!((bad.count(), good.count()), (4, 1));
    let served = serve_node(&format!("retry(3, lb.first({both}), methods=\"any\")"));
    assert_eq!(send(&served.addr, POST).body, "good");
    assert_eq!(good.seen()[1].1, b"abc");
}

#[test]
pub fn retry_of_statuses() {
    let origin = Origin::new(|n, _| if n < 2 { Reply::Status(503) } else { Reply::Ok("x".into()) });
    let served = serve_node(&format!("retry(3, {}, on=[503])", server("a", &origin)));
    assert_eq!((get(&served.addr, "/").body.as_str(), origin.count()), ("x", 3));
    assert_eq!(origin.connections(), 1, "an answer that is not wanted does not cost its connection");
    let origin = Origin::new(|_, _| Reply::Status(503));
    let served = serve_node(&format!("retry(3, {}, on=[\"status_5xx\"])", server("a", &origin)));
    let last = get(&served.addr, "/");
    assert_eq!(
        (last.status, last.body.as_str(), origin.count()),
        (503, "503", 3),
        "the last answer is the answer"
    );
    let served = serve_node(&format!("retry(3, {}, on=[502])", server("a", &origin)));
    assert_eq!((get(&served.addr, "/").status, origin.count()), (503, 4));
    assert_eq!(send(&served.addr, POST).status, 503);
    assert_eq!(origin.count(), 5);
}

/// The error of an attempt that another outdid counts where its target is judged.
#[test]
pub fn a_hedge_counts_its_losers() {
    let (bad, good) = (Origin::new(|_, _| Reply::Status(503)), Origin::named("good"));
    let both = format!("[{}, {}]", server("bad", &bad), server("good", &good));
    let eject = "eject=eject(consecutive=2, base=30*s, max_percent=50), panic=0.0";
    let lb = format!("lb.first({both}, {eject})");
    let served = serve_node(&format!("hedge(1*s, {lb})"));
    // The second attempt may pick the same target; its answer is the answer.
    assert_eq!(get(&served.addr, "/").status, 503);
    // Health is another thread's: a request that follows at once may come before its word.
    let left_alone = || {
        let before = bad.count();
        get(&served.addr, "/").body == "good" && bad.count() == before
    };
    assert!((0..200).any(|_| left_alone()), "it is ejected after two");
    assert!((0..5).all(|_| left_alone()), "and stays out");
}

#[test]
pub fn retry_waits_and_pays() {
    let origin = Origin::new(|_, _| Reply::Close);
    let served = serve_node(&format!("retry(4, {}, backoff=20*ms, backoff_max=20*ms)", server("a", &origin)));
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!((response.status, origin.count()), (502, 4));
    assert!(ms > 2.0 && ms < 120.0, "{ms}");
    let origin = Origin::new(|_, _| Reply::Close);
    let budget = "budget=budget(ratio=0.0, min_per_s=0.2, window=10*s)";
    let served = serve_node(&format!("retry(4, {}, {budget})", server("a", &origin)));
    assert_eq!(get(&served.addr, "/").status, 502);
    assert_eq!(origin.count(), 3, "the reserve holds two");
    assert_eq!((get(&served.addr, "/").status, origin.count()), (502, 4));
}

/// Failures inside of built-in servers reach the loop as what they are.
#[test]
pub fn retry_of_what_built_in_servers_say() {
    let down = |mode: &str| {
        format!("faulty(1000*hours, 1000*hours, server(\"down\"), starts=\"down\", mode=\"{mode}\")")
    };
    for (mode, kind) in [("refuse", "refused"), ("crash", "connect_failed")] {
        let both = format!("[{}, server(\"up\")]", down(mode));
        let served = serve_node(&format!("retry(2, lb.first({both}, pass_over=0*s), on=[\"{kind}\"])"));
        let mut conn = Conn::new(&served.addr);
        assert!((0..3).all(|_| conn.get("/", "").server() == "up"), "{kind}");
        let served = serve_node(&format!("retry(2, lb.first({both}), on=[\"timeout\"])"));
        let response = get(&served.addr, "/");
        assert_eq!((response.status, response.header("x-weir-kind")), (503, None), "{kind}");
    }
    let busy = "queue(server(\"busy\", model=200*ms), capacity=0)";
    let served = serve_node(&format!("retry(2, lb.first([{busy}, server(\"up\")]), on=[\"overloaded\"])"));
    let mut first = Conn::new(&served.addr);
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    pause(30);
    assert_eq!(get(&served.addr, "/").server(), "up");
    assert_eq!(first.response().server(), "busy");
}

/// With `work="same"` an attempt brings the work of the first: behind a limit of time all end alike.
#[test]
pub fn retry_with_the_same_work() {
    let node = |attempts: u32, limit: &str, work: &str| {
        let slow = "server(\"a\", model=dist.hyperexponential([(0.5, 1*us), (0.5, 1000*s)]))";
        format!(
            "retry({attempts}, timeout({limit}, lb.first([{slow}])), on=[\"timeout\"], work=\"{work}\", exclude=\"none\")"
        )
    };
    // Thirty, so that hardly ever all are slow; and long enough for a quick one on a busy machine.
    let redraw = serve_node(&node(30, "80*ms", "redraw"));
    assert!((0..6).all(|_| get(&redraw.addr, "/").status == 200));
    let same = serve_node(&node(12, "25*ms", "same"));
    let all: Vec<(f64, u16)> = (0..8).map(|_| timed(|| get(&same.addr, "/").status)).collect();
    for (ms, status) in all {
        assert!(status == 200 && ms < 290.0 || status == 504 && ms > 290.0, "{status} after {ms} ms");
    }
}

#[test]
pub fn hedge_wins_and_cancels_the_loser() {
    let (slow, fast) =
        (Origin::new(|_, _| Reply::After(2000, Box::new(Reply::Close))), Origin::named("fast"));
    let both = format!("[{}, {}]", server("slow", &slow), server("fast", &fast));
    let served = serve_node(&format!("hedge(30*ms, lb.first({both}))"));
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!(response.body, "fast", "the target of an open attempt is left out");
    near(ms, 30.0);
    until(|| slow.open() == 0);
    // A body that is whole may be sent twice; a POST may not.
    let put = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(send(&served.addr, put).body, "fast");
    assert_eq!(fast.seen()[1].1, b"abc");
    let n = fast.count();
    let mut post = Conn::new(&served.addr);
    post.send(POST);
    pause(100);
    assert_eq!(fast.count(), n);
}

#[test]
pub fn hedge_starts_at_once_when_one_fails() {
    let (bad, good) = (Origin::new(|_, _| Reply::Close), Origin::named("good"));
    let both = format!("[{}, {}]", server("bad", &bad), server("good", &good));
    let served = serve_node(&format!("hedge(5*s, lb.round_robin({both}, start=\"first\"))"));
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert!(response.body == "good" && ms < 1000.0, "{ms}");
    let served = serve_node(&format!("hedge(5*s, {}, attempts=3)", server("bad", &bad)));
    let before = bad.count();
    assert_eq!((get(&served.addr, "/").status, bad.count() - before), (502, 3), "the last error");
    let served = serve_node(&format!(
        "hedge(5*s, {}, attempts=3, budget=budget(ratio=0.0, min_per_s=0.1, window=10*s))",
        server("bad", &bad)
    ));
    let before = bad.count();
    assert_eq!((get(&served.addr, "/").status, bad.count() - before), (502, 2), "the budget holds one");
}

/// Before its body has come whole a request is not hedged; then it is.
#[test]
pub fn hedge_waits_for_the_body() {
    let (slow, fast) =
        (Origin::new(|_, _| Reply::After(2000, Box::new(Reply::Close))), Origin::named("fast"));
    let both = format!("[{}, {}]", server("slow", &slow), server("fast", &fast));
    let served = serve_node(&format!("hedge(10*ms, lb.first({both}))"));
    let mut conn = Conn::new(&served.addr);
    conn.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    pause(60);
    assert_eq!(fast.count(), 0);
    conn.send("def");
    assert_eq!(conn.response().body, "fast");
    assert_eq!(fast.seen()[0].1, b"abcdef");
}

/// However much is kept for other reasons: past `replay` the attempt is the last.
#[test]
pub fn a_small_replay_is_kept_to() {
    let origin = Origin::new(|_, _| Reply::Status(503));
    let put = |n: usize| format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n{}", "x".repeat(n));
    let served = serve_node(&format!("retry(3, {}, on=[503], replay=1*KiB)", server("a", &origin)));
    assert_eq!((send(&served.addr, put(1025)).status, origin.count()), (503, 1));
    assert_eq!((send(&served.addr, put(1024)).status, origin.count()), (503, 4));
    let slow = Origin::new(|_, _| Reply::After(200, Box::new(Reply::Ok("x".into()))));
    let served = serve_node(&format!("hedge(20*ms, {}, attempts=3, replay=10)", server("slow", &slow)));
    assert_eq!((send(&served.addr, put(11)).body.as_str(), slow.count()), ("x", 1));
    assert_eq!((send(&served.addr, put(10)).body.as_str(), slow.count()), ("x", 4));
}
