//! A timeline of faults, shared by all nodes on it (`together`, `block`) and all loops.
//!
//! The state is the model's own (`weir_model::faulty`), read for a moment when a request enters. Requests inside a
//! process that crashes are cut off: with an eager clock all of them know in advance when that is; a lazy one goes
//! down when a request finds it so, and then all loops are notified.

use crate::sync::TryCell;
use crate::sync::gate::SharedGate;
use slab::Slab;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Waker};
use tokio::sync::mpsc::UnboundedSender;
use weir_model::faulty::{Faulty, Law};
use weir_model::pause::ProcessClock;
use weir_model::warmup::Warmup;
use weir_net::io::clock::Clock;
use weir_stats::Key;

/// A timeline.
pub(crate) struct TimeLine {
    number: u32,
    law: Law,
    lazy: bool,
    key: Key,
    /// When its node joins, if it is not there from the start.
    begins_ns: Option<u64>,
    state: TryCell<Faulty>,
    /// The number of flips that were observed.
    flips: AtomicU64,
    /// What begins cold when it comes up again: warm-ups behind nodes that crash.
    pub warmups: Vec<Arc<TryCell<Warmup>>>,
    /// Gates that close then, and open by and by.
    pub gates: Vec<Arc<TryCell<SharedGate>>>,
    mail: Arc<[UnboundedSender<u32>]>,
}

/// The state that a request found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeState {
    pub up: bool,
    /// Flips until then.
    pub flips: u64,
    /// When it flips next, if known.
    pub next_ns: Option<u64>,
}

impl TimeLine {
    /// From the start of the process, or from `begins_ns`. Messages about it have this number.
    pub fn new(
        number: u32,
        law: Law,
        lazy: bool,
        key: Key,
        begins_ns: Option<u64>,
        mail: Arc<[UnboundedSender<u32>]>,
    ) -> TimeLine {
        let mut state = Faulty::new(&law, key);
        if let Some(at_ns) = begins_ns {
            state.begin(&law, at_ns);
        }
        let (state, flips) = (TryCell::new(state), AtomicU64::new(0));
        let (warmups, gates) = (Vec::new(), Vec::new());
        TimeLine { number, law, lazy, key, begins_ns, state, flips, warmups, gates, mail }
    }

    /// The number of messages about it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The number of flips that were observed.
    pub fn flips(&self) -> u64 {
        self.flips.load(SeqCst)
    }

    /// A request enters.
    pub async fn look(&self, clock: Clock) -> NodeState {
        let (seen, up_at, is_news) = self
            .state
            .with(|state| {
                let now = clock.now();
                let before = state.flips();
                let mut up_at = None;
                if self.lazy {
                    let up = state.is_up(&self.law, now, true);
                    up_at = (up && state.flips() != before).then_some(now);
                } else {
                    while state.next_flip_ns() <= now {
                        let at = state.next_flip_ns();
                        state.flip_due(&self.law);
                        up_at = state.is_up_now().then_some(at).or(up_at);
                    }
                }
                let next_ns = (!self.lazy).then_some(state.next_flip_ns());
                let seen = NodeState { up: state.is_up_now(), flips: state.flips(), next_ns };
                (seen, up_at, seen.flips != before)
            })
            .await;
        if self.flips.fetch_max(seen.flips, SeqCst) < seen.flips && self.lazy {
            for loop_ in self.mail.iter() {
                // A loop that has ended holds nothing.
                let _ = loop_.send(self.number);
            }
        }
        if let Some(at) = up_at {
            for warmup in &self.warmups {
                warmup.with(|w| w.restart(at)).await;
            }
        }
        if is_news {
            for gate in &self.gates {
                gate.with(|shared| shared.follow(seen.up, seen.flips)).await;
            }
        }
        seen
    }
}

/// A timeline as one loop sees it.
pub(crate) struct LocalTimeLine {
    pub shared: Arc<TimeLine>,
    /// The clock of a process that pauses while it is down. Each loop has its own: they all show the same.
    clock: RefCell<ProcessClock>,
    watching: RefCell<Slab<Option<Waker>>>,
}

impl LocalTimeLine {
    /// Without requests inside.
    pub fn new(shared: Arc<TimeLine>) -> Rc<LocalTimeLine> {
        let mut clock = ProcessClock::new(&shared.law, shared.key);
        if let Some(at_ns) = shared.begins_ns {
            clock.begin(&shared.law, at_ns);
        }
        Rc::new(LocalTimeLine { shared, clock: RefCell::new(clock), watching: RefCell::default() })
    }

    /// When work ends that begins now inside of the process; without any, when the process goes on.
    pub fn end_of(&self, now_ns: u64, work_ns: u64) -> u64 {
        self.clock(now_ns).end_of(&self.shared.law, now_ns, work_ns)
    }

    /// What the clock of the process shows.
    pub fn read(&self, now_ns: u64) -> u64 {
        self.clock(now_ns).read(&self.shared.law, now_ns)
    }

    /// When it will show that.
    pub fn when(&self, now_ns: u64, shown_ns: u64) -> u64 {
        self.clock(now_ns).when(&self.shared.law, now_ns, shown_ns)
    }

    fn clock(&self, now_ns: u64) -> ProcessClock {
        let mut clock = self.clock.borrow_mut();
        clock.advance(&self.shared.law, now_ns);
        *clock
    }

    /// A message has come: it has flipped.
    pub fn notified(&self) {
        let due: Vec<Waker> = self.watching.borrow_mut().iter_mut().filter_map(|(_, w)| w.take()).collect();
        due.into_iter().for_each(Waker::wake);
    }

    /// A slot for the waker of a request inside.
    pub fn watch(&self) -> usize {
        self.watching.borrow_mut().insert(None)
    }

    /// Whether it has flipped since; otherwise the task is woken when a lazy one does.
    pub fn has_flipped(&self, since: u64, place: usize, cx: &mut Context<'_>) -> bool {
        if let Some(waker) = self.watching.borrow_mut().get_mut(place) {
            *waker = Some(cx.waker().clone());
        }
        self.shared.flips() != since
    }

    /// Frees the slot.
    pub fn unwatch(&self, place: usize) {
        self.watching.borrow_mut().try_remove(place);
    }
}
