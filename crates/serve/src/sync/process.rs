//! A process that may crash: the region of a request between entering a `faulty` node and its answer.

use crate::sync::timeline::LocalTimeLine;
use std::rc::Rc;
use std::task::Context;
use weir_net::io::Core;
use weir_net::io::timers::Sleep;

/// A process that a request has entered, until the next crash.
pub(crate) struct Process {
    timeline: Rc<LocalTimeLine>,
    /// Flips of the timeline before it entered.
    flips: u64,
    /// When it crashes, if known.
    until_ns: Option<u64>,
    around: Option<Rc<Process>>,
}

impl Process {
    /// Entered after this number of flips; `around`: the process around this one.
    pub fn new(
        timeline: Rc<LocalTimeLine>,
        flips: u64,
        until_ns: Option<u64>,
        around: Option<Rc<Process>>,
    ) -> Process {
        Process { timeline, flips, until_ns, around }
    }

    /// Which of its lives a request has entered: another number after each crash of it or of one around it.
    pub fn life(&self) -> u64 {
        self.flips + self.around.as_ref().map_or(0, |process| process.life())
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

    /// Whether one of them has crashed; otherwise the task is woken when one does.
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
