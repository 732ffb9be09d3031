//! What nodes have in the process, whatever loop and whatever graph they are in: semaphores, token buckets, budgets, faults; and
//! what a thread has of its balancers.
//! It belongs to identities ([`super::identity`]), so that a later graph takes over what stays.
//!
//! Shared by atomics and messages; no request waits for a lock (`serving.md` §1): the two locks here are taken while a graph
//! is built. Every thread has a number and a mailbox: a message is the identity of a semaphore (or of a time-line of faults)
//! that is to be looked at again.

use super::draws::Draws;
use super::identity::{Interner, Keys};
use crate::exchange::NodeId;
use crate::metrics::Metrics;
use crate::nodes::lb::{LbState, Loads, Shape, TargetFlags};
use crate::sync::counter::Counter;
use crate::sync::timeline::{LocalTimeLine, TimeLine};
use crate::sync::wait_queue::SharedQueue;
use crate::sync::{LocalSemaphore, Semaphore, TryCell, WaitQueue};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use weir_model::faulty::Law;
use weir_model::warmup::Warmup;
use weir_policy::Upstream;
use weir_policy::budget::Tokens;
use weir_policy::rate::RateLimit;
use weir_topology::plan::{self, Clock, Mode, Point, Spec, To};

/// What a node has that is the process's.
#[derive(Clone)]
enum State {
    /// Permits with a wait queue: a queue's, a balancer's.
    Semaphore(Arc<Semaphore>, Arc<SharedQueue>),
    /// The buckets of a limit.
    Rate(Arc<TryCell<RateLimit>>),
    /// What further attempts are charged to.
    Budget(Arc<TryCell<Tokens>>),
    /// How warm it is.
    Warmup(Arc<TryCell<Warmup>>),
    /// Its time-line of faults.
    Fault(Arc<TimeLine>),
}

/// The process's state.
pub(crate) struct ProcessState {
    mail: Arc<[UnboundedSender<u32>]>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    interner: Interner,
    /// By identity.
    states: BTreeMap<u32, State>,
    /// What all loops know of balancers' targets, by the balancer's identity, and which targets those are.
    flags: BTreeMap<u32, (Vec<u32>, Arc<TargetFlags>)>,
    /// Connections to targets, by identity.
    open: BTreeMap<u32, Arc<Counter>>,
}

impl ProcessState {
    /// Of threads with these mailboxes.
    pub fn new(mail: Arc<[UnboundedSender<u32>]>) -> ProcessState {
        ProcessState { mail, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // What is in it is whole after every step.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is who in a plan; its nodes have all that they need from now on.
    pub fn prepare(&self, point: &Point, draws: &Draws, now_ns: u64) -> Keys {
        let mut known = self.known();
        let keys = known.interner.keys(point);
        for (node, &key) in point.nodes.iter().zip(&keys.nodes) {
            let targets = match node.to {
                To::List(list) => point.lists[list as usize].len(),
                _ => 0,
            };
            if !known.states.contains_key(&key)
                && let Some(state) = self.state(key, &point.specs[node.spec as usize], targets, now_ns)
            {
                known.states.insert(key, state);
            }
        }
        flags(point, &keys, &mut known);
        self.time_lines(point, (&keys, draws), &mut known);
        keys
    }

    fn state(&self, key: u32, spec: &Spec, targets: usize, now_ns: u64) -> Option<State> {
        let budget = |b: &_| State::Budget(Arc::new(TryCell::new(Tokens::new(b, now_ns))));
        match spec {
            Spec::Queue { concurrency, .. } => Some(self.semaphore(key, 1, *concurrency)),
            Spec::Lb(lb) => {
                let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min()?;
                Some(self.semaphore(key, targets, most))
            }
            Spec::Rate { rate, .. } => Some(State::Rate(Arc::new(TryCell::new(RateLimit::new(rate))))),
            Spec::Retry(retry) => retry.budget.as_ref().map(budget),
            Spec::Hedge(hedged) => hedged.budget.as_ref().map(budget),
            Spec::Warmup { .. } => Some(State::Warmup(Arc::new(TryCell::new(Warmup::default())))),
            _ => None,
        }
    }

    fn semaphore(&self, key: u32, n: usize, most: u32) -> State {
        let queue = Arc::new(SharedQueue::new(key, self.mail.clone()));
        State::Semaphore(Arc::new(Semaphore::new(n, most)), queue)
    }

    /// The time-lines of faulty nodes, one for all that share it. The messages of each name its first node.
    fn time_lines(&self, point: &Point, (keys, draws): (&Keys, &Draws), known: &mut Known) {
        let mut first_of: BTreeMap<plan::Line, NodeId> = BTreeMap::new();
        let mut made: BTreeMap<NodeId, (TimeLine, Vec<NodeId>)> = BTreeMap::new();
        for (id, node) in (0..).zip(&point.nodes) {
            let Spec::Faulty(faulty) = &point.specs[node.spec as usize] else { continue };
            if known.states.contains_key(&keys.nodes[id as usize]) {
                continue;
            }
            let first = match &faulty.line {
                plan::Line::Own => id,
                line => *first_of.entry(line.clone()).or_insert(id),
            };
            let lazy = faulty.clock == Clock::Lazy;
            let (line, nodes) = made.entry(first).or_insert_with(|| {
                let law = Law::new(faulty.mtbf_ns, faulty.mttr_ns, lazy, faulty.starts_up);
                let key = keys.nodes[id as usize];
                let line =
                    TimeLine::new(key, law, lazy, draws.time_line(id, &faulty.line), self.mail.clone());
                (line, Vec::new())
            });
            nodes.push(id);
            if faulty.mode == Mode::Crash {
                let cold = behind(point, id).into_iter().filter_map(|n| {
                    match known.states.get(&keys.nodes[n as usize]) {
                        Some(State::Warmup(warmup)) => Some(warmup.clone()),
                        _ => None,
                    }
                });
                line.warmups.extend(cold);
            }
        }
        for (line, nodes) in made.into_values() {
            let line = Arc::new(line);
            let of = nodes.into_iter().map(|n| (keys.nodes[n as usize], State::Fault(line.clone())));
            known.states.extend(of);
        }
    }

    fn get(&self, key: u32) -> Option<State> {
        self.known().states.get(&key).cloned()
    }

    /// The buckets of a limit.
    pub fn rate(&self, key: u32) -> Option<Arc<TryCell<RateLimit>>> {
        if let Some(State::Rate(rate)) = self.get(key) { Some(rate) } else { None }
    }

    /// A budget.
    pub fn budget(&self, key: u32) -> Option<Arc<TryCell<Tokens>>> {
        if let Some(State::Budget(budget)) = self.get(key) { Some(budget) } else { None }
    }

    /// How many are inside of a queue, or at a balancer's limited targets, and how many wait; `None`: it is none.
    pub fn inside(&self, key: u32) -> Option<(u64, u64)> {
        let Some(State::Semaphore(semaphore, queue)) = self.get(key) else { return None };
        Some((semaphore.all_inside(), queue.waiting()))
    }

    /// How warm a node is.
    pub fn warmup(&self, key: u32) -> Option<Arc<TryCell<Warmup>>> {
        if let Some(State::Warmup(warmup)) = self.get(key) { Some(warmup) } else { None }
    }

    /// What all loops know of a balancer's targets; nothing, if there is no such balancer.
    pub fn flags(&self, key: u32) -> Arc<TargetFlags> {
        let none = || Arc::new(TargetFlags::new(0, false, Box::default()));
        self.known().flags.get(&key).map_or_else(none, |(_, flags)| flags.clone())
    }

    /// Connections to a target, over all loops.
    pub fn open(&self, target: u32) -> Arc<Counter> {
        self.known().open.entry(target).or_default().clone()
    }
}

/// What all loops know of the targets of each balancer of a plan; begun anew where there was none, or with other targets.
fn flags(point: &Point, keys: &Keys, known: &mut Known) {
    let loads = Loads::of(point);
    for (node, &key) in point.nodes.iter().zip(&keys.nodes) {
        let Spec::Lb(lb) = &point.specs[node.spec as usize] else { continue };
        let targets = if let To::List(list) = node.to { &point.lists[list as usize][..] } else { &[] };
        let of = keys.of_targets(targets);
        if known.flags.get(&key).is_none_or(|(before, _)| *before != of) {
            let new = TargetFlags::new(targets.len(), lb.outlier.is_some(), loads.among(targets));
            known.flags.insert(key, (of, Arc::new(new)));
        }
    }
}

/// All nodes behind one.
fn behind(point: &Point, id: NodeId) -> BTreeSet<NodeId> {
    let (mut seen, mut stack) = (BTreeSet::new(), vec![id]);
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = &point.nodes[id as usize];
        stack.extend(point.specs[node.spec as usize].aside());
        match node.to {
            To::None => {}
            To::Node(next) => stack.push(next),
            To::List(list) => stack.extend(&point.lists[list as usize]),
        }
    }
    seen
}

/// The process's state as one thread has it, and who is told there when something is to be looked at again.
pub(crate) struct LocalState {
    process: Arc<ProcessState>,
    me: usize,
    semaphores: RefCell<BTreeMap<u32, Rc<LocalSemaphore>>>,
    timelines: RefCell<BTreeMap<u32, Rc<LocalTimeLine>>>,
    balancers: RefCell<BTreeMap<u32, Rc<LbState>>>,
    /// What the thread counts.
    pub metrics: Metrics,
}

impl LocalState {
    /// Of the thread with this number.
    pub fn new(process: Arc<ProcessState>, me: usize) -> Rc<LocalState> {
        let (semaphores, timelines) = (RefCell::default(), RefCell::default());
        let metrics = Metrics::default();
        Rc::new(LocalState { process, me, semaphores, timelines, balancers: RefCell::default(), metrics })
    }

    /// What is not a thread's own.
    pub fn process(&self) -> &ProcessState {
        &self.process
    }

    /// The permits of a node; `None`: it has none.
    pub fn semaphore(&self, key: u32) -> Option<Rc<LocalSemaphore>> {
        let Some(State::Semaphore(semaphore, queue)) = self.process.get(key) else { return None };
        let mut all = self.semaphores.borrow_mut();
        let new = || Rc::new(LocalSemaphore::new(semaphore, WaitQueue::new(queue, self.me)));
        Some(all.entry(key).or_insert_with(new).clone())
    }

    /// What the thread has of a balancer; new, if there is none of this shape.
    pub fn balancer(&self, key: u32, shape: Shape, upstream: impl FnOnce() -> Upstream) -> Rc<LbState> {
        let mut balancers = self.balancers.borrow_mut();
        if let Some(state) = balancers.get(&key).filter(|state| state.fits(&shape)) {
            return state.clone();
        }
        let state = Rc::new(LbState::new(shape, upstream()));
        balancers.insert(key, state.clone());
        state
    }

    /// The time-line of a faulty node.
    pub fn time_line(&self, key: u32) -> Option<Rc<LocalTimeLine>> {
        let Some(State::Fault(shared)) = self.process.get(key) else { return None };
        let mut all = self.timelines.borrow_mut();
        Some(all.entry(shared.number()).or_insert_with(|| LocalTimeLine::new(shared)).clone())
    }

    /// Reads the thread's mail for ever.
    pub async fn read(self: Rc<Self>, mut mail: UnboundedReceiver<u32>) {
        while let Some(key) = mail.recv().await {
            let semaphore = self.semaphores.borrow().get(&key).cloned();
            if let Some(semaphore) = semaphore {
                semaphore.queue.notified();
            }
            let timeline = self.timelines.borrow().get(&key).cloned();
            if let Some(timeline) = timeline {
                timeline.notified();
            }
        }
    }
}
