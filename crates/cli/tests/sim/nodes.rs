//! Every kind of node that is built, from the text to the figures: a file that uses them all is simulated and adds up.

use crate::shared::common::{Scratch, run};
use serde_json::Value;

const ALL: &str = "\
def target(i):
    node = queue(delay(dist.exponential(4 * ms), server(\"app\")), concurrency = 2)
    return weight(1 + i % 2, faulty(2 * s, 200 * ms, cable(1 * ms, node)))

def balanced(name, balancer):
    entry = retry(3, balancer, name = \"again\")
    scenario(name, entry, traffic.poisson(every = 2 * ms), requests = 8000)

targets = pool(4, target)
balanced(\"random\", lb.random(targets))
balanced(\"in turn\", lb.round_robin(targets))
balanced(\"least\", lb.least_conn(targets, ties = \"rotate\"))
balanced(\"two\", lb.p2c(targets))
scenario(\"even\", lb.p2c(pool(4, lambda: server())), traffic.constant(rate = 100), requests = 1000, window = \"all\")
scenario(\"renewed\", delay(dist.uniform(1 * ms, 2 * ms), server()), traffic.renewal(dist.erlang(4, 3 * ms)), requests = 1000)
";

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| panic!("{v} is no number"))
}

#[test]
fn what_went_in_comes_out_and_the_parts_add_up() {
    let scratch = Scratch::new("nodes");
    let file = scratch.file("all.star", ALL);
    let ran = run(&["sim", &file, "--output", "json", "--replications", "3"]);
    let doc: Value = serde_json::from_str(ran.succeeds()).expect("one JSON document");
    let scenarios = doc["scenarios"].as_array().expect("a list");
    let names: Vec<&str> = scenarios.iter().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(names, ["random", "in turn", "least", "two", "even", "renewed"]);
    for s in scenarios {
        let r = &s["requests"];
        let errors: f64 = r["errors"].as_object().expect("an object").values().map(number).sum();
        assert_eq!(number(&r["ok"]) + number(&r["failed"]), number(&r["selected"]), "{}", s["name"]);
        assert_eq!(errors, number(&r["failed"]), "{}", s["name"]);
        let nodes = s["nodes"].as_array().expect("a list");
        let parts: f64 = nodes.iter().map(|n| number(&n["latency_part_ms"]["value"])).sum();
        let mean = number(&s["latency_ms"]["all"]["mean"]["value"]);
        assert!((parts - mean).abs() <= 1e-9 * mean.max(1.0), "{}: parts {parts}, mean {mean}", s["name"]);
    }
    // With three attempts at four targets that are up ten elevenths of the time, nearly all succeed, by trying again.
    let random = &scenarios[0];
    assert!(number(&random["success"]["value"]) > 0.99);
    assert!(number(&random["attempts_per_request"]["value"]) > 1.02);
}

/// A variable and a server of one name are two rows, which the kind tells apart.
#[test]
fn rows_of_one_name_say_their_kind() {
    let scratch = Scratch::new("rows-of-one-name");
    let file = scratch.file(
        "s.star",
        "app = queue(delay(9*ms, server(\"app\")))\nscenario(\"s\", app, traffic.poisson(rate = 40), requests = 500)\n",
    );
    let text = run(&["sim", &file, "-q", "--nodes", "sites", "--replications", "2"]);
    let rows: Vec<&str> =
        text.succeeds().lines().map(str::trim_start).filter(|l| l.starts_with("app")).collect();
    assert!(rows.iter().any(|r| r.starts_with("app (queue) ")), "{rows:?}");
    assert!(rows.iter().any(|r| r.starts_with("app (server) ")), "{rows:?}");
}
