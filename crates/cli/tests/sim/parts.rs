//! `--shard` and `weir merge`: all parts together are one run, byte for byte; and `--watch`.

use crate::shared::common;
use crate::shared::common::{Scratch, run, weir};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const SOURCE: &str = r#"
n = param("n", 4)
def dyno():
    return queue(delay(dist.exponential(10*ms), flaky(0.01, server())), capacity=9)
scenario("random", retry(2, lb.random(pool(n, dyno))), traffic.poisson(every=4*ms), requests=3000)
scenario("p2c", faulty(1*s, 20*ms, lb.p2c(pool(n, dyno))), traffic.poisson(every=4*ms), requests=3000, window="auto")
expect("random", p50=["<1s", "<1ms"])
"#;

/// Runs all parts and puts them together, in another order than they were made.
fn merged(scratch: &Scratch, file: &str, n: usize, sim: &[&str], merge: &[&str]) -> common::Execution {
    let parts: Vec<String> = (1..=n).map(|k| scratch.path(&format!("{n}-{k}.json"))).collect();
    for (k, part) in parts.iter().enumerate() {
        let shard = format!("{}/{n}", k + 1);
        let args: Vec<&str> = ["sim", file, "-q", "--shard", &shard, "--save", part]
            .into_iter()
            .chain(sim.iter().copied())
            .collect();
        assert_eq!(run(&args).succeeds(), "", "a part is no result");
    }
    let args: Vec<&str> = ["merge"]
        .into_iter()
        .chain(parts.iter().rev().map(String::as_str))
        .chain(merge.iter().copied())
        .collect();
    run(&args)
}

#[test]
fn all_parts_together_are_one_run() {
    let scratch = Scratch::new("parts");
    let file = scratch.file("a.star", SOURCE);
    let whole = |args: &[&str]| {
        let args: Vec<&str> = ["sim", &file, "-q"].into_iter().chain(args.iter().copied()).collect();
        run(&args)
    };
    for n in [1, 3] {
        let (one, parts) = (whole(&[]), merged(&scratch, &file, n, &[], &[]));
        assert_eq!((one.code, parts.code), (Some(1), Some(1)), "an expectation fails in both: {}", parts.err);
        assert_eq!(parts.out, one.out);
    }
    let json = ["--output", "json", "--each"];
    let swept = ["--sweep", "n=3,5", "--seed", "7", "--replications", "4", "--nodes", "all"];
    let all: Vec<&str> = swept.into_iter().chain(json).collect();
    // More parts than replications: the last one is empty.
    let (one, parts) = (whole(&all), merged(&scratch, &file, 5, &swept, &json));
    assert!(parts.out == one.out && one.out.len() > 1000, "{}", parts.err);
    let csv = ["--output", "csv"];
    assert_eq!(merged(&scratch, &file, 2, &[], &csv).out, whole(&csv).out);
    let (saved, merged_to) = (scratch.path("whole.json"), scratch.path("merged.json"));
    whole(&["--save", &saved]);
    merged(&scratch, &file, 2, &[], &["--save", &merged_to]);
    assert!(std::fs::read(&saved).unwrap() == std::fs::read(&merged_to).unwrap());
}

#[test]
fn what_is_not_whole_is_an_error() {
    let scratch = Scratch::new("parts-wrong");
    let file = scratch.file("a.star", SOURCE);
    let part = |name: &str, shard: &str, seed: &str| {
        let path = scratch.path(name);
        run(&["sim", &file, "-q", "--requests", "200", "--seed", seed, "--shard", shard, "--save", &path])
            .succeeds();
        path
    };
    let (one, two, three) =
        (part("1.json", "1/3", "1"), part("2.json", "2/3", "1"), part("3.json", "3/3", "1"));
    run(&["merge", &one, &three]).fails(2, "of 3 shards these are missing: 2");
    run(&["merge", &one, &two, &three, &two]).fails(2, "shard 2 of 3 is given twice");
    run(&["merge", &one, &two, &part("other.json", "3/3", "2")]).fails(2, "another run");
    run(&["merge", &one, &part("half.json", "2/2", "1")]).fails(2, "another run");
    run(&["merge", &file]).fails(2, "not written by");
    let text = std::fs::read_to_string(&one).unwrap();
    let old =
        text.replacen(concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\""), "\"version\":\"0.0.9\"", 1);
    run(&["merge", &scratch.file("old.json", old), &two, &three]).fails(2, "0.0.9");
    run(&["merge", &one, &two, &three, "--nodes", "all"]).fails(2, "--nodes all");
    run(&["sim", &file, "--shard", "1/2"]).fails(2, "--save");
    run(&["sim", &file, "--shard", "1/2", "--save", "x.csv"]).fails(2, ".json");
    for wrong in ["0/2", "3/2", "1", "a/b"] {
        run(&["sim", &file, "--shard", wrong, "--save", "x.json"]).fails(2, "K/N");
    }
    run(&["sim", &file, "--shard", "1/2", "--save", "x.json", "--precision", "1%"]).fails(2, "--precision");
}

/// A saved file is simulated again, and what changed is printed; what only looks other is the same.
#[test]
fn what_is_saved_is_simulated_again() {
    let scratch = Scratch::new("watch");
    scratch.file("dyno.star", "def dyno(work):\n    return queue(delay(work, server()))\n");
    let source = |work: &str| {
        format!(
            "load(\"dyno.star\", \"dyno\")\nscenario(\"q\", dyno({work}), traffic.poisson(every=40*ms), requests=400)\n"
        )
    };
    let file = scratch.file("a.star", source("20*ms"));
    let mut child =
        weir().args(["sim", &file, "--watch"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut until = |what: &str| {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert!(err.read_line(&mut line).unwrap() > 0, "it ended before it said `{what}`");
        }
    };
    let mut printed = |end: &str| {
        let (mut text, mut line) = (String::new(), String::new());
        while !line.contains(end) {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "it ended: {text}");
            text.push_str(&line);
        }
        text
    };
    assert!(printed("weir ").contains("latency ms"));
    until("watching");
    scratch.file("a.star", source("10*ms"));
    let changed = printed("Holm");
    assert!(
        changed.contains("paired") && changed.lines().any(|l| l.contains("mean ms") && l.ends_with("less")),
        "{changed}"
    );
    until("watching");
    scratch.file(
        "a.star",
        format!("# {}", source("10*ms").replacen('\n', "\n\n", 1)).replacen("# load", "load", 1),
    );
    assert!(printed("plan").contains("nothing changed"));
    until("watching");
    scratch.file("dyno.star", "def dyno(work):\n    return queue(delay(2*work, server()))\n# longer\n");
    assert!(printed("Holm").lines().any(|l| l.contains("mean ms") && l.ends_with("more")));
    until("watching");
    scratch.file("a.star", "scenario(\n");
    until("error: syntax error");
    until("watching");
    scratch.file("a.star", source("5*ms"));
    printed("Holm");
    child.kill().unwrap();
    child.wait().unwrap();
}
