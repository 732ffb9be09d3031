//! hyper as a second opinion on requests: both agree where each ends and what it says, or ours refuses.

use crate::generate::request;
use crate::way::{Event, Setup, at_once};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_testkit::Random;

/// A connection whose other end has sent everything at once and then its end, and swallows what it gets.
pub struct Wire {
    pub bytes: Vec<u8>,
    pub at: usize,
    /// Nothing comes before something was written.
    pub after_write: bool,
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.after_write {
            return Poll::Pending;
        }
        let n = buf.remaining().min(self.bytes.len() - self.at);
        let at = self.at;
        buf.put_slice(&self.bytes[at..at + n]);
        self.at += n;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.after_write = false;
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[derive(Debug, PartialEq, Eq, Clone)]
struct Message {
    method: String,
    target: String,
    body: Vec<u8>,
}

/// The whole requests that hyper reads from the stream.
fn by_hyper(bytes: &[u8]) -> Vec<Message> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let note = seen.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let note = note.clone();
        async move {
            let (head, body) = request.into_parts();
            if let Ok(body) = body.collect().await {
                let target = head.uri.path_and_query().map_or("/", |p| p.as_str());
                let target = if target == "*" { "/" } else { target }.to_string();
                note.borrow_mut().push(Message {
                    method: head.method.to_string(),
                    target,
                    body: body.to_bytes().to_vec(),
                });
            }
            Ok::<_, Infallible>(hyper::Response::new(Empty::<Bytes>::new()))
        }
    });
    let wire = Wire { bytes: bytes.to_vec(), at: 0, after_write: false };
    let connection =
        hyper::server::conn::http1::Builder::new().half_close(true).serve_connection(wire, service);
    let mut connection = pin!(connection);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..200 {
        if connection.as_mut().poll(&mut context).is_ready() {
            break;
        }
    }
    seen.borrow().clone()
}

/// The same from what weir passed on.
fn by_weir(bytes: &[u8]) -> Vec<Message> {
    let events = at_once(&Setup::plain(), false, bytes);
    events
        .iter()
        .filter_map(|e| match e {
            Event::Whole { out, .. } => {
                let text: String = out.iter().map(|&b| char::from(b)).collect();
                let (head, rest) = text.split_once("\r\n\r\n")?;
                let mut words = head.split(' ');
                let (method, mut target) = (words.next()?.to_string(), words.next()?.to_string());
                // `OPTIONS http://h` means `*` (RFC 9112 §3.2.4), which hyper's Uri cannot say.
                if target == "*" {
                    target = "/".into();
                }
                let body = match rest.split_once("\r\n") {
                    Some((size, rest)) if head.contains("\r\nTransfer-Encoding: chunked") => {
                        let n = usize::from_str_radix(size, 16).ok()?;
                        rest[..if n == 0 { 0 } else { rest.char_indices().nth(n)?.0 }].to_string()
                    }
                    _ => rest.to_string(),
                };
                Some(Message { method, target, body: body.chars().map(|c| c as u8).collect() })
            }
            _ => None,
        })
        .collect()
}

#[test]
fn agree_or_ours_refuses() {
    let (mut agreed, mut refused) = (0, 0);
    for seed in 0..60_000 {
        let mut random = Random::new(seed);
        let mut bytes = request(&mut random);
        random.mutate(&mut bytes, 2);
        bytes.extend_from_slice(b"POST /next HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nnext");
        let (ours, theirs) = (by_weir(&bytes), by_hyper(&bytes));
        if ours.is_empty() {
            refused += 1;
            continue;
        }
        agreed += 1;
        assert!(
            theirs.len() >= ours.len() && ours == theirs[..ours.len()],
            "seed {seed}:\n{}\nours {ours:#?}\nhyper's {theirs:#?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    assert!(agreed > 20_000 && refused > 5_000, "{agreed} agreed, {refused} refused");
}
