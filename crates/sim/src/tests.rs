//! The engine against its reference, members against sites, in any topology; and every self-check shown to fire.

use crate::engine::{Engine, Sabotage};
use crate::results::replicate::program;
use crate::results::result::{NodeResult, Results, ScenarioResult};
use crate::results::run::{Error, Options, run_with};
use crate::state::source::load;
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;
use weir_stats::Key;
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
        replications: 3,
        settled_over: None,
        stretch: 1,
        requests: None,
        threads: 2,
        members: false,
        connections: false,
        scenarios: Vec::new(),
    }
}

fn simulate(plan: &Plan, options: &Options, fast: bool) -> Result<Results, Error> {
    run_with(plan, options, &|_, _| {}, &AtomicBool::new(false), fast)
}

fn results(source: &str) -> Vec<ScenarioResult> {
    simulate(&plan(source), &options(), true).unwrap_or_else(|e| panic!("{e:?}")).scenarios
}

/// Whole milliseconds everywhere, so that nearly every event ties with others.
const TIES: &str = r#"
def ms_exp(mean):
    return dist.rounded(dist.exponential(mean), 1 * ms)

def dyno():
    return cable(2 * ms, faulty(200 * ms, 20 * ms, queue(delay(5 * ms, delay(ms_exp(10 * ms), server("rails")))), clock = "lazy"))

def weak():
    return cable(1 * ms, queue(delay(ms_exp(8 * ms), server("weak")), concurrency = 2, capacity = 3))

shared = pool(12, dyno)
routers = pool(3, lambda: cable(5 * ms, retry(3, lb.least_conn(shared, error_hold = 50 * ms), exclude = "none")))
scenario("routers", lb.random(routers), traffic.constant(every = 2 * ms), requests = 4000)
scenario("burst", retry(2, lb.random(routers)), traffic.renewal(ms_exp(1500 * us)), requests = 4000)
scenario("weak", lb.p2c([weight(2, weak()), weak(), weak(), cable(3 * ms, shared[0])]), traffic.constant(every = 2 * ms), requests = 4000)
scenario("turns", lb.round_robin([weight(3, dyno()), weight(1, weak())]), traffic.constant(every = 7 * ms), requests = 3000)
def plain():
    return cable(2 * ms, queue(delay(ms_exp(10 * ms), server()), capacity = 4))

plains = pool(7, plain)
scenario("idle", lb.least_conn(plains), traffic.constant(every = 2 * ms), requests = 4000)
scenario("idle behind routers", lb.random(pool(3, lambda: cable(1 * ms, lb.least_conn(plains)))), traffic.renewal(ms_exp(2 * ms)), requests = 4000)
scenario("drawn way", lb.least_conn(pool(5, lambda: cable(ms_exp(2 * ms), queue(delay(9 * ms, server()))))), traffic.constant(every = 2 * ms), requests = 3000)
scenario("two ways", lb.round_robin([plains[0], cable(1 * ms, plains[0]), cable(3 * ms, plains[1])]), traffic.constant(every = 6 * ms), requests = 3000)
one = queue(lb.least_conn([delay(5 * ms, server("a")), delay(7 * ms, server("b"))], ties = "first"))
scenario("overtaken", lb.round_robin([delay(3 * ms, one), one], start = "first"), traffic.constant(every = 1 * ms), requests = 2, window = "all")
def by_split(node):
    return split([(1, cable(1 * ms, node)), (1, server())])

both = queue(delay(3 * ms, server()))
scenario("by a split", lb.random([cable(5 * ms, both), by_split(both)]), traffic.constant(every = 1 * ms), requests = 3000)
scenario("by hash", lb.random([cable(5 * ms, both), lb.first([cable(1 * ms, both)])]), traffic.constant(every = 1 * ms), requests = 3000)
scenario("eager", lb.least_conn(pool(3, lambda: faulty(30 * ms, 10 * ms, cable(1 * ms, queue(delay(4 * ms, server()))))), ties = "rotate"), traffic.constant(every = 3 * ms), requests = 3000, window = "all")
"#;

/// A file from a seed: random nodes over shared and own children.
fn random_file(seed: u64) -> String {
    let mut n = 0;
    let mut draw = |below: u64| {
        n += 1;
        Key::new(seed).with(n).bits() % below
    };
    let mut text = String::from(
        "def e(m):\n    return dist.rounded(dist.exponential(m * ms), 1 * ms)\n\nn0 = server(\"a\")\n",
    );
    let nodes = 4 + draw(9);
    for i in 1..=nodes {
        let child = |d: u64| format!("n{}", i - 1 - d.min(i - 1));
        let (a, b, k) = (child(draw(3)), child(draw(4)), 1 + draw(4));
        let node = match draw(11) {
            0 => format!("cable({k} * ms, {a})"),
            1 => format!("cable(e({k}), {a})"),
            2 => format!("queue({a}, concurrency = {k})"),
            3 => format!("queue(delay(e({k}), {a}), capacity = {k})"),
            4 => format!("delay(e({k}), {a})"),
            5 => format!("retry({k}, {a}, on = [\"refused\", \"overloaded\"])"),
            6 => format!(
                "faulty({k}0 * ms, {k} * ms, {a}, clock = \"{}\")",
                if draw(2) == 0 { "eager" } else { "lazy" }
            ),
            7 => format!("lb.least_conn([{a}, {b}], error_hold = {} * ms)", draw(3)),
            8 => format!("lb.round_robin([weight({k}, {a}), {b}])"),
            9 => format!("lb.p2c([{a}, {b}, {a}])"),
            _ => format!(
                "lb.random([weight({k}, {a}), {b}] + pool({k}, lambda: queue(delay({k} * ms, server()))))"
            ),
        };
        text += &format!("n{i} = {node}\n");
    }
    let traffic = if draw(2) == 0 { "traffic.constant(every = 4 * ms)" } else { "traffic.renewal(e(5))" };
    text + &format!("scenario(\"s\", n{nodes}, {traffic}, requests = 600)\n")
}

/// The engine gives the same bytes as its reference, in which every wait is an event of its own and nothing runs
/// ahead of its time: the order at one instant is that of `docs/spec/language.md#order-at-one-instant`, not an
/// accident of scheduling. Self-checks run in both.
#[test]
fn both_engines_agree() {
    let fixed = std::iter::once(TIES.to_string());
    for source in fixed.chain((0..150).map(random_file)) {
        let plan = plan(&source);
        for members in [false, true] {
            let options = Options { members, replications: 2, ..options() };
            let fast = simulate(&plan, &options, true).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
            let general = simulate(&plan, &options, false).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
            assert!(fast.events <= general.events);
            assert_eq!(fast, Results { events: fast.events, ..general }, "{source}");
        }
    }
}

/// Statistics by member add up to those by site.
#[test]
fn members_add_up_to_sites() {
    let plan = plan(TIES);
    let sites = simulate(&plan, &options(), true).unwrap().scenarios;
    let members = simulate(&plan, &Options { members: true, ..options() }, true).unwrap().scenarios;
    for (s, m) in sites.iter().zip(&members) {
        assert_eq!(s.latency_all, m.latency_all);
        for site in &s.nodes {
            let of: Vec<_> = m.nodes.iter().filter(|n| n.place == site.place).collect();
            assert_eq!(of.len() as u64, site.count);
            assert_eq!(of.iter().map(|n| n.requests).sum::<u64>(), site.requests, "{}", site.place);
            let errors = |of: &[&NodeResult]| of.iter().flat_map(|n| &n.errors).map(|e| e.1).sum::<u64>();
            assert_eq!(errors(&of), errors(&[site]), "{}", site.place);
            let part: f64 = of.iter().filter_map(|n| n.latency_part_ms.value).sum();
            assert!((part - site.latency_part_ms.value.unwrap()).abs() < 1e-6);
            assert_eq!(of.iter().filter_map(|n| n.queue_max).max(), site.queue_max);
        }
    }
}

/// A request brings the same work, whichever target is picked, in whichever scenario of the file.
#[test]
fn every_policy_faces_the_same_work() {
    let source = r#"
def dyno():
    return queue(delay(dist.exponential(50 * ms), server()))

for name, policy in [("random", lb.random), ("turns", lb.round_robin), ("least", lb.least_conn), ("two", lb.p2c)]:
    scenario(name, policy(pool(20, dyno)), traffic.poisson(every = 5 * ms), requests = 5000)
scenario("retried", retry(3, lb.least_conn(pool(20, dyno))), traffic.poisson(rate = 200), requests = 5000)
"#;
    let found = results(source);
    let work = |r: &ScenarioResult| r.nodes.iter().find(|n| n.kind == "delay").map(|n| n.service_ms);
    assert!(found.windows(2).all(|w| work(&w[0]) == work(&w[1])));
    assert!(found.windows(2).all(|w| w[0].request_rate_per_s == w[1].request_rate_per_s));
    assert_ne!(found[0].latency_all.mean, found[1].latency_all.mean);
}

/// Two delays on one path are independent: their sum has the variance of a sum (an Erlang's, not a doubled
/// exponential's).
#[test]
fn two_delays_on_a_path_are_independent() {
    let source = r#"
def hop(x):
    return delay(dist.exponential(50 * ms), x)

scenario("same place twice", hop(hop(server())), traffic.poisson(rate = 100), requests = 40000)
scenario("two places", delay(dist.exponential(50 * ms), delay(dist.exponential(50 * ms), server())), traffic.poisson(rate = 100), requests = 40000)
scenario("both ways", cable(dist.exponential(50 * ms), server()), traffic.poisson(rate = 100), requests = 40000)
"#;
    for r in results(source) {
        // Erlang(2, 100 ms): median 83.9, p99 331.9; a doubled exponential: 69.3 and 460.5.
        assert!((r.latency_all.p50.value.unwrap() - 83.92).abs() < 1.5, "{}", r.name);
        assert!((r.latency_all.p99.value.unwrap() - 331.9).abs() < 8.0, "{}", r.name);
    }
}

/// A retry's further attempts bring work of their own, or the work of the first one again.
#[test]
fn attempts_redraw_their_work_or_keep_it() {
    let file = |work: &str| {
        format!(
            "scenario(\"x\", retry(3, delay(dist.exponential(20 * ms), faulty(1 * us, 1000 * hours, server())), work = \"{work}\"), \
             traffic.poisson(rate = 50), requests = 40000)\n"
        )
    };
    let p99 = |work: &str| results(&file(work))[0].latency_all.p99.value.unwrap();
    // Three draws: Erlang(3, 60 ms), p99 168.1; one draw three times: 60 ms ln 100 = 276.3.
    assert!((p99("redraw") - 168.1).abs() < 4.0, "{}", p99("redraw"));
    assert!((p99("same") - 276.3).abs() < 8.0, "{}", p99("same"));
}

/// Attempts of nested retries are as independent as those of one.
#[test]
fn nested_attempts_are_independent() {
    let work = "delay(dist.exponential(20 * ms), faulty(1 * us, 1000 * hours, server()))";
    let source = format!(
        "scenario(\"nested\", retry(2, retry(2, {work})), traffic.poisson(rate = 50), requests = 40000)\n\
         scenario(\"flat\", retry(4, {work}), traffic.poisson(rate = 50), requests = 40000)\n"
    );
    for r in results(&source) {
        // Erlang(4, 80 ms): p99 200.9.
        assert!(
            (r.latency_all.p99.value.unwrap() - 200.9).abs() < 4.0,
            "{}: {:?}",
            r.name,
            r.latency_all.p99
        );
        for node in r.nodes.iter().filter(|n| n.kind == "retry") {
            assert_eq!(node.errors.iter().map(|e| e.1).sum::<u64>(), node.requests, "one failure per entry");
        }
    }
}

/// A returning request meets, at one instant, another that it wakes: worked out by hand.
#[test]
fn a_return_is_seen_by_a_request_that_it_wakes() {
    let r = results(TIES).into_iter().find(|r| r.name == "overtaken").unwrap();
    // Request 1 takes `a` at 2 ms until 7 ms; request 0 waits from 4 ms, takes `a` too, and ends at 12 ms.
    assert_eq!((r.latency_all.min, r.latency_all.max), (Some(5.0), Some(11.0)));
}

/// Requests that a bounded queue refuses are not a sign of overload, and not part of its service.
#[test]
fn a_bounded_queue_settles() {
    let source = "scenario(\"x\", queue(delay(10 * ms, server()), capacity = 3), traffic.poisson(rate = 1000), requests = 20000)\n";
    let r = &results(source)[0];
    let grows = |w: &String| w.starts_with("overloaded") || w.contains("not settle");
    assert!(!r.warnings.iter().any(grows), "{:?}", r.warnings);
    let queue = r.nodes.iter().find(|n| n.kind == "queue").unwrap();
    assert!((queue.service_ms.value.unwrap() - 10.0).abs() < 1e-9);
}

/// Times that exceed 64 bits are not wrapped: such a scenario has no figures, and the others stand.
#[test]
fn a_run_of_centuries_has_no_figures() {
    let fine = "scenario(\"fine\", server(), traffic.poisson(every = 1 * ms), requests = 1000)\n";
    for file in [
        "scenario(\"x\", server(), traffic.constant(every = 800000 * hours), requests = 10)\n",
        "x = server()\nfor _ in range(8):\n    x = delay(500000 * hours, x)\nscenario(\"x\", queue(x), traffic.constant(every = 1 * ms), requests = 10)\n",
    ] {
        let all =
            simulate(&plan(&format!("{file}{fine}")), &options(), true).expect("the other stands").scenarios;
        assert!(all[0].warnings[0].contains("146 years"), "{:?}", all[0].warnings);
        assert_eq!((all[0].requests.selected, all[0].success.value), (0, None));
        let alone = simulate(&plan(fine), &options(), true).expect("it is fine").scenarios;
        assert_eq!(
            (all[1].requests.selected, all[1].latency_all),
            (alone[0].requests.selected, alone[0].latency_all)
        );
    }
}

/// Each self-check fires when what it guards is broken.
#[test]
fn every_self_check_fires() {
    let source = r#"
def dyno():
    return cable(2 * ms, queue(delay(dist.exponential(8 * ms), server())))

scenario("s", lb.least_conn(pool(3, dyno)), traffic.poisson(every = 5 * ms), requests = 500, window = "all")
"#;
    let plan = plan(source);
    let point = &plan.points[0];
    let violations = |sabotage: Option<Sabotage>| {
        let code = program(point, &point.scenarios[0], false, true, Key::new(1)).unwrap().code;
        let load = load(&point.scenarios[0], Some(500), Key::new(1));
        let stop = AtomicBool::new(false);
        let mut engine = Engine::new(&code, load, Key::new(1), &stop);
        engine.sabotage(sabotage);
        engine.run().unwrap();
        engine.core.ledger_mut().add_constant_waits(&code);
        engine.violations(Some(500), Some(500)).join("; ")
    };
    assert_eq!(violations(None), "");
    for (sabotage, law) in [
        (Sabotage::LoseRequest, "conservation: of 500 requests"),
        (Sabotage::LeakSlot, "left in queues"),
        (Sabotage::ForgetReturn, "balancers still count"),
        (Sabotage::StretchLatency, "Little's law"),
        (Sabotage::StretchLatency, "parts of the latency"),
        (Sabotage::MiscountWork, "utilisation law"),
        (Sabotage::TurnClockBack, "time went back"),
        (Sabotage::SkipRecord, "of 500 selected requests were counted"),
    ] {
        let said = violations(Some(sabotage));
        assert!(said.contains(law), "{sabotage:?}: {said:?} lacks {law:?}");
    }
}

/// An overloaded run is labelled so before any number; a settled one is not.
#[test]
fn overload_is_said_in_words() {
    let file = |every: &str| {
        format!(
            "scenario(\"x\", queue(delay(dist.exponential(10 * ms), server())), traffic.poisson(every = {every}), requests = 20000)\n"
        )
    };
    let over = &results(&file("9 * ms"))[0].warnings;
    assert!(over.iter().any(|w| w.starts_with("overloaded: the queue at")), "{over:?}");
    assert!(results(&file("20 * ms"))[0].warnings.is_empty());
}

/// The numbers of `docs/spec/language.md#window` and `docs/spec/language.md#rates`.
#[test]
fn the_window_is_the_posts() {
    let r = &results(
        "scenario(\"x\", delay(3 * ms, server()), traffic.constant(every = 10 * ms), requests = 1003)\n",
    )[0];
    assert_eq!((r.requests.total, r.requests.selected), (3 * 1003, 3 * (1003 - 2 * 250)));
    assert!((r.request_rate_per_s.value.unwrap() - 503.0 / 5.02).abs() < 1e-9);
    assert_eq!(r.latency_all.min, Some(3.0));
    assert_eq!(r.latency_all.p999.value, None, "503 samples have no 99.9 % quantile");
    assert_eq!(r.attempts_per_request.value, Some(1.0));
}
