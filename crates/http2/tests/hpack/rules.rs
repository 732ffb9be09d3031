//! What a decoder refuses, and what it must not, by section of RFC 7541.

use crate::naive::{Code, dynamic_table, integer};
use weir_http2::{Decoder, Encoder, Field, HpackError, Policy};

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, HpackError> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let take = |f: Field<'_>| fields.push(format!("{}: {}", text(f.name), text(f.value)));
    decoder.decode(block, &mut Vec::new(), take).map(|()| fields)
}

fn verdict(block: &[u8]) -> Result<Vec<String>, HpackError> {
    decode(&mut Decoder::new(), block)
}

fn update(size: usize) -> Vec<u8> {
    let mut block = Vec::new();
    integer(size, 0x20, 5, &mut block);
    block
}

/// A field with this name and value that is put into the table.
fn indexed(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut block = vec![0x40];
    for string in [name, value] {
        integer(string.len(), 0, 7, &mut block);
        block.extend_from_slice(string);
    }
    block
}

#[test]
fn indices() {
    assert_eq!(verdict(&[0x80]), Err(HpackError::Index));
    assert_eq!(verdict(&[0xbd]), Ok(vec!["www-authenticate: ".into()]));
    assert_eq!(verdict(&[0xbe]), Err(HpackError::Index));
    // The name of a literal.
    assert_eq!(verdict(&[0x7e, 1, b'a']), Err(HpackError::Index));
    assert_eq!(verdict(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]), Err(HpackError::Integer));
    assert_eq!(verdict(&[0xff, 0x80, 0xff, 0xff, 0xff, 0x0f]), Err(HpackError::Index));
    let mut block = indexed(b"a", b"b");
    block.push(0xbe);
    assert_eq!(verdict(&block), Ok(vec!["a: b".into(), "a: b".into()]));
    block.push(0xbf);
    assert_eq!(verdict(&block), Err(HpackError::Index));
}

#[test]
fn every_cut_of_a_field_is_seen() {
    let code = Code::new();
    for (name, value) in [("name", "value"), ("", ""), ("a", &*"long".repeat(100))] {
        let mut block = vec![0x00];
        for string in [name, value] {
            let coded = code.encode(string.as_bytes());
            integer(coded.len(), 0x80, 7, &mut block);
            block.extend_from_slice(&coded);
        }
        assert_eq!(verdict(&block), Ok(vec![format!("{name}: {value}")]));
        for n in 1..block.len() {
            assert_eq!(verdict(&block[..n]), Err(HpackError::Truncated), "{n} of {}", block.len());
        }
    }
    // A string that is said to be longer than any.
    assert_eq!(verdict(&[0x00, 0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f]), Err(HpackError::Truncated));
}

#[test]
fn padding_and_the_end_of_a_string() {
    let code = Code::new();
    let coded = |bytes: &[u8], behind: &[u8]| {
        let mut block = vec![0x00, 1, b'a'];
        integer(bytes.len(), 0x80, 7, &mut block);
        verdict(&[&block, bytes, behind].concat())
    };
    // `0` has 5 bits of zero, `&` 8 bits, and what follows in the block has no influence.
    for (bytes, expected) in [
        (&[][..], Ok("")),
        (&[0x07], Ok("0")),
        (&[0x06], Err(HpackError::Padding)),
        (&[0x03], Err(HpackError::Padding)),
        (&[0x07, 0xff], Err(HpackError::Padding)),
        (&[0xf8], Ok("&")),
        (&[0xf8, 0xff], Err(HpackError::Padding)),
        (&[0xff], Err(HpackError::Padding)),
        (&[0xff, 0xff], Err(HpackError::Padding)),
        (&[0xff, 0xff, 0xff], Err(HpackError::Padding)),
        (&[0xff, 0xff, 0xff, 0xff], Err(HpackError::EndOfString)),
        (&[0x07, 0xff, 0xff, 0xff, 0xff], Err(HpackError::EndOfString)),
        (&[0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07], Ok("000000000000000o")),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Err(HpackError::EndOfString)),
    ] {
        for behind in [&[][..], &[0x82], &[0x82; 20]] {
            let mut fields = expected.map(|value| vec![format!("a: {value}")]);
            fields.iter_mut().for_each(|fields| fields.extend(behind.iter().map(|_| ":method: GET".into())));
            assert_eq!(coded(bytes, behind), fields, "{bytes:x?}");
        }
    }
    // Every number of bits of padding, behind strings of any length.
    for length in 0..40 {
        let string = vec![b'0'; length];
        let bytes = code.encode(&string);
        assert!(coded(&bytes, &[]).is_ok());
        assert_eq!(coded(&[&bytes[..], &[0xff]].concat(), &[]), Err(HpackError::Padding));
        let end = code.encode_with_end(&string);
        assert_eq!(coded(&end, &[]), Err(HpackError::EndOfString));
    }
    // Every symbol, beside others.
    let all: Vec<u8> = (0..=255).flat_map(|b| [b, b'0', b, b, b'a']).collect();
    for part in all.chunks(7) {
        assert_eq!(coded(&code.encode(part), &[]), Ok(vec![format!("a: {}", part.escape_ascii())]));
    }
}

#[test]
fn size_updates() {
    let updates = |sizes: &[usize]| sizes.iter().flat_map(|&size| update(size)).collect::<Vec<u8>>();
    assert_eq!(verdict(&updates(&[0, 4096])), Ok(vec![]));
    assert_eq!(verdict(&updates(&[4097])), Err(HpackError::UpdateTooLarge));
    assert_eq!(verdict(&updates(&[70_000])), Err(HpackError::UpdateTooLarge));
    assert_eq!(verdict(&[&[0x82], &update(10)[..]].concat()), Err(HpackError::UpdateMisplaced));
    // The limit is lowered: the next block must say so, one without fields may come before it.
    for (limits, sizes, expected) in [
        (&[100][..], &[][..], Err(HpackError::UpdateMissing)),
        (&[100], &[101], Err(HpackError::UpdateTooLarge)),
        (&[100], &[100], Ok(())),
        (&[100], &[0], Ok(())),
        (&[100, 4096], &[], Err(HpackError::UpdateMissing)),
        (&[100, 4096], &[4096], Err(HpackError::UpdateMissing)),
        (&[100, 4096], &[100], Ok(())),
        (&[100, 4096], &[100, 4096], Ok(())),
        (&[4096], &[], Ok(())),
        (&[8000], &[], Ok(())),
        (&[8000], &[8000], Ok(())),
        (&[8000, 4096], &[], Ok(())),
    ] {
        let mut decoder = Decoder::new();
        limits.iter().for_each(|&limit| decoder.set_limit(limit));
        assert_eq!(decode(&mut decoder, &[]), Ok(vec![]));
        let block = [&updates(sizes)[..], &[0x82]].concat();
        let verdict = decode(&mut decoder, &block).map(|_| ());
        assert_eq!(verdict, expected, "{limits:?} {sizes:?}");
        if verdict.is_ok() {
            assert!(decode(&mut decoder, &[0x82]).is_ok());
        }
    }
}

#[test]
fn insertions_that_evict() {
    let mut decoder = Decoder::new();
    decode(&mut decoder, &update(100)).expect("lawful");
    decode(&mut decoder, &indexed(b"name", &[b'a'; 60])).expect("lawful");
    // The name is that of the field that leaves.
    let mut block = vec![0x7e, 50];
    block.extend_from_slice(&[b'b'; 50]);
    let field = format!("name: {}", "b".repeat(50));
    assert_eq!(decode(&mut decoder, &block), Ok(vec![field]));
    assert_eq!(dynamic_table(&mut decoder), [(b"name".to_vec(), vec![b'b'; 50])]);
    // A field that is larger than the table empties it, and is no error.
    let large = indexed(b"name", &[b'c'; 65]);
    assert_eq!(decode(&mut decoder, &large).map(|fields| fields.len()), Ok(1));
    assert_eq!(dynamic_table(&mut decoder), []);
    // One that is as large as the table fits.
    decode(&mut decoder, &indexed(b"name", &[b'c'; 64])).expect("lawful");
    assert_eq!(dynamic_table(&mut decoder).len(), 1);
    decode(&mut decoder, &update(99)).expect("lawful");
    assert_eq!(dynamic_table(&mut decoder), []);
    decode(&mut decoder, &update(0)).expect("lawful");
    assert_eq!(decoder.memory(), 0);
}

#[test]
fn what_came_marked_leaves_marked() {
    let (mut encoder, mut decoder) = (Encoder::new(Policy::TO_ORIGIN), Decoder::new());
    for is_sensitive in [true, false, false, false, true] {
        // Also a field that the static table has, and one that ours has by then.
        for (name, value) in
            [(&b":method"[..], &b"GET"[..]), (b"x-token", b"0123456789012345678901234567890")]
        {
            let mut block = Vec::new();
            encoder.encode(Field { name, value, is_sensitive }, &mut block);
            let take = |f: Field<'_>| assert_eq!(f, Field { name, value, is_sensitive });
            decoder.decode(&block, &mut Vec::new(), take).expect("lawful");
        }
    }
}
