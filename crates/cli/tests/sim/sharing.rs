//! Servers that share: processor sharing, many servers, loss, the closed loop, the Universal Scalability Law. Times in
//! ms.

use crate::shared::figures::inverse;
use crate::shared::simulated::{
    KnownFigures, erlang_b, erlang_c, figure, judge, judge_with, many_servers, options, simulate,
};

/// Works of 20 ms on average that could hardly differ more.
const WORKS: [(&str, &str); 4] = [
    ("fixed", "20 * ms"),
    ("erlang", "dist.erlang(4, 20 * ms)"),
    ("exponential", "dist.exponential(20 * ms)"),
    ("hyper", "dist.hyperexponential([(0.8, 10 * ms), (0.2, 60 * ms)])"),
];

/// One core shared by all: s/(1−ρ), for any distribution. In line for it instead, the same means differ fivefold.
#[test]
fn sharing_a_core_is_insensitive_to_the_distribution() {
    let source: String = WORKS
        .iter()
        .map(|(name, work)| {
            format!("scenario(\"{name}\", concurrent({work}), traffic.poisson(every = 25 * ms), requests = 40000)\n")
        })
        .collect();
    let theory: Vec<(&str, KnownFigures)> =
        WORKS.iter().map(|(name, _)| (*name, vec![("mean", 20.0 / (1.0 - 0.8)), ("success", 1.0)])).collect();
    judge(&source, &theory);
}

/// Several cores, exponential work: as many inside as with M/M/c, whether they share the cores or wait for one
/// (threads); what waits in line for a thread is M/M/c to its quantiles.
#[test]
fn cores_and_threads_are_many_servers() {
    let (c, gap, work) = (4, 6.25, 20.0);
    let mean = many_servers(c, gap, work);
    let (waits, mu, delta) = (erlang_c(c, gap, work), 1.0 / work, f64::from(c) / work - 1.0 / gap);
    let beyond = |t: f64| {
        let wait = waits * (delta * (-mu * t).exp() - mu * (-delta * t).exp()) / (delta - mu);
        (1.0 - waits) * (-mu * t).exp() + wait
    };
    let quantile = |q: f64| inverse(|t| 1.0 - beyond(t), q, 0.0, 1e4);
    let source = r#"
p = traffic.poisson(every = 6250 * us)
x = dist.exponential(20 * ms)
scenario("shared", concurrent(x, cores = 4), p, requests = 40000)
scenario("threads", concurrent(x, cores = 4, threads = 4), p, requests = 40000)
scenario("in line", queue(delay(x, server()), concurrency = 4), p, requests = 40000)
"#;
    let all =
        || vec![("mean", mean), ("p50", quantile(0.5)), ("p95", quantile(0.95)), ("p99", quantile(0.99))];
    judge(source, &[("shared", vec![("mean", mean)]), ("threads", all()), ("in line", all())]);
}

/// Servers without a line lose what Erlang's B says, for any distribution; with one, M/M/c.
#[test]
fn loss_is_insensitive_to_the_distribution() {
    let mut source: String = WORKS
        .iter()
        .map(|(name, work)| {
            format!(
                "scenario(\"{name}\", queue(delay({work}, server()), concurrency = 5, capacity = 0), traffic.poisson(every = 5 * ms), requests = 40000)\n"
            )
        })
        .collect();
    source += "scenario(\"waits\", queue(delay(dist.exponential(20 * ms), server()), concurrency = 10), traffic.poisson(every = 2500 * us), requests = 40000)\n";
    let served = 1.0 - erlang_b(5, 4.0);
    let mut theory: Vec<(&str, KnownFigures)> =
        WORKS.iter().map(|(name, _)| (*name, vec![("success", served), ("ok_mean", 20.0)])).collect();
    theory.push(("waits", vec![("mean", many_servers(10, 2.5, 20.0))]));
    judge(&source, &theory);
}

/// N users that think Z: T = N·s/U − Z, U = 1 − p₀ of the finite queue; how thinking is spread does not matter. With U
/// near 1/8 or 1 alike.
#[test]
fn a_closed_loop_is_the_finite_queue() {
    let latency = |n: u32, think: f64, work: f64| {
        // p_k ∝ n!/(n−k)! (s/Z)^k
        let (mut weight, mut sum) = (1.0, 1.0);
        for k in 0..n {
            weight *= f64::from(n - k) * work / think;
            sum += weight;
        }
        let busy = 1.0 - 1.0 / sum;
        f64::from(n) * work / busy - think
    };
    assert!(
        (latency(10, 1000.0, 80.0) - 179.856).abs() < 1e-3,
        "the figure of docs/spec/background.md#closed-loop"
    );
    let source = r#"
def closed(name, users, think, node):
    scenario(name, node, traffic.closed(users, think), requests = 30000)

x = dist.exponential(80 * ms)
closed("ten", 10, dist.exponential(1 * s), queue(delay(x, server())))
closed("ten by the clock", 10, 1 * s, queue(delay(x, server())))
closed("ten share", 10, dist.exponential(1 * s), concurrent(dist.hyperexponential([(0.8, 40 * ms), (0.2, 240 * ms)])))
closed("one", 1, dist.exponential(1 * s), queue(delay(x, server())))
closed("too many", 40, dist.exponential(1 * s), queue(delay(x, server())))
"#;
    let t = |n| vec![("mean", latency(n, 1000.0, 80.0))];
    let theory = [
        ("ten", t(10)),
        ("ten by the clock", t(10)),
        ("ten share", t(10)),
        ("one", t(1)),
        ("too many", t(40)),
    ];
    judge(source, &theory);
}

/// N users without thinking keep N inside: throughput λN/(1+σ(N−1)+κN(N−1)), the figures of the notes; with a limit of
/// threads, that of as many as there are threads.
#[test]
fn the_universal_scalability_law() {
    let figures = [(1, 100.0), (8, 684.9), (16, 1126.8), (32, 1512.3), (44, 1568.0), (128, 1097.0)];
    let law = |n: f64| 100.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.0005 * n * (n - 1.0));
    let run = |n: u32, more: &str, seconds: u32| {
        format!(
            "scenario(\"{n}{more}\", concurrent(dist.exponential(10 * ms), cores = 1000, contention = 0.02, coherency = 0.0005{more}), traffic.closed({n}, 0 * s), duration = {seconds} * s)\n"
        )
    };
    let mut source: String = figures.iter().map(|(n, _)| run(*n, "", 40)).collect();
    source += &run(64, ", threads = 8", 40);
    let names: Vec<String> = figures.iter().map(|(n, _)| n.to_string()).collect();
    let mut theory: Vec<(&str, KnownFigures)> = Vec::new();
    for (name, (n, said)) in names.iter().zip(figures) {
        let x = law(f64::from(n));
        assert!((x / said - 1.0).abs() < 5e-4, "{n}: {x} is not {said}");
        theory.push((name, vec![("rate", x)]));
    }
    theory.push(("64, threads = 8", vec![("rate", law(8.0))]));
    judge_with(&source, &theory, &simulated_options());
    // The speed of one request at a time, exactly: 8 in step take 8/X each.
    let fixed = simulate(
        "scenario(\"x\", concurrent(10 * ms, cores = 8, contention = 0.02, coherency = 0.0005), traffic.closed(8, 0 * s), requests = 800)",
        &simulated_options(),
    );
    let want = 8.0 / law(8.0) * 1e3;
    assert!((figure(&fixed[0], "mean").value - want).abs() < 1e-5);
}

fn simulated_options() -> weir_sim::Options {
    weir_sim::Options { replications: 10, ..options() }
}
