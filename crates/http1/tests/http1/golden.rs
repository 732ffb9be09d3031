//! Golden cases, one file each: `UPDATE=1 cargo test -p weir-http1` writes what comes out now.

use crate::case::{Case, all};
use crate::way::{Event, at_once};
use weir_http1::{Decoder, Framing, Hop, Limits, Networks, Pseudo, RULES, Request, check_request};
use weir_testkit::is_updating;

#[test]
#[allow(clippy::disallowed_methods, reason = "cases are files")]
fn cases() {
    let mut wrong = Vec::new();
    for case in all() {
        let outcome = case.outcome();
        if outcome != case.expected {
            if is_updating() {
                std::fs::write(&case.path, format!("{}== out\n{outcome}", case.given)).unwrap();
            } else {
                wrong.push(format!("{}:\n{outcome}", case.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "UPDATE=1 takes these over:\n{}", wrong.join("\n"));
}

#[test]
fn every_rule_fires() {
    let fired = |case: &Case| {
        at_once(&case.setup, case.responses, &case.bytes).into_iter().find_map(|e| match e {
            Event::Refused(rule) => Some(rule.name),
            _ => None,
        })
    };
    let mut fired: Vec<_> = all().iter().filter_map(fired).collect();
    // No stream of bytes shows these: its end does, and a head that is handed over before it has one.
    let limits = Limits::default();
    fired.extend(Decoder::new(Framing::Length(1), &limits).eof().err().map(|r| r.0.name));
    fired.extend(Request::default().parse(b"GET / HTTP/1.1\r\n", &limits).err().map(|r| r.0.name));
    // Nor these, which are of HTTP/2.
    let pseudo =
        Pseudo { method: b"GET", path: b"/", authority: Some(b"a"), protocol: None, has_body: false };
    for one in [(&b"host"[..], &b"b"[..]), (b"x", b" y")] {
        let converted = Request::default().convert(&pseudo, || [one].into_iter(), &limits, &mut Vec::new());
        fired.extend(converted.err().map(|r| r.0.name));
    }
    let extended = Pseudo { protocol: Some(b"chat"), ..pseudo };
    let mut request = Request::default();
    request.convert(&extended, std::iter::empty, &limits, &mut Vec::new()).expect("lawful");
    let hop = Hop {
        peer: None,
        https: false,
        port: None,
        trusted: &Networks::default(),
        upgrades: &["websocket".to_owned()],
        connect: &[],
        raw_paths: false,
        own: false,
    };
    fired.extend(check_request(&mut request, &hop).err().map(|r| r.0.name));
    let silent: Vec<_> = RULES.iter().map(|r| r.name).filter(|n| !fired.contains(n)).collect();
    assert!(silent.is_empty(), "no golden case fires {silent:?}");
}
