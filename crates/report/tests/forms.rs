//! The four forms of one made-up result, frozen in `frozen/`. `UPDATE=1 cargo test -p weir-report` writes them anew;
//! read the difference before you commit it.

use std::path::Path;
use weir_plan::{Metric, Plan, Value};
use weir_policy::Kind;
use weir_report::{Column, Sites, View, WIDTH};
use weir_sim::{AtQuantile, ExpectationResult, NodeResult, Requests, Results, ScenarioResult};
use weir_stats::{Estimate, Latency};
use weir_testkit::assert_frozen;
use weir_topology::{Request, evaluate};

const FEW: View = View { sites: Sites::Few, columns: Vec::new() };
const ALL: View = View { sites: Sites::Always, columns: Vec::new() };

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
        connections: None,
        each: Default::default(),
    }
}

fn curve(p50: f64) -> Vec<AtQuantile> {
    let at = |q: f64, ms: f64| AtQuantile { q, ms: e(ms, ms / 100.0) };
    let unknown = AtQuantile { q: 0.999, ms: Estimate::default() };
    vec![at(0.0, 34.0), at(0.5, p50), at(0.9, p50 * 2.0), at(0.99, p50 * 4.0), unknown]
}

/// What is drawn on a page.
fn plan() -> Plan {
    let source = r#"
routers = param("routers", 1, sweep = [1, 4])
dynos = pool(250, lambda: cable(2 * ms, queue(delay(20 * ms, server("<rails>")))))
scenario("bamboo", lb.random(pool(routers, lambda: lb.least_conn(dynos))), traffic.poisson(every = 1 * ms), requests = 100)
scenario("alone", lb.random(dynos), traffic.poisson(every = 1 * ms), requests = 100)
"#;
    let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
    evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan
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
        finished: None,
        name: name.into(),
        requests_hash: "0123456789abcdef0123456789abcdef".to_owned(),
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
        ejections: 0,
        latency_all: latency,
        latency_ok: latency,
        curve_all: curve(p50),
        curve_ok: curve(p50),
        connections: None,
        nodes: vec![node("<file>/lb.random", "lb.random", 1), queue, server],
        warnings: vec!["offered load is above capacity & grows".into()],
        expectations: vec![],
        each: Default::default(),
        too_short: Vec::new(),
        needs_times: None,
        explained: None,
        over_time: None,
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
        shortfalls: vec![],
        requests: None,
        stretch: 1,
        interrupted: false,
    }
}

/// Two scenarios of which none is swept.
fn unswept() -> Results {
    let results = results(3);
    let scenarios = results.scenarios.iter().filter(|s| s.params[0].1 == Value::Int(1)).cloned().collect();
    Results { scenarios, ..results }
}

/// A condition, and its figure at each of the scenarios.
fn expecting(mut results: Results, expect: &str, metric: Metric, at: &[(Estimate, Option<bool>)]) -> Results {
    for (s, (value, holds)) in results.scenarios.iter_mut().zip(at) {
        let (expect, span) = (expect.to_owned(), "bamboo<4>.star:9:1".to_owned());
        s.expectations.push(ExpectationResult { expect, value: *value, metric, holds: *holds, span });
    }
    results
}

/// Two scenarios at two points, which expect something.
fn expectations() -> Results {
    let p99 = [(567.0, 12.0), (240.0, 2.0), (251.3, 0.9), (249.7, 0.9)].map(|(ms, half)| e(ms, half));
    let holds = [Some(false), Some(true), Some(false), None];
    let p99: Vec<_> = p99.into_iter().zip(holds).collect();
    let success = [(e(0.99974, 0.0001), Some(true)); 4];
    let all = expecting(results(4), "p99<=250ms", Metric::P99, &p99);
    expecting(all, "success>=99.9%", Metric::Success, &success)
}

fn frozen(name: &str, write: impl Fn(&mut Vec<u8>) -> std::io::Result<()>) {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen").join(name);
    assert_frozen(path, &String::from_utf8(bytes).unwrap());
}

#[test]
fn text_of_few_scenarios_shows_their_sites() {
    frozen("few.txt", |out| weir_report::text(&unswept(), &FEW, WIDTH, out));
}

#[test]
fn text_of_a_sweep_is_one_table() {
    frozen("sweep.txt", |out| weir_report::text(&results(2), &FEW, 110, out));
}

/// The columns that are asked for stand in that order, beside scenario and point; of one scenario too.
#[test]
fn the_columns_of_the_table_can_be_chosen() {
    let columns = ["p99.9", "attempts", "goodput", "ok_p999", "failed", "errors", "min"];
    let columns: Vec<Column> = columns.into_iter().filter_map(Column::parse).collect();
    let view = View { sites: Sites::Few, columns: columns.clone() };
    frozen("columns.txt", |out| weir_report::text(&results(4), &view, 120, out));
    let mut one = Vec::new();
    weir_report::text(&results(1), &view, 120, &mut one).unwrap();
    let one = String::from_utf8(one).unwrap();
    assert!(one.contains("\nscenario  p99.9  attempts"), "{one}");
    let mut page = Vec::new();
    weir_report::html(&results(2), &plan(), None, &columns, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(
        page.contains("<th class=\"n\">ok_p99.9</th><th class=\"n\">failed</th><th>errors</th>"),
        "{page}"
    );
}

/// The warning about short runs is about the quantiles that are shown.
#[test]
fn warnings_of_short_runs_follow_the_columns() {
    let mut results = results(4);
    for s in &mut results.scenarios {
        s.too_short = vec!["p99", "p99.9"];
        s.warnings = weir_sim::too_short(&s.too_short).into_iter().collect();
    }
    let text = |columns: &[&str]| {
        let columns = columns.iter().filter_map(|name| Column::parse(name)).collect();
        let mut out = Vec::new();
        weir_report::text(&results, &View { sites: Sites::Few, columns }, 200, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(text(&[]).contains("too short for p99:"));
    assert!(text(&["p50", "p99.9"]).contains("too short for p99.9:"));
    assert!(text(&["ok_p99", "p999"]).contains("too short for p99 and p99.9:"));
    assert!(!text(&["mean", "errors"]).contains("too short"));
}

/// A line for what the file expects, and lines for the points at which it does not hold.
#[test]
fn expectations_along_a_sweep_are_one_row() {
    frozen("expectations.txt", |out| weir_report::text(&expectations(), &FEW, 110, out));
    assert_eq!(
        weir_report::unmet(&expectations()),
        [
            "bamboo (routers=1): p99<=250ms fails: 567 ±12 ms",
            "alone (routers=1): p99<=250ms fails: 251.3 ±0.9 ms",
            "alone (routers=4): p99<=250ms cannot be decided: 249.7 ±0.9 ms",
        ]
    );
    let fail = expecting(results(2), "p99<1s", Metric::P99, &[(e(1500.0, 12.0), Some(false)); 2]);
    assert_eq!(
        weir_report::unmet(&fail),
        ["bamboo: p99<1000ms fails at 2 of 2 points: routers=1 (1 500 ±12 ms), routers=4 (1 500 ±12 ms)"]
    );
    let mut junit = Vec::new();
    weir_report::junit(&expectations(), &mut junit).unwrap();
    let junit = String::from_utf8(junit).unwrap();
    assert!(junit.contains("tests=\"8\" failures=\"3\""), "each point is a test: {junit}");
}

#[test]
fn text_of_many_scenarios_is_one_table() {
    frozen("many.txt", |out| weir_report::text(&results(4), &FEW, WIDTH, out));
}

#[test]
fn lines_stay_within_eighty_columns() {
    let mut out = Vec::new();
    weir_report::text(&results(4), &ALL, WIDTH, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert_eq!(text.lines().last(), Some("weir 0.0.0 · seed 1 · plan 0123456789abcdef"));
}

/// A wide terminal is for tables: sentences stay as long as can be read.
#[test]
fn tables_use_a_wide_terminal() {
    let text = |width: usize| {
        let mut out = Vec::new();
        weir_report::text(&results(1), &ALL, width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let parts = |text: &str| text.lines().filter(|l| l.trim_start().starts_with("site ")).count();
    let (usual, wide) = (text(weir_report::WIDTH), text(220));
    assert!(parts(&wide) == 1 && parts(&usual) > 1, "{usual}{wide}");
    let sentences = |text: &str| {
        text.lines().filter(|l| l.contains(" requests in ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(sentences(&usual), sentences(&wide));
}

#[test]
fn a_narrow_terminal_is_not_exceeded() {
    for (width, scenarios, view) in [(40, 4, &FEW), (50, 4, &ALL), (60, 1, &ALL)] {
        let mut out = Vec::new();
        weir_report::text(&results(scenarios), view, width, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        // The last line is to be copied whole.
        let lines = text.lines().filter(|l| !l.starts_with("weir "));
        let wide: Vec<&str> = lines.filter(|l| l.chars().count() > width).collect();
        assert!(wide.is_empty(), "{width}: {wide:#?}");
    }
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

fn page(n: usize) -> String {
    let mut out = Vec::new();
    weir_report::html(&results(n), &plan(), None, &[], &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Style and script are files of their own.
#[test]
fn html_is_one_page_that_asks_nobody_for_anything() {
    let whole = page(2);
    frozen("two.html", |out| {
        let (_, body) = whole.split_once("</head>\n").expect("there is a head");
        let (body, _) = body.split_once("<script>\n").expect("there is a script");
        std::io::Write::write_all(out, body.as_bytes())
    });
    assert!(whole.contains("bamboo&lt;4&gt;.star") && !whole.contains("bamboo<4>"));
    let asks = whole.replace("http-equiv", "");
    assert!(!asks.contains("http") && !asks.contains("src=") && !asks.contains("url("));
}

#[test]
fn every_page_holds_together() {
    for n in 0..=4 {
        let whole = page(n);
        assert!(!whole.contains("NaN") && !whole.contains("inf%") && whole.ends_with("</html>\n"), "{whole}");
        for element in ["svg", "div", "section", "details", "figure", "script", "style", "g", "p"] {
            let begun = whole.matches(&format!("<{element}>")).count()
                + whole.matches(&format!("<{element} ")).count();
            let ended = whole.matches(&format!("</{element}>")).count();
            assert_eq!(begun, ended, "{element} in the page of {n}");
        }
        assert_eq!(whole, page(n));
    }
    // Four scenarios are two lines over the parameter that was swept.
    let swept = page(4);
    assert!(swept.contains("<h2>Over routers</h2>") && swept.contains("p99 over routers"), "{swept}");
    assert_eq!(page(1).matches("<details class=\"scenario\" open>").count(), 1);
}

/// The rows and columns of the CSV, read back: text as text, numbers as numbers, and nothing where nothing can be said.
#[test]
fn parquet_has_the_rows_of_the_csv() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let results = results(2);
    let path = std::env::temp_dir().join(format!("weir-{}.parquet", std::process::id()));
    weir_report::parquet(&results, &mut std::fs::File::create(&path).unwrap()).unwrap();
    let bytes = || {
        let mut out = Vec::new();
        weir_report::parquet(&results, &mut out).map(|()| out).unwrap()
    };
    assert!(bytes() == bytes());
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut csv = Vec::new();
    weir_report::csv(&results, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let mut lines = csv.lines();
    let names = lines.next().unwrap();
    let mut rows = 0;
    for (row, line) in reader.get_row_iter(None).unwrap().zip(lines.by_ref()) {
        let row = row.unwrap();
        let columns: Vec<(String, Field)> =
            row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
        assert_eq!(columns.iter().map(|c| &c.0[..]).collect::<Vec<_>>().join(","), names);
        let cells = columns.iter().map(|(name, field)| match field {
            Field::Null => String::new(),
            Field::Str(text) if text.contains('"') => format!("\"{}\"", text.replace('"', "\"\"")),
            Field::Str(text) => text.clone(),
            Field::Long(n) if ["param.routers", "count", "replications"].contains(&&name[..]) => {
                n.to_string()
            }
            Field::Double(x) if ["param.share", "value", "low", "high"].contains(&&name[..]) => x.to_string(),
            other => panic!("{name}: {other:?}"),
        });
        assert_eq!(cells.collect::<Vec<_>>().join(","), line);
        rows += 1;
    }
    assert!(rows > 20 && lines.next().is_none(), "{rows}");
    assert_eq!(reader.metadata().file_metadata().num_rows(), rows);
}
