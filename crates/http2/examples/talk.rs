//! Prints the frames of one request through the codec, in both roles: `cargo run --example talk -p weir-http2`.

use weir_http2::{Config, Connection, Event, Field, Head, PREFACE, PseudoMarks, RequestLine, Role, Scratch};

fn main() {
    let mut client = Connection::new(Role::Client, Config::CLIENT);
    let mut server = Connection::new(Role::Server, Config::SERVER);
    let (scheme, host, path) = (Some(&b"https"[..]), Some(&b"example.org"[..]), Some(&b"/hello"[..]));
    let line = RequestLine {
        method: b"GET",
        scheme,
        authority: host,
        path,
        protocol: None,
        marks: PseudoMarks::NONE,
    };
    let field = |name, value| Field { name, value, is_sensitive: false };

    // The request leaves together with the preface and SETTINGS.
    let (mut out, fields) = (Vec::new(), [field(b"accept", b"text/plain")]);
    let stream = client.send_request(0, &line, fields, true, &mut out).expect("the first stream is free");
    carry("client", &out, &mut server);

    // The answer: control frames, its head, and as much of its body as the schedule grants.
    let (mut out, body, fields) = (Vec::new(), b"Hello, world", [field(b"content-type", b"text/plain")]);
    server.write(0, &mut out);
    server.send_answer(0, stream, 200, fields, false, &mut out).expect("the stream is open");
    server.set_pending(stream, body.len() as u64, true);
    while let Some(turn) = server.next_data(0, 64 * 1024, &mut out) {
        out.extend_from_slice(&body[..turn.length]);
    }
    server.finish(0, stream);
    carry("server", &out, &mut client);

    // Its body was passed on, and both ends are at rest.
    let mut out = Vec::new();
    client.release(stream, body.len());
    client.finish(0, stream);
    client.write(0, &mut out);
    carry("client", &out, &mut server);
    println!("at rest: {} bytes, and {} on the heap", size_of::<Connection>(), client.footprint());
}

/// Prints the frames that one end has written, and the events that they are at the other.
fn carry(name: &str, sent: &[u8], to: &mut Connection) {
    let mut rest = sent.strip_prefix(PREFACE).unwrap_or(sent);
    while let [_, a, b, kind, flags, _, _, _, stream, ..] = rest {
        let names = ["DATA", "HEADERS", "", "RST_STREAM", "SETTINGS", "", "PING", "GOAWAY", "WINDOW_UPDATE"];
        let (kind, length) = (names[usize::from(*kind)], usize::from(*a) << 8 | usize::from(*b));
        println!("{name}: {kind}, {length} bytes, flags {flags:#x}, stream {stream}");
        rest = &rest[9 + length..];
    }
    let (mut at, mut head, mut scratch) = (0, Head::default(), Scratch::default());
    loop {
        let received = to.receive(0, &sent[at..], &mut head, &mut scratch);
        at += received.used;
        let Some(event) = received.event else { return };
        println!("    {event:?}");
        if let Event::Request { .. } | Event::Answer { .. } = event {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            head.fields().for_each(|f| println!("      {}: {}", text(f.name), text(f.value)));
        }
    }
}
