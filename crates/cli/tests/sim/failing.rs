//! What fails, is tried again, cut off or takes several ways, against the formulas. Times in ms.

use crate::shared::simulated::{KnownFigures, errors, judge, kinds, options, simulate};

/// A node that is up 90 ms and down 10 ms on average: each mode gives what it must. A request of 9 ms that enters a
/// process is reset if it is killed meanwhile: exp(−9/90) of those that find it up go through.
#[test]
fn each_mode_gives_what_it_must() {
    let source = r#"
def failing(name, mode, node, time = None, starts = "up"):
    x = faulty(90 * ms, 10 * ms, node, mode = mode, starts = starts)
    scenario(name, timeout(time, x) if time else x, traffic.poisson(every = 1 * ms), requests = 30000)

work = delay(9 * ms, server())
failing("refuse", "refuse", work)
failing("down first", "refuse", work, starts = "down")
failing("crash", "crash", work)
failing("blackhole", "blackhole", work, time = 29 * ms)
failing("slow", "slow", work)
scenario("lazy", faulty(90 * ms, 10 * ms, work, clock = "lazy"), traffic.poisson(every = 1 * ms), requests = 30000)
"#;
    let up = 0.9;
    let alive = (-0.1f64).exp();
    // Of those reset, the mean time up to the crash; those that find it dead take no time.
    let reset = 90.0 * (1.0 - alive) - 9.0 * alive;
    // A lazy clock is seen by the next request only: each period is longer by a gap.
    let lazy = 91.0 / 102.0;
    judge(
        source,
        &[
            ("refuse", vec![("success", up), ("mean", 9.0 * up), ("ok_mean", 9.0)]),
            ("down first", vec![("success", up)]),
            ("crash", vec![("success", up * alive), ("mean", up * (9.0 * alive + reset)), ("ok_mean", 9.0)]),
            ("blackhole", vec![("success", up), ("mean", 9.0 * up + 29.0 * (1.0 - up))]),
            ("slow", vec![("success", 1.0), ("mean", 9.0 * up + 90.0 * (1.0 - up))]),
            ("lazy", vec![("success", lazy), ("mean", 9.0 * lazy)]),
        ],
    );
    let kinds_of: Vec<_> = simulate(source, &options()).iter().map(kinds).collect();
    let want: [&[&str]; 6] =
        [&["refused"], &["refused"], &["connect_failed", "reset"], &["timeout"], &[], &["refused"]];
    assert_eq!(kinds_of, want);
}

/// Nodes of a block fail together: trying another one helps nothing; those of two blocks fail independently.
#[test]
fn blocks_fail_together() {
    let source = r#"
def two():
    return [server(), server()]

def tried(name, nodes):
    scenario(name, retry(2, lb.random(nodes)), traffic.poisson(every = 1 * ms), requests = 30000)

tried("one block", block(90 * ms, 10 * ms, two()))
tried("two blocks", block(90 * ms, 10 * ms, [server()]) + block(90 * ms, 10 * ms, [server()]))
tried("each its own", [faulty(90 * ms, 10 * ms, x) for x in two()])
tried("together", [faulty(90 * ms, 10 * ms, x, together = "rack") for x in two()])
"#;
    let together = || vec![("success", 0.9), ("attempts", 1.1)];
    let apart = || vec![("success", 1.0 - 0.1 * 0.1), ("attempts", 1.1)];
    let theory = [
        ("one block", together()),
        ("two blocks", apart()),
        ("each its own", apart()),
        ("together", together()),
    ];
    judge(source, &theory);
}

/// Independent failures p, n attempts: success 1−pⁿ, (1−pⁿ)/(1−p) attempts. With `work="same"` all attempts of a
/// request fare alike; a second look at an exponential work under a limit of its mean fails again with 1/e.
#[test]
fn retries_follow_the_formulas() {
    let source = r#"
def run(name, node):
    scenario(name, node, traffic.poisson(every = 1 * ms), requests = 30000)

run("three", retry(3, flaky(0.05, delay(4 * ms, server())), on = ["status_5xx"]))
run("same", retry(3, flaky(0.3, server()), on = ["status_5xx"], work = "same"))

def again(draws):
    return retry(3, timeout(100 * ms, delay(dist.exponential(100 * ms), server())), on = ["timeout"], work = draws)

run("work anew", again("redraw"))
run("work the same", again("same"))

def two_bad(exclude):
    return retry(2, lb.random([flaky(1.0, server()), flaky(1.0, server()), server(), server()]), on = ["status_5xx"], exclude = exclude)

run("any", two_bad("none"))
run("another", two_bad("tried"))
scenario("passed over", lb.random([faulty(1 * us, 100000 * hours, server(), mode = "crash")] + [server() for _ in range(3)]), traffic.poisson(rate = 100), requests = 40000)
"#;
    let (e, s) = ((-1.0f64).exp(), |p: f64, n: i32| 1.0 - p.powi(n));
    let tries = |p: f64, n: i32| s(p, n) / (1.0 - p);
    // Of one in four picks at 100/s, it is met anew once per second and a wait of 4 arrivals.
    let met = 1.0 / (100.0 + 4.0);
    judge(
        source,
        &[
            ("three", vec![("success", 0.999_875), ("attempts", 1.0525), ("mean", 4.0 * 1.0525)]),
            ("same", vec![("success", 0.7), ("attempts", 1.6)]),
            (
                "work anew",
                vec![
                    ("success", s(e, 3)),
                    ("attempts", tries(e, 3)),
                    ("mean", 100.0 * (1.0 - e) * tries(e, 3)),
                ],
            ),
            (
                "work the same",
                vec![
                    ("success", 1.0 - e),
                    ("attempts", 1.0 + 2.0 * e),
                    ("mean", 100.0 * (1.0 - 2.0 * e) + 300.0 * e),
                ],
            ),
            ("any", vec![("success", 0.75), ("attempts", 1.5)]),
            ("another", vec![("success", 1.0 - 0.5 / 3.0), ("attempts", 1.5)]),
            ("passed over", vec![("success", 1.0 - met)]),
        ],
    );
}

/// Exponential work at once at n nodes: all are done after s·Hₙ, one after s/n, k of them after the difference of Hs;
/// one after another it is Erlang's. A limit that one branch keeps with 1 − 1/e, all of five with the fifth power.
#[test]
fn several_at_once_and_one_after_another() {
    let source = r#"
def work():
    return delay(dist.exponential(100 * ms), server())

def run(name, node):
    scenario(name, node, traffic.poisson(every = 1 * ms), requests = 40000)

run("all", fanout(pool(5, work)))
run("one", fanout(pool(5, work), need = 1))
run("three", fanout(pool(5, work), need = 3))
run("in turn", sequence(pool(5, work)))
run("in time", fanout([timeout(100 * ms, x) for x in pool(5, work)]))
run("one in time", fanout([timeout(100 * ms, x) for x in pool(5, work)], need = 1))
"#;
    let h = |from: i32| (from..=5).map(|i| 1.0 / f64::from(i)).sum::<f64>();
    let in_time = 1.0 - (-1.0f64).exp();
    judge(
        source,
        &[
            ("all", vec![("mean", 228.333_333)]),
            ("one", vec![("mean", 20.0), ("p50", 20.0 * 2f64.ln()), ("p99", 20.0 * 100f64.ln())]),
            ("three", vec![("mean", 100.0 * h(3))]),
            // The median of Erlang(5, 500): 4.670909 stages.
            ("in turn", vec![("mean", 500.0), ("p50", 467.090_9)]),
            // Either all in time, or the limit of the first that is not.
            ("in time", vec![("success", in_time.powi(5))]),
            ("one in time", vec![("success", 1.0 - (1.0 - in_time).powi(5))]),
        ],
    );
}

/// A crossing lost with p and sent again after d, 2d, 4d, ... adds d·p/(1−2p); lost for good, it fails at the limit.
#[test]
fn lossy_cables() {
    let source = r#"
p = traffic.poisson(every = 1 * ms)
scenario("again", cable(5 * ms, server(), loss = 0.2, resend = 100 * ms), p, requests = 60000)
scenario("lost", timeout(50 * ms, cable(5 * ms, server(), loss = 0.1)), p, requests = 30000)
"#;
    let through = 0.9 * 0.9;
    judge(
        source,
        &[
            ("again", vec![("mean", 10.0 + 2.0 * 100.0 * 0.2 / 0.6), ("success", 1.0)]),
            ("lost", vec![("success", through), ("mean", 10.0 * through + 50.0 * (1.0 - through))]),
        ],
    );
}

/// One of twenty exponential servers at 60 % behind a limit: what becomes of the work that is cut off decides.
///
/// finish: M/M/1, untouched, cut at the limit. stop: what is cut off leaves its work undone, so the work before an
/// arrival is that of M/M/1 cut at the limit (a finite dam). skip: those in line leave, the one inside goes on.
#[test]
fn what_a_queue_does_with_what_is_cancelled() {
    let (rate, mean, limit) = (0.03f64, 20.0, 60.0);
    let mu = 1.0 / mean;
    let d = mu - rate;
    let e = (-d * limit).exp();
    let finish = 1.0 - e;
    let (mass, moment) = (rate * (1.0 - e) / d, rate * (1.0 - e * (1.0 + d * limit)) / d / d);
    let cut = |late: f64| -> KnownFigures {
        let z = 1.0 + mass + late;
        let done =
            (1.0 - (-mu * limit).exp() + mass - (-mu * limit).exp() * ((rate * limit).exp() - 1.0)) / z;
        vec![("success", done), ("mean", (moment + limit * late) / z + done * mean)]
    };
    let source = r#"
def run(how):
    servers = pool(20, lambda: queue(delay(dist.exponential(20 * ms), server()), on_cancel = how))
    scenario(how, timeout(60 * ms, lb.random(servers)), traffic.poisson(rate = 600), requests = 30000)

[run(how) for how in ["stop", "skip", "finish"]]
"#;
    judge(
        source,
        &[
            ("stop", cut(0.0)),
            ("skip", cut(rate * e / mu)),
            ("finish", vec![("success", finish), ("mean", finish / d)]),
        ],
    );
}

/// A line that requests leave after a patience: M/M/c with impatient clients (Barrer 1957), by level crossing of the
/// offered wait.
#[test]
fn waits_that_end() {
    let (c, gap, mean, patience) = (10, 8.0, 80.0, 20.0);
    let (rate, mu) = (1.0 / gap, 1.0 / mean);
    let mut p = vec![1.0];
    for k in 1..c {
        p.push(p[k - 1] * rate / mu / k as f64);
    }
    let f0 = rate * p[c - 1];
    // Ten servers of 80 ms and a gap of 8 ms: the density of the wait is flat, d = cμ − λ being 0.
    let (mass, moment) = (patience, patience * patience / 2.0);
    let late = f0 / (c as f64 * mu);
    let z = p.iter().sum::<f64>() + f0 * mass + late;
    let (lost, waited) = (late / z, f0 * moment / z);
    let source = r#"
scenario("x", queue(delay(dist.exponential(80 * ms), server()), concurrency = 10, timeout = 20 * ms), traffic.poisson(every = 8 * ms), requests = 30000)
"#;
    let known = vec![
        ("success", 1.0 - lost),
        ("mean", mean * (1.0 - lost) + waited + patience * lost),
        ("ok_mean", mean + waited / (1.0 - lost)),
    ];
    judge(source, &[("x", known)]);
}

/// Cold servers: over their first n requests work takes (f+1)/2 + (f−1)/2n times as long, over the first second its
/// share of the way; exactly, since nothing is drawn.
#[test]
fn warm_ups() {
    let source = r#"
def run(name, more, n):
    scenario(name, more, traffic.constant(every = 1 * ms), requests = n, window = "all")

work = delay(1 * ms, server())
run("requests", warmup(work, 10.0, requests = 1000), 1000)
run("then warm", warmup(work, 10.0, requests = 1000), 4000)
run("time", warmup(work, 3.0, time = 1 * s), 1000)
run("either", warmup(work, 3.0, requests = 500, time = 1 * s), 1000)
"#;
    let first = 5.5 + 9.0 / 2000.0;
    // Arrivals at 1, 2, ... ms: 3 − 2·k/1000.
    let time = 3.0 - 2.0 * 500.5 / 1000.0;
    // The first of all is further by time, a millisecond into the second.
    let either = 0.5 * (2.0 + 2.0 / 1000.0) + 0.5 - 0.002 / 1000.0;
    let got = simulate(source, &weir_sim::Options { replications: 2, ..options() });
    for (s, want) in got.iter().zip([first, (first + 3.0) / 4.0, time, either]) {
        let mean = s.latency_all.mean.value.unwrap();
        assert!((mean - want).abs() < 1e-6, "{}: {mean}, must be {want}", s.name);
    }
}

/// What is lost has no latency, counts as failed, and is warned of; the rest is as it was.
#[test]
fn the_lost_are_counted() {
    let source = "scenario(\"x\", cable(5 * ms, server(), loss = 0.1), traffic.poisson(every = 1 * ms), requests = 40000)\n";
    let s = &simulate(source, &options())[0];
    let (n, lost) = (s.requests.selected as f64, errors(s, "lost") as f64);
    // Binomial: four standard deviations.
    assert!((lost / n - 0.19).abs() < 4.0 * (0.19 * 0.81 / n).sqrt());
    assert_eq!((s.latency_all.min, s.latency_all.max), (Some(10.0), Some(10.0)));
    assert!(s.warnings.iter().any(|w| w.starts_with("lost:")), "{:?}", s.warnings);
}
