//! `faulty(mtbf, mttr, node, ...)` and `block(...)`: up and down by turns, on time-lines that the process owns.
//!
//! While down: `refuse` answers `refused` at once; `crash` is a killed process (what enters gets `connect_failed`, what is
//! inside `reset` as it goes down, in the phase of the body too); `blackhole` swallows what enters; `slow` multiplies the
//! work of what enters. Draws: the periods, by the time-line.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::failure::{Failure, Why};
use crate::exchange::hold::Hold;
use crate::exchange::reply::{Answer, From};
use crate::io::timers::Sleep;
use crate::nodes::{NodeId, Way, start};
use crate::sync::timeline::Local;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_policy::Kind;
use weir_topology::plan::Mode;

/// The node.
pub(crate) struct Faulty {
    /// Whether it is up.
    pub line: Rc<Local>,
    /// What being down means.
    pub mode: Mode,
    /// How many times longer work takes then.
    pub slow: f64,
    /// Whether it lies to health checks.
    pub checks_pass: bool,
    /// What is behind it.
    pub node: NodeId,
}

/// A process that a request is inside of, from its entry to the next crash.
pub(crate) struct Process {
    line: Rc<Local>,
    /// Flips of the time-line before it entered.
    flips: u64,
    /// When it crashes, if that is known.
    until_ns: Option<u64>,
    around: Option<Rc<Process>>,
}

impl Faulty {
    /// Passes, fails, or waits for ever. `true`: what is behind is inside of a process that may crash.
    pub async fn enter(&self, lp: &Rc<Loop>, way: &mut Way) -> Result<bool, Failure> {
        let seen = self.line.public.look(lp.clock).await;
        match (self.mode, seen.up) {
            (Mode::Crash, true) => {
                let (line, around) = (self.line.clone(), way.process.take());
                way.process =
                    Some(Rc::new(Process { line, flips: seen.flips, until_ns: seen.next_ns, around }));
                Ok(true)
            }
            (Mode::Slow, false) => {
                way.factor *= self.slow;
                Ok(false)
            }
            (_, true) => Ok(false),
            (Mode::Refuse, false) => Err(Failure::new(Kind::Refused)),
            (Mode::Crash, false) => Err(Failure::new(Kind::ConnectFailed)),
            (Mode::Blackhole, false) => pending().await,
        }
    }

    /// A health check passes, fails, or waits for ever. `false`: it lies, and what is behind is not asked.
    pub async fn check(&self, lp: &Rc<Loop>, way: &mut Way) -> Result<bool, Failure> {
        if self.lies(lp).await {
            return Ok(false);
        }
        self.enter(lp, way).await.map(|_| true)
    }

    /// Whether it is down, and tells checks that it is well.
    pub async fn lies(&self, lp: &Loop) -> bool {
        self.checks_pass && self.mode != Mode::Slow && !self.line.public.look(lp.clock).await.up
    }

    /// Runs what is behind until it crashes.
    pub async fn run(&self, lp: Rc<Loop>, ex: Rc<Exchange>, way: Way) -> Answer {
        let Some(mut watch) = way.process.as_ref().map(|p| Watch::one(p, &lp)) else {
            return start(lp, ex, way, self.node).await;
        };
        let mut behind = start(lp, ex, way, self.node);
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
                if matches!(reply.from, From::Origin(_)) {
                    reply.holds.push(Hold::Process(watch));
                }
                Ok(reply)
            }
            Some(failed) => failed,
            None => Err(Failure::new(Kind::Reset).by(Why::Held(Kind::Reset))),
        }
    }
}

impl Process {
    /// Whether it, or one around it, has crashed by now.
    pub fn has_crashed(&self, now_ns: u64) -> bool {
        let here = match self.until_ns {
            Some(until) => until <= now_ns,
            None => self.line.public.flips() != self.flips,
        };
        here || self.around.as_ref().is_some_and(|p| p.has_crashed(now_ns))
    }
}

/// Watches processes for crashes.
pub(crate) struct Watch(Vec<Watched>);

struct Watched {
    line: Rc<Local>,
    flips: u64,
    sleep: Option<Sleep>,
    place: usize,
}

impl Watched {
    fn new(process: &Process, lp: &Loop) -> Watched {
        let sleep = process.until_ns.map(|at| lp.timers.at(at));
        Watched { line: process.line.clone(), flips: process.flips, sleep, place: process.line.watch() }
    }
}

impl Watch {
    /// One process.
    pub fn one(process: &Process, lp: &Loop) -> Watch {
        Watch(vec![Watched::new(process, lp)])
    }

    /// It and all around it.
    pub fn all(process: &Process, lp: &Loop) -> Watch {
        let chain = std::iter::successors(Some(process), |p| p.around.as_deref());
        Watch(chain.map(|p| Watched::new(p, lp)).collect())
    }

    /// Whether one of them has crashed; else the task is woken then.
    pub fn has_crashed(&mut self, cx: &mut Context<'_>) -> bool {
        self.0.iter_mut().any(|watched| match &mut watched.sleep {
            Some(sleep) => sleep.poll_ended(cx).is_ready(),
            None => watched.line.has_flipped(watched.flips, watched.place, cx),
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.line.unwatch(self.place);
    }
}
