//! One request on one connection, until the head of its answer: it is sent as it arrives, and interim responses are
//! forwarded.

use super::server::Server;
use crate::exchange::failure::FailureCause;
use crate::exchange::origin_reply::{OriginReply, OriginReplyBox};
use crate::exchange::progress::Sending;
use crate::exchange::upload::{BrokenUpload, Upload};
use crate::exchange::{Exchange, Failure, OriginConn, RequestContext, built_in, switch};
use crate::message::{HeadError, HeadKind, OpeningError, OutgoingRequest};
use crate::sync::buffered;
use crate::verify_run::RunEvent;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Edits, Response, Version};
use weir_net::io::timers::Sleep;
use weir_plan::fixed::{
    CONTINUE_AFTER_NS, MAX_INTERIM as MOST_INTERIM, MAX_RESEND_BYTES as RESEND, ON_CANCEL_SILENCE_NS,
};
use weir_policy::Kind;

/// Why an attempt on a connection got no head.
pub(super) enum AttemptError {
    /// The connection ended before the first byte of an answer.
    Silent,
    /// The connection ended, and the origin reports that it did no work.
    Unprocessed,
    /// The origin refused the stream before any work; its connection goes on.
    Refused,
    With(Failure),
}

impl AttemptError {
    /// Whether `response_timeout` has ended it.
    pub fn is_late(&self) -> bool {
        matches!(self, AttemptError::With(Failure { cause: FailureCause::ResponseLimit(_), .. }))
    }
}

/// The attempt.
pub(super) struct Attempt {
    /// The reply that it becomes.
    reply: OriginReplyBox,
    interim: u32,
    continue_after: Option<Sleep>,
    /// The remaining silence that the origin is allowed once no client waits, and how much had arrived when that
    /// began.
    silence: Option<(Sleep, u32)>,
    /// Bytes read from the client, and bytes not taken by the origin, at the last check.
    progress: (u64, usize),
}

impl Attempt {
    /// Begins an attempt: queues the request's head.
    pub fn new(server: &Rc<Server>, ex: &Exchange, ctx: &RequestContext, conn: OriginConn) -> Attempt {
        let none = Edits::default();
        let mut edits = ctx.edits.as_deref().unwrap_or(&none);
        let drawn;
        if let Some(token) = server.token {
            drawn = built_in::with_draw(edits, ctx, ex.of_run.get(), token);
            edits = &drawn;
        } else if ex.of_run.get().sender.is_some() {
            // Origins do not get what the processes of a run send each other.
            drawn = built_in::without_draw(edits);
            edits = &drawn;
            if let Some(run) = &ex.listener().run {
                run.report(RunEvent::RequestSent { server: server.id, selected: ex.of_run.get().selected });
            }
        }
        let to = if matches!(conn, OriginConn::H2(_)) { Version::H2 } else { Version::H11 };
        let translated = switch::edit_request(ex, edits, to);
        let edits = translated.as_ref().unwrap_or(edits);
        let asking = OutgoingRequest { request: &ex.request, checked: &ex.checked, hop: &ex.hop(), edits };
        // With HTTP/2 any request may be sent again if the origin reports that it did nothing.
        let resends = ex.request.is_idempotent() || matches!(conn, OriginConn::H2(_));
        let origin = conn.begin(&ex.core, &asking);
        let keep = ctx.keep.max(if resends { RESEND } else { 0 });
        origin.set_deadline(server.origin.body_timeout_ns);
        if !ex.is_complete() {
            ex.client.expects_body();
        }
        Attempt {
            reply: ex.core.reuse.put(OriginReply::new(
                server.clone(),
                origin,
                Upload::new(keep),
                ctx.abort.clone(),
            )),
            interim: 0,
            continue_after: ex.checked.expect.then(|| ex.core.timers.after(CONTINUE_AFTER_NS)),
            silence: None,
            progress: (u64::MAX, 0),
        }
    }

    /// The head that was read last.
    pub fn response(&self) -> &Response {
        self.reply.response()
    }

    /// Sends, and reads up to the final head.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        ex: &Exchange,
        ctx: &RequestContext,
    ) -> Poll<Result<(), AttemptError>> {
        if let Err(failure) = self.send(cx, ex, ctx) {
            return Poll::Ready(Err(AttemptError::With(failure)));
        }
        loop {
            let counts = ex.client.counts();
            match self.reply.origin.poll_head(cx, &ex.core, counts && buffered::is_over_limit()) {
                Poll::Ready(Ok(HeadKind::Final)) => {
                    let kept = if counts { self.reply.origin.input().kept() } else { 0 };
                    self.reply.held.set(kept);
                    return Poll::Ready(self.check_switch(ex));
                }
                Poll::Ready(Ok(HeadKind::Interim)) => {
                    self.interim += 1;
                    if self.interim > MOST_INTERIM {
                        return bad_response(FailureCause::Interims);
                    }
                    // A client that no longer waits may be at its next request.
                    if ctx.is_wanted() {
                        self.pass_interim(cx, ex);
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(head_error(error, ex.reused.get()))),
                Poll::Pending => break,
            }
        }
        self.poll_limits(cx, ex, ctx)
    }

    /// Applies the limits of an attempt without a head: sends 100 (Continue) late, and fails where the origin is too
    /// silent.
    fn poll_limits(
        &mut self,
        cx: &mut Context<'_>,
        ex: &Exchange,
        ctx: &RequestContext,
    ) -> Poll<Result<(), AttemptError>> {
        if let Some(sleep) = &mut self.continue_after
            && sleep.poll_ended(cx).is_ready()
        {
            self.continue_after = None;
            if ctx.is_wanted() {
                ex.say_continue(cx);
            }
        }
        if self.reply.abort.is_set() {
            return Poll::Ready(Err(AttemptError::With(Failure::aborted())));
        }
        if self.reply.origin.is_late(cx) {
            return Poll::Ready(Err(AttemptError::With(self.late())));
        }
        if !ctx.is_wanted() && self.is_silent(cx, ex) {
            return Poll::Ready(Err(AttemptError::With(
                Failure::new(Kind::Timeout).with_cause(FailureCause::Unwanted),
            )));
        }
        Poll::Pending
    }

    /// Forwards the part of the request that has arrived.
    fn send(&mut self, cx: &mut Context<'_>, ex: &Exchange, ctx: &RequestContext) -> Result<(), Failure> {
        let reply = &mut *self.reply;
        if reply.upload.broken || (reply.upload.finished && reply.origin.unsent() == 0) {
            return Ok(());
        }
        let limit_ns = reply.upstream.origin().response_timeout_ns;
        match reply.upload.poll(cx, ex, &mut reply.origin) {
            Poll::Ready(Ok(())) => {
                ctx.sending(Sending::Whole);
                reply.origin.set_deadline(limit_ns);
            }
            Poll::Ready(Err(BrokenUpload::Client(failure))) => return Err(failure),
            Poll::Ready(Err(BrokenUpload::Origin)) => {
                reply.upload.broken = true;
                reply.origin.set_deadline(limit_ns);
            }
            Poll::Pending => self.watch_upload(ex),
        }
        Ok(())
    }

    /// Whether the origin was silent for longer than an abandoned request may wait.
    #[cold]
    fn is_silent(&mut self, cx: &mut Context<'_>, ex: &Exchange) -> bool {
        let reads = self.reply.origin.reads();
        if self.silence.as_ref().is_none_or(|(_, before)| *before != reads) {
            self.silence = Some((ex.core.timers.after(ON_CANCEL_SILENCE_NS), reads));
        }
        self.silence.as_mut().is_some_and(|(sleep, _)| sleep.poll_ended(cx).is_ready())
    }

    /// Checks that a 101 switches to what was asked for.
    fn check_switch(&self, ex: &Exchange) -> Result<(), AttemptError> {
        if self.response().status() != 101 {
            return Ok(());
        }
        switch::check(ex, self.response()).map_err(AttemptError::With)
    }

    /// The failure of an origin that was silent for too long.
    #[cold]
    fn late(&self) -> Failure {
        let OriginReply { upstream, upload, origin, .. } = &*self.reply;
        let why = match upload.finished && origin.unsent() == 0 || upload.broken {
            true => FailureCause::ResponseLimit(upstream.origin().response_timeout_ns),
            false => FailureCause::UploadLimit(upstream.origin().body_timeout_ns),
        };
        Failure::new(Kind::Timeout).with_cause(why)
    }

    /// Applies the limit of silence while the origin takes nothing; while it is the client's turn, the client's limit
    /// applies.
    fn watch_upload(&mut self, ex: &Exchange) {
        let unsent = self.reply.origin.unsent();
        let progress = (ex.body.try_borrow().map_or(0, |b| b.received), unsent);
        if progress != self.progress {
            self.progress = progress;
            let limit_ns = self.reply.upstream.origin().body_timeout_ns;
            self.reply.origin.set_deadline(limit_ns.filter(|_| unsent > 0));
        }
    }

    /// Forwards an interim response: 100 once, to a client that waits for it; others to clients that know them.
    fn pass_interim(&mut self, cx: &mut Context<'_>, ex: &Exchange) {
        if self.response().status() == 100 {
            ex.say_continue(cx);
        } else if ex.version() != Version::H10 {
            ex.passed_interim.set(true);
            ex.client.send_interim(cx, self.response());
        }
    }

    /// Turns an answered attempt into its reply.
    pub fn into_reply(self) -> OriginReplyBox {
        self.reply.origin.set_deadline(self.reply.upstream.origin().body_timeout_ns);
        self.reply
    }
}

/// The error of an attempt whose head could not be read. `reused`: its connection was used before.
#[cold]
fn head_error(error: HeadError, reused: bool) -> AttemptError {
    let (kind, cause) = match error {
        HeadError::Rule(refusal) => (Kind::BadResponse, FailureCause::Rule(refusal)),
        HeadError::TooLong => (Kind::BadResponse, FailureCause::HeadTooLong),
        HeadError::Malformed(why) => (Kind::BadResponse, FailureCause::Malformed(why)),
        // It was sent, so that it is not known to be undone.
        HeadError::Opening(OpeningError::Late(limit_ns)) => {
            (Kind::Timeout, FailureCause::ConnectLimit(limit_ns))
        }
        HeadError::Opening(why) => return AttemptError::With(opening_failure(why)),
        HeadError::Cut => (Kind::Reset, FailureCause::HeadCut),
        HeadError::Reset(reason) => (Kind::Reset, FailureCause::StreamReset(reason)),
        HeadError::Flooded => (Kind::Reset, FailureCause::Flooded),
        HeadError::Unanswered => (Kind::Reset, FailureCause::Unanswered),
        // On a reused connection this does not mean that TLS was refused.
        HeadError::Tls(why) if reused => (Kind::Reset, FailureCause::Tls(why)),
        HeadError::Tls(why) => (Kind::ConnectFailed, FailureCause::Tls(why)),
        HeadError::Unprocessed => return AttemptError::Unprocessed,
        HeadError::Refused => return AttemptError::Refused,
        HeadError::Silent => return AttemptError::Silent,
    };
    AttemptError::With(Failure::new(kind).with_cause(cause))
}

/// The failure of a request whose connection never came to be one.
#[cold]
pub(super) fn opening_failure(why: OpeningError) -> Failure {
    let (kind, cause) = match why {
        OpeningError::NoHttp2 => (Kind::ConnectFailed, FailureCause::NoHttp2),
        OpeningError::Tls(why) => (Kind::ConnectFailed, FailureCause::Tls(why)),
        OpeningError::Late(limit_ns) => (Kind::ConnectFailed, FailureCause::ConnectLimit(limit_ns)),
    };
    Failure::new(kind).with_cause(cause)
}

#[cold]
fn bad_response(why: FailureCause) -> Poll<Result<(), AttemptError>> {
    Poll::Ready(Err(AttemptError::With(Failure::new(Kind::BadResponse).with_cause(why))))
}
