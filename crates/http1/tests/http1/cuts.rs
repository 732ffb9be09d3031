//! In whatever pieces bytes come, the same comes of them; and what weir writes, it accepts unchanged.

use crate::case::{all, describe};
use crate::generate::{request, response};
use crate::way::{Event, Setup, Way, at_once};
use weir_http1::Limits;
use weir_testkit::Random;

/// Messages up to this size are cut at every point; larger ones at every hundredth or so.
const SMALL: usize = 600;

fn same_in_all_pieces(name: &str, setup: &Setup, responses: bool, bytes: &[u8]) {
    let expected = at_once(setup, responses, bytes);
    let check = |pieces: &mut dyn Iterator<Item = &[u8]>, how: &str| {
        let mut way = Way::new(setup, responses);
        pieces.for_each(|p| way.feed(p));
        let got = way.finish();
        assert!(got == expected, "{name}, {how}:\n{}\nat once:\n{}", describe(&got), describe(&expected));
    };
    let step = if bytes.len() <= SMALL { 1 } else { bytes.len() / 97 };
    for cut in (0..bytes.len()).step_by(step) {
        check(&mut [&bytes[..cut], &bytes[cut..]].into_iter(), &format!("cut at {cut}"));
    }
    if bytes.len() <= 40_000 {
        check(&mut bytes.chunks(1), "byte by byte");
    }
    check(&mut bytes.chunks(3), "three by three");
}

#[test]
fn golden_cases_in_pieces() {
    for case in all() {
        same_in_all_pieces(&case.path.display().to_string(), &case.setup, case.responses, &case.bytes);
    }
}

#[test]
fn random_messages_in_pieces() {
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let mut bytes = request(&mut random);
        random.mutate(&mut bytes, 2);
        same_in_all_pieces(&format!("request {seed}"), &Setup::plain(), false, &bytes);
        let mut bytes = response(&mut random);
        random.mutate(&mut bytes, 2);
        same_in_all_pieces(&format!("response {seed}"), &Setup::plain(), true, &bytes);
    }
}

/// Without what weir adds to or counts down in every request.
fn without_own(out: &[u8]) -> Vec<u8> {
    let text: String = out.iter().map(|&b| char::from(b)).collect();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let own = ["via: 1.0 weir", "via: 1.1 weir", "x-forwarded-", "max-forwards"];
    let kept = |l: &&str| !own.iter().any(|o| l.to_ascii_lowercase().starts_with(o));
    let head: Vec<_> = head.split("\r\n").filter(kept).collect();
    format!("{}\r\n\r\n{body}", head.join("\r\n")).chars().map(|c| c as u8).collect()
}

fn accepts_its_own(name: &str, setup: &Setup, responses: bool, bytes: &[u8]) -> usize {
    let mut count = 0;
    for event in at_once(setup, responses, bytes) {
        let Event::Whole { out, .. } = event else { continue };
        count += 1;
        // What it adds may go beyond what it takes.
        let limits = Limits { max_headers: 110, max_head: 40_000, ..setup.limits };
        let again = at_once(&Setup { edits: Default::default(), limits, ..setup.clone() }, responses, &out);
        let (twice, end) = match again.first() {
            Some(Event::Whole { out, end, .. }) => (out, end),
            // What an HTTP/1.0 client may leave out: the origin gets an empty Host. And the one hop too many.
            Some(Event::Refused(r))
                if r.name == "host-invalid" && out.windows(9).any(|w| w == b"\nHost: \r\n") =>
            {
                continue;
            }
            Some(Event::Refused(r)) if r.name == "via-loop" => continue,
            _ => panic!("{name}: {}", describe(&again)),
        };
        assert_eq!(*end, out.len(), "{name}: {}", describe(&again));
        if responses {
            // A body until the end of the connection was said to be one, and is chunked for the next.
            if !out.windows(17).any(|w| w == b"Connection: close") {
                assert_eq!(
                    describe(&[Event::Tunnel { out: out.clone() }]),
                    describe(&[Event::Tunnel { out: twice.clone() }]),
                    "{name}"
                );
            }
        } else {
            assert_eq!(
                String::from_utf8_lossy(&without_own(&out)),
                String::from_utf8_lossy(&without_own(twice)),
                "{name}"
            );
        }
    }
    count
}

#[test]
fn what_it_writes_it_accepts_unchanged() {
    let mut count = 0;
    for case in all() {
        count += accepts_its_own(&case.path.display().to_string(), &case.setup, case.responses, &case.bytes);
    }
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut bytes = request(&mut random);
        random.mutate(&mut bytes, 2);
        count += accepts_its_own(&format!("request {seed}"), &Setup::plain(), false, &bytes);
        let mut bytes = response(&mut random);
        random.mutate(&mut bytes, 2);
        count += accepts_its_own(&format!("response {seed}"), &Setup::plain(), true, &bytes);
    }
    assert!(count > 10_000, "{count}");
}
