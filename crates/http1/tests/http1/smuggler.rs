//! Obfuscated Transfer-Encodings, as smuggler.py makes them: every one is refused or read as exactly what it is.

use crate::way::{Event, Setup, at_once};

/// Variants of a Transfer-Encoding line: the tool's fixed ones, and its ten places with every byte (it takes
/// thirteen).
fn gadgets() -> Vec<Vec<u8>> {
    let fixed: &[&[u8]] = &[
        b" Transfer-Encoding: chunked",
        b"Transfer-Encoding:\tchunked",
        b"Transfer-Encoding\t:\tchunked",
        b"Transfer Encoding: chunked",
        b"Transfer_Encoding: chunked",
        b"Transfer Encoding:chunked",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding:  chunked",
        b"Transfer-Encoding:\x0bchunked",
        b"Transfer-Encoding: chunked, cow",
        b"Transfer-Encoding: cow, chunked",
        b"Content-Encoding: chunked",
        b"Transfer-Encoding:\n chunked",
        b"Transfer-Encoding:\r\n chunked",
        b"Transfer-Encoding: \"chunked\"",
        b"Transfer-Encoding: 'chunked'",
        b"Transfer-Encoding: chunk",
        b"TrAnSFer-EnCODinG: cHuNkeD",
        b"TRANSFER-ENCODING: CHUNKED",
        b"Transfer-Encoding: chunked\r",
        b"Transfer-Encoding: chunked\t",
        b"Transfer-Encoding: cow\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow",
        b"Transfer\r-Encoding: chunked",
        b"Transfer-Encoding: cow chunked bar",
        b"Transfer-Encoding:\xffchunked",
        b"Transfer-Encoding: ch\x96nked",
        b"Transf\x82r-Encoding: chunked",
        b"X:X\rTransfer-Encoding: chunked",
        b"X:X\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: identity, chunked",
        b"Transfer-Encoding:chunked",
    ];
    let places: &[(&[u8], &[u8])] = &[
        (b"Transfer-Encoding:", b"chunked"),
        (b"Transfer-Encoding", b": chunked"),
        (b"", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b""),
        (b"X: X", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"X: X"),
        (b"X: X\r", b"Transfer-Encoding: chunked"),
        (b"X: X", b"\nTransfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked\r", b"X: X"),
        (b"Transfer-Encoding: chunked", b"\nX: X"),
    ];
    let mut all: Vec<Vec<u8>> = fixed.iter().map(|f| f.to_vec()).collect();
    for (before, behind) in places {
        all.extend((0..=255u8).map(|b| [*before, &[b], *behind].concat()));
    }
    all
}

/// A head read by the strict grammar alone: whether it is chunked; `None`: not a valid head.
fn strictly(head: &[u8]) -> Option<bool> {
    // One character for each byte, so that text methods serve.
    let text: String = head.iter().map(|&b| char::from(b)).collect();
    let mut codings = Vec::new();
    for line in text.strip_suffix("\r\n\r\n")?.split("\r\n").skip(1) {
        let (name, value) = line.split_once(':')?;
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty()
            || !name.chars().all(token)
            || value.chars().any(|c| c.is_ascii_control() && c != '\t')
        {
            return None;
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            codings.push(value.trim_matches([' ', '\t']).to_ascii_lowercase());
        }
    }
    match &codings[..] {
        [] => Some(false),
        [one] if one == "chunked" => Some(true),
        _ => None,
    }
}

#[test]
fn every_mutation_is_refused_or_read_as_it_is() {
    let (setup, mut read) = (Setup::plain(), 0);
    for gadget in gadgets() {
        for length in [&b""[..], b"Content-Length: 5\r\n"] {
            let head = [b"POST / HTTP/1.1\r\n", &gadget[..], b"\r\nHost: h\r\n", length, b"\r\n"].concat();
            // By either framing this is a whole body, so that what is taken shows which one was believed.
            let stream = [&head[..], b"0\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
            let events = at_once(&setup, false, &stream);
            let Some(Event::Whole { end, .. }) = events.first() else {
                assert!(matches!(events.first(), Some(Event::Refused(_))), "{gadget:?}: {events:?}");
                continue;
            };
            read += 1;
            let chunked = strictly(&head);
            let expected = match (chunked, length.is_empty()) {
                (Some(true), true) => head.len() + 5,
                (Some(false), true) => head.len(),
                (Some(false), false) => head.len() + 5,
                _ => panic!("{:?} was taken", String::from_utf8_lossy(&gadget)),
            };
            assert_eq!(*end, expected, "{:?}", String::from_utf8_lossy(&gadget));
        }
    }
    assert!(read > 100, "{read} were read at all");
}
