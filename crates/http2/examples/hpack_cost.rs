//! What a block of fields costs: `cargo run --release -p weir-http2 --example hpack_cost` prints ns per block and field,
//! the least of rounds.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this program measures time")]

use std::hint::black_box;
use std::time::Instant;
use weir_http2::{Decoder, Encoder, Field, Policy};

type Fields = &'static [(&'static str, &'static str)];

const BROWSER: Fields = &[
    (":method", "GET"),
    (":authority", "www.example.com"),
    (":scheme", "https"),
    (":path", "/articles/2026/11/balancing?page=2&sort=new"),
    ("cache-control", "max-age=0"),
    ("sec-ch-ua", "\"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("upgrade-insecure-requests", "1"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
    ),
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    ),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-user", "?1"),
    ("sec-fetch-dest", "document"),
    ("referer", "https://www.example.com/articles"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9,de;q=0.8"),
    ("cookie", "session=0f9e8d7c6b5a49382716; theme=dark; consent=1"),
    ("priority", "u=0, i"),
];

const LOAD: Fields = &[
    (":method", "GET"),
    (":path", "/64"),
    (":scheme", "http"),
    (":authority", "127.0.0.1:8080"),
    ("user-agent", "h2load nghttp2/1.52.0"),
];

const ANSWER: Fields = &[
    (":status", "200"),
    ("server", "nginx/1.22.1"),
    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("content-type", "text/plain"),
    ("content-length", "64"),
    ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("etag", "\"65a1b2c3-40\""),
    ("accept-ranges", "bytes"),
];

/// ns of one turn: the least mean over rounds, as noise only adds.
fn least(mut turn: impl FnMut()) -> f64 {
    const TURNS: u32 = 200;
    (0..1_000)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..TURNS {
                turn();
            }
            begin.elapsed().as_nanos() as f64 / f64::from(TURNS)
        })
        .fold(f64::MAX, f64::min)
}

fn encode(encoder: &mut Encoder, fields: Fields, out: &mut Vec<u8>) {
    out.clear();
    encoder.begin(out);
    for (name, value) in fields {
        encoder.encode(Field { name: name.as_bytes(), value: value.as_bytes(), is_sensitive: false }, out);
    }
}

fn print(name: &str, ns: f64, fields: Fields, bytes: usize) {
    println!("{name:52} {ns:7.1}   {:5.1} a field, {bytes} bytes", ns / fields.len() as f64);
}

/// The costs of the first block of a connection, and of one whose fields came before.
fn measure(name: &str, fields: Fields, policy: Policy) {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    let (mut encoder, mut decoder) = (Encoder::new(policy), Decoder::new());
    let (mut scratch, mut sum) = (Vec::new(), 0);
    let mut take = |field: Field<'_>| sum += field.name.len() + field.value.len();
    encode(&mut encoder, fields, &mut first);
    for _ in 0..3 {
        encode(&mut encoder, fields, &mut later);
        decoder.decode(&later, &mut scratch, &mut take).expect("lawful");
    }
    let mut out = Vec::new();
    let ns = least(|| {
        let mut encoder = Encoder::new(policy);
        encode(&mut encoder, black_box(fields), &mut out);
        black_box(&out);
    });
    print(&format!("{name}, encode, new"), ns, fields, out.len());
    let ns = least(|| encode(&mut encoder, black_box(fields), &mut out));
    print(&format!("{name}, encode, repeated"), ns, fields, out.len());
    let ns = least(|| decoder.decode(black_box(&first), &mut scratch, &mut take).expect("lawful"));
    print(&format!("{name}, decode, new"), ns, fields, first.len());
    let ns = least(|| decoder.decode(black_box(&later), &mut scratch, &mut take).expect("lawful"));
    print(&format!("{name}, decode, repeated"), ns, fields, later.len());
    black_box(sum);
}

/// Fields with Huffman's code that are put into the table, each pushing others out.
fn insertions() {
    let mut block = Vec::new();
    let strings = Policy { capacity: 0, is_huffman: true };
    encode(&mut Encoder::new(strings), BROWSER, &mut block);
    // The representation of a field with a name of its own, or one of the static table, as one that is indexed.
    let mut decoder = Decoder::new();
    let (mut scratch, mut indexed) = (Vec::new(), Vec::new());
    let mut take = |field: Field<'_>| {
        indexed.push(0x40);
        for string in [field.name, field.value] {
            indexed.push(string.len() as u8);
            indexed.extend_from_slice(string);
        }
    };
    decoder.decode(&block, &mut scratch, &mut take).expect("lawful");
    let ns = least(|| decoder.decode(black_box(&indexed), &mut scratch, |_| {}).expect("lawful"));
    print("browser's request, decode, plain, indexed", ns, BROWSER, indexed.len());
}

fn main() {
    println!("{:52} {:>7}", "", "ns");
    let huffman = Policy { capacity: 4096, is_huffman: true };
    measure("browser's request, Huffman", BROWSER, huffman);
    measure("browser's request, plain", BROWSER, Policy::TO_ORIGIN);
    measure("h2load's request, plain", LOAD, Policy::TO_ORIGIN);
    measure("answer, Huffman", ANSWER, Policy::TO_CLIENT);
    measure("answer, plain", ANSWER, Policy { is_huffman: false, ..Policy::TO_CLIENT });
    insertions();
}
