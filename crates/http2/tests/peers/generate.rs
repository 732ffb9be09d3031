//! Random frames of a peer from a seed, most of them lawful, which it may send at once.

use weir_testkit::Random;

const FIELDS: &[(&str, &str)] = &[
    ("x-a", "1"),
    ("cookie", "a=b"),
    ("content-length", "5"),
    ("content-length", "0"),
    ("host", "h"),
    ("te", "trailers"),
    ("priority", "u=1, i"),
    ("trailer", "x-t"),
    ("x-long", "0123456789012345678901234567890123456789012345678901234567890123456789"),
];
const ODD: &[(&str, &str)] = &[
    ("Upper", "1"),
    ("", "1"),
    ("x y", "1"),
    ("x", "a\r\nb"),
    ("x", " a"),
    ("connection", "close"),
    ("te", "gzip"),
    (":path", "/late"),
    (":status", "200"),
    (":unknown", "1"),
    ("content-length", "+5"),
    ("host", "other"),
];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// What a client sends behind its preface and SETTINGS.
pub fn client(random: &mut Random) -> Vec<u8> {
    let mut next = 1;
    let mut out = Vec::new();
    for _ in 0..random.below(30) {
        if random.percent(25) {
            let method = random.choose(&["GET", "POST", "HEAD", "CONNECT"]);
            let mut fields =
                vec![(":method", method), (":scheme", "http"), (":authority", "h"), (":path", "/")];
            if random.percent(8) {
                fields.remove(random.below(4));
            }
            head(random, next, fields, &mut out);
            next += if random.percent(90) { 2 } else { 10 };
        } else {
            other(random, next, &mut out);
        }
    }
    out
}

/// What an origin sends behind its SETTINGS; five streams are open.
pub fn origin(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.below(30) {
        if random.percent(35) {
            let status = random.choose(&["200", "200", "404", "204", "304", "103", "100", "101", "abc"]);
            let stream = stream(random, 13);
            head(random, stream, vec![(":status", status)], &mut out);
        } else {
            other(random, 13, &mut out);
        }
    }
    out
}

fn stream(random: &mut Random, next: u32) -> u32 {
    if random.percent(95) {
        2 * random.below(next as usize / 2 + 1) as u32 + 1
    } else {
        random.below(40) as u32
    }
}

/// A head, whole or in pieces, padded or not.
fn head<'a>(random: &mut Random, stream: u32, mut fields: Vec<(&'a str, &'a str)>, out: &mut Vec<u8>) {
    for _ in 0..random.below(5) {
        let (name, value) = FIELDS[random.below(FIELDS.len())];
        fields.push((name, value));
    }
    if random.percent(6) {
        fields.insert(random.below(fields.len() + 1), ODD[random.below(ODD.len())]);
    }
    let block = block(random, &fields);
    let end_stream = u8::from(random.percent(50));
    if random.percent(20) {
        let cut = random.below(block.len() + 1);
        frame(1, end_stream, stream, &block[..cut], out);
        if random.percent(30) {
            frame(9, 0, stream, b"", out);
        }
        frame(9, 4, stream, &block[cut..], out);
    } else if random.percent(20) {
        let padding = random.below(20);
        let payload = [&[padding as u8][..], &[0, 0, 0, 0, 9], &block, &vec![0; padding]].concat();
        frame(1, 4 | 8 | 0x20 | end_stream, stream, &payload, out);
    } else {
        frame(1, 4 | end_stream, stream, &block, out);
    }
}

/// Fields by literals, some of them put into the table, and references to what was.
fn block(random: &mut Random, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(*[0, 0x40, 0x10].get(random.below(3)).unwrap_or(&0));
        for string in [name, value] {
            block.push(string.len() as u8);
            block.extend_from_slice(string.as_bytes());
        }
    }
    if random.percent(10) {
        block.push(0x80 | (1 + random.below(70)) as u8);
    }
    block
}

/// A frame of any other kind.
fn other(random: &mut Random, next: u32, out: &mut Vec<u8>) {
    let id = stream(random, next);
    let bits = random.bits();
    match random.below(14) {
        0..=3 => data(random, id, out),
        4 => frame(8, 0, id, &(bits as u32 % 100_000).to_be_bytes(), out),
        5 => frame(8, 0, if bits & 1 == 0 { 0 } else { id }, &(bits as u32 >> 4).to_be_bytes(), out),
        6 => frame(3, 0, id, &(bits as u32 % 14).to_be_bytes(), out),
        7 => settings(random, out),
        8 => frame(6, bits as u8 & 1, 0, &bits.to_be_bytes(), out),
        9 => frame(2, 0, id, &[0, 0, 0, bits as u8 % 16, 1], out),
        10 => frame(16, 0, 0, &[&id.to_be_bytes()[..], b"u=2, i"].concat(), out),
        11 if random.percent(30) => frame(7, 0, 0, &[&id.to_be_bytes()[..], &[0; 4], b"bye"].concat(), out),
        12 => frame(4, 1, 0, b"", out),
        _ => frame(bits as u8, (bits >> 8) as u8, id, &bits.to_be_bytes()[..random.below(8)], out),
    }
}

fn data(random: &mut Random, stream: u32, out: &mut Vec<u8>) {
    let end_stream = u8::from(random.percent(40));
    let bytes = vec![b'd'; random.choose(&[&[5, 0, 1, 20][..]])[random.below(4)]];
    if random.percent(25) {
        let padding = random.below(12);
        let payload = [&[padding as u8][..], &bytes, &vec![0; padding]].concat();
        return frame(0, 8 | end_stream, stream, &payload, out);
    }
    frame(0, end_stream, stream, &bytes, out);
}

fn settings(random: &mut Random, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    for _ in 0..random.below(3) {
        let id = 1 + random.below(9) as u16;
        let value = match id {
            2 | 8 | 9 => random.below(2),
            5 => 16_384 + random.below(1000),
            _ => random.below(70_000),
        };
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&(value as u32).to_be_bytes());
    }
    frame(4, 0, 0, &payload, out);
}
