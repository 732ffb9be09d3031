//! Sends a request to its target, on a connection that is open or on one that is made for it.
//!
//! A request whose reused connection ended before the first byte of an answer is sent once more on a fresh one, if it
//! is idempotent and still kept: the origin had just closed the connection (RFC 9110, 9.2.2; RFC 9112, 9.3.1). Whatever
//! its method, it is sent once more if an origin of HTTP/2 reports that it did nothing: by GOAWAY on a fresh one, by
//! REFUSED_STREAM on another that does not refuse (RFC 9113, 8.7).

use super::Server;
use super::dial::or_target_removed;
use super::make::refused;
use crate::exchange::failure::FailureCause;
use crate::exchange::hold::Holds;
use crate::exchange::progress::Sending;
use crate::exchange::reply::{Answer, Reply, ReplySource};
use crate::exchange::{Exchange, Failure, RequestContext, built_in};
use crate::upstream::attempt::{Attempt, AttemptError};
use crate::upstream::multiplexed::Choice;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_net::io::reuse::Shared;
use weir_net::io::runtime::AfterOthers;
use weir_policy::Kind;

/// The connection that a request was sent on.
#[derive(Clone, Copy)]
struct ConnectionUse {
    /// It had carried requests before.
    reused: bool,
    /// Which connections were allowed; not any if another did not answer.
    choice: Choice,
}

/// Ready when the other tasks have read.
fn poll_after_others(turn: &mut AfterOthers, ex: &Exchange, cx: &Context<'_>) -> Poll<()> {
    let turn = turn.poll(&ex.core.runtime, cx);
    if turn.is_pending() {
        // A small body that came with its head would keep a large read buffer from the tasks that read now.
        ex.client.input().shrink_small();
    }
    turn
}

impl Server {
    /// Forwards the request; the reply holds the connection.
    pub async fn forward(self: &Rc<Self>, ex: &Shared<Exchange>, ctx: &RequestContext) -> Answer {
        if !ex.can_send_again() {
            return Err(Failure::new(Kind::Reset));
        }
        *ex.origin.borrow_mut() = Some(self.clone());
        let mut choice = Choice::Any;
        loop {
            ctx.sending(Sending::Begun);
            let pooled = self.take(ex, choice);
            let reused = pooled.is_some();
            ex.reused.set(reused);
            if reused {
                self.target.counts.reused.one();
            }
            let since_ns = ex.moment();
            let conn = match pooled {
                Some(conn) => conn,
                // Boxed, as it is rare and large: a request with a pooled connection need not carry it.
                None => {
                    match Box::pin(or_target_removed(&ex.core, &ctx.abort, self.connect(ex, choice))).await {
                        Ok(conn) => conn,
                        Err(failure) => {
                            ctx.sending(Sending::Nowhere);
                            return Err(failure.with_server(self.id));
                        }
                    }
                }
            };
            let since_ns = ex.connected(since_ns);
            let mut attempt = Attempt::new(self, ex, ctx, conn);
            let mut turn = AfterOthers::default();
            poll_fn(|cx| poll_after_others(&mut turn, ex, cx)).await;
            let headed = poll_fn(|cx| attempt.poll_head(cx, ex, ctx)).await;
            if headed.is_ok() {
                ex.headed(since_ns);
            }
            match headed {
                Ok(()) if self.is_built_in() && attempt.response().field(built_in::KIND).is_some() => {
                    ctx.sending(Sending::Nowhere);
                    return Err(self.built_in_failure(ex, attempt));
                }
                Ok(()) => {
                    let source = ReplySource::Origin(attempt.into_reply());
                    return Ok(Reply { source, holds: Holds::default() });
                }
                Err(error) => {
                    match error.is_late() {
                        true => ex.core.drop_late(attempt),
                        false => drop(attempt),
                    }
                    choice = self.recover(ex, ctx, error, ConnectionUse { reused, choice })?;
                }
            }
        }
    }

    /// An attempt has ended without an answer. Returns which connections the request may take now.
    ///
    /// # Errors
    /// Its failure, unless the request is sent again.
    #[cold]
    fn recover(
        &self,
        ex: &Exchange,
        ctx: &RequestContext,
        error: AttemptError,
        on: ConnectionUse,
    ) -> Result<Choice, Failure> {
        // The origin did nothing, so any request may be sent again; once, since the next connection may do the same.
        let may_repeat = on.choice == Choice::Any && ex.can_send_again();
        let (may, next, failure) = match error {
            AttemptError::Silent => {
                let idempotent = ex.request.is_idempotent() && ex.can_send_again();
                let failure = Failure::new(Kind::Reset).with_cause(FailureCause::Silent);
                (on.reused && !self.is_built_in() && idempotent, Choice::New, failure)
            }
            AttemptError::Unprocessed => (may_repeat, Choice::New, refused()),
            AttemptError::Refused => (may_repeat, Choice::Willing, refused()),
            AttemptError::With(failure) => (false, on.choice, failure),
        };
        ctx.sending(Sending::Nowhere);
        if !may {
            return Err(failure.with_server(self.id));
        }
        ex.resent.set(true);
        self.target.counts.resent.one();
        Ok(next)
    }

    /// The failure that the answer of a built-in server represents.
    #[cold]
    fn built_in_failure(&self, ex: &Exchange, attempt: Attempt) -> Failure {
        let reply = attempt.into_reply();
        let failure = built_in::failure(reply.response());
        reply.into_inner().discard(ex);
        failure.with_server(self.id)
    }
}
