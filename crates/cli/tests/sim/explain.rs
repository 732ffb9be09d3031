//! `--trace`, `--explain`: histories add up, are the same on any number of threads, and load where they are to be read.

use crate::shared::common::{Scratch, run};
use serde_json::Value;
use std::collections::BTreeMap;

const SOURCE: &str = r#"
def dyno():
    return queue(delay(dist.exponential(10*ms), server("app"), name = "work"), capacity = 9, name = "line")

pooled = faulty(1*s, 20*ms, lb.least_conn(pool(4, dyno), error_hold = 5*ms), name = "router")
way = cable(1*ms, retry(2, timeout(60*ms, pooled), on = ["refused", "timeout"], backoff = 2*ms))
for n in param("ns", "a,b").split(","):
    scenario(n, way if n == "a" else hedge(20*ms, lb.random(pool(4, dyno))), traffic.poisson(every = 2.8*ms), requests = 3000)
"#;

fn traced(args: &[&str], name: &str) -> String {
    let scratch = Scratch::new(&format!("explain{}", args.concat().replace([':', ','], "-")));
    let file = scratch.file("a.star", SOURCE);
    let path = scratch.path(name);
    let sim = ["sim", &file, "--quiet", "--replications", "3", "--trace", &path];
    let args: Vec<&str> = sim.into_iter().chain(args.iter().copied()).collect();
    run(&args).succeeds();
    std::fs::read_to_string(&path).unwrap()
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key} of {of}"))
}

/// The lines of `docs/spec/language.md#trace`: the 100 slowest of each scenario, the slowest first, whose stages that
/// count are their latency.
#[test]
fn the_slowest_are_written_down_line_by_line() {
    let text = traced(&[], "t.jsonl");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    assert_eq!(
        (head["schema"].as_str(), head["requests"].as_str()),
        (Some("weir.trace/1"), Some("slowest:100"))
    );
    let mut last: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in lines {
        let counting = line["stages"].as_array().unwrap().iter().filter(|s| s["counts"] == true);
        let sum: u64 = counting.map(|s| number(s, "to_ns") - number(s, "from_ns")).sum();
        assert_eq!(sum, number(&line, "latency_ns"), "{line}");
        assert!(number(&line, "replication") < 3 && number(&line, "request") < 3000);
        last.entry(line["scenario"].as_str().unwrap().to_owned()).or_default().push(sum);
    }
    assert_eq!(last.keys().collect::<Vec<_>>(), ["a", "b"]);
    for latencies in last.values() {
        assert_eq!(latencies.len(), 100);
        assert!(latencies.windows(2).all(|w| w[0] >= w[1]));
    }
    assert!(text.contains("\"member\":\"line #3\""), "{}", &text[..2000]);
    assert!(text.contains("\"what\":\"backoff\"") && text.contains("\"outcome\":\"timeout\""));
}

/// However many threads: the same bytes; and other requests where others are asked for.
#[test]
fn threads_change_no_byte_of_a_trace() {
    for which in ["slowest:7", "sample:0.01", "17,1200", "all"] {
        let of = |threads: &str| traced(&["--threads", threads, "--trace-requests", which], "t.jsonl");
        let one = of("1");
        assert_eq!(one, of("3"), "{which}");
        let lines = one.lines().count() - 1;
        match which {
            "slowest:7" => assert_eq!(lines, 14),
            "17,1200" => assert_eq!(lines, 12),
            "all" => assert_eq!(lines, 18_000),
            _ => assert!((100..300).contains(&lines), "{lines}"),
        }
    }
}

/// What Perfetto wants: known phases, times in microseconds, and events of a thread that nest.
#[test]
fn trace_events_nest() {
    let text = traced(&["--trace-requests", "slowest:40"], "t.json");
    let file: Value = serde_json::from_str(&text).unwrap();
    let mut threads: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let ns = |of: &Value, key: &str| {
        (of[key].as_f64().unwrap_or_else(|| panic!("{key} of {of}")) * 1e3).round() as u64
    };
    for event in file["traceEvents"].as_array().unwrap() {
        let thread = (number(event, "pid"), number(event, "tid"));
        match event["ph"].as_str() {
            Some("M") => assert!(event["args"]["name"].is_string()),
            Some("i") => assert!(event["s"] == "t" && event["ts"].is_number()),
            Some("X") => {
                let from = ns(event, "ts");
                threads.entry(thread).or_default().push((from, from + ns(event, "dur")));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(threads.len() >= 80, "{}", threads.len());
    for events in threads.values_mut() {
        events.sort_by_key(|e| (e.0, std::cmp::Reverse(e.1)));
        let mut open: Vec<u64> = Vec::new();
        for &(from, to) in events.iter() {
            open.retain(|end| *end > from);
            assert!(open.iter().all(|end| to <= *end), "{from}..{to} is not within {open:?}");
            open.push(to);
        }
    }
}

/// In words, in lines that fit a terminal; and as JSON, where the parts add up.
#[test]
fn what_typical_requests_consist_of_is_said() {
    let scratch = Scratch::new("explained");
    let file = scratch.file("a.star", SOURCE);
    let sim = |more: &[&str]| {
        let args = ["sim", &file, "a", "--quiet", "--replications", "2"];
        run(&args.into_iter().chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let plain = sim(&[]);
    let text = sim(&["--explain"]);
    let more: Vec<&str> = text.succeeds().lines().filter(|line| !plain.out.contains(*line)).collect();
    assert_eq!(more.len(), 2, "{more:?}");
    assert!(more[0].starts_with("  p50: ") && more[1].starts_with("  p99: "), "{more:?}");
    assert!(more.iter().all(|line| line.chars().count() <= 80), "{more:?}");
    assert!(more[1].contains(" % waiting in line,"), "a name that is given wins: {more:?}");
    let json: Value = serde_json::from_str(sim(&["--explain", "--output", "json"]).succeeds()).unwrap();
    let scenario = &json["scenarios"][0];
    let p99 = &scenario["explained"]["p99"];
    let parts = p99["parts"].as_array().unwrap().iter().map(|p| p["ms"].as_f64().unwrap());
    assert!((parts.sum::<f64>() / p99["latency_ms"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{p99}");
    let series = &scenario["series"];
    let n = series["arrivals_per_s"].as_array().unwrap().len();
    assert!((100..=200).contains(&n));
    for of in [
        &series["responses_per_s"],
        &series["in_flight"],
        &series["queues"][0]["waiting"],
        &series["up"][0]["up"],
    ] {
        assert_eq!(of.as_array().unwrap().len(), n, "{of}");
    }
    assert_eq!(
        (series["up"][0]["site"].as_str(), series["queues"][0]["count"].as_u64()),
        (Some("pooled"), Some(4))
    );
}

/// As many targets again divide the subsets: of 400 on 32 loops there are 8 of 50, of 800 there are 16.
#[test]
fn subsets_over_time_are_those_of_the_first_balancer() {
    let scratch = Scratch::new("subsets");
    let source = r#"
apps = fleet(400, lambda: server("app", model = 1*ms))
web = listen("127.0.0.1:0", lb.p2c([apps], subset = subset.loops()), loops = 32)
scenario("s", web, traffic.constant(every = 1*ms), duration = 1*s, events = [change.join(apps, at = 500*ms, k = 400)])
"#;
    let file = scratch.file("a.star", source);
    let json = run(&["sim", &file, "--quiet", "--replications", "1", "--explain", "--output", "json"]);
    let json: Value = serde_json::from_str(json.succeeds()).unwrap();
    let subsets = json["scenarios"][0]["series"]["subsets"].as_array().expect("there are some");
    assert_eq!(subsets.len(), 1, "{subsets:?}");
    let ends = |of: &str| {
        let all = subsets[0][of].as_array().expect("a number of each part");
        assert!((100..=200).contains(&all.len()));
        (all[0].as_u64(), all[all.len() - 1].as_u64())
    };
    for (of, before, after) in [("count", 8, 16), ("least", 50, 50), ("most", 50, 50), ("targets", 400, 800)]
    {
        assert_eq!(ends(of), (Some(before), Some(after)), "{of}");
    }
}

#[test]
fn what_cannot_be_traced_is_said() {
    let scratch = Scratch::new("untraced");
    let file = scratch.file("a.star", SOURCE);
    let path = |name: &str| scratch.path(name);
    run(&["sim", &file, "--trace", &path("t.csv")]).fails(2, ".jsonl");
    run(&["sim", &file, "--trace-requests", "all"]).fails(2, "--trace");
    run(&["sim", &file, "--trace", &path("t.json"), "--trace-requests", "fast:3"]).fails(2, "slowest:100");
    let part = ["sim", &file, "--shard", "1/2", "--save", &path("p.json"), "--trace", &path("t.json")];
    run(&part).fails(2, "--trace");
    run(&["sim", &file, "--trace", &path("no/folder.json")]).fails(3, "cannot write");
    assert!(!std::path::Path::new(&path("t.json")).exists());
}

#[test]
fn a_request_that_does_not_exist_is_no_empty_trace() {
    let scratch = Scratch::new("explain-none");
    let file = scratch.file("a.star", SOURCE);
    let path = scratch.path("t.jsonl");
    let of = |numbers: &str| {
        let args = ["sim", &file, "-q", "--replications", "2", "--trace", &path, "--trace-requests", numbers];
        run(&args)
    };
    of("17,2999").succeeds();
    let ran = of("17,3000");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("has a request 3000; they are numbered from 0 to 2999"), "{}", ran.err);
    // What there is has been printed and written.
    assert!(ran.out.contains("± half") && std::fs::read_to_string(&path).unwrap().lines().count() == 5);
}

/// More scenarios than have their sites shown are explained as well, and it is said what that took.
#[test]
fn many_scenarios_are_explained_too() {
    let scratch = Scratch::new("explain-many");
    let file = scratch.file("a.star", SOURCE);
    let ran = run(&["sim", &file, "-p", "ns=a,b,c,d", "--replications", "2", "--explain"]);
    let explained = ran.succeeds().lines().filter(|l| l.starts_with("  p99: ")).count();
    assert_eq!(explained, 4, "{}", ran.out);
    assert!(ran.err.contains("the first replication of each scenario again"), "{}", ran.err);
}
