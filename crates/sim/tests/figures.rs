//! Figures mean what they say, and claim no more than is known: rates, windows, intervals, sums, and warnings.

use std::sync::atomic::{AtomicBool, Ordering};
use weir_plan::{Metric, Plan};
use weir_policy::Kind;
use weir_sim::{Error, Extras, Goal, NodeResult, Options, Precision, ScenarioResult, run, run_with_extras};
use weir_topology::{Request, evaluate};

fn plan(source: &str) -> Plan {
    let request =
        Request { name: "test.star".into(), source: source.as_bytes().to_vec(), ..Request::default() };
    evaluate(&request).unwrap_or_else(|e| panic!("{}\n{source}", e[0])).plan
}

fn options() -> Options {
    Options {
        seed: 1,
        first: 0,
        replications: 10,
        settled_over: None,
        stretch: 1,
        requests: None,
        threads: 2,
        members: false,
        connections: false,
        scenarios: Vec::new(),
    }
}

fn simulate(source: &str, options: &Options) -> Result<Vec<ScenarioResult>, Error> {
    run(&plan(source), options, &|_, _| {}, &AtomicBool::new(false)).map(|r| r.scenarios)
}

#[track_caller]
fn results(source: &str) -> Vec<ScenarioResult> {
    simulate(source, &options()).unwrap_or_else(|e| panic!("{e:?}\n{source}"))
}

/// The result of `x` with this traffic and these settings.
#[track_caller]
fn result(node: &str, rest: &str) -> ScenarioResult {
    results(&format!("scenario(\"x\", {node}, {rest})\n")).remove(0)
}

#[track_caller]
fn node<'a>(of: &'a ScenarioResult, kind: &str) -> &'a NodeResult {
    of.nodes.iter().find(|n| n.kind == kind).expect("a node of that kind")
}

/// The warnings that contain one of these.
fn said<'a>(of: &'a ScenarioResult, what: &[&str]) -> Vec<&'a str> {
    of.warnings.iter().map(String::as_str).filter(|w| what.iter().any(|what| w.contains(what))).collect()
}

/// The phrases of warnings about a growing line.
const GROWS: [&str; 3] = ["overloaded", "will not settle", "not settled"];

/// Half of the messages are lost each way: only what comes back counts as a response, and as goodput.
#[test]
fn what_is_lost_is_no_response() {
    let r =
        result("cable(1 * ms, server(), loss = 0.3)", "traffic.constant(every = 10 * ms), requests = 8000");
    let lost = r.requests.errors.iter().find(|e| e.0 == Kind::Lost).expect("some are lost").1;
    let share = 1.0 - lost as f64 / r.requests.selected as f64;
    assert!((share - 0.49).abs() < 0.02, "{share}");
    for rate in [r.response_rate_per_s, r.goodput_per_s] {
        assert!((rate.value.unwrap() / (100.0 * share) - 1.0).abs() < 0.01, "{rate:?} {share}");
    }
    let r = result(
        "faulty(1 * us, 1000 * hours, server(), mode = \"blackhole\")",
        "traffic.constant(every = 10 * ms), requests = 80",
    );
    assert_eq!((r.response_rate_per_s.value, r.goodput_per_s.value), (Some(0.0), Some(0.0)));
}

/// The goodput of a server of 333/s is not above that, however high the load.
#[test]
fn goodput_is_no_more_than_the_system_can_do() {
    let r = result(
        "queue(delay(3 * ms, server()))",
        "traffic.poisson(rate = 400), requests = 20000, deadline = 10 * s",
    );
    assert_eq!(r.success.value, Some(1.0));
    let goodput = r.goodput_per_s.value.unwrap();
    assert!((325.0..=333.4).contains(&goodput), "{goodput}");
}

/// A closed loop whose requests run out long before its duration: the window is the middle half of the actual time.
#[test]
fn the_window_of_a_closed_loop_is_of_the_time_that_was() {
    let r = result(
        "queue(delay(40 * ms, server()))",
        "traffic.closed(1, think = dist.fixed(60 * ms)), requests = 1000, duration = 10 * hours",
    );
    assert_eq!(r.requests.total, 10 * 1000);
    assert_eq!(r.requests.selected, 10 * 500, "the middle half");
    let queue = node(&r, "queue");
    // Between the first and the last arrival of the window there are whole turns of 100 ms.
    assert!((queue.utilisation.value.unwrap() - 0.4).abs() < 1e-12, "{:?}", queue.utilisation);
    assert!((r.request_rate_per_s.value.unwrap() - 500.0 / 49.9).abs() < 1e-9);
}

/// Averages run between arrivals, not between the edges of the time.
#[test]
fn averages_of_a_closed_loop_run_between_arrivals() {
    let r = result(
        "queue(delay(40 * ms, server()))",
        "traffic.closed(1, think = dist.fixed(60 * ms)), duration = 1030 * ms",
    );
    // Arrivals at 60, 160, ...; those from 257.5 to 772.5 ms count: 260 to 760.
    assert_eq!(r.requests.selected, 10 * 6);
    assert!((node(&r, "queue").utilisation.value.unwrap() - 0.4).abs() < 1e-12);
}

/// One arrival outside of the middle half is better than none.
#[test]
fn a_closed_loop_selects_what_there_is() {
    let r = result("server()", "traffic.closed(1, think = dist.fixed(10 * s)), duration = 12 * s");
    assert_eq!((r.requests.total, r.requests.selected), (10, 10));
}

/// Even with every request in the window, its two halves show a drift.
#[test]
fn drift_of_a_closed_loop_is_seen() {
    let r = result(
        "warmup(delay(dist.exponential(10 * ms), server()), 50.0, time = 60 * s)",
        "traffic.closed(20, think = dist.exponential(100 * ms)), duration = 60 * s, window = \"all\"",
    );
    assert_eq!(said(&r, &["not settled"]).len(), 1, "{:?}", r.warnings);
}

/// Half of the answers are cut off at exactly 100 ms, which a histogram resolves to 33 us: the interval contains it.
#[test]
fn no_interval_is_finer_than_the_histogram() {
    let r = result(
        "timeout(100 * ms, delay(dist.exponential(140 * ms), server()))",
        "traffic.poisson(rate = 1000), requests = 20000",
    );
    let p90 = r.latency_all.p90;
    assert!(p90.low.unwrap() <= 100.0 && p90.high.unwrap() >= 100.0, "{p90:?}");
    assert!(p90.half_width().unwrap() < 0.04, "{p90:?}");
    // Equal values are known exactly.
    let r = result("delay(17 * ms, server())", "traffic.poisson(rate = 1000), requests = 4000");
    assert_eq!((r.latency_all.p50.value, r.latency_all.p50.half_width()), (Some(17.0), Some(0.0)));
}

/// A system that cannot keep up is called overloaded: at a load of 1 and just above in short runs, and where cores
/// are shared.
#[test]
fn what_cannot_keep_up_is_called_overloaded() {
    let queue = "queue(delay(dist.exponential(10 * ms), server()))";
    for (node, rest) in [
        (queue, "traffic.poisson(rate = 100), requests = 2000"),
        (queue, "traffic.poisson(rate = 102), requests = 500"),
        (queue, "traffic.poisson(rate = 120), requests = 20000"),
        (
            "concurrent(dist.exponential(8 * ms), cores = 2, contention = 0.2)",
            "traffic.poisson(rate = 100), requests = 40000",
        ),
        // Requests whose client gave up are served all the same.
        (
            "timeout(50 * ms, queue(delay(dist.exponential(10 * ms), server()), on_cancel = \"finish\"))",
            "traffic.poisson(rate = 110), requests = 20000",
        ),
    ] {
        let r = result(node, rest);
        assert!(!said(&r, &GROWS[..2]).is_empty(), "{node} {rest}: {:?}", r.warnings);
    }
    let r = result(queue, "traffic.poisson(rate = 50), requests = 20000");
    assert_eq!(said(&r, &GROWS), Vec::<&str>::new());
    let r = result("queue(delay(10 * ms, server()))", "traffic.constant(rate = 100), requests = 2000");
    assert_eq!(r.warnings, Vec::<String>::new(), "where nothing varies a load of 1 is none too much");
}

/// No bounded line is reported as growing, however high the load.
#[test]
fn bounded_lines_are_not_called_growing() {
    let queue = |more: &str| format!("queue(delay(dist.exponential(10 * ms), server()){more})");
    let open = "traffic.poisson(rate = 200), requests = 20000";
    for (node, rest) in [
        (queue(""), "traffic.poisson(rate = 200), requests = 20000, patience = 100 * ms"),
        (format!("timeout(100 * ms, {})", queue("")), open),
        (queue(", capacity = 20"), open),
        (queue(", timeout = 50 * ms"), open),
        (format!("queue({}, concurrency = 5, capacity = 10)", queue("")), open),
        (format!("lb.least_conn([{}], max_in_flight = 10, max_waiting = 5)", queue("")), open),
        (format!("limit.rate({}, 50)", queue("")), open),
        (queue(""), "traffic.closed(20, think = dist.exponential(1 * ms)), requests = 20000"),
        (
            "concurrent(dist.exponential(10 * ms), cores = 1)".into(),
            "traffic.poisson(rate = 200), requests = 20000, patience = 100 * ms",
        ),
    ] {
        let r = result(&node, rest);
        assert_eq!(said(&r, &GROWS), Vec::<&str>::new(), "{node} {rest}");
    }
}

/// What was known before a run is in its result, and in no other.
#[test]
fn what_check_knows_stands_in_the_result_of_that_scenario() {
    let found = results(
        "def dyno():\n    return queue(delay(dist.exponential(10 * ms), server()))\n\n\
         scenario(\"full\", dyno(), traffic.poisson(rate = 110), requests = 4000)\n\
         scenario(\"half\", dyno(), traffic.poisson(rate = 50), requests = 4000)\n\
         scenario(\"far\", server(\"far\", addr = \"127.0.0.1:80\"), traffic.poisson(rate = 50), requests = 4000)\n",
    );
    let of = |i: usize, what: &str| said(&found[i], &[what]).len();
    assert_eq!((of(0, "offered load"), of(1, "offered load"), of(2, "offered load")), (1, 0, 0));
    assert_eq!((of(0, "no model"), of(1, "no model"), of(2, "no model")), (0, 0, 1));
    // Line numbers are not part of a result.
    assert!(found.iter().flat_map(|r| &r.warnings).all(|w| !w.contains("test.star")));
}

/// A scenario that selects nothing says why, and so does one that ends before everything was sent.
#[test]
fn what_is_not_there_is_explained() {
    let r = result("server()", "traffic.constant(every = 10 * s), duration = 5 * s");
    assert!(said(&r, &["nothing selected"])[0].contains("duration ended before the first arrival"));
    let r = result("server()", "traffic.closed(3, think = dist.fixed(10 * s)), duration = 5 * s");
    assert!(said(&r, &["nothing selected"])[0].contains("no user finished thinking"));
    let hole = "faulty(1 * us, 1000 * hours, server(), mode = \"blackhole\")";
    let r = result(hole, "traffic.closed(3, think = dist.exponential(1 * s)), requests = 100");
    let early = said(&r, &["ended early"]);
    assert!(early[0].contains("of 100 requests 3 were sent") && early[0].contains("never come"), "{early:?}");
    let r = result("server()", "traffic.constant(every = 10 * ms), requests = 100");
    assert_eq!(said(&r, &["nothing selected", "ended early"]), Vec::<&str>::new());
}

/// Sums that exceed 64 bits are neither reported nor made up.
#[test]
fn sums_are_exact_or_not_said() {
    let long = result("delay(876000 * hours, server())", "traffic.constant(every = 1 * ms), requests = 20");
    assert_eq!(long.latency_all.mean.value, Some(876_000.0 * 3_600_000.0));
    assert_eq!(node(&long, "delay").latency_part_ms.value, None);
    assert_eq!(said(&long, &["too long to add up"]).len(), 1);
    // Below 584 years in all they add up to the nanosecond.
    let short = result("delay(8760 * hours, server())", "traffic.constant(every = 1 * ms), requests = 20");
    assert_eq!(node(&short, "delay").latency_part_ms.value, Some(8_760.0 * 3_600_000.0));
    assert_eq!(said(&short, &["too long to add up"]), Vec::<&str>::new());
}

/// A run that was too short begins anew and is longer; interrupted before anything of that is finished, it has what the
/// shorter one has.
#[test]
fn an_interrupt_keeps_a_run_that_was_too_short() {
    let stop = AtomicBool::new(false);
    let progress = |done, all| stop.store(done == all, Ordering::Relaxed);
    let source = "scenario(\"x\", queue(delay(dist.exponential(10*ms), server())), traffic.poisson(rate=90), requests=450)\n";
    let precision = Precision { goals: vec![Goal { metric: Metric::Mean, share: 0.01 }], most: 1_000 };
    let wants = Extras { each: false, precision: Some(precision) };
    let result = run_with_extras(&plan(source), &options(), &wants, &progress, &stop).expect("it runs");
    assert!(result.interrupted);
    assert_eq!((result.stretch, result.scenarios[0].requests.total), (1, 4_500));
}

/// The longest wait behind a process that begins cold, by the fluid limit: C cores, work w, f times longer at first and falling over
/// K requests, λ requests a second in a line before 16 places. With x = (f − C/(wλ))/(f − 1) the backlog is greatest after
/// t = K·w(fx − (f − 1)x²/2)/C, and waits (λt − xK)/λ: 10.3, 19.3 and 6.7 s.
#[test]
fn the_backlog_of_a_cold_process_is_that_of_the_fluid_limit() {
    let (rate, work_s, cores) = (1000.0_f64, 0.002, 4.0);
    for (factor, requests, said_s) in
        [(8.0_f64, 8_000.0, 10.3_f64), (8.0, 15_000.0, 19.3), (4.0, 20_000.0, 6.7)]
    {
        let x = (factor - cores / (work_s * rate)) / (factor - 1.0);
        let t = requests * work_s * (factor * x - (factor - 1.0) * x * x / 2.0) / cores;
        let wait_s = (rate * t - x * requests) / rate;
        assert!((wait_s - said_s).abs() < 0.06, "{wait_s} by the formula");
        let cold = format!("warmup(concurrent(2 * ms, cores = 4), {factor:?}, requests = {requests})");
        let node = format!("queue({cold}, concurrency = 16)");
        let rest = "traffic.constant(rate = 1000), duration = 90 * s, window = \"all\"";
        let max_s = result(&node, rest).latency_all.max.expect("requests") / 1e3;
        assert!((max_s / wait_s - 1.0).abs() < 0.05, "{max_s} s, by the formula {wait_s}");
    }
}

/// The same behind a deploy in place, where each request of the backlog is a new connection as well, which costs c at the cores: t =
/// K·(w(fx − (f − 1)x²/2) − cx)/(C − λc), and with f = 4 and K = 20,000 the longest waits are 6.7, 10.7, 17.8 and 26.7 s.
#[test]
fn a_deploy_ends_in_the_backlog_of_the_fluid_limit() {
    let (rate, work_s, cores, factor, requests) = (1000.0_f64, 0.002, 4.0, 4.0_f64, 20_000.0);
    for (cost_ms, said_s) in [(0.0_f64, 6.7_f64), (1.5, 10.7), (2.5, 17.8), (3.0, 26.7)] {
        let (x, cost_s) = ((factor - cores / (work_s * rate)) / (factor - 1.0), cost_ms / 1e3);
        let work = work_s * (factor * x - (factor - 1.0) * x * x / 2.0) - cost_s * x;
        let t = requests * work / (cores - rate * cost_s);
        let wait_s = (rate * t - x * requests) / rate;
        assert!((wait_s - said_s).abs() < 0.06, "{wait_s} by the formula");
        let source = format!(
            "def app():\n    \
             work = warmup(concurrent(2 * ms, cores = 4), 4.0, requests = 20000, at_start = \"warm\")\n    \
             return queue(server(\"app\", model = work, connect = 0 * s, connect_cost = {cost_ms:?} * ms), concurrency = 16)\n\
             apps = fleet(4, app, life = life(boot = 1 * s))\n\
             deploy = change.rolling(apps, at = 20 * s, first = \"in_place\", count = 1)\n\
             scenario(\"s\", lb.round_robin(apps), traffic.constant(rate = 4000), duration = 120 * s, window = \"all\", \
             events = [deploy])\n"
        );
        let max_s = results(&source)[0].latency_all.max.expect("requests") / 1e3;
        assert!((max_s / wait_s - 1.0).abs() < 0.05, "{cost_ms} ms: {max_s} s, by the formula {wait_s}");
    }
}

/// Threads that are made under load cost work, and stay: the second burst is faster than the first, and one that has all at first
/// is faster than both.
#[test]
fn threads_that_are_made_cost_once() {
    let mean_ms = |more: &str| {
        let node = format!("concurrent(20 * ms, cores = 64, threads = 32{more})");
        let rest = "traffic.closed(users = 32, think = dist.fixed(0 * s)), requests = 64, window = \"all\"";
        result(&node, rest).latency_all.mean.value.expect("requests")
    };
    assert_eq!(mean_ms(""), 20.0);
    // Of 64 requests the first 24 that find no thread pay 10 ms.
    assert_eq!(mean_ms(", min_threads = 8, thread_cost = 10 * ms"), 20.0 + 10.0 * 24.0 / 64.0);
}

/// A newcomer behind a gate gets its share when the balancer is let in: after half of the ramp on average, whatever address the
/// balancer has in a replication.
#[test]
fn a_gate_lets_balancers_in_evenly() {
    let requests_of_newcomer = |node: &str| {
        let source = format!(
            "apps = fleet(1, lambda: {node})\n\
             check = health.http(\"/\", interval = 100 * ms, rise = 1, fall = 1, jitter = 0, initial = \"checked\")\n\
             top = lb.round_robin(apps, health = check)\n\
             scenario(\"x\", top, traffic.constant(rate = 100), duration = 40 * s, window = \"all\", events = [change.join(apps, at = 10 * s)])\n"
        );
        let options = Options { members: true, replications: 400, ..options() };
        let result = simulate(&source, &options).unwrap_or_else(|e| panic!("{e:?}\n{source}")).remove(0);
        assert_eq!(result.success.value, Some(1.0));
        let servers = result.nodes.iter().filter(|node| node.kind == "server");
        servers.map(|node| node.requests).next_back().expect("a newcomer") as f64 / 400.0
    };
    // One of two, from when the first check has passed: at most an interval after it joined.
    let at_once = requests_of_newcomer("server(\"app\")");
    assert!((1_490.0..1_501.0).contains(&at_once), "{at_once}");
    // In a ramp of 20 s the time until it is let in is even: half of its thirty seconds less ten, with a deviation of 5.8 s.
    let gated = requests_of_newcomer("gate(server(\"app\"), ramp = 20 * s)");
    let deviation = 50.0 * 20.0 / 12.0_f64.sqrt() / 20.0;
    assert!((gated - (at_once - 500.0)).abs() < 4.0 * deviation + 5.0, "{gated} of {at_once}");
    assert_eq!(requests_of_newcomer("gate(server(\"app\"), ramp = None)"), at_once);
}
