//! Random messages from a seed.

use weir_testkit::Random;

const TARGETS: &[&str] = &[
    "/",
    "/a",
    "/a/b?c=d",
    "/%41",
    "/a;b",
    "*",
    "http://h/x",
    "/a//b/../c",
    "/?",
    "h:1",
    "/a%2fb",
    "/[x]",
    "/a|b^c",
    "/?{a}|`\\",
];
const FIELDS: &[&str] = &[
    "X-A: 1",
    "X-B:2",
    "X-C:  3 ",
    "X-D:",
    "Accept: */*",
    "Cookie: a=1; b=2",
    "User-Agent: u",
    "Via: 1.1 x",
    "X-Forwarded-For: 1.2.3.4",
    "TE: trailers",
    "Expect: 100-continue",
    "Keep-Alive: 1",
    "x_y: 1",
    "Max-Forwards: 2",
    "Connection: keep-alive",
    "Connection: X-A",
    "Connection: close, X-B",
    "Date: x",
    "Upgrade: websocket",
    "Trailer: X-T",
    "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
const ODD: &[&str] = &[
    "Content-Length: 3",
    "Content-Length: 0",
    "Content-Length: 3, 3",
    "Content-Length: +3",
    "Content-Length: 03",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity",
    "Content_Length: 3",
    "Host: other",
    "X A: 1",
    "X-A : 1",
    "nonsense",
    ": 1",
    " fold",
    "X-N: \u{1}",
    "Transfer-Encoding: Chunked",
];
/// A request with its body, mostly valid.
pub fn request(random: &mut Random) -> Vec<u8> {
    let method = random.choose(&["GET", "POST", "HEAD", "PUT", "OPTIONS", "DELETE", "get", "X"]);
    let target = if random.percent(70) { "/x" } else { random.choose(TARGETS) };
    let version =
        if random.percent(90) { "HTTP/1.1" } else { random.choose(&["HTTP/1.0", "HTTP/1.2", "HTTP/2.0"]) };
    let mut out = format!("{method} {target} {version}\r\nHost: h\r\n");
    fields(random, &mut out);
    body(random, &mut out);
    out.into_bytes()
}

/// A response with its body, mostly valid.
pub fn response(random: &mut Random) -> Vec<u8> {
    let status = random.choose(&[
        "200 OK",
        "200 OK",
        "204 No Content",
        "304 Not Modified",
        "404 ",
        "500",
        "103 Hints",
        "299 \u{e9}",
    ]);
    let version = if random.percent(90) { "HTTP/1.1" } else { random.choose(&["HTTP/1.0", "HTTP/1.2"]) };
    let mut out = format!("{version} {status}\r\n");
    fields(random, &mut out);
    body(random, &mut out);
    out.into_bytes()
}

fn fields(random: &mut Random, out: &mut String) {
    for _ in 0..random.below(6) {
        let field = if random.percent(92) { random.choose(FIELDS) } else { random.choose(ODD) };
        out.push_str(field);
        out.push_str("\r\n");
    }
}

fn body(random: &mut Random, out: &mut String) {
    match random.below(4) {
        0 => out.push_str("Content-Length: 5\r\n\r\nhello"),
        1 => {
            out.push_str("Transfer-Encoding: chunked\r\n\r\n");
            out.push_str(&chunks(random));
        }
        _ => out.push_str("\r\n"),
    }
}

/// A chunked body, mostly valid.
pub fn chunks(random: &mut Random) -> String {
    let mut out = String::new();
    for _ in 0..random.below(4) {
        let n = 1 + random.below(20);
        let extension = if random.percent(80) {
            ""
        } else {
            random.choose(&[";a", ";a=b", ";a=\"b;c\"", ";", "; a", " "])
        };
        out.push_str(&format!("{}{n:x}{extension}\r\n{}\r\n", random.choose(&["", "", "0"]), "d".repeat(n)));
    }
    out.push_str("0\r\n");
    for _ in 0..random.below(3) {
        out.push_str(random.choose(&[
            "X-T: 1\r\n",
            "Host: e\r\n",
            "X-T :1\r\n",
            "Content-Length: 1\r\n",
            "X-U:2\r\n",
        ]));
    }
    out.push_str("\r\n");
    out
}

/// Field lines without the last line's end.
pub fn field_lines(random: &mut Random) -> Vec<u8> {
    let mut out = String::new();
    fields(random, &mut out);
    out.push_str(random.choose(FIELDS));
    out.into_bytes()
}

/// A request target, mostly valid.
pub fn uri(random: &mut Random) -> Vec<u8> {
    const PARTS: &[&str] = &[
        "/", "a", "..", "%41", "%2f", "?", "=", "&", ";", "//", "%00", "#", "\\", "%", " ", "\u{e9}", ":",
        "@", "[", "*", "|", "^", "{", "}", "`",
    ];
    let mut out =
        random.choose(&["/", "/", "http://h", "https://h:1/", "http://u@h/", "", "*", "h:1"]).to_string();
    for _ in 0..random.below(8) {
        out.push_str(random.choose(PARTS));
    }
    out.chars().map(|c| c as u8).collect()
}
