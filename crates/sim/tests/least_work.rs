//! `lb.least_work` against theory: with a server behind each queue, first come first served, a request that joins the
//! least work waits exactly as long as in one common queue before all servers (Kiefer and Wolfowitz, 1955).

use std::sync::atomic::AtomicBool;
use weir_sim::{Error, Options, ScenarioResult, run};
use weir_topology::{Request, evaluate};

fn simulate(source: &str, replications: u32) -> Result<Vec<ScenarioResult>, Error> {
    let request =
        Request { name: "test.star".into(), source: source.as_bytes().to_vec(), ..Request::default() };
    let plan = evaluate(&request).unwrap_or_else(|e| panic!("{}\n{source}", e[0])).plan;
    let options = Options {
        seed: 1,
        first: 0,
        replications,
        settled_over: None,
        stretch: 1,
        requests: None,
        threads: 2,
        members: false,
        connections: false,
        scenarios: Vec::new(),
    };
    run(&plan, &options, &|_, _| {}, &AtomicBool::new(false)).map(|r| r.scenarios)
}

#[track_caller]
fn results(source: &str, replications: u32) -> Vec<ScenarioResult> {
    simulate(source, replications).unwrap_or_else(|e| panic!("{e:?}\n{source}"))
}

/// Any arrivals and any work: to the nanosecond, the same latencies as with one queue. The helper `work` is one place
/// in the text, so each request brings the same work in both.
#[test]
fn it_is_one_queue() {
    for (work, traffic, servers) in [
        ("delay(dist.exponential(10 * ms), server())", "traffic.poisson(rate = 450)", 5),
        ("delay(2 * ms, delay(dist.pareto(1 * ms, 1.5), server()))", "traffic.poisson(rate = 700)", 4),
        ("delay(10 * ms, server())", "traffic.poisson(rate = 280)", 3),
        (
            "delay(dist.lognormal(10 * ms, 2.0), server())",
            "traffic.mmpp([(900, 200 * ms), (60, 300 * ms)])",
            6,
        ),
        // Work that a request does twice on its way is known, too.
        ("sequence([step(), step()])", "traffic.constant(rate = 400)", 5),
    ] {
        let scenarios = results(
            &format!(
                "def step():\n    return delay(dist.exponential(5 * ms), server())\n\n\
                 def work():\n    return {work}\n\n\
                 t = {traffic}\n\
                 scenario(\"one\", queue(work(), concurrency = {servers}), t, requests = 4000, window = \"all\")\n\
                 scenario(\"least\", lb.least_work(pool({servers}, lambda: queue(work()))), t, requests = 4000, window = \"all\")\n"
            ),
            2,
        );
        assert_eq!(scenarios[0].latency_all, scenarios[1].latency_all, "{work} {traffic}");
        assert!(scenarios[0].latency_all.p99.value > scenarios[0].latency_all.p50.value.map(|x| x + 1.0));
    }
}

/// M/M/c: Erlang's C over the spare rate.
fn erlang_wait(lambda: f64, service: f64, servers: u32) -> f64 {
    let a = lambda * service;
    let mut b = 1.0;
    for k in 1..=servers {
        b = a * b / (f64::from(k) + a * b);
    }
    let rho = a / f64::from(servers);
    let c = b / (1.0 - rho * (1.0 - b));
    c * service / (f64::from(servers) * (1.0 - rho))
}

/// M/D/c (Crommelin 1932): the requests in the system one service time later were waiting now or arrived meanwhile,
/// so the number there is the stationary one of n -> max(n - c, 0) + Poisson(rate x service).
fn crommelin_wait(lambda: f64, service: f64, servers: usize) -> f64 {
    let a = lambda * service;
    let most = 400;
    let mut poisson = vec![(-a).exp()];
    for k in 1..most {
        poisson.push(poisson[k - 1] * a / k as f64);
    }
    let mut p = vec![0.0; most];
    p[0] = 1.0;
    for _ in 0..3000 {
        let mut next = vec![0.0; most];
        for (n, share) in p.iter().enumerate().filter(|(_, share)| **share > 1e-18) {
            let stay = n.saturating_sub(servers);
            next[stay..].iter_mut().zip(&poisson).for_each(|(to, come)| *to += share * come);
        }
        p = next;
    }
    let waiting: f64 = p.iter().enumerate().map(|(n, share)| share * n.saturating_sub(servers) as f64).sum();
    waiting / lambda
}

#[test]
fn its_mean_wait_is_erlangs_and_crommelins() {
    // Known values: M/D/1 is half of M/M/1, and M/M/2 at 0.8 waits 1.7778 service times.
    assert!((crommelin_wait(0.8, 1.0, 1) - 2.0).abs() < 1e-6);
    assert!((erlang_wait(1.6, 1.0, 2) - 16.0 / 9.0).abs() < 1e-9);
    for (work, wait) in [
        ("dist.exponential(10 * ms)", erlang_wait(400.0, 0.01, 5)),
        ("10 * ms", crommelin_wait(400.0, 0.01, 5)),
    ] {
        let found = results(
            &format!(
                "scenario(\"x\", lb.least_work(pool(5, lambda: queue(delay({work}, server())))), \
                 traffic.poisson(rate = 400), requests = 20000)\n"
            ),
            20,
        );
        let mean = &found[0].latency_all.mean;
        let (low, high) = (mean.low.expect("an interval"), mean.high.expect("an interval"));
        let expected = 10.0 + 1000.0 * wait;
        assert!(low < expected && expected < high && high - low < 1.0, "{work}: {expected} in {mean:?}");
    }
}

/// No policy without that knowledge does better, on the same requests.
#[test]
fn it_bounds_the_others() {
    let found = results(
        "def app():\n    return queue(delay(dist.hyperexponential([(0.9, 5 * ms), (0.1, 55 * ms)]), server())) \n\n\
         apps = pool(10, app)\n\
         for (name, lb_) in [(\"least_work\", lb.least_work), (\"least_conn\", lb.least_conn), (\"p2c\", lb.p2c), \
         (\"round_robin\", lb.round_robin), (\"random\", lb.random)]:\n    \
         scenario(name, lb_(apps), traffic.poisson(rate = 750), requests = 10000)\n",
        5,
    );
    let means: Vec<f64> = found.iter().filter_map(|s| s.latency_all.mean.value).collect();
    assert!(means.windows(2).all(|w| w[0] < w[1]), "{means:?}");
}

/// Where several balancers share the targets each knows what the others have sent there: they act as one.
#[test]
fn several_know_the_same() {
    let found = results(
        "def work():\n    return delay(dist.exponential(10 * ms), server())\n\n\
         apps = pool(5, lambda: queue(work()))\n\
         t = traffic.poisson(rate = 420)\n\
         scenario(\"one\", queue(work(), concurrency = 5), t, requests = 4000)\n\
         far = lambda: lb.least_work([cable(1 * ms, one) for one in apps])\n\
         scenario(\"several\", lb.random(pool(8, lambda: lb.least_work(apps))), t, requests = 4000)\n\
         scenario(\"one far\", cable(1 * ms, queue(work(), concurrency = 5)), t, requests = 4000)\n\
         scenario(\"several far\", lb.random(pool(8, far)), t, requests = 4000)\n",
        2,
    );
    assert_eq!(found[0].latency_all, found[1].latency_all);
    // Each across cables of its own: a request that was picked and is still on its cable has not begun, so only
    // nearly one.
    let mean = |i: usize| found[i].latency_all.mean.value.expect("a figure");
    assert!((mean(2) / mean(3) - 1.0).abs() < 1e-4, "{} {}", mean(2), mean(3));
}

/// A topology that is not supported is refused with its place, rather than simulated as something else.
#[test]
fn what_cannot_be_foreseen_is_refused() {
    for (node, kind) in [
        ("route([(when(path = \"/a\"), server())], otherwise = server())", "route"),
        ("split([(1, server()), (2, server())])", "split"),
        ("fanout([server(), server()])", "fanout"),
        ("hedge(5 * ms, server())", "hedge"),
    ] {
        let said = simulate(
            &format!(
                "scenario(\"x\", lb.least_work([delay(1 * ms, {node})]), traffic.poisson(rate = 10), requests = 10)\n"
            ),
            1,
        );
        let sentence = format!(
            "`lb.least_work` with a `{kind}` behind its targets is not built yet (`{kind}` at test.star:1"
        );
        assert!(matches!(&said, Err(Error::Plan(why)) if why.contains(&sentence)), "{said:?}");
    }
}
