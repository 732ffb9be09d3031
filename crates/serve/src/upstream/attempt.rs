//! One request on one connection, until the head of its answer: sent as far as it has come, its interim responses passed on.

use super::server::Server;
use crate::exchange::failure::FailureCause;
use crate::exchange::origin_reply::OriginReply;
use crate::exchange::progress::Sending;
use crate::exchange::upload::{BrokenUpload, Upload};
use crate::exchange::{Exchange, Failure, OriginConn, RequestContext, built_in};
use crate::message::{HeadError, HeadKind, OutgoingRequest};
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

/// Why an attempt on a connection has no head.
pub(super) enum AttemptError {
    /// The connection ended before any byte of an answer.
    Silent,
    /// The connection ended, and the origin says that it did no work.
    Unprocessed,
    With(Failure),
}

/// The attempt.
pub(super) struct Attempt {
    /// What becomes of it.
    reply: Box<OriginReply>,
    interim: u32,
    continue_after: Option<Sleep>,
    /// How long the origin may still be silent, once no client waits any more, and how much had come when that began.
    silence: Option<(Sleep, u32)>,
    /// Bytes read from the client and not taken by the origin, when last looked at.
    progress: (u64, usize),
}

impl Attempt {
    /// Begins: the request's head is queued.
    pub fn new(server: &Rc<Server>, ex: &Exchange, ctx: &RequestContext, conn: OriginConn) -> Attempt {
        let none = Edits::default();
        let mut edits = ctx.edits.as_deref().unwrap_or(&none);
        let drawn;
        if let Some(token) = server.token {
            drawn = built_in::with_draw(edits, ctx, ex.of_run.get(), token);
            edits = &drawn;
        } else if ex.of_run.get().sender.is_some() {
            // What a run's processes tell each other is no origin's business.
            drawn = built_in::without_draw(edits);
            edits = &drawn;
            if let Some(run) = &ex.listener().run {
                run.report(RunEvent::RequestSent { server: server.id, selected: ex.of_run.get().selected });
            }
        }
        let asking = OutgoingRequest { request: &ex.request, checked: &ex.checked, hop: &ex.hop(), edits };
        // Of HTTP/2 whatever was asked may be asked again where the origin says that it did nothing.
        let resends = ex.request.is_idempotent() || matches!(conn, OriginConn::H2(_));
        let origin = conn.begin(&ex.core, &asking);
        let keep = ctx.keep.max(if resends { RESEND } else { 0 });
        origin.set_deadline(server.origin.body_timeout_ns);
        if !ex.is_complete() {
            ex.client.expects_body();
        }
        Attempt {
            reply: Box::new(OriginReply::new(server.clone(), origin, Upload::new(keep), ctx.abort.clone())),
            interim: 0,
            continue_after: ex.checked.expect.then(|| ex.core.timers.after(CONTINUE_AFTER_NS)),
            silence: None,
            progress: (u64::MAX, 0),
        }
    }

    /// The head that came.
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
                    // A client that waits no more may be at its next request.
                    if ctx.is_wanted() {
                        self.pass_interim(cx, ex);
                    }
                }
                Poll::Ready(Err(HeadError::Rule(refusal))) => {
                    return bad_response(FailureCause::Rule(refusal));
                }
                Poll::Ready(Err(HeadError::TooLong)) => return bad_response(FailureCause::HeadTooLong),
                Poll::Ready(Err(HeadError::Cut)) => {
                    let failure = Failure::new(Kind::Reset).with_cause(FailureCause::HeadCut);
                    return Poll::Ready(Err(AttemptError::With(failure)));
                }
                Poll::Ready(Err(HeadError::Malformed(reason))) => {
                    return bad_response(FailureCause::Malformed(reason));
                }
                Poll::Ready(Err(HeadError::Reset(reason))) => {
                    let failure = Failure::new(Kind::Reset).with_cause(FailureCause::StreamReset(reason));
                    return Poll::Ready(Err(AttemptError::With(failure)));
                }
                Poll::Ready(Err(HeadError::Flooded)) => {
                    let failure = Failure::new(Kind::Reset).with_cause(FailureCause::Flooded);
                    return Poll::Ready(Err(AttemptError::With(failure)));
                }
                Poll::Ready(Err(HeadError::Refused)) => {
                    let failure = Failure::new(Kind::Refused).with_cause(FailureCause::Refused);
                    return Poll::Ready(Err(AttemptError::With(failure)));
                }
                Poll::Ready(Err(HeadError::Unprocessed)) => {
                    return Poll::Ready(Err(AttemptError::Unprocessed));
                }
                Poll::Ready(Err(HeadError::Tls(why))) => {
                    // On a connection that was used before it is no refusal of this side.
                    let kind = if ex.reused.get() { Kind::Reset } else { Kind::ConnectFailed };
                    return Poll::Ready(Err(AttemptError::With(
                        Failure::new(kind).with_cause(FailureCause::Tls(why)),
                    )));
                }
                Poll::Ready(Err(HeadError::Silent)) => return Poll::Ready(Err(AttemptError::Silent)),
                Poll::Pending => break,
            }
        }
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

    /// Sends on of the request what has come of it.
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

    /// Whether the origin has said nothing for as long as what nobody waits for is waited for.
    #[cold]
    fn is_silent(&mut self, cx: &mut Context<'_>, ex: &Exchange) -> bool {
        let reads = self.reply.origin.reads();
        if self.silence.as_ref().is_none_or(|(_, before)| *before != reads) {
            self.silence = Some((ex.core.timers.after(ON_CANCEL_SILENCE_NS), reads));
        }
        self.silence.as_mut().is_some_and(|(sleep, _)| sleep.poll_ended(cx).is_ready())
    }

    /// A 101 leads only to what was asked for.
    fn check_switch(&self, ex: &Exchange) -> Result<(), AttemptError> {
        if self.response().status() != 101 {
            return Ok(());
        }
        weir_http1::check_switch(&ex.request, &ex.hop(), self.response()).map_err(|refusal| {
            AttemptError::With(Failure::new(Kind::BadResponse).with_cause(FailureCause::Rule(refusal)))
        })
    }

    /// The origin was silent for too long.
    #[cold]
    fn late(&self) -> Failure {
        let OriginReply { upstream, upload, origin, .. } = &*self.reply;
        let why = match upload.finished && origin.unsent() == 0 || upload.broken {
            true => FailureCause::ResponseLimit(upstream.origin().response_timeout_ns),
            false => FailureCause::UploadLimit(upstream.origin().body_timeout_ns),
        };
        Failure::new(Kind::Timeout).with_cause(why)
    }

    /// The limit of silence counts while the origin takes nothing; while it is the client's turn, the client's own does.
    fn watch_upload(&mut self, ex: &Exchange) {
        let unsent = self.reply.origin.unsent();
        let progress = (ex.body.try_borrow().map_or(0, |b| b.received), unsent);
        if progress != self.progress {
            self.progress = progress;
            let limit_ns = self.reply.upstream.origin().body_timeout_ns;
            self.reply.origin.set_deadline(limit_ns.filter(|_| unsent > 0));
        }
    }

    /// 100 is told once, to a client that waits for it; others go on to clients that know them.
    fn pass_interim(&mut self, cx: &mut Context<'_>, ex: &Exchange) {
        if self.response().status() == 100 {
            ex.say_continue(cx);
        } else if ex.version() != Version::H10 {
            ex.passed_interim.set(true);
            ex.client.send_interim(cx, self.response());
        }
    }

    /// What was begun is answered.
    pub fn into_reply(self) -> Box<OriginReply> {
        self.reply.origin.set_deadline(self.reply.upstream.origin().body_timeout_ns);
        self.reply
    }
}

#[cold]
fn bad_response(why: FailureCause) -> Poll<Result<(), AttemptError>> {
    Poll::Ready(Err(AttemptError::With(Failure::new(Kind::BadResponse).with_cause(why))))
}
