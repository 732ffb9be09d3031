//! A process that may crash: what a request is inside of between entering a `faulty` node and its answer.

use crate::sync::timeline::LocalTimeLine;
use std::rc::Rc;
use std::task::Context;
use weir_net::io::Core;
use weir_net::io::timers::Sleep;

/// A process that a request is inside of, from its entry to the next crash.
pub(crate) struct Process {
    timeline: Rc<LocalTimeLine>,
    /// Flips of the time-line before it entered.
    flips: u64,
    /// When it crashes, if that is known.
    until_ns: Option<u64>,
    around: Option<Rc<Process>>,
}

impl Process {
    /// Entered after so many flips; `around`: the process that this one is inside of.
    pub fn new(
        timeline: Rc<LocalTimeLine>,
        flips: u64,
        until_ns: Option<u64>,
        around: Option<Rc<Process>>,
    ) -> Process {
        Process { timeline, flips, until_ns, around }
    }

    /// Whether it, or one around it, has crashed by now.
    pub fn has_crashed(&self, now_ns: u64) -> bool {
        let here = match self.until_ns {
            Some(until) => until <= now_ns,
            None => self.timeline.shared.flips() != self.flips,
        };
        here || self.around.as_ref().is_some_and(|p| p.has_crashed(now_ns))
    }
}

/// Watches processes for crashes.
pub(crate) struct CrashWatch(Vec<Watched>);

struct Watched {
    timeline: Rc<LocalTimeLine>,
    flips: u64,
    sleep: Option<Sleep>,
    place: usize,
}

impl Watched {
    fn new(process: &Process, core: &Core) -> Watched {
        let sleep = process.until_ns.map(|at| core.timers.sleep_until(at));
        let timeline = process.timeline.clone();
        Watched { place: timeline.watch(), timeline, flips: process.flips, sleep }
    }
}

impl CrashWatch {
    /// One process.
    pub fn one(process: &Process, core: &Core) -> CrashWatch {
        CrashWatch(vec![Watched::new(process, core)])
    }

    /// It and all around it.
    pub fn all(process: &Process, core: &Core) -> CrashWatch {
        let chain = std::iter::successors(Some(process), |p| p.around.as_deref());
        CrashWatch(chain.map(|p| Watched::new(p, core)).collect())
    }

    /// Whether one of them has crashed; else the task is woken then.
    pub fn has_crashed(&mut self, cx: &mut Context<'_>) -> bool {
        self.0.iter_mut().any(|watched| match &mut watched.sleep {
            Some(sleep) => sleep.poll_ended(cx).is_ready(),
            None => watched.timeline.has_flipped(watched.flips, watched.place, cx),
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.timeline.unwatch(self.place);
    }
}
