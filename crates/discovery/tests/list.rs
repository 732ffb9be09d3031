//! Lists: what is read of them, what is left out, and the words of what is wrong.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use weir_discovery::{
    FaultKind, MOST_BYTES, MOST_ENTRIES, MOST_FINDINGS, MOST_MEMBERS, Member, Snapshot, State, Subject, parse,
};
use weir_testkit::{Random, assert_frozen, check_bytes};

fn read(text: &str) -> Snapshot {
    parse(text.as_bytes()).unwrap_or_else(|defect| panic!("{text}: {defect}"))
}

/// A member in short: `addr weight state id`.
fn shown(members: &[Member]) -> Vec<String> {
    let id = |member: &Member| member.id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    members.iter().map(|m| format!("{} {} {:?}{}", m.addr, m.weight, m.state, id(m))).collect()
}

#[test]
fn addresses_objects_and_groups_are_members() {
    let snapshot = read(
        r#" [ "10.0.0.1:8080", {"addr": "app.example.com:80", "weight": 2.5, "state": "drain", "id": "i-1"},
            {"id": null, "zone": {"a": [1, {}]}, "addr": "[::1]:80", "state": "up", "weight": 1e2},
            {"targets": ["10.0.0.2:9100", "unix:/run/a.sock"], "labels": {"env": "prod"}}, {"targets": []},
            {"addr": "10.0.0.3:80", "weight": 0}, {"addr": "10.0.0.\u0034:80", "weight": -0.0} ]
"#,
    );
    assert_eq!(
        shown(&snapshot.members),
        [
            "10.0.0.1:8080 1 Up",
            "app.example.com:80 2.5 Drain i-1",
            "[::1]:80 100 Up",
            "10.0.0.2:9100 1 Up",
            "unix:/run/a.sock 1 Up",
            "10.0.0.3:80 0 Drain",
            "10.0.0.4:80 0 Drain",
        ]
    );
    assert_eq!(snapshot.left_out, []);
    assert_eq!(read("[]"), Snapshot::default());
}

#[test]
fn a_doubled_address_is_one_member_and_up_if_any_says_so() {
    let snapshot = read(
        r#"["10.0.0.1:80", {"addr": "10.0.0.2:80", "state": "drain", "weight": 3, "id": "a"}, "10.0.0.1:80",
            {"addr": "10.0.0.2:80", "weight": 4, "id": "b"}, {"addr": "10.0.0.2:80", "weight": 5, "id": "b"},
            {"addr": "10.0.0.1:80", "state": "drain"}, "App.example.com.:80", "app.EXAMPLE.com:80",
            {"addr": "10.0.0.1:80", "weight": 0}]"#,
    );
    assert_eq!(
        shown(&snapshot.members),
        ["10.0.0.1:80 1 Up", "10.0.0.2:80 4 Up b", "App.example.com.:80 1 Up"]
    );
    let twice = "is in the list twice";
    assert_eq!(
        snapshot.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            format!(
                "2:22: entry 4: \"10.0.0.2:80\" {twice}, once up and once draining: it counts as up; list it once"
            ),
            format!(
                "2:71: entry 5: \"10.0.0.2:80\" {twice}, with different weights: the first counts; list it once"
            ),
            format!(
                "3:22: entry 6: \"10.0.0.1:80\" {twice}, once up and once draining: it counts as up; list it once"
            ),
            format!(
                "4:22: entry 9: \"10.0.0.1:80\" {twice}, once up and once draining: it counts as up; list it once"
            ),
        ]
    );
}

/// Wrong entries, each between two that are right.
const ENTRIES: &[&str] = &[
    "5",
    "null",
    "true",
    "[]",
    "\"\"",
    "\"10.0.0.1\"",
    "\"10.0.0.1:0\"",
    "\"10.0.0.1:65536\"",
    "\":80\"",
    "\"80\"",
    "\"a b:80\"",
    "\"::1:80\"",
    "\"http://10.0.0.1:80/\"",
    "\"224.0.0.1:80\"",
    "\"unix:\"",
    "\"unix:/a\\u0007b\"",
    "\"\\ud800\"",
    "\"a\\u001b[31mb\"",
    "{}",
    "{\"weight\": 1}",
    "{\"addr\": 5}",
    "{\"addr\": \"a\"}",
    "{\"addr\": \"a:80\", \"weight\": -1}",
    "{\"addr\": \"a:80\", \"weight\": 1e308}",
    "{\"addr\": \"a:80\", \"weight\": 1e999}",
    "{\"addr\": \"a:80\", \"weight\": 0.0001}",
    "{\"addr\": \"a:80\", \"weight\": \"NaN\"}",
    "{\"addr\": \"a:80\", \"weight\": null}",
    "{\"addr\": \"a:80\", \"state\": \"down\"}",
    "{\"addr\": \"a:80\", \"state\": null}",
    "{\"addr\": \"a:80\", \"id\": 17}",
    "{\"addr\": \"a:80\", \"addr\": \"b:80\"}",
    "{\"addr\": \"a:80\", \"targets\": [\"b:80\"]}",
    "{\"targets\": \"b:80\"}",
    "{\"targets\": [\"x:80\", \"a\", 5]}",
];

/// Texts that are no list.
const TEXTS: &[&[u8]] = &[
    b"",
    b" \n",
    b"[",
    b"[\"10.0.0.1:80\"",
    b"[\"10.0.0.1:80\",",
    b"[\"10.0.0.1:80\",\n {\"addr\": \"10.0",
    b"[\"10.0.0.1:80\",]",
    b"[\"10.0.0.1:80\"\n \"10.0.0.2:80\"]",
    b"[\"10.0.0.1:80\"] []",
    b"[{\"addr\": \"10.0.0.1:80\", \"weight\": NaN}]",
    b"[{\"addr\": \"\xc3\xa9:80\", \"weight\": 01}]",
    b"['10.0.0.1:80']",
    b"[\"10.0.0.1:80\", # the first\n\"10.0.0.2:80\"]",
    b"[\"10.0.0.1:80\n\"]",
    b"\n {\"targets\": [\"10.0.0.1:80\"]}",
    b"\"10.0.0.1:80\"",
    b"10.0.0.1:80\n10.0.0.2:80\n",
    b"- targets: [\"10.0.0.1:80\"]",
    b"null",
    b"\xef\xbb\xbf[]",
    b"\xff\xfe[\0]\0",
    b"\xfe\xff\0[\0]",
    b"[\0]\0",
    b"[\"a:80\",\n \"\xc3\xa9\xe9:80\"]",
    b"[\"a:80\",\n \"\xc3",
];

#[test]
fn the_words_of_all_that_is_wrong() {
    let mut page = String::new();
    for entry in ENTRIES {
        let snapshot = read(&format!("[\"y:80\",\n \"\u{e9}\", {entry}, \"z:80\"]"));
        let (first, last) = (&snapshot.members[0].addr, &snapshot.members[snapshot.members.len() - 1].addr);
        assert_eq!((&**first, &**last), ("y:80", "z:80"), "{entry}");
        assert_eq!(snapshot.left_out[0].subject, Subject::Entry(2));
        writeln!(page, "{entry}").expect("writes");
        for finding in &snapshot.left_out[1..] {
            writeln!(page, "    {finding}").expect("writes");
        }
    }
    for text in TEXTS {
        let defect = parse(text).expect_err("it is no list");
        let place = defect.place.expect("it has a place");
        writeln!(page, "{}\n    {place}: {defect} ({:?})", text.escape_ascii(), defect.kind).expect("writes");
    }
    assert_frozen(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen/list.txt"), &page);
}

#[test]
fn a_list_has_at_most_100_000_members_and_64_mib() {
    let list = |n: usize| {
        let entries: Vec<String> =
            (0..n).map(|i| format!("\"10.{}.{}.{}:80\"", i >> 16, i >> 8 & 255, i & 255)).collect();
        format!("[{}]", entries.join(",\n"))
    };
    assert_eq!(read(&list(MOST_MEMBERS)).members.len(), MOST_MEMBERS);
    // Doubled addresses are one member.
    let doubled = format!("{}, \"10.0.0.0:80\"]", list(MOST_MEMBERS).trim_end_matches(']'));
    assert_eq!(read(&doubled).members.len(), MOST_MEMBERS);
    let group = |n| format!("[{{\"targets\": {}}}]", list(n));
    assert_eq!(read(&group(MOST_MEMBERS)).members.len(), MOST_MEMBERS);
    for (text, place) in [(list(200_000), "100001:1"), (group(MOST_MEMBERS + 1), "100001:1")] {
        let defect = parse(text.as_bytes()).expect_err("it is too long");
        assert_eq!(defect.kind, FaultKind::TooMany);
        assert_eq!(defect.place.map(|place| place.to_string()).as_deref(), Some(place));
        assert_eq!(
            defect.to_string(),
            "the list has more than 100000 members; divide it into several lists, each with a fleet of its own"
        );
    }
    let mut bytes = vec![b' '; usize::try_from(MOST_BYTES).expect("it fits")];
    bytes[..2].copy_from_slice(b"[]");
    assert_eq!(parse(&bytes), Ok(Snapshot::default()));
    bytes.push(b' ');
    let defect = parse(&bytes).expect_err("it is too long");
    assert_eq!(
        defect.to_string(),
        "the list has more than 64 MiB; divide it into several files, each with a fleet of its own"
    );
}

#[test]
fn findings_are_bounded_and_counted() {
    let snapshot = read(&format!("[{}\"a:80\"]", "0,".repeat(MOST_ENTRIES - 1)));
    assert_eq!((snapshot.members.len(), snapshot.left_out.len()), (1, MOST_FINDINGS));
    assert_eq!(
        (snapshot.left_out_count, snapshot.left_out[99].place.map(|place| place.column)),
        (MOST_ENTRIES - 1, Some(200))
    );
    for text in [
        format!("[{}\"a:80\"]", "0,".repeat(MOST_ENTRIES)),
        format!("[{{\"targets\": [{}0]}}]", "0,".repeat(MOST_ENTRIES - 1)),
    ] {
        let defect = parse(text.as_bytes()).expect_err("it is too long");
        assert_eq!(
            defect.to_string(),
            "the list has more than 1000000 entries; divide it into several lists, each with a fleet of its own"
        );
    }
    // Nesting costs no stack.
    let deep = format!("[{}{}, \"a:80\"]", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(read(&deep).members.len(), 1);
}

#[test]
fn no_bytes_cause_a_panic_and_no_beginning_of_a_list_is_one() {
    let list = "[\"10.0.0.1:80\", {\"addr\": \"\u{e9}.x:80\", \"weight\": 1.5, \"state\": \"up\", \"id\": \"\\u00e9\"},\n\
                {\"targets\": [\"a:1\", \"b:2\"], \"labels\": {}}]";
    for end in 0..list.len() {
        parse(&list.as_bytes()[..end]).expect_err("it is cut");
    }
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let mut bytes = list.as_bytes().to_vec();
        random.mutate(&mut bytes, 4);
        check_bytes("list", &bytes, |bytes| drop(parse(bytes)));
    }
}

/// The same rules, over `serde_json::Value`: the members by address, of which each is once in the list.
fn model(text: &str) -> BTreeMap<String, (f64, State)> {
    let serde_json::Value::Array(entries) = serde_json::from_str(text).expect("JSON") else {
        panic!("a list")
    };
    let mut members = BTreeMap::new();
    for entry in entries {
        let weight = entry.get("weight").map_or(1.0, |weight| weight.as_f64().expect("a number"));
        let state = entry.get("state").map_or("up", |state| state.as_str().expect("a text"));
        let addr = entry.get("addr").unwrap_or(&entry).as_str().expect("a text");
        let is_right = addr.contains(':') && weight >= 0.0 && ["up", "drain"].contains(&state);
        let state = if state == "drain" || weight == 0.0 { State::Drain } else { State::Up };
        if is_right && members.get(addr).is_none_or(|(_, known)| (*known, state) == (State::Drain, State::Up))
        {
            members.insert(addr.to_owned(), (weight, state));
        }
    }
    members
}

#[test]
fn random_lists_are_read_as_a_naive_model_reads_them() {
    let mut random = Random::new(11);
    for _ in 0..3_000 {
        let entries: Vec<String> = (0..random.below(12))
            .map(|_| {
                let addr = random.choose(&["a:1", "b:2", "c:3", "d", "[::1]:4"]).to_owned();
                let weight = random.choose(&["1", "0", "-1", "2.5"]).to_owned();
                let state = random.choose(&["up", "drain", "x"]).to_owned();
                match random.below(4) {
                    0 => format!("\"{addr}\""),
                    1 => format!("{{\"addr\": \"{addr}\", \"weight\": {weight}}}"),
                    2 => format!("{{\"state\": \"{state}\", \"addr\": \"{addr}\"}}"),
                    _ => format!("{{\"weight\": {weight}, \"addr\": \"{addr}\", \"state\": \"{state}\"}}"),
                }
            })
            .collect();
        let text = format!("[{}]", entries.join(", "));
        let members = read(&text).members;
        let read: BTreeMap<_, _> = members.iter().map(|m| (m.addr.clone(), (m.weight, m.state))).collect();
        assert_eq!((read.len(), &read), (members.len(), &model(&text)), "{text}");
    }
}
