//! The engine against its reference: the same bytes on any topology that both run.

use super::core::{random_file, zuul};
use super::random::{Draws, random_plan, traffic};
use super::{options, plan};
use crate::results::result::Results;
use crate::results::run::{Options, run_with};
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;

/// A node of a kind that many topologies have, over two existing ones.
pub(super) fn node(d: &mut Draws, a: &str, b: &str, retries: &mut u32) -> String {
    let (k, l) = (1 + d.number(4), 1 + d.number(9));
    let cancel = d.choose(&["stop", "skip", "finish"]);
    match d.number(30) {
        0 => format!("cable({k} * ms, {a})"),
        1 => format!("cable(e({k}), {a})"),
        2 => format!("queue({a}, concurrency = {k}, on_cancel = \"{cancel}\")"),
        3 => format!("queue(delay(e({k}), {a}), capacity = {k}, on_cancel = \"{cancel}\")"),
        4 => format!("queue(delay({k} * ms, {a}), timeout = {l} * ms, on_cancel = \"{cancel}\")"),
        5 => format!("delay(e({k}), {a})"),
        6 | 7 if *retries > 0 => {
            *retries -= 1;
            let (work, exclude) =
                (d.choose(&["redraw", "same"]), d.choose(&["tried", "connect_failed", "none"]));
            let backoff =
                d.choose(&["", ", backoff = 9 * ms", ", budget = budget(ratio = 0.5, min_per_s = 5)"]);
            let on = "[\"refused\", \"overloaded\", \"timeout\"]";
            format!(
                "retry({}, {a}, on = {on}, work = \"{work}\", exclude = \"{exclude}\"{backoff})",
                2 + k % 2
            )
        }
        8 => {
            let clock = d.choose(&["eager", "lazy"]);
            format!("faulty({l}0 * ms, {k} * ms, {a}, clock = \"{clock}\")")
        }
        9 => format!("lb.least_conn([{a}, {b}], error_hold = {} * ms)", k - 1),
        10 => format!("lb.round_robin([weight({k}, {a}), {b}])"),
        11 => format!("lb.p2c([{a}, {b}, {a}])"),
        12 => format!(
            "lb.random([weight({k}, {a}), {b}] + pool({k}, lambda: queue(delay({k} * ms, server()))))"
        ),
        13 => format!("flaky(0.2, {a}, kind = \"{}\")", d.choose(&["status_5xx", "reset"])),
        14 => format!("limit.rate({a}, {}, burst = {k})", 100 * l),
        15 => format!(
            "lb.random([concurrent(e({k}), cores = {l} / 4, threads = {}, on_cancel = \"{cancel}\", min_threads = 1, thread_cost = {} * ms), {a}])",
            1 + k % 3,
            k % 2
        ),
        16 => format!(
            "lb.p2c([concurrent({k} * ms, contention = 0.1, coherency = 0.001, on_cancel = \"{cancel}\"), {a}, {b}])"
        ),
        19 => format!("fanout([{a}, {b}, {a}], need = {})", 1 + k % 3),
        20 => format!("fanout([{a}, timeout({} * ms, {b})], need = {})", k * l, 1 + k % 2),
        21 => format!("hedge({} * ms, {a}, attempts = {})", l - 1, 2 + k % 2),
        22 => format!("hedge({k} * ms, {a}, budget = budget(ratio = 0.5, min_per_s = {l}, window = 1 * s))"),
        23 | 24 => zuul(d, a, b, (k, &format!(", cores = {l} / 4")), cancel),
        17 | 18 => format!("sequence([{a}, {b}, {a}])"),
        _ => format!("timeout({} * ms, {a})", k * l),
    }
}

pub(super) fn file(seed: u64) -> String {
    let mut d = Draws::new(seed.wrapping_add(1 << 40));
    let mut text = String::from(
        "def e(m):\n    return dist.rounded(dist.exponential(m * ms), 1 * ms)\n\nn0 = delay(e(2), server(\"a\"))\n",
    );
    let (nodes, mut retries) = (3 + d.number(10), 3);
    for i in 1..=nodes {
        let mut child = |far: u64| format!("n{}", i - 1 - d.number(far).min(i - 1));
        let (a, b) = (child(3), child(4));
        text += &format!("n{i} = {}\n", node(&mut d, &a, &b, &mut retries));
    }
    let (traffic, more) = traffic(&mut d);
    let root = if d.number(4) == 0 {
        format!("listen(\"127.0.0.1:80\", n{nodes}, loops = 3)")
    } else {
        format!("n{nodes}")
    };
    text + &format!("scenario(\"s\", {root}, {traffic}, {more})\n")
}

/// Both engines give the same bytes, and the same parts of the run.
#[track_caller]
pub(super) fn agree(plan: &Plan, source: &str) {
    let mut told = plan.clone();
    let scenarios = told.points.iter_mut().flat_map(|point| &mut point.scenarios);
    scenarios.for_each(|scenario| scenario.every_ns = Some(20_000_000));
    for (members, plan) in [(false, &told), (true, plan)] {
        let options = Options { members, ..options() };
        if std::env::var("SHOW").is_ok() {
            eprintln!("{source}");
        }
        let of = |fast| {
            run_with(plan, &options, &|_, _| {}, &AtomicBool::new(false), fast)
                .unwrap_or_else(|e| panic!("fast: {fast}: {e:?}\n{source}"))
        };
        let (linear, slow) = (of(true), of(false));
        let slow = Results { events: linear.events, ..slow };
        if linear != slow {
            let (l, w) = (&linear.scenarios[0], &slow.scenarios[0]);
            let nodes = l.nodes.iter().zip(&w.nodes).filter(|(l, w)| l != w);
            let shown: Vec<String> = nodes.map(|(l, w)| format!("engine {l:?}\nreference {w:?}")).collect();
            let (l, w) = ((&l.requests, &l.latency_all), (&w.requests, &w.latency_all));
            let parts = [&linear, &slow].map(|of| of.scenarios[0].over_time.clone());
            let parts = if parts[0] == parts[1] { String::new() } else { format!("{parts:#?}\n") };
            panic!(
                "{}\n{parts}{l:?}\n{w:?}\n{source}",
                shown.join("\n").replace(", low: None, high: None", "")
            );
        }
    }
}

/// `n` seeds, or those in the variable SEEDS ("from..to").
pub(super) fn seeds(n: u64) -> std::ops::Range<u64> {
    let given = std::env::var("SEEDS").ok();
    let asked = given.as_deref().and_then(|s| s.split_once(".."));
    let asked = asked.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    asked.unwrap_or(0..n)
}

/// Shortest first: the first one that differs is the easiest to understand.
#[test]
fn the_engine_agrees_with_its_reference() {
    let mut all = Vec::new();
    all.extend(seeds(1500).map(|seed| (format!("seed {seed}"), plan(&file(seed)), file(seed))));
    all.extend(seeds(2000).map(|seed| {
        let (plan, source) = random_plan(seed);
        (format!("random seed {seed}"), plan, source)
    }));
    all.extend(
        seeds(1500).map(|seed| (format!("core seed {seed}"), plan(&random_file(seed)), random_file(seed))),
    );
    all.sort_by_key(|(_, _, source)| source.len());
    for (name, plan, source) in all {
        agree(&plan, &format!("{name}:\n{source}"));
    }
}

/// The status of a successful answer may be one to retry.
#[test]
fn an_answer_is_tried_again_for_its_status() {
    let source = "root = retry(2, lb.first([respond(404), delay(3 * ms, server())]), on = [404])\n\
                  scenario(\"s\", root, traffic.constant(every = 5 * ms), requests = 100)\n";
    let plan = plan(source);
    agree(&plan, source);
    let results = run_with(&plan, &options(), &|_, _| {}, &AtomicBool::new(false), true);
    assert_eq!(results.unwrap().scenarios[0].attempts_per_request.value, Some(2.0));
}

/// Cases that a review found where the engines differed: a check's cost beside a model, a request that is cut off as
/// it is sent on, waits that end although everything else only flips, checks that never come back.
#[test]
fn what_once_differed_agrees() {
    let checked =
        |node: &str, check: &str| format!("root = lb.random([{node}], health = {check}, panic = 0)\n");
    let http = "health.http(\"/\", interval = 1 * s, timeout = 60 * ms, cost = 40 * ms, fall = 1, rise = 1)";
    let hole = "faulty(1 * hours, 1 * hours, server(\"h\"), mode = \"blackhole\", starts = \"down\")";
    let every = "traffic.constant(every = 100 * ms), requests = 100, window = \"all\"";
    let cases = [
        (checked("server(\"a\", model = 5 * ms)", http), every),
        (checked("server(\"a\", model = lambda: queue(delay(5 * ms, server())))", http), every),
        (checked("server(\"a\", model = concurrent(5 * ms))", http), every),
        (
            format!(
                "hole = lb.random([{hole}], max_in_flight = 1, wait_timeout = 60 * s)\n\
                 flap = faulty(1 * ms, 1 * ms, server(\"f\"), mode = \"crash\")\n\
                 root = split([(1, hole), (1, flap)])\n"
            ),
            "traffic.constant(every = 1 * ms), requests = 100, window = \"all\"",
        ),
        (
            checked(
                &format!("queue({hole}, concurrency = 10)"),
                "health.tcp(interval = 2 * s, timeout = 1 * s)",
            )
            .replace("panic = 0", "panic = 1.0"),
            "traffic.constant(every = 100 * ms), requests = 5, window = \"all\"",
        ),
    ];
    for (root, load) in cases {
        let source = format!("{root}scenario(\"s\", root, {load})\n");
        agree(&plan(&source), &source);
    }
    // Two at one instant; the waiting one is admitted as the first leaves.
    for root in [
        "timeout(1 * s, lb.least_conn([queue(delay(5 * s, server()))], max_in_flight = 1))",
        "lb.least_conn([queue(delay(5 * s, server()))], max_in_flight = 1)",
    ] {
        let patience = if root.starts_with("lb") { ", patience = 1 * s" } else { "" };
        let source = format!(
            "scenario(\"s\", {root}, traffic.poisson(rate = 1), requests = 2, window = \"all\"{patience})\n"
        );
        let mut plan = plan(&source);
        plan.points[0].scenarios[0].traffic =
            weir_model::Traffic::Trace { file: "t.csv".into(), arrivals_ns: vec![0, 0] };
        agree(&plan, &source);
    }
}

/// One target never answers, the other was ejected and comes back: waiting requests are served then, whatever else
/// fails and is repaired meanwhile.
#[test]
fn who_waits_for_health_is_served() {
    let source = "hole = faulty(9 * hours, 9 * hours, server(\"h\"), mode = \"blackhole\", starts = \"down\")\n\
                  bad = faulty(9 * hours, 5 * s, server(\"b\"), mode = \"crash\", starts = \"down\")\n\
                  front = lb.first([bad, hole], max_in_flight = 1, eject = eject(consecutive = 1, base = 30 * s, max_percent = 100), panic = 0)\n\
                  flap = faulty(1 * ms, 1 * ms, server(\"f\"), mode = \"crash\")\n\
                  root = split([(3, front), (1, flap)])\n\
                  scenario(\"s\", root, traffic.constant(every = 10 * ms), requests = 40, window = \"all\")\n";
    let plan = plan(source);
    agree(&plan, source);
    let results = run_with(&plan, &options(), &|_, _| {}, &AtomicBool::new(false), true).unwrap();
    let s = &results.scenarios[0];
    let slowest = s.latency_all.max.unwrap();
    assert!((29_000.0..31_000.0).contains(&slowest), "{slowest} ms: none waited for the end of the ejection");
}

/// Cases that no random file contains: wide fan-outs, branches within branches that are cut off together, users that
/// never think, faults of any distribution.
#[test]
fn many_branches_agree() {
    let wide = "fanout(pool(3000, lambda: queue(delay(dist.exponential(5 * ms), server()))), need = 2500)";
    let cases = [
        format!("root = timeout(12 * ms, {wide})\n"),
        "d = delay(dist.exponential(5 * ms), server())\n\
         q = queue(d, concurrency = 3, on_cancel = \"finish\")\n\
         inner = hedge(3 * ms, fanout([q, timeout(4 * ms, q), sequence([d, q])], need = 2), attempts = 3)\n\
         crashing = faulty(90 * ms, 9 * ms, inner, mode = \"crash\")\n\
         root = timeout(40 * ms, hedge(9 * ms, retry(2, fanout([crashing, inner], need = 1), on = [\"reset\", \"timeout\"], backoff = 5 * ms)))\n"
            .into(),
        "d = delay(dist.exponential(5 * ms), server())\n\
         root = sequence([hedge(3 * ms, d), fanout([d, d]), retry(2, flaky(0.3, d), on = [\"status_5xx\"]), hedge(3 * ms, d)])\n"
            .into(),
        // Times up and down from other distributions than the exponential, on each kind of clock.
        "d = delay(dist.exponential(5 * ms), server())\n\
         crashing = faulty(dist.fixed(90 * ms), dist.uniform(5 * ms, 20 * ms), d, mode = \"crash\")\n\
         lazy = faulty(dist.erlang(3, 50 * ms), 9 * ms, d, clock = \"lazy\")\n\
         root = lb.random([crashing, lazy, faulty(90 * ms, dist.fixed(30 * ms), d)])\n"
            .into(),
    ];
    for root in cases {
        for traffic in ["traffic.poisson(every = 9 * ms)", "traffic.closed(3, 2 * ms)"] {
            let source = format!("{root}scenario(\"s\", root, {traffic}, requests = 60)\n");
            agree(&plan(&source), &source);
        }
    }
}

/// Ten thousand branches at once cost a sum of ten thousand, not of their pairs; more than can be put in order are an
/// error in words, and so are users whose time does not advance.
#[test]
fn branches_have_limits() {
    let run = |root: &str, traffic: &str| {
        let source = format!("scenario(\"s\", {root}, {traffic}, window = \"all\")\n");
        run_with(&plan(&source), &options(), &|_, _| {}, &AtomicBool::new(false), true)
    };
    let every = "traffic.constant(every = 50 * ms), requests = 100";
    let wide = "fanout(pool(10000, lambda: delay(dist.exponential(2 * ms), server())))";
    let results = run(wide, every).unwrap();
    assert!(results.scenarios[0].latency_all.min.unwrap() > 8.0);
    let nested = "fanout(pool(300, lambda: fanout(pool(300, lambda: server()))))";
    let error = format!("{:?}", run(nested, every).unwrap_err());
    assert!(error.contains("branches at once"), "{error}");
    let error = format!("{:?}", run("server()", "traffic.closed(2, 0 * s), duration = 1 * s").unwrap_err());
    assert!(error.contains("without thinking time"), "{error}");
}
