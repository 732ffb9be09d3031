//! Probes of `lb.prequal` take the time of their path and cost their work, and nothing else.

use std::sync::atomic::AtomicBool;
use weir_sim::{Options, ScenarioResult, run};
use weir_topology::{Request, evaluate};

#[track_caller]
fn results(source: &str) -> Vec<ScenarioResult> {
    let request =
        Request { name: "test.star".into(), source: source.as_bytes().to_vec(), ..Request::default() };
    let plan = evaluate(&request).unwrap_or_else(|e| panic!("{}\n{source}", e[0])).plan;
    let options = Options {
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
    };
    run(&plan, &options, &|_, _| {}, &AtomicBool::new(false)).unwrap_or_else(|e| panic!("{e:?}")).scenarios
}

/// Ten servers behind a prequal balancer with these arguments, each behind the nodes of `far`.
fn prequal(name: &str, far: &str, more: &str) -> String {
    format!(
        "def app(work):\n    return queue(delay(work, server()))\n\n\
         scenario(\"{name}\", lb.prequal(pool(10, lambda: {far}){more}), traffic.poisson(rate = 700), requests = 10000)\n"
    )
}

fn mean(of: &ScenarioResult) -> (f64, f64) {
    let mean = &of.latency_all.mean;
    (mean.low.expect("an interval"), mean.high.expect("an interval"))
}

const WORK: &str = "app(dist.exponential(10 * ms))";

#[test]
fn a_way_of_no_length_is_none() {
    let near = results(&prequal("x", WORK, "")).remove(0);
    let far = results(&prequal("x", &format!("cable(0 * ms, {WORK})"), "")).remove(0);
    assert_eq!(near.latency_all, far.latency_all);
}

/// Answers that come back late are old: requests wait longer than the cable alone explains.
#[test]
fn answers_are_as_old_as_their_way() {
    let near = results(&prequal("x", WORK, "")).remove(0);
    let far = results(&prequal("x", &format!("cable(20 * ms, {WORK})"), "")).remove(0);
    assert!(mean(&far).0 - 40.0 > mean(&near).1 + 1.0, "{:?} {:?}", mean(&near), mean(&far));
}

/// 700 requests and 2,100 probes a second at ten servers: 70 % and 0.21 for each millisecond that a probe costs.
#[test]
fn a_cost_is_work() {
    let busy = |more: &str| {
        let found = results(&prequal("x", "app(10 * ms)", more)).remove(0);
        let queue = found.nodes.iter().find(|n| n.kind == "queue").expect("a queue");
        queue.utilisation.value.expect("a figure")
    };
    for (cost, expected) in [("", 0.7), (", probe_cost = 100 * us", 0.721), (", probe_cost = 1 * ms", 0.91)] {
        let found = busy(cost);
        assert!((found - expected).abs() < 0.012, "{cost}: {found} and not {expected}");
    }
}

/// A target probed across a cable that loses everything never answers, and is picked at random all the same.
#[test]
fn what_is_lost_is_no_answer() {
    let found = results(&prequal("x", "cable(1 * ms, app(1 * ms), loss = 1.0)", "")).remove(0);
    assert_eq!(found.requests.ok, 0);
    let source = "scenario(\"x\", lb.prequal([cable(1 * ms, server(\"a\"), loss = 0.5, resend = 1 * ms)]), traffic.constant(rate = 100), requests = 1000)\n";
    assert_eq!(results(source)[0].success.value, Some(1.0));
}

/// Two routers with cables of their own: each one's probes count what the other has sent to a server.
#[test]
fn a_server_is_one_whoever_asks() {
    let found = results(
        "one = queue(delay(dist.exponential(10 * ms), server(\"one\")))\n\
         two = queue(delay(dist.exponential(10 * ms), server(\"two\")))\n\
         busy = lb.first([cable(1 * ms, one)])\n\
         asks = lb.prequal([cable(1 * ms, one), cable(1 * ms, two)], pool = 2)\n\
         scenario(\"x\", lb.random([weight(4, busy), asks]), traffic.poisson(rate = 100), requests = 10000)\n",
    )
    .remove(0);
    let requests = |name: &str| found.nodes.iter().find(|n| n.name == name).expect("it is there").requests;
    // Four of five go to `one` by themselves; of the fifth it gets less than a third.
    let beyond = requests("one") as f64 - 0.8 * found.requests.selected as f64;
    assert!(beyond < 0.33 * 0.2 * found.requests.selected as f64, "{beyond} of {}", requests("two"));
}

/// Servers of eight cores, of which half take twice as long: whatever has more of a say, load or latency, requests wait
/// hardly longer than the work of the fast ones. A latency that grew with each request in flight, as that of one core
/// does, would hold eight at work for eight in line.
#[test]
fn latency_is_that_of_requests_that_met_as_many() {
    let mean_ms = |q_rif: &str| {
        let source = format!(
            "base = 20 * ms\n\
             apps = pool(100, lambda i: concurrent(dist.lognormal(base if i % 2 else 2 * base, 1.0), cores = 8))\n\
             scenario(\"x\", lb.prequal(apps, q_rif = {q_rif}), traffic.poisson(every = base / (100 * 8 * 0.75 * 0.75)), requests = 30000)\n"
        );
        mean(&results(&source)[0])
    };
    for (q_rif, most) in [("0.0", 30.0), ("0.84", 36.0), ("1.0", 50.0)] {
        let (low, high) = mean_ms(q_rif);
        assert!(high < most, "q_rif {q_rif}: {low} to {high} ms, at most {most}");
    }
}

/// Equal targets get equal shares, idle or busy.
#[test]
fn equal_targets_get_equal_shares() {
    for rate in [100, 500] {
        let found = results(&format!(
            "scenario(\"x\", lb.prequal([delay(5 * ms, server(\"a\")), delay(5 * ms, server(\"b\")), delay(5 * ms, server(\"c\"))]), traffic.poisson(rate = {rate}), requests = 4000)\n"
        ))
        .remove(0);
        let servers: Vec<_> = found.nodes.iter().filter(|n| n.kind == "server").collect();
        assert_eq!(servers.len(), 3);
        let all = found.requests.selected as f64;
        let shares: Vec<f64> = servers.iter().map(|n| n.requests as f64 / all).collect();
        assert!(shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.02), "{rate}: {shares:?}");
    }
}
