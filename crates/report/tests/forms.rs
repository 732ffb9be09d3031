//! The four forms of one made-up result, frozen in `frozen/`. `UPDATE=1 cargo test -p weir-report` writes them anew;
//! read the difference before you commit it.

use std::path::Path;
use weir_policy::Kind;
use weir_report::Sites;
use weir_sim::{NodeResult, Requests, Results, ScenarioResult};
use weir_stats::{Estimate, Latency};
use weir_topology::plan::Value;

fn e(value: f64, half: f64) -> Estimate {
    Estimate { value: Some(value), low: Some(value - half), high: Some(value + half) }
}

fn node(place: &str, kind: &str, count: u64) -> NodeResult {
    NodeResult {
        id: (count == 1).then_some(7),
        name: kind.into(),
        kind: kind.into(),
        place: place.into(),
        count,
        requests: 50_000,
        errors: vec![],
        utilisation: Estimate::default(),
        queue_mean: Estimate::default(),
        queue_max: None,
        wait_ms: Estimate::default(),
        service_ms: Estimate::default(),
        latency_part_ms: e(10.0, 0.0),
        spread_min: None,
        spread_max: None,
        spread_cv: Estimate::default(),
    }
}

fn scenario(name: &str, routers: i64, p50: f64) -> ScenarioResult {
    let latency = Latency {
        min: Some(34.000012),
        mean: e(p50 * 1.1, 0.52),
        p50: e(p50, 0.1249),
        p90: e(p50 * 2.0, 1.25),
        p95: e(p50 * 2.5, 3.7),
        p99: e(p50 * 4.0, 12.4),
        p999: Estimate::default(),
        max: Some(1234.5678),
    };
    let mut queue = node("dyno/queue", "queue", 250);
    queue.errors = vec![(Kind::Refused, 12), (Kind::Timeout, 1)];
    queue.utilisation = e(0.4801, 0.002);
    queue.queue_mean = e(0.1234, 0.01);
    queue.queue_max = Some(5);
    queue.wait_ms = e(28.123, 0.4);
    queue.service_ms = e(120.01, 0.3);
    queue.spread_min = Some(150.0);
    queue.spread_max = Some(260.0);
    queue.spread_cv = e(0.07, 0.01);
    let mut server = node("dyno/server", "server", 250);
    server.name = "rails".into();
    ScenarioResult {
        name: name.into(),
        params: vec![
            ("routers".into(), Value::Int(routers)),
            ("gap".into(), Value::Duration { ns: 1_500_000 }),
            ("share".into(), Value::Float(0.1)),
            ("fair".into(), Value::Bool(true)),
            ("mode".into(), Value::Text("a, \"b\" <c>".into())),
        ],
        requests: Requests {
            total: 100_000,
            selected: 50_000,
            ok: 49_987,
            failed: 13,
            errors: vec![(Kind::Refused, 12), (Kind::Timeout, 1)],
        },
        success: e(0.99974, 0.0001),
        goodput_per_s: e(1000.2, 3.1),
        request_rate_per_s: e(1000.5, 3.0),
        response_rate_per_s: e(1000.4, 3.0),
        attempts_per_request: e(1.0, 0.0),
        latency_all: latency,
        latency_ok: latency,
        nodes: vec![node("<file>/lb.random", "lb.random", 1), queue, server],
        warnings: vec!["offered load is above capacity & grows".into()],
    }
}

fn results(n: usize) -> Results {
    let all = [scenario("bamboo", 1, 141.7346), scenario("bamboo", 4, 150.25), scenario("alone", 1, 130.0)]
        .into_iter()
        .chain([scenario("alone", 4, 131.0)])
        .take(n)
        .collect();
    Results {
        version: "0.0.0".into(),
        file: "bamboo<4>.star".into(),
        plan: "0123456789abcdef".into(),
        seed: 1,
        replications: 10,
        scenarios: all,
        events: 0,
        interrupted: false,
    }
}

fn frozen(name: &str, write: impl Fn(&mut Vec<u8>) -> std::io::Result<()>) {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &bytes).unwrap();
    }
    let now = String::from_utf8(bytes).unwrap();
    let then = std::fs::read_to_string(&path).unwrap();
    assert!(now == then, "{name} has changed (UPDATE=1 accepts it); now:\n{now}");
}

#[test]
fn text_of_few_scenarios_shows_their_sites() {
    frozen("few.txt", |out| weir_report::text(&results(2), Sites::Few, out));
}

#[test]
fn text_of_many_scenarios_is_one_table() {
    frozen("many.txt", |out| weir_report::text(&results(4), Sites::Few, out));
}

#[test]
fn tables_stay_within_a_hundred_columns() {
    let mut out = Vec::new();
    weir_report::text(&results(4), Sites::Always, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert_eq!(text.lines().last(), Some("weir 0.0.0 · seed 1 · plan 0123456789abcdef"));
}

#[test]
fn json_keeps_every_number_and_key() {
    frozen("one.json", |out| weir_report::json(&results(1), out));
    let mut out = Vec::new();
    weir_report::json(&results(1), &mut out).unwrap();
    let doc: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let s = &doc["scenarios"][0];
    assert_eq!(s["latency_ms"]["all"]["p50"]["value"].as_f64(), Some(141.7346));
    assert!(s["latency_ms"]["all"]["p999"].is_object() && s["latency_ms"]["all"]["p999"]["value"].is_null());
    assert_eq!(s["params"]["gap"], "1.5ms");
    assert_eq!(s["nodes"][1]["errors"]["refused"], 12);
    assert!(s["nodes"][1]["id"].is_null());
}

#[test]
fn json_of_nothing_finished_is_json() {
    let mut out = Vec::new();
    weir_report::json(&Results { interrupted: true, ..results(0) }, &mut out).unwrap();
    let doc: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(doc["scenarios"], serde_json::json!([]));
    assert_eq!(doc["interrupted"], true);
}

#[test]
fn csv_is_tidy() {
    frozen("one.csv", |out| weir_report::csv(&results(1), out));
}

#[test]
fn html_is_one_page_that_asks_nobody_for_anything() {
    frozen("two.html", |out| weir_report::html(&results(2), out));
    let mut out = Vec::new();
    weir_report::html(&results(2), &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    assert!(page.contains("bamboo&lt;4&gt;.star") && !page.contains("bamboo<4>"));
    assert!(!page.contains("http") && !page.contains("src=") && !page.contains("url("));
}
