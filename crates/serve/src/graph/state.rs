//! State that belongs to the process: queues, limits, budgets, faults. Shared by atomics and messages; no request waits for
//! a lock (`serving.md` §1).
//!
//! Built from the plan before any thread runs. Every loop, and the thread of the built-in servers behind them, has a number
//! and a mailbox: a message is the number of a line (or of a time-line of faults) that is to be looked at again.

use crate::io::runtime::Runtime;
use crate::nodes::NodeId;
use crate::sync::{Brief, Gate, Line, Slots, timeline as fault, wait_queue as line};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use weir_model::faulty::Law;
use weir_model::warmup::Warmup;
use weir_policy::budget::Tokens;
use weir_policy::rate::RateLimit;
use weir_stats::Key;
use weir_topology::plan::{self, Clock, Mode, Point, Spec, To};

/// What a node has that is the process's.
enum State {
    /// Slots with a line: a queue's, a balancer's.
    Gate(Arc<Slots>, Arc<line::Public>),
    /// The buckets of a limit.
    Rate(Arc<Brief<RateLimit>>),
    /// What further attempts are charged to.
    Budget(Arc<Brief<Tokens>>),
    /// How warm it is.
    Warmup(Arc<Brief<Warmup>>),
    /// Its time-line of faults.
    Fault(Arc<fault::TimeLine>),
}

/// The process's state.
pub(crate) struct Shared {
    mail: Arc<[UnboundedSender<u32>]>,
    /// Taken by each loop as it begins.
    boxes: Vec<Mutex<Option<UnboundedReceiver<u32>>>>,
    states: BTreeMap<NodeId, State>,
}

impl Shared {
    /// For so many loops, and the thread of the built-in servers behind them.
    pub fn new(point: &Point, loops: usize, now_ns: u64, draw: Key) -> Shared {
        let (mail, boxes): (Vec<_>, Vec<_>) = (0..=loops).map(|_| unbounded_channel()).unzip();
        let mut shared = Shared {
            mail: mail.into(),
            boxes: boxes.into_iter().map(|b| Mutex::new(Some(b))).collect(),
            states: BTreeMap::new(),
        };
        for (id, node) in (0..).zip(&point.nodes) {
            let targets = match node.to {
                To::List(list) => point.lists[list as usize].len(),
                _ => 0,
            };
            if let Some(state) = shared.state(id, &point.specs[node.spec as usize], targets, now_ns) {
                shared.states.insert(id, state);
            }
        }
        shared.time_lines(point, draw);
        shared
    }

    fn state(&self, id: NodeId, spec: &Spec, targets: usize, now_ns: u64) -> Option<State> {
        let budget = |b: &_| State::Budget(Arc::new(Brief::new(Tokens::new(b, now_ns))));
        match spec {
            Spec::Queue { concurrency, .. } => Some(self.gate(id, 1, *concurrency)),
            Spec::Lb(lb) => {
                let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min()?;
                Some(self.gate(id, targets, most))
            }
            Spec::Rate { rate, .. } => Some(State::Rate(Arc::new(Brief::new(RateLimit::new(rate))))),
            Spec::Retry(retry) => retry.budget.as_ref().map(budget),
            Spec::Hedge(hedged) => hedged.budget.as_ref().map(budget),
            Spec::Warmup { .. } => Some(State::Warmup(Arc::new(Brief::new(Warmup::default())))),
            _ => None,
        }
    }

    fn gate(&self, id: NodeId, n: usize, most: u32) -> State {
        State::Gate(Arc::new(Slots::new(n, most)), Arc::new(line::Public::new(id, self.mail.clone())))
    }

    /// The time-lines of faulty nodes, one for all that share it. The messages of each have the number of its first node.
    fn time_lines(&mut self, point: &Point, draw: Key) {
        let mut known: BTreeMap<plan::Line, NodeId> = BTreeMap::new();
        let mut made: BTreeMap<NodeId, (fault::TimeLine, Vec<NodeId>)> = BTreeMap::new();
        for (id, node) in (0..).zip(&point.nodes) {
            let Spec::Faulty(faulty) = &point.specs[node.spec as usize] else { continue };
            let first = match &faulty.line {
                plan::Line::Own => id,
                line => *known.entry(line.clone()).or_insert(id),
            };
            let lazy = faulty.clock == Clock::Lazy;
            let (line, nodes) = made.entry(first).or_insert_with(|| {
                let law = Law::new(faulty.mtbf_ns, faulty.mttr_ns, lazy, faulty.starts_up);
                let key = draw.with(u64::from(id));
                (fault::TimeLine::new(id, law, lazy, key, self.mail.clone()), Vec::new())
            });
            nodes.push(id);
            if faulty.mode == Mode::Crash {
                line.warmups.extend(behind(point, id).into_iter().filter_map(
                    |n| match self.states.get(&n) {
                        Some(State::Warmup(warmup)) => Some(warmup.clone()),
                        _ => None,
                    },
                ));
            }
        }
        for (line, nodes) in made.into_values() {
            let line = Arc::new(line);
            self.states.extend(nodes.into_iter().map(|n| (n, State::Fault(line.clone()))));
        }
    }

    /// The number of the thread of the built-in servers.
    pub fn built_in(&self) -> usize {
        self.mail.len() - 1
    }

    /// The buckets of a limit.
    pub fn rate(&self, id: NodeId) -> Option<Arc<Brief<RateLimit>>> {
        if let Some(State::Rate(rate)) = self.states.get(&id) { Some(rate.clone()) } else { None }
    }

    /// A budget.
    pub fn budget(&self, id: NodeId) -> Option<Arc<Brief<Tokens>>> {
        if let Some(State::Budget(budget)) = self.states.get(&id) { Some(budget.clone()) } else { None }
    }

    /// How warm a node is.
    pub fn warmup(&self, id: NodeId) -> Option<Arc<Brief<Warmup>>> {
        if let Some(State::Warmup(warmup)) = self.states.get(&id) { Some(warmup.clone()) } else { None }
    }

    /// The process's state as loop `me` has it.
    pub fn on(&self, me: usize) -> OnLoop<'_> {
        OnLoop { shared: self, me, addressees: RefCell::default() }
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

/// The process's state while a loop is built.
pub(crate) struct OnLoop<'a> {
    shared: &'a Shared,
    me: usize,
    addressees: RefCell<Addressees>,
}

/// Who is told on a loop, by number.
#[derive(Default)]
struct Addressees {
    lines: BTreeMap<u32, Rc<Line>>,
    faults: BTreeMap<u32, Rc<fault::Local>>,
}

impl OnLoop<'_> {
    /// The slots of a node; `None`: it has none.
    pub fn gate(&self, id: NodeId) -> Option<Rc<Gate>> {
        let Some(State::Gate(slots, public)) = self.shared.states.get(&id) else { return None };
        let line = Line::new(public.clone(), self.me);
        self.addressees.borrow_mut().lines.insert(id, line.clone());
        Some(Rc::new(Gate { slots: slots.clone(), line }))
    }

    /// The time-line of a faulty node.
    pub fn time_line(&self, id: NodeId) -> Option<Rc<fault::Local>> {
        let Some(State::Fault(public)) = self.shared.states.get(&id) else { return None };
        let mut addressees = self.addressees.borrow_mut();
        let local =
            addressees.faults.entry(public.number()).or_insert_with(|| fault::Local::new(public.clone()));
        Some(local.clone())
    }

    /// From now on the loop's messages are read.
    pub fn read(self, rt: &Runtime) {
        let mailbox = self.shared.boxes.get(self.me);
        let mail = mailbox.and_then(|m| m.lock().unwrap_or_else(PoisonError::into_inner).take());
        let to = self.addressees.into_inner();
        if let Some(mail) = mail
            && !(to.lines.is_empty() && to.faults.is_empty())
        {
            rt.spawn(read(mail, to));
        }
    }
}

/// Reads a loop's mail for ever.
async fn read(mut mail: UnboundedReceiver<u32>, to: Addressees) {
    while let Some(number) = mail.recv().await {
        if let Some(line) = to.lines.get(&number) {
            line.told();
        }
        if let Some(line) = to.faults.get(&number) {
            line.told();
        }
    }
}
