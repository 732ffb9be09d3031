//! An origin's connection has four answers pending, and a fifth is malformed: it ends alone (RFC 9113 §8.1.1).

use crate::end::End;
use crate::wire::*;
use weir_http2::Malformed;

/// Runs a fifth answer, on stream 9, to this method, on a connection with four others; returns the name of its fault.
fn fault_of(method: &[u8], bytes: &[u8]) -> String {
    let mut client = End::client(4);
    client.ask(method, true);
    let happenings = client.take(bytes);
    let last = happenings.last().expect("something happens").clone();
    let words: Vec<&str> = last.split(' ').collect();
    let ["malformed", "9", name] = words[..] else { panic!("{happenings:?}") };
    let code = Malformed::all().find(|why| why.name() == name).expect("known").code();
    let out = client.write();
    assert_eq!((resets(&out), goaways(&out)), (vec![(9, code)], vec![]), "{name}");
    client.conn.finish(client.now_ns, 9);
    // What still comes of it is ignored.
    assert!(
        client.take(&data(9, b"late", false)).is_empty() && client.take(&headers(9, OK, true)).is_empty()
    );
    for stream in [1, 3, 5, 7] {
        let answer = [headers(stream, OK, false), data(stream, b"x", true)].concat();
        let expected = [format!("answer {stream} 200"), format!("data {stream} x"), format!("end {stream}")];
        assert_eq!(client.take(&answer), expected, "{name}");
        client.conn.finish(client.now_ns, stream);
    }
    assert!(client.is_alive() && client.conn.streams() == 0, "{name}");
    name.to_owned()
}

fn fault(bytes: &[u8]) -> String {
    fault_of(b"GET", bytes)
}

#[test]
fn heads() {
    for (fields, expected) in [
        (&[(":status", "200"), ("X-Upper", "a")][..], "name-upper"),
        (&[(":status", "200"), ("a b", "c")], "name-invalid"),
        (&[(":status", "200"), ("", "a")], "name-empty"),
        (&[(":status", "200"), ("a", "b\u{1}")], "value-invalid"),
        (&[(":status", "200"), ("a", "b\nc")], "value-invalid"),
        (&[(":status", "200"), ("a", "b\0c")], "value-invalid"),
        (&[(":status", "200"), ("a", " b")], "value-blank"),
        (&[(":status", "200"), ("connection", "close")], "connection-field"),
        (&[(":status", "200"), ("transfer-encoding", "chunked")], "connection-field"),
        (&[(":status", "abc")], "status"),
        (&[(":status", "20")], "status"),
        (&[(":status", "099")], "status"),
        (&[(":status", "")], "status"),
        (&[(":status", "101")], "switching"),
        (&[(":status", "200"), (":status", "200")], "pseudo-twice"),
        (&[(":status", "200"), (":path", "/")], "pseudo-unknown"),
        (&[(":status", "200"), (":other", "a")], "pseudo-unknown"),
        (&[("a", "b"), (":status", "200")], "pseudo-late"),
        (&[("a", "b")], "pseudo-missing"),
        (&[(":status", "200"), ("content-length", "x")], "length-invalid"),
        (&[(":status", "200"), ("content-length", "0"), ("content-length", "0")], "length-twice"),
        (&[(":status", "200"), ("content-length", "5")], "body-too-short"),
        (&[(":status", "100")], "interim-ends"),
    ] {
        assert_eq!(fault(&headers(9, fields, true)), expected, "{fields:?}");
    }
}

#[test]
fn bodies_and_trailers() {
    let sized = headers(9, &[(":status", "200"), ("content-length", "2")], false);
    let plain = headers(9, OK, false);
    for (name, bytes, expected) in [
        ("DATA first", data(9, b"a", true), "data-before-head"),
        (
            "DATA after an interim",
            [headers(9, &[(":status", "103")], false), data(9, b"", true)].concat(),
            "data-before-head",
        ),
        ("longer", [sized.clone(), data(9, b"abc", true)].concat(), "body-too-long"),
        ("shorter", [sized.clone(), data(9, b"a", true)].concat(), "body-too-short"),
        ("shorter by trailers", [sized, headers(9, &[("a", "b")], true)].concat(), "body-too-short"),
        ("unended trailers", [plain.clone(), headers(9, &[("a", "b")], false)].concat(), "trailers-unended"),
        ("a second head", [plain.clone(), headers(9, OK, true)].concat(), "pseudo-in-trailers"),
        (
            "a body of 204",
            [headers(9, &[(":status", "204")], false), data(9, b"a", true)].concat(),
            "body-forbidden",
        ),
        (
            "a body of 304",
            [headers(9, &[(":status", "304")], false), data(9, b"a", true)].concat(),
            "body-forbidden",
        ),
    ] {
        assert_eq!(fault(&bytes), expected, "{name}");
    }
    assert_eq!(fault_of(b"HEAD", &[plain, data(9, b"a", true)].concat()), "body-forbidden");
}

#[test]
fn frames() {
    for (name, bytes, expected) in [
        ("an update of nothing", update(9, 0), "window-zero"),
        ("a window too large", update(9, 0x7fff_ffff), "window-overflow"),
        ("PRIORITY on itself", frame(PRIORITY, 0, 9, &[0, 0, 0, 9, 0]), "self-dependency"),
        ("a short PRIORITY", frame(PRIORITY, 0, 9, &[]), "priority-size"),
    ] {
        assert_eq!(fault(&bytes), expected, "{name}");
    }
    let interims: Vec<u8> = (0..33).flat_map(|_| headers(9, &[(":status", "103")], false)).collect();
    assert_eq!(fault(&interims), "too-many-interims");
    let large = "v".repeat(40_000);
    let block = block(&[(":status", "200"), ("a", &large)]);
    let bytes: Vec<u8> = block
        .chunks(16_384)
        .enumerate()
        .flat_map(|(i, piece)| match i {
            0 => frame(HEADERS, END_STREAM, 9, piece),
            2 => frame(CONTINUATION, END_HEADERS, 9, piece),
            _ => frame(CONTINUATION, 0, 9, piece),
        })
        .collect();
    assert_eq!(fault(&bytes), "head-too-large");
}

#[test]
fn an_answer_after_its_end_harms_no_other() {
    let mut client = End::client(2);
    let twice = [headers(1, OK, true), headers(1, OK, true), data(1, b"a", true)].concat();
    assert_eq!(client.take(&twice), ["answer 1 200 end"]);
    assert!(client.is_alive());
    assert_eq!(client.take(&headers(3, OK, true)), ["answer 3 200 end"]);
}
