//! From a plan to the nodes that a loop, the owner of process-wide state, or the thread of the built-in servers runs.

use super::Graph;
use super::blueprint::{Blueprint, listens};
use super::ends::{End, Ends, outer};
use super::identity::inside;
use super::newest::NewestGraph;
use super::sharing::Sharing;
use super::state::LocalState;
use crate::exchange::NodeId;
use crate::exchange::abort::AbortFlag;
use crate::exchange::late::LateFlag;
use crate::metrics::{Counting, LbCounts, NodeCounts, TargetCounts, TargetHealth};
use crate::nodes::lb::{self, LbState, OwnSubset, Owner, Shape, ShapeChange, Sticky, TargetFlags};
use crate::nodes::{Id, Node};
use crate::sync::LocalSemaphore;
use crate::sync::discards::Discards;
use crate::sync::shared_list::{CHUNK, SharedList};
use crate::transport::inner::InnerAddress;
use crate::transport::settings::client_files;
use crate::upstream::connect::{Addresses, BuiltInServers, Place};
use crate::upstream::limit::ConnectionLimit;
use crate::upstream::names::Names;
use crate::upstream::secure::Secure;
use crate::upstream::server::{MakesRoom, Server};
use crate::upstream::sole_target::SoleTarget;
use crate::upstream::target::Targets;
use crate::verify_run::{BalancerCreated, PlayerMessage, RunEvent, TargetFailure, VerifyRun};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::Core;
use weir_net::transport::tls;
use weir_plan::address::Address;
use weir_plan::serving::{Role, named_server};
use weir_plan::{self as plan, HttpVersion, Lb, Origin, OriginProtocol, Spec, TlsClient, timed_balancer};
use weir_policy::snapshot::Snapshot;
use weir_policy::{Operation, Table, TargetId};
use weir_stats::Key;

/// What kind of thread a graph is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    /// It serves clients, or owns process-wide state.
    Proxy,
    /// It runs the built-in servers.
    BuiltIn,
}

/// Builds the graph of one thread.
pub(crate) struct Builder<'a> {
    pub blueprint: &'a Arc<Blueprint>,
    pub core: &'a Rc<Core>,
    pub thread: Thread,
    /// This thread's view of process-wide state.
    pub state: &'a LocalState,
    /// Where its graphs find the newest of them.
    pub newest: &'a Rc<NewestGraph>,
    /// The targets of this thread.
    pub targets: &'a Targets,
    /// The owner of health, and of balancers of the process.
    pub owner: &'a Owner,
    /// The names of targets.
    pub names: &'a Names,
    pub built_in: &'a BuiltInServers,
    /// The token by which those recognise this process, or its run.
    pub token: u64,
    pub room: &'a Rc<dyn MakesRoom>,
    /// Receives every operation on balancers.
    pub records: Option<Arc<VerifyRun>>,
    /// The run in which failures of targets matter to lists that may be doubted.
    pub doubts: Option<Arc<VerifyRun>>,
    /// Whether it is for a run of a verification.
    pub in_run: bool,
    /// The number of this thread.
    pub number: u32,
    /// The TLS settings of servers.
    pub tls: &'a tls::Clients,
    /// The listeners' numbers and nodes.
    pub listeners: &'a [(usize, NodeId)],
    /// Where its nodes are freed.
    pub discards: &'a Rc<Discards>,
    /// The thread's present graph.
    pub before: Option<Rc<Graph>>,
    /// What is built already.
    pub draft: &'a Draft,
}

/// A graph that is being built, a few nodes at a time: requests go on meanwhile, in the graph before it.
#[derive(Default)]
pub(crate) struct Draft {
    nodes: RefCell<SharedList<Node>>,
    /// Which of them are balancers.
    balancers: RefCell<Vec<NodeId>>,
    /// The counters of targets of the balancer that is the next node.
    counts: RefCell<SharedList<Rc<TargetCounts>>>,
    /// The same of their health, on the thread that keeps it; and those of balancers that are built.
    health: RefCell<Vec<TargetHealth>>,
    healths: RefCell<BTreeMap<NodeId, Vec<TargetHealth>>>,
    /// Balancers whose state the thread has already.
    adoptions: RefCell<Vec<Adoption>>,
    /// The number of them whose targets were compared.
    compared: Cell<usize>,
}

/// The state of a balancer that is to have another shape once its graph is adopted.
struct Adoption {
    id: Id,
    state: Rc<LbState>,
    shape: Arc<Shape>,
    change: ShapeChange,
    flags: Arc<TargetFlags>,
    draw: Key,
    semaphore: Option<Rc<LocalSemaphore>>,
    table: Option<Table>,
    subset: Option<OwnSubset>,
    loop_number: u32,
    counts_every_ns: Option<u64>,
    gains_first: bool,
    records: Option<Record>,
}

/// A balancer as a thread's present graph has it: the labels of its targets, and what is counted of them.
struct FormerLb<'a> {
    labels: Arc<[Arc<str>]>,
    /// By chunk, whether all of these labels are kept.
    kept: &'a [bool],
    counts: &'a LbCounts,
}

/// Called with every operation on a balancer, where a verification records them.
type Record = Box<dyn Fn(Operation)>;

impl Draft {
    /// Compares the targets of balancers with those that they have now, in about `left` steps; returns whether all are
    /// compared.
    fn compare(&self, left: &mut usize) -> bool {
        let mut adoptions = self.adoptions.borrow_mut();
        for Adoption { state, shape, change, .. } in adoptions.iter_mut().skip(self.compared.get()) {
            // A balancer is a step as well.
            if *left == 0 || !state.compare(shape, change, left) {
                return false;
            }
            *left = left.saturating_sub(1);
            self.compared.set(self.compared.get() + 1);
        }
        true
    }

    /// Gives balancers the flags of their targets in the graph that is adopted now.
    fn give_flags(&self, now_ns: u64) {
        for adoption in self.adoptions.borrow().iter() {
            adoption.state.take_flags(now_ns, adoption.flags.clone());
        }
    }

    /// Gives balancers the targets of the graph that is adopted now, with the `health` of each. Returns removed targets,
    /// with the flag that ends their requests.
    pub fn adopt<'a>(
        &self,
        now_ns: u64,
        health: impl Iterator<Item = (Id, &'a Snapshot)>,
    ) -> Vec<(Id, TargetId, AbortFlag)> {
        let seen: BTreeMap<u32, &Snapshot> = health.map(|(id, health)| (id.0, health)).collect();
        let mut all = Vec::new();
        for adoption in self.adoptions.take() {
            let Adoption { id, state, shape, mut change, draw, semaphore, table, .. } = adoption;
            let health = seen.get(&id.0).copied();
            if adoption.gains_first {
                change.put_gains_first();
            }
            let subset = adoption.subset.as_ref();
            if let Some(records) = &adoption.records {
                subset.into_iter().for_each(|_| records(OwnSubset::operation(now_ns, subset)));
                records(change.operation(now_ns, &shape, health));
            }
            state.prefer(now_ns, subset);
            let gone = state.adopt(now_ns, &shape, change, health, draw);
            state.count_with_others(
                adoption.loop_number,
                adoption.counts_every_ns,
                adoption.records.is_some(),
            );
            state.limit(now_ns, semaphore.as_ref());
            state.take_table(table.as_ref());
            all.extend(gone.into_iter().map(|(index, abort)| (id, index, abort)));
        }
        all
    }
}

impl Builder<'_> {
    /// Takes about this many steps: builds nodes, then compares the targets of balancers. Returns whether all is done.
    pub fn advance(&self, most: usize) -> bool {
        let count = self.blueprint.point.nodes.len();
        let mut left = most;
        while left > 0 {
            let built = self.draft.nodes.borrow().len();
            if built == count {
                self.draft.nodes.borrow_mut().seal();
                return self.draft.compare(&mut left);
            }
            if self.share() {
                left -= 1;
                continue;
            }
            let id = built as NodeId;
            if self.is_balancer(id) && !self.count_targets(id, &mut left) {
                continue;
            }
            left = left.saturating_sub(1);
            let node = self.node(id);
            if matches!(node, Node::Lb(_)) {
                self.draft.balancers.borrow_mut().push(id);
            }
            self.draft.nodes.borrow_mut().push(node);
        }
        false
    }

    /// The thread's present graph, if this blueprint's graphs share something with it.
    fn sharing(&self) -> Option<(&Graph, &Sharing)> {
        let (before, sharing) = (self.before.as_deref()?, self.blueprint.sharing.as_ref()?);
        (sharing.epoch() == before.blueprint.epoch).then_some((before, sharing))
    }

    /// Adds the next chunk of nodes from the present graph, if that is the same there.
    fn share(&self) -> bool {
        let mut nodes = self.draft.nodes.borrow_mut();
        let (Some((before, sharing)), Some(chunk)) = (self.sharing(), nodes.next_chunk()) else {
            return false;
        };
        let is_same = sharing.has(chunk);
        if is_same {
            nodes.share(&before.nodes, chunk);
        }
        is_same
    }

    /// Whether this thread has a balancer there.
    fn is_balancer(&self, id: NodeId) -> bool {
        let is_here = match self.blueprint.role(id) {
            Role::BuiltIn | Role::Inside => self.is_built_in(),
            Role::Proxy | Role::Model => !self.is_built_in(),
            Role::LeftOut => false,
        };
        is_here && matches!(self.blueprint.spec(id), Spec::Lb(_))
    }

    /// Finds the counters of a balancer's targets in about `left` steps, chunk by chunk; returns whether all are found. What a
    /// thread shares with its present graph is a step for each chunk, everything else one for each target.
    fn count_targets(&self, id: NodeId, left: &mut usize) -> bool {
        let (labels, mut counts) = (self.blueprint.labels(id), self.draft.counts.borrow_mut());
        let pool = plan::label(&self.blueprint.point, id);
        let former = self.find_former_lb(id);
        while *left > 0 && counts.len() < labels.len() {
            let from = counts.len();
            let some = &labels[from..labels.len().min((from + 1).next_multiple_of(CHUNK))];
            let is_shared = self.add_counts(former.as_ref(), &pool, some, *left, &mut counts);
            let added = &some[..counts.len() - from];
            if self.owner.is_here {
                self.state.metrics.add_healths(&pool, added, &mut self.draft.health.borrow_mut());
            }
            *left = left.saturating_sub(if is_shared && !self.owner.is_here { 1 } else { added.len() });
        }
        let are_all = counts.len() == labels.len();
        if are_all {
            self.doubt_rest(id, labels.len());
            counts.seal();
        }
        are_all
    }

    /// The balancer that the present graph has in place of this one.
    fn find_former_lb(&self, id: NodeId) -> Option<FormerLb<'_>> {
        let (graph, sharing) = self.sharing()?;
        let lb = graph.lb(self.blueprint.id(id))?;
        let kept = sharing.kept_labels(id);
        Some(FormerLb { labels: graph.blueprint.labels(lb.node), kept, counts: &lb.counts })
    }

    /// Adds the counters of these targets of a balancer, at most a chunk, which come after those that it has: those of the
    /// present graph's balancer are found without a look at their names. Returns whether the chunk is shared with it; of one that
    /// is not, this number are added at most.
    fn add_counts(
        &self,
        former: Option<&FormerLb<'_>>,
        pool: &str,
        labels: &[Arc<str>],
        most: usize,
        counts: &mut SharedList<Rc<TargetCounts>>,
    ) -> bool {
        let metrics = &self.state.metrics;
        let mut find = metrics.targets_of(pool);
        let Some(former) = former else {
            labels.iter().take(most).for_each(|label| counts.push(find(label)));
            return false;
        };
        let (from, chunk) = (counts.len(), counts.next_chunk());
        let was = former.labels.get(from..former.labels.len().min(from + labels.len())).unwrap_or_default();
        let is_same = |at: usize| was.get(at).is_some_and(|was| Arc::ptr_eq(was, &labels[at]));
        if let Some(chunk) = chunk
            && former.counts.targets.chunk(chunk).len() == labels.len()
            && former.kept.get(chunk) == Some(&true)
        {
            counts.share(&former.counts.targets, chunk);
            return true;
        }
        for (at, label) in labels.iter().enumerate().take(most) {
            match former.counts.targets.get(from + at).filter(|_| is_same(at)) {
                Some(known) => counts.push(known.clone()),
                None => counts.push(find(label)),
            }
        }
        let gone = (0..was.len().min(most)).filter(|at| !is_same(*at));
        gone.for_each(|at| metrics.doubt(&former.counts.pool.label, &was[at]));
        false
    }

    /// Doubts the counters of targets that the present graph's balancer has beyond the number of this one's.
    fn doubt_rest(&self, id: NodeId, count: usize) {
        if let Some(FormerLb { labels, counts, .. }) = self.find_former_lb(id) {
            let rest = labels.iter().skip(count);
            rest.for_each(|label| self.state.metrics.doubt(&counts.pool.label, label));
        }
    }

    /// The graph, all nodes of which are built. It must be adopted: its balancers have the flags of its targets from now on,
    /// and the targets themselves with [`Draft::adopt`].
    pub fn graph(&self) -> Graph {
        let nodes = self.draft.nodes.take();
        let outer = match self.is_built_in() {
            true => outer(&self.blueprint.point, &self.blueprint.serving, true),
            false => self.blueprint.outer.clone(),
        };
        self.count_alone(&nodes, &outer);
        self.draft.give_flags(self.core.now());
        let ids = self.draft.balancers.take();
        let of = |id: &NodeId| if let Some(Node::Lb(lb)) = nodes.get(*id as usize) { Some(lb) } else { None };
        let balancers = || ids.iter().filter_map(of);
        let lbs: BTreeMap<u32, NodeId> = balancers().map(|lb| (lb.id.0, lb.node)).collect();
        // Balancers that stay say themselves which targets they lack. Before the first graph there are no counters.
        let is_kept =
            || self.sharing().is_some_and(|(before, _)| before.lbs.keys().all(|id| lbs.contains_key(id)));
        if self.before.is_some() && !is_kept() {
            self.state.metrics.doubt_all();
        }
        Graph {
            blueprint: self.blueprint.clone(),
            entries: self
                .listeners
                .iter()
                .map(|(number, id)| (*number, inside(&self.blueprint.point, *id)))
                .collect(),
            roots: self.roots(),
            lbs,
            ends: balancers().map(|lb| (lb.node, self.ends(lb.node))).collect(),
            outer,
            cut: AbortFlag::default(),
            nodes,
            healths: self.draft.healths.take().into(),
            newest: self.newest.clone(),
            discards: self.discards.clone(),
        }
    }

    /// Where the ways of a balancer's targets end, by index.
    fn ends(&self, lb: NodeId) -> Arc<[Ends]> {
        let Blueprint { point, serving, .. } = &**self.blueprint;
        if !self.is_built_in() {
            return self.blueprint.ends(lb);
        }
        let behind = |target: &Option<NodeId>| {
            target.map_or_else(Ends::nowhere, |target| Ends::behind(point, serving, true, target))
        };
        self.blueprint.targets(lb).iter().map(behind).collect()
    }

    /// The roots of built-in servers.
    fn roots(&self) -> BTreeMap<u32, NodeId> {
        if !self.is_built_in() {
            return BTreeMap::new();
        }
        let Blueprint { point, keys, .. } = &**self.blueprint;
        let all = (0..point.nodes.len() as NodeId).filter(|id| self.blueprint.role(*id) == Role::BuiltIn);
        all.map(|id| (keys.nodes[id as usize], id)).collect()
    }

    pub(super) fn is_built_in(&self) -> bool {
        self.thread == Thread::BuiltIn
    }

    fn node(&self, id: NodeId) -> Node {
        match (self.thread, self.blueprint.role(id)) {
            (Thread::Proxy, Role::BuiltIn) => {
                let root = self.blueprint.keys.nodes[id as usize];
                let place = || Place::BuiltIn((id, root), self.built_in.clone());
                self.server(id, Some(&self.blueprint.hash_name(id)), &self.origin_of_built_in(id), place)
            }
            (Thread::Proxy, Role::Inside) => Node::Nowhere,
            (Thread::BuiltIn, Role::Proxy | Role::Model | Role::LeftOut) => Node::Nowhere,
            (Thread::Proxy, Role::LeftOut) => Node::Pass(self.blueprint.next(id)),
            _ => self.make(id),
        }
    }

    /// How the built-in server that begins at this node is spoken to.
    fn origin_of_built_in(&self, id: NodeId) -> Origin {
        let point = &self.blueprint.point;
        match named_server(point, id).and_then(|server| point.spec(server)) {
            Some(Spec::Server { origin, .. }) => origin.built_in(),
            _ => Origin::new(false),
        }
    }

    pub(super) fn server(
        &self,
        id: NodeId,
        name: Option<&str>,
        origin: &Origin,
        place: impl FnOnce() -> Place,
    ) -> Node {
        let addr = match self.blueprint.spec(id) {
            Spec::Server { addr: Some(addr), .. } | Spec::Listen(plan::Listen { addr, .. }) => {
                Some(Rc::from(&addr[..]))
            }
            _ => None,
        };
        let listens = matches!(self.blueprint.spec(id), Spec::Listen(_));
        // A listener receives draws in a verification only: otherwise it draws for itself.
        let told = self.blueprint.role(id) == Role::BuiltIn || listens && self.in_run;
        let key = self.blueprint.keys.targets[id as usize];
        let most = self
            .blueprint
            .connections
            .get(&id)
            .map(|(most, wait_ns)| ConnectionLimit::new(self.state.process().open(key), *most, *wait_ns));
        Node::Server(Rc::new(Server {
            id,
            tls: match &origin.tls {
                Some(tls) => addr.as_deref().and_then(|addr| self.secure(tls, addr, key)),
                None => self.blueprint.inner.tls.get(&id).cloned().map(|tls| Secure::to_own(tls, key)),
            },
            addr,
            name: Rc::from(name.unwrap_or("server")),
            own: listens.then(|| self.blueprint.inner.own.clone()),
            most,
            target: self.targets.get(key, origin, place),
            origin: origin.clone(),
            token: told.then_some(self.token),
            room: self.room.clone(),
            alone: OnceCell::new(),
        }))
    }

    /// The counters of a node.
    pub(super) fn counts(&self, id: NodeId, is: Counting) -> Rc<NodeCounts> {
        self.state.metrics.node(&self.blueprint.point, id, is)
    }

    /// Servers at these ends, without a balancer before them, have counters of their own.
    fn count_alone(&self, nodes: &SharedList<Node>, outer: &[End]) {
        for end in outer {
            if let End::Server(id) = end
                && let Some(Node::Server(server)) = nodes.get(*id as usize)
            {
                let label = plan::label(&self.blueprint.point, *id);
                let counts = || self.state.metrics.pool(&label, &[label.as_str().into()]);
                server.alone.get_or_init(|| SoleTarget::new(self.core.clone(), counts()));
            }
        }
    }

    /// TLS to a server at this address, with the sessions of this target.
    fn secure(&self, tls: &TlsClient, addr: &str, target: u32) -> Option<Secure> {
        let host = match Address::parse(addr) {
            Some(Address::Ip(address)) => address.ip().to_string(),
            Some(Address::Name(host, _)) => host.to_string(),
            // The plan was checked: it has the name.
            _ => String::new(),
        };
        Some(Secure::new(self.tls.get(&client_files(tls))?, host.into(), target))
    }

    pub(super) fn balancer(&self, id: NodeId, lb: &Lb) -> lb::Lb {
        let own_id = self.blueprint.id(id);
        let shape = self.blueprint.shape(id);
        if self.owner.is_here {
            self.draft.healths.borrow_mut().insert(id, self.draft.health.take());
        }
        let semaphore = self.state.semaphore(own_id.0);
        let state = self.state_of(id, lb, &shape, semaphore.as_ref());
        lb::Lb {
            core: self.core.clone(),
            node: id,
            id: own_id,
            epoch: self.blueprint.epoch,
            newest: self.newest.clone(),
            _places: self.blueprint.places(id),
            state,
            targets: self.blueprint.all_targets(id),
            moves_on: self.in_run,
            is_the_owners: lb.has_one_state(),
            owner: self.owner.clone(),
            listens: listens(lb),
            records: self.recorder(id),
            reports_failure: self.failure_reporter(id),
            probes: self.blueprint.probe_ways(id).map(lb::Probes::new),
            load_field: lb.balance.load_field().map(Box::from),
            choice: self.blueprint.draws.choice(id),
            key: lb.key.clone(),
            spare: lb.spare,
            sticky: self.sticky(id, lb),
            waits: semaphore.as_ref().map(|_| self.counts(id, Counting::Queue)),
            counts: LbCounts {
                pool: self.state.metrics.pool_of(&plan::label(&self.blueprint.point, id)),
                targets: self.draft.counts.take(),
            },
            semaphore,
            max_waiting: lb.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: lb.wait_timeout_ns,
        }
    }

    /// What records the operations on a balancer, in a verification that does.
    fn recorder(&self, lb: NodeId) -> Option<Record> {
        let (run, on_loop) = (self.records.clone()?, self.number);
        Some(Box::new(move |deed| run.report(RunEvent::BalancerOperation { lb, on_loop, deed })))
    }

    /// What reports targets of a balancer to which a connection has failed, in a verification whose lists may be doubted.
    fn failure_reporter(&self, lb: NodeId) -> Option<Box<dyn Fn(TargetId)>> {
        let (run, core) = (self.doubts.clone()?, self.core.clone());
        Some(Box::new(move |target| {
            let failure = TargetFailure { lb, target, at_ns: core.recent() };
            run.player.send(PlayerMessage::Failed(failure));
        }))
    }

    /// The flag of the balancer that a `timeout` is around, if that judges its targets by their errors. Its node was
    /// made before: it has a lower number.
    pub(super) fn late(&self, timeout: NodeId) -> Option<LateFlag> {
        let id = timed_balancer(&self.blueprint.point, timeout)?;
        let judges = |lb: &Lb| listens(lb) || lb.balance.counts_failures();
        if matches!(self.blueprint.spec(id), Spec::Lb(lb) if judges(lb)) {
            self.state.late(self.blueprint.id(id).0)
        } else {
            None
        }
    }

    /// This thread's state of a balancer: a new one, or the one that is to have this shape.
    fn state_of(
        &self,
        id: NodeId,
        lb: &Lb,
        shape: &Arc<Shape>,
        semaphore: Option<&Rc<LocalSemaphore>>,
    ) -> Rc<LbState> {
        let own_id = self.blueprint.id(id);
        let flags = self.blueprint.flags(id);
        let draw = self.blueprint.draws.state(id, self.on_loop(lb));
        let (state, is_new) = self.state.balancer(own_id.0, || {
            let made = BalancerCreated {
                lb: id,
                on_loop: self.number,
                at_ns: self.core.now(),
                draw: draw.bits(),
                balance: shape.balance.clone(),
                pass_over_ns: shape.pass_over_ns,
                weights: shape.weights.clone(),
                names: shape.names.clone(),
                health: Snapshot::new(&self.blueprint.health(id, lb)),
            };
            let upstream = made.upstream();
            if let Some(records) = &self.records {
                records.report(RunEvent::BalancerCreated(made));
            }
            LbState::new(shape, upstream, flags.clone())
        });
        let table = self.blueprint.table(id);
        let subset = self.own_subset(id);
        if is_new {
            state.limit(self.core.now(), semaphore);
            state.take_table(table.as_ref());
            state.count_with_others(self.number, lb.sees_counts_every_ns(), self.records.is_some());
            if subset.is_some() {
                let now_ns = self.core.now();
                self.recorder(id)
                    .into_iter()
                    .for_each(|records| records(OwnSubset::operation(now_ns, subset.as_ref())));
                state.prefer(now_ns, subset.as_ref());
            }
        } else {
            let (state, shape, semaphore) = (state.clone(), shape.clone(), semaphore.cloned());
            let adoption = Adoption {
                id: own_id,
                state,
                shape,
                change: ShapeChange::default(),
                flags,
                draw,
                semaphore,
                table,
                subset,
                loop_number: self.number,
                counts_every_ns: lb.sees_counts_every_ns(),
                gains_first: self.blueprint.gains_first.contains(&id),
                records: self.recorder(id),
            };
            self.draft.adoptions.borrow_mut().push(adoption);
        }
        state
    }

    /// The targets that this loop prefers at a balancer; `None`: all alike.
    fn own_subset(&self, lb: NodeId) -> Option<OwnSubset> {
        let table = self.blueprint.subsets(lb)?.table().clone();
        let on = if self.is_built_in() { 0 } else { self.number };
        Some(OwnSubset { table, on })
    }

    /// The loop for which a balancer's state is kept: process-wide state is kept once.
    fn on_loop(&self, lb: &Lb) -> u32 {
        if lb.has_one_state() || self.is_built_in() { 0 } else { self.number }
    }

    fn sticky(&self, id: NodeId, lb: &Lb) -> Option<Sticky> {
        Some(Sticky::new(lb.sticky.as_deref()?, self.blueprint.cookies(id)?))
    }

    /// The address of a server.
    pub(super) fn place(&self, addr: &str) -> Place {
        let list: &[_] = match Address::parse(addr) {
            Some(Address::Unix(path)) => return Place::Unix(path.into()),
            Some(Address::Ip(address)) => &[address],
            Some(Address::Name(host, port)) => {
                let name = self.names.get(&host, port);
                let list = name.map_or_else(|| Arc::from([]), |name| name.addresses());
                return Place::Tcp(Rc::new(Addresses::new(name.map(|name| name.number), &list)));
            }
            // The plan was checked: there is no such server.
            Some(Address::Port(_)) | None => &[],
        };
        Place::Tcp(Rc::new(Addresses::new(None, list)))
    }
}

/// How a listener of this process is connected to: as a server is by default, in a version that it accepts.
pub(super) fn as_origin(listen: &plan::Listen) -> Origin {
    let takes = |version| listen.http.versions.contains(&version);
    let protocol = match (takes(HttpVersion::H1), takes(HttpVersion::H2)) {
        (false, _) => OriginProtocol::H2,
        // TLS negotiates the version.
        (true, true) if listen.tls.is_some() => OriginProtocol::Auto,
        (true, _) => OriginProtocol::H1,
    };
    let mut origin = Origin { protocol, ..Origin::new(true) };
    origin.set_default_idle(protocol != OriginProtocol::H1);
    origin
}

pub(super) fn reached(at: &InnerAddress) -> Place {
    match at {
        InnerAddress::Tcp(address) => Place::Tcp(Rc::new(Addresses::new(None, &[*address]))),
        InnerAddress::Unix(path) => Place::Unix(path.clone()),
    }
}

pub(super) fn whole(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
