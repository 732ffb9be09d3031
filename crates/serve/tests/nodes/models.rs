//! `delay`, `cable`, `concurrent`, `sequence`, `fanout`: models in built-in servers, on real timers.

use crate::common::{Conn, Origin, get, least, near, pause, serve_node, serve_with, timed};
use std::thread;
use std::time::Instant;

fn at_once(addr: &str, n: usize) -> Vec<(f64, u16)> {
    // Of all from here: those that the machine starts late had less to wait for.
    let begun = Instant::now();
    let ask = |_| {
        let addr = addr.to_owned();
        thread::spawn(move || {
            let status = get(&addr, "/").status;
            (begun.elapsed().as_secs_f64() * 1e3, status)
        })
    };
    let all: Vec<_> = (0..n).map(ask).collect();
    all.into_iter().map(|t| t.join().expect("an answer")).collect()
}

/// No wait is shorter than was asked for, and a tenth of many hardly longer, beyond what a request takes anyway.
#[test]
pub fn delays_are_true() {
    let (fast, slow) = (serve_node("server(\"a\")"), serve_node("delay(3*ms, server(\"a\"))"));
    let times = |addr: &str| {
        let mut conn = Conn::new(addr);
        let mut times: Vec<f64> = (0..100).map(|_| timed(|| conn.get("/", "")).0).collect();
        times.sort_by(f64::total_cmp);
        (times[0], times[10])
    };
    let (base, _) = times(&fast.addr);
    // Others use this machine as well.
    let tenth = least(4, |_| {
        let (shortest, tenth) = times(&slow.addr);
        assert!(shortest >= 3.0, "{shortest}");
        tenth
    });
    assert!(tenth - base - 3.0 < 2.0, "{tenth} - {base}");
}

#[test]
pub fn a_cable_is_crossed_twice() {
    let served = serve_node("cable(15*ms, server(\"a\"))");
    near(timed(|| get(&served.addr, "/")).0, 30.0);
    // What is lost many times in a row is given up: each further time takes twice as long.
    let lossy = serve_node("timeout(500*ms, lb.first([cable(1*ms, server(\"a\"), loss=0.3, resend=20*ms)]))");
    let mut conn = Conn::new(&lossy.addr);
    let times: Vec<f64> = (0..30).map(|_| timed(|| conn.get("/", "")).0).collect();
    assert!(times.iter().any(|ms| *ms < 15.0) && times.iter().any(|ms| *ms > 21.0), "{times:?}");
    let gone = serve_node("timeout(40*ms, lb.first([cable(1*ms, server(\"a\"), loss=1.0)]))");
    assert_eq!(get(&gone.addr, "/").status, 504);
}

/// A slot is free when the response has left the queue, not when it has crossed the cable back.
#[test]
pub fn what_is_whole_is_held_no_longer() {
    let served = serve_node("cable(20*ms, queue(server(\"a\", model=5*ms)))");
    let last = least(5, |_| {
        let mut times: Vec<f64> = at_once(&served.addr, 4).into_iter().map(|t| t.0).collect();
        times.sort_by(f64::total_cmp);
        near(times[0], 45.0);
        near(times[3], 60.0);
        times[3]
    });
    assert!(last < 120.0, "{last} ms: they wait for each other's way back");
}

/// A balancer counts a request until its answer has come back to it, not until that has crossed a cable further out.
#[test]
pub fn a_balancer_counts_no_cable_around_it() {
    let origin = Origin::named("o");
    let one = format!("lb.first([server(\"o\", addr=\"{}\")], max_in_flight=1)", origin.addr);
    let served = serve_with(&format!("listen(\"127.0.0.1:0\", cable(20*ms, {one}))"), 1, true);
    let last = least(5, |_| at_once(&served.addr, 6).into_iter().map(|t| t.0).fold(0.0, f64::max));
    assert_eq!(origin.most_busy(), 1, "they went there one after another");
    // 20 ms there and 20 ms back, together; if each waited for the way back of those before it, 140 ms.
    assert!((39.8..100.0).contains(&last), "{last} ms: they wait for each other's way back");
}

#[test]
pub fn concurrent_shares_its_cores() {
    let served = serve_node("server(\"a\", model=concurrent(40*ms, cores=2))");
    near(timed(|| get(&served.addr, "/")).0, 40.0);
    let two = least(20, |_| at_once(&served.addr, 2).into_iter().map(|(ms, _)| ms).fold(0.0, f64::max));
    assert!((39.8..70.0).contains(&two), "{two} ms: each has a core");
    // Two cores have 160 ms to do. The first has more of them, so that only the last one's end is known.
    let four: Vec<f64> = at_once(&served.addr, 4).into_iter().map(|t| t.0).collect();
    four.iter().for_each(|&ms| near(ms, 40.0));
    near(four.into_iter().fold(0.0, f64::max), 80.0);
    let line = serve_node("server(\"a\", model=concurrent(20*ms, cores=1, threads=1))");
    let mut times: Vec<f64> = at_once(&line.addr, 3).into_iter().map(|t| t.0).collect();
    times.sort_by(f64::total_cmp);
    near(times[0], 19.0);
    near(times[2], 57.0);
}

/// A client that leaves frees its share, or goes on and keeps it.
#[test]
pub fn concurrent_is_cancelled() {
    for on_cancel in ["stop", "skip"] {
        let served =
            serve_node(&format!("server(\"a\", model=concurrent(40*ms, on_cancel=\"{on_cancel}\"))"));
        // From the first one's head to the second one's answer.
        let spans: Vec<f64> = (0..5)
            .map(|_| {
                let both = || {
                    let mut gone = Conn::new(&served.addr);
                    gone.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                    pause(5);
                    drop(gone);
                    pause(5);
                    assert_eq!(get(&served.addr, "/").status, 200);
                };
                timed(both).0
            })
            .collect();
        let (least, most) = spans.iter().fold((f64::MAX, 0.0), |(l, m), &t| (t.min(l), t.max(m)));
        // One core: the one that goes on has its 40 ms, so both together take 80. A busy machine only makes it longer.
        let right = if on_cancel == "stop" { least < 75.0 } else { most > 79.0 };
        assert!(right, "{on_cancel}: {spans:?}");
    }
}

#[test]
pub fn sequence_is_one_after_another() {
    let served =
        serve_node("server(\"a\", model=sequence([server(\"x\", model=10*ms), server(\"y\", model=20*ms)]))");
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!(response.server(), "a");
    near(ms, 30.0);
    let bad = serve_node("sequence([flaky(1.0, server(\"x\"), kind=\"refused\"), server(\"y\", model=1*s)])");
    let (ms, response) = timed(|| get(&bad.addr, "/"));
    assert!(response.status == 503 && ms < 500.0);
}

#[test]
pub fn fanout_waits_for_as_many_as_it_needs() {
    let nodes = "[server(\"x\", model=10*ms), server(\"y\", model=30*ms), server(\"z\", model=500*ms)]";
    for (need, want) in [(1, 10.0), (2, 30.0)] {
        let served = serve_node(&format!("fanout({nodes}, need={need})"));
        near(timed(|| get(&served.addr, "/")).0, want);
    }
    let bad = serve_node(
        "fanout([server(\"x\", model=500*ms), flaky(1.0, server(\"y\", model=10*ms), kind=\"reset\")])",
    );
    let (ms, response) = timed(|| get(&bad.addr, "/"));
    assert_eq!(response.status, 502);
    near(ms, 10.0);
}

/// Two delays at one place, passed one after the other, are two draws. No request takes less than its draws, and a busy
/// machine only makes it longer: one of several rounds has to come near their mean.
#[test]
pub fn draws_belong_to_places_and_requests() {
    const REQUESTS: u32 = 200;
    let served = serve_node("delay(dist.exponential(3*ms), delay(dist.exponential(3*ms), server(\"a\")))");
    let mut conn = Conn::new(&served.addr);
    let mut means = Vec::new();
    let has_come_near = (0..6).any(|_| {
        let sum: f64 = (0..REQUESTS).map(|_| timed(|| conn.get("/", "")).0).sum();
        means.push(sum / f64::from(REQUESTS));
        sum < 12.0 * f64::from(REQUESTS)
    });
    assert!(has_come_near && means.iter().all(|mean| *mean > 4.8), "{means:?}");
}
