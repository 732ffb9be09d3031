//! One event loop: a thread with its own listeners, connections, pools and balancer state; nothing of it is shared.

use crate::control::mailbox::ToLoop;
use crate::control::process::Process;
use crate::exchange::Exchange;
use crate::graph::Graph;
use crate::h1::server::Conn;
use crate::health::monitor::Keeper;
use crate::io::buffers::Buffers;
use crate::io::clock::Clock;
use crate::io::deadlines::{Deadlines, TICK_NS};
use crate::io::reuse::Reuse;
use crate::io::runtime::Runtime;
use crate::io::timers::Timers;
use crate::log::Line;
use crate::nodes::{Node, NodeId};
use crate::transport::listener::Listener;
use slab::Slab;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use weir_stats::Key;

/// A loop.
pub(crate) struct Loop {
    /// Which one; the thread of the built-in servers is `u32::MAX`.
    pub number: u32,
    pub process: Arc<Process>,
    pub clock: Clock,
    /// Its tasks and sockets.
    pub runtime: Runtime,
    pub timers: Rc<Timers>,
    pub deadlines: Rc<Deadlines>,
    pub buffers: Rc<Buffers>,
    /// Memory of requests' futures.
    pub reuse: Reuse,
    /// Connections that are being closed with care.
    pub lingering: Cell<u32>,
    graph: RefCell<Rc<Graph>>,
    keeper: OnceCell<Rc<Keeper>>,
    seed: Key,
    drawn: Cell<u64>,
    draining: Cell<bool>,
    /// Told once, when accepting ends.
    pub closing: tokio::sync::watch::Sender<bool>,
    /// The task that the loop cannot do without and that has ended, if one has.
    failed: tokio::sync::watch::Sender<Option<&'static str>>,
    clients: RefCell<Slab<Weak<Conn>>>,
    /// Listeners before which somebody waits though the doors are closing.
    late: Cell<u32>,
    listeners: RefCell<Vec<Rc<Listener>>>,
    date: Cell<[u8; 29]>,
    lately: Cell<u64>,
}

impl Loop {
    /// A loop on this runtime.
    pub fn new(runtime: Runtime, process: Arc<Process>, graph: Graph, number: u32) -> io::Result<Rc<Loop>> {
        let clock = process.clock;
        let lp = Rc::new(Loop {
            number,
            keeper: OnceCell::new(),
            timers: Timers::new(&runtime, clock)?,
            runtime,
            deadlines: Deadlines::new(clock),
            buffers: Rc::default(),
            reuse: Reuse::default(),
            lingering: Cell::new(0),
            graph: RefCell::new(Rc::new(graph)),
            seed: Key::new(process.seed).with(u64::from(number)),
            drawn: Cell::new(0),
            draining: Cell::new(false),
            closing: tokio::sync::watch::Sender::new(false),
            failed: tokio::sync::watch::Sender::new(None),
            clients: RefCell::default(),
            late: Cell::new(0),
            listeners: RefCell::default(),
            date: Cell::new(crate::io::date::now()),
            lately: Cell::new(clock.now()),
            process,
            clock,
        });
        lp.needs("the timers", lp.timers.clone().run(lp.runtime.clone()));
        lp.needs("the clock", lp.clone().tick());
        Ok(lp)
    }

    /// Begins a task that the loop cannot do without: should it ever end, as by a panic, so does the loop.
    pub fn needs(self: &Rc<Self>, what: &'static str, task: impl Future<Output = ()> + 'static) {
        let needed = Needed { lp: self.clone(), what };
        self.runtime.spawn(async move {
            let _needed = needed;
            task.await;
        });
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

    /// Now, ns since the start of the process.
    pub fn now(&self) -> u64 {
        let now = self.clock.now();
        self.lately.set(now);
        now
    }

    /// What [`Loop::now`] said last: for whoever is called right after something was read, since that asks for the time.
    pub fn lately(&self) -> u64 {
        self.lately.get()
    }

    /// Randomness that nobody else has got.
    pub fn draw(&self) -> Key {
        let n = self.drawn.get();
        self.drawn.set(n + 1);
        self.seed.with(n)
    }

    /// The nodes that new requests meet.
    pub fn graph(&self) -> Rc<Graph> {
        self.graph.borrow().clone()
    }

    /// From now on this loop keeps the health of all targets.
    pub fn keep(self: &Rc<Self>, keeper: Keeper) {
        let keeper = self.keeper.get_or_init(|| Rc::new(keeper));
        self.needs("the keeper of health", keeper.clone().run(self.clone()));
    }

    /// The keeper of health, if this loop has it.
    pub fn keeper(&self) -> Option<&Rc<Keeper>> {
        self.keeper.get()
    }

    /// Tells all other loops that serve.
    pub fn tell_others(&self, message: impl Fn() -> ToLoop) {
        for other in (0..self.process.loops()).filter(|n| *n != self.number && self.number != u32::MAX) {
            self.process.tell(other, message());
        }
    }

    /// Closes one idle connection to a server.
    pub fn close_idle(&self, server: NodeId) {
        if let Some(Node::Server(server)) = self.graph().nodes.get(server as usize) {
            server.pool.borrow_mut().close_one();
        }
    }

    /// A name has these addresses now.
    pub fn name_has(self: &Rc<Self>, name: u32, addresses: &[SocketAddr]) {
        for server in &self.graph().servers {
            if server.target.is_named(name) {
                server.moved(self.now(), addresses);
            }
        }
        if let Some(keeper) = self.keeper() {
            keeper.look_at_names(self);
        }
    }

    /// Whether nothing new is begun.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// The time for `Date` fields.
    pub fn date(&self) -> [u8; 29] {
        self.date.get()
    }

    /// Writes an exchange's line.
    pub fn log(&self, ex: &Exchange, line: &Line) {
        if let Some(log) = &ex.conn.listener.log {
            log.write(self, ex, line);
        }
    }

    /// The listeners of the process, by their numbers; said once, before anything is accepted.
    pub fn has_listeners(&self, listeners: Vec<Rc<Listener>>) {
        *self.listeners.borrow_mut() = listeners;
    }

    /// A listener.
    pub fn listener(&self, number: usize) -> Option<Rc<Listener>> {
        self.listeners.borrow().get(number).cloned()
    }

    /// Keeps a connection in mind, to be told to end.
    pub fn know(self: &Rc<Self>, conn: &Rc<Conn>) -> Known {
        let key = self.clients.borrow_mut().insert(Rc::downgrade(conn));
        Known { lp: self.clone(), key }
    }

    /// Ten times a second: deadlines, pools, the date.
    async fn tick(self: Rc<Self>) {
        let mut count = 0u64;
        loop {
            self.timers.after(TICK_NS).await;
            self.deadlines.sweep();
            count += 1;
            if count.is_multiple_of(10) {
                self.date.set(crate::io::date::now());
                let now = self.now();
                for server in &self.graph().servers {
                    server.pool.borrow_mut().sweep(now, server.origin.idle_timeout_ns);
                }
            }
        }
    }

    /// Begins nothing new: idle connections close, busy ones after their answer.
    pub fn drain(&self) {
        self.draining.set(true);
        for (_, conn) in self.clients.borrow().iter() {
            if let Some(conn) = conn.upgrade() {
                conn.ending.set(true);
                conn.deadline.wake();
            }
        }
    }

    /// Whether clients are connected, or wait for a place.
    pub fn has_clients(&self) -> bool {
        self.late.get() > 0 || !self.clients.borrow().is_empty()
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
        self.lp.failed.send_replace(Some(self.what));
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
        self.lp.clients.borrow_mut().try_remove(self.key);
    }
}
