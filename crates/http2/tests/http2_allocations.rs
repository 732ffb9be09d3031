//! What a connection takes of memory: nothing on the heap at rest, and for a request no more than its stream.

use weir_http2::{
    Block, Config, Connection, Event, Field, FieldSink, Pseudo, PseudoMarks, RequestLine, Role, Scratch,
};
use weir_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Nothing;

impl FieldSink for Nothing {
    fn begin(&mut self, _stream: u32, _block: Block) {}
    fn pseudo(&mut self, _pseudo: Pseudo, _field: Field<'_>) {}
    fn field(&mut self, _field: Field<'_>) {}
}

struct Pair {
    client: Connection,
    server: Connection,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    scratch: Scratch,
}

const LINE: RequestLine<'_> = RequestLine {
    method: b"POST",
    scheme: Some(b"https"),
    authority: Some(b"example.org"),
    path: Some(b"/path"),
    protocol: None,
    marks: PseudoMarks::NONE,
};

impl Pair {
    /// Delivers what was written; passes all bodies on.
    fn deliver(&mut self) {
        for (bytes, to) in [(&mut self.to_server, &mut self.server), (&mut self.to_client, &mut self.client)]
        {
            let mut at = 0;
            loop {
                let received = to.receive(0, &bytes[at..], &mut Nothing, &mut self.scratch);
                at += received.used;
                match received.event {
                    None => break,
                    Some(Event::Data { stream, range, .. }) => to.release(stream, range.len()),
                    Some(Event::Failed(error)) => panic!("{error}"),
                    Some(_) => {}
                }
            }
            bytes.clear();
        }
        self.client.write(0, &mut self.to_server);
        self.server.write(0, &mut self.to_client);
    }

    /// A request with this body, and an answer with another.
    fn exchange(&mut self, frames: usize) {
        let field = Field { name: b"x-same", value: b"value", is_sensitive: false };
        let out = &mut self.to_server;
        let stream = self.client.send_request(0, &LINE, [field], false, out).expect("free");
        self.client.set_pending(stream, 1000 * frames as u64, true);
        for _ in 0..frames {
            let turn = self.client.next_data(0, 1000, &mut self.to_server).expect("a turn");
            self.to_server.resize(self.to_server.len() + turn.length, 0);
            self.deliver();
        }
        self.server.send_answer(0, stream, 200, [field], false, &mut self.to_client).expect("open");
        self.server.set_pending(stream, 1000 * frames as u64, true);
        for _ in 0..frames {
            let turn = self.server.next_data(0, 1000, &mut self.to_client).expect("a turn");
            self.to_client.resize(self.to_client.len() + turn.length, 0);
            self.deliver();
        }
        self.server.finish(0, stream);
        self.client.finish(0, stream);
        self.deliver();
    }
}

#[test]
fn nothing_for_a_frame_and_nothing_at_rest() {
    let mut pair = Pair {
        client: Connection::new(Role::Client, Config::CLIENT),
        server: Connection::new(Role::Server, Config::SERVER),
        to_server: Vec::with_capacity(100_000),
        to_client: Vec::with_capacity(100_000),
        scratch: Scratch::default(),
    };
    for _ in 0..5 {
        pair.exchange(5);
    }
    let count = |pair: &mut Pair, frames| {
        let before = CountingAllocator::count();
        pair.exchange(frames);
        CountingAllocator::count() - before
    };
    let few = count(&mut pair, 1);
    // The streams of both sides, and the list of those that send.
    assert!(few <= 8, "{few} allocations");
    // A hundred frames more need none but for lists of what is owed.
    let many = count(&mut pair, 30);
    assert!(many <= few + 4, "{few}, then {many} allocations");
    assert_eq!((pair.client.footprint(), pair.server.footprint()), (0, 0));
    assert!(size_of::<Connection>() <= 768, "{} bytes", size_of::<Connection>());
}
