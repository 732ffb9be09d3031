//! `faulty(mtbf, mttr, node, ...)` and `block(...)`: alternates between up and down, on timelines that the process
//! owns.
//!
//! While down: `refuse` answers `refused` at once; `crash` is a killed process (requests that enter get
//! `connect_failed`, those inside `reset` as it goes down, also during the body); `blackhole` swallows requests;
//! `slow` multiplies their work; `pause` stops what is inside, and what enters or leaves waits. Draws: the periods, by
//! the timeline.

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
use weir_net::io::reuse::Shared;
use weir_plan::Mode;
use weir_policy::Kind;

/// The node.
pub(crate) struct Faulty {
    /// The timeline of being up and down.
    pub timeline: Rc<LocalTimeLine>,
    /// What being down means.
    pub mode: Mode,
    /// The factor of the work while it is slow.
    pub slow: f64,
    /// Whether health checks pass while it is down.
    pub checks_pass: bool,
    /// The node behind it.
    pub node: NodeId,
}

impl Faulty {
    /// Passes, fails, or waits, perhaps forever. `true`: what is behind runs inside of a process that may crash or
    /// pause.
    pub async fn enter(&self, core: &Core, ctx: &mut RequestContext) -> Result<bool, Failure> {
        let seen = self.timeline.shared.look(core.clock).await;
        match (self.mode, seen.up) {
            (Mode::Crash, true) => {
                let (timeline, around) = (self.timeline.clone(), ctx.process.take());
                ctx.process = Some(Rc::new(Process::new(timeline, seen.flips, seen.next_ns, around)));
                Ok(true)
            }
            (Mode::Pause, _) => {
                self.go_on(core).await;
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

    /// Waits until the process goes on.
    pub async fn go_on(&self, core: &Core) {
        if self.mode == Mode::Pause {
            let now = core.now();
            let at = self.timeline.end_of(now, 0);
            if at > now {
                // One instant for all that wait: they go on in the order in which they came, as in simulation.
                core.timers.sleep_until(at).await;
            }
        }
    }

    /// Runs a health check, which passes, fails, or waits forever. `false`: it passes without asking what is behind.
    pub async fn check(&self, core: &Core, ctx: &mut RequestContext) -> Result<bool, Failure> {
        if self.lies(core).await {
            return Ok(false);
        }
        self.enter(core, ctx).await.map(|_| true)
    }

    /// Whether it is down and lets checks pass.
    pub async fn lies(&self, core: &Core) -> bool {
        self.checks_pass && self.mode != Mode::Slow && !self.timeline.shared.look(core.clock).await.up
    }

    /// Runs what is behind until it crashes; the answer of a process that pauses waits until it goes on.
    pub async fn run(&self, ex: Shared<Exchange>, ctx: RequestContext) -> Answer {
        if self.mode == Mode::Pause {
            let core = ex.core.clone();
            let answer = Exchange::start(&ex, ctx, self.node).await;
            self.go_on(&core).await;
            return answer;
        }
        let Some(mut watch) = ctx.process.as_ref().map(|p| CrashWatch::one(p, &ex.core)) else {
            return Exchange::start(&ex, ctx, self.node).await;
        };
        let mut behind = Exchange::start(&ex, ctx, self.node);
        let answer = poll_fn(|cx| {
            // An answer that arrives as it goes down is in time.
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
