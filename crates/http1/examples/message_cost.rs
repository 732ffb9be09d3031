//! What a message costs: `cargo run --release -p weir-http1 --example message_cost` prints ns per message, the least of rounds.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this program measures time")]

use std::hint::black_box;
use std::time::Instant;
use weir_http1::*;

const SHORT: &[u8] =
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\nUser-Agent: wrk/4.1.0\r\n\r\n";

const BROWSER: &[u8] = b"GET /articles/2026/11/balancing?page=2&sort=new HTTP/1.1\r\n\
Host: www.example.com\r\n\
Connection: keep-alive\r\n\
Cache-Control: max-age=0\r\n\
sec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n\
sec-ch-ua-mobile: ?0\r\n\
sec-ch-ua-platform: \"Linux\"\r\n\
Upgrade-Insecure-Requests: 1\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8\r\n\
Sec-Fetch-Site: same-origin\r\n\
Sec-Fetch-Mode: navigate\r\n\
Sec-Fetch-User: ?1\r\n\
Sec-Fetch-Dest: document\r\n\
Referer: https://www.example.com/articles\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
Cookie: session=0f9e8d7c6b5a49382716; theme=dark; consent=1\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
Content-Type: text/plain\r\nContent-Length: 64\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n\
ETag: \"65a1b2c3-40\"\r\nAccept-Ranges: bytes\r\n\r\n";

/// ns of one turn: the least mean over rounds, as noise only adds.
fn least(mut turn: impl FnMut()) -> f64 {
    const TURNS: u32 = 500;
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

fn request(name: &str, raw: &[u8]) {
    let limits = Limits::default();
    let networks = Networks::default();
    let upgrades = ["websocket".to_string()];
    let hop = Hop {
        peer: Some("192.168.1.20".parse().expect("an address")),
        https: false,
        port: Some(8080),
        trusted: &networks,
        upgrades: &upgrades,
        connect: &[],
        raw_paths: false,
        own: false,
    };
    let edits = Edits::default();
    let mut request = Request::default();
    let mut out = Vec::new();
    let seek = least(|| {
        black_box(Seek::default().request(black_box(raw), &limits).expect("valid"));
    });
    let parse = least(|| request.parse(black_box(raw), &limits).expect("valid"));
    let check = least(|| {
        black_box(check_request(black_box(&mut request), &hop).expect("valid"));
    });
    let checked = check_request(&mut request, &hop).expect("valid");
    let render = least(|| {
        out.clear();
        render_request(black_box(&request), &checked, &hop, &edits, BodyOut::None, &mut out);
    });
    let all = least(|| {
        out.clear();
        request.parse(black_box(raw), &limits).expect("valid");
        let checked = check_request(&mut request, &hop).expect("valid");
        render_request(&request, &checked, &hop, &edits, BodyOut::None, &mut out);
        black_box(&out);
    });
    println!(
        "{name:28} {all:7.1}   parse {parse:.1}, check {check:.1}, render {render:.1}; before them, seek {seek:.1}"
    );
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let bare = least(|| {
        let mut uninit = [const { std::mem::MaybeUninit::uninit() }; 100];
        let mut parsed = httparse::Request::new(&mut headers[..0]);
        black_box(parsed.parse_with_uninit_headers(black_box(raw), &mut uninit).expect("valid"));
    });
    println!("{:28} {bare:7.1}   ({} bytes)", "  httparse alone", raw.len());
    let dripped = least(|| {
        let mut seek = Seek::default();
        for n in 1..=raw.len() {
            let _ = black_box(seek.request(black_box(&raw[..n]), &limits));
        }
        request.parse(raw, &limits).expect("valid");
    });
    println!("{:28} {dripped:7.1}   {:.1} times", "  byte by byte", dripped / (seek + parse));
}

fn response() {
    let limits = Limits::default();
    let mut response = Response::default();
    let (to, edits) = (Client::default(), Edits::default());
    let mut out = Vec::new();
    let seek = least(|| {
        black_box(Seek::default().response(black_box(RESPONSE), &limits).expect("valid"));
    });
    let parse =
        least(|| response.parse(black_box(RESPONSE), RequestInfo::default(), &limits).expect("valid"));
    let all = least(|| {
        out.clear();
        response.parse(black_box(RESPONSE), RequestInfo::default(), &limits).expect("valid");
        let body = body_to_client(&response, to);
        render_response(&response, to, &edits, &[], body, None, &mut out);
        black_box(&out);
    });
    println!(
        "{:28} {all:7.1}   parse {parse:.1}; before it, seek {seek:.1} ({} bytes)",
        "response",
        RESPONSE.len()
    );
}

fn chunks() {
    let limits = Limits::default();
    let mut body = Vec::new();
    for _ in 0..4 {
        body.extend_from_slice(b"4000\r\n");
        body.extend_from_slice(&[b'x'; 16 * 1024]);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let all = least(|| {
        let mut decoder = Decoder::new(Framing::Chunked, &limits);
        let mut at = 0;
        while !matches!(black_box(decoder.next(black_box(&body), &mut at)).expect("valid"), Piece::End) {}
    });
    println!("{:28} {all:7.1}", "64 KiB in four chunks");
}

fn main() {
    println!("{:28} {:>7}", "", "ns");
    request("short request", SHORT);
    request("browser's request", BROWSER);
    response();
    chunks();
}
