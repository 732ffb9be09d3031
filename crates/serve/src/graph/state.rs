//! Process-wide state of nodes, shared by all loops and graphs: semaphores, token buckets, budgets, faults; and a
//! thread's state of its balancers. It belongs to identities ([`super::identity`]), so that a later graph takes over
//! what stays.
//!
//! Shared by atomics and messages; no request waits for a lock (`docs/spec/serving.md#loop-and-process`): the two
//! locks here are taken while a graph is built. Every thread has a number and a mailbox: a message is the identity of
//! a semaphore (or of a timeline of faults) that has changed.

use super::draws::Draws;
use super::hash_names::{HashNames, hash_name};
use super::identity::{Interner, Keys};
use super::slots::{Changes, Slots};
use crate::exchange::NodeId;
use crate::exchange::late::LateFlag;
use crate::metrics::Metrics;
use crate::nodes::lb::{LbState, Loads, TargetFlags};
use crate::sync::counter::Counter;
use crate::sync::gate::SharedGate;
use crate::sync::signal::Signal;
use crate::sync::timeline::{LocalTimeLine, TimeLine};
use crate::sync::wait_queue::SharedQueue;
use crate::sync::{LocalSemaphore, Semaphore, TryCell, WaitQueue};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use weir_model::warmup::Warmup;
use weir_plan::{self as plan, Clock, Edge, Mode, Point, Spec};
use weir_policy::TargetNames;
use weir_policy::budget::Tokens;
use weir_policy::config::{Budget, GateArgs, Rate};
use weir_policy::rate::RateLimit;

/// The shared state of a node, and the arguments that it was made for.
#[derive(Clone)]
enum State {
    /// Permits with a wait queue: a queue's, a balancer's.
    Semaphore(Arc<Semaphore>, Arc<SharedQueue>),
    /// The buckets of a limit.
    Rate(Arc<TryCell<RateLimit>>, Rate),
    /// The budget of further attempts.
    Budget(Arc<TryCell<Tokens>>, Budget),
    /// The progress of a warm-up.
    Warmup(Arc<TryCell<Warmup>>),
    /// Whom a gate lets in.
    Gate(Arc<TryCell<SharedGate>>),
    /// A timeline of faults.
    Fault(Arc<TimeLine>, Box<plan::Faulty>),
}

/// The shared state that a node needs.
enum SharedStateSpec<'a> {
    /// A number of counters, of this number of permits each.
    Permits(usize, u32),
    Rate(&'a Rate),
    Budget(&'a Budget),
    /// When the node has joined, ns; `None`: it is there from the start.
    Warmup(Option<u64>),
    /// Of these arguments, and whether the node has joined.
    Gate(&'a GateArgs, bool),
}

/// The process's state.
pub(crate) struct ProcessState {
    mail: Arc<[UnboundedSender<u32>]>,
    /// Raised when the last graph of an epoch is gone on all threads, and when a loop has freed what one has left.
    pub graph_ended: Arc<Signal>,
    /// Pieces of memory that loops have freed, and that were not given back since.
    freed: AtomicUsize,
    /// Written while a plan is prepared; threads that build its graph then only read it.
    known: RwLock<Registry>,
}

#[derive(Default)]
struct Registry {
    interner: Interner,
    /// The identities of each graph that some thread still has, by epoch.
    graphs: Vec<(u32, Weak<GraphKeys>)>,
    /// By identity.
    states: BTreeMap<u32, State>,
    /// The targets of balancers, by the balancer's identity.
    slots: BTreeMap<u32, Slots>,
    /// The names of those of hashing policies.
    hash_names: BTreeMap<u32, HashNames>,
    /// By balancer: what is kept by its requests of an epoch, in graphs and beyond them.
    places: BTreeMap<u32, Vec<(u32, Weak<()>)>>,
    /// State of the targets that all loops share.
    flags: BTreeMap<u32, Arc<TargetFlags>>,
    /// The load of targets that are probed, by identity.
    loads: Loads,
    /// Connections to targets, by identity.
    open: BTreeMap<u32, Arc<Counter>>,
}

/// The keys of a graph for as long as some thread has it.
pub(crate) struct GraphKeys {
    keys: Keys,
    ended: Arc<Signal>,
}

impl Deref for GraphKeys {
    type Target = Keys;

    fn deref(&self) -> &Keys {
        &self.keys
    }
}

impl Drop for GraphKeys {
    /// On the thread that drops the graph last, often a loop; it does not wait.
    fn drop(&mut self) {
        self.ended.raise();
    }
}

/// The identities of a plan.
pub(crate) struct PlanIds {
    pub keys: Arc<GraphKeys>,
    /// The targets of each balancer by their indices; `None`: no target any more.
    pub targets: BTreeMap<NodeId, Box<[Option<NodeId>]>>,
    /// The names of their targets, where a policy hashes them, or their subsets depend on them.
    pub names: BTreeMap<NodeId, TargetNames>,
    /// By balancer: kept as long as a request of this epoch can be at an index of its targets.
    pub places: BTreeMap<NodeId, Arc<()>>,
    /// The state of their targets that all loops share.
    pub flags: BTreeMap<NodeId, Arc<TargetFlags>>,
    pub changes: Changes,
}

impl ProcessState {
    /// For threads with these mailboxes.
    pub fn new(mail: Arc<[UnboundedSender<u32>]>) -> ProcessState {
        ProcessState {
            mail,
            graph_ended: Arc::default(),
            freed: AtomicUsize::new(0),
            known: RwLock::default(),
        }
    }

    /// Notes that a loop has freed pieces of memory.
    pub fn freed(&self, pieces: usize) {
        self.freed.fetch_add(pieces, Relaxed);
        self.graph_ended.raise();
    }

    /// Whether there are `many` of them for each thread to be given back; if so, that begins now. Each call of the C library visits
    /// the heaps of all threads.
    pub fn takes_freed(&self, many: usize) -> bool {
        let are_many = self.freed.load(Relaxed) >= many * self.mail.len();
        if are_many {
            self.freed.store(0, Relaxed);
        }
        are_many
    }

    // Its content is valid after every step.
    fn known(&self) -> RwLockReadGuard<'_, Registry> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Registry> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Interns the identities of a plan and creates the shared state of its nodes.
    pub fn prepare(&self, epoch: u32, point: &Point, draws: &Draws, now_ns: u64) -> PlanIds {
        let mut known = self.known_mut();
        known.forget();
        let keys = known.interner.keys(point);
        let keys = Arc::new(GraphKeys { keys, ended: self.graph_ended.clone() });
        known.graphs.push((epoch, Arc::downgrade(&keys)));
        let (mut targets, mut names, mut places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut changes = Changes::default();
        for (id, node) in (0..).zip(&point.nodes) {
            let key = keys.nodes[id as usize];
            let spec = &point.specs[node.spec as usize];
            let mut count = 1;
            if let (Spec::Lb(lb), Edge::List(list)) = (spec, node.to) {
                let list = &point.lists[list as usize];
                let (oldest, kept) = known.keep_places(key, epoch);
                places.insert(id, kept);
                let slots = known.slots.entry(key).or_default();
                let (indices, changed) = slots.assign(&keys.of_targets(list), epoch, oldest);
                changes.added += changed.added;
                changes.removed += changed.removed;
                count = indices.len();
                let nodes: Box<[_]> = indices.iter().map(|at| at.map(|at| list[at as usize])).collect();
                if lb.balance.traits().hashes || lb.subset.is_some_and(|subset| subset.uses_names()) {
                    names.insert(id, known.name(key, point, &keys, &nodes));
                }
                targets.insert(id, nodes);
            }
            let joined_ns = draws.joined_ns(id);
            self.renew(&mut known, key, wanted(spec, count, joined_ns), now_ns);
        }
        let flags = flags(point, &keys, &targets, self.mail.len(), &mut known);
        self.time_lines(point, &keys, draws, &mut known);
        PlanIds { keys, targets, names, places, flags, changes }
    }

    /// Creates the shared state of a node; existing state of that kind is kept.
    fn renew(&self, known: &mut Registry, key: u32, wanted: Option<SharedStateSpec<'_>>, now_ns: u64) {
        let new = match (wanted, known.states.get(&key)) {
            (None, Some(State::Fault(..)) | None)
            | (Some(SharedStateSpec::Warmup(_)), Some(State::Warmup(_)))
            | (Some(SharedStateSpec::Gate(..)), Some(State::Gate(_))) => return,
            (Some(SharedStateSpec::Permits(n, most)), Some(State::Semaphore(semaphore, queue))) => {
                if semaphore.change(n, most) {
                    queue.look_again();
                }
                return;
            }
            (Some(SharedStateSpec::Rate(rate)), Some(State::Rate(_, same))) if rate == same => return,
            (Some(SharedStateSpec::Budget(budget)), Some(State::Budget(_, same))) if budget == same => return,
            (Some(SharedStateSpec::Permits(n, most)), _) => self.semaphore(key, n, most),
            (Some(SharedStateSpec::Rate(rate)), _) => {
                State::Rate(Arc::new(TryCell::new(RateLimit::new(rate))), rate.clone())
            }
            (Some(SharedStateSpec::Budget(b)), _) => {
                State::Budget(Arc::new(TryCell::new(Tokens::new(b, now_ns))), b.clone())
            }
            (Some(SharedStateSpec::Warmup(joined_ns)), _) => {
                let mut warmup = Warmup::default();
                if let Some(joined_ns) = joined_ns {
                    warmup.restart(joined_ns);
                }
                State::Warmup(Arc::new(TryCell::new(warmup)))
            }
            (Some(SharedStateSpec::Gate(args, is_newcomer)), _) => {
                State::Gate(Arc::new(TryCell::new(SharedGate::new(args, is_newcomer))))
            }
            (None, Some(_)) => {
                known.states.remove(&key);
                return;
            }
        };
        known.states.insert(key, new);
    }

    fn semaphore(&self, key: u32, n: usize, most: u32) -> State {
        let queue = Arc::new(SharedQueue::new(key, self.mail.clone()));
        State::Semaphore(Arc::new(Semaphore::new(n, most)), queue)
    }

    /// The timelines of faulty nodes, one for all that share it. The messages of each name its first node.
    fn time_lines(&self, point: &Point, keys: &Keys, draws: &Draws, known: &mut Registry) {
        let mut first_of: BTreeMap<plan::Line, NodeId> = BTreeMap::new();
        let mut together: BTreeMap<NodeId, Vec<(NodeId, &plan::Faulty)>> = BTreeMap::new();
        for (id, node) in (0..).zip(&point.nodes) {
            let Spec::Faulty(faulty) = &point.specs[node.spec as usize] else { continue };
            let first = match &faulty.line {
                plan::Line::Own => id,
                line => *first_of.entry(line.clone()).or_insert(id),
            };
            together.entry(first).or_default().push((id, faulty));
        }
        for (first, nodes) in together {
            let key = |id: NodeId| keys.nodes[id as usize];
            let there = nodes.iter().find_map(|(id, faulty)| match known.states.get(&key(*id)) {
                Some(State::Fault(line, same)) if **same == **faulty => Some(line.clone()),
                _ => None,
            });
            let line =
                there.unwrap_or_else(|| Arc::new(self.time_line(point, keys, draws, first, &nodes, known)));
            for (id, faulty) in nodes {
                known.states.insert(key(id), State::Fault(line.clone(), Box::new(faulty.clone())));
            }
        }
    }

    fn time_line(
        &self,
        point: &Point,
        keys: &Keys,
        draws: &Draws,
        first: NodeId,
        nodes: &[(NodeId, &plan::Faulty)],
        known: &Registry,
    ) -> TimeLine {
        // Nodes on one timeline have the same law.
        let faulty = nodes[0].1;
        let lazy = faulty.clock == Clock::Lazy;
        let law = faulty.law();
        let draw = draws.time_line(first, &faulty.line);
        let begins_ns = draws.joined_ns(first).filter(|_| !matches!(faulty.line, plan::Line::Together(_)));
        let mut line =
            TimeLine::new(keys.nodes[first as usize], law, lazy, draw, begins_ns, self.mail.clone());
        for (id, _) in nodes.iter().filter(|(_, faulty)| faulty.mode == Mode::Crash) {
            for n in behind(point, *id) {
                match known.states.get(&keys.nodes[n as usize]) {
                    Some(State::Warmup(warmup)) => line.warmups.push(warmup.clone()),
                    Some(State::Gate(gate)) => line.gates.push(gate.clone()),
                    _ => {}
                }
            }
        }
        line
    }

    fn get(&self, key: u32) -> Option<State> {
        self.known().states.get(&key).cloned()
    }

    /// The buckets of a limit.
    pub fn rate(&self, key: u32) -> Option<Arc<TryCell<RateLimit>>> {
        if let Some(State::Rate(rate, _)) = self.get(key) { Some(rate) } else { None }
    }

    /// A budget.
    pub fn budget(&self, key: u32) -> Option<Arc<TryCell<Tokens>>> {
        if let Some(State::Budget(budget, _)) = self.get(key) { Some(budget) } else { None }
    }

    /// The number inside a queue, or at a balancer's limited targets, and the number waiting; `None`: it has no such
    /// state.
    pub fn inside(&self, key: u32) -> Option<(u64, u64)> {
        let Some(State::Semaphore(semaphore, queue)) = self.get(key) else { return None };
        Some((semaphore.all_inside(), queue.waiting()))
    }

    /// Whom a gate lets in.
    pub fn gate(&self, key: u32) -> Option<Arc<TryCell<SharedGate>>> {
        if let Some(State::Gate(gate)) = self.get(key) { Some(gate) } else { None }
    }

    /// The warmth of a node.
    pub fn warmup(&self, key: u32) -> Option<Arc<TryCell<Warmup>>> {
        if let Some(State::Warmup(warmup)) = self.get(key) { Some(warmup) } else { None }
    }

    /// Connections to a target, over all loops.
    pub fn open(&self, target: u32) -> Arc<Counter> {
        let known = self.known().open.get(&target).cloned();
        known.unwrap_or_else(|| self.known_mut().open.entry(target).or_default().clone())
    }

    /// Makes the counters of connections to these targets, so that no loop does.
    pub fn open_all(&self, targets: impl Iterator<Item = u32>) {
        let mut known = self.known_mut();
        targets.for_each(|target| _ = known.open.entry(target).or_default());
    }

    /// Epochs of which some thread still has a graph, the oldest first.
    pub fn epochs(&self) -> Vec<u32> {
        self.known()
            .graphs
            .iter()
            .filter(|(_, keys)| keys.strong_count() > 0)
            .map(|(epoch, _)| *epoch)
            .collect()
    }
}

impl Registry {
    /// The oldest epoch whose requests can still be at a target of a balancer, before a graph is built of `epoch`; and
    /// what its requests of that epoch keep.
    fn keep_places(&mut self, balancer: u32, epoch: u32) -> (u32, Arc<()>) {
        let places = self.places.entry(balancer).or_default();
        places.retain(|(_, place)| place.strong_count() > 0);
        let oldest = places.first().map_or(epoch, |(epoch, _)| *epoch);
        let place = Arc::new(());
        places.push((epoch, Arc::downgrade(&place)));
        (oldest, place)
    }

    /// Names the targets of a hashing policy.
    fn name(&mut self, balancer: u32, point: &Point, keys: &Keys, nodes: &[Option<NodeId>]) -> TargetNames {
        let targets: Vec<Option<u32>> =
            nodes.iter().map(|node| node.map(|id| keys.targets[id as usize])).collect();
        let name = |i: usize| nodes[i].map_or_else(String::new, |id| hash_name(point, id));
        self.hash_names.entry(balancer).or_default().renew(&targets, name)
    }

    /// Forgets what no graph has any more.
    fn forget(&mut self) {
        self.graphs.retain(|(_, keys)| keys.strong_count() > 0);
        let graphs: Vec<Arc<GraphKeys>> = self.graphs.iter().filter_map(|(_, keys)| keys.upgrade()).collect();
        let mut left: Vec<u32> =
            graphs.iter().flat_map(|k| k.nodes.iter().chain(&k.targets).copied()).collect();
        left.sort_unstable();
        left.dedup();
        let is_left = |key: &u32| left.binary_search(key).is_ok();
        self.interner.keep(|key| is_left(&key));
        self.states.retain(|key, _| is_left(key));
        self.slots.retain(|key, _| is_left(key));
        self.hash_names.retain(|key, _| is_left(key));
        self.places.retain(|key, _| is_left(key));
        self.flags.retain(|key, _| is_left(key));
        self.loads.keep(|key| is_left(&key));
        self.open.retain(|key, _| is_left(key));
    }
}

/// The shared state that a node needs; `targets`: indices of a balancer; `joined_ns`: when it joined.
fn wanted(spec: &Spec, targets: usize, joined_ns: Option<u64>) -> Option<SharedStateSpec<'_>> {
    match spec {
        Spec::Queue { concurrency, .. } => Some(SharedStateSpec::Permits(1, *concurrency)),
        Spec::Lb(lb) => {
            let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min()?;
            Some(SharedStateSpec::Permits(targets, most))
        }
        Spec::Rate { rate, .. } => Some(SharedStateSpec::Rate(rate)),
        Spec::Retry(retry) => retry.budget.as_ref().map(SharedStateSpec::Budget),
        Spec::Hedge(hedged) => hedged.budget.as_ref().map(SharedStateSpec::Budget),
        Spec::Warmup(_) => Some(SharedStateSpec::Warmup(joined_ns)),
        Spec::Gate(args) => Some(SharedStateSpec::Gate(args, joined_ns.is_some())),
        _ => None,
    }
}

/// The shared state of the targets of each balancer of a plan; that of remaining targets is kept.
fn flags(
    point: &Point,
    keys: &Keys,
    targets: &BTreeMap<NodeId, Box<[Option<NodeId>]>>,
    threads: usize,
    known: &mut Registry,
) -> BTreeMap<NodeId, Arc<TargetFlags>> {
    known.loads.add(point, &keys.nodes);
    let mut all = BTreeMap::new();
    for (id, targets) in targets {
        let (node, key) = (&point.nodes[*id as usize], keys.nodes[*id as usize]);
        let Spec::Lb(lb) = &point.specs[node.spec as usize] else { continue };
        let loads = known.loads.among(targets.iter().map(|t| t.map(|t| keys.nodes[t as usize])));
        let wants_successes = lb.outlier.is_some();
        let before = known.flags.get(&key).cloned();
        let new = match &before {
            None => TargetFlags::new(targets.len(), wants_successes, loads),
            Some(before) => before.renewed(targets.iter().map(Option::is_some), wants_successes, loads),
        };
        let followers = if lb.follows_counts() { threads } else { 0 };
        let new = new.with_counts(lb.sees_counts_every_ns().is_some(), followers, before.as_deref());
        let exists: Vec<bool> = targets.iter().map(Option::is_some).collect();
        let new = new.with_reports(lb.balance.load_field().is_some(), &exists, before.as_deref());
        let new = Arc::new(new);
        known.flags.insert(key, new.clone());
        all.insert(*id, new);
    }
    all
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
            Edge::None => {}
            Edge::Node(next) => stack.push(next),
            Edge::List(list) => stack.extend(&point.lists[list as usize]),
        }
    }
    seen
}

/// Process-wide state as one thread sees it, with that thread's listeners for changes.
pub(crate) struct LocalState {
    process: Arc<ProcessState>,
    me: usize,
    semaphores: RefCell<BTreeMap<u32, Rc<LocalSemaphore>>>,
    timelines: RefCell<BTreeMap<u32, Rc<LocalTimeLine>>>,
    balancers: RefCell<BTreeMap<u32, Rc<LbState>>>,
    /// The thread's counters.
    pub metrics: Metrics,
}

impl LocalState {
    /// For the thread with this number.
    pub fn new(process: Arc<ProcessState>, me: usize) -> Rc<LocalState> {
        let (semaphores, timelines) = (RefCell::default(), RefCell::default());
        let metrics = Metrics::default();
        Rc::new(LocalState { process, me, semaphores, timelines, balancers: RefCell::default(), metrics })
    }

    /// The part that is not a thread's own.
    pub fn process(&self) -> &ProcessState {
        &self.process
    }

    /// The permits of a node; `None`: it has none.
    pub fn semaphore(&self, key: u32) -> Option<Rc<LocalSemaphore>> {
        let Some(State::Semaphore(semaphore, queue)) = self.process.get(key) else { return None };
        let mut all = self.semaphores.borrow_mut();
        if let Some(known) = all.get(&key).filter(|known| known.is_of(&semaphore)) {
            return Some(known.clone());
        }
        let new = Rc::new(LocalSemaphore::new(semaphore, WaitQueue::new(queue, self.me)));
        all.insert(key, new.clone());
        Some(new)
    }

    /// The thread's state of a balancer; new, if it has none.
    pub fn balancer(&self, key: u32, new: impl FnOnce() -> LbState) -> (Rc<LbState>, bool) {
        let mut balancers = self.balancers.borrow_mut();
        if let Some(state) = balancers.get(&key) {
            return (state.clone(), false);
        }
        let state = Rc::new(new());
        balancers.insert(key, state.clone());
        (state, true)
    }

    /// The flag by which requests of a balancer know that a `timeout` around it has passed.
    pub fn late(&self, key: u32) -> Option<LateFlag> {
        self.balancers.borrow().get(&key).map(|state| state.late.clone())
    }

    /// Forgets what no graph of this thread has any more.
    pub fn forget(&self) {
        self.semaphores.borrow_mut().retain(|_, one| Rc::strong_count(one) > 1);
        self.timelines.borrow_mut().retain(|_, one| Rc::strong_count(one) > 1);
        self.balancers.borrow_mut().retain(|_, one| Rc::strong_count(one) > 1);
    }

    /// The timeline of a faulty node.
    pub fn time_line(&self, key: u32) -> Option<Rc<LocalTimeLine>> {
        let Some(State::Fault(shared, _)) = self.process.get(key) else { return None };
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
