//! The examples of RFC 7541, appendix C.

use crate::naive::{Code, Pair, dynamic_table, integer, size};
use weir_http2::{Decoder, Encoder, Field, Policy};
use weir_testkit::corpus;

#[test]
fn examples_are_decoded() {
    let (mut decoder, mut fields, mut expected) = (Decoder::new(), Vec::new(), Vec::new());
    let mut table: Option<usize> = None;
    let text = include_str!("appendix_c.txt");
    let mut checked = 0;
    for line in text.lines().filter(|l| !l.starts_with('#')).chain([""]) {
        let key = line.split(' ').next().unwrap_or_default();
        if matches!(key, "block" | "table" | "") {
            match table.take() {
                Some(bytes) => {
                    let pairs = dynamic_table(&mut decoder);
                    assert_eq!((&pairs, size(&pairs)), (&expected, bytes));
                    checked += 1;
                }
                None => assert_eq!(fields, expected),
            }
            expected.clear();
        }
        let rest = line.strip_prefix(key).unwrap_or_default().trim();
        match key {
            "" => {}
            "block" => fields = decode(&mut decoder, &corpus(rest)[0]),
            "table" => table = Some(rest.parse().expect("a size")),
            _ if key.starts_with("C.") => {
                decoder = resized(rest.parse().expect("a limit"));
                fields.clear();
            }
            _ => expected.push((key.trim_end_matches(':').into(), rest.into())),
        }
    }
    assert_eq!(checked, 16);
}

/// A decoder whose table has this size, by an update where it must be said.
fn resized(limit: u16) -> Decoder {
    let mut decoder = Decoder::new();
    decoder.set_limit(limit);
    if limit < 4096 {
        let mut block = Vec::new();
        integer(limit.into(), 0x20, 5, &mut block);
        assert_eq!(decode(&mut decoder, &block), []);
    }
    decoder
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<Pair> {
    let mut fields = Vec::new();
    let take = |f: Field<'_>| fields.push((f.name.to_vec(), f.value.to_vec()));
    decoder.decode(block, &mut Vec::new(), take).expect("lawful");
    fields
}

#[test]
fn strings_are_coded_as_in_the_examples() {
    let code = Code::new();
    for (value, coded) in [
        ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
        ("no-cache", "a8eb10649cbf"),
        ("custom-value", "25a849e95bb8e8b4bf"),
        ("private", "aec3771a4b"),
        ("Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"),
        ("https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"),
        ("gzip", "9bd9ab"),
    ] {
        let coded = &corpus(coded)[0];
        assert_eq!(code.encode(value.as_bytes()), *coded);
        let mut out = Vec::new();
        let mut encoder = Encoder::new(Policy::TO_CLIENT);
        encoder.encode(Field { name: b"date", value: value.as_bytes(), is_sensitive: false }, &mut out);
        // Not indexed, the name by its index 33, then the string.
        assert_eq!(out, [&[0x0f, 18, 0x80 | coded.len() as u8], &coded[..]].concat());
    }
}
