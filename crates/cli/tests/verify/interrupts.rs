//! A verification that is interrupted. It is interrupted when it says that runs are finished, and has far more to make
//! then, so that nothing here leans on how fast the machine is: a test fails where no run counts within two minutes.

use crate::shared::common::{Scratch, interrupt, weir};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Two scenarios of short runs.
const SOURCE: &str = "\
apps = pool(2, lambda: delay(2*ms, server(\"app\")))
users = traffic.constant(rate = 100)
scenario(\"one\", lb.random(apps), users, requests = 100, window = \"all\")
scenario(\"other\", lb.random(apps), users, requests = 100, window = \"all\")
";

/// How long is waited for a run that counts. The first line that counts runs comes after ten seconds.
const BOUND: Duration = Duration::from_secs(120);

/// The lines of standard error up to the first that counts finished runs, and the rest.
///
/// # Panics
/// There is none in time: every run so far is void, or the verification has ended.
fn read_progress(stderr: ChildStderr) -> (Vec<String>, Receiver<String>) {
    let (out, all) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(stderr).lines();
        lines.map_while(Result::ok).try_for_each(|line| out.send(line))
    });
    let (mut lines, end) = (Vec::new(), Instant::now() + BOUND);
    loop {
        let line = all.recv_timeout(end.saturating_duration_since(Instant::now()));
        let line = line.unwrap_or_else(|e| panic!("no run counts, within {BOUND:?}: {e}; {lines:#?}"));
        let count = line.strip_prefix("verify: ").and_then(|rest| rest.split_once(" of "));
        let finished = count.and_then(|(count, _)| count.parse::<u32>().ok());
        lines.push(line);
        if finished.is_some_and(|n| n > 0) {
            return (lines, all);
        }
    }
}

/// A verification, which ends with the test.
struct Verifying(Option<Child>);

impl Drop for Verifying {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A thousand runs of each scenario, interrupted by `stop` when some are finished: what is printed, and all of standard
/// error.
fn interrupted(scratch: &Scratch, more: &[&str], stop: impl FnOnce(&Child)) -> (Output, String) {
    let file = scratch.file("t.star", SOURCE);
    let mut child = weir()
        .args(["verify", &file, "--runs", "1000"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stderr = child.stderr.take().expect("piped");
    let mut verifying = Verifying(Some(child));
    let (mut lines, rest) = read_progress(stderr);
    let child = verifying.0.take().expect("it runs");
    stop(&child);
    let output = child.wait_with_output().expect("it ends");
    lines.extend(rest);
    (output, lines.join("\n") + "\n")
}

/// The document is whole, and says what is missing; files stay as they were.
#[test]
fn an_interrupt_prints_what_is_finished() {
    let scratch = Scratch::new("verify-partial");
    let (html, record) = (scratch.file("page.html", "older"), scratch.file("run.record", "older"));
    let more = ["--output", "json", "--html", &html, "--record", &record];
    let (output, err) = interrupted(&scratch, &more, interrupt);
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
    let (output, err) = interrupted(&scratch, &["--html", &html, "--record", &record], terminate);
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
    let (output, err) = interrupted(&scratch, &["--record", "/dev/full"], interrupt);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("error: cannot write `/dev/full`: no space left on device"), "{err}");
    assert!(err.contains("interrupted after ") && !err.contains("is not whole"), "{err}");
}
