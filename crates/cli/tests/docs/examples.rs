//! The examples say what they show: the tables and verdicts of `examples/README.md` come from their figures.
//!
//! The sections between `<!-- NAME -->` and `<!-- end -->` are written by
//! `UPDATE=1 cargo test -p weir --test docs -- examples::`. Each
//! word of a verdict hangs on a figure; where the figures no longer support any of the words, the test fails instead.

use crate::shared::answers::{Answer, ms, name, percent, run_of, success};
use crate::shared::figures::{figure, named, root};
use crate::shared::pages::{assert_shown, table};
use serde_json::Value;
use std::fs;

/// Of all requests at the first target of the file's balancers, how many: the site of that kind and place.
fn share_at(s: &Value, kind: &str) -> f64 {
    let nodes = s["nodes"].as_array().expect("a list");
    let at = nodes.iter().find(|n| n["kind"] == kind).unwrap_or_else(|| panic!("{} has no {kind}", name(s)));
    at["requests"].as_f64().expect("a number") / s["requests"]["selected"].as_f64().expect("a number")
}

fn lying() -> Answer {
    let args = vec!["examples/lying.star"];
    let got = run_of(&args);
    let of = |liar: &str, how: &str| named(&got, &format!("{liar}_{how}")).clone();
    let rows = ["unchecked", "active", "eject", "outlier"].map(|how| {
        let (dead, ill) = (of("dead", how), of("ill", how));
        [
            format!("`{how}`"),
            percent(success(&dead)),
            percent(share_at(&dead, "faulty")),
            percent(success(&ill)),
            percent(share_at(&ill, "flaky")),
        ]
    });
    let heading = ["health", "success, `dead`", "requests it got", "success, `ill`", "requests it got"];
    for liar in ["dead", "ill"] {
        let (without, active) = (success(&of(liar, "unchecked")), success(&of(liar, "active")));
        assert!((without - active).abs() < 1e-9, "active checks change something: {without} and {active}");
    }
    // All but a tenth of what failed is saved, or hardly anything is.
    let failed = |liar, how| 1.0 - success(&of(liar, how));
    let saved = |liar, how| 1.0 - failed(liar, how) / failed(liar, "unchecked");
    assert!(saved("dead", "eject") > 0.9 && saved("dead", "outlier") > 0.9);
    assert!(saved("ill", "eject") < 0.25 && saved("ill", "outlier") > 0.6);
    let verdict = format!(
        "active checks save nobody from a liar, {} and {} succeed with them and without; consecutive failures find the one \
         that is dead ({}) and hardly the one that is ill ({}), which `outlier()` does, by comparing it with the others ({}).",
        percent(success(&of("dead", "active"))),
        percent(success(&of("ill", "active"))),
        percent(success(&of("dead", "eject"))),
        percent(success(&of("ill", "eject"))),
        percent(success(&of("ill", "outlier"))),
    );
    Answer { name: "lying", commands: vec![args], table: table(heading, rows.to_vec()), verdict }
}

fn spare() -> Answer {
    let args = vec!["examples/spare.star"];
    let got = run_of(&args);
    let failed = |s: &str| 1.0 - success(named(&got, s));
    let rows = got.iter().map(|s| {
        let nodes = s["nodes"].as_array().expect("a list");
        let spare = nodes.iter().find(|n| n["kind"] == "server" && n["name"] == "spare");
        let to = spare.map_or(0.0, |n| n["requests"].as_f64().expect("a number"));
        let to = to / s["requests"]["selected"].as_f64().expect("a number");
        [format!("`{}`", name(s)), percent(success(s)), ms(s, "p50"), ms(s, "p99"), percent(to)]
    });
    let heading = ["scenario", "success", "p50 ms", "p99 ms", "at the spare"];
    assert!(failed("first") < 1e-3, "the second pool fails: {}", failed("first"));
    assert!(failed("on_empty") < 0.7 * failed("without") && failed("on_empty") > 0.01);
    let at_spare = |s: &str| {
        let got = named(&got, s);
        let nodes = got["nodes"].as_array().expect("a list");
        let spare = nodes.iter().find(|n| n["kind"] == "server" && n["name"] == "spare").expect("it has one");
        spare["requests"].as_f64().expect("a number")
            / got["requests"]["selected"].as_f64().expect("a number")
    };
    assert!(at_spare("as_a_peer") > 1.5 * at_spare("first"));
    let verdict = format!(
        "without the spare {} succeed; where `on_empty` falls back to it, it takes over once checks have noticed ({}); as \
         the second target of `lb.first` it also gets the second try of those who come before that ({}), and with {} of the \
         requests far fewer than as a peer ({}).",
        percent(success(named(&got, "without"))),
        percent(success(named(&got, "on_empty"))),
        percent(success(named(&got, "first"))),
        percent(at_spare("first")),
        percent(at_spare("as_a_peer")),
    );
    Answer { name: "spare", commands: vec![args], table: table(heading, rows.collect()), verdict }
}

fn panic() -> Answer {
    let args = vec!["examples/panic.star"];
    let got = run_of(&args);
    let mut counts: Vec<u64> =
        got.iter().map(|s| s["params"]["unhealthy"].as_u64().expect("a count")).collect();
    counts.sort_unstable();
    counts.dedup();
    let of = |kind: &str, panic: &str, n: u64| {
        let wanted = format!("{kind}_{panic}");
        got.iter().find(|s| name(s) == wanted && s["params"]["unhealthy"] == n).expect("all are there")
    };
    let rows = counts.iter().map(|&n| {
        let both = |kind: &str| {
            let (never, half) = (of(kind, "never", n), of(kind, "half", n));
            [
                format!("{} / {}", percent(success(never)), percent(success(half))),
                format!("{} / {}", ms(never, "p99"), ms(half, "p99")),
            ]
        };
        let ([a, b], [c, d]) = (both("dead"), both("far"));
        [n.to_string(), a, b, c, d]
    });
    let heading = [
        "unhealthy of ten",
        "dead: success, panic 0 / 0.5",
        "p99 ms",
        "far: success, panic 0 / 0.5",
        "p99 ms",
    ];
    let table = table(heading, rows.collect());
    for &n in &counts {
        let (trusted, ignored) = (of("dead", "never", n), of("dead", "half", n));
        let better = success(trusted) - success(ignored);
        assert!(if n > 5 { better > 0.1 } else { better.abs() < 0.03 }, "{n} dead: {better}");
        assert!(success(of("far", "half", n)) >= success(of("far", "never", n)), "{n} far");
    }
    let two = |kind: &str| {
        let [a, b] = ["half", "never"].map(|panic| percent(success(of(kind, panic, 6))));
        format!("{a} instead of {b}")
    };
    let verdict = format!(
        "panic helps where checks are wrong and harms where they are right: with six of ten unhealthy, {} succeed if these \
         are only far, and {} if they are dead.",
        two("far"),
        two("dead"),
    );
    Answer { name: "panic", commands: vec![args], table, verdict }
}

fn layers() -> Answer {
    let args = vec!["examples/layers.star"];
    let got = run_of(&args);
    let of = |s: &str| success(named(&got, s));
    let rows = got.iter().map(|s| {
        let attempts = figure(s, "attempts_per_request").value;
        [format!("`{}`", name(s)), percent(success(s)), format!("{attempts:.4}"), ms(s, "p50"), ms(s, "p99")]
    });
    let heading = ["scenario", "success", "attempts per request", "p50 ms", "p99 ms"];
    assert_eq!(of("edge_by_kinds"), of("nobody"));
    assert!(
        of("nobody") < 0.998 && of("edge_by_statuses") > 0.9999 && of("routers") >= of("edge_by_statuses")
    );
    let verdict = format!(
        "an edge that waits for broken connections never sends again, since it sees none: {} succeed, as without it; by the \
         statuses 502 and 503 {} do. A router knows that it could not connect, and whom to leave out: {}.",
        percent(of("edge_by_kinds")),
        percent(of("edge_by_statuses")),
        percent(of("routers")),
    );
    Answer { name: "layers", commands: vec![args], table: table(heading, rows.collect()), verdict }
}

// One test, so that the files run one after another, each on all cores, and no other test writes the page.
#[test]
fn tables_and_verdicts_are_those_of_the_figures() {
    for example in [lying, spare, panic, layers] {
        let example = example();
        assert_shown("examples/README.md", example.name, &example.text());
    }
}

#[test]
fn files_open_with_a_question_and_how_to_run_them() {
    let names = ["bamboo", "lying", "spare", "panic", "hops", "layers", "policies"];
    for name in names {
        let file = format!("examples/{name}.star");
        let text = fs::read_to_string(root().join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# ") && lines[0].ends_with('?'), "{file}: {}", lines[0]);
        assert_eq!(lines[2], format!("#   cargo run --release -- sim {file}"));
        assert!(lines.len() <= 62, "{file} has {} lines", lines.len());
        assert!(lines.iter().all(|l| l.chars().count() <= 120), "{file} has long lines");
    }
}

/// It is served as well: `serve/real.rs`.
#[test]
fn the_edge_of_one_page_is_simulated() {
    let scenarios = run_of(&["examples/edge.star"]);
    let [day] = &scenarios[..] else { panic!("{} scenarios", scenarios.len()) };
    assert!(success(day) > 0.99, "{}", success(day));
}
