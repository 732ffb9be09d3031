//! The verdicts of Http11Probe's cases on the codec: an origin is assumed that answers 200 to every whole request.

use crate::escape::unescape;
use crate::way::{Event, Setup, at_once};
use weir_http1::OwnAnswer;

/// The answers that a client of the finished proxy receives.
struct Observation {
    /// `None`: no answer in time.
    status: Option<u16>,
    closed: bool,
}

fn answer(bytes: &[u8]) -> Observation {
    let setup = Setup { upgrades: vec!["websocket".into()], ..Setup::plain() };
    match at_once(&setup, false, bytes).first() {
        Some(Event::Whole { kept, .. }) => Observation { status: Some(200), closed: !kept },
        Some(Event::Tunnel { .. }) => Observation { status: Some(200), closed: false },
        Some(Event::Refused(rule)) => Observation { status: Some(rule.status), closed: true },
        Some(Event::Here(OwnAnswer::Trace)) => Observation { status: Some(405), closed: false },
        Some(Event::Here(OwnAnswer::Options)) => Observation { status: Some(200), closed: false },
        Some(Event::Open { .. }) | None => Observation { status: None, closed: false },
    }
}

/// As `accept/proxy/http11` judges.
fn verdict(expected: &str, seen: &Observation) -> &'static str {
    let pass = |good: bool| if good { "pass" } else { "fail" };
    if let Some(not) = expected.strip_prefix('!') {
        return pass(seen.status.map(|s| s.to_string()).as_deref() != Some(not));
    }
    let fine = |s: u16| (200..300).contains(&s);
    if expected == "2xx + close" {
        return pass(seen.status.is_some_and(fine) && seen.closed);
    }
    let Some(status) = seen.status else { return pass(expected.contains("timeout")) };
    if expected.contains(&status.to_string()) {
        return "pass";
    }
    if expected.contains("2xx") && fine(status) {
        return if expected.contains("400") && !expected.starts_with("2xx") { "warn" } else { "pass" };
    }
    "fail"
}

#[test]
fn at_least_118_pass_and_none_fails() {
    let (mut passed, mut warned) = (0, Vec::new());
    for line in include_str!("../http11.txt").lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let [id, expected, scored, bytes] = line.splitn(4, " | ").collect::<Vec<_>>()[..] else {
            panic!("four parts: {line}")
        };
        let verdict = verdict(expected, &answer(&unescape(bytes)));
        assert_ne!(verdict, "fail", "{id}: {:?}, expected {expected}", answer(&unescape(bytes)).status);
        if scored == "scored" {
            if verdict == "pass" { passed += 1 } else { warned.push(id) }
        }
    }
    assert_eq!(passed + warned.len(), 125);
    assert!(passed >= 118, "{passed} pass, these warn: {warned:?}");
}
