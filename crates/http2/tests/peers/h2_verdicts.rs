//! What our ends and those of the `h2` crate make of a peer's bytes: the fate of stream 3 beside stream 1.

use crate::pipe::{Half, Pipe};
use crate::wire::{GOAWAY, HEADERS, RST_STREAM, frames};
use bytes::Bytes;
use std::task::{Context, Poll, Waker};
use weir_http2::*;

/// What becomes of the stream, and of the others with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is a request as any other.
    Served,
    /// It is answered, as malformed.
    Answered,
    Reset(ErrorCode),
    /// The connection ends, and the request on stream 1 with it.
    Connection(ErrorCode),
    /// It is not heard of.
    Ignored,
}

/// What an end has written: the fate of stream 3, if it says so.
fn written(bytes: &[u8], mut fate: Fate) -> Fate {
    for frame in frames(bytes) {
        match frame.kind {
            GOAWAY if frame.number(4) != 0 => return Fate::Connection(ErrorCode(frame.number(4))),
            RST_STREAM if frame.stream == 3 => fate = Fate::Reset(ErrorCode(frame.number(0))),
            HEADERS if frame.stream == 3 && fate == Fate::Ignored => fate = Fate::Answered,
            _ => {}
        }
    }
    fate
}

/// Takes no notice of fields.
pub struct NoFields;

impl FieldSink for NoFields {
    fn begin(&mut self, _stream: u32, _block: Block) {}
    fn pseudo(&mut self, _pseudo: Pseudo, _field: Field<'_>) {}
    fn field(&mut self, _field: Field<'_>) {}
}

/// By our server.
pub fn our_server(bytes: &[u8], max_streams: u32) -> Fate {
    let mut conn = Connection::new(Role::Server, Config { max_streams, ..Config::SERVER });
    let (mut rest, mut out, mut fate) = (bytes, Vec::new(), Fate::Ignored);
    let mut scratch = Scratch::default();
    loop {
        let received = conn.receive(1, rest, &mut NoFields, &mut scratch);
        rest = &rest[received.used..];
        match received.event {
            None => break,
            Some(Event::Request { stream: 3, .. }) => fate = Fate::Served,
            Some(Event::Malformed { stream: 3, may_answer: true, .. }) => {
                conn.send_answer(1, 3, 400, [], true, &mut out).expect("it may be answered");
            }
            Some(Event::Reset { stream, .. }) => conn.finish(1, stream),
            _ => {}
        }
    }
    conn.write(1, &mut out);
    written(&out, fate)
}

/// By the server of the crate.
pub fn their_server(bytes: &[u8], max_streams: u32) -> Fate {
    let (incoming, outgoing) = (Half::default(), Half::default());
    incoming.borrow_mut().extend(bytes);
    let io = Pipe { incoming, outgoing: outgoing.clone(), most: usize::MAX };
    let cx = &mut Context::from_waker(Waker::noop());
    let mut handshake =
        Box::pin(h2::server::Builder::new().max_concurrent_streams(max_streams).handshake::<_, Bytes>(io));
    let Poll::Ready(Ok(mut connection)) = handshake.as_mut().poll(cx) else { panic!("a handshake") };
    let (mut fate, mut held) = (Fate::Ignored, Vec::new());
    for _ in 0..20 {
        if let Poll::Ready(Some(Ok((request, respond)))) = connection.poll_accept(cx) {
            if respond.stream_id().as_u32() == 3 {
                fate = Fate::Served;
            }
            held.push((request, respond));
        }
    }
    let bytes: Vec<u8> = outgoing.borrow_mut().drain(..).collect();
    written(&bytes, fate)
}

/// By our client, which has asked on both streams.
pub fn our_client(bytes: &[u8]) -> Fate {
    let mut conn = Connection::new(Role::Client, Config::CLIENT);
    let line = RequestLine {
        method: b"GET",
        scheme: Some(b"http"),
        authority: Some(b"h"),
        path: Some(b"/"),
        protocol: None,
        marks: PseudoMarks::NONE,
    };
    let (mut rest, mut out, mut fate) = (bytes, Vec::new(), Fate::Ignored);
    for _ in 0..2 {
        conn.send_request(1, &line, [], true, &mut out).expect("a stream is free");
    }
    let mut scratch = Scratch::default();
    loop {
        let received = conn.receive(1, rest, &mut NoFields, &mut scratch);
        rest = &rest[received.used..];
        match received.event {
            None => break,
            Some(Event::Answer { stream: 3, is_end, .. }) => {
                fate = Fate::Served;
                if is_end {
                    conn.finish(1, 3);
                }
            }
            Some(Event::Malformed { stream, .. } | Event::Reset { stream, .. }) => conn.finish(1, stream),
            _ => {}
        }
    }
    out.clear();
    conn.write(1, &mut out);
    written(&out, fate)
}

/// By the client of the crate.
pub fn their_client(bytes: &[u8]) -> Fate {
    let (incoming, outgoing) = (Half::default(), Half::default());
    let io = Pipe { incoming: incoming.clone(), outgoing: outgoing.clone(), most: usize::MAX };
    let cx = &mut Context::from_waker(Waker::noop());
    let mut handshake = Box::pin(h2::client::handshake(io));
    let Poll::Ready(Ok((mut requests, connection))) = handshake.as_mut().poll(cx) else {
        panic!("a handshake")
    };
    let mut connection = Box::pin(connection);
    let mut ask = || {
        let request = http::Request::get("http://h/").body(()).expect("a request");
        requests.send_request(request, true).expect("a stream is free").0
    };
    let (_first, mut second) = (ask(), ask());
    let _ = connection.as_mut().poll(cx);
    outgoing.borrow_mut().clear();
    incoming.borrow_mut().extend(bytes);
    let (mut fate, mut held) = (Fate::Ignored, Vec::new());
    for _ in 0..20 {
        let is_over = connection.as_mut().poll(cx).is_ready();
        if held.is_empty()
            && let Poll::Ready(answer) = std::pin::Pin::new(&mut second).poll(cx)
        {
            let reason = answer.as_ref().err().and_then(h2::Error::reason);
            fate = reason.map_or(Fate::Served, |reason| Fate::Reset(ErrorCode(reason.into())));
            held.push(answer);
        }
        if is_over {
            break;
        }
    }
    let bytes: Vec<u8> = outgoing.borrow_mut().drain(..).collect();
    written(&bytes, fate)
}
