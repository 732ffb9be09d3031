//! The 143 single-shot requests of Http11Probe through the real binary, judged as the suite judges them.

use crate::shared::serve::{Fault, Origin, Weir, reply, tell};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Of the 125 cases that are scored; the others are warnings for what the standard allows.
const PASS: usize = 118;

/// How long an answer may take before it counts as none. Only incomplete requests wait for all of it.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Pass,
    Warn,
    Fail,
}

/// What came: the first final status, and whether the connection ended.
#[derive(Debug)]
struct Observation {
    status: Option<u16>,
    closed: bool,
}

fn bytes(send: &Value) -> Vec<u8> {
    let latin =
        |text: &str| text.chars().map(|c| u8::try_from(u32::from(c)).expect("latin-1")).collect::<Vec<u8>>();
    let piece = |piece: &Value| match piece {
        Value::String(text) => latin(text),
        piece if piece["hex"].is_string() => {
            let hex = piece["hex"].as_str().expect("text").as_bytes();
            let digit = |d: u8| char::from(d).to_digit(16).expect("a digit") as u8;
            hex.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
        }
        piece => {
            let text = piece["repeat"].as_str().expect("a text to repeat");
            let times = piece["times"].as_u64().expect("how often");
            (0..times).flat_map(|i| latin(&text.replace("{i}", &i.to_string()))).collect()
        }
    };
    match send {
        Value::Array(pieces) => pieces.iter().flat_map(piece).collect(),
        one => piece(one),
    }
}

/// The final statuses in what was read: status lines are where a line begins.
fn statuses(read: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(read);
    let lines = text.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.get(..3)?.parse().ok());
    lines.filter(|s| (200..600).contains(s)).collect()
}

fn ask(weir: &Weir, request: &[u8]) -> Observation {
    let mut client = weir.client();
    // It may be refused before it was sent whole.
    let _ = client.send(request);
    let mut read = Vec::new();
    let end = Instant::now() + PATIENCE;
    let closed = loop {
        // Once answered: does it close within a moment?
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        client.patience(if statuses(&read).is_empty() { left } else { Duration::from_millis(300) });
        match client.some().map(<[u8]>::len) {
            Ok(n) => client.take(n as u64, &mut read).expect("it is there"),
            Err(fault) => break fault != Fault::Silence,
        }
    };
    Observation { status: statuses(&read).first().copied(), closed }
}

fn judge(expected: &str, seen: &Observation) -> Verdict {
    let of = |holds: bool| if holds { Verdict::Pass } else { Verdict::Fail };
    if let Some(not) = expected.strip_prefix('!') {
        return of(seen.status.is_none_or(|s| s.to_string() != not));
    }
    let Some(status) = seen.status else {
        let allows = |what| expected.contains(what);
        return of(if seen.closed { allows("close") || allows("400") } else { allows("timeout") });
    };
    let fine = (200..300).contains(&status);
    if expected == "2xx + close" {
        return of(fine && seen.closed);
    }
    if expected.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == status.to_string()) {
        return Verdict::Pass;
    }
    match expected.contains("2xx") && fine {
        true if expected.contains("400") && !expected.starts_with("2xx") => Verdict::Warn,
        holds => of(holds),
    }
}

#[test]
fn the_cases_of_http11probe() {
    let text = include_str!("../data/http11-cases.json");
    let file: Value = serde_json::from_str(text).expect("JSON");
    let cases = file["cases"].as_array().expect("a list");
    let origin = Origin::answering(|request| reply(request.method()));
    let mut weir = Weir::before(&format!("server(addr = \"{}\")", origin.addr()));
    let next = AtomicUsize::new(0);
    let seen: Arc<Mutex<Vec<(usize, Observation)>>> = Arc::default();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else { return };
                    let one = ask(&weir, &bytes(&case["send"]));
                    seen.lock().expect("no panic").push((number, one));
                }
            });
        }
    });
    let (mut passed, mut warned, mut failed) = (0, 0, Vec::new());
    for (number, seen) in seen.lock().expect("no panic").iter() {
        let case = &cases[*number];
        let (id, expected) = (case["id"].as_str().unwrap_or("?"), case["expected"].as_str().expect("a text"));
        let verdict = judge(expected, seen);
        match verdict {
            _ if case["scored"] != true => {}
            Verdict::Pass => passed += 1,
            Verdict::Warn => {
                println!("warned: {id}: {seen:?}, expected {expected}");
                warned += 1;
            }
            Verdict::Fail => failed.push(format!("{id}: {seen:?}, expected {expected}")),
        }
    }
    tell(&format!("http11probe: {passed} pass, {warned} warn, {} fail", failed.len()));
    weir.assert_alive();
    // What reached the origin is HTTP/1.1 without a doubt, however odd the request.
    origin.read_only_http();
    assert_eq!(cases.len(), 143);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(passed >= PASS, "{passed} pass, fewer than {PASS}");
}
