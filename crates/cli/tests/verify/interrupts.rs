//! A verification that is interrupted. It is interrupted when it says that runs are finished, and has far more to make
//! then, so that nothing here leans on how fast the machine is.

use crate::shared::common::{Scratch, interrupt, weir};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

/// Two scenarios of short runs.
const SOURCE: &str = "\
apps = pool(2, lambda: delay(2*ms, server(\"app\")))
users = traffic.constant(rate = 100)
scenario(\"one\", lb.random(apps), users, requests = 100, window = \"all\")
scenario(\"other\", lb.random(apps), users, requests = 100, window = \"all\")
";

/// The lines of standard error up to the first that counts finished runs; `None`: every run so far is void.
fn read_progress(stderr: &mut impl BufRead) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    // Each comes ten seconds after the one before it, or later.
    for line in stderr.lines().take(12) {
        let line = line.expect("a line");
        let count = line.strip_prefix("verify: ").and_then(|rest| rest.split_once(" of "));
        let finished = count.and_then(|(count, _)| count.parse::<u32>().ok());
        lines.push(line);
        if finished.is_some_and(|n| n > 0) {
            return Some(lines);
        }
    }
    None
}

/// A thousand runs of each scenario, interrupted by `stop` when some are finished: what is printed, and all of standard
/// error. `None`: the machine was too busy.
fn interrupted(scratch: &Scratch, more: &[&str], stop: impl FnOnce(&Child)) -> Option<(Output, String)> {
    let file = scratch.file("t.star", SOURCE);
    let mut child = weir()
        .args(["verify", &file, "--runs", "1000"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let Some(lines) = read_progress(&mut stderr) else {
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        return None;
    };
    stop(&child);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("UTF-8");
    let output = child.wait_with_output().expect("it ends");
    Some((output, lines.join("\n") + "\n" + &rest))
}

/// The document is whole, and says what is missing; files stay as they were.
#[test]
fn an_interrupt_prints_what_is_finished() {
    let scratch = Scratch::new("verify-partial");
    let (html, record) = (scratch.file("page.html", "older"), scratch.file("run.record", "older"));
    let more = ["--output", "json", "--html", &html, "--record", &record];
    let Some((output, err)) = interrupted(&scratch, &more, interrupt) else { return };
    assert_eq!(output.status.code(), Some(130), "{err}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["interrupted"], true, "{found}");
    assert_ne!(found["verdict"], "agrees", "{found}");
    assert_eq!(found["missing"], json!([{ "name": "other", "params": {}, "asked_runs": 1000 }]));
    let [scenario] = &found["scenarios"].as_array().expect("scenarios")[..] else { panic!("{found}") };
    let runs = scenario["runs"].as_u64().expect("a number");
    assert!((1..1000).contains(&runs) && scenario["asked_runs"] == 1000, "{scenario}");
    assert!(scenario["statistics"].as_array().is_some_and(|all| !all.is_empty()), "{scenario}");
    assert!(err.contains("verify: 2000 runs, about "), "{err}");
    let says = format!("interrupted after {runs} of 2000 runs; incomplete: one ({runs} of 1000 runs)");
    assert!(err.contains(&says) && err.contains("; without a run, 1 of 2: other\n"), "{err}");
    for file in [&html, &record] {
        assert_eq!(std::fs::read_to_string(file).expect("it is there"), "older");
        assert!(err.contains(&format!("nothing is written to `{file}`")), "{err}");
    }
    assert_eq!(scratch.names(), ["page.html", "run.record", "t.star"]);
}

/// SIGTERM means the same. The tables of what is finished come after what is not. A pipe has a part of the record.
#[test]
fn a_verification_that_is_terminated_prints_tables() {
    let scratch = Scratch::new("verify-terminated");
    let terminate = |child: &Child| {
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
    };
    let (html, record) = (scratch.path("page.html"), scratch.path("record.fifo"));
    assert!(Command::new("mkfifo").arg(&record).status().expect("mkfifo runs").success());
    let reader = thread::spawn({
        let record = record.clone();
        move || std::fs::read_to_string(record).expect("UTF-8")
    });
    let Some((output, err)) = interrupted(&scratch, &["--html", &html, "--record", &record], terminate)
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains(&format!("nothing is written to `{html}`\n")), "{err}");
    assert!(
        err.contains(&format!("the record in `{record}` is not whole; it cannot be replayed\n")),
        "{err}"
    );
    assert!(
        !std::path::Path::new(&html).exists() && reader.join().expect("no panic").contains("weir.record/1")
    );
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("Interrupted after ") && text.contains(" of 2000 runs: what follows"), "{text}");
    assert!(text.contains("Without a run, 1 of 2: other.\n"), "{text}");
    assert!(text.contains("\none: ") && !text.contains("\nother: "), "{text}");
}

/// A record that could not be written is an error, whether the verification ends or is interrupted.
#[test]
fn a_record_that_could_not_be_written_is_said_after_an_interrupt() {
    let scratch = Scratch::new("verify-unwritten");
    let Some((output, err)) = interrupted(&scratch, &["--record", "/dev/full"], interrupt) else { return };
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("error: cannot write `/dev/full`: no space left on device"), "{err}");
    assert!(err.contains("interrupted after ") && !err.contains("is not whole"), "{err}");
}
