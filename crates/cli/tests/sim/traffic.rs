//! Traffic whose rate changes: as many requests as its law says. Times in ms.

use crate::shared::common;
use crate::shared::simulated::{REPLICATIONS, judge, options, simulate};
use weir_sim::Options;

/// The mean rate of a modulated process is that of its states, weighted by their mean stays; of a schedule that is
/// repeated, the area under it.
#[test]
fn mean_rates() {
    let source = r#"
def rate(name, arrivals):
    scenario(name, server(), arrivals, duration = 2000 * s, window = "all")

rate("two states", traffic.mmpp([(10, 2 * s), (100, 500 * ms)]))
rate("three states", traffic.mmpp([(0, 1 * s), (50, 2 * s), (20, 1 * s)]))
rate("saw", traffic.schedule([(0 * s, 0), (10 * s, 60)], repeat = True))
rate("steps", traffic.schedule([(0 * s, 20), (4 * s, 20), (4 * s, 80), (5 * s, 80)], repeat = True))
rate("holds", traffic.schedule([(0 * s, 20)]))
"#;
    judge(
        source,
        &[
            ("two states", vec![("rate", (10.0 * 2.0 + 100.0 * 0.5) / 2.5)]),
            ("three states", vec![("rate", (50.0 * 2.0 + 20.0) / 4.0)]),
            ("saw", vec![("rate", 30.0)]),
            ("steps", vec![("rate", (20.0 * 4.0 + 80.0) / 5.0)]),
            ("holds", vec![("rate", 20.0)]),
        ],
    );
}

/// A burst by schedule brings ten seconds' arrivals within one: within four standard deviations of the Poisson count.
#[test]
fn a_burst_brings_what_it_says() {
    let source = r#"
points = [(0 * s, 60), (5 * s, 60), (5 * s, 600), (6 * s, 600), (6 * s, 60)]
scenario("x", server(), traffic.schedule(points), duration = 20 * s, window = "all")
"#;
    let total = simulate(source, &options())[0].requests.total as f64;
    let want = 20.0 * (60.0 * 19.0 + 600.0);
    assert!((total - want).abs() < 4.0 * want.sqrt(), "{total}, expected {want}");
}

/// An interrupted Poisson process (a modulated one with a silent state) is a renewal process with hyperexponential
/// gaps, so its queue is GI/M/1: T is exponential with mean s/(1−σ).
#[test]
fn bursts_in_a_queue() {
    // Rate λ while on; on for 1/a, off for 1/b on average. Kuczura (1973): gaps are (p, r1) or (1 − p, r2).
    let (lambda, a, b, work): (f64, f64, f64, f64) = (0.02, 1.0 / 300.0, 1.0 / 200.0, 40.0);
    let root = ((lambda + a + b).powi(2) - 4.0 * lambda * b).sqrt();
    let (r1, r2) = ((lambda + a + b + root) / 2.0, (lambda + a + b - root) / 2.0);
    let p = (lambda - r2) / (r1 - r2);
    let transform = |s: f64| p * r1 / (r1 + s) + (1.0 - p) * r2 / (r2 + s);
    let sigma = (0..10_000).fold(0.5, |sigma, _| transform((1.0 - sigma) / work));
    let mean = work / (1.0 - sigma);
    let source = r#"
scenario("x", queue(delay(dist.exponential(40 * ms), server())), traffic.mmpp([(20, 300 * ms), (0, 200 * ms)]), requests = 100000)
"#;
    judge(source, &[("x", vec![("mean", mean), ("p50", mean * 2f64.ln()), ("p95", mean * 20f64.ln())])]);
}

/// Each row of a trace is the request that it says: where it goes, and whose it is.
#[test]
fn rows_of_a_trace_are_its_requests() {
    let scratch = common::Scratch::new("trace-rows");
    let mut rows = "arrival_ms,path,method,key\n".to_owned();
    for i in 0..300 {
        let (path, method) = [("/a", "GET"), ("/b", "GET"), ("/b", "POST")][i % 3];
        rows += &format!("{i},{path},{method},user{}\n", i % 5);
    }
    std::fs::write(scratch.path("rows.csv"), rows).expect("written");
    let source = format!(
        r#"
hashed = lb.maglev([server("h%d" % i) for i in range(50)], key=key.header("x-user"))
node = route([(when(path="/a"), server("a")), (when(method="POST"), server("post"))], otherwise=hashed)
scenario("x", node, traffic.trace("{}"), requests=300, window="all")
"#,
        scratch.path("rows.csv")
    );
    let s = &simulate(&source, &Options { members: true, ..options() })[0];
    assert!(s.warnings.is_empty(), "{:?}", s.warnings);
    let entries = |name: &str| -> Vec<u64> {
        let named = s.nodes.iter().filter(|n| n.kind == "server" && n.name.starts_with(name));
        named.map(|n| n.requests).filter(|n| *n > 0).collect()
    };
    let each = 100 * u64::from(REPLICATIONS);
    assert_eq!((entries("a"), entries("post")), (vec![each], vec![each]));
    // Five users have a server each, unless two share one.
    let hashed = entries("h");
    assert_eq!(hashed.iter().sum::<u64>(), each);
    assert!((2..=5).contains(&hashed.len()), "{hashed:?}");
    assert!(hashed.iter().all(|n| n % (each / 5) == 0), "{hashed:?}");
}
