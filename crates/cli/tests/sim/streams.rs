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

/// What a run prints that is interrupted while it works.
#[cfg(target_os = "linux")]
#[track_caller]
fn interrupted(args: &[&str]) -> std::process::Output {
    let child =
        weir().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    common::works(&child);
    common::interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    output
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_prints_what_is_finished() {
    let (scratch, file) = good("interrupt");
    let old = scratch.file("run.json", "older");
    let output =
        interrupted(&["sim", &file, "--requests", "1000000000000", "--output", "json", "--save", &old]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"interrupted\": true") && text.contains("\"scenarios\": []"), "{text}");
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "older");
}

const READING: &str = "\
load(\"part.json\", \"app\")
scenario(\"main\", lb.random([app, delay(dist.empirical(\"times.csv\"), server())]), traffic.poisson(every = 1 * ms), requests = 100)
listen(\"127.0.0.1:8443\", app, tls=tls.server(\"cert.json\", \"key.json\"))
";

/// Whatever it is called: the file, what it loads, its data and certificates are not written over.
#[test]
fn what_a_command_reads_is_not_written_over() {
    let scratch = Scratch::new("reads");
    let file = scratch.file("main.json", READING);
    let read = ["part.json", "times.csv", "cert.json", "key.json", "main.json"];
    scratch.file("part.json", "app = server()\n");
    for name in &read[1..4] {
        scratch.file(name, "duration_ms\n1\n2\n");
    }
    let contents = || read.map(|name| std::fs::read(scratch.path(name)).unwrap());
    let before = contents();
    for name in read {
        let ending = name.rsplit('.').next().unwrap();
        let (symbolic, hard) =
            (scratch.path(&format!("soft.{ending}")), scratch.path(&format!("hard.{ending}")));
        std::os::unix::fs::symlink(scratch.path(name), &symbolic).unwrap();
        std::fs::hard_link(scratch.path(name), &hard).unwrap();
        for spelling in
            [scratch.path(name), scratch.path(&format!("./{name}")), symbolic.clone(), hard.clone()]
        {
            run(&["sim", &file, "-q", "--save", &spelling]).fails(2, "this command's input");
            run(&["sim", &file, "-q", "--html", &spelling]).fails(2, "this command's input");
            run(&["load", &file, "--to", "http://127.0.0.1:9", "--hgrm", &spelling])
                .fails(2, "this command's input");
            run(&["verify", &file, "--quick", "--record", &spelling]).fails(2, "this command's input");
        }
        std::fs::remove_file(symbolic).unwrap();
        std::fs::remove_file(hard).unwrap();
    }
    let shard = scratch.path("shard.json");
    run(&["sim", &file, "-q", "--shard", "1/1", "--save", &shard]).succeeds();
    run(&["merge", &shard, "--save", &shard]).fails(2, "this command's input");
    let piped =
        weir().args(["sim", "-", "-q", "--save", &file]).stdin(File::open(&file).unwrap()).output().unwrap();
    assert_eq!(piped.status.code(), Some(2), "standard input is a file that is read");
    assert_eq!(contents(), before);
}

#[test]
fn each_output_has_a_file_of_its_own() {
    let (scratch, file) = good("outputs");
    let (page, link, other) = (scratch.path("a.html"), scratch.path("link.json"), scratch.path("run.json"));
    std::os::unix::fs::symlink("run.json", &link).unwrap();
    run(&["sim", &file, "--html", &page, "--junit", &scratch.path("./a.html")])
        .fails(2, "--html and --junit");
    run(&["sim", &file, "--save", &link, "--trace", &other]).fails(2, "--save and --trace");
    let out = File::create(&other).unwrap();
    let ran = weir().args(["sim", &file, "-q", "--save", &other]).stdout(out).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "standard output is that file");
    for args in [
        &["sim", &file, "--save", "-"][..],
        &["sim", &file, "--html", "-"],
        &["sim", &file, "--trace", "-"],
        &["sim", &file, "--junit", "-"],
        &["merge", &file, "--save", "-"],
        &["load", &file, "--to", "http://127.0.0.1:9", "--hgrm", "-"],
        &["verify", &file, "--html", "-"],
        &["graph", &file, "-o", "-"],
        &["calibrate", "-o", "-"],
        &["new", "bamboo", "-o", "-"],
        &["man", "-"],
    ] {
        run(args).fails(2, "`./-`");
    }
    // Devices are not overwritten.
    run(&["sim", &file, "-q", "--html", "/dev/null", "--junit", "/dev/null"]).succeeds();
    assert_eq!(scratch.names(), ["good.star", "link.json", "run.json"]);
}

/// A file that cannot be written takes nothing with it: not the result, and no other file.
#[cfg(target_os = "linux")]
#[test]
fn what_can_be_written_is_written() {
    let (scratch, file) = good("some");
    let save = scratch.path("run.json");
    let ran = run(&["sim", &file, "-q", "--html", "/dev/full", "--junit", "/dev/full", "--save", &save]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.out.contains("± half"), "{}", ran.out);
    assert_eq!(
        ran.err.matches("error: cannot write `/dev/full`: no space left on device").count(),
        2,
        "{}",
        ran.err
    );
    assert!(std::fs::read_to_string(&save).unwrap().contains("weir.sim/1"));
    // Nor does a result that has nowhere to go.
    std::fs::remove_file(&save).unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = weir().args(["sim", &file, "-q", "--save", &save]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(std::fs::exists(&save).unwrap());
    // What else there is to say is said.
    let file = scratch.file("expects.star", format!("{GOOD}expect(\"main\", p99 = \"<1ns\")\n"));
    let ran = run(&["sim", &file, "-q", "--junit", "/dev/full"]);
    assert!(ran.code == Some(3) && ran.err.contains("p99"), "{}", ran.err);
}

/// `ulimit -f 0` stands for a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_no_half_example() {
    let scratch = Scratch::new("half");
    for (what, path) in [("new edge -o", scratch.path("edge.star")), ("man", scratch.path("pages"))] {
        let command = format!("trap '' XFSZ; ulimit -f 0; \"$0\" {what} \"$1\"");
        let output = std::process::Command::new("sh")
            .args(["-c", &command, env!("CARGO_BIN_EXE_weir"), &path])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{what}");
        assert!(scratch.names().is_empty(), "{what}: {:?}", scratch.names());
    }
    // An example whose companion has the name that was given.
    run(&["new", "timelike/post1", "-o", &scratch.path("dynos.star")]).fails(2, "dynos.star");
    assert!(scratch.names().is_empty());
}

/// What is printed after an interrupt is what a run of as many replications gives.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_keeps_finished_replications() {
    let scratch = Scratch::new("kept");
    let file =
        scratch.file("f.star", GOOD.replace("requests = 1000)", "requests = 1000, window = \"middle\")"));
    for more in
        [&["--replications", "20000"][..], &["--precision", "mean=0.0001%", "--max-replications", "100000"]]
    {
        let output = interrupted(&[&["sim", &file, "--output", "json", "--threads", "2"][..], more].concat());
        let mut kept: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let scenario = kept["scenarios"][0].as_object_mut().expect("some were finished");
        let finished = scenario.remove("replications").expect("it says how many").to_string();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&format!("interrupted after {finished} of ")), "{said}");
        let whole = run(&["sim", &file, "--output", "json", "--replications", &finished]);
        let whole: serde_json::Value = serde_json::from_str(whole.succeeds()).unwrap();
        assert_eq!(kept["scenarios"], whole["scenarios"]);
    }
}

/// So does `compare`: the finished part is compared.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_keeps_what_can_be_compared() {
    let scratch = Scratch::new("kept-pairs");
    let file = scratch.file("f.star", GOOD);
    let saved = scratch.path("saved.json");
    run(&["sim", &file, "-q", "--save", &saved]).succeeds();
    let output = interrupted(&["compare", &saved, &file, "--output", "json", "--replications", "20000"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("interrupted after ") && said.contains(" of 20000 replications"), "{said}");
    let compared: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(compared["pairs"][0]["statistics"][0]["b"]["value"].is_f64(), "{compared}");
}
