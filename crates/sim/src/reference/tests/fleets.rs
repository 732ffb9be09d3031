//! Fleets that change: both engines in any topology, a fleet without changes against its pool, and shares that follow
//! from arithmetic.

use super::core::{around, fitting, unramped};
use super::engine::{agree, node, seeds};
use super::random::{Draws, traffic};
use super::{options, plan, run_reference};
use crate::results::result::{Results, ScenarioResult};
use crate::results::run::run_with;
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;

const POLICIES: [&str; 10] = [
    "lb.random",
    "lb.round_robin",
    "lb.least_conn",
    "lb.p2c",
    "lb.first",
    "lb.peak_ewma",
    "lb.zuul",
    "lb.ring_hash",
    "lb.maglev",
    "lb.prequal",
];

/// Changes of one fleet of `size` members, in the order of their instants.
fn changes(d: &mut Draws, fleet: &str, other: &str, mut size: u64, finds: bool) -> Vec<String> {
    let mut at = 0;
    let mut all = Vec::new();
    for _ in 0..1 + d.number(4) {
        // Several at one instant.
        at += 20 * d.number(6);
        let k = 1 + d.number(3);
        all.push(match d.number(if finds { 8 } else { 6 }) {
            0 => {
                size += k;
                format!("change.join({fleet}, at = {at} * ms, k = {k})")
            }
            1 if size > k => {
                size -= k;
                let which = d.choose(&["oldest", "newest", "random"]);
                format!("change.leave({fleet}, at = {at} * ms, k = {k}, which = \"{which}\")")
            }
            2 => {
                size = d.number(5);
                format!("change.scale({fleet}, at = {at} * ms, to = {size})")
            }
            3 | 6 | 7 if finds => {
                let (lasts, share) = (d.choose(&["9", "30", "90"]), d.choose(&["0.3", "0.6", "0.8", "1"]));
                format!("change.unlist({fleet}, at = {at} * ms, lasts = {lasts} * ms, share = {share})")
            }
            3 => format!("change.unlist({fleet}, at = {at} * ms, lasts = {k}0 * ms, share = 0.{k})"),
            4 => {
                // The last, since it changes the size from now on.
                all.push(format!("change.rolling({fleet}, at = {at} * ms, batch = {k}, every = 7 * ms, into = {other})"));
                return all;
            }
            _ => {
                let (first, which) = (d.choose(&["join", "leave"]), d.choose(&["oldest", "random"]));
                format!(
                    "change.rolling({fleet}, at = {at} * ms, batch = {k}, every = {k} * 5 * ms, first = \"{first}\", which = \"{which}\")"
                )
            }
        });
    }
    all
}

/// The function of a fleet's members.
fn member(d: &mut Draws, name: &str, is_listed: bool, retries: &mut u32) -> String {
    let (way, nodes) = if is_listed { way(d, name) } else { nodes(d, name, retries) };
    let mut text = format!("def {name}_member():\n{way}");
    if d.number(2) == 0 || is_listed {
        let (up, down) = if is_listed { (30, 15) } else { (50, 9) };
        let cold = d.choose(&["", ", at_start = \"warm\"", ", prewarmed = 0.4"]);
        text += &format!(
            "    n{nodes} = faulty({up} * ms, {down} * ms, warmup(n{nodes}, 3.0, time = 50 * ms{cold}), mode = \"{}\")\n",
            d.choose(&["crash", "refuse", "blackhole"])
        );
    }
    if d.number(2) == 0 {
        let work = ", min_requests = 2, grace = 20 * ms, hold = 15 * ms, max_hold = 40 * ms";
        let more = d.choose(&[
            "ramp = 60 * ms",
            "ramp = 2 * s, flap = \"article\"",
            "ramp = None",
            "ramp = 30 * ms",
        ]);
        let relative = format!("{work}, relative = True");
        let work = d.choose(&["", work, &relative]);
        text += &format!("    n{nodes} = gate(n{nodes}, {more}{work})\n");
    }
    text + &format!("    return n{nodes}\n\n")
}

/// The nodes of a member, and the number of the last one.
fn nodes(d: &mut Draws, name: &str, retries: &mut u32) -> (String, u64) {
    let leaf = match d.number(4) {
        0 => "concurrent(e(2), threads = 4, min_threads = 1, thread_cost = 3 * ms)".to_owned(),
        _ => format!("delay(e(2), server(\"{name}\"))"),
    };
    let mut text = format!("    n0 = {leaf}\n");
    let nodes = 1 + d.number(4);
    for i in 1..=nodes {
        let b = d.choose(&["x", "n0"]);
        text += &format!("    n{i} = {}\n", node(d, &format!("n{}", i - 1), b, retries));
    }
    (text, nodes)
}

/// The same for one that a source lists: a server on one way.
fn way(d: &mut Draws, name: &str) -> (String, u64) {
    let model = d.choose(&[
        "",
        ", model = e(3)",
        ", model = lambda: lb.random([delay(e(2), server()), faulty(30 * ms, 9 * ms, server(), mode = \"crash\")])",
    ]);
    let mut text = format!("    n0 = server(\"{name}\"{model})\n");
    let nodes = 1 + d.number(3);
    for i in 1..=nodes {
        let (a, k) = (format!("n{}", i - 1), 1 + d.number(4));
        let made = match d.number(7) {
            0 => format!("cable(e({k}), {a}, loss = 0.05, resend = 9 * ms)"),
            1 => format!("queue({a}, concurrency = {k}, timeout = 9 * ms)"),
            2 => format!("flaky(0.2, {a}, kind = \"reset\")"),
            3 => format!("retry(2, {a}, on = [\"connect_failed\", \"reset\"], backoff = 2 * ms)"),
            4 => format!("timeout({k} * ms, {a})"),
            _ => format!("delay(e({k}), {a})"),
        };
        text += &format!("    n{i} = {made}\n");
    }
    (text, nodes)
}

/// A file with two fleets of random members, at some balancers among other nodes.
pub(super) fn file(seed: u64) -> String {
    file_of(seed, false)
}

/// The same; `finds`: with fleets whose members a source lists.
pub(super) fn file_of(seed: u64, finds: bool) -> String {
    let mut d = Draws::new(seed.wrapping_add(1 << 42));
    let listed = ["f", "g"].map(|_| finds && d.number(4) > 0);
    let mut text = String::from(
        "def e(m):\n    return dist.rounded(dist.exponential(m * ms), 1 * ms)\n\nx = queue(delay(e(3), server(\"x\")))\n",
    );
    let mut retries = 2;
    for (name, is_listed) in ["f", "g"].into_iter().zip(listed) {
        text += &member(&mut d, name, is_listed, &mut retries);
    }
    let (f, g) = (d.number(5), 1 + d.number(3));
    let lag = d.choose(&["0 * s", "15 * ms", "e(20)"]);
    let mut fleet = |name: &str, size: u64, is_listed: bool, lag: &str| {
        if !is_listed {
            return format!("{name} = fleet({size}, {name}_member{lag})\n");
        }
        let shrink = d.choose(&["None", "0.2", "0.5", "0.5"]);
        let grace = d.choose(&["0 * s", "1 * ms", "10 * ms", "40 * ms", "2 * s"]);
        let doubt = format!("shrink = {shrink}, grace = {grace}");
        format!("{name} = find.file(\"{name}.json\", {name}_member, size = {size}, {doubt}{lag})\n")
    };
    text += &fleet("f", f, listed[0], &format!(", lag = {lag}"));
    text += &fleet("g", g, listed[1], "");
    for i in 0..2 {
        let policy = d.choose(&POLICIES);
        let mut around = around(&mut d, "x");
        around = fitting(policy, &around).to_owned();
        if policy.contains("ring") || policy.contains("maglev") {
            around = unramped(&around) + ", key = key.header(\"x-user\")";
        }
        let targets = d.choose(&["f", "[f, g]", "[x, f]", "[weight(2, f), x, g]", "f + [x]"]);
        text += &format!("b{i} = {policy}({targets}{around})\n");
    }
    text += "top = lb.first([b0, b1], health = health.tcp(interval = 40 * ms, timeout = 9 * ms))\n";
    let root = match d.number(7) {
        0 => "retry(3, b0, on = [\"refused\", \"connect_failed\", \"no_target\"])",
        1 => "timeout(9 * ms, b0)",
        2 => "hedge(4 * ms, b0)",
        3 => "fanout([b0, b1], need = 1)",
        4 => "top",
        5 => "lb.p2c([b0, b1])",
        _ => "listen(\"127.0.0.1:80\", b0, loops = 3)",
    };
    let mut events = changes(&mut d, "f", "g", f, finds);
    if d.number(2) == 0 {
        // What `g` gets of `f` only makes it larger.
        events.extend(changes(&mut d, "g", "g", g, finds));
    }
    let (traffic, more) = traffic(&mut d);
    text + &format!("scenario(\"s\", {root}, {traffic}, {more}, events = [{}])\n", events.join(", "))
}

#[test]
fn engines_agree_while_fleets_change() {
    let files = seeds(300).flat_map(|seed| [false, true].map(|finds| (seed, file_of(seed, finds))));
    for (seed, source) in files {
        let plan = plan(&source);
        let (_, violations) = run_reference(&plan, false, None)
            .unwrap_or_else(|cut| panic!("seed {seed} does not end ({cut:?}):\n{source}"));
        assert_eq!(violations, Vec::<String>::new(), "seed {seed}:\n{source}");
        agree(&plan, &format!("seed {seed}:\n{source}"));
        let options = crate::results::run::Options { members: true, ..options() };
        let run = |members| crate::results::run::Options { members, ..options.clone() };
        for options in [run(false), run(true)] {
            let result = run_with(&plan, &options, &|_, _| {}, &AtomicBool::new(false), true);
            for node in result.unwrap_or_else(|e| panic!("{e:?}")).scenarios.iter().flat_map(|s| &s.nodes) {
                let busy = node.utilisation.value.unwrap_or(0.0);
                assert!(busy < 1.0 + 1e-9, "seed {seed}: {busy} of {}\n{source}", node.place);
            }
        }
    }
}

fn results(plan: &Plan) -> Results {
    run_with(plan, &options(), &|_, _| {}, &AtomicBool::new(false), true).unwrap_or_else(|e| panic!("{e:?}"))
}

fn only(source: &str) -> ScenarioResult {
    results(&plan(source)).scenarios.remove(0)
}

/// The figures of a pool, whatever surrounds it.
#[test]
fn a_fleet_that_nothing_changes_is_its_pool() {
    for seed in seeds(300) {
        let source = file(seed);
        let (source, _) = source.split_once(", events = ").expect("it has changes");
        let fleets = format!("{source})\n");
        if fleets.contains("fleet(0,") {
            continue;
        }
        let pools: String = fleets
            .replace("fleet(", "pool(")
            .replace(", f_member, lag = 0 * s", ", f_member")
            .replace(", f_member, lag = 15 * ms", ", f_member")
            .replace(", f_member, lag = e(20)", ", f_member")
            .replace("[f, g]", "f + g")
            .replace("[x, f]", "[x] + f")
            .replace("[weight(2, f), x, g]", "[weight(2, t) for t in f] + [x] + g");
        let (of, own) = (results(&plan(&pools)), results(&plan(&fleets)));
        // The two plans have different hashes, and numbers of nodes.
        let shown = |results: Results| {
            let mut scenarios = results.scenarios;
            scenarios.iter_mut().flat_map(|s| &mut s.nodes).for_each(|node| node.id = None);
            scenarios
        };
        assert_eq!(shown(of), shown(own), "{pools}");
    }
}

/// Requests at each of eight members: those of the start, and those that join at half of the time.
#[test]
fn newcomers_get_their_share_from_then_on() {
    let source = "a = fleet(4, lambda: server(\"a\", model = 1 * ms))\n\
        scenario(\"s\", lb.round_robin(a), traffic.constant(rate = 1000), requests = 8000, window = \"all\", events = [change.join(a, at = 4 * s, k = 4)])\n";
    let plan = plan(source);
    let options = crate::results::run::Options { members: true, ..options() };
    let result = run_with(&plan, &options, &|_, _| {}, &AtomicBool::new(false), true).expect("it runs");
    let servers = result.scenarios[0].nodes.iter().filter(|node| node.kind == "server" && node.name == "a");
    let counts: Vec<u64> = servers.map(|node| node.requests).collect();
    let close = |of: &u64, share: f64| (*of as f64 - 8000.0 * share).abs() <= 2.0;
    assert_eq!(counts.len(), 8, "{counts:?}");
    assert!(counts[..4].iter().all(|n| close(n, 3.0 / 16.0)), "{counts:?}");
    assert!(counts[4..].iter().all(|n| close(n, 1.0 / 16.0)), "{counts:?}");
}

/// The share of all requests that each of four newcomers gets, in 8 s of which they are there from the fourth on, by the
/// curve of its slow start; with nothing else around the balancer.
#[test]
fn newcomers_get_their_share_by_the_curve() {
    let own = |e: f64| (e * 25.0).floor().max(10.0) / 100.0;
    let haproxy = |e: f64| ((16.0 * e.floor() + 4.0) / 4.0).floor().min(16.0) / 16.0;
    let nginx = |e: f64| (e * 25.0).floor() / 100.0;
    let envoy = |e: f64| (e.max(1.0) / 4.0).sqrt();
    let curves: [(&str, &dyn Fn(f64) -> f64); 4] = [
        ("", &own),
        (", like = \"haproxy\"", &haproxy),
        (", like = \"nginx\"", &nginx),
        (", like = \"envoy\", aggression = 2", &envoy),
    ];
    for (more, share) in curves {
        let source = format!(
            "a = fleet(4, lambda: server(\"a\", model = 1 * ms))\n\
             b = lb.round_robin(a, slow_start = slow_start(4 * s{more}))\n\
             scenario(\"s\", b, traffic.constant(rate = 1000), requests = 8000, window = \"all\", \
             events = [change.join(a, at = 4 * s, k = 4)])\n"
        );
        let options = crate::results::run::Options { members: true, ..options() };
        let run = |fast| {
            let of = run_with(&plan(&source), &options, &|_, _| {}, &AtomicBool::new(false), fast);
            of.unwrap_or_else(|e| panic!("{e:?}")).scenarios.remove(0)
        };
        let (fast, slow) = (run(true), run(false));
        assert_eq!(fast, slow, "the engines differ");
        let servers = fast.nodes.iter().filter(|node| node.kind == "server" && node.name == "a");
        let counts: Vec<u64> = servers.map(|node| node.requests).collect();
        let all: u64 = counts.iter().sum();
        let want: f64 = (0..4000)
            .map(|ms| share(f64::from(ms) / 1000.0))
            .map(|share| share / (4.0 + 4.0 * share) / 8000.0)
            .sum();
        for count in &counts[4..] {
            let got = *count as f64 / all as f64;
            assert!((got / want - 1.0).abs() < 0.03, "{more}: {got}, not {want}: {counts:?}");
        }
    }
}

/// Of three processes one gets a hundredth of the requests from a balancer of its own: it is idle where the others have four times
/// as many as it should have, and where it is judged alone.
#[test]
fn a_gate_judges_by_the_others_of_its_place() {
    let success = |rate: u32, more: &str| {
        let source = format!(
            "def app():\n    return gate(server(\"a\", model = 1 * ms), ramp = None, min_requests = 10, grace = 0 * s, hold = 4 * s{more})\n\
             a = pool(3, app)\n\
             check = health.http(\"/\", interval = 1 * s, fall = 1, rise = 1, jitter = 0)\n\
             def among(apps):\n    return lb.round_robin(apps, health = check, panic = 0)\n\
             scenario(\"s\", split([(1, among(a[:1])), (99, among(a[1:]))]), traffic.constant(rate = {rate}), \
             requests = {rate} * 60, window = \"all\")\n"
        );
        only(&source).success.value.expect("requests")
    };
    assert!(success(200, "") < 0.999, "the first one is held");
    assert!(success(200, ", relative = True") < 0.999, "the others have 99 a second each");
    assert!(success(10, "") < 0.9, "all are held");
    assert_eq!(success(10, ", relative = True"), 1.0, "all are idle");
}

/// A newcomer that boots for more than ten minutes halts its replacement; one that is to go while it boots goes later.
#[test]
fn changes_that_take_longer_say_so() {
    let warnings = |events: &str| {
        let result = only(&format!(
            "a = fleet(2, lambda: server(\"a\", model = 1 * ms), name = \"app\", life = life(boot = 20 * minutes))\n\
             scenario(\"s\", lb.random(a), traffic.constant(rate = 1), requests = 2000, window = \"all\", events = [{events}])\n"
        ));
        result.warnings
    };
    let halted =
        warnings("change.rolling(a, at = 10 * s, every = 1 * s, first = \"leave\", wait = \"running\")");
    let text = "halted: the replacement of app that begins at 10 s went no further in 1 of 1 replications: a batch was not \
                running within 10 minutes";
    assert!(halted.iter().any(|of| of.starts_with(text)), "{halted:?}");
    let held_up = warnings("change.join(a, at = 10 * s), change.leave(a, at = 20 * s, which = \"newest\")");
    let text = "held up: the change of app at 20 s found members that another change was still moving";
    assert!(held_up.iter().any(|of| of.starts_with(text)), "{held_up:?}");
    let plain = warnings("change.leave(a, at = 20 * s)");
    assert!(plain.iter().all(|of| !of.starts_with("halted") && !of.starts_with("held up")), "{plain:?}");
}

/// The figures of the fleet of one.
#[test]
fn a_member_that_leaves_at_once_was_never_there() {
    let file = |n: u32, more: &str| {
        format!(
            "a = fleet({n}, lambda: queue(delay(dist.exponential(1 * ms), server(\"a\"))))\n\
             scenario(\"s\", lb.random(a), traffic.poisson(rate = 800), requests = 20000{more})\n"
        )
    };
    let two = only(&file(2, ", events = [change.leave(a, at = 0 * s, which = \"newest\")]"));
    let one = only(&file(1, ""));
    assert_eq!((&two.latency_all, &two.requests), (&one.latency_all, &one.requests));
    let queue = |result: &ScenarioResult| {
        let node = result.nodes.iter().find(|node| node.kind == "queue").expect("it has one");
        (node.utilisation.value, node.queue_mean.value)
    };
    assert_eq!(queue(&two), queue(&one), "it counts for the time that it was there");
}

/// The queues or servers of two members, of which one leaves, or is not listed for a time, with three requests of ten
/// seconds inside: their utilisation, and how many wait there. Clients go after a second.
fn of_two_members(node: &str, event: &str) -> Vec<(f64, f64)> {
    let source = format!(
        "a = fleet(2, lambda: {node})\n\
         scenario(\"s\", timeout(1 * s, lb.round_robin(a)), traffic.constant(rate = 1), requests = 60, \
         window = \"all\", events = [{event}])\n"
    );
    let options = crate::results::run::Options { members: true, ..options() };
    let run = |fast| {
        let of = run_with(&plan(&source), &options, &|_, _| {}, &AtomicBool::new(false), fast);
        of.unwrap_or_else(|e| panic!("{e:?}")).scenarios.remove(0)
    };
    let (fast, slow) = (run(true), run(false));
    assert_eq!(fast, slow, "the engines differ");
    let nodes = fast.nodes.iter().filter(|node| ["queue", "concurrent"].contains(&node.kind.as_str()));
    nodes
        .map(|node| (node.utilisation.value.expect("known"), node.queue_mean.value.expect("known")))
        .collect()
}

/// The time of a member ends when its last work does, whether or not a client still waits for it.
#[test]
fn what_goes_on_in_a_leaver_is_within_its_time() {
    let queue = "queue(delay(10 * s, server(\"a\")), on_cancel = \"finish\")";
    let cores = "concurrent(10 * s, on_cancel = \"finish\")";
    let events =
        ["change.leave(a, at = 5500 * ms)", "change.unlist(a, at = 5500 * ms, lasts = 20 * s, share = 0.5)"];
    for (node, event) in [queue, cores].into_iter().flat_map(|node| events.map(|event| (node, event))) {
        let all = of_two_members(node, event);
        assert_eq!(all.len(), 2, "{node} {event}");
        for (busy, _) in &all {
            assert!((0.95..1.0 + 1e-9).contains(busy), "{node} {event}: {all:?}");
        }
    }
    // One waits for 8 s and one for 16 s of the leaver's 30 s.
    let all = of_two_members(queue, events[0]);
    assert!(all.iter().any(|(_, waiting)| (waiting - 24.0 / 30.0).abs() < 0.05), "{all:?}");
}

/// Five seconds of its rate more.
#[test]
fn a_leaver_is_picked_until_its_leaving_is_seen() {
    let file = |lag: &str| {
        format!(
            "a = fleet(10, lambda: server(\"a\", model = 1 * ms){lag})\n\
             scenario(\"s\", lb.round_robin(a), traffic.constant(rate = 1000), requests = 40000, window = \"all\", events = [change.leave(a, at = 20 * s)])\n"
        )
    };
    let requests = |lag: &str| {
        let options = crate::results::run::Options { members: true, ..options() };
        let result = run_with(&plan(&file(lag)), &options, &|_, _| {}, &AtomicBool::new(false), true);
        let nodes = result.expect("it runs").scenarios.remove(0).nodes;
        nodes.iter().find(|node| node.kind == "server").expect("there is one").requests
    };
    let (at_once, late) = (requests(""), requests(", lag = 5 * s"));
    assert!(at_once.abs_diff(2000) <= 1, "{at_once}");
    assert!(late.abs_diff(2500) <= 1, "{late}");
}

/// Nothing fails while members are replaced one after another.
#[test]
fn a_rolling_replacement_fails_nothing() {
    let file = |events: &str| {
        format!(
            "a = fleet(10, lambda: queue(delay(dist.exponential(20 * ms), server(\"a\"))))\n\
             scenario(\"s\", lb.least_conn(a), traffic.poisson(rate = 250), requests = 20000{events})\n"
        )
    };
    let rolling = only(&file(", events = [change.rolling(a, at = 25 * s, every = 2 * s)]"));
    let still = only(&file(""));
    assert_eq!(rolling.requests.failed, 0);
    let queue = rolling.nodes.iter().find(|node| node.kind == "queue").expect("it has one");
    assert_eq!(queue.count, 20, "members that ever were");
    let p99 = |of: &ScenarioResult| of.latency_all.p99.value.expect("long enough");
    assert!((p99(&rolling) / p99(&still) - 1.0).abs() < 0.2, "{} {}", p99(&rolling), p99(&still));
}

/// What has left otherwise is not replaced, and a fleet is scaled from what it then has.
#[test]
fn members_that_have_left_are_not_replaced() {
    let result = only(
        "a = fleet(10, lambda: server(\"a\", model = 1 * ms))\n\
         b = fleet(0, lambda: server(\"b\", model = 1 * ms))\n\
         scenario(\"s\", lb.random([a, b]), traffic.constant(rate = 100), duration = 60 * s, events = [\n\
             change.rolling(a, at = 10 * s, every = 5 * s, into = b),\n\
             change.leave(a, at = 12 * s, k = 3),\n\
             change.join(a, at = 12 * s, k = 3),\n\
             change.scale(a, at = 58 * s, to = 2),\n\
         ])\n",
    );
    let count = |name: &str| {
        let servers = result.nodes.iter().filter(|node| node.kind == "server");
        servers.filter(|node| node.name == name).map(|node| node.count).sum::<u64>()
    };
    assert_eq!((count("a"), count("b")), (13, 7), "members that ever were");
}
