//! Where results go and what happens when they cannot: pipes, full disks, files, interrupts, plans, standard input.

use crate::shared::common;
use crate::shared::common::{Scratch, run, run_with_input, weir};
use std::fs::File;
use std::process::Stdio;

const GOOD: &str = "\
size = param(\"size\", 3)
mode = param(\"mode\", \"first\")
scenario(\"main\", lb.least_conn(pool(size, lambda: queue(delay(2 * ms, server()))), ties = mode), traffic.poisson(every = 1 * ms), requests = 1000)
";

fn good(name: &str) -> (Scratch, String) {
    let scratch = Scratch::new(name);
    let file = scratch.file("good.star", GOOD);
    (scratch, file)
}

#[test]
fn results_end_with_version_seed_and_plan() {
    let (_scratch, file) = good("signature");
    let ran = run(&["sim", &file, "--seed", "7"]);
    let last = ran.succeeds().lines().last().unwrap().to_owned();
    let start = concat!("weir ", env!("CARGO_PKG_VERSION"), " · seed 7 · plan ");
    assert!(last.starts_with(start) && last.len() > start.len() + 8, "{last}");
    // Its cost is not a result: it is written to standard error, in one line, and not at all with --quiet.
    assert!(ran.err.contains(" events in ") && ran.err.lines().count() == 1, "{}", ran.err);
    assert_eq!(run(&["sim", &file, "--quiet"]).err, "");
}

#[test]
fn threads_change_no_byte() {
    let (_scratch, file) = good("threads");
    for form in ["json", "csv", "text"] {
        let of = |threads: &str| {
            run(&["sim", &file, "--output", form, "--threads", threads]).succeeds().to_owned()
        };
        assert_eq!(of("1"), of("3"), "{form}");
    }
}

#[test]
fn a_plan_gives_the_result_of_its_file() {
    let (scratch, file) = good("plan");
    let plan = scratch.file("plan.json", run(&["plan", &file]).succeeds());
    let of_file = run(&["sim", &file, "--output", "json"]);
    assert_eq!(run(&["sim", &plan, "--output", "json"]).succeeds(), of_file.succeeds());
    assert_eq!(run(&["plan", &plan]).succeeds(), run(&["plan", &file]).succeeds());
    run(&["check", &plan]).succeeds();
}

#[test]
fn standard_input_is_a_file_too() {
    let (_scratch, file) = good("stdin");
    let plan = run(&["plan", &file]);
    for input in [GOOD, plan.succeeds()] {
        let ran = run_with_input(&["sim", "-", "--output", "json"], input);
        assert!(ran.succeeds().contains("\"name\": \"main\""));
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (_scratch, file) = good("pipe");
    for args in [&["sim", &file, "--output", "json"][..], &["plan", &file], &["check", &file], &["-h"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = weir().args(args).stdout(Stdio::from(writer)).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let (_scratch, file) = good("full");
    for args in [
        &["sim", &file, "--output", "json"][..],
        &["sim", &file],
        &["plan", &file],
        &["check", &file],
        &["--help"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = weir().args(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
    }
    run(&["sim", &file, "--save", "/dev/full", "--save", "/dev/full"]).fails(2, "--save");
}

#[test]
fn saved_files_are_what_standard_output_would_be() {
    let (scratch, file) = good("save");
    let (json, csv, html) = (scratch.path("run.json"), scratch.path("run.csv"), scratch.path("run.html"));
    let text = run(&["sim", &file, "--save", &json, "--html", &html]);
    assert!(text.succeeds().contains("± half"));
    run(&["sim", &file, "--save", &csv]).succeeds();
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    // What is kept can be compared later, so it has what each replication said.
    assert_eq!(read(&json), run(&["sim", &file, "--output", "json", "--each"]).succeeds());
    assert_eq!(read(&csv), run(&["sim", &file, "--output", "csv"]).succeeds());
    assert!(read(&html).starts_with("<!doctype html>"));
    assert_eq!(scratch.names(), ["good.star", "run.csv", "run.html", "run.json"]);
}

#[test]
fn files_that_cannot_be_written_are_found_before_the_run() {
    let (scratch, file) = good("nowhere");
    let nowhere = scratch.path("no-such-directory/run.json");
    // With this number of requests only a run that does not begin can end in time.
    let endless = ["--requests", "1000000000000", "--replications", "1"];
    for (option, path) in [
        ("--save", nowhere.as_str()),
        ("--html", &scratch.path("no-such-directory/report.html")),
        ("--html", &scratch.path("")),
    ] {
        let args: Vec<&str> = ["sim", &file, option, path].into_iter().chain(endless).collect();
        run(&args).fails(3, path);
    }
    std::fs::create_dir(scratch.path("folder.json")).unwrap();
    run(&["sim", &file, "--save", &scratch.path("folder.json")]).fails(3, "folder.json");
}

#[test]
fn a_run_that_fails_leaves_an_older_file_alone() {
    let (scratch, file) = good("older");
    let old = scratch.file("run.json", "older");
    run(&["sim", &file, "nain", "--save", &old]).fails(2, "nain");
    run(&["sim", &file, "-p", "size=0", "--save", &old]).fails(2, "pool");
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "older");
    assert_eq!(scratch.names(), ["good.star", "run.json"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_prints_what_is_finished() {
    let (scratch, file) = good("interrupt");
    let old = scratch.file("run.json", "older");
    let child = weir()
        .args(["sim", &file, "--requests", "1000000000000", "--output", "json", "--save", &old])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    common::works(&child);
    common::interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"interrupted\": true") && text.contains("\"scenarios\": []"), "{text}");
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "older");
}
