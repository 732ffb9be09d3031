//! One event loop: a thread with its own listeners, connections, targets and graph; nothing of it is shared. The threads that
//! serve no client (the owner of the process's state, the built-in servers) are loops without listeners.

use super::admission::Admission;
use super::process::Process;
use crate::exchange::Bound;
use crate::graph::Graph;
use crate::graph::state::LocalState;
use crate::health::monitor::Monitor;
use crate::log::LoopLog;
use crate::nodes::Id;
use crate::nodes::lb::Lb;
use crate::transport::listener::Listener;
use crate::transport::session::Session;
use crate::upstream::target::Targets;
use slab::Slab;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::deadlines::TICK_NS;

/// A loop.
pub(crate) struct Loop {
    /// Which thread.
    pub number: u32,
    pub core: Rc<Core>,
    pub process: Arc<Process>,
    /// The targets that it has.
    pub targets: Rc<Targets>,
    /// The process's state, as it has it.
    pub state: Rc<LocalState>,
    graph: OnceCell<Rc<Graph>>,
    monitor: OnceCell<Rc<Monitor>>,
    listeners: OnceCell<Vec<(Rc<Listener>, Admission)>>,
    clients: RefCell<Slab<Client>>,
    /// Counts how often another loop was asked for room.
    turn: Cell<u32>,
    /// Listeners before which somebody waits though the listening sockets are closing.
    late: Cell<u32>,
    /// On how many levels of listeners accepting has ended, from the outermost on.
    pub closing: tokio::sync::watch::Sender<u32>,
    /// The task that the loop cannot do without and that has ended, if one has.
    failed: tokio::sync::watch::Sender<Option<&'static str>>,
}

/// However it ends, its last lines are handed over, and nobody is to wonder why its clock does not beat.
impl Drop for Loop {
    fn drop(&mut self) {
        self.hand_over_logs();
        if let Some(pulse) = self.process.pulse(self.number) {
            pulse.ends();
        }
    }
}

/// A connection that the loop serves.
struct Client {
    session: Rc<Session>,
    bound: Rc<Bound>,
}

impl Loop {
    /// A loop without nodes or listeners.
    pub fn new(number: u32, core: Rc<Core>, process: Arc<Process>, state: Rc<LocalState>) -> Rc<Loop> {
        let lp = Rc::new(Loop {
            number,
            core,
            process,
            targets: Rc::default(),
            state,
            graph: OnceCell::new(),
            monitor: OnceCell::new(),
            listeners: OnceCell::new(),
            clients: RefCell::default(),
            turn: Cell::new(0),
            late: Cell::new(0),
            closing: tokio::sync::watch::Sender::new(0),
            failed: tokio::sync::watch::Sender::new(None),
        });
        lp.needs("the timers", lp.core.timers.clone().run(lp.core.runtime.clone()));
        lp.needs("the clock", lp.clone().tick());
        lp
    }

    /// Begins a task that the loop cannot do without before it drains: should it end sooner, as by a panic, so does the loop.
    pub fn needs(
        self: &Rc<Self>,
        what: &'static str,
        task: impl Future<Output = ()> + 'static,
    ) -> weir_net::io::runtime::Joined {
        let needed = Needed { lp: self.clone(), what };
        self.core.runtime.spawn(async move {
            let _needed = needed;
            task.await;
        })
    }

    /// Does something until it ends, or until something that the loop cannot do without has.
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

    /// The nodes that it runs from now on.
    pub fn has_graph(&self, graph: Rc<Graph>) {
        let _ = self.graph.set(graph);
    }

    /// The nodes that new requests meet; `None` only while it starts.
    pub fn graph(&self) -> Option<&Rc<Graph>> {
        self.graph.get()
    }

    /// A balancer as other threads name it; `None`: it is of another graph.
    pub fn lb(&self, id: Id) -> Option<&Rc<Lb>> {
        self.graph()?.lb(id)
    }

    /// From now on this loop monitors the health of all targets.
    pub fn monitors(self: &Rc<Self>, monitor: Rc<Monitor>) {
        if self.monitor.set(monitor.clone()).is_ok() {
            self.needs("the health monitor", monitor.run());
        }
    }

    /// The health monitor, if this loop has it.
    pub fn monitor(&self) -> Option<&Rc<Monitor>> {
        self.monitor.get()
    }

    /// The listeners of the process, by their numbers; said once, before anything is accepted.
    pub fn has_listeners(&self, listeners: Vec<(Rc<Listener>, Admission)>) {
        let _ = self.listeners.set(listeners);
    }

    /// A listener, and who may come in.
    pub fn listener(&self, number: usize) -> Option<&(Rc<Listener>, Admission)> {
        self.listeners.get()?.get(number)
    }

    /// Hands the lines of access logs over that were gathered since the last time.
    fn hand_over_logs(&self) {
        let all = self.listeners.get().into_iter().flatten();
        all.filter_map(|(listener, _)| listener.log.as_ref()).for_each(LoopLog::hand_over);
    }

    /// The longest that any listener lets a drain take, ns.
    pub fn drain_timeout_ns(&self) -> u64 {
        let all = self.listeners.get().into_iter().flatten();
        all.map(|(listener, _)| listener.http.drain_timeout_ns).max().unwrap_or(0)
    }

    /// Keeps a connection in mind for as long as it lasts, to be told to end.
    pub fn know(self: &Rc<Self>, session: Rc<Session>, bound: Rc<Bound>) -> Known {
        let key = self.clients.borrow_mut().insert(Client { session, bound });
        Known { lp: self.clone(), key }
    }

    /// Ten times a second: deadlines, pools, the date.
    async fn tick(self: Rc<Self>) {
        let mut count = 0u64;
        let mut due_ns = self.core.now();
        loop {
            if let Some(pulse) = self.process.pulse(self.number) {
                pulse.beats(self.core.now(), due_ns);
            }
            self.state.metrics.beats(self.core.now(), due_ns);
            due_ns = self.core.now().saturating_add(TICK_NS);
            self.core.timers.at(due_ns).await;
            self.core.deadlines.sweep();
            self.hand_over_logs();
            count += 1;
            if count.is_multiple_of(10) {
                self.core.renew_date();
                let now_ns = self.core.now();
                self.targets.for_each(|target| target.sweep(now_ns));
                for (_, client) in self.clients.borrow().iter() {
                    client.bound.sweep(now_ns);
                }
            }
        }
    }

    /// Begins nothing new at listeners before which so few stand: idle connections close, busy ones after their answer.
    pub fn drain(&self, level: u32) {
        self.core.drain();
        for (_, client) in self.clients.borrow().iter() {
            if client.session.listener.level <= level {
                client.session.end();
            }
        }
    }

    /// The connection that has been idle for longest, for so long at least, of those that `which` takes.
    pub fn longest_idle(&self, least_ns: u64, which: impl Fn(&Session) -> bool) -> Option<Rc<Session>> {
        let latest_ns = self.core.now().checked_sub(least_ns)?;
        let clients = self.clients.borrow();
        let idle = clients.iter().map(|(_, client)| &client.session);
        let idle = idle.filter(|s| s.idle_since_ns.get() <= latest_ns && !s.is_ending() && which(s));
        idle.min_by_key(|s| s.idle_since_ns.get()).cloned()
    }

    /// How often this was asked before.
    pub fn turn(&self) -> u32 {
        self.turn.replace(self.turn.get().wrapping_add(1))
    }

    /// Each client that is connected.
    pub fn each_client(&self, mut act: impl FnMut(&Session)) {
        self.clients.borrow().iter().for_each(|(_, client)| act(&client.session));
    }

    /// Clients that are connected.
    pub fn clients(&self) -> usize {
        self.clients.borrow().len()
    }

    /// Whether clients of listeners before which so few stand are connected, or some wait for a place, or something goes on
    /// without them.
    pub fn is_busy(&self, level: u32) -> bool {
        let of_level = |client: &Client| client.session.listener.level <= level;
        let connected = || self.clients.borrow().iter().any(|(_, client)| of_level(client));
        self.late.get() > 0 || connected() || self.core.has_background()
    }

    /// From now on some wait for a place, until it is dropped.
    pub fn clients_wait(self: &Rc<Self>) -> Waits {
        self.late.set(self.late.get() + 1);
        Waits(self.clone())
    }
}

/// A task that its loop cannot do without.
struct Needed {
    lp: Rc<Loop>,
    what: &'static str,
}

impl Drop for Needed {
    fn drop(&mut self) {
        // Accepting ends as a drain begins; a panic may come at any time.
        if std::thread::panicking() || *self.lp.closing.borrow() == 0 {
            self.lp.failed.send_replace(Some(self.what));
        }
    }
}

/// Clients that wait for a place.
pub(crate) struct Waits(Rc<Loop>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.late.set(self.0.late.get() - 1);
    }
}

/// A connection kept in mind.
pub(crate) struct Known {
    lp: Rc<Loop>,
    key: usize,
}

impl Drop for Known {
    fn drop(&mut self) {
        let client = self.lp.clients.borrow_mut().try_remove(self.key);
        drop(client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::handoff::Transits;
    use crate::control::load::LoopLoads;
    use crate::control::process::Mail;
    use crate::graph::state::ProcessState;
    use crate::log::ErrorLog;
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
            drain_said: AtomicBool::new(false),
            drained: [].into(),
            mail: Mail(mail),
        }))
    }

    /// What becomes of a loop with this task, which may begin a drain first.
    fn ends(drains: bool, task: impl Future<Output = ()> + 'static) -> io::Result<()> {
        let runtime = Runtime::new()?;
        let process = process()?;
        let core = Core::new(runtime.clone(), process.clock, Key::new(2))?;
        let state = LocalState::new(process.state.clone(), 0);
        runtime.clone().block_on(async move {
            let lp = Loop::new(0, core, process, state);
            lp.closing.send_replace(u32::from(drains));
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

    /// Without accepting or mail a loop would look alive and serve nobody.
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
