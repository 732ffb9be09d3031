//! The command line itself: help, wrong usage, what is not built yet. No topology is evaluated here.

use crate::shared::common::{Scratch, frozen, run, run_with_input, weir};

#[test]
fn help_is_frozen_and_the_short_one_fits_a_screen() {
    for (name, args) in [
        ("help-short.txt", &["-h"][..]),
        ("help-long.txt", &["--help"]),
        ("help-admin-short.txt", &["admin", "-h"]),
        ("help-admin-long.txt", &["admin", "--help"]),
        ("help-admin-set.txt", &["admin", "set", "-h"]),
        ("help-check-short.txt", &["check", "-h"]),
        ("help-find-short.txt", &["find", "-h"]),
        ("help-find-long.txt", &["find", "--help"]),
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
        (&["find"], "usage"),
        (&["find", "a.star", "--sweep", "size=1,2"], "sweep"),
        (&["find", "a.star", "--output", "csv"], "csv"),
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

/// A value that begins with a minus belongs to its option, which says what it takes.
#[test]
fn negative_values_are_values() {
    let scratch = Scratch::new("usage-negative");
    let file = scratch.file(
        "a.star",
        "x = param(\"x\", 1)\nscenario(\"s\", server(model=1*ms), traffic.poisson(rate=100), requests=10)\n",
    );
    run(&["sim", &file, "-p", "x=-1"]).succeeds();
    let refused = run(&["sim", &file, "--seed", "-1"]);
    refused.fails(2, "invalid value '-1' for '--seed <N>'");
    refused.fails(2, "write a whole number from 0");
    run(&["sim", &file, "--requests", "-5"]).fails(2, "invalid value '-5' for '--requests <N>'");
    run(&["load", &file, "--to", "http://127.0.0.1:1", "--speed", "-2"]).fails(2, "write a number above 0");
}

/// What weir wrote itself, and tables, are named where a topology is wanted.
#[test]
fn files_that_are_no_topology_are_named() {
    let scratch = Scratch::new("usage-mistaken");
    let file = scratch
        .file("a.star", "scenario(\"s\", server(model=1*ms), traffic.poisson(rate=100), requests=10)\n");
    let (result, part) = (scratch.path("r.json"), scratch.path("p.json"));
    std::fs::write(&result, run(&["sim", &file, "--output", "json"]).succeeds()).expect("written");
    run(&["sim", &file, "--shard", "1/2", "--save", &part]).succeeds();
    let table = scratch.file("t.csv", "arrival_s,path\n0.1,/\n");
    let parquet = scratch.file("t.parquet", "PAR1");
    for command in ["sim", "check", "graph", "plan"] {
        for (file, says) in [
            (&result, "is a result of `weir sim`: `weir compare` reads it"),
            (&part, "is a part of a simulation (--shard): `weir merge` reads it"),
            (&table, "is a table (CSV)"),
            (&parquet, "is a Parquet file"),
        ] {
            run(&[command, file]).fails(2, says);
        }
    }
}

/// A name that is not UTF-8 is a name all the same, of the file and of what is written.
#[test]
fn names_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new("usage-names");
    let named = |bytes: &[u8]| std::path::Path::new(&scratch.path("")).join(OsStr::from_bytes(bytes));
    let (file, saved) = (named(b"a\xff.star"), named(b"r\xff.json"));
    std::fs::write(&file, "load(\"b.star\", \"rate\")\nscenario(\"s\", server(model=1*ms), traffic.poisson(rate=rate), requests=10)\n")
        .expect("written");
    scratch.file("b.star", "rate = 100\n");
    let ran = weir().arg("sim").arg(&file).arg("--save").arg(&saved).output().expect("it starts");
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(saved.exists());
    let ran = weir().arg("check").arg(named(b"none\xff.star")).output().expect("it starts");
    assert_eq!(ran.status.code(), Some(2), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Words that nothing is called by, and the texts of warnings, are found.
#[test]
fn help_finds_users_words() {
    for (word, says) in [
        ("outage", "weir help faulty"),
        ("gc", "garbage collection"),
        ("site", "one row per site"),
        ("busy", "weir help utilisation"),
        ("seed", "--seed N"),
        ("too short for p99", "too few samples"),
    ] {
        let ran = run(&["help", word]);
        assert!(ran.succeeds().contains(says), "{word}");
    }
}

/// `weir check` shows what changes do at known instants, once for all scenarios in which it is the same; a batch that waits for the
/// one before has none.
#[test]
fn changes_at_known_instants_are_shown() {
    let source = r#"
apps = fleet(4, lambda: queue(server("app", model = 1*ms)), name = "apps", life = life(boot = 5*s))
one = server("one", model = 1*ms)
acts = [change.rolling(apps, at = 20*s, batch = 2, every = 10*s), change.down(apps, at = 30*s, lasts = 500*ms, k = 1),
        change.set([one, apps], at = 45*s, state = "drain", lasts = 5*s)]
waits = [change.rolling(apps, at = 20*s, first = "in_place", wait = "running"), change.unlist(apps, at = 60*s, lasts = 1*s, share = 0.5)]
users = traffic.poisson(rate = 100)
scenario("a", lb.random([one, apps]), users, duration = 100*s, window = "all", events = acts)
scenario("b", lb.p2c([one, apps]), users, duration = 100*s, window = "all", events = acts)
scenario("c", lb.random(apps), users, duration = 200*s, window = "all", events = waits)
"#;
    let ran = run_with_input(&["check", "-"], source);
    let said = ran.succeeds();
    let lines: Vec<String> = said
        .lines()
        .skip_while(|line| !line.starts_with("changes at"))
        .skip(2)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .take_while(|line| !line.is_empty())
        .collect();
    let wanted = [
        "scenario at what",
        "a and 1 more 20s 2 of apps replaced",
        "30s 2 of apps replaced",
        "30s 1 of apps down (crash)",
        "30.5s 1 of apps up again",
        "45s one, apps set to drain",
        "50s one, apps as before",
        "c 20s 1 of apps replaced in place",
        "60s 50 % of apps unlisted",
        "61s apps listed again",
    ];
    assert_eq!(lines, wanted, "{said}");
}
