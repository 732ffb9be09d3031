//! Metrics of weir itself (`docs/spec/operating.md#metrics`). A request costs plain counters of its own thread: no
//! lock, no allocation, no lookup of a name.
//!
//! Each thread has its [`Metrics`]. Each counter is owned by what it measures: a listener, a balancer, a node, a
//! target's pool; it was found by its labels as the graph was built, so that a later graph continues it where the
//! labels are the same. A scrape asks each thread for its [`Samples`], adds up those of one series
//! ([`sample::merged`]), and writes a format ([`text`], [`protobuf`]).

mod busy;
pub(crate) mod connected;
pub(crate) mod counts;
pub(crate) mod families;
mod health;
pub(crate) mod histogram;
mod listener;
mod native;
mod node;
mod pool;
mod process;
mod protobuf;
mod recent;
pub(crate) mod sample;
pub(crate) mod text;
mod upstream;

pub(crate) use counts::Value as LabelValue;
pub(crate) use health::{CheckResult, HealthCounts, TargetHealth};
pub(crate) use listener::{
    Code, ExchangeOutcome, Handshake, HeadAnswer, ListenerCounts, Parting, RequestLimit,
};
pub(crate) use node::{Counting, Denied, NodeCounts, Rejected, Won};
pub(crate) use pool::{LbCounts, PoolCounts, TargetCounts};
pub(crate) use process::ProcessMetrics;
pub(crate) use process::Reload;
pub(crate) use process::{descriptors, now_unix_ms};
pub(crate) use recent::{BriefCounts, RecentCounts};
pub(crate) use sample::Samples;
pub use text::Exposition;
pub(crate) use upstream::{ConnectionCounts, Ending, OpenConnection, OriginHandshake};

use crate::sync::discards::{Discards, Slice};
use crate::sync::slices::{AT_ONCE, Pauses};
use busy::Busy;
use connected::ConnectedTargets;
use counts::{CountsBy, values};
use histogram::Histogram;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::Core;
use weir_plan::{self as plan, NodeId, Point};

values! {
    /// A limit that clients meet.
    Limit {
        MaxClients "max_clients",
        MaxClientsPerAddress "max_clients_per_address",
        /// Half of the descriptors are for clients.
        OpenFiles "open_files",
        /// There is no descriptor left.
        Descriptors "descriptors",
        /// The buffers of this process are full.
        Buffered "buffered",
        MaxConnections "max_connections",
    }
}

/// Pool and target, by display name.
type Names = (Arc<str>, Arc<str>);

/// The most counters that are doubted by name: of more it is cheaper to look at all.
const MOST_NAMED: usize = 4 * AT_ONCE;

/// Counters of targets that a later graph does not have.
#[derive(Default)]
struct CountersInDoubt {
    /// Any may be among them.
    are_all: bool,
    names: BTreeSet<Names>,
}

/// The name of a node, and its kind.
type Node = (Arc<str>, Counting);

/// The counters of one thread.
#[derive(Default)]
pub(crate) struct Metrics {
    listeners: RefCell<BTreeMap<String, Rc<ListenerCounts>>>,
    pools: RefCell<BTreeMap<Arc<str>, Rc<PoolCounts>>>,
    targets: RefCell<BTreeMap<Names, Rc<TargetCounts>>>,
    health: RefCell<BTreeMap<Names, Rc<HealthCounts>>>,
    nodes: RefCell<BTreeMap<Node, Rc<NodeCounts>>>,
    /// Which counters of targets a graph may have had as the last.
    doubted: RefCell<CountersInDoubt>,
    /// The targets of pools, as the last scrape has met them.
    pub connected: ConnectedTargets,
    /// The lateness of its clock.
    pub lag: Histogram,
    /// The share of the last second in which it ran.
    pub busy: Busy,
    pub limits: CountsBy<Limit, { Limit::COUNT }>,
    /// Scrapes.
    round: Cell<u64>,
}

impl Metrics {
    /// The counters of the listener of this name.
    pub fn listener(&self, name: &str) -> Rc<ListenerCounts> {
        let new = || Rc::new(ListenerCounts::new(name));
        self.listeners.borrow_mut().entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// The counters of all listeners in use.
    pub fn each_listener(&self, mut act: impl FnMut(&ListenerCounts)) {
        self.listeners.borrow().values().for_each(|counts| act(counts));
    }

    /// The counters of a pool with these targets.
    pub fn pool(&self, pool: &str, targets: &[Arc<str>]) -> LbCounts {
        let (counts, pool) = (self.targets_of(pool), self.pool_of(pool));
        LbCounts { targets: targets.iter().map(counts).collect(), pool }
    }

    /// The counters of a pool.
    pub fn pool_of(&self, pool: &str) -> Rc<PoolCounts> {
        let label: Arc<str> = pool.into();
        let new = || Rc::new(PoolCounts::new(label.clone()));
        self.pools.borrow_mut().entry(label.clone()).or_insert_with(new).clone()
    }

    /// Finds the counters of each target of a pool by its name.
    pub fn targets_of(&self, pool: &str) -> impl FnMut(&Arc<str>) -> Rc<TargetCounts> {
        let pool = self.pool_of(pool).label.clone();
        let mut all = self.targets.borrow_mut();
        move |name: &Arc<str>| {
            let new = || Rc::new(TargetCounts::new(name.clone()));
            all.entry((pool.clone(), name.clone())).or_insert_with(new).clone()
        }
    }

    /// Adds the counters of the health of these targets of a pool to the others.
    pub fn add_healths(&self, pool: &str, targets: &[Arc<str>], healths: &mut Vec<TargetHealth>) {
        let pool = self.pool_of(pool).label.clone();
        let mut all = self.health.borrow_mut();
        let target = |name: &Arc<str>| {
            let counts = all.entry((pool.clone(), name.clone())).or_default().clone();
            TargetHealth::new(pool.clone(), name.clone(), counts)
        };
        healths.extend(targets.iter().map(target));
    }

    /// The counters of a node of a plan.
    pub fn node(&self, point: &Point, id: NodeId, is: Counting) -> Rc<NodeCounts> {
        let label: Arc<str> = plan::label(point, id).into();
        let new = || Rc::new(NodeCounts::new(label.clone(), is));
        self.nodes.borrow_mut().entry((label.clone(), is)).or_insert_with(new).clone()
    }

    /// The counters of all nodes in use.
    pub fn each_node(&self, mut act: impl FnMut(&NodeCounts)) {
        self.nodes.borrow().values().for_each(|counts| act(counts));
    }

    /// Its clock beats now, and should have at `due_ns`.
    pub fn beats(&self, now_ns: u64, due_ns: u64) {
        self.lag.observe(now_ns.saturating_sub(due_ns));
        self.busy.look(now_ns);
    }

    /// A graph comes that may lack any of the targets that are counted.
    pub fn doubt_all(&self) {
        self.doubted.borrow_mut().are_all = true;
    }

    /// A graph comes that lacks this target of a pool.
    pub fn doubt(&self, pool: &Arc<str>, target: &Arc<str>) {
        let mut doubted = self.doubted.borrow_mut();
        match doubted.names.len() {
            MOST_NAMED.. => doubted.are_all = true,
            _ => _ = doubted.names.insert((pool.clone(), target.clone())),
        }
    }

    /// Forgets the counters of targets that no graph has any more, in slices. `has_former`: whether a graph before the present
    /// one remains.
    pub async fn forget(&self, has_former: bool, discards: &Discards, core: &Core) {
        let pauses = Pauses::new(core);
        let CountersInDoubt { are_all, names } = self.doubted.take();
        if are_all {
            self.doubted.borrow_mut().are_all = has_former;
            take_unused(&self.targets, discards, &pauses).await;
            take_unused(&self.health, discards, &pauses).await;
        }
        let names: Vec<Names> = names.into_iter().collect();
        for some in names.chunks(AT_ONCE) {
            let mut gone = Vec::new();
            for names in some {
                let (is_used, counts) = take_one(&self.targets, names);
                let (is_judged, health) = take_one(&self.health, names);
                gone.push((counts, health));
                if is_used || is_judged {
                    // An older graph still has it.
                    self.doubted.borrow_mut().names.insert(names.clone());
                }
            }
            discards.put(gone, Slice::Memory);
            pauses.pause().await;
        }
    }

    /// The number of the last scrape that has begun.
    pub fn round(&self) -> u64 {
        self.round.get()
    }

    /// A scrape begins: unused counters are forgotten, but those of targets, which go when their graph does. Returns
    /// its number.
    pub fn begin_round(&self) -> u64 {
        fn held<K, T>(all: &RefCell<BTreeMap<K, Rc<T>>>)
        where
            K: Ord,
        {
            all.borrow_mut().retain(|_, counts| Rc::strong_count(counts) > 1);
        }
        held(&self.listeners);
        held(&self.pools);
        held(&self.nodes);
        self.round.set(self.round.get() + 1);
        self.round.get()
    }
}

/// Takes an entry out of a table if only that has it; returns whether anything else does, and the entry.
fn take_one<T>(all: &RefCell<BTreeMap<Names, Rc<T>>>, names: &Names) -> (bool, Option<Rc<T>>) {
    let mut all = all.borrow_mut();
    match all.get(names).map(Rc::strong_count) {
        Some(1) => (false, all.remove(names)),
        count => (count.is_some(), None),
    }
}

/// Takes away what only this table has.
async fn take_unused<T: 'static>(
    all: &RefCell<BTreeMap<Names, Rc<T>>>,
    discards: &Discards,
    pauses: &Pauses<'_>,
) {
    let mut after: Option<Names> = None;
    loop {
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut unused, mut last) = (Vec::new(), None);
        {
            let all = all.borrow();
            for (names, counts) in all.range::<Names, _>((from, Bound::Unbounded)).take(AT_ONCE) {
                if Rc::strong_count(counts) == 1 {
                    unused.push(names.clone());
                }
                last = Some(names);
            }
            after = last.cloned();
        }
        if after.is_none() {
            return;
        }
        let unused: Vec<_> = unused.iter().filter_map(|names| all.borrow_mut().remove_entry(names)).collect();
        discards.put(unused, Slice::Memory);
        pauses.pause().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::settings::TCP;
    use weir_net::io::clock::Clock;
    use weir_net::io::runtime::Runtime;
    use weir_policy::TargetId;
    use weir_stats::Key;

    fn target(counts: &LbCounts, number: usize) -> &TargetCounts {
        counts.targets.get(number).expect("a target")
    }

    #[test]
    fn who_has_the_same_labels_counts_in_one_place() {
        let metrics = Metrics::default();
        let (one, other) = (metrics.pool("p", &["a".into(), "b".into()]), metrics.pool("p", &["b".into()]));
        one.begins(TargetId(1));
        other.begins(TargetId(0));
        other.ended(0, TargetId(0), None);
        assert_eq!((target(&one, 1).in_flight(), target(&one, 1).ended.sum()), (1, 1));
        // No target is counted twice, and a number without a target counts nowhere.
        one.begins(TargetId(7));
        assert!(target(&one, 1).is_new_in(1) && !target(&other, 0).is_new_in(1));
    }

    fn forget(metrics: &Metrics) {
        let runtime = Runtime::new().expect("a runtime");
        let core = Core::new(runtime.clone(), Clock::start(), Key::new(1), TCP).expect("timers");
        let forgets = async {
            runtime.spawn(core.timers.clone().run(runtime.clone()));
            metrics.forget(false, &Discards::default(), &core).await;
        };
        runtime.clone().block_on(forgets).expect("it polls");
    }

    /// Only doubted counters are looked at, until nothing has them any more; a target that comes back keeps its own.
    #[test]
    fn doubted_counters_are_forgotten_once_nothing_has_them() {
        let metrics = Metrics::default();
        let [a, b] = ["a", "b"].map(|name| metrics.pool("p", &[name.into()]));
        drop(metrics.pool("p", &["c".into()]));
        a.begins(TargetId(0));
        metrics.doubt(&"p".into(), &"a".into());
        metrics.doubt(&"p".into(), &"b".into());
        drop(b);
        forget(&metrics);
        let names = || metrics.targets.borrow().keys().map(|of| of.1.to_string()).collect::<String>();
        assert_eq!(names(), "ac");
        drop(a);
        forget(&metrics);
        assert_eq!(names(), "c");
    }

    #[test]
    fn what_nobody_counts_by_is_forgotten() {
        let metrics = Metrics::default();
        let kept = metrics.pool("p", &["a".into()]);
        kept.begins(TargetId(0));
        drop(metrics.pool("p", &["b".into()]));
        drop(metrics.listener("edge"));
        metrics.begin_round();
        metrics.doubt_all();
        forget(&metrics);
        assert_eq!((metrics.targets.borrow().len(), metrics.listeners.borrow().len()), (1, 0));
        assert_eq!(target(&metrics.pool("p", &["a".into()]), 0).in_flight(), 1);
    }
}
