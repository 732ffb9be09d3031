//! `faulty(mtbf, mttr, node, ...)` and `block(...)`: up and down by turns, on time-lines that the process owns.
//!
//! While down: `refuse` answers `refused` at once; `crash` is a killed process (what enters gets `connect_failed`, what is
//! inside `reset` as it goes down, in the phase of the body too); `blackhole` swallows what enters; `slow` multiplies the
//! work of what enters. Draws: the periods, by the time-line.

use crate::exchange::Exchange;
use crate::exchange::Failure;
use crate::exchange::failure::FailureCause;
use crate::exchange::hold::Hold;
use crate::exchange::reply::{Answer, ReplySource};
use crate::exchange::{NodeId, RequestContext};
use crate::sync::process::{CrashWatch, Process};
use crate::sync::timeline::LocalTimeLine;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::Core;
use weir_plan::Mode;
use weir_policy::Kind;

/// The node.
pub(crate) struct Faulty {
    /// Whether it is up.
    pub timeline: Rc<LocalTimeLine>,
    /// What being down means.
    pub mode: Mode,
    /// How many times longer work takes then.
    pub slow: f64,
    /// Whether it lies to health checks.
    pub checks_pass: bool,
    /// What is behind it.
    pub node: NodeId,
}

impl Faulty {
    /// Passes, fails, or waits for ever. `true`: what is behind is inside of a process that may crash.
    pub async fn enter(&self, core: &Core, ctx: &mut RequestContext) -> Result<bool, Failure> {
        let seen = self.timeline.shared.look(core.clock).await;
        match (self.mode, seen.up) {
            (Mode::Crash, true) => {
                let (timeline, around) = (self.timeline.clone(), ctx.process.take());
                ctx.process = Some(Rc::new(Process::new(timeline, seen.flips, seen.next_ns, around)));
                Ok(true)
            }
            (Mode::Slow, false) => {
                ctx.factor *= self.slow;
                Ok(false)
            }
            (_, true) => Ok(false),
            (Mode::Refuse, false) => Err(Failure::new(Kind::Refused)),
            (Mode::Crash, false) => Err(Failure::new(Kind::ConnectFailed)),
            (Mode::Blackhole, false) => pending().await,
        }
    }

    /// A health check passes, fails, or waits for ever. `false`: it lies, and what is behind is not asked.
    pub async fn check(&self, core: &Core, ctx: &mut RequestContext) -> Result<bool, Failure> {
        if self.lies(core).await {
            return Ok(false);
        }
        self.enter(core, ctx).await.map(|_| true)
    }

    /// Whether it is down, and tells checks that it is well.
    pub async fn lies(&self, core: &Core) -> bool {
        self.checks_pass && self.mode != Mode::Slow && !self.timeline.shared.look(core.clock).await.up
    }

    /// Runs what is behind until it crashes.
    pub async fn run(&self, ex: Rc<Exchange>, ctx: RequestContext) -> Answer {
        let Some(mut watch) = ctx.process.as_ref().map(|p| CrashWatch::one(p, &ex.core)) else {
            return ex.start(ctx, self.node).await;
        };
        let mut behind = ex.start(ctx, self.node);
        let answer = poll_fn(|cx| {
            // What ends as it goes down has ended in time.
            if let Poll::Ready(answer) = behind.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            if watch.has_crashed(cx) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        match answer {
            Some(Ok(mut reply)) => {
                if matches!(reply.source, ReplySource::Origin(_)) {
                    reply.holds.push(Hold::Process(watch));
                }
                Ok(reply)
            }
            Some(failed) => failed,
            None => Err(Failure::new(Kind::Reset).with_cause(FailureCause::Held(Kind::Reset))),
        }
    }
}
