//! `faulty(mode="pause")`: a process stands still, with what is inside of it.

use crate::evidence::simulated;
use crate::shared::common::{Scratch, run};

const UP_MS: u64 = 100;
const STILL_MS: u64 = 20;

/// Every millisecond that it is up for, a process works on the requests that it has.
fn latencies_ms(arrivals: impl Iterator<Item = u64>, work_ms: u64) -> Vec<u64> {
    let up = |t: u64| t % (UP_MS + STILL_MS) < UP_MS;
    let end = |from: u64| {
        let (mut at, mut left) = (from, work_ms);
        while left > 0 || !up(at) {
            left -= u64::from(up(at) && left > 0);
            at += 1;
            // What ends as a pause begins has ended.
            if left == 0 && up(at - 1) {
                break;
            }
        }
        at
    };
    arrivals.map(|from| end(from) - from).collect()
}

/// Against a count of milliseconds: delays, and a server whose cores are never shared because requests are few.
#[test]
fn a_pause_stops_what_is_inside() {
    let scratch = Scratch::new("pauses-inside");
    for (node, every, work) in [
        ("delay(13*ms, server())", 7, 13),
        ("queue(delay(13*ms, server()), concurrency=1000)", 7, 13),
        ("concurrent(31*ms, cores=1)", 157, 31),
        ("server(model=concurrent(31*ms, cores=1))", 157, 31),
        ("server(model=13*ms)", 7, 13),
        ("route([(when(path=\"/*\"), delay(250*ms, server()))])", 7, 250),
    ] {
        let source = format!(
            "node = faulty(dist.fixed({UP_MS}*ms), dist.fixed({STILL_MS}*ms), {node}, mode=\"pause\")\n\
             scenario(\"s\", node, traffic.constant(every={every}*ms), requests=3000, window=\"all\")\n"
        );
        let result = simulated(&scratch, &source, &["--replications", "1"]);
        let latency = &result["scenarios"][0]["latency_ms"]["all"];
        let wanted = latencies_ms((1..=3_000).map(|i| i * every), work);
        let mean = wanted.iter().sum::<u64>() as f64 / wanted.len() as f64;
        let most = *wanted.iter().max().unwrap() as f64;
        assert!(
            (latency["mean"]["value"].as_f64().unwrap() - mean).abs() < 1e-9,
            "{node}: {latency}, {mean}"
        );
        assert_eq!(latency["max"].as_f64().unwrap(), most, "{node}");
    }
}

/// A slow server stops only what enters; what a balancer has sent to other processes works on, and its answer waits.
#[test]
fn a_pause_ends_where_another_process_begins() {
    let scratch = Scratch::new("pauses-ends");
    let mean = |node: &str| {
        let source = format!(
            "node = faulty(dist.fixed(50*ms), dist.fixed(50*ms), {node}, mode=\"pause\")\n\
             scenario(\"s\", node, traffic.constant(every=100*ms), requests=1000, window=\"all\")\n"
        );
        let result = simulated(&scratch, &source, &["--replications", "1"]);
        result["scenarios"][0]["latency_ms"]["all"]["mean"]["value"].as_f64().unwrap()
    };
    // All arrive as it goes on: 60 ms of work end in the pause, and wait for its end, or have to go on after it.
    assert_eq!(mean("lb.random([delay(60*ms, server())])"), 100.0);
    assert_eq!(mean("cable(0*s, delay(60*ms, server()))"), 100.0);
    assert_eq!(mean("delay(60*ms, server())"), 110.0);
}

#[test]
fn a_node_is_inside_of_one_process() {
    let scratch = Scratch::new("pauses-wrong");
    let pause = |node: &str| format!("faulty(1*s, 1*s, {node}, mode=\"pause\")");
    let inside = pause(&pause("server()"));
    let shared = format!("one = server()\nx = lb.random([{}, {}])", pause("one"), pause("one"));
    let apart = format!("one = server()\nx = lb.random([{0}, {0}])", pause("cable(1*ms, one)"));
    let one = "app = server()\nx = lb.random(block(1*s, 1*s, [delay(1*ms, app), delay(2*ms, app)], mode=\"pause\"))";
    for (source, says) in [
        (format!("x = {inside}"), Some("two pauses")),
        (shared, Some("two pauses")),
        ("x = faulty(1*s, 1*s, server(), mode=\"pause\", clock=\"lazy\")".to_owned(), Some("cannot pause")),
        (apart, None),
        (one.to_owned(), None),
    ] {
        let whole = format!("{source}\nscenario(\"s\", x, traffic.poisson(rate=10), requests=100)\n");
        let file = scratch.file("f.star", whole);
        match says {
            Some(says) => run(&["check", &file]).fails(2, says),
            None => assert_eq!(run(&["check", &file]).code, Some(0), "{source}"),
        }
    }
}
