//! Bamboo built without a file: for profiling the engine alone.
use std::sync::atomic::AtomicBool;
use weir_model::{Dist, Traffic};
use weir_policy::config::{Balance, Ties};
use weir_topology::plan::*;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (n, routers, servers) = (a[0], a.get(1).copied().unwrap_or(4), a.get(2).copied().unwrap_or(250));
    let ms = 1_000_000;
    let kinds = ["server", "delay", "delay", "queue", "cable", "lb.least_conn", "cable", "lb.random"];
    let places: Vec<Place> = kinds.iter().enumerate().map(|(i, k)| Place { file: 0, def: "<file>".into(), kind: k.to_string(), via: String::new(), number: i as u32 }).collect();
    let sites = (0..8).map(|i| Site { place: i, label: format!("s{i}"), span: String::new() }).collect();
    let specs = vec![
        Spec::Server { addr: None, model: None },
        Spec::Delay { time: Dist::Exponential { mean_ns: 100 * ms } },
        Spec::Delay { time: Dist::Fixed { ns: 20 * ms } },
        Spec::Queue { concurrency: 1, capacity: None },
        Spec::Cable { time: Dist::Fixed { ns: 2 * ms } },
        Spec::Lb(Balance::LeastConn { ties: Ties::Random, error_hold_ns: 0 }),
        Spec::Cable { time: Dist::Fixed { ns: 5 * ms } },
        Spec::Lb(Balance::Random),
    ];
    let mut nodes = Vec::new();
    let mut dynos = Vec::new();
    let mut add = |nodes: &mut Vec<Node>, site: u32, to: To| { nodes.push(Node { site, spec: site, to, name: None }); nodes.len() as u32 - 1 };
    for _ in 0..servers {
        let mut id = add(&mut nodes, 0, To::None);
        for s in 1..5 { id = add(&mut nodes, s, To::Node(id)); }
        dynos.push(id);
    }
    let mut rs = Vec::new();
    for _ in 0..routers {
        let lb = add(&mut nodes, 5, To::List(0));
        rs.push(add(&mut nodes, 6, To::Node(lb)));
    }
    let root = add(&mut nodes, 7, To::List(1));
    let point = Point { params: vec![], places, sites, specs, lists: vec![dynos, rs], nodes, warnings: vec![],
        scenarios: vec![Scenario { name: "bamboo".into(), root, traffic: Traffic::Poisson { gap_ns: 1e6 * 250.0 / servers as f64 }, requests: Some(n), window: Window::Middle, deadline_ns: 60_000 * ms, span: String::new() }] };
    let plan = Plan { schema: "weir.plan/1".into(), version: String::new(), file: String::new(), hash: String::new(), data_files: vec![], points: vec![point] };
    let o = weir_sim::Options { seed: 1, replications: a.get(3).copied().unwrap_or(1) as u32, requests: None, threads: 1, members: false, scenarios: vec![] };
    let t = std::time::Instant::now();
    let r = weir_sim::run(&plan, &o, &|_, _| {}, &AtomicBool::new(false));
    let e = t.elapsed();
    match r { Ok(r) => { let s = &r.scenarios[0]; println!("p50 {:?} p99 {:?} mean {:?} warn {:?}", s.latency_all.p50.value, s.latency_all.p99.value, s.latency_all.mean.value, s.warnings);
      for n in &s.nodes { println!("{} {} part {:?} util {:?} q {:?} wait {:?} serv {:?} spread {:?}", n.kind, n.requests, n.latency_part_ms.value, n.utilisation.value, n.queue_mean.value, n.wait_ms.value, n.service_ms.value, n.spread_cv.value); } }
      Err(e) => println!("{e:?}") }
    println!("{:.1} ns per request", e.as_nanos() as f64 / n as f64);
}
