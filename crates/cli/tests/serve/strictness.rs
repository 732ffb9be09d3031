//! `docs/strictness.md` is true of weir: each message of its tables goes through `weir serve`, and its cell says what
//! comes of it.

use crate::shared::serve::{Fault, Origin, Stream, Weir};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// A row: the message, and weir's cell.
struct Row {
    message: String,
    cell: Cell,
}

/// What a cell says.
struct Cell {
    /// What the client gets; `None`: the server got the message.
    status: Option<u16>,
    with: Vec<String>,
    without: Vec<String>,
}

fn cell(text: &str) -> Cell {
    let status = text.split(' ').next().and_then(|word| word.parse().ok());
    assert!(status.is_some() || text.starts_with("passed on"), "a cell that says nothing: {text}");
    let pieces = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let (with, without) = text.split_once("without").unwrap_or((text, ""));
    Cell { status, with: pieces(with), without: pieces(without) }
}

/// The rows of all tables but the last, and of the last: answers.
fn page() -> (Vec<Row>, Vec<Row>) {
    let page = include_str!("../../../../docs/strictness.md");
    let (requests, answers) = page.split_once("## Answers of servers").expect("its last section");
    let rows = |text: &str| {
        let cells = text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| message |"));
        cells.map(row).collect::<Vec<Row>>()
    };
    (rows(requests), rows(answers))
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let [message, weir, _nginx, _haproxy, _section, _why] = cells[..] else {
        panic!("not six cells: {line}")
    };
    Row { message: message.to_owned(), cell: cell(weir) }
}

/// Whether a head has a line, or a field where the piece is no more than a name.
fn has(head: &str, piece: &str) -> bool {
    let is_name = !piece.contains([' ', ':', '/']);
    let named = |line: &str| line.split_once(':').is_some_and(|(name, _)| name.eq_ignore_ascii_case(piece));
    head.split("\r\n").any(|line| line == piece || is_name && named(line))
}

fn judge(row: &Row, head: &str, wrong: &mut String) {
    for piece in row.cell.with.iter().filter(|p| !has(head, p)) {
        let _ = writeln!(wrong, "{}: no `{piece}` in {head:?}", row.message);
    }
    for piece in row.cell.without.iter().filter(|p| has(head, p)) {
        let _ = writeln!(wrong, "{}: `{piece}` is in {head:?}", row.message);
    }
}

/// Each message of the page has its bytes here, and the other way round.
fn same_messages(rows: &[Row], cases: &[(&'static str, String)]) {
    let said: BTreeSet<&str> = rows.iter().map(|r| r.message.as_str()).collect();
    let sent: BTreeSet<&str> = cases.iter().map(|c| c.0).collect();
    assert_eq!((said.len(), sent.len()), (rows.len(), cases.len()), "a message twice");
    assert_eq!(said.symmetric_difference(&sent).collect::<Vec<_>>(), Vec::<&&str>::new());
}

/// A GET with this target and these fields.
fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\n{fields}\r\n")
}

/// A GET from `h` with these further fields.
fn with(fields: &str) -> String {
    get("/", &format!("Host: h\r\n{fields}"))
}

/// A request for `h` with this target.
fn get_target(target: &str) -> String {
    get(target, "Host: h\r\n")
}

/// A POST with these fields and this body.
fn post(fields: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}")
}

/// A POST in chunks.
fn chunked(body: &str) -> String {
    post("Transfer-Encoding: chunked\r\n", body)
}

const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

fn hosts_and_targets() -> Vec<(&'static str, String)> {
    vec![
        ("`Host: h:80` on port 80", get("/", "Host: h:80\r\n")),
        ("`Host: h:` with an empty port", get("/", "Host: h:\r\n")),
        ("`Host: WWW.Example.COM`", get("/", "Host: WWW.Example.COM\r\n")),
        ("no `Host` in HTTP/1.1", get("/", "")),
        ("an empty `Host`", get("/", "Host:\r\n")),
        ("`Host` twice, the same", get("/", "Host: h\r\nHost: h\r\n")),
        ("`Host: u@h`", get("/", "Host: u@h\r\n")),
        ("`Host: h/x`", get("/", "Host: h/x\r\n")),
        ("`Host: a,b`", get("/", "Host: a,b\r\n")),
        ("`Host: h:99999`", get("/", "Host: h:99999\r\n")),
        ("`GET http://h:80/p` with `Host: h`", get_target("http://h:80/p")),
        ("`GET http://other/p` with `Host: h`", get_target("http://other/p")),
        ("`GET http://u:p@h/p`", get_target("http://u:p@h/p")),
        ("`GET ftp://h/p`", get_target("ftp://h/p")),
        ("`GET http://h/p` without `Host`", get("http://h/p", "")),
        ("`GET *`", get_target("*")),
        ("`OPTIONS *`", get_target("*").replace("GET", "OPTIONS")),
        ("`GET /{a}`", get_target("/{a}")),
        ("`GET /a\\b`", get_target("/a\\b")),
        ("`GET /\"a\"` or `GET /<a>`", get_target("/\"a\"")),
        ("`GET /café` in raw UTF-8", get_target("/café")),
        ("`GET /a#b`", get_target("/a#b")),
        ("`GET /%zz`", get_target("/%zz")),
        ("`GET /?100%`", get_target("/?100%")),
        ("`GET /a%00b`", get_target("/a%00b")),
        ("`GET /a%0ab`", get_target("/a%0ab")),
        ("`GET /../b` without routes", get_target("/../b")),
        ("`GET /a/../b`, a route for `/a/*`", get_target("/a/../b")),
        ("`GET /a%2fb`, a route for `/a/*`", get_target("/a%2fb")),
        ("two blanks in the request line", get_target(" /")),
        ("`GET / HTTP/1.2`", get_target("/").replace("1.1", "1.2")),
        ("a target over 8 KiB", get_target(&format!("/{}", "a".repeat(8192)))),
        ("a head of 20 KiB", with(&format!("X-A: {}\r\n", "a".repeat(20_000)))),
        ("101 fields", with(&(0..100).map(|i| format!("X-{i}: 1\r\n")).collect::<String>())),
    ]
}

fn bodies_and_fields() -> Vec<(&'static str, String)> {
    vec![
        (
            "`Content-Length` with `Transfer-Encoding`",
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ),
        ("`Transfer-Encoding` in HTTP/1.0", chunked("0\r\n\r\n").replace("HTTP/1.1", "HTTP/1.0")),
        (
            "`Transfer-Encoding: gzip, chunked`",
            post("Transfer-Encoding: gzip, chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"),
        ),
        ("`Transfer-Encoding: identity`", post("Transfer-Encoding: identity\r\nContent-Length: 2\r\n", "hi")),
        ("`Content-Length: 2` twice", post("Content-Length: 2\r\nContent-Length: 2\r\n", "hi")),
        ("`Content-Length: 2, 2`", post("Content-Length: 2, 2\r\n", "hi")),
        ("`Content-Length: 02`", post("Content-Length: 02\r\n", "hi")),
        ("a line that ends in LF alone", with("X-A: 1\n")),
        ("a folded line", with("X-A: 1\r\n 2\r\n")),
        ("a chunk's size with a blank behind it", chunked("2 \r\nhi\r\n0\r\n\r\n")),
        ("a chunk's size with a blank and an extension", chunked("2 ;a=b\r\nhi\r\n0\r\n\r\n")),
        ("a chunk's line that ends in LF alone", chunked("2\nhi\r\n0\r\n\r\n")),
        ("a chunk's size of 19 digits", chunked("0000000000000000002\r\nhi\r\n0\r\n\r\n")),
        (
            "trailers `X-T: 1` and `Content-Length: 5`",
            chunked("2\r\nhi\r\n0\r\nX-T: 1\r\nContent-Length: 5\r\n\r\n"),
        ),
        ("`X_Own: 1`", with("X_Own: 1\r\n")),
        ("`Content_Length: 2`", post("Content_Length: 2\r\nContent-Length: 2\r\n", "hi")),
        ("`X_Forwarded_For: 1.2.3.4`", with("X_Forwarded_For: 1.2.3.4\r\n")),
        ("`X-Forwarded-For: 1.2.3.4`", with("X-Forwarded-For: 1.2.3.4\r\n")),
        (
            "`X-Forwarded-Host: evil` and `Forwarded: for=1.2.3.4`",
            with("X-Forwarded-Host: evil\r\nForwarded: for=1.2.3.4\r\n"),
        ),
        ("`Proxy: evil:80`", with("Proxy: evil:80\r\n")),
        ("`Connection: X-Hop` with `X-Hop: 1`", with("Connection: X-Hop\r\nX-Hop: 1\r\n")),
        ("a line without a colon", with("nonsense\r\n")),
        ("`X[A]: 1`", with("X[A]: 1\r\n")),
        ("a control character in a value", with("X-A: a\u{1}b\r\n")),
        ("`Expect: 200-ok`", with("Expect: 200-ok\r\n")),
        ("`Expect: 100-continue` without a body", with("Expect: 100-continue\r\n")),
        ("eleven hops `1.1 weir` in `Via`", with(&format!("Via: 1.1 weir{}\r\n", ", 1.1 weir".repeat(10)))),
    ]
}

fn methods() -> Vec<(&'static str, String)> {
    let hello = |method: &str, fields: &str| with(fields).replace("GET", method);
    let connect = |host: &str| format!("CONNECT h:443 HTTP/1.1\r\nHost: {host}\r\n\r\n");
    vec![
        ("`get /`", hello("get", "")),
        ("a method of 33 letters", hello(&"M".repeat(33), "")),
        ("`TRACE /`", hello("TRACE", "")),
        ("`OPTIONS /` with `Max-Forwards: 0`", hello("OPTIONS", "Max-Forwards: 0\r\n")),
        ("`CONNECT h:443`", connect("h:443")),
        ("`CONNECT h:443` with `Host: other`, allowed", connect("other")),
        ("an upgrade to WebSocket without `Sec-WebSocket-Key`", with(WEBSOCKET)),
        ("an upgrade of a request with a body", post(&format!("{WEBSOCKET}Content-Length: 2\r\n"), "hi")),
        ("an upgrade of a POST to WebSocket", post(WEBSOCKET, "")),
        ("an upgrade to `custom`", with("Connection: Upgrade\r\nUpgrade: custom\r\n")),
        (
            "an upgrade to `h2c`",
            with(
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
            ),
        ),
    ]
}

/// One that keeps what it reads, and answers all of it.
fn keeping(seen: Arc<Mutex<Vec<String>>>) -> Origin {
    Origin::new(move |peer| {
        peer.stream.record = Some(Vec::new());
        let mut from = 0;
        loop {
            let request = peer.request()?;
            let to = peer.stream.used();
            let raw = peer.stream.record.as_ref().map_or(&[][..], |r| &r[from..to]);
            seen.lock().expect("no panic").push(String::from_utf8_lossy(raw).into_owned());
            from = to;
            if request.method() == "CONNECT" {
                peer.send("HTTP/1.1 200 OK\r\n\r\n")?;
                return peer.wait_for_end();
            }
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    })
}

#[test]
fn requests_are_treated_as_the_page_says() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let origin = keeping(seen.clone());
    let mut weir = Weir::new(&format!(
        "o = server(\"o\", addr=\"{}\")\n\
         listen(\"127.0.0.1:0\", o, name=\"plain\")\n\
         listen(\"127.0.0.1:0\", o, name=\"allowed\", http=http(connect=[\"h:443\"]))\n\
         listen(\"127.0.0.1:0\", route([(when(path=\"/a/*\"), o)], otherwise=respond(404)), name=\"routed\")\n",
        origin.addr()
    ));
    let (rows, _) = page();
    let cases = [hosts_and_targets(), bodies_and_fields(), methods()].concat();
    same_messages(&rows, &cases);
    let mut wrong = String::new();
    for row in &rows {
        let raw = &cases.iter().find(|c| c.0 == row.message).expect("the same messages").1;
        let listener = match &row.message {
            m if m.ends_with("allowed") => "allowed",
            m if m.contains("a route for") => "routed",
            _ => "plain",
        };
        seen.lock().expect("no panic").clear();
        let mut client = weir.connect(listener);
        // It may be refused before it was sent whole.
        let _ = client.send(raw);
        let status = client.response(raw.split(' ').next().unwrap_or_default()).map(|a| a.status());
        let arrived = seen.lock().expect("no panic").clone();
        let expected = row.cell.status.unwrap_or(200);
        if status != Ok(expected) || arrived.len() != usize::from(row.cell.status.is_none()) {
            let _ = writeln!(wrong, "{}: {status:?}, and the server saw {arrived:?}", row.message);
        }
        if row.cell.status.is_none() {
            judge(row, arrived.first().map_or("", String::as_str), &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "docs/strictness.md is not true:\n{wrong}");
    weir.assert_alive();
}

fn answers() -> Vec<(&'static str, String)> {
    let ok = |fields: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}");
    let fine = ok("Content-Length: 2\r\n", "hi");
    let chunked = "2\r\nhi\r\n0\r\n\r\n";
    let switch = |to: &str| {
        format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {to}\r\n\r\n")
    };
    vec![
        (
            "an answer with `Content-Length` and `Transfer-Encoding`",
            ok("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunked),
        ),
        (
            "an answer in HTTP/1.0 with `Transfer-Encoding`",
            ok("Transfer-Encoding: chunked\r\n", chunked).replace("1.1", "1.0"),
        ),
        (
            "an answer with `Transfer-Encoding: gzip, chunked`",
            ok("Transfer-Encoding: gzip, chunked\r\n", chunked),
        ),
        ("an answer with `Content-Length: 2` twice", ok("Content-Length: 2\r\nContent-Length: 2\r\n", "hi")),
        ("an answer with two different lengths", ok("Content-Length: 2\r\nContent-Length: 3\r\n", "hi")),
        ("an answer whose lines end in LF alone", fine.replace("\r\n", "\n")),
        ("an answer with a folded line", ok("X-A: 1\r\n 2\r\nContent-Length: 2\r\n", "hi")),
        ("an answer with a control character in a value", ok("X-A: a\u{1}b\r\nContent-Length: 2\r\n", "hi")),
        ("an answer in HTTP/1.2", fine.replace("1.1", "1.2")),
        ("an answer that is not HTTP", "hello\r\n\r\n".to_owned()),
        (
            "an answer with 20 KiB of head",
            ok(&format!("X-A: {}\r\nContent-Length: 2\r\n", "a".repeat(20_000)), "hi"),
        ),
        ("103 before the answer", format!("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n{fine}")),
        (
            "103 with `Content-Length: 0`",
            format!("HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\n\r\n{fine}"),
        ),
        ("101 to a request that asked for no upgrade", switch("websocket")),
        ("101 to WebSocket without `Sec-WebSocket-Accept`", switch("websocket")),
        ("101 to a protocol that was not asked for", switch("other")),
        ("no length, ended by closing", ok("", "hi")),
    ]
}

/// What a client reads up to the end of the answer's head or body, as it came.
fn read(mut client: Stream, raw: &str) -> (Result<u16, Fault>, String) {
    client.record = Some(Vec::new());
    let _ = client.send(raw);
    let status = client.response("GET").map(|answer| answer.status());
    let used = client.used();
    let bytes = client.record.as_ref().map_or(&[][..], |r| &r[..used]);
    (status, String::from_utf8_lossy(bytes).into_owned())
}

#[test]
fn answers_are_treated_as_the_page_says() {
    let (_, rows) = page();
    let cases = answers();
    same_messages(&rows, &cases);
    let bytes: Vec<String> = cases.iter().map(|c| c.1.clone()).collect();
    // The request's path says which.
    let origin = Origin::new(move |peer| {
        let request = peer.request()?;
        let number: usize = request.target()[1..].parse().expect("a number");
        peer.send(&bytes[number])
    });
    let mut weir = Weir::before(&format!("server(\"o\", addr=\"{}\")", origin.addr()));
    let mut wrong = String::new();
    for row in &rows {
        let number = cases.iter().position(|c| c.0 == row.message).expect("the same messages");
        let asks = row.message.contains("WebSocket") || row.message.contains("not asked for");
        let upgrade = if asks { WEBSOCKET } else { "" };
        let (status, text) =
            read(weir.client(), &get(&format!("/{number}"), &format!("Host: h\r\n{upgrade}")));
        if status != Ok(row.cell.status.expect("a status")) {
            let _ = writeln!(wrong, "{}: {status:?}: {text:?}", row.message);
        }
        judge(row, &text, &mut wrong);
    }
    assert!(wrong.is_empty(), "docs/strictness.md is not true:\n{wrong}");
    weir.assert_alive();
}
