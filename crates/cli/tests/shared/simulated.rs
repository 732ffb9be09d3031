//! Scenarios simulated in this process, and figures judged against theory.

use crate::shared::figures::{Estimate, student};
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;
use weir_sim::{Options, ScenarioResult, run};
use weir_topology::{Request, evaluate};

pub(crate) const REPLICATIONS: u32 = 20;

pub(crate) fn plan(source: &str) -> Plan {
    let request =
        Request { name: "test.star".into(), source: source.as_bytes().to_vec(), ..Request::default() };
    evaluate(&request).unwrap_or_else(|e| panic!("{}\n{source}", e[0])).plan
}

pub(crate) fn options() -> Options {
    Options {
        seed: 1,
        first: 0,
        replications: REPLICATIONS,
        settled_over: None,
        stretch: 1,
        requests: None,
        threads: 2,
        members: false,
        connections: false,
        scenarios: Vec::new(),
    }
}

/// The results of a file's scenarios, in its order.
pub(crate) fn simulate(source: &str, options: &Options) -> Vec<ScenarioResult> {
    let done = run(&plan(source), options, &|_, _| {}, &AtomicBool::new(false));
    done.unwrap_or_else(|e| panic!("{e:?}\n{source}")).scenarios
}

/// The figure of that name; `ok_mean` is of the successes, `errors.KIND` the share of that kind.
#[track_caller]
pub(crate) fn figure(s: &ScenarioResult, stat: &str) -> Estimate {
    let e = match stat {
        "mean" => s.latency_all.mean,
        "p50" => s.latency_all.p50,
        "p90" => s.latency_all.p90,
        "p95" => s.latency_all.p95,
        "p99" => s.latency_all.p99,
        "ok_mean" => s.latency_ok.mean,
        "success" => s.success,
        "attempts" => s.attempts_per_request,
        "rate" => s.request_rate_per_s,
        _ => panic!("no figure {stat}"),
    };
    let part = |x: Option<f64>| x.unwrap_or_else(|| panic!("{}: no {stat}", s.name));
    Estimate { value: part(e.value), half: (part(e.high) - part(e.low)) / 2.0 }
}

/// Requests that ended with this kind of error.
pub(crate) fn errors(s: &ScenarioResult, kind: &str) -> u64 {
    s.requests.errors.iter().find(|(k, _)| k.name() == kind).map_or(0, |(_, n)| *n)
}

/// The kinds of error that occurred.
pub(crate) fn kinds(s: &ScenarioResult) -> Vec<&'static str> {
    s.requests.errors.iter().map(|(k, _)| k.name()).collect()
}

/// What theory knows of a scenario: name of the figure, value.
pub(crate) type KnownFigures = Vec<(&'static str, f64)>;

/// Every figure of theory is met, within 1 % or the 99.9 % interval (the reported 95 % interval, widened by Student's
/// quantiles), which excuses nothing beyond 5 % of the figure. Of a success, 1 % means that of its failures.
#[track_caller]
pub(crate) fn judge(source: &str, theory: &[(&str, KnownFigures)]) {
    judge_with(source, theory, &options());
}

#[track_caller]
pub(crate) fn judge_with(source: &str, theory: &[(&str, KnownFigures)], options: &Options) {
    let got = simulate(source, options);
    let df = options.replications as i32 - 1;
    let widened = student(0.9995, df) / student(0.975, df);
    let mut problems = Vec::new();
    for (name, known) in theory {
        let Some(s) = got.iter().find(|s| s.name == *name) else { panic!("no scenario {name}") };
        for &(stat, want) in known {
            let Estimate { value, half } = figure(s, stat);
            let one_percent = 0.01 * if stat == "success" { (1.0 - want).min(want) } else { want };
            let slack = one_percent.max((widened * half).min(0.05 * want)) + 1e-9 * want;
            if (value - want).abs() > slack {
                problems.push(format!("{name}: {stat} is {value}, theory says {want} ± {slack:.5}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(got.len(), theory.len(), "every scenario of the file is judged");
}

/// Erlang's B: the share that c servers without a line turn away, `offered` being the mean number busy if none were.
pub(crate) fn erlang_b(c: u32, offered: f64) -> f64 {
    (1..=c).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b))
}

/// M/M/c by Erlang's C: the share that waits.
pub(crate) fn erlang_c(c: u32, gap: f64, work: f64) -> f64 {
    let (offered, b) = (work / gap, erlang_b(c, work / gap));
    b / (1.0 - offered / f64::from(c) * (1.0 - b))
}

/// The mean latency of M/M/c.
pub(crate) fn many_servers(c: u32, gap: f64, work: f64) -> f64 {
    work + erlang_c(c, gap, work) * work / (f64::from(c) - work / gap)
}
