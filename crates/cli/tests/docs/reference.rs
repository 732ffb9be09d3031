//! `docs/reference.md` is what the registry says and what the examples print; `weir help` knows all of it.
//!
//! `UPDATE=1 cargo test --test docs -- reference::` writes the page anew.

use crate::shared::common::{Scratch, run, weir};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use weir_testkit::assert_frozen;
use weir_topology::manual::{Argument, Entry, FIGURES, Fallback, Group, functions, kinds};

const HEAD: &str = "\
# Reference

Every function of a topology file, every kind of error and every figure of a result. `weir help NAME` says the same.
This page is made from the table by which weir checks files, and the outputs are what the examples print; a
[test](../crates/cli/tests/docs/reference.rs) compares it with the program (`UPDATE=1 cargo test --test docs -- reference::` rewrites
it). [language.md](language.md) is the guide to start with.

Durations have a unit: `5*ms`, `1.5*s`, `250*us`, `10*ns`, `2*minutes`, `1*hours`, or a string such as `\"5ms\"`. Where a
distribution is expected, a duration is a constant. Sizes are whole bytes: `64*KiB`, `2*MiB`. Rates are per second.
`name=` names a node in results, logs and on the status page.

";

#[test]
fn the_page_is_what_the_program_says() {
    assert_frozen(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md"), &page());
}

fn page() -> String {
    let all = functions();
    let mut out = HEAD.to_owned();
    for group in Group::ALL {
        let _ = write!(out, "- {}:", group.title());
        let names = all
            .iter()
            .filter(|f| f.group == group)
            .map(|f| format!(" [`{0}`](#{1})", f.name, anchor(f.name)));
        let _ = writeln!(out, "{}", names.collect::<Vec<_>>().join(","));
    }
    out.push_str("- [Kinds of error](#kinds-of-error), [figures of a result](#figures-of-a-result)\n");
    let mut shown: BTreeMap<&str, &str> = BTreeMap::new();
    for group in Group::ALL {
        let _ = writeln!(out, "\n## {}", group.title());
        for f in all.iter().filter(|f| f.group == group) {
            function(f, &mut shown, &mut out);
        }
        let family = match group {
            Group::Balance => Some(("balancer", "lb.random")),
            Group::Serve => Some(("`find.*`", "find.file")),
            _ => None,
        };
        if let Some((family, one)) = family {
            let _ = writeln!(out, "\n### What every {family} takes besides\n\nBy keyword.\n");
            let shared = all.iter().find(|f| f.name == one).map(|f| &f.arguments[..]).unwrap_or_default();
            arguments(shared.iter().filter(|a| a.shared), &mut out);
        }
    }
    out.push_str("\n## Kinds of error\n\nA request ends `ok`, or as an error of one kind.\n\n");
    out.push_str(
        "| kind | when | a client of the proxy sees | a `retry` that names it retries |\n|---|---|---|---|\n",
    );
    for k in kinds() {
        let _ = writeln!(out, "| `{}` | {} | {} | {} |", k.name, k.meaning, k.client, k.again);
    }
    out.push_str("\n## Figures of a result\n\nThe keys of `weir sim --output json`. Each figure but counts is an object of `value`, `low` and `high`: the mean over the\nreplications (quantiles: of all samples together) and its 95 % interval.\n\n");
    out.push_str("| key | of each | unit | meaning |\n|---|---|---|---|\n");
    for f in FIGURES {
        let _ = writeln!(out, "| `{}` | {} | {} | {} |", f.name, f.of, f.unit, f.meaning);
    }
    out
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        .collect::<String>()
        .to_lowercase()
}

fn function(f: &Entry, shown: &mut BTreeMap<&'static str, &'static str>, out: &mut String) {
    let _ = writeln!(out, "\n### {}\n\n```text\n{}\n```\n\n{}", f.name, f.signature(), f.meaning);
    let _ = writeln!(out, "\n- Simulated: {}.\n- Served: {}.\n- Draws: {}.", f.simulated, f.served, f.draws);
    if f.arguments.iter().any(|a| !a.shared && a.name != "name") {
        out.push('\n');
        arguments(f.arguments.iter().filter(|a| !a.shared && (a.name != "name" || required_or_own(a))), out);
    }
    if let Some(first) = shown.get(f.example) {
        let _ = writeln!(out, "\nExample: that of [`{first}`](#{}).", anchor(first));
        return;
    }
    shown.insert(f.example, f.name);
    let (command, prints) = prints(f.example);
    let _ = writeln!(out, "\n```python\n{}```\n\n```text\n$ {command}\n{prints}\n```", f.example);
}

/// A name that is more than a label.
fn required_or_own(a: &Argument) -> bool {
    a.otherwise != Fallback::Value("None")
}

fn arguments<'a>(all: impl Iterator<Item = &'a Argument>, out: &mut String) {
    out.push_str("| argument | takes | default | meaning |\n|---|---|---|---|\n");
    let cell = |text: &str| text.replace('|', "\\|");
    for a in all {
        let default = match a.otherwise {
            Fallback::Required => "required".to_owned(),
            Fallback::Value(value) => format!("`{}`", cell(value)),
            Fallback::Words(words) => cell(words),
        };
        let _ = writeln!(out, "| `{}` | {} | {default} | {} |", a.name, cell(a.takes), cell(a.meaning));
    }
}

/// What is run on an example, and its answer without the tables of sites.
fn prints(example: &str) -> (String, String) {
    let scratch = Scratch::new("reference");
    scratch.file("example.star", example);
    let rows: String = (1..=200).map(|i| format!("{},GET,/\n", i * 25)).collect();
    scratch.file("requests.csv", format!("arrival_ms,method,path\n{rows}"));
    let verb = if example.contains("scenario(") { "sim" } else { "check" };
    let output = weir()
        .args([verb, "example.star", "--quiet"])
        .current_dir(scratch.path(""))
        .output()
        .expect("the binary starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{example}\n{said}");
    let mut kept: Vec<&str> = Vec::new();
    let mut summary = true;
    for block in text.trim_end().split("\n\n") {
        let expectations = block.lines().next().is_some_and(|heading| heading.contains(" expected "));
        if summary || expectations {
            kept.push(block);
        }
        summary &= !block.starts_with("scenario") && !block.trim_start().starts_with("latency ms");
    }
    (format!("weir {verb} example.star"), kept.join("\n\n"))
}

#[test]
fn help_knows_every_name_of_the_reference() {
    for f in functions() {
        let text = run(&["help", f.name]);
        let text = text.succeeds();
        assert!(text.contains(f.meaning.split_whitespace().next().unwrap_or_default()), "{text}");
        for a in &f.arguments {
            assert!(text.contains(a.name), "`{}` of {}", a.name, f.name);
        }
        assert!(text.lines().all(|l| l.chars().count() <= 110), "{text}");
    }
    for name in kinds().iter().map(|k| k.name).chain(FIGURES.iter().map(|f| f.name)) {
        run(&["help", name]).succeeds();
    }
}

/// Every key of a result has a meaning.
#[test]
fn every_figure_of_a_result_is_explained() {
    let scratch = Scratch::new("figures");
    let file = scratch.file(
        "a.star",
        "apps = lb.random(pool(2, lambda: queue(delay(5*ms, server()))))\nscenario(\"a\", apps, traffic.poisson(rate=100), requests=400)\n",
    );
    let ran = run(&["sim", &file, "--output", "json", "--quiet", "--explain"]);
    let json: serde_json::Value = serde_json::from_str(ran.succeeds()).expect("JSON");
    let scenario = &json["scenarios"][0];
    let known = |name: &str, of: &str| {
        FIGURES.iter().any(|f| f.of == of && (f.name == name || f.name.starts_with(&format!("{name}."))))
    };
    for key in scenario.as_object().expect("an object").keys() {
        assert!(["name", "params", "nodes"].contains(&key.as_str()) || known(key, "scenario"), "{key}");
    }
    for key in scenario["requests"].as_object().expect("an object").keys() {
        assert!(known(&format!("requests.{key}"), "scenario"), "{key}");
    }
    for key in scenario["latency_ms"]["all"].as_object().expect("an object").keys() {
        assert!(known(key, "latency"), "{key}");
    }
    for key in scenario["series"].as_object().expect("an object").keys() {
        assert!(known(key, "series"), "{key}");
    }
    for key in scenario["nodes"][0].as_object().expect("an object").keys() {
        assert!(["id", "name", "kind", "place"].contains(&key.as_str()) || known(key, "site"), "{key}");
    }
}
