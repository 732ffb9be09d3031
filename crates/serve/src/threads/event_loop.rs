//! One event loop: a thread with its own listeners, connections, targets and graph; it shares nothing. The threads
//! that serve no client (the owner of the process's state, the built-in servers) are loops without listeners.

use super::admission::Admission;
use super::generation::Maker;
use super::process::Process;
use crate::exchange::{NodeId, PinnedConnection};
use crate::graph::Graph;
use crate::graph::builder::Draft;
use crate::graph::newest::NewestGraph;
use crate::graph::state::LocalState;
use crate::health::monitor::Monitor;
use crate::log::LoopLog;
use crate::nodes::Id;
use crate::nodes::lb::Lb;
use crate::sync::discards::Discards;
use crate::transport::listener::{Entry, Listener};
use crate::transport::listening::ListeningSocket;
use crate::transport::session::{Ending, Session};
use crate::upstream::target::Targets;
use slab::Slab;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::runtime::JoinHandle;
use weir_plan::Http;

/// A loop.
pub(crate) struct Loop {
    /// The thread's number.
    pub number: u32,
    pub core: Rc<Core>,
    pub process: Arc<Process>,
    /// Its targets.
    pub targets: Rc<Targets>,
    /// Its view of the process's state.
    pub state: Rc<LocalState>,
    graph: RefCell<Option<Rc<Graph>>>,
    /// The same, for requests of older graphs.
    pub newest: Rc<NewestGraph>,
    /// All graphs that remain, the oldest first.
    graphs: RefCell<Vec<Weak<Graph>>>,
    /// The graph that is being built for a reload, with its epoch.
    draft: RefCell<Option<(u32, Rc<Draft>)>>,
    /// Whether a graph has ended, whose counters may be forgotten.
    is_stale: Cell<bool>,
    /// Held by the task that looks after the targets, as long as it takes.
    pub(super) looking_after: Rc<()>,
    /// Where things are freed in slices.
    pub discards: Rc<Discards>,
    /// How its graphs are built.
    maker: OnceCell<Maker>,
    /// Graphs that continue for clients whose entry the present one lacks.
    retired: RefCell<Vec<RetiredGraph>>,
    monitor: OnceCell<Rc<Monitor>>,
    /// By number.
    listeners: RefCell<BTreeMap<usize, (Rc<Listener>, Admission)>>,
    /// Listeners still referenced by a connection, including ones from before a reload.
    ever: RefCell<Vec<Weak<Listener>>>,
    /// Listeners that reloads have removed, until they have drained.
    former: RefCell<BTreeMap<usize, (Rc<Listener>, Admission)>>,
    /// Whether a drain of the process was announced.
    announced: Cell<bool>,
    clients: RefCell<Slab<Client>>,
    /// Counts requests to other loops for room.
    turn: Cell<u32>,
    /// Listeners before which clients wait though the listening sockets are closing.
    late: Cell<u32>,
    /// The tasks that accept, each with the number of listeners before its own.
    pub accepting: RefCell<Vec<(u32, JoinHandle)>>,
    /// The sockets that they accept from, by the listener's number.
    sockets: RefCell<Vec<(usize, Weak<ListeningSocket>)>>,
    /// Where accepting has ended.
    pub closing: tokio::sync::watch::Sender<Closing>,
    /// The essential task that has ended, if one has.
    failed: tokio::sync::watch::Sender<Option<&'static str>>,
}

/// However it ends, its last lines are written, and the watchdog is not to report its clock.
impl Drop for Loop {
    fn drop(&mut self) {
        self.hand_over_logs();
        if let Some(pulse) = self.process.pulse(self.number) {
            pulse.ends();
        }
    }
}

/// A graph that continues for clients of an entry that later ones lack.
struct RetiredGraph {
    entry: Entry,
    graph: Rc<Graph>,
    since_ns: u64,
}

/// The time that a connection, accepted or made to a built-in server, may be on its way to its loop, ns.
const ON_THE_WAY_NS: u64 = 1_000_000_000;

/// A connection that the loop serves.
struct Client {
    session: Rc<Session>,
    pinned: Rc<PinnedConnection>,
}

impl Loop {
    /// A loop without nodes or listeners.
    pub fn new(number: u32, core: Rc<Core>, process: Arc<Process>, state: Rc<LocalState>) -> Rc<Loop> {
        let discards = Rc::<Discards>::default();
        let lp = Rc::new(Loop {
            number,
            core,
            process,
            targets: Rc::new(Targets::new(discards.clone())),
            discards: discards.clone(),
            state,
            graph: RefCell::default(),
            newest: Rc::default(),
            graphs: RefCell::default(),
            draft: RefCell::default(),
            is_stale: Cell::new(false),
            looking_after: Rc::default(),
            maker: OnceCell::new(),
            retired: RefCell::default(),
            monitor: OnceCell::new(),
            listeners: RefCell::default(),
            ever: RefCell::default(),
            former: RefCell::default(),
            announced: Cell::new(false),
            clients: RefCell::default(),
            turn: Cell::new(0),
            late: Cell::new(0),
            accepting: RefCell::default(),
            sockets: RefCell::default(),
            closing: tokio::sync::watch::Sender::default(),
            failed: tokio::sync::watch::Sender::new(None),
        });
        if let Some(pulse) = lp.process.pulse(number) {
            pulse.begins(lp.core.runtime.signs());
        }
        lp.needs("the timers", lp.core.timers.clone().run(lp.core.runtime.clone()));
        lp.needs("the clock", lp.clone().tick());
        let state = lp.process.state.clone();
        lp.needs("the discards", discards.run(lp.core.clone(), move |pieces| state.freed(pieces)));
        lp
    }

    /// Spawns a task that the loop needs until it drains: if the task ends sooner, as by a panic, the loop ends.
    pub fn needs(
        self: &Rc<Self>,
        what: &'static str,
        task: impl Future<Output = ()> + 'static,
    ) -> JoinHandle {
        let needed = EssentialTask { lp: self.clone(), what };
        self.core.runtime.spawn(async move {
            let _needed = needed;
            task.await;
        })
    }

    /// Runs a future until it ends, or until an essential task has ended.
    pub async fn run<T>(&self, main: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut failed = self.failed.subscribe();
        let mut fails = std::pin::pin!(failed.wait_for(|what| what.is_some()));
        let mut main = std::pin::pin!(main);
        poll_fn(|cx| match fails.as_mut().poll(cx) {
            Poll::Ready(what) => {
                let what = what.ok().and_then(|what| *what).unwrap_or("something");
                Poll::Ready(Err(io::Error::other(format!("{what} of an event loop ended"))))
            }
            Poll::Pending => main.as_mut().poll(cx),
        })
        .await
    }

    /// Replaces the graph. Clients of listeners and built-in servers that are gone keep theirs.
    pub fn set_graph(&self, graph: Rc<Graph>) {
        self.forget_graphs();
        self.graphs.borrow_mut().push(Rc::downgrade(&graph));
        let before = self.graph.replace(Some(graph.clone()));
        self.newest.set(&graph);
        let Some(before) = before else { return };
        let since_ns = self.core.now();
        let gone = before.all_entries().filter(|entry| graph.entry(*entry).is_none());
        let retired = gone.map(|entry| RetiredGraph { entry, graph: before.clone(), since_ns });
        self.retired.borrow_mut().extend(retired);
    }

    fn forget_graphs(&self) {
        let mut graphs = self.graphs.borrow_mut();
        let before = graphs.len();
        graphs.retain(|graph| graph.strong_count() > 0);
        if graphs.len() < before {
            self.is_stale.set(true);
        }
    }

    /// Ends the remaining requests of a graph of an epoch, as a drain would.
    pub fn cut(&self, epoch: u32) {
        let graphs: Vec<_> = self.graphs.borrow().iter().filter_map(Weak::upgrade).collect();
        for graph in graphs.iter().filter(|graph| graph.blueprint.epoch == epoch) {
            graph.cut.set(true);
        }
        self.retired.borrow_mut().retain(|retired| retired.graph.blueprint.epoch != epoch);
        // A request that waits for an origin waits for a deadline as well.
        self.core.deadlines.wake_all();
    }

    /// A graph is being built for a reload; one for an earlier reload is needed no more.
    pub fn set_draft(&self, epoch: u32, draft: Rc<Draft>) {
        *self.draft.borrow_mut() = Some((epoch, draft));
    }

    /// Whether this graph is still to be adopted.
    pub fn has_draft(&self, draft: &Rc<Draft>) -> bool {
        self.draft.borrow().as_ref().is_some_and(|(_, own)| Rc::ptr_eq(own, draft))
    }

    /// Takes what is built for this epoch, all of it or not.
    pub fn take_draft(&self, epoch: u32) -> Option<Rc<Draft>> {
        self.draft.borrow_mut().take_if(|(of, _)| *of == epoch).map(|(_, draft)| draft)
    }

    /// Sets how its graphs are built, once.
    pub fn builds_by(&self, maker: Maker) {
        let _ = self.maker.set(maker);
    }

    /// How its graphs are built.
    pub fn maker(&self) -> Option<&Maker> {
        self.maker.get()
    }

    /// The graph of new requests; `None` only while it starts.
    pub fn graph(&self) -> Option<Rc<Graph>> {
        self.graph.borrow().clone()
    }

    /// The graph of an entry's requests, and its first node.
    pub fn graph_of(&self, entry: Entry) -> Option<(Rc<Graph>, NodeId)> {
        let graph = self.graph()?;
        if let Some(node) = graph.entry(entry) {
            return Some((graph, node));
        }
        let retired = self.retired.borrow();
        let graph = &retired.iter().rfind(|retired| retired.entry == entry)?.graph;
        Some((graph.clone(), graph.entry(entry)?))
    }

    /// A balancer by its identity between threads, of the newest graph that has it; `None`: no graph has it any more.
    pub fn lb(&self, id: Id) -> Option<Rc<Lb>> {
        if let Some(lb) = self.graph.borrow().as_ref().and_then(|graph| graph.lb(id).cloned()) {
            return Some(lb);
        }
        let graphs = self.graphs.borrow();
        graphs.iter().rev().filter_map(Weak::upgrade).find_map(|graph| graph.lb(id).cloned())
    }

    /// Makes this loop the monitor of the health of all targets.
    pub fn monitors(self: &Rc<Self>, monitor: Rc<Monitor>) {
        if self.monitor.set(monitor.clone()).is_ok() {
            self.needs("the health monitor", monitor.run());
        }
    }

    /// The health monitor, if this loop has it.
    pub fn monitor(&self) -> Option<&Rc<Monitor>> {
        self.monitor.get()
    }

    /// Replaces the listeners of the process, by their numbers, for connections that begin from now on. Returns those
    /// that were removed, which are to drain.
    pub fn set_listeners(
        &self,
        listeners: BTreeMap<usize, (Rc<Listener>, Admission)>,
    ) -> Vec<(usize, Rc<Listener>)> {
        self.hand_over_logs();
        self.ever.borrow_mut().retain(|listener| listener.strong_count() > 0);
        self.ever.borrow_mut().extend(listeners.values().map(|(listener, _)| Rc::downgrade(listener)));
        let before = self.listeners.replace(listeners);
        let listeners = self.listeners.borrow();
        let gone = before.into_iter().filter(|(number, _)| !listeners.contains_key(number));
        let gone: Vec<_> = gone.collect();
        let removed = gone.iter().map(|(number, (listener, _))| (*number, listener.clone())).collect();
        self.former.borrow_mut().extend(gone);
        removed
    }

    /// Forgets a removed listener, which has drained.
    pub fn forget_listener(&self, number: usize) {
        self.former.borrow_mut().remove(&number);
    }

    /// How near a connection is to its end that begins now.
    pub fn ending_at(&self, listener: &Listener) -> Ending {
        let number = listener.number();
        let is_closed = number.is_some_and(|number| self.closing.borrow().has(number, listener.level));
        let is_leaving = || number.is_some_and(|number| self.former.borrow().contains_key(&number));
        match is_closed {
            // A listener behind others continues until they are empty: HTTP/2 would refuse requests after the
            // announcement of the end.
            true => Ending::Draining,
            false if self.announced.get() && listener.level == 0 || is_leaving() => Ending::LastAnswer,
            false => Ending::Open,
        }
    }

    /// Announces the drain of the process to clients of the outermost listeners.
    pub fn announce_drain(&self) {
        self.announced.set(true);
        self.end_clients(Ending::LastAnswer, |session| session.listener.level == 0);
    }

    /// Brings the connections that `which` accepts nearer to their end; returns how many were in the middle of a
    /// request.
    pub fn end_clients(&self, ending: Ending, which: impl Fn(&Session) -> bool) -> usize {
        // Nothing is called that could add or remove one.
        let clients = self.clients.borrow();
        let ends = clients.iter().map(|(_, client)| &client.session).filter(|session| which(session));
        let mut busy = 0;
        for session in ends {
            busy += usize::from(session.idle_since_ns.get() == u64::MAX);
            session.end(ending);
        }
        drop(clients);
        if ending >= Ending::Cut {
            // Requests of HTTP/2 have tasks of their own.
            self.core.deadlines.wake_all();
        }
        busy
    }

    /// Whether a client is connected that `which` accepts.
    pub fn has_client(&self, which: impl Fn(&Session) -> bool) -> bool {
        self.clients.borrow().iter().any(|(_, client)| which(&client.session))
    }

    /// A listener, and its admission.
    pub fn listener(&self, number: usize) -> Option<(Rc<Listener>, Admission)> {
        self.listeners.borrow().get(&number).cloned()
    }

    /// A listener, even if it was removed and drains.
    pub fn listener_or_former(&self, number: usize) -> Option<(Rc<Listener>, Admission)> {
        self.listener(number).or_else(|| self.former.borrow().get(&number).cloned())
    }

    /// Writes out the lines of access logs that were gathered since the last time.
    pub(super) fn hand_over_logs(&self) {
        // Connections from before a reload log by the listener of that time.
        for listener in self.ever.borrow().iter().filter_map(Weak::upgrade) {
            listener.log.iter().chain(&listener.traces).for_each(LoopLog::hand_over);
        }
    }

    /// The longest of its listeners' times, ns.
    pub fn longest_ns(&self, which: impl Fn(&Http) -> u64) -> u64 {
        self.listeners.borrow().values().map(|(listener, _)| which(&listener.http)).max().unwrap_or(0)
    }

    /// Its listening sockets, for another process, with their addresses as written.
    pub fn listening(&self) -> Vec<(String, OwnedFd)> {
        let address = |number: usize| Some(self.listener(number)?.0.addr.clone());
        let sockets = self.sockets.borrow();
        let open = sockets.iter().filter_map(|(number, socket)| Some((address(*number)?, socket.upgrade()?)));
        open.filter_map(|(address, socket)| Some((address, socket.acceptor().duplicate().ok()?))).collect()
    }

    /// Adds a listening socket.
    pub fn listens(&self, number: usize, socket: &Rc<ListeningSocket>) {
        let mut sockets = self.sockets.borrow_mut();
        sockets.retain(|(_, socket)| socket.strong_count() > 0);
        sockets.push((number, Rc::downgrade(socket)));
    }

    /// The removed listeners that drain here, by number.
    pub fn leaving(&self) -> BTreeMap<usize, (Rc<Listener>, Admission)> {
        self.former.borrow().clone()
    }

    /// The number of levels with listeners.
    pub fn levels(&self) -> u32 {
        self.listeners.borrow().values().map(|(listener, _)| listener.level + 1).max().unwrap_or(1)
    }

    /// The longest drain that any listener allows, ns.
    pub fn drain_timeout_ns(&self) -> u64 {
        self.longest_ns(|http| http.drain_timeout_ns)
    }

    /// Closes connections of single clients to origins that were idle for too long or are too old.
    pub(super) fn close_idle_of_clients(&self) {
        let now_ns = self.core.now();
        for (_, client) in self.clients.borrow().iter() {
            client.pinned.sweep(now_ns);
        }
    }

    /// When the first of them has been idle for too long, ns; without such a limit, a time that will not come.
    pub(super) fn idle_due_ns(&self) -> Option<u64> {
        let first = self.targets.idle_due_ns();
        let clients = self.clients.borrow();
        clients.iter().filter_map(|(_, client)| client.pinned.idle_due_ns()).chain(first).min()
    }

    /// Whether graphs remain for clients of former ones, or parts of graphs that have ended.
    pub(super) fn has_retired(&self) -> bool {
        !self.retired.borrow().is_empty()
            || self.is_stale.get()
            || self.graphs.borrow().iter().any(|graph| graph.strong_count() == 0)
    }

    /// Drops everything that no client needs any more.
    pub(super) fn forget_retired(&self) {
        let (clients, now_ns) = (self.clients.borrow(), self.core.now());
        let is_needed = |r: &RetiredGraph| {
            now_ns < r.since_ns.saturating_add(ON_THE_WAY_NS)
                || self.former.borrow().values().any(|(listener, _)| listener.entry == r.entry)
                || clients.iter().any(|(_, c)| c.session.listener.entry == r.entry)
        };
        let gone: Vec<_> = self.retired.borrow_mut().extract_if(.., |retired| !is_needed(retired)).collect();
        drop((clients, gone));
        self.state.forget();
        self.forget_graphs();
    }

    /// Forgets the counters of graphs that have ended, once.
    pub(super) async fn forget_counters(&self) {
        // The nodes of a graph are freed after it, and hold counters until then.
        if self.is_stale.get() && self.discards.is_empty() {
            self.is_stale.set(false);
            // A former graph may be the last to have what the present one lacks.
            let has_former = self.graphs.borrow().len() > 1;
            self.state.metrics.forget(has_former, &self.discards, &self.core).await;
        }
    }

    /// Registers a connection for as long as it lasts, so that it can be ended.
    pub fn know(self: &Rc<Self>, session: Rc<Session>, pinned: Rc<PinnedConnection>) -> ConnectionGuard {
        let key = self.clients.borrow_mut().insert(Client { session, pinned });
        ConnectionGuard { lp: self.clone(), key }
    }

    /// Begins nothing new at listeners up to this level.
    pub fn drain(&self, level: u32) {
        self.core.drain();
        // Behind others it has no client left that could ask, but for foreign ones.
        self.end_clients(Ending::Now, |s| (1..=level).contains(&s.listener.level) && s.is_own());
        self.end_clients(Ending::Draining, |s| s.listener.level <= level);
    }

    /// The connection that has been idle for longest, for at least this time, among those that `which` accepts.
    pub fn longest_idle(&self, least_ns: u64, which: impl Fn(&Session) -> bool) -> Option<Rc<Session>> {
        let latest_ns = self.core.now().checked_sub(least_ns)?;
        let clients = self.clients.borrow();
        let idle = clients.iter().map(|(_, client)| &client.session);
        let idle =
            idle.filter(|s| s.idle_since_ns.get() <= latest_ns && s.ending() < Ending::Now && which(s));
        idle.min_by_key(|s| s.idle_since_ns.get()).cloned()
    }

    /// The connection that has been in its lingering close for longest, among those that `which` accepts.
    pub fn longest_lingering(&self, which: impl Fn(&Session) -> bool) -> Option<Rc<Session>> {
        if self.core.lingering.get() == 0 {
            return None;
        }
        let clients = self.clients.borrow();
        let sessions = clients.iter().map(|(_, client)| &client.session).filter(|session| which(session));
        let lingering = sessions.filter_map(|session| Some((session.lingering_since_ns()?, session)));
        lingering.min_by_key(|(since_ns, _)| *since_ns).map(|(_, session)| session.clone())
    }

    /// The number of earlier calls.
    pub fn turn(&self) -> u32 {
        self.turn.replace(self.turn.get().wrapping_add(1))
    }

    /// Calls `each` for each connected client.
    pub fn each_client(&self, mut act: impl FnMut(&Session)) {
        self.clients.borrow().iter().for_each(|(_, client)| act(&client.session));
    }

    /// The number of connected clients.
    pub fn clients(&self) -> usize {
        self.clients.borrow().len()
    }

    /// Whether clients of listeners up to this level are connected, or some wait for room, or a request continues
    /// without them.
    pub fn is_busy(&self, level: u32) -> bool {
        let of_level = |session: &Session| session.listener.level <= level;
        self.late.get() > 0 || self.has_client(of_level) || self.core.has_background()
    }

    /// Notes that clients wait for room, until it is dropped.
    pub fn clients_wait(self: &Rc<Self>) -> Waits {
        self.late.set(self.late.get() + 1);
        Waits(self.clone())
    }
}

/// A task that its loop needs.
struct EssentialTask {
    lp: Rc<Loop>,
    what: &'static str,
}

impl Drop for EssentialTask {
    fn drop(&mut self) {
        // Accepting ends as a drain begins, or as its listener is removed; a panic may come at any time.
        if std::thread::panicking() || !self.lp.closing.borrow().has_begun() {
            self.lp.failed.send_replace(Some(self.what));
        }
    }
}

/// Where accepting has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closing {
    /// On this number of levels of listeners, from the outermost on.
    pub levels: u32,
    /// At removed listeners.
    pub gone: Vec<usize>,
}

impl Closing {
    /// Whether anything is closed.
    fn has_begun(&self) -> bool {
        self.levels > 0 || !self.gone.is_empty()
    }

    /// Whether a listener is closed.
    pub fn has(&self, number: usize, level: u32) -> bool {
        self.levels > level || self.gone.contains(&number)
    }
}

/// Clients that wait for room.
pub(crate) struct Waits(Rc<Loop>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.late.set(self.0.late.get() - 1);
    }
}

/// A registered connection.
pub(crate) struct ConnectionGuard {
    lp: Rc<Loop>,
    key: usize,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let client = self.lp.clients.borrow_mut().try_remove(self.key);
        drop(client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::state::ProcessState;
    use crate::log::ErrorLog;
    use crate::threads::load::LoopLoads;
    use crate::threads::process::Mail;
    use crate::threads::transit::Transits;
    use crate::transport::settings::TCP;
    use crate::upstream::connect::BuiltInServers;
    use std::sync::atomic::{AtomicBool, AtomicU32};
    use tokio::sync::mpsc::unbounded_channel;
    use weir_net::io::clock::Clock;
    use weir_net::io::runtime::Runtime;
    use weir_stats::Key;

    /// A process of one loop and its owner, without nodes and listeners.
    fn process() -> io::Result<Arc<Process>> {
        let clock = Clock::start();
        let mail = (0..2).map(|_| unbounded_channel().0).collect();
        let notices: Arc<[_]> = (0..3).map(|_| unbounded_channel().0).collect();
        Ok(Arc::new(Process {
            clock,
            seed: 1,
            token: 1,
            built_in: BuiltInServers::Here(unbounded_channel().0),
            run: None,
            errors: Arc::new(ErrorLog::start(clock, true)?),
            state: Arc::new(ProcessState::new(notices)),
            metrics: Default::default(),
            transits: Transits::new(1),
            loads: LoopLoads::new(1),
            serving: AtomicU32::new(1),
            ending: tokio::sync::watch::Sender::new(false),
            pulses: (0..2).map(|_| Default::default()).collect(),
            reserve_said: AtomicBool::new(false),
            drain_said: AtomicBool::new(false),
            drained: [].into(),
            files: Arc::default(),
            successor: std::sync::OnceLock::new(),
            replaced: AtomicBool::new(false),
            to_built_in: unbounded_channel().0,
            mail: Mail(mail),
        }))
    }

    /// The result of a loop with this task, which may begin a drain first.
    fn ends(drains: bool, task: impl Future<Output = ()> + 'static) -> io::Result<()> {
        let runtime = Runtime::new()?;
        let process = process()?;
        let core = Core::new(runtime.clone(), process.clock, Key::new(2), TCP)?;
        let state = LocalState::new(process.state.clone(), 0);
        runtime.clone().block_on(async move {
            let lp = Loop::new(0, core, process, state);
            lp.closing.send_modify(|closing| closing.levels = u32::from(drains));
            let task = lp.needs("accepting", task);
            lp.run(async {
                task.await;
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                Ok(())
            })
            .await
        })?
    }

    /// Without accepting or mail a loop would look alive and serve no client.
    #[test]
    fn a_loop_ends_in_words_with_what_it_needs() {
        async fn panics() {
            panic!("of a task, wanted by the test")
        }
        for drains in [false, true] {
            let why = ends(drains, panics()).expect_err("it panicked").to_string();
            assert_eq!(why, "accepting of an event loop ended");
        }
        assert!(ends(false, async {}).is_err(), "too early");
        assert!(ends(true, async {}).is_ok(), "accepting ends as a drain begins");
    }
}
