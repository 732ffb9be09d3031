//! One request and its answer: the head is checked, the nodes find an answer, the relay passes it on.

use crate::control::built_in;
use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::failure::{Failure, Why};
use crate::exchange::origin_reply::BrokenBody;
use crate::exchange::origin_reply::OriginReply;
use crate::exchange::{answer, failure_log, tunnel};
use crate::h1::server::write_limit::WriteLimit;
use crate::h1::server::{After, Conn};
use crate::io::runtime::AfterOthers;
use crate::log::Line;
use crate::nodes::{self, Answer, From, Holds, Own, Reply, Way};

use crate::transport::wire::Wire;
use smallvec::SmallVec;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_http1::{Client, Encoder, Framing, Here, Request, Version};
use weir_policy::Kind;
use weir_topology::plan::HalfClose;
use weir_topology::plan::fixed::MAX_READ_AHEAD_BYTES as AHEAD;

/// Serves a request by its head. `last`: the connection ends with it.
pub(crate) async fn exchange(lp: Rc<Loop>, conn: Rc<Conn>, request: Request, last: bool) -> After {
    let (lp, conn) = (&lp, &conn);
    let checked = match weir_http1::check_request(&request, &conn.hop()) {
        Ok(checked) => checked,
        Err(refusal) => {
            failure_log::refused(lp, conn, &request, refusal);
            return Box::pin(answer::refuse(lp, conn, Some(&request), refusal.status())).await;
        }
    };
    let is_too_large = match (request.framing(), conn.listener.http.max_body) {
        (Framing::Length(n), Some(most)) => n > most,
        _ => false,
    };
    let close = last || checked.close || !request.keep_alive();
    let here = checked.here;
    conn.deadline.set(None);
    let ex = Rc::new(Exchange::new(lp, conn.clone(), request, checked));
    let mut line = Line::new();
    let after = match here {
        _ if is_too_large => {
            (line.status, line.failure) = (413, Some(Kind::BadRequest));
            Box::pin(answer::fail(lp, &ex, Failure::client(413), true, &mut line)).await
        }
        Some(here) => {
            line.status = status_here(here);
            Box::pin(answer_here(lp, &ex, here, close, &mut line)).await
        }
        None => {
            let answered = find(lp, &ex).await;
            pass_on(lp, &ex, answered, close, &mut line).await
        }
    };
    lp.log(&ex, &line);
    if let Some(ex) = Rc::into_inner(ex) {
        lp.buffers.keep_request(ex.request);
    }
    after
}

/// The status of what weir answers itself.
fn status_here(here: Here) -> u16 {
    match here {
        Here::Options => 200,
        Here::Trace => 405,
    }
}

/// What weir answers itself without asking any node.
async fn answer_here(lp: &Rc<Loop>, ex: &Exchange, here: Here, close: bool, line: &mut Line) -> After {
    let status = status_here(here);
    match here {
        Here::Options => {
            let headers =
                vec![("Allow".to_owned(), "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS".to_owned())];
            let own = Own { status, headers, body: Rc::from(&b""[..]), by_server: false };
            answer::own(lp, ex, &own, close, line).await
        }
        Here::Trace => answer::fail(lp, ex, Failure::client(status), close, line).await,
    }
}

/// Runs the nodes, for as long as the client is there.
async fn find(lp: &Rc<Loop>, ex: &Rc<Exchange>) -> Answer {
    let conn = &ex.conn;
    if conn.listener.is_built_in() {
        Box::pin(read_all(lp, ex)).await?;
    }
    let mut way = Way::new(ex.draw);
    if conn.listener.is_built_in() {
        built_in::read_draw(&ex.request, &mut way);
        way.check = built_in::check_cost(&ex.request, lp.process.secret[0]);
    }
    let mut run = pin!(nodes::run(lp.clone(), ex.clone(), way, conn.listener.node));
    poll_fn(|cx| {
        if let Poll::Ready(answer) = run.as_mut().poll(cx) {
            return Poll::Ready(answer);
        }
        if has_gone(cx, ex) { Poll::Ready(Err(Failure::gone())) } else { Poll::Pending }
    })
    .await
}

/// Built-in servers read the whole body before they work.
async fn read_all(lp: &Rc<Loop>, ex: &Rc<Exchange>) -> Result<(), Failure> {
    while !ex.is_complete() {
        poll_fn(|cx| {
            ex.say_continue(cx);
            let mut body = ex.body.borrow_mut();
            match ex.poll_more(cx, lp, &mut body) {
                Poll::Ready(Ok(crate::exchange::More::Data(_, to))) => {
                    ex.conn.wire.borrow_mut().consume(to);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Ok(crate::exchange::More::End)) => Poll::Ready(Ok(())),
                Poll::Ready(Err(failure)) => Poll::Ready(Err(failure)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await?;
    }
    Ok(())
}

/// Whether the client has left: an end of stream after a whole request is its leaving, as nginx has it.
fn has_gone(cx: &mut Context<'_>, ex: &Exchange) -> bool {
    let conn = &ex.conn;
    if ex.body.try_borrow().is_ok_and(|body| body.complete) && conn.wire.borrow().input().len() < AHEAD {
        let mut wire = conn.wire.borrow_mut();
        loop {
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0)) => return ends_at_half_close(conn, &wire),
                Poll::Ready(Ok(_)) if wire.input().len() < AHEAD => {}
                Poll::Ready(Ok(_)) => break,
                Poll::Ready(Err(_)) => return true,
                Poll::Pending => {
                    // A few bytes ahead hold no large buffer for as long as the answer takes.
                    wire.shrink();
                    return false;
                }
            }
        }
    }
    // Bytes lie unread, so that an end shows to poll(2) only; asked now and then.
    let glance = conn.glance.get_or_init(|| conn.deadline.another(Some(0)));
    glance.ended(cx) && {
        glance.set(Some(crate::io::deadlines::TICK_NS));
        let _ = glance.ended(cx);
        let wire = conn.wire.borrow();
        wire.socket.is_hung_up() && ends_at_half_close(conn, &wire)
    }
}

fn ends_at_half_close(conn: &Conn, wire: &Wire) -> bool {
    conn.listener.http.half_close == HalfClose::Cancel || wire.socket.is_broken()
}

/// Sends the answer, whatever it is.
async fn pass_on(lp: &Rc<Loop>, ex: &Rc<Exchange>, answered: Answer, close: bool, line: &mut Line) -> After {
    match answered {
        Err(failure) if failure.kind == Kind::Cancelled => {
            line.left();
            After::Abort
        }
        Err(failure) => {
            line.status = failure.status;
            line.failure = Some(failure.kind);
            failure_log::failed(lp, ex, &failure);
            if ex.conn.listener.is_built_in() && failure.kind == Kind::Reset {
                return After::Abort;
            }
            let close = close || failure.is_clients() || lp.is_draining();
            Box::pin(answer::fail(lp, ex, failure, close, line)).await
        }
        Ok(Reply { from: From::Own(own), holds }) => {
            line.status = own.status;
            let after = answer::own(lp, ex, &own, close || lp.is_draining(), line).await;
            holds.finish((own.status >= 500).then_some(Kind::Status5xx), Some(own.status));
            after
        }
        Ok(Reply { from: From::Origin(reply), holds }) => {
            line.status = reply.response.status();
            match reply.response.status() {
                101 => Box::pin(upgrade(ex, reply, holds, line)).await,
                200..300 if ex.request.is_connect() => Box::pin(upgrade(ex, reply, holds, line)).await,
                _ => relay(lp, ex, reply, holds, close, line).await,
            }
        }
    }
}

/// Passes an origin's response on.
async fn relay(
    lp: &Rc<Loop>,
    ex: &Rc<Exchange>,
    mut reply: Box<OriginReply>,
    mut holds: Holds,
    close: bool,
    line: &mut Line,
) -> After {
    let close = close || !ex.is_complete() || lp.is_draining() || ex.conn.ending.get();
    ex.is_answered();
    let mut to = Client {
        version: ex.version(),
        head: ex.request.is_head(),
        te_trailers: ex.request.te_trailers(),
        close,
        keep_alive_10: false,
    };
    let body = weir_http1::body_to_client(&reply.response, to);
    to.close |= body == Framing::Close;
    to.keep_alive_10 = !to.close && to.version == Version::H10;
    let encoder = Encoder::new(body);
    {
        let mut wire = ex.conn.wire.borrow_mut();
        let date = lp.date();
        let out = wire.queue_to();
        let add: SmallVec<[(&str, &[u8]); 1]> =
            reply.add.iter().map(|(name, value)| (*name, &value[..])).collect();
        weir_http1::render_response(&reply.response, to, &reply.edits, &add, body, Some(&date), out);
    }
    let conn = ex.conn.clone();
    let body_from = conn.wire.borrow().queued();
    if body == Framing::Close {
        // However this ends, unless the body comes to its end.
        conn.wire.borrow().socket.end_in_reset(true);
    }
    let mut limit = WriteLimit::default();
    let relayed = poll_fn(|cx| {
        if reply.poll_upload(cx, lp, ex).is_err() {
            return Poll::Ready(Err(BrokenBody::Client));
        }
        let polled = reply.poll_body(cx, &mut conn.wire.borrow_mut(), &encoder, to.te_trailers);
        if polled.is_ready() {
            return polled;
        }
        {
            let wire = conn.wire.borrow();
            ex.waits_for_client(lp, wire.unsent() > 0);
            if limit.has_ended(cx, &conn, &wire) {
                return Poll::Ready(Err(BrokenBody::Client));
            }
        }
        if let Some((at, kind)) = holds.poll_broken(cx, lp, Some(ex)) {
            return Poll::Ready(Err(BrokenBody::Held(at, kind)));
        }
        if has_gone(cx, ex) { Poll::Ready(Err(BrokenBody::Client)) } else { Poll::Pending }
    })
    .await;
    let (status, passed) = (reply.response.status(), reply.passed);
    if matches!(relayed, Err(BrokenBody::Origin(..) | BrokenBody::Held(..))) {
        send_what_there_is(&conn).await;
    }
    let after = match relayed {
        Ok(()) => {
            holds.finish((status >= 500).then_some(Kind::Status5xx), Some(status));
            let complete = ex.is_complete();
            // The origin and what is held for it are free, however slowly the client takes the rest.
            reply.give_back(lp, ex);
            match (flush_quickly(lp, ex).await, to.close, complete) {
                (false, _, _) => {
                    line.left();
                    if body == Framing::Close { After::Reset } else { After::Abort }
                }
                (true, false, true) => After::Next,
                _ => {
                    if body == Framing::Close {
                        conn.wire.borrow().socket.end_in_reset(false);
                    }
                    ex.conn.end(complete, !ex.request.keep_alive())
                }
            }
        }
        Err(BrokenBody::Origin(kind, why)) => {
            line.failure = Some(kind);
            failure_log::broke_off(lp, ex, &reply.server, why, passed);
            holds.finish(Some(kind), None);
            // The client must see that the body was cut short.
            if body == Framing::Close { After::Reset } else { After::Abort }
        }
        Err(BrokenBody::Held(at, kind)) => {
            line.failure = Some(kind);
            failure_log::broke_off(lp, ex, &reply.server, Why::Held(kind), passed);
            holds.broken(at, kind, lp, ex, reply);
            if body == Framing::Close { After::Reset } else { After::Abort }
        }
        Err(BrokenBody::Client) => {
            line.left();
            holds.cancel(lp, ex, reply);
            if body == Framing::Close { After::Reset } else { After::Abort }
        }
    };
    // What was read ahead of the client and not taken by it was not sent.
    line.sent = passed.min(conn.wire.borrow().taken().saturating_sub(body_from));
    after
}

/// Of an answer that breaks off the client gets what had come, as far as its socket takes that.
async fn send_what_there_is(conn: &Conn) {
    poll_fn(|cx| {
        // Whether it is taken makes no difference: the connection ends.
        let _ = conn.wire.borrow_mut().poll_flush(cx);
        Poll::Ready(())
    })
    .await;
}

/// Sends what is left of an answer; `false` if the client does not take it. Nearly always one send does it.
async fn flush_quickly(lp: &Rc<Loop>, ex: &Exchange) -> bool {
    let mut turn = AfterOthers::default();
    let sent = poll_fn(|cx| {
        let mut wire = ex.conn.wire.borrow_mut();
        if wire.unsent() == 0 {
            return Poll::Ready(Some(true));
        }
        ready!(turn.poll(&lp.runtime, cx));
        match wire.poll_flush(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done.is_ok())),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await;
    match sent {
        Some(sent) => sent,
        None => Box::pin(flush(lp, ex)).await,
    }
}

/// Sends what the client has not taken yet; `false` if it does not.
async fn flush(lp: &Rc<Loop>, ex: &Exchange) -> bool {
    let conn = &ex.conn;
    let mut limit = WriteLimit::default();
    let sent = poll_fn(|cx| {
        {
            let mut wire = conn.wire.borrow_mut();
            if let Poll::Ready(done) = wire.poll_flush(cx) {
                return Poll::Ready(done.is_ok());
            }
            ex.waits_for_client(lp, true);
            if limit.has_ended(cx, conn, &wire) {
                return Poll::Ready(false);
            }
        }
        if has_gone(cx, ex) { Poll::Ready(false) } else { Poll::Pending }
    })
    .await;
    ex.waits_for_client(lp, false);
    sent
}

/// The connection belongs to what both sides agreed on.
async fn upgrade(ex: &Rc<Exchange>, mut reply: Box<OriginReply>, mut holds: Holds, line: &mut Line) -> After {
    holds.end_timeouts();
    let to =
        Client { version: ex.version(), head: false, te_trailers: false, close: false, keep_alive_10: false };
    {
        let mut wire = ex.conn.wire.borrow_mut();
        let out = wire.queue_to();
        let add: SmallVec<[(&str, &[u8]); 1]> =
            reply.add.iter().map(|(name, value)| (*name, &value[..])).collect();
        weir_http1::render_response(&reply.response, to, &reply.edits, &add, Framing::None, None, out);
    }
    let idle_ns = ex.conn.listener.http.tunnel_idle_ns;
    let (up_from, down_from) = (reply.conn.wire.queued(), ex.conn.wire.borrow().queued());
    let ended = tunnel::tunnel(&ex.conn, &mut reply.conn, idle_ns, &reply.cut).await;
    ex.body.borrow_mut().received += reply.conn.wire.queued().saturating_sub(up_from);
    line.sent = ex.conn.wire.borrow().taken().saturating_sub(down_from);
    if ended.is_err() {
        line.failure = Some(Kind::Reset);
    }
    holds.finish(None, Some(reply.response.status()));
    After::Close
}
