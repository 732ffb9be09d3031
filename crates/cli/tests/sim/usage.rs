//! The command line itself: help, wrong usage, what is not built yet. No topology is evaluated here.

use crate::shared::common::{Scratch, frozen, run};

#[test]
fn help_is_frozen_and_the_short_one_fits_a_screen() {
    for (name, args) in [
        ("help-short.txt", &["-h"][..]),
        ("help-long.txt", &["--help"]),
        ("help-admin-short.txt", &["admin", "-h"]),
        ("help-admin-long.txt", &["admin", "--help"]),
        ("help-admin-set.txt", &["admin", "set", "-h"]),
        ("help-check-short.txt", &["check", "-h"]),
        ("help-graph-short.txt", &["graph", "-h"]),
        ("help-graph-long.txt", &["graph", "--help"]),
        ("help-compare-short.txt", &["compare", "-h"]),
        ("help-compare-long.txt", &["compare", "--help"]),
        ("help-merge-long.txt", &["merge", "--help"]),
        ("help-load-short.txt", &["load", "-h"]),
        ("help-load-long.txt", &["load", "--help"]),
        ("help-plan-short.txt", &["plan", "-h"]),
        ("help-plan-long.txt", &["plan", "--help"]),
        ("help-serve-short.txt", &["serve", "-h"]),
        ("help-serve-long.txt", &["serve", "--help"]),
        ("help-sim-short.txt", &["sim", "-h"]),
        ("help-sim-long.txt", &["sim", "--help"]),
    ] {
        let ran = run(args);
        let text = ran.succeeds();
        frozen(name, text);
        if name.ends_with("short.txt") {
            assert!(text.lines().count() <= 36, "{name} is longer than a screen");
        }
        assert!(text.lines().all(|l| l.chars().count() <= 110), "{name} is wider than a screen");
    }
}

#[test]
fn version_is_one_line() {
    assert_eq!(run(&["--version"]).succeeds(), concat!("weir ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn no_command_is_answered_with_usage() {
    run::<&str>(&[]).fails(2, "usage");
}

#[test]
fn wrong_usage_names_what_is_wrong() {
    for (args, says) in [
        (&["simulate", "a.star"][..], "simulate"),
        (&["sim"], "usage"),
        (&["sim", "a.star", "--frobnicate"], "frobnicate"),
        (&["sim", "a.star", "--replications", "0"], "replications"),
        (&["sim", "a.star", "--requests", "0"], "requests"),
        (&["sim", "a.star", "--threads", "0"], "threads"),
        (&["sim", "a.star", "--seed", "lucky"], "lucky"),
        (&["sim", "a.star", "--seed", "-1"], "-1"),
        (&["sim", "a.star", "--output", "yaml"], "yaml"),
        (&["sim", "a.star", "--nodes", "some"], "some"),
        (&["sim", "a.star", "-p", "size"], "size"),
        (&["sim", "a.star", "-p", "=4"], "=4"),
        (&["sim", "a.star", "--sweep", "size"], "size"),
        (&["sim", "a.star", "--sweep", "size=1,,2"], "size=1,,2"),
        (&["sim", "a.star", "--sweep", "size=1,2", "--sweep", "size=3"], "size"),
        (&["sim", "a.star", "--sweep", "size=1,2", "-p", "size=3"], "size"),
        (&["serve"], "usage"),
        (&["serve", "a.star", "--loops", "0"], "loops"),
        (&["serve", "a.star", "--sweep", "size=1,2"], "sweep"),
        (&["serve", "a.star", "--admin-token", "t"], "--admin"),
        (&["admin"], "usage"),
        (&["admin", "set", "apps", "a"], "--state"),
        (&["admin", "set", "apps", "a", "--state", "sideways"], "drain"),
        (&["admin", "status", "--url", "https://localhost:1"], "does not speak TLS"),
        (&["admin", "status", "--url", "http://localhost:1", "--control", "c"], "--control"),
        (&["sim", "a.star", "--save", "run.xlsx"], ".csv"),
        (&["sim", "a.star", "--save", "run"], ".json"),
    ] {
        run(args).fails(2, says);
    }
}

#[test]
fn what_is_not_built_yet_says_so() {
    for command in ["fit", "profile"] {
        for rest in [&[][..], &["a.star", "b.star", "--to", "x", "-o", "y", "--help"]] {
            let args: Vec<&str> = [command].into_iter().chain(rest.iter().copied()).collect();
            run(&args).fails(2, &format!("`weir {command}` is not built yet"));
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let scratch = Scratch::new("unreadable");
    for command in ["check", "plan", "sim"] {
        run(&[command, &scratch.path("no-such-file.star")]).fails(2, "no-such-file.star");
        run(&[command, &scratch.path("")]).fails(2, &scratch.path(""));
    }
}

#[cfg(unix)]
#[test]
fn a_device_without_end_is_no_topology() {
    run(&["sim", "/dev/zero"]).fails(2, "/dev/zero");
}

#[test]
fn a_plan_takes_no_parameters() {
    let scratch = Scratch::new("plan-params");
    let plan = scratch.file("plan.json", "{\"schema\": \"weir.plan/1\"}");
    run(&["sim", &plan, "-p", "size=4"]).fails(2, "already evaluated");
    run(&["plan", &plan, "--sweep", "size=4"]).fails(2, "already evaluated");
    run(&["sim", &plan]).fails(2, "plan.json");
}
