//! Targets that fail at once or never answer, behind the policies that measure time: they draw no traffic, and none is
//! given up for good.

use crate::shared::simulated::{figure, kinds, options, plan, simulate};
use weir_plan::Spec;
use weir_sim::Options;
use weir_topology::manual::functions;

/// The policies that measure times or count failures.
const MEASURING: [&str; 3] = ["peak_ewma", "zuul", "prequal"];

/// A policy that measures is tested here too.
#[test]
fn every_policy_that_measures_is_listed() {
    let measures = |name: &&str| {
        let plan = plan(&format!("x = {name}([server()])\n"));
        plan.points[0].specs.iter().any(|spec| matches!(spec, Spec::Lb(lb) if lb.balance.traits().measures))
    };
    let names = functions().into_iter().map(|f| f.name).filter(|name| name.starts_with("lb."));
    let found: Vec<&str> = names.filter(measures).filter_map(|name| name.strip_prefix("lb.")).collect();
    assert_eq!(found, MEASURING);
}

/// Twenty replications of as many requests as the scenario says; the share that failed.
fn failed(source: &str) -> Vec<(String, f64)> {
    let share = |s: &weir_sim::ScenarioResult| (s.name.to_string(), 1.0 - figure(s, "success").value);
    simulate(source, &options()).iter().map(share).collect()
}

const NODES: &str = r#"
bad = flaky(1.0, server("bad"))
def good():
    return delay(10 * ms, server("good"))
def hangs():
    return delay(1 * hours, server("hangs"))
"#;

/// One that answers 503 at once among n gets its even share at most, idle or with a hundred requests in flight.
/// `peak_ewma` gave it all of two and 0.20 of ten, `prequal` all and 0.30.
#[test]
fn a_target_that_fails_at_once_gets_its_even_share_at_most() {
    let mut source = NODES.to_owned();
    for n in [2, 10] {
        for policy in MEASURING {
            for rate in [10, 10_000] {
                source += &format!(
                    "scenario(\"{policy} of {n} at {rate}\", lb.{policy}([bad] + pool({n} - 1, good)), traffic.poisson(rate = {rate}), requests = 5000, window = \"all\")\n"
                );
            }
        }
    }
    for (name, share) in failed(&source) {
        let even = if name.contains("of 10") { 0.1 } else { 0.5 };
        // Three and a half standard errors of 100,000 picks, and the first that could not know.
        let most = even + 3.5 * f64::sqrt(even * (1.0 - even) / 100_000.0) + 0.001;
        assert!(share < most, "{name}: {share}, {most} at most");
        // `lb.zuul` counts failures for half a minute: it tries once in a while.
        let least = if name.starts_with("zuul") { 0.0001 } else { 0.8 * even };
        assert!(share > least, "{name}: {share}, it is tried");
    }
}

/// One of ten refuses half of the time, for ten seconds on average. It gets its tenth all along: while it refuses by
/// the rule of those that failed last, while it answers by its cost.
#[test]
fn who_answers_again_gets_its_share_again() {
    let source = r#"
def one(name):
    return queue(delay(dist.exponential(10 * ms), server(name)), concurrency = 100)
def run(name, policy):
    targets = [faulty(10 * s, 10 * s, one("changing"), starts = "down")] + pool(9, lambda: one("sound"))
    scenario(name, policy(targets), traffic.poisson(rate = 1000), duration = 120 * s, window = "all")
run("peak_ewma", lb.peak_ewma)
run("prequal", lb.prequal)
"#;
    let options = Options { replications: 4, ..options() };
    for s in simulate(source, &options) {
        let server = s.nodes.iter().find(|n| n.name == "changing").expect("its site");
        let answered = server.requests as f64 / s.requests.selected as f64;
        let refused = 1.0 - figure(&s, "success").value;
        assert!(answered > 0.03 && refused > 0.03, "{}: {answered} and {refused}", s.name);
        assert!((0.085..0.115).contains(&(answered + refused)), "{}: {answered} and {refused}", s.name);
    }
}

/// A limit around a balancer over one that hangs and one that takes 10 ms, with arrivals that come when that one is
/// idle and when it is not. Of 100 requests a few are cut off, of many about one in 128.
#[test]
fn a_target_that_hangs_is_not_chosen_again_and_again() {
    let mut source = NODES.to_owned();
    let arrivals = [
        "constant(every = 20 * ms)",
        "constant(every = 100 * ms)",
        "poisson(every = 100 * ms)",
        "poisson(every = 20 * ms)",
    ];
    for arrivals in arrivals {
        for requests in [100, 2000] {
            source += &format!(
                "scenario(\"{arrivals}, {requests}\", timeout(15 * ms, lb.peak_ewma([hangs(), good()])), traffic.{arrivals}, requests = {requests}, window = \"all\")\n"
            );
        }
    }
    for s in simulate(&source, &options()) {
        let failed = 1.0 - figure(&s, "success").value;
        let most = if s.name.ends_with(" 100") { 0.05 } else { 0.015 };
        assert!(failed < most && failed > 0.003, "{}: {failed}, {most} at most", s.name);
        assert_eq!(kinds(&s), ["timeout"]);
    }
}

/// One that answers nothing for 20 s on average and is well from then on gets its half of the requests within seconds.
#[test]
fn a_target_that_hung_is_tried_again() {
    let source = r#"
hung = faulty(100000 * s, 20 * s, delay(10 * ms, server("hung")), mode = "blackhole", starts = "down")
policy = lb.peak_ewma([hung, delay(10 * ms, server("good"))])
scenario("x", timeout(15 * ms, policy), traffic.poisson(rate = 50), duration = 200 * s, window = "all")
"#;
    let s = simulate(source, &options()).remove(0);
    let server = s.nodes.iter().find(|n| n.name == "hung").expect("its site");
    let share = server.requests as f64 / s.requests.selected as f64;
    // A half of 180 s in 200, less the seconds that it takes; four standard errors of the mean of 20 times.
    assert!((0.37..0.49).contains(&share), "{share}");
    assert!(figure(&s, "success").value > 0.995);
}
