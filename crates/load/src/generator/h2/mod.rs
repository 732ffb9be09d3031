//! HTTP/2: requests share connections, as many at once as the server accepts; then another connection is made.

mod conn;

use super::job::Job;
use super::{Generator, OpenConnection};
use crate::shape::Shape;
use conn::Conn;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::runtime::AfterOthers;
use weir_net::io::timers::has_ended;
use weir_net::transport::wire::Wire;
use weir_policy::Kind;

/// How often a request is sent again that the server has not processed (RFC 9113 §8.7): a server that is replaced
/// ends all of its connections at once, and the next of several may be at its end as well.
const MOST_AGAIN: u32 = 8;

/// Open connections, and the number being made.
#[derive(Default)]
pub(crate) struct Connections {
    standing: RefCell<Vec<Rc<Conn>>>,
    making: Cell<usize>,
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
fn begin(g: &Rc<Generator>, conn: Rc<Conn>, job: Job, was_free: bool) {
    conn.streams.set(conn.streams.get() + 1);
    g.core.runtime.spawn(request(g.clone(), conn, job, was_free));
}

async fn request(g: Rc<Generator>, conn: Rc<Conn>, mut job: Job, was_free: bool) {
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
        Ok((conn, mut turn, open)) => {
            g.lanes[lane].h2.standing.borrow_mut().push(conn.clone());
            begin(&g, conn.clone(), job, false);
            while conn.has_room() {
                let Some(next) = g.next(lane) else { break };
                begin(&g, conn.clone(), next, false);
            }
            poll_fn(|cx| conn.poll(cx, &mut turn)).await;
            drop(open);
            // The requests that it carried fail by themselves.
            g.core.runtime.next_turn().await;
            g.lanes[lane].h2.standing.borrow_mut().retain(|other| !Rc::ptr_eq(other, &conn));
        }
    }
    g.on_closed();
}

/// A connection whose server has announced how many requests it accepts at once.
async fn open(g: &Rc<Generator>, job: &Job) -> Result<(Rc<Conn>, AfterOthers, OpenConnection), Failure> {
    let (socket, open) = g.connect(job).await.map_err(Failure::With)?;
    let mut limit = Some(g.limit(job));
    let wire = Wire::new(socket, g.core.buffers.clone());
    let conn = Conn::new(&g.core, wire, g.tls.is_some());
    let mut turn = AfterOthers::default();
    poll_fn(|cx| match conn.poll(cx, &mut turn) {
        // A server that drains says GOAWAY with its first frames.
        Poll::Ready(()) if conn.has_settings() => Poll::Ready(Err(Failure::Unprocessed)),
        Poll::Ready(()) => Poll::Ready(Err(refused(g))),
        Poll::Pending if conn.has_settings() && conn.has_room() => Poll::Ready(Ok(())),
        Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(Err(Failure::With(Kind::Timeout))),
        Poll::Pending => Poll::Pending,
    })
    .await?;
    Ok((conn, turn, open))
}

fn refused(g: &Generator) -> Failure {
    let why = || "the server does not speak HTTP/2".to_owned();
    g.tally.borrow_mut().no_connection.get_or_insert_with(why);
    Failure::With(Kind::ConnectFailed)
}

/// Why a request has no answer.
#[derive(Clone, Copy)]
enum Failure {
    /// The server reports that it did nothing with it.
    Unprocessed,
    With(Kind),
}

/// Sends a request and reads its answer.
async fn exchange(g: &Generator, conn: &Rc<Conn>, job: &Job) -> Result<u16, Failure> {
    let shape: &Shape = &g.shapes[job.request.kind as usize];
    let sender = job.request.sender.as_deref();
    let mut head = g.core.buffers.small();
    shape.write(&g.said(job), &mut head);
    let begun = conn.begin(&head, shape.body_bytes, g.cookies.are_kept(sender));
    g.core.buffers.keep_small(head);
    let in_flight = begun.ok_or(Failure::Unprocessed)?;
    let mut limit = Some(g.limit(job));
    let went = poll_fn(|cx| match in_flight.poll(cx) {
        Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(Err(Failure::With(Kind::Timeout))),
        polled => polled,
    })
    .await;
    for cookie in in_flight.take_cookies() {
        g.cookies.give(sender, &cookie);
    }
    went
}
