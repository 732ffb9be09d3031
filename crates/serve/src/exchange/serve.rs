//! One request and its answer: the head is checked, the nodes find an answer, the relay forwards it.

use super::abort::{Abort, AbortFlag};
use super::built_in;
use super::failure::{Failure, FailureCause};
use super::hold::Holds;
use super::origin_reply::OriginReplyBox;
use super::reply::{Answer, LocalAnswer, Reply, ReplySource};
use super::{
    ClientEnd, Exchange, Graph, NodeId, PinnedConnection, RequestContext, answer, failure_log, hop, relay,
    switch, tunnel,
};
use crate::log::{Entry, History, Line};
use crate::message::{Disposition, Piece};
use crate::metrics::{ExchangeOutcome, RequestLimit};
use crate::sync::buffered::BufferedBytes;
use crate::sync::panics::{Panicked, caught, run_caught};
use crate::verify_run::{RequestEnded, RunEvent};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_http1::{Edits, Framing, OwnAnswer, Request, Version};
use weir_http2::ErrorCode;
use weir_net::io::Core;
use weir_net::io::reuse::Shared;
use weir_policy::Kind;
use weir_workload::{RequestDraws, RunRequest};

/// The status of a request for a host that the certificate of the handshake does not cover.
const MISDIRECTED: u16 = 421;

/// A graph that requests may begin in.
pub(crate) trait Serves: Graph + Sized + 'static {
    /// Runs a request from this node, without boxing the future.
    fn run(
        self: Rc<Self>,
        ex: Shared<Exchange>,
        ctx: RequestContext,
        node: NodeId,
    ) -> impl Future<Output = Answer> + 'static;

    /// The flag that ends its requests.
    fn ends(&self) -> AbortFlag;
}

/// A request whose head was checked, and how it is answered.
pub(crate) struct BegunExchange {
    ex: Shared<Exchange>,
    handling: Handling,
    /// Whether the connection ends with it.
    close: bool,
}

/// How a request is answered.
enum Handling {
    /// Its body is larger than its listener allows.
    TooLarge,
    /// Without asking a node.
    Here(OwnAnswer),
    ByNodes,
}

/// A request that is no exchange, since its head breaks a rule.
pub(crate) struct RefusedRequest {
    core: Rc<Core>,
    client: ClientEnd,
    request: Box<Request>,
    status: u16,
}

impl RefusedRequest {
    async fn answer(self: Box<Self>) -> Disposition {
        answer::refuse(&self.core, &self.client, &self.request, self.status).await
    }
}

/// Checks a head and begins its exchange in this graph. `last`: the connection ends with it. It is not a part of [`serve`],
/// whose future would reserve room for the client and be moved with it.
///
/// # Errors
/// A head that breaks a rule, which is counted here; [`serve`] answers the request, counts it and logs it.
pub(crate) fn begin_exchange<G: Serves>(
    core: Rc<Core>,
    graph: &Rc<G>,
    client: ClientEnd,
    pinned: Rc<PinnedConnection>,
    mut request: Box<Request>,
    last: bool,
) -> Result<BegunExchange, Box<RefusedRequest>> {
    let checked = match weir_http1::check_request(&mut request, &hop(&client)) {
        Ok(checked) => checked,
        Err(refusal) => {
            failure_log::refused(&client, &request, refusal);
            client.session().listener.counts.broke(refusal.0.name);
            return Err(Box::new(RefusedRequest { core, client, request, status: refusal.status() }));
        }
    };
    if !request.is_connect()
        && client.session().tls_parameters().is_some_and(|tls| !tls.covers(request.host()))
    {
        client.session().listener.counts.broke("misdirected");
        return Err(Box::new(RefusedRequest { core, client, request, status: MISDIRECTED }));
    }
    let handling = match (request.framing(), client.session().listener.http.max_body) {
        (Framing::Length(n), Some(most)) if n > most => Handling::TooLarge,
        _ => checked.here.map_or(Handling::ByNodes, Handling::Here),
    };
    let close = last || checked.close || !request.keep_alive();
    client.session().deadline.set(None);
    let ex = Exchange::new(core.clone(), graph.clone(), client, pinned, request, checked);
    Ok(BegunExchange { ex: core.reuse.share(ex), handling, close })
}

/// Answers a request in its graph, beginning at this node; counts and logs it.
pub(crate) async fn serve<G: Serves>(
    begun: Result<BegunExchange, Box<RefusedRequest>>,
    graph: Rc<G>,
    node: NodeId,
) -> Disposition {
    let BegunExchange { ex, handling, close } = match begun {
        Ok(begun) => begun,
        Err(refused) => return Box::pin(refused.answer()).await,
    };
    ex.listener().counts.in_flight.one();
    let mut unlogged = Unlogged { ex: ex.clone(), line: Line::default(), has_ended: false };
    let line = &mut unlogged.line;
    let after = match handling {
        Handling::TooLarge => {
            ex.listener().counts.broke("body-too-large");
            let failure = Failure::client(413).with_cause(FailureCause::Client(RequestLimit::MaxBody));
            (line.status, line.failure, line.limit) = (failure.status, Some(failure.kind), failure.limit());
            Box::pin(answer::fail(&ex, failure, true, line)).await
        }
        Handling::Here(here) => {
            line.status = status_here(here);
            Box::pin(answer_here(&ex, here, close, line)).await
        }
        Handling::ByNodes => {
            let answered = find(&ex, graph, node).await;
            let passed = {
                let passing = pin!(pass_on(&ex, answered, close, line));
                run_caught(passing).await
            };
            match passed {
                Ok(after) => after,
                Err(Panicked) => Box::pin(panicked(&ex, line)).await,
            }
        }
    };
    unlogged.has_ended = true;
    after
}

/// An exchange that has no line in the access log yet; dropping this writes it, however the exchange ended.
struct Unlogged {
    ex: Shared<Exchange>,
    line: Line,
    /// If not, it was cut off, for example by the end of a drain.
    has_ended: bool,
}

impl Drop for Unlogged {
    fn drop(&mut self) {
        if !self.has_ended {
            self.line.give_up();
            self.line.sent = self.ex.client.sent();
        }
        log(&self.ex, &self.line);
    }
}

/// Counts an exchange and writes its line.
fn log(ex: &Exchange, line: &Line) {
    // Without a log the time of the last read or write is precise enough.
    let written = ex.listener().log.is_some() || ex.notes.is_some();
    let now_ns = if written { ex.core.now() } else { ex.core.recent() };
    if let (Some(notes), Some(kind)) = (&ex.notes, line.failure) {
        notes.failed(kind);
    }
    let (received, took_ns) = (ex.body.borrow().received, now_ns.saturating_sub(ex.begun_ns));
    let Line { status, failure, limit, sent, .. } = *line;
    let ended = ExchangeOutcome { status, failure, limit, received, sent, took_ns, now_ns };
    ex.listener().counts.exchanged(ex.request.method(), ex.version(), &ended);
    // Health checks and foreign requests do not belong to a run.
    if let (Some(run), RunRequest { ordinal, selected, sender: Some(_) }) =
        (&ex.listener().run, ex.of_run.get())
    {
        run.report(RunEvent::RequestEnded(RequestEnded {
            ordinal,
            selected,
            server: ex.listener().built_in,
            inner: ex.listener().level > 0,
            begun_ns: ex.begun_ns,
            ended_ns: ex.core.now(),
            attempts: ex.attempts(),
            outcome: line.failure.or((line.status >= 500).then_some(Kind::Status5xx)),
            status: line.status,
        }));
    }
    write_history(ex, line, now_ns);
    write_line(ex, line, received, took_ns);
}

/// Writes the line of an exchange, unless its listener has no log or leaves it out of its sample.
fn write_line(ex: &Exchange, line: &Line, received: u64, took_ns: u64) {
    let Some(log) = &ex.listener().log else { return };
    let is_well = line.status < 500 && line.failure.is_none();
    let share = ex.listener().http.log_sample;
    if is_well && share < 1.0 && ex.core.draw().unit() >= share {
        ex.listener().counts.unlogged.one();
        return;
    }
    let origin = ex.origin.borrow();
    log.write(&Entry {
        listener: &ex.listener().name,
        client: ex.checked.client,
        request: &ex.request,
        line,
        target: origin.as_deref().map(|upstream| upstream.name()),
        upstream: origin.as_deref().and_then(|upstream| upstream.addr()),
        is_https: ex.is_https(),
        tls: ex.client.session().tls_parameters(),
        // Without an origin there was no attempt.
        attempts: if origin.is_some() { ex.attempts() } else { 0 },
        reused: ex.reused.get(),
        resent: ex.resent.get(),
        trace: ex.checked.trace,
        received,
        took_ns,
        generation: ex.generation,
        id: ex.id.as_deref(),
        notes: ex.notes.as_deref(),
    });
}

/// Writes the history of an exchange, if its listener has a log for that and the exchange was chosen for it.
fn write_history(ex: &Exchange, line: &Line, ended_ns: u64) {
    if let (Some(traces), Some(notes)) = (&ex.listener().traces, &ex.notes)
        && let Some(stages) = &notes.stages
    {
        traces.history(&History {
            listener: &ex.listener().name,
            begun_ns: ex.begun_ns,
            ended_ns,
            outcome: line.failure,
            id: ex.id.as_deref(),
            trace_id: ex.checked.trace.map(|trace| trace.id),
            attempts: ex.attempts(),
            notes,
            stages: &stages.borrow(),
        });
    }
}

/// The status of an answer that weir gives without asking a node.
fn status_here(here: OwnAnswer) -> u16 {
    match here {
        OwnAnswer::Options => 200,
        OwnAnswer::Trace => 405,
    }
}

/// Answers a request without asking a node.
async fn answer_here(ex: &Exchange, here: OwnAnswer, close: bool, line: &mut Line) -> Disposition {
    let status = status_here(here);
    match here {
        OwnAnswer::Options => {
            let headers =
                vec![("Allow".to_owned(), "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS".to_owned())];
            let (body, load_fields) = (Rc::from(&b""[..]), Arc::default());
            let own = LocalAnswer { status, headers, body, by_server: false, load_fields };
            answer::own(ex, &own, close, line).await
        }
        OwnAnswer::Trace => answer::fail(ex, Failure::client(status), close, line).await,
    }
}

/// Runs the nodes while the client is there.
async fn find<G: Serves>(ex: &Shared<Exchange>, graph: Rc<G>, node: NodeId) -> Answer {
    let mut ctx = RequestContext::new(ex.draw);
    if ex.id.is_some() {
        let mut edits = Edits::default();
        ex.name(&mut edits);
        ctx.edits = Some(Rc::new(edits));
    }
    ctx.abort = Abort::new(graph.ends());
    if let Some(token) = ex.listener().believes {
        if let Some(RequestDraws { of_run, factor, way }) = built_in::read_drawn(&ex.request, token) {
            (ctx.factor, ctx.way) = (factor, way);
            ex.of_run.set(of_run);
        }
        if ex.is_built_in() {
            Box::pin(read_all(ex)).await?;
            ctx.check = built_in::check_cost(&ex.request, token);
        }
    }
    let mut run = pin!(graph.run(ex.clone(), ctx, node));
    poll_fn(|cx| {
        match caught(|| run.as_mut().poll(cx)) {
            Ok(Poll::Pending) => {}
            Ok(ready) => return ready,
            Err(Panicked) => return Poll::Ready(Err(Failure::panicked())),
        }
        if ex.is_cut() {
            return Poll::Ready(Err(Failure::aborted()));
        }
        if has_gone(cx, ex) { Poll::Ready(Err(Failure::gone())) } else { Poll::Pending }
    })
    .await
}

/// Built-in servers read the whole body before they work.
async fn read_all(ex: &Exchange) -> Result<(), Failure> {
    while !ex.is_complete() {
        poll_fn(|cx| {
            ex.say_continue(cx);
            let mut body = ex.body.borrow_mut();
            match ex.poll_body(cx, &mut body) {
                Poll::Ready(Ok(Piece::Data(n))) => {
                    ex.client.input().consume(n);
                    ex.client.release();
                    Poll::Ready(Ok(()))
                }
                polled => polled.map_ok(drop),
            }
        })
        .await?;
    }
    Ok(())
}

/// Whether the client has left.
pub(super) fn has_gone(cx: &mut Context<'_>, ex: &Exchange) -> bool {
    let complete = ex.body.try_borrow().is_ok_and(|body| body.complete);
    ex.client.is_gone(cx, complete)
}

/// Sends the answer or the failure.
async fn pass_on(ex: &Shared<Exchange>, answered: Answer, close: bool, line: &mut Line) -> Disposition {
    match answered.and_then(|reply| switch::refuse_ignored(ex, reply)) {
        Err(failure) if failure.is_aborted() => {
            line.give_up();
            let failure = Failure::new(Kind::Reset);
            line.status = failure.status;
            Box::pin(answer::fail(ex, failure, true, line)).await
        }
        Err(failure) if failure.kind == Kind::Cancelled => {
            left(ex, line);
            Disposition::Abort
        }
        Err(failure) => {
            (line.status, line.failure, line.limit) = (failure.status, Some(failure.kind), failure.limit());
            failure_log::failed(ex, &failure);
            if failure.cause == FailureCause::Panic {
                ex.listener().counts.panics.one();
            }
            if ex.is_built_in() && failure.kind == Kind::Reset {
                return Disposition::Abort;
            }
            if let Some(reason) = passes_reset_on(ex, &failure) {
                line.status = 0;
                return ex.client.reset(reason);
            }
            let close = close || failure.is_clients() || ex.is_last();
            Box::pin(answer::fail(ex, failure, close, line)).await
        }
        Ok(Reply { source: ReplySource::Local(own), holds }) => {
            ex.leave_graph();
            line.status = own.status;
            let after = answer::own(ex, &own, close || ex.is_last(), line).await;
            holds.finish((own.status >= 500).then_some(Kind::Status5xx), Some(own.status));
            after
        }
        Ok(Reply { source: ReplySource::Origin(reply), holds }) => {
            ex.leave_graph();
            line.status = reply.response().status();
            match line.status {
                101 => Box::pin(upgrade(ex, reply, holds, line)).await,
                200..300 if ex.request.is_connect() => Box::pin(upgrade(ex, reply, holds, line)).await,
                _ => relay::relay(ex, reply, holds, close, line).await,
            }
        }
    }
}

/// Ends an exchange that a panic has ended while it was answered: by an answer if none has begun.
async fn panicked(ex: &Exchange, line: &mut Line) -> Disposition {
    ex.listener().counts.panics.one();
    if ex.client.has_sent_head() {
        line.failure = Some(Kind::Reset);
        line.sent = ex.client.sent();
        failure_log::panicked(ex, line.sent);
        return ex.client.abort();
    }
    let failure = Failure::panicked();
    (line.status, line.failure) = (failure.status, Some(failure.kind));
    failure_log::failed(ex, &failure);
    answer::fail(ex, failure, true, line).await
}

/// Whether a client of gRPC receives its origin's reset as a reset. A server resets a call with CANCEL at the
/// deadline that the client gave it; an answer of 502 that arrives first would make the deadline look like a fault of
/// the server.
fn passes_reset_on(ex: &Exchange, failure: &Failure) -> Option<ErrorCode> {
    let is_grpc =
        || ex.request.field("content-type").is_some_and(|kind| kind.starts_with(b"application/grpc"));
    match failure.cause {
        FailureCause::StreamReset(reason)
            if reason == ErrorCode::CANCEL && ex.version() == Version::H2 && is_grpc() =>
        {
            Some(reason)
        }
        _ => None,
    }
}

/// Notes that the client has gone, by itself or because weir ended its connection by a limit.
pub(super) fn left(ex: &Exchange, line: &mut Line) {
    match ex.client.ended_by() {
        Some(limit) => line.cut_off(limit),
        None => line.left(),
    }
}

/// Turns the connection into a tunnel for the protocol that both sides agreed on.
async fn upgrade(ex: &Exchange, mut reply: OriginReplyBox, mut holds: Holds, line: &mut Line) -> Disposition {
    holds.end_timeouts();
    reply.held = BufferedBytes::default();
    ex.name(&mut reply.edits);
    switch::edit_response(ex, &mut reply);
    if ex.request.is_extended_connect() {
        line.status = 200;
    }
    ex.note_response(reply.response(), &reply.edits);
    ex.client.send_switch(reply.response(), &reply.edits, &reply.add);
    let up_from = reply.origin.queued();
    let ended = tunnel::tunnel(ex, &mut reply).await;
    ex.body.borrow_mut().received += reply.origin.queued().saturating_sub(up_from);
    line.sent = ex.client.sent();
    let mut after = Disposition::Close;
    match ended {
        tunnel::End::InOrder => {}
        tunnel::End::Idle => line.limit = Some(RequestLimit::TunnelIdle),
        tunnel::End::Aborted => line.give_up(),
        tunnel::End::Reset(by) => {
            match ex.client.ended_by() {
                Some(limit) => (line.failure, line.limit) = (Some(Kind::Timeout), Some(limit)),
                None => line.failure = Some(Kind::Reset),
            }
            match by {
                tunnel::Side::Client => reply.origin.reset_tunnel(),
                tunnel::Side::Origin => after = ex.client.reset_tunnel(),
            }
        }
    }
    holds.finish(None, Some(reply.response().status()));
    after
}
