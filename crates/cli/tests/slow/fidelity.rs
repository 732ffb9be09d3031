//! A part of the table of `docs/fidelity.md`, run for real: a step of CI, which has the machine for itself meanwhile.
//!
//! A host that takes the cores away makes runs void and statistics undecided; that is said and no failure. What differs
//! is measured afresh: only what does so each time is a difference of the worlds.

use crate::shared::common::{Scratch, run};
use serde_json::Value;

/// How often something is measured at most.
const TRIES: usize = 3;

/// The verdict of a scenario: what its figures are in words, and the verdict itself.
fn verified(file: &str, more: &[&str]) -> (String, String) {
    let (cli, root) = (env!("CARGO_MANIFEST_DIR"), "../..");
    let path = if file.starts_with('/') { file.to_owned() } else { format!("{cli}/{root}/{file}") };
    let ran = run(&[&["verify", &path, "--output", "json", "--quiet"], more].concat());
    assert!(matches!(ran.code, Some(0 | 1)), "{file} {more:?}: {}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let of = &found["scenarios"][0];
    let figure = |s: &Value| format!("{} {} {}", s["name"], s["relative"]["value"], s["verdict"]);
    let all: Vec<String> = of["statistics"].as_array().expect("statistics").iter().map(figure).collect();
    let text = format!("{file} {more:?}: {} void, {}", of["void_runs"], all.join(", "));
    eprintln!("{text}: {}", found["verdict"]);
    (text, found["verdict"].as_str().expect("a verdict").to_owned())
}

/// Whether one of some tries ends so that it is no difference.
fn assert_no_difference(file: &str, more: &[&str]) {
    let tries = (0..TRIES).map(|_| verified(file, more));
    let differ: Vec<String> =
        tries.take_while(|(_, verdict)| verdict == "differs").map(|(text, _)| text).collect();
    assert!(differ.len() < TRIES, "{differ:#?}");
}

#[test]
#[ignore = "wants the machine for itself: a step of CI"]
fn what_is_predicted_happens() {
    for (file, scenario) in [
        ("examples/timelike/post1.star", "random"),
        ("examples/timelike/post1.star", "bamboo_4"),
        ("examples/timelike/post2.star", "retry_hold"),
        ("bench/fidelity/policies.star", "p2c"),
        ("bench/fidelity/policies.star", "zuul"),
        ("bench/fidelity/guards.star", "eject"),
        ("bench/fidelity/loops.star", "four_loops_shared"),
        ("bench/fidelity/transports.star", "http2_tls"),
    ] {
        assert_no_difference(file, &[scenario, "--runs", "4", "--requests", "3000"]);
    }
    assert_no_difference(
        "examples/hops.star",
        &["random_ties_4", "--runs", "4", "--requests", "3000", "--processes"],
    );
    assert_no_difference("examples/quickstart.star", &["--quick"]);
}

/// At a utilisation of 0.8 nothing but what was simulated passes for it.
#[test]
#[ignore = "wants the machine for itself: a step of CI"]
fn what_is_not_predicted_is_not_taken_for_it() {
    let scratch = Scratch::new("fidelity");
    let file = |name: &str, policy: &str, loops: u32, ms: u32| {
        let text = format!(
            "apps = pool(20, lambda: queue(delay(dist.exponential({ms}*ms), server(\"app\"))))\n\
             web = listen(\"127.0.0.1:0\", lb.{policy}(apps), loops = {loops}, name = \"web\")\n\
             scenario(\"one\", web, traffic.poisson(rate = 320), requests = 3000)\n"
        );
        scratch.file(name, text)
    };
    let right = file("right.star", "least_conn", 1, 50);
    for (name, policy, loops, ms) in [
        ("policy.star", "random", 1, 50),
        ("loops.star", "least_conn", 4, 50),
        ("longer.star", "least_conn", 1, 55),
    ] {
        let wrong = file(name, policy, loops, ms);
        let (text, verdict) = verified(&right, &["--runs", "4", "--reality", &wrong]);
        assert_ne!(verdict, "agrees", "{name}: {text}");
    }
}
