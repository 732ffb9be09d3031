//! Prints the frames of one request through the codec, in both roles: `cargo run --example talk -p weir-http2`.

use weir_http2::{Block, Config, Connection, Event, Field, FieldSink, Pseudo, RequestLine, Role, Scratch};

/// Prints heads, field by field.
struct Printer;

impl FieldSink for Printer {
    fn begin(&mut self, stream: u32, block: Block) {
        println!("    {block:?} on stream {stream}:");
    }
    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]) {
        println!("      {pseudo:?} is {}", String::from_utf8_lossy(value));
    }
    fn field(&mut self, field: Field<'_>) {
        println!("      {}: {}", String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.value));
    }
}

/// Sends what one end has written to the other, and prints the frames; returns the events that follow.
fn carry(name: &str, sent: &[u8], to: &mut Connection) -> Vec<Event> {
    let preface = if sent.starts_with(weir_http2::PREFACE) { weir_http2::PREFACE.len() } else { 0 };
    let mut rest = &sent[preface..];
    while let [_, a, b, kind, flags, _, _, _, stream, ..] = rest {
        let length = usize::from(*a) << 8 | usize::from(*b);
        let names =
            ["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY"];
        let kind = names.get(usize::from(*kind)).unwrap_or(&"WINDOW_UPDATE");
        println!("{name} sends {kind}, {length} bytes, flags {flags:#x}, stream {stream}");
        rest = &rest[9 + length..];
    }
    let (mut events, mut at, mut scratch) = (Vec::new(), 0, Scratch::default());
    loop {
        let received = to.receive(0, &sent[at..], &mut Printer, &mut scratch);
        at += received.used;
        let Some(event) = received.event else { return events };
        println!("    {event:?}");
        events.push(event);
    }
}

fn main() {
    let mut client = Connection::new(Role::Client, Config::CLIENT);
    let mut server = Connection::new(Role::Server, Config::SERVER);
    let line = RequestLine {
        method: b"GET",
        scheme: Some(b"https"),
        authority: Some(b"example.org"),
        path: Some(b"/hello"),
        protocol: None,
    };
    let accept = Field { name: b"accept", value: b"text/plain", is_sensitive: false };

    // The request leaves together with the preface and SETTINGS.
    let mut out = Vec::new();
    let stream = client.send_request(0, &line, [accept], true, &mut out).expect("the first stream is free");
    carry("The client", &out, &mut server);

    // The answer: control frames, its head, and as much of its body as the scheduler grants.
    let (mut out, body) = (Vec::new(), b"Hello, world");
    let kind = Field { name: b"content-type", value: b"text/plain", is_sensitive: false };
    server.write(0, &mut out);
    server.send_answer(0, stream, 200, [kind], false, &mut out).expect("the stream is open");
    server.set_pending(stream, body.len() as u64, true);
    while let Some(turn) = server.next_data(0, 64 * 1024, &mut out) {
        out.extend_from_slice(&body[..turn.length]);
    }
    server.finish(0, stream);
    carry("The server", &out, &mut client);

    // What was received was passed on; both ends are at rest.
    client.release(stream, body.len());
    client.finish(0, stream);
    let mut out = Vec::new();
    client.write(0, &mut out);
    carry("The client", &out, &mut server);
    println!("At rest: {} bytes each, and {} on the heap", size_of::<Connection>(), client.footprint());
}
