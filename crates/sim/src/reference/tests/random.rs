//! Any topology, any traffic: all self-checks hold, nothing remains of branches that were cut off, and limits strike
//! everywhere.

use super::core::zuul;
use super::{options, plan, run_reference};
use crate::results::result::{NodeResult, Results};
use crate::results::run::{Options, run_with};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use weir_model::Traffic;
use weir_plan::Plan;
use weir_stats::Key;

/// Topologies tried; together they must cover every place of [`PLACES`].
const FILES: u64 = 2000;

/// A source of numbers from a seed.
pub(super) struct Draws(Key, u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Draws {
        Draws(Key::new(seed), 0)
    }

    /// Below n.
    pub(super) fn number(&mut self, n: u64) -> u64 {
        self.1 += 1;
        self.0.with(self.1).bits() % n
    }

    pub(super) fn choose<'t>(&mut self, words: &[&'t str]) -> &'t str {
        words[self.number(words.len() as u64) as usize]
    }
}

const KINDS: &str =
    "[\"connect_failed\", \"refused\", \"overloaded\", \"timeout\", \"reset\", \"status_5xx\"]";
const ON_CANCEL: [&str; 3] = ["stop", "skip", "finish"];

/// One node over two existing ones, and possibly the list of a shared pool.
pub(super) fn node(d: &mut Draws, a: &str, b: &str, retries: &mut u32) -> String {
    let (k, l) = (1 + d.number(4), 1 + d.number(9));
    let (cancel, clock) = (d.choose(&ON_CANCEL), d.choose(&["eager", "lazy"]));
    let mode = d.choose(&["refuse", "crash", "crash", "blackhole", "slow", "pause"]);
    // A process that pauses follows time.
    let mode = if mode == "pause" && clock == "lazy" { "slow" } else { mode };
    match d.number(28) {
        0 => format!("cable({k} * ms, {a})"),
        1 => format!("cable(e({k}), {a}, loss = 0.1)"),
        2 => format!("cable({k} * ms, {a}, loss = 0.2, resend = {l} * ms)"),
        3 => format!("queue({a}, concurrency = {k}, on_cancel = \"{cancel}\")"),
        4 => format!("queue(delay(e({k}), {a}), on_cancel = \"{cancel}\")"),
        5 => format!(
            "queue(delay({k} * ms, {a}), capacity = {k}, timeout = {l} * ms, on_cancel = \"{cancel}\")"
        ),
        6 => format!("delay(e({k}), {a})"),
        7 => format!(
            "lb.random([concurrent(e({k}), cores = {l} / 4, threads = {}, on_cancel = \"{cancel}\"), {a}])",
            1 + k % 2
        ),
        8 => format!(
            "lb.p2c([concurrent({k} * ms, contention = 0.1, coherency = 0.001, on_cancel = \"{cancel}\"), {a}, {b}])"
        ),
        9 | 10 if *retries > 0 => {
            *retries -= 1;
            let (work, exclude) =
                (d.choose(&["redraw", "same"]), d.choose(&["tried", "connect_failed", "none"]));
            let backoff = d.choose(&["", ", backoff = 9 * ms", ", backoff = 1 * ms, backoff_max = 3 * ms"]);
            format!("retry(2, {a}, on = {KINDS}, work = \"{work}\", exclude = \"{exclude}\"{backoff})")
        }
        23 if *retries > 0 => {
            *retries -= 1;
            format!(
                "faulty({l}0 * ms, {k} * ms, retry(2, flaky(0.5, {a}), on = {KINDS}, backoff = 9 * ms), mode = \"crash\")"
            )
        }
        11 => format!("faulty({l}0 * ms, {k} * ms, {a}, mode = \"{mode}\", clock = \"{clock}\")"),
        12 => {
            let line = d.number(2);
            let clock = ["eager", "lazy"][line as usize];
            let mode = if mode == "pause" && clock == "lazy" { "slow" } else { mode };
            format!(
                "faulty(50 * ms, 5 * ms, {a}, mode = \"{mode}\", clock = \"{clock}\", together = \"line {line}\")"
            )
        }
        13 => format!(
            "lb.round_robin(block({l}0 * ms, {k} * ms, [{a}, {b}], mode = \"{mode}\", clock = \"{clock}\"))"
        ),
        14 => format!("lb.least_conn([{a}, {b}], error_hold = {} * ms, pass_over = {l} * ms)", k - 1),
        15 => format!("lb.round_robin([weight({k}, {a}), {b}], pass_over = {l} * ms)"),
        16 => format!(
            "lb.random([weight({k}, {a}), {b}] + pool({k}, lambda: queue(delay({k} * ms, server()), on_cancel = \"{cancel}\")))"
        ),
        17 => format!("flaky(0.2, {a}, kind = \"{}\")", d.choose(&["status_5xx", "reset", "connect_failed"])),
        18 => format!("warmup({a}, 3.0, requests = {l}, time = {l}0 * ms)"),
        19 | 20 => format!("sequence([{a}, {b}])"),
        21 => format!("fanout([{a}, {b}], need = {})", 1 + k % 2),
        22 => format!("lb.p2c([{a}, {b}, {a}], error_hold = {k} * ms)"),
        24 => known_work(d, retries),
        25 => zuul(d, a, b, (k, ""), cancel),
        _ => format!("timeout({} * ms, {a})", k * l),
    }
}

/// A balancer that uses the work left at its targets, and another with some of the same targets.
fn known_work(d: &mut Draws, retries: &mut u32) -> String {
    let mut targets = Vec::new();
    for _ in 0..2 + d.number(2) {
        let deep = 1 + d.number(4);
        targets.push(known(d, deep, retries));
    }
    if d.number(3) == 0 {
        let weight = d.number(2);
        targets.push(format!("weight({weight}, {})", known(d, 1, retries)));
    }
    let all = targets.join(", ");
    let more = d.choose(&["", "", ", max_in_flight = 1", ", max_in_flight = 2, wait_timeout = 5 * ms"]);
    match d.number(3) {
        0 => format!("[lb.random([lb.least_work(t{more}), lb.random(t)]) for t in [[{all}]]][0]"),
        _ => format!("lb.least_work([{all}]{more})"),
    }
}

/// A node without any balancer.
fn known(d: &mut Draws, deep: u64, retries: &mut u32) -> String {
    let (k, l) = (1 + d.number(4), 1 + d.number(9));
    if deep == 0 {
        return match d.number(3) {
            0 => format!(
                "concurrent(e({k}), cores = {l} / 4, threads = {}, on_cancel = \"{}\")",
                1 + k % 2,
                d.choose(&ON_CANCEL)
            ),
            1 => format!("delay({k} * ms, server())"),
            _ => format!("delay(e({k}), server())"),
        };
    }
    let inner = known(d, deep - 1, retries);
    let cancel = d.choose(&ON_CANCEL);
    match d.number(12) {
        0 => format!("cable({k} * ms, {inner})"),
        1..=3 => format!("queue({inner}, on_cancel = \"{cancel}\")"),
        4 => format!(
            "queue({inner}, concurrency = {k}, capacity = {k}, timeout = {l} * ms, on_cancel = \"{cancel}\")"
        ),
        5 => format!("delay(e({k}), {inner})"),
        6 => format!("timeout({} * ms, {inner})", k * l),
        7 => {
            let mode = d.choose(&["refuse", "crash", "crash", "blackhole", "slow"]);
            format!("faulty({l}0 * ms, {k} * ms, {inner}, mode = \"{mode}\")")
        }
        8 => format!("sequence([{inner}, delay({k} * ms, server())])"),
        9 if *retries > 0 => {
            *retries -= 1;
            let work = d.choose(&["redraw", "same"]);
            format!("retry(2, flaky(0.3, {inner}), on = {KINDS}, work = \"{work}\", backoff = {k} * ms)")
        }
        10 => format!("warmup({inner}, 3.0, requests = {l})"),
        _ => format!("flaky(0.2, {inner})"),
    }
}

pub(super) fn traffic(d: &mut Draws) -> (String, &'static str) {
    let traffic = match d.number(7) {
        0 => "traffic.poisson(every = 3 * ms)".into(),
        1 | 2 => format!("traffic.constant(every = {} * ms)", 2 + d.number(4)),
        3 => "traffic.mmpp([(1000, 20 * ms), (50, 60 * ms)])".into(),
        4 => "traffic.schedule([(0 * s, 100), (100 * ms, 900), (200 * ms, 100)], repeat = True)".into(),
        5 => format!("traffic.closed({}, e(9))", 2 + d.number(9)),
        _ => "traffic.renewal(e(3))".into(),
    };
    let more = d.choose(&[
        "requests = 150",
        "requests = 150, window = \"all\"",
        "requests = 150, patience = 12 * ms",
        "requests = 150, duration = 400 * ms, patience = 20 * ms",
        "duration = 400 * ms, window = \"all\"",
        "duration = 500 * ms",
    ]);
    (traffic, more)
}

const PAUSE: &str = "mode = \"pause\"";

/// A file with one scenario out of a seed: nodes over their own and shared children, whole milliseconds nearly
/// everywhere.
fn random_file(seed: u64) -> String {
    let mut d = Draws::new(seed);
    let mut text = String::from(
        "def e(m):\n    return dist.rounded(dist.exponential(m * ms), 1 * ms)\n\nn0 = delay(e(2), server(\"a\"))\n",
    );
    let (nodes, mut retries) = (4 + d.number(10), 4);
    for i in 1..=nodes {
        let mut child = |far: u64| format!("n{}", i - 1 - d.number(far).min(i - 1));
        let (a, b) = (child(3), child(4));
        text += &format!("n{i} = {}\n", node(&mut d, &a, &b, &mut retries));
    }
    // A node is inside of one process that pauses.
    if let Some((before, after)) = text.split_once(PAUSE) {
        text = format!("{before}{PAUSE}{}", after.replace(PAUSE, "mode = \"slow\""));
    }
    let (traffic, more) = traffic(&mut d);
    text + &format!("scenario(\"s\", n{nodes}, {traffic}, {more})\n")
}

/// The random file of a seed, one in eight with recorded arrivals instead, several at one instant.
pub(super) fn random_plan(seed: u64) -> (Plan, String) {
    let source = random_file(seed);
    let mut plan = plan(&source);
    let scenario = &mut plan.points[0].scenarios[0];
    if seed.is_multiple_of(8) {
        let arrivals_ns = (0..150).map(|i| i / 4 * 7_000_000).collect();
        scenario.traffic = Traffic::Trace { file: "t.csv".into(), arrivals_ns };
        scenario.requests = Some(150);
    }
    (plan, source)
}

/// Where at least five branches must have been cut off among the files: the node, what the branch does there, and
/// whether a crash (`true`) or a limit did it.
const PLACES: [(&str, &str, bool); 34] = [
    ("delay", "out", false),
    ("delay", "out", true),
    ("cable", "out", false),
    ("cable", "out", true),
    ("cable", "back", false),
    ("cable", "back", true),
    ("cable", "lost", false),
    ("cable", "lost", true),
    ("queue", "line", false),
    ("queue", "line", true),
    ("queue", "inside", true),
    ("concurrent", "line", false),
    ("concurrent", "line", true),
    ("concurrent", "inside", false),
    ("concurrent", "inside", true),
    ("blackhole", "lost", false),
    ("blackhole", "lost", true),
    ("retry", "backoff", false),
    ("retry", "backoff", true),
    ("timeout", "children", false),
    ("timeout", "children", true),
    ("fanout", "children", false),
    ("fanout", "children", true),
    ("crash", "children", false),
    ("crash", "children", true),
    ("crash", "cut", false),
    // Branches of a fan-out that another one decided before they had begun.
    ("delay", "begins", false),
    ("queue", "begins", false),
    ("lb", "begins", false),
    ("retry", "begins", false),
    ("timeout", "begins", false),
    ("sequence", "begins", false),
    ("flaky", "begins", false),
    ("crash", "begins", false),
];

/// Where a branch must have been left behind.
const LEFT: [(&str, &str, bool); 9] = [
    ("delay", "out", false),
    ("cable", "out", false),
    ("cable", "back", false),
    ("queue", "line", false),
    ("concurrent", "line", false),
    ("concurrent", "inside", false),
    ("timeout", "children", false),
    ("crash", "children", false),
    ("fanout", "children", false),
];

fn simulate(plan: &Plan, options: &Options) -> Result<Results, crate::Error> {
    run_with(plan, options, &|_, _| {}, &AtomicBool::new(false), false)
}

/// In any topology and wherever limits strike, every law holds (conservation, Little's law, the parts of the latency,
/// utilisation; nothing left in queues, at balancers or in flight), the run ends, members add up to sites, and
/// threads change no byte. Together the files cover every place in the lists above.
#[test]
fn any_topology_can_be_cut_anywhere() {
    let (mut cuts, mut left) = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..FILES {
        let (plan, source) = random_plan(seed);
        for members in [false, true] {
            let (seen, violations) = run_reference(&plan, members, None)
                .unwrap_or_else(|cut| panic!("seed {seed} does not end ({cut:?}):\n{source}"));
            assert_eq!(violations, Vec::<String>::new(), "seed {seed}:\n{source}");
            let mut requests: Vec<_> = seen.answers.iter().map(|a| a.0).collect();
            requests.sort_unstable();
            assert!(requests.windows(2).all(|w| w[0] < w[1]), "seed {seed}: answered twice:\n{source}");
            seen.cuts.iter().for_each(|(place, n)| *cuts.entry(*place).or_insert(0) += n);
            seen.left.iter().for_each(|(place, n)| *left.entry(*place).or_insert(0) += n);
        }
        if seed.is_multiple_of(4) {
            agree(&plan, &format!("seed {seed}:\n{source}"));
        }
    }
    let rare = |places: &[(&'static str, &'static str, bool)], seen: &BTreeMap<_, u64>| {
        let rare = places.iter().filter(|p| seen.get(*p).is_none_or(|n| *n < 5));
        rare.copied().collect::<BTreeSet<_>>()
    };
    assert_eq!(rare(&PLACES, &cuts), BTreeSet::new(), "hardly cut off there: {cuts:?}");
    assert_eq!(rare(&LEFT, &left), BTreeSet::new(), "hardly left behind there: {left:?}");
}

/// One thread and two, sites and members.
pub(super) fn agree(plan: &Plan, source: &str) {
    let of = |threads, members| {
        let options = Options { replications: 2, threads, members, ..options() };
        simulate(plan, &options).unwrap_or_else(|e| panic!("{e:?} {source}"))
    };
    let sites = of(1, false);
    assert_eq!(sites, of(2, false), "{source}");
    let members = of(2, true);
    let (s, m) = (&sites.scenarios[0], &members.scenarios[0]);
    let same = (&s.requests, &s.latency_all, &s.latency_ok, &s.attempts_per_request, &s.response_rate_per_s);
    assert_eq!(
        same,
        (&m.requests, &m.latency_all, &m.latency_ok, &m.attempts_per_request, &m.response_rate_per_s)
    );
    for site in &s.nodes {
        let of: Vec<&NodeResult> = m.nodes.iter().filter(|n| n.place == site.place).collect();
        assert_eq!(of.len() as u64, site.count, "{source}");
        assert_eq!(of.iter().map(|n| n.requests).sum::<u64>(), site.requests, "{source}");
        let errors = |of: &[&NodeResult]| of.iter().flat_map(|n| &n.errors).map(|e| e.1).sum::<u64>();
        assert_eq!(errors(&of), errors(&[site]), "{source}");
        let part: f64 = of.iter().filter_map(|n| n.latency_part_ms.value).sum();
        assert!((part - site.latency_part_ms.value.unwrap_or(0.0)).abs() < 1e-6, "{source}");
        assert_eq!(of.iter().filter_map(|n| n.queue_max).max(), site.queue_max, "{source}");
    }
}
