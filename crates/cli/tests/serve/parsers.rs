//! What reaches an origin, read by four parsers that know nothing of each other: exactly the requests that were sent.
//!
//! Random requests, each with a nonce, pipelined and aborted, go through weir to an origin that keeps every byte. Our
//! own strict reader, Python's h11, Node's llhttp and Go's net/http must find the same requests in them; each answer
//! must carry the nonce of its request; and what was hidden in bodies, or came after a request that was refused, must
//! not be there.

use crate::shared::common::Scratch;
use crate::shared::serve::{Fault, Framing, Message, Origin, Peer, Stream, Weir, pause, tell, until};
use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_testkit::Random;

const CONNECTIONS: usize = 800;
const WORKERS: usize = 8;

/// `FNV-1a`, as the other programs have it.
fn fnv(body: &[u8]) -> u32 {
    body.iter().fold(2_166_136_261, |h: u32, b| (h ^ u32::from(*b)).wrapping_mul(16_777_619))
}

/// A request as all readers print it.
fn printed(method: &str, target: &str, nonce: &str, body: &[u8]) -> String {
    format!("{method} {target} {nonce} {} {}", body.len(), fnv(body))
}

/// A recorded connection: its bytes, and what our own reader found in them.
struct Recording {
    bytes: Vec<u8>,
    lines: Vec<String>,
}

/// Reads, keeps what it reads, and answers in several framings, sometimes late, sometimes for the last time.
fn record(peer: &mut Peer, recorded: &Mutex<Vec<Recording>>) -> Result<(), Fault> {
    let mut random = Random::new(peer.number as u64);
    peer.stream.record = Some(Vec::new());
    let (mut lines, mut whole) = (Vec::new(), 0);
    let ended = loop {
        let request = match peer.request() {
            Ok(request) => request,
            Err(fault) => break fault,
        };
        whole = peer.stream.used();
        let nonce = request.all("x-nonce").join(",");
        lines.push(printed(request.method(), request.target(), &nonce, &request.body));
        if random.percent(20) {
            pause(random.below(15) as u64);
        }
        let (answer, last) = answer(&mut random, &request, &nonce);
        if let Err(fault) = peer.send(answer) {
            break fault;
        }
        if last {
            break Fault::End;
        }
    };
    let bytes = peer.stream.record.clone().unwrap_or_default();
    lines.push(match &ended {
        Fault::Malformed(why) => format!("malformed {why}"),
        _ if bytes.len() == whole => "end".to_owned(),
        _ => "cut".to_owned(),
    });
    recorded.lock().expect("no panic").push(Recording { bytes, lines });
    Err(ended)
}

fn answer(random: &mut Random, request: &Message, nonce: &str) -> (String, bool) {
    let body = format!("{nonce} {} {}", fnv(&request.body), ".".repeat([0, 10, 3000][random.below(3)]));
    let head = format!("HTTP/1.1 200 OK\r\nX-Nonce: {nonce}\r\n");
    let length = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    if request.method() == "HEAD" {
        return (length, false);
    }
    match random.below(20) {
        0 => (format!("{head}Connection: close\r\n\r\n{body}"), true),
        1..9 => {
            // A nonce may have characters of several bytes.
            let at = body.ceil_char_boundary(random.below(body.len() - 1) + 1);
            let (a, b) = body.split_at(at);
            (
                format!(
                    "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:X}\r\n{b}\r\n0\r\n\r\n",
                    a.len(),
                    b.len()
                ),
                false,
            )
        }
        _ => (length + &body, false),
    }
}

/// A request that is sent.
struct Sent {
    line: String,
    nonce: String,
    method: &'static str,
    hash: u32,
    raw: Vec<u8>,
}

/// What a body looks like that would be other requests, were it cut elsewhere.
const BAIT: &str = "\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\nX-Nonce: evil\r\n\r\n";

fn make(random: &mut Random, nonce: String) -> Sent {
    const METHODS: [&str; 8] = ["GET", "GET", "POST", "POST", "PUT", "HEAD", "DELETE", "PATCH"];
    let method = METHODS[random.below(METHODS.len())];
    let with_body = matches!(method, "POST" | "PUT" | "PATCH") || (method == "DELETE" && random.percent(30));
    let mut body = Vec::new();
    while with_body && body.len() < [0, 1, 30, 900, 20_000][random.below(5)] {
        match random.below(3) {
            0 => body.extend_from_slice(BAIT.as_bytes()),
            1 => body.extend((0..random.below(50)).map(|_| random.below(256) as u8)),
            _ => body.extend_from_slice(b"\r\n\r\n5\r\n"),
        }
    }
    let target = format!("/{}/{nonce}", random.choose(&["a", "b/c", "d%20e", "%2e%2e%2fx", "q?a=b&c=%22"]));
    let mut fields = vec![format!("X-Nonce: {nonce}"), format!("hOsT: h{}.example", random.below(9))];
    for more in [
        "Accept: */*",
        "Cookie: a=b; c=d",
        "X-Empty:",
        "x-mIxEd: \t spaces  ",
        "Connection: keep-alive, x-hop",
        "X-Hop: gone",
    ] {
        if random.percent(40) {
            fields.push(more.to_owned());
        }
    }
    let chunked = with_body && random.percent(50);
    if chunked {
        fields.push(
            random
                .choose(&[
                    "Transfer-Encoding: chunked",
                    "transfer-encoding:chunked",
                    "Transfer-Encoding: Chunked",
                ])
                .to_owned(),
        );
    } else if with_body || random.percent(10) {
        fields.push(format!("Content-Length: {}", body.len()));
    }
    for i in (1..fields.len()).rev() {
        fields.swap(i, random.below(i + 1));
    }
    let mut raw = format!("{method} {target} HTTP/1.1\r\n{}\r\n\r\n", fields.join("\r\n")).into_bytes();
    if chunked {
        for piece in body.chunks(random.below(700) + 1) {
            let size = match random.below(4) {
                0 => format!("{:X}", piece.len()),
                1 => format!("000{:x}", piece.len()),
                2 => format!("{:x};name=\"a b\"", piece.len()),
                _ => format!("{:x}", piece.len()),
            };
            raw.extend_from_slice(format!("{size}\r\n").as_bytes());
            raw.extend_from_slice(piece);
            raw.extend_from_slice(b"\r\n");
        }
        raw.extend_from_slice(
            random.choose(&["0\r\n\r\n", "00\r\n\r\n", "0\r\nX-Trailer: 1\r\n\r\n"]).as_bytes(),
        );
    } else {
        raw.extend_from_slice(&body);
    }
    Sent { line: printed(method, &target, &nonce, &body), nonce, method, hash: fnv(&body), raw }
}

/// Requests that are refused: what follows them on the connection is not read as requests.
const REFUSED: &[&str] = &[
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: 4\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0_\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
    "GET / HTTP/1.1\nHost: h\n\n",
    "GET /#x HTTP/1.1\r\nHost: h\r\n\r\n",
];

/// What was asked and what may have become of it.
#[derive(Default)]
struct Book {
    /// By nonce: how it must arrive, and whether it must.
    sent: HashMap<String, (String, Arrives)>,
    wrong: Vec<String>,
    answered: usize,
}

impl Book {
    /// Notes how these requests arrive, instead of what was noted of them before.
    fn note(&mut self, sent: &[Sent], arrives: Arrives) {
        self.sent.extend(sent.iter().map(|one| (one.nonce.clone(), (one.line.clone(), arrives))));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrives {
    Surely,
    Perhaps,
    Never,
}

/// One client: batches of requests on one connection, until it has had enough.
fn client(weir: &Weir, book: &Mutex<Book>, number: usize) {
    let mut random = Random::new(0xc11e + number as u64);
    let mut stream = weir.client();
    for batch in 0..random.below(5) + 1 {
        let count = [1, 1, 1, 2, 4, 9][random.below(6)];
        let sent: Vec<Sent> =
            (0..count).map(|i| make(&mut random, format!("n{number}-{batch}-{i}"))).collect();
        let fate = random.below(100);
        if fate < 10 {
            // Cut off in the middle of the last one, or gone before the answers have come.
            let last = sent[sent.len() - 1].raw.len();
            let cut = if fate < 5 { random.below(last - 1) + 1 } else { 0 };
            return leave(stream, &sent, cut, book, &mut random);
        }
        book.lock().expect("no panic").note(&sent, Arrives::Surely);
        let mut bytes = join(&sent);
        let refused = fate < 20;
        if refused {
            bytes.extend_from_slice(REFUSED[random.below(REFUSED.len())].as_bytes());
            bytes.extend_from_slice(b"GET /evil HTTP/1.1\r\nHost: h\r\nX-Nonce: evil\r\n\r\n");
        }
        let sending = send(&mut stream, &bytes, &mut random);
        if !read_answers(&mut stream, &sent, book, &sending) {
            return;
        }
        if refused {
            return read_refusal(&mut stream, book);
        }
    }
}

fn join(sent: &[Sent]) -> Vec<u8> {
    sent.iter().flat_map(|one| &one.raw).copied().collect()
}

/// Sends all but the last `cut` bytes, and goes without having read an answer.
fn leave(mut stream: Stream, sent: &[Sent], cut: usize, book: &Mutex<Book>, random: &mut Random) {
    {
        let mut book = book.lock().expect("no panic");
        book.note(sent, Arrives::Perhaps);
        if cut > 0 {
            book.note(&sent[sent.len() - 1..], Arrives::Never);
        }
    }
    let bytes = join(sent);
    let _ = stream.send(&bytes[..bytes.len() - cut]);
    pause(random.below(10) as u64);
    if random.percent(50) { stream.reset() } else { drop(stream) }
}

/// Sends bytes at once, or in two parts with a pause between them.
fn send(stream: &mut Stream, bytes: &[u8], random: &mut Random) -> Result<(), Fault> {
    let cut = if random.percent(30) { random.below(bytes.len()) } else { 0 };
    stream.send(&bytes[..cut])?;
    pause(u64::from(cut > 0) * 3);
    stream.send(&bytes[cut..])
}

/// Reads the answers to requests; returns whether the connection is still open behind them.
fn read_answers(stream: &mut Stream, sent: &[Sent], book: &Mutex<Book>, sending: &Result<(), Fault>) -> bool {
    for (i, one) in sent.iter().enumerate() {
        let got = stream.response(one.method);
        let mut book = book.lock().expect("no panic");
        match got {
            Ok(answer) => {
                let closes = answer.closes() || answer.framing == Framing::Close;
                if let Some(why) = other(&answer, one) {
                    book.wrong.push(format!("{}: {why}", one.line));
                }
                book.answered += 1;
                if closes {
                    book.note(&sent[i + 1..], Arrives::Perhaps);
                    return false;
                }
            }
            Err(fault) => {
                book.wrong.push(format!("{}: {fault:?} instead of an answer, sending {sending:?}", one.line));
                return false;
            }
        }
    }
    true
}

/// Reads the answer to a request that is to be refused, and the end of the connection.
fn read_refusal(stream: &mut Stream, book: &Mutex<Book>) {
    let last = stream.response("GET").map(|a| (a.status(), a.closes()));
    if last != Ok((400, true)) || stream.ending() != Fault::End {
        let wrong = format!("{last:?} to a request that is to be refused");
        book.lock().expect("no panic").wrong.push(wrong);
    }
}

/// Why an answer is not the one to this request.
fn other(answer: &Message, to: &Sent) -> Option<String> {
    let body = answer.body_text();
    let right = answer.status() == 200
        && answer.all("x-nonce") == [to.nonce.as_str()]
        && answer.cut.is_none()
        && (to.method == "HEAD" || body.starts_with(&format!("{} {} ", to.nonce, to.hash)));
    (!right).then(|| {
        format!(
            "{} {:?} {:?} {:?}",
            answer.line,
            answer.all("x-nonce"),
            &body[..body.len().min(60)],
            answer.cut
        )
    })
}

#[test]
fn every_parser_finds_exactly_what_was_sent() {
    let recorded: Arc<Mutex<Vec<Recording>>> = Arc::default();
    let keeping = recorded.clone();
    let origin = Origin::new(move |peer| record(peer, &keeping));
    let weir = Weir::before(&format!("server(addr = \"{}\")", origin.addr()));
    let book = Mutex::new(Book::default());
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (weir, book) = (&weir, &book);
            scope.spawn(move || (worker..CONNECTIONS).step_by(WORKERS).for_each(|n| client(weir, book, n)));
        }
    });
    drop(weir);
    assert!(until(|| origin.open() == 0));
    let book = book.into_inner().expect("no panic");
    let recorded = std::mem::take(&mut *recorded.lock().expect("no panic"));
    let mut wrong = book.wrong;
    wrong.extend(missing_or_more(&book.sent, &recorded));
    let said = parsers_agree("parsers", &recorded, &mut wrong);
    tell(&format!(
        "parsers: {} requests sent, {} answered, {} connections to the origin: {said}",
        book.sent.len(),
        book.answered,
        recorded.len(),
    ));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert!(book.answered > CONNECTIONS, "{} answers are too few to say something", book.answered);
}

/// The same streams with bytes changed, left out and doubled: however weir forwards them, there is one way to read it.
#[test]
fn what_is_made_of_broken_requests_has_one_meaning() {
    const BYTES: &[u8] = b"\0\t\n\r :;,09afF\"#/?xX\x7f\x80\xff";
    let recorded: Arc<Mutex<Vec<Recording>>> = Arc::default();
    let keeping = recorded.clone();
    let origin = Origin::new(move |peer| record(peer, &keeping));
    let mut weir =
        Weir::set("body_timeout = 1*s, head_timeout = 1*s", &format!("server(addr = \"{}\")", origin.addr()));
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let weir = &weir;
            scope.spawn(move || {
                for number in (worker..CONNECTIONS).step_by(WORKERS) {
                    let mut random = Random::new(0xbad + number as u64);
                    let mut bytes: Vec<u8> =
                        (0..3).flat_map(|i| make(&mut random, format!("m{number}-{i}")).raw).collect();
                    if number == 0 {
                        // A field may have bytes above 0x7f (RFC 9110 section 5.5), whatever chance brings.
                        bytes.splice(0..0, *b"GET / HTTP/1.1\r\nHost: h\r\nX-Nonce: m\x80\xff\r\n\r\n");
                    }
                    // Heads are where it matters: most changes are near the beginning.
                    for _ in 0..random.below(3) + 1 {
                        let near = if random.percent(70) { bytes.len().min(400) } else { bytes.len() };
                        let at = random.below(near);
                        match random.below(4) {
                            0 => drop(bytes.remove(at)),
                            1 => bytes.insert(at, BYTES[random.below(BYTES.len())]),
                            2 => bytes.insert(at, bytes[at]),
                            _ => bytes[at] = BYTES[random.below(BYTES.len())],
                        }
                    }
                    let mut client = weir.client();
                    let _ = client.send(&bytes);
                    client.ends_within(Duration::from_millis(40));
                }
            });
        }
    });
    weir.assert_alive();
    drop(weir);
    assert!(until(|| origin.open() == 0));
    let recorded = std::mem::take(&mut *recorded.lock().expect("no panic"));
    let mut wrong = Vec::new();
    let said = parsers_agree("broken", &recorded, &mut wrong);
    let found: usize = recorded.iter().map(|r| r.lines.len() - 1).sum();
    tell(&format!("parsers: {found} requests from broken ones: {said}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > CONNECTIONS / 4, "{found}");
}

/// Every parser finds what our own has found, and nothing is malformed. What could not be run is reported.
fn parsers_agree(name: &str, recorded: &[Recording], wrong: &mut Vec<String>) -> String {
    let scratch = Scratch::new(name);
    let files: Vec<String> =
        recorded.iter().enumerate().map(|(i, r)| scratch.file(&format!("{i}.bin"), &r.bytes)).collect();
    let own = recorded.iter().flat_map(|r| &r.lines);
    wrong.extend(own.filter(|line| line.starts_with("malformed")).cloned());
    let (mut ran, mut skipped) = (1, Vec::new());
    for (name, found) in [("h11", h11(&files)), ("llhttp", llhttp(&files)), ("Go", go(&files, &scratch))] {
        match found {
            Err(why) => skipped.push(format!("{name} ({why})")),
            Ok(found) => {
                ran += 1;
                let found: Vec<&str> = found.lines().collect();
                let found: Vec<&[&str]> = found.split_inclusive(|line| is_ending(line)).collect();
                assert_eq!(found.len(), recorded.len(), "{name} reads all files");
                for (found, own) in found.iter().zip(recorded) {
                    if *found != own.lines && !is_unknown_method(found, &own.lines) {
                        let differs = found.iter().zip(&own.lines).find(|(f, own)| f != own);
                        wrong.push(format!(
                            "{name} reads {} lines, we {}: {differs:?}",
                            found.len(),
                            own.lines.len()
                        ));
                    }
                }
            }
        }
    }
    let why = if skipped.is_empty() { String::new() } else { format!(": {}", skipped.join(", ")) };
    format!("ran {ran}, skipped {}{why}", skipped.len())
}

/// The last line of a connection.
fn is_ending(line: &str) -> bool {
    line == "end" || line == "cut" || line.starts_with("malformed")
}

/// llhttp knows the methods that are registered, and stops at others, which are lawful.
fn is_unknown_method(found: &[&str], own: &[String]) -> bool {
    let Some((&"malformed HPE_INVALID_METHOD", same)) = found.split_last() else { return false };
    let next = own.get(same.len()).and_then(|line| line.split(' ').next()).unwrap_or_default();
    own.starts_with(&same.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
        && !["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].contains(&next)
}

/// What arrived against what was sent: each request once, unchanged; a GET may come twice, as it may be sent again.
fn missing_or_more(sent: &HashMap<String, (String, Arrives)>, recorded: &[Recording]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut arrived: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in
        recorded.iter().flat_map(|r| &r.lines).filter(|l| l.contains(' ') && !l.starts_with("malformed"))
    {
        arrived.entry(line.split(' ').nth(2).unwrap_or_default()).or_default().push(line);
    }
    for (nonce, lines) in &arrived {
        let Some((line, arrives)) = sent.get(*nonce) else {
            wrong.push(format!("nobody sent {lines:?}"));
            continue;
        };
        let most = if line.starts_with("POST") || line.starts_with("PATCH") { 1 } else { 2 };
        if *arrives == Arrives::Never {
            wrong.push(format!("{line} was cut off and arrived whole"));
        } else if lines.len() > most || lines.iter().any(|l| l != line) {
            wrong.push(format!("{line} arrived as {lines:?}"));
        }
    }
    for (nonce, (line, arrives)) in sent {
        if *arrives == Arrives::Surely && !arrived.contains_key(nonce.as_str()) {
            wrong.push(format!("{line} never arrived"));
        }
    }
    wrong
}

/// What a program prints, or why it cannot be had.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|e| format!("{program}: {e}"))?;
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn here(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program whose presence `probe` has shown: from then on, failing is a failure.
fn surely(program: &str, before: &[&str], files: &[String]) -> String {
    output(Command::new(program).args(before).args(files)).unwrap_or_else(|why| panic!("{program}: {why}"))
}

fn h11(files: &[String]) -> Result<String, String> {
    let has = |python: &&str| output(Command::new(python).args(["-c", "import h11"])).is_ok();
    // The system's own, where a package of the system brings it, need not be the first in the path.
    let python =
        ["python3", "/usr/bin/python3"].into_iter().find(has).ok_or("no python3 has the module h11")?;
    Ok(surely(python, &[&here("parse_h11.py")], files))
}

fn llhttp(files: &[String]) -> Result<String, String> {
    output(Command::new("node").arg("--version"))?;
    Ok(surely("node", &[&here("parse_node.mjs")], files))
}

fn go(files: &[String], scratch: &Scratch) -> Result<String, String> {
    output(Command::new("go").arg("version"))?;
    let program = scratch.path("parse");
    output(Command::new("go").args(["build", "-o", &program, &here("parse.go")]))?;
    Ok(surely(&program, &[], files))
}
