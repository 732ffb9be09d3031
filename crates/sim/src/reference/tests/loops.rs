//! Several loops of a `listen`: process-wide state of a balancer is counted once, in both engines.

use super::core::{around, fitting, undivided, unramped};
use super::engine::{agree, node};
use super::random::{Draws, traffic};
use super::{options, plan};
use crate::results::result::{Results, ScenarioResult};
use crate::results::run::{Options, run_with};
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;

fn run(plan: &Plan, fast: bool) -> ScenarioResult {
    let options = Options { members: true, ..options() };
    let run = run_with(plan, &options, &|_, _| {}, &AtomicBool::new(false), fast);
    let Results { mut scenarios, .. } = run.unwrap_or_else(|e| panic!("{e:?}"));
    scenarios.remove(0)
}

/// Which state of balancers may differ from loop to loop.
#[derive(Clone, Copy, PartialEq)]
enum LoopState {
    Anything,
    /// Policies without state, and no target is passed over.
    Nothing,
    /// All state is the process's.
    ScopeProcess,
}

impl LoopState {
    fn policies(self) -> &'static [&'static str] {
        match self {
            LoopState::Nothing => &["lb.random", "lb.first"],
            LoopState::Anything => &[
                "lb.least_conn",
                "lb.p2c",
                "lb.random",
                "lb.round_robin",
                "lb.first",
                "lb.peak_ewma",
                "lb.zuul",
                "lb.prequal",
                "lb.ring_hash",
            ],
            // What `lb.zuul` has read and heard is a loop's own.
            LoopState::ScopeProcess => &[
                "lb.least_conn",
                "lb.p2c",
                "lb.random",
                "lb.round_robin",
                "lb.first",
                "lb.peak_ewma",
                "lb.prequal",
                "lb.ring_hash",
            ],
        }
    }

    /// A balancer over two nodes, with anything that can surround it.
    fn balancer(self, d: &mut Draws, a: &str, b: &str) -> String {
        let (policy, weight) = (d.choose(self.policies()), 1 + d.number(2));
        let mut around = around(d, "server(\"spare\")").replace(", scope = \"process\"", "");
        around = match self {
            LoopState::Anything => fitting(policy, &around).to_owned(),
            _ => undivided(&around).to_owned(),
        };
        if policy.contains("hash") {
            around = unramped(&around);
            around += ", key = key.header(\"x-user\"), bound = 1.25";
        }
        match self {
            LoopState::Anything => {}
            LoopState::Nothing => {
                around = around.replace(", pass_over = 3 * ms", "") + ", pass_over = 0 * ms"
            }
            LoopState::ScopeProcess => around += ", scope = \"process\"",
        }
        let far = match d.number(4) {
            0 => a.to_owned(),
            1 => format!(
                "faulty(30 * ms, 9 * ms, {a}, mode = \"{}\")",
                d.choose(&["refuse", "crash", "blackhole"])
            ),
            2 => format!("flaky(0.3, {a}, kind = \"{}\")", d.choose(&["status_5xx", "connect_failed"])),
            _ => format!("queue(delay(e(3), {a}), concurrency = 2)"),
        };
        format!("{policy}([{far}, weight({weight}, {b}), cable(1 * ms, {a})]{around})")
    }

    /// A topology with such balancers behind a listener; `LOOPS` is the placeholder for its loops.
    fn file(self, seed: u64) -> String {
        let mut d = Draws::new(seed.wrapping_add(1 << 41));
        let mut text = String::from(
            "def e(m):\n    return dist.rounded(dist.exponential(m * ms), 1 * ms)\n\nn0 = delay(e(2), server(\"a\"))\n",
        );
        let (nodes, mut retries) = (2 + d.number(7), 3);
        for i in 1..=nodes {
            let mut child = |far: u64| format!("n{}", i - 1 - d.number(far).min(i - 1));
            let (a, b) = (child(3), child(4));
            let other = (i < nodes && d.number(5) < 2).then(|| node(&mut d, &a, &b, &mut retries));
            let other = other.filter(|node| self == LoopState::Anything || !node.starts_with("lb."));
            let made = other.unwrap_or_else(|| self.balancer(&mut d, &a, &b));
            text += &format!("n{i} = {made}\n");
        }
        let (mut arrivals, more) = traffic(&mut d);
        if arrivals.contains("closed") {
            arrivals = "traffic.poisson(every = 2 * ms)".into();
        }
        let kinds = "[(3, request(key = keys.zipf(9, 1.0))), (1, request(method = \"POST\", headers = {\"x-user\": \"u\"}))]";
        if d.number(2) == 0 {
            arrivals = format!("traffic.mix({arrivals}, {kinds})");
        }
        text + &format!(
            "root = listen(\":0\", n{nodes}, loops = LOOPS)\nscenario(\"s\", root, {arrivals}, {more})\n"
        )
    }
}

/// A topology with balancers behind a listener of `loops` loops.
pub(super) fn any_file(seed: u64, loops: u64) -> String {
    LoopState::Anything.file(seed).replace("LOOPS", &loops.to_string())
}

/// Both engines agree on balancers of several loops, however they are surrounded.
#[test]
fn both_engines_share_what_is_the_process_s() {
    for seed in 0..1200 {
        let source = any_file(seed, 2 + seed % 4);
        agree(&plan(&source), &format!("loops seed {seed}:\n{source}"));
    }
}

/// Where all state of a balancer is the process's, the number of loops changes no byte.
#[test]
fn where_nothing_is_a_loop_s_own_their_number_is_no_matter() {
    let mut failed = 0;
    for seed in 0..500 {
        let kind = if seed % 2 == 0 { LoopState::Nothing } else { LoopState::ScopeProcess };
        let source = kind.file(seed);
        for fast in [false, true] {
            let of = |loops: &str| {
                let result = run(&plan(&source.replace("LOOPS", loops)), fast);
                ScenarioResult { warnings: Vec::new(), ..result }
            };
            let one = of("1");
            assert_eq!(one, of("4"), "seed {seed}, fast: {fast}:\n{source}");
            failed += u64::from(!one.requests.errors.is_empty());
        }
    }
    assert!(failed > 250, "hardly anything failed: {failed}");
}

/// Failures in a row are counted over all loops, and the target is out for all of them at once.
#[test]
fn a_target_is_ejected_once_for_all_loops() {
    for (loops, fast) in [(1, true), (2, false), (4, true), (4, false), (16, true)] {
        let source = format!(
            "bad = faulty(9 * hours, 9 * hours, server(\"bad\"), mode = \"crash\", starts = \"down\")\n\
             front = lb.round_robin([bad, server(\"good\")], eject = eject(consecutive = 7, base = 5 * hours))\n\
             root = listen(\":0\", front, loops = {loops})\n\
             scenario(\"s\", root, traffic.constant(every = 1 * ms), requests = 2000, window = \"all\")\n"
        );
        let result = run(&plan(&source), fast);
        assert_eq!((result.requests.failed, result.requests.ok), (7, 1993), "{loops} loops, fast: {fast}");
    }
}

/// One request at a time at a target of `max_in_flight=1`, whichever loop sends it; waiting requests form one line
/// over all loops.
#[test]
fn loops_share_limits_of_targets_and_the_line() {
    let went = |more: &str, loops: u32| {
        let source = format!(
            "root = listen(\":0\", lb.least_conn([delay(5 * ms, server())], max_in_flight = 1{more}), loops = {loops})"
        );
        let case = super::Case::new(&[0, 0, 0, 0, 1, 1, 12], &source);
        agree(&case.plan, &source);
        case.run().answers
    };
    for loops in [1, 4, 9] {
        assert_eq!(
            went("", loops),
            ["5 ok", "10 ok", "15 ok", "20 ok", "24 ok", "29 ok", "23 ok"],
            "in order of arrival"
        );
        let (full, late) = ("0 overloaded", "7 timeout");
        assert_eq!(went(", max_waiting = 2", loops), ["5 ok", "10 ok", "15 ok", full, full, full, "8 ok"]);
        assert_eq!(went(", wait_timeout = 7 * ms", loops), ["5 ok", "10 ok", late, late, late, late, "5 ok"]);
    }
}

/// Checks are sent once per process: they keep a server busy for the same time whatever the number of loops, and a
/// target that fails them is out for all.
#[test]
fn checks_are_sent_once() {
    let of = |loops: u32, fast: bool| {
        let source = format!(
            "def target(i):\n    return queue(faulty(9 * hours, 9 * hours, server(\"s%d\" % i), starts = \"up\" if i else \"down\"))\n\
             front = lb.round_robin(pool(3, target), health = health.http(\"/\", interval = 100 * ms, fall = 2, cost = 20 * ms))\n\
             root = listen(\":0\", front, loops = {loops})\n\
             scenario(\"s\", root, traffic.constant(every = 10 * ms), requests = 1000, window = \"all\")\n"
        );
        let result = run(&plan(&source), fast);
        let queues = result.nodes.iter().filter(|n| n.kind == "queue");
        let busy: Vec<f64> = queues.map(|n| (n.utilisation.value.unwrap() * 100.0).round()).collect();
        (busy, result.requests.failed)
    };
    let (busy, failed) = of(1, true);
    assert_eq!(busy[1..], [20.0, 20.0], "20 ms in 100");
    for (loops, fast) in [(4, true), (4, false), (7, true)] {
        let (same, more) = of(loops, fast);
        assert_eq!(same, busy);
        assert!(failed.abs_diff(more) <= u64::from(loops), "{failed} {more}");
    }
}
