//! `--columns`: the figures in the table of scenarios.

use crate::shared::common::{Scratch, run};

const LOSSY: &str = r#"
loss = param("loss", 0.1)
app = flaky(loss, queue(delay(10*ms, server())))
scenario("once", app, traffic.poisson(rate=50), requests=2000)
scenario("twice", retry(2, app), traffic.poisson(rate=50), requests=2000)
"#;

/// The line of the table of scenarios that begins so.
#[track_caller]
fn words(out: &str, begins: &str) -> Vec<String> {
    let line = out.lines().find(|l| l.starts_with(begins));
    line.unwrap_or_else(|| panic!("{out}")).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn other_figures_stand_in_the_table() {
    let scratch = Scratch::new("columns");
    let file = scratch.file("a.star", LOSSY);
    let ran =
        run(&["sim", &file, "-q", "--sweep", "loss=0.1,0.3", "--columns", "attempts,ok_p99,failed,errors"]);
    let out = ran.succeeds();
    assert_eq!(words(out, "scenario"), ["scenario", "loss", "attempts", "ok_p99", "failed", "errors"]);
    let once = words(out, "once");
    assert!(
        once[1] == "0.1" && once[2] == "1" && once.last().is_some_and(|kind| kind == "status_5xx"),
        "{out}"
    );
    let page = scratch.path("page.html");
    run(&["sim", &file, "-q", "--columns", "p999,goodput_per_s", "--html", &page]).succeeds();
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("<th class=\"n\">p99.9</th><th class=\"n\">goodput/s</th></tr>"));
}

#[test]
fn an_unknown_column_is_refused_with_those_that_there_are() {
    let scratch = Scratch::new("columns-unknown");
    let file = scratch.file("a.star", LOSSY);
    for (columns, says) in [("p99,goodputs", "goodput"), ("p98", "p99.9, ok_mean"), ("p99,", "errors")] {
        run(&["sim", &file, "--columns", columns]).fails(2, says);
    }
}

#[test]
fn parts_that_are_merged_have_the_columns_of_one_run() {
    let scratch = Scratch::new("columns-merge");
    let file = scratch.file("a.star", LOSSY);
    let parts = ["1/2", "2/2"].map(|part| {
        let saved = scratch.path(&format!("{}.json", &part[..1]));
        run(&["sim", &file, "-q", "--shard", part, "--save", &saved]).succeeds();
        saved
    });
    let columns = ["--columns", "success,max"];
    let whole = run(&[&["sim", &file, "-q"][..], &columns].concat());
    let merged = run(&[&["merge", &parts[0], &parts[1]][..], &columns].concat());
    assert_eq!(merged.succeeds(), whole.succeeds());
    assert_eq!(words(&merged.out, "scenario"), ["scenario", "success", "%", "max"]);
}

/// Where there is no room for more, a line says what else there is.
#[test]
fn a_table_of_many_says_that_there_are_other_columns() {
    let scratch = Scratch::new("columns-hint");
    let file = scratch.file("a.star", LOSSY);
    let sweep = ["sim", &file, "-q", "--requests", "100", "--sweep", "loss=0.1,0.3"];
    assert!(run(&sweep).succeeds().contains("--columns p99.9,errors"));
    let chosen = [&sweep[..], &["--columns", "mean"]].concat();
    let out = run(&chosen).succeeds().to_owned();
    assert!(out.contains("--nodes sites") && !out.contains("--columns"), "{out}");
}

/// The parameter that is named first varies slowest, on the command line as in the file.
#[test]
fn the_first_named_sweep_varies_slowest() {
    let scratch = Scratch::new("columns-order");
    let source = |a: &str, b: &str| {
        format!(
            "a = param(\"a\", 1{a})\nb = param(\"b\", 3{b})\n\
             scenario(\"s\", delay((a + b)*ms, server()), traffic.poisson(rate=50), requests=100)\n"
        )
    };
    let plain = scratch.file("plain.star", source("", ""));
    let swept = scratch.file("swept.star", source(", sweep=[1, 2]", ", sweep=[3, 4]"));
    let order = |args: &[&str]| -> Vec<String> {
        let ran = run(&[args, &["-q", "--columns", "mean"]].concat());
        let rows = ran.succeeds().lines().filter(|l| l.starts_with("s  "));
        rows.map(|l| l.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(",")).collect()
    };
    let product = ["1,3", "1,4", "2,3", "2,4"];
    assert_eq!(order(&["sim", &swept]), product);
    assert_eq!(order(&["sim", &plain, "--sweep", "a=1,2", "--sweep", "b=3,4"]), product);
    let other_way = run(&["sim", &plain, "-q", "--sweep", "b=3,4", "--sweep", "a=1,2", "--columns", "mean"]);
    let rows = other_way.succeeds().lines().filter(|l| l.starts_with("s  "));
    let means: Vec<&str> = rows.filter_map(|l| l.split_whitespace().nth(3)).collect();
    assert_eq!(means, ["4", "5", "5", "6"], "{}", other_way.out);
}
