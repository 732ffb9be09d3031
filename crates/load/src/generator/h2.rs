//! HTTP/2: requests share connections, as many at once as the server accepts; then another connection is made.

use super::Generator;
use super::job::Job;
use crate::shape::{Shape, piece};
use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::header::{HeaderValue, SET_COOKIE};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_net::io::timers::has_ended;
use weir_net::transport::wire::Wire;
use weir_plan::fixed::{H2_CONNECTION_WINDOW_BYTES, H2_STREAM_WINDOW_BYTES, MAX_RESPONSE_HEAD_BYTES};
use weir_policy::Kind;

/// Bytes of frames that may wait for the socket before no more are accepted.
const AHEAD: usize = 64 * 1024;

/// How often a request is sent again that the server has not processed (RFC 9113 §8.7): a server that is replaced
/// ends all of its connections at once, and the next of several may be at its end as well.
const MOST_AGAIN: u32 = 8;

/// Open connections, and the number being made.
#[derive(Default)]
pub(crate) struct Connections {
    standing: RefCell<Vec<Rc<Shared>>>,
    making: Cell<usize>,
}

/// A connection that requests share.
struct Shared {
    sender: SendRequest<Bytes>,
    streams: Cell<usize>,
    ending: Cell<bool>,
}

impl Shared {
    fn has_room(&self) -> bool {
        !self.ending.get() && self.streams.get() < self.sender.current_max_send_streams()
    }
}

/// Gives a request to the connection that carries the fewest.
pub(crate) fn send(g: &Rc<Generator>, job: Job) {
    let least = {
        let standing = g.lanes[job.lane].h2.standing.borrow();
        standing.iter().filter(|c| c.has_room()).min_by_key(|c| c.streams.get()).cloned()
    };
    if let Some(conn) = least {
        begin(g, conn, job, true);
    } else if g.lanes[job.lane].h2.making.get() == 0 && g.may_open() {
        g.lanes[job.lane].h2.making.set(1);
        g.core.runtime.spawn(connection(g.clone(), job));
    } else {
        if g.lanes[job.lane].h2.making.get() == 0 {
            g.tally.borrow_mut().waited += 1;
        }
        g.wait(job);
    }
}

/// Begins a request on a connection that has room. `was_free`: it did not wait for that.
fn begin(g: &Rc<Generator>, conn: Rc<Shared>, job: Job, was_free: bool) {
    conn.streams.set(conn.streams.get() + 1);
    g.core.runtime.spawn(request(g.clone(), conn, job, was_free));
}

async fn request(g: Rc<Generator>, conn: Rc<Shared>, mut job: Job, was_free: bool) {
    let lane = job.lane;
    g.on_sent(&mut job, was_free);
    let went = exchange(&g, &conn, &job).await;
    conn.streams.set(conn.streams.get() - 1);
    match went {
        Err(failure) => fail(&g, job, failure),
        Ok(status) => g.end(&job, &Ok(status)),
    }
    if conn.has_room()
        && let Some(next) = g.next(lane)
    {
        begin(&g, conn, next, false);
    }
    g.send_due();
}

/// Sends a request once more if the server has not processed it; otherwise it has failed.
fn fail(g: &Rc<Generator>, mut job: Job, failure: Failure) {
    match failure {
        Failure::Unprocessed if job.again < MOST_AGAIN => {
            g.tally.borrow_mut().again += 1;
            job.again += 1;
            g.send(job);
        }
        Failure::Unprocessed => g.end(&job, &Err(Kind::Reset)),
        Failure::With(kind) => g.end(&job, &Err(kind)),
    }
}

/// Makes a connection for a request, and drives it.
async fn connection(g: Rc<Generator>, job: Job) {
    let lane = job.lane;
    let made = open(&g, &job).await;
    g.lanes[lane].h2.making.set(0);
    match made {
        Err(failure) => fail(&g, job, failure),
        Ok((sender, connection)) => {
            let conn = Rc::new(Shared { sender, streams: Cell::new(0), ending: Cell::new(false) });
            g.lanes[lane].h2.standing.borrow_mut().push(conn.clone());
            begin(&g, conn.clone(), job, false);
            while conn.has_room() {
                let Some(next) = g.next(lane) else { break };
                begin(&g, conn.clone(), next, false);
            }
            drive(&g, &conn, connection).await;
            g.lanes[lane].h2.standing.borrow_mut().retain(|other| !Rc::ptr_eq(other, &conn));
        }
    }
    g.on_closed();
}

type Handshake = (SendRequest<Bytes>, Connection<Io, Bytes>);

/// A connection whose server has announced how many requests it accepts at once.
async fn open(g: &Generator, job: &Job) -> Result<Handshake, Failure> {
    let socket = g.connect(job).await.map_err(Failure::With)?;
    let mut limit = Some(g.limit(job));
    let wire = Wire::new(socket, g.core.buffers.clone());
    let (sender, mut connection) = settings().handshake(Io(wire)).await.map_err(|_| refused(g))?;
    poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        // A server that drains says GOAWAY with its first frames.
        Poll::Ready(Ok(())) if sender.current_max_send_streams() > 0 => {
            Poll::Ready(Err(Failure::Unprocessed))
        }
        Poll::Ready(_) => Poll::Ready(Err(refused(g))),
        Poll::Pending if sender.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
        Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(Err(Failure::With(Kind::Timeout))),
        Poll::Pending => Poll::Pending,
    })
    .await?;
    Ok((sender, connection))
}

fn refused(g: &Generator) -> Failure {
    let why = || "the server does not speak HTTP/2".to_owned();
    g.tally.borrow_mut().no_connection.get_or_insert_with(why);
    Failure::With(Kind::ConnectFailed)
}

async fn drive(g: &Rc<Generator>, conn: &Shared, mut connection: Connection<Io, Bytes>) {
    poll_fn(|cx| Pin::new(&mut connection).poll(cx)).await.ok();
    conn.ending.set(true);
    // The requests that it carried fail by themselves; their tasks hold the connection's last references.
    g.core.runtime.next_turn().await;
}

/// The settings that this side announces.
fn settings() -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(0)
        .initial_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(MAX_RESPONSE_HEAD_BYTES).unwrap_or(u32::MAX));
    builder
}

/// Why a request has no answer.
enum Failure {
    /// The server reports that it did nothing with it.
    Unprocessed,
    With(Kind),
}

impl Failure {
    fn from_h2(e: &h2::Error) -> Failure {
        match e.reason() {
            Some(Reason::REFUSED_STREAM) => Failure::Unprocessed,
            Some(Reason::NO_ERROR) if e.is_go_away() => Failure::Unprocessed,
            Some(Reason::PROTOCOL_ERROR | Reason::FRAME_SIZE_ERROR | Reason::COMPRESSION_ERROR)
                if !e.is_remote() =>
            {
                Failure::With(Kind::BadResponse)
            }
            _ => Failure::With(Kind::Reset),
        }
    }
}

/// Sends a request and reads its answer.
async fn exchange(g: &Generator, conn: &Shared, job: &Job) -> Result<u16, Failure> {
    let shape: &Shape = &g.shapes[job.request.kind as usize];
    let request = shape.request(&g.said(job));
    let sent = conn.sender.clone().send_request(request, shape.body_bytes == 0);
    let (answer, body) = match sent {
        Ok(sent) => sent,
        Err(_) => {
            conn.ending.set(true);
            return Err(Failure::Unprocessed);
        }
    };
    let mut limit = Some(g.limit(job));
    let sender = job.request.sender.as_deref();
    let given = g.cookies.are_kept(sender).then(Vec::new);
    let mut under_way = StreamInFlight { answer, status: 0, given, recv: None, body, left: shape.body_bytes };
    let went = poll_fn(|cx| match under_way.poll(cx) {
        Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(Err(Failure::With(Kind::Timeout))),
        polled => polled,
    })
    .await;
    for cookie in under_way.given.take().into_iter().flatten() {
        g.cookies.give(sender, cookie.as_bytes());
    }
    went
}

/// A request and its answer in flight; dropping it resets the stream.
struct StreamInFlight {
    answer: ResponseFuture,
    status: u16,
    /// The cookies of the answer, if they matter.
    given: Option<Vec<HeaderValue>>,
    recv: Option<h2::RecvStream>,
    body: SendStream<Bytes>,
    /// Bytes of the request's body that were not sent.
    left: u64,
}

impl StreamInFlight {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<u16, Failure>> {
        // A server may answer before it has read everything; that answer counts.
        let _ = self.poll_send(cx);
        if self.recv.is_none() {
            let answer = ready!(Pin::new(&mut self.answer).poll(cx)).map_err(|e| Failure::from_h2(&e))?;
            self.status = answer.status().as_u16();
            if let Some(given) = &mut self.given {
                given.extend(answer.headers().get_all(SET_COOKIE).iter().cloned());
            }
            self.recv = Some(answer.into_body());
        }
        let Some(recv) = &mut self.recv else { return Poll::Pending };
        while let Some(data) = ready!(recv.poll_data(cx)) {
            let n = data.map_err(|e| Failure::from_h2(&e))?.len();
            recv.flow_control().release_capacity(n).map_err(|e| Failure::from_h2(&e))?;
        }
        ready!(recv.poll_trailers(cx)).map_err(|e| Failure::from_h2(&e))?;
        Poll::Ready(Ok(self.status))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        while self.left > 0 {
            let mut next = piece(self.left);
            self.body.reserve_capacity(next.len());
            match ready!(self.body.poll_capacity(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(room) => next.truncate(room?),
            }
            self.left -= next.len() as u64;
            self.body.send_data(next, self.left == 0)?;
        }
        Poll::Ready(Ok(()))
    }
}

/// A connection's bytes as the `h2` crate expects them.
struct Io(Wire);

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = &mut self.0;
        if wire.input().is_empty() && ready!(wire.poll_fill(cx))? == 0 {
            return Poll::Ready(Ok(()));
        }
        let n = into.remaining().min(wire.input().len());
        into.put_slice(&wire.input()[..n]);
        wire.consume(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wire = &mut self.0;
        if wire.unsent() >= AHEAD {
            ready!(wire.poll_flush(cx))?;
        }
        wire.queue(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
