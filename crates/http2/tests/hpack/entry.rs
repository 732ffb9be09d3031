//! Entry points for any bytes, with what must hold of them: run here on what generators make, and by `fuzz/`.

use super::naive::{Code, Line, NaiveDecoder, Pair, dynamic_table, size, static_table};
use super::naive_encoder::{NaiveEncoder, is_hidden};
use std::sync::LazyLock;
use weir_http2::{Decoder, Encoder, Field, HpackError, Policy};

static CODE: LazyLock<Code> = LazyLock::new(Code::new);
static FIXED: LazyLock<Vec<Pair>> = LazyLock::new(static_table);

/// A step of a connection, as bytes say it.
enum Step<'a> {
    Limit(u16),
    Block(&'a [u8]),
}

/// The steps: a zero and a byte, which is a limit in units of 32; or the length of a block, which ends with the bytes.
fn steps(mut bytes: &[u8]) -> impl Iterator<Item = Step<'_>> {
    std::iter::from_fn(move || {
        let (&first, rest) = bytes.split_first()?;
        let length = if first == 0 { 1 } else { usize::from(first) };
        let (step, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        Some(match (first, step) {
            (0, &[units]) => Step::Limit(u16::from(units) * 32),
            (_, block) => Step::Block(block),
        })
    })
}

/// Any blocks: decoded as by the naive decoder, with the same errors, in bounded memory.
pub fn blocks(bytes: &[u8]) {
    let (mut decoder, mut naive) = (Decoder::new(), NaiveDecoder::new(&CODE, &FIXED));
    let (mut most, mut is_owed) = (4096, false);
    for step in steps(bytes) {
        match step {
            Step::Limit(limit) => {
                decoder.set_limit(limit);
                naive.set_limit(limit);
                most = most.max(usize::from(limit));
                is_owed = true;
            }
            Step::Block(block) => {
                let decoded = decode(&mut decoder, block);
                assert_eq!(decoded, naive.decode(block));
                if decoded.is_err() {
                    return;
                }
                is_owed &= block.is_empty();
            }
        }
        assert!(decoder.memory() <= most + most / 4, "{} bytes for {most}", decoder.memory());
    }
    if !is_owed {
        assert_eq!(dynamic_table(&mut decoder), naive.recent);
    }
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Line>, HpackError> {
    let (mut lines, mut scratch) = (Vec::new(), Vec::new());
    let take = |f: Field<'_>| lines.push((f.name.to_vec(), f.value.to_vec(), f.is_sensitive));
    let decoded = decoder.decode(block, &mut scratch, take);
    assert!(scratch.len() <= 64 + 4096 + 2 * block.len());
    decoded.map(|()| lines)
}

const NAMES: &[&str] = &[
    ":method",
    ":path",
    ":status",
    "accept-encoding",
    "authorization",
    "cookie",
    "content-type",
    "date",
    "set-cookie",
    "user-agent",
    "x-a",
    "x-forwarded-for",
    "x-request-id",
    "",
    "via",
    "proxy-authorization",
];
const VALUES: &[&str] = &[
    "",
    "/",
    "200",
    "GET",
    "gzip, deflate",
    "a",
    "19 bytes, and again",
    "20 bytes, and again.",
    "\u{1}\\{}\u{ff}",
    "text/html; charset=utf-8",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
];

/// The field that two bytes denote.
fn line(choice: &[u8]) -> Line {
    let (a, b) = (usize::from(choice[0]), usize::from(*choice.last().unwrap_or(&0)));
    let name = NAMES[a % NAMES.len()];
    let value = match VALUES.get(b % 32) {
        Some(&value) => value.to_string(),
        // Several of them fill a table.
        None if b % 32 == 31 => "long ".repeat(a * b / 64),
        None => format!("value {b} of many"),
    };
    (name.into(), value.into_bytes(), a >= 240)
}

/// Any fields and limits: an encoder writes what the naive one writes, decoders read the same fields with the same
/// marks, and no table has a secret. The first byte chooses the policy.
pub fn fields(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let policy = [Policy::TO_ORIGIN, Policy::TO_CLIENT, Policy { capacity: 200, is_huffman: true }]
        [usize::from(first) % 3];
    let mut encoder = Encoder::new(policy);
    let mut naive = NaiveEncoder::new(policy, &CODE, &FIXED);
    let mut decoder = Decoder::new();
    let mut limit = 4096;
    for step in steps(bytes) {
        match step {
            Step::Limit(bytes) => {
                limit = bytes;
                encoder.set_limit(bytes.into());
                naive.set_limit(bytes.into());
                decoder.set_limit(bytes);
            }
            Step::Block(choices) => {
                let lines: Vec<Line> = choices.chunks(2).map(line).collect();
                let (mut out, mut expected) = (Vec::new(), Vec::new());
                encoder.begin(&mut out);
                naive.begin(&mut expected);
                for line in &lines {
                    let (name, value, is_sensitive) = (&line.0[..], &line.1[..], line.2);
                    encoder.encode(Field { name, value, is_sensitive }, &mut out);
                    naive.encode(line, &mut expected);
                }
                assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
                let sent = lines.into_iter().map(|line| (is_hidden(&line), line));
                let sent = sent.map(|(is_hidden, (name, value, _))| (name, value, is_hidden));
                assert_eq!(decode(&mut decoder, &out), Ok(sent.collect()));
                if out.is_empty() {
                    continue;
                }
                let table = dynamic_table(&mut decoder);
                assert!(size(&table) <= usize::from(limit));
                assert!(!table.iter().any(|(n, v)| is_hidden(&(n.clone(), v.clone(), false))));
            }
        }
        assert!(encoder.memory() <= 200 + usize::from(policy.capacity) * 3 / 2, "{}", encoder.memory());
    }
}
