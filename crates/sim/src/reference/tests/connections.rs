//! Connections to servers: both engines in any topology, figures without cost that change nothing, and closed forms.

use super::engine::{agree, seeds};
use super::fleets;
use super::hops::layers;
use super::random::Draws;
use super::{Case, options, plan};
use crate::results::result::{NodeResult, Results, ScenarioResult};
use crate::results::run::{Options, run_with};
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;

/// A file whose servers have connections of random kinds.
fn connected(source: &str, seed: u64) -> String {
    let mut d = Draws::new(seed.wrapping_add(7 << 40));
    let connect = d.choose(&["0 * s", "1 * ms", "e(2)", "e(5)", "dist.uniform(0 * ms, 4 * ms)"]);
    let kept =
        d.choose(&["", ", idle_timeout = 5 * ms", ", idle_timeout = 30 * ms", ", idle_timeout = None"]);
    let limit = d.choose(&["", "", ", connect_timeout = 3 * ms", ", connect_timeout = 1 * ms"]);
    let kind = d.choose(&["\"h1\"", "\"h2\"", "\"h2\", max_streams = 1", "\"h2\", max_streams = 2"]);
    let ends = d.choose(&[
        "",
        "",
        ", max_age = 20 * ms",
        ", max_requests = 2",
        ", max_age = 9 * ms, max_requests = 3",
    ]);
    let cost = d.choose(&["", "", ", connect_cost = 1 * ms", ", connect_cost = 4 * ms"]);
    let helper = format!(
        "def served(*args, **more):\n    return server(connect = {connect}, protocol = {kind}{kept}{limit}{ends}{cost}, *args, **more)\n\n"
    );
    let at = source.find("n0 = ").unwrap_or(source.find("def a_member").unwrap_or(0));
    let at = source[..at].rfind("\n\n").map_or(0, |end| end + 2);
    let (head, rest) = source.split_at(at);
    format!("{head}{helper}{}", rest.replace("server(", "served("))
}

/// However requests are cut off, refused or lost, and whatever comes and goes.
#[test]
fn both_engines_agree_on_connections() {
    for seed in seeds(150) {
        let of_fleets = [fleets::file(seed), fleets::file_of(seed, true)];
        for source in layers(seed).into_iter().chain(of_fleets) {
            let source = connected(&source, seed);
            agree(&plan(&source), &format!("connections seed {seed}:\n{source}"));
        }
    }
}

fn run(plan: &Plan, connections: bool, replications: u32) -> Results {
    let options = Options { connections, replications, ..options() };
    run_with(plan, &options, &|_, _| {}, &AtomicBool::new(false), true).unwrap_or_else(|e| panic!("{e:?}"))
}

/// `--connections` counts, and changes nothing: no request waits for an opening that takes no time.
#[test]
fn connections_without_cost_change_no_figure() {
    let mut seen = 0;
    for seed in seeds(150) {
        for source in layers(seed).into_iter().chain([fleets::file(seed)]) {
            let plan = plan(&source);
            let (mut with, without) = (run(&plan, true, 1), run(&plan, false, 1));
            for scenario in &mut with.scenarios {
                seen += u64::from(scenario.connections.take().is_some_and(|c| c.peak > 0));
                scenario.nodes.retain(|node| node.kind != "connection");
                scenario.nodes.iter_mut().for_each(|node| node.connections = None);
            }
            let bare = |of: &ScenarioResult| ScenarioResult {
                nodes: of.nodes.iter().map(|node| NodeResult { id: None, ..node.clone() }).collect(),
                ..of.clone()
            };
            for (with, without) in with.scenarios.iter().zip(&without.scenarios) {
                assert_eq!(bare(with), bare(without), "seed {seed}:\n{source}");
            }
        }
    }
    assert!(seen > 500, "few files have connections: {seen}");
}

/// Requests 1 ms apart that take 5 ms: five connections at first, which the sixth finds idle; what opening takes is the
/// request's.
#[test]
fn an_opening_is_part_of_the_latency() {
    let server = "server(model = delay(5 * ms, server()), addr = \"10.0.0.1:80\", protocol = \"h1\", connect = 2 * ms)";
    Case::new(&[0, 1, 8], &format!("root = {server}\n")).gives(&["7 ok", "7 ok", "5 ok"]);
    // By HTTP/2 the second waits for the connection of the first.
    let h2 = server.replace("h1", "h2");
    let went = Case::new(&[0, 1, 8], &format!("root = {h2}\n")).gives(&["7 ok", "6 ok", "5 ok"]);
    let held = went.result.connections.expect("it has connections");
    assert_eq!((held.peak, held.opened_per_s.value), (1, Some(1.0 / 0.008)));
    // One stream: the second opens the next, once the first has its own.
    let one = h2.replace("connect =", "max_streams = 1, connect =");
    Case::new(&[0, 1, 8], &format!("root = {one}\n")).gives(&["7 ok", "8 ok", "5 ok"]);
}

/// The server's work for a connection shares its cores with its requests, and needs no thread.
#[test]
fn what_a_connection_costs_is_work_at_the_cores_of_its_server() {
    let root = |threads: &str| {
        format!(
            "root = server(model = concurrent(5 * ms, cores = 1{threads}), addr = \"10.0.0.1:80\", connect = 0 * s, connect_cost = 2 * ms)\n"
        )
    };
    // The two handshakes share the core until 3 ms. The first request works beside what is left of the second's until 5 ms,
    // then beside the second request.
    Case::new(&[0, 1], &root("")).gives(&["13 ok", "13 ok"]);
    // Or alone, with the one thread.
    Case::new(&[0, 1], &root(", threads = 1")).gives(&["9 ok", "13 ok"]);
    // A process that is cold is not slower at it.
    let cold = "root = server(model = warmup(concurrent(5 * ms, cores = 1), 3.0, requests = 1), addr = \"10.0.0.1:80\", connect = 1 * ms, connect_cost = 2 * ms)\n";
    Case::new(&[0], cold).gives(&["18 ok"]);
}

#[test]
fn what_a_connection_costs_takes_a_slot_where_no_cores_are_shared() {
    let root = |queue: &str| {
        format!(
            "root = server(model = queue(delay(5 * ms, server()), concurrency = 1{queue}), addr = \"10.0.0.1:80\", connect = 0 * s, connect_cost = 2 * ms)\n"
        )
    };
    // The second handshake is in line before the first request.
    Case::new(&[0, 1], &root("")).gives(&["9 ok", "13 ok"]);
    Case::new(&[0, 1], &root(", capacity = 0")).gives(&["7 ok", "0 connect_failed"]);
    Case::new(&[0, 4], &root(", timeout = 1 * ms")).gives(&["7 ok", "1 connect_failed"]);
    let neither = "root = server(model = delay(5 * ms, server()), addr = \"10.0.0.1:80\", connect = 1 * ms, connect_cost = 2 * ms)\n";
    Case::new(&[0, 1], neither).gives(&["8 ok", "8 ok"]);
}

#[test]
fn a_crash_ends_the_work_for_connections() {
    let source = "root = lb.random([faulty(dist.fixed(10 * ms), dist.fixed(10 * ms), server(model = concurrent(5 * ms, cores = 1), connect = 0 * s, connect_cost = 4 * ms), mode = \"crash\")])\n";
    Case::new(&[8, 9, 15, 20], source).gives(&[
        "2 connect_failed",
        "1 connect_failed",
        "0 connect_failed",
        "9 ok",
    ]);
}

#[test]
fn an_opening_that_takes_too_long_fails_all_who_wait() {
    let server = "server(model = delay(5 * ms, server()), addr = \"10.0.0.1:80\", protocol = \"h2\", connect = 9 * ms, connect_timeout = 3 * ms)";
    let went = Case::new(&[0, 1, 8], &format!("root = {server}\n")).gives(&[
        "3 connect_failed",
        "2 connect_failed",
        "3 connect_failed",
    ]);
    let held = went.result.connections.expect("it has connections");
    assert_eq!((held.peak, held.opened_per_s.value, held.reused.value), (0, Some(0.0), Some(0.0)));
}

/// The client of the first gives up while it opens; the second, which waited for it, opens one then.
#[test]
fn whoever_is_cut_off_opens_none() {
    let server = "server(model = delay(5 * ms, server()), addr = \"10.0.0.1:80\", protocol = \"h2\", connect = 4 * ms)";
    let root = format!("root = timeout(3 * ms, {server})\n");
    let went = Case::new(&[0, 1, 2], &root).gives(&["3 timeout", "3 timeout", "3 timeout"]);
    let held = went.result.connections.expect("it has connections");
    assert_eq!((held.peak, held.opened_per_s.value), (0, Some(0.0)));
    let root = format!("root = timeout(10 * ms, {server})\n");
    Case::new(&[0, 1, 30], &root).gives(&["9 ok", "8 ok", "5 ok"]);
}

/// A crash ends the connections, and while the process is down none is made.
#[test]
fn a_crash_ends_the_connections_of_a_server() {
    let source = "root = lb.random([faulty(dist.fixed(10 * ms), dist.fixed(10 * ms), delay(1 * ms, server(connect = 2 * ms, protocol = \"h1\")), mode = \"crash\")])\n";
    let went = Case::new(&[0, 5, 15, 25], source).gives(&["3 ok", "1 ok", "0 connect_failed", "3 ok"]);
    let held = went.result.connections.expect("it has connections");
    assert_eq!((held.peak, held.closed_per_s[0].value), (1, Some(1.0 / 0.025)));
    // The second is open when the last request has arrived.
    assert_eq!(held.opened_per_s.value, Some(1.0 / 0.025));
}

/// A pair of loop and server that meets `rate` requests a second, idle time-out 4 s: by HTTP/2 an opening happens after a gap
/// of 4 s without a request on the connection, whatever the answers' distribution; by HTTP/1.1 the same for answers in no time
/// (M/G/inf).
#[test]
fn a_pair_is_as_the_closed_form_says() {
    let file = |rate: f64, protocol: &str, model: &str| {
        plan(&format!(
            "s1 = server(addr = \"10.0.0.1:80\", protocol = \"{protocol}\", idle_timeout = 4 * s, connect = 0 * s, model = {model})\n\
             scenario(\"s\", s1, traffic.poisson(rate = {rate}), requests = 40000, window = \"all\")\n"
        ))
    };
    for (rate, protocol, model, mean_s) in [
        (0.5, "h2", "dist.exponential(300 * ms)", 0.3),
        (0.25, "h2", "delay(dist.fixed(1 * s), server())", 1.0),
        (0.078125, "h2", "dist.exponential(50 * ms)", 0.05),
        (0.5, "h1", "0 * s", 0.0),
    ] {
        let results = run(&file(rate, protocol, model), false, 10);
        let held = results.scenarios[0].connections.clone().expect("it has connections");
        let none = f64::exp(-rate * (4.0 + mean_s));
        for (name, found, wanted) in [
            ("opened/s", held.opened_per_s, rate * none),
            ("open", held.open, 1.0 - none),
            ("reused", held.reused, 1.0 - none),
        ] {
            let found = found.value.expect("it is known");
            assert!((found / wanted - 1.0).abs() < 0.02, "{rate}, {protocol}: {name} {found}, not {wanted}");
        }
    }
    // HTTP/1.1 with answers that take time: 0.1086 openings a second and 1.121 connections.
    let results = run(&file(0.5, "h1", "dist.exponential(300 * ms)"), false, 10);
    let held = results.scenarios[0].connections.clone().expect("it has connections");
    for (found, wanted) in [(held.opened_per_s, 0.1086), (held.open, 1.121)] {
        let found = found.value.expect("it is known");
        assert!((found / wanted - 1.0).abs() < 0.02, "{found}, not {wanted}");
    }
}

/// The article's instance: 16 loops and 800 servers, 1,000 requests a second, an idle time-out of 4 s, answers of 50 ms:
/// 3,470 connections and 729 openings a second; in 16 subsets 795 and 6.3. With 60 s 12,683 and 9.2; 800 and none. The window is
/// the middle half of 400 s: the first 100 s open what there is.
#[test]
fn the_instance_of_the_article_has_its_connections() {
    let file = |idle: &str, subset: &str| {
        plan(&format!(
            "apps = pool(800, lambda: server(model = dist.exponential(50 * ms), protocol = \"h2\", connect = 0 * s, idle_timeout = {idle}))\n\
             root = listen(\":0\", lb.random(apps{subset}), loops = 16)\n\
             scenario(\"s\", root, traffic.poisson(rate = 1000), requests = 400000)\n"
        ))
    };
    let subsets = ", subset = subset.loops(min = 25, max = 50)";
    for (idle, subset, open, opened) in [
        ("4 * s", "", 3472.0, 729.0),
        ("4 * s", subsets, 795.0, 6.3),
        ("60 * s", "", 12683.0, 9.2),
        ("60 * s", subsets, 800.0, 0.0),
    ] {
        let results = run(&file(idle, subset), false, 1);
        let held = results.scenarios[0].connections.clone().expect("it has connections");
        let found = (held.open.value.expect("it is known"), held.opened_per_s.value.expect("it is known"));
        assert!((found.0 / open - 1.0).abs() < 0.02, "{idle}{subset}: {found:?}, not {open}, {opened}");
        assert!(
            (found.1 - opened).abs() <= (opened * 0.06).max(0.05),
            "{idle}{subset}: {found:?}, not {open}, {opened}"
        );
        let row =
            results.scenarios[0].nodes.iter().find(|node| node.kind == "server").expect("a row of servers");
        let of_row = row.connections.as_ref().expect("it has connections");
        assert_eq!((of_row.open, of_row.peak), (held.open, held.peak), "all lead to the pool");
    }
}
