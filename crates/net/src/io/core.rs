//! The core of a thread, which all its tasks use: clock, tasks and sockets, timers, buffers and randomness. It knows
//! no user of it.

use crate::io::buffers::Buffers;
use crate::io::clock::Clock;
use crate::io::date;
use crate::io::deadlines::Deadlines;
use crate::io::heavy::Heavy;
use crate::io::pipes::{Pipe, Pipes};
use crate::io::reuse::{Reuse, Spares};
use crate::io::runtime::Runtime;
use crate::io::tcp::TcpSettings;
use crate::io::timers::Timers;
use std::cell::Cell;
use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use weir_stats::Key;

/// The core of one thread.
pub struct Core {
    /// The clock.
    pub clock: Clock,
    /// Tasks and sockets.
    pub runtime: Runtime,
    /// Exact waits.
    pub timers: Rc<Timers>,
    /// Limits of seconds that every request has.
    pub deadlines: Rc<Deadlines>,
    /// Options of the TCP connections that the thread makes.
    pub tcp: TcpSettings,
    /// Read buffers.
    pub buffers: Rc<Buffers>,
    /// Pipes between sockets.
    pipes: Rc<Pipes>,
    /// Memory of what is made for each request.
    pub reuse: Reuse,
    /// Objects that are used again.
    pub spares: Spares,
    /// Turns of long work.
    pub heavy: Heavy,
    /// The number of connections in a lingering close.
    pub lingering: Cell<u32>,
    seed: Key,
    drawn: Cell<u64>,
    recent_ns: Cell<u64>,
    date: Cell<[u8; 29]>,
    draining: Cell<bool>,
    background: Cell<u32>,
    dropping_late: Cell<bool>,
    /// The number of the first descriptor of the reserve.
    reserve: Cell<i32>,
}

/// Work that continues without its client; dropping this ends it.
pub struct Background(Rc<Core>);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.background.set(self.0.background.get() - 1);
    }
}

/// Drops of late work, until this is dropped.
struct LateDrops<'a>(&'a Cell<bool>);

impl Drop for LateDrops<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Core {
    /// The core of a thread on this runtime; `seed` must be its own.
    ///
    /// # Errors
    /// The system has no timer left.
    pub fn new(runtime: Runtime, clock: Clock, seed: Key, tcp: TcpSettings) -> io::Result<Rc<Core>> {
        Ok(Rc::new(Core {
            clock,
            timers: Timers::new(&runtime, clock)?,
            runtime,
            deadlines: Deadlines::new(clock),
            tcp,
            buffers: Rc::default(),
            pipes: Rc::default(),
            reuse: Reuse::default(),
            spares: Spares::default(),
            heavy: Heavy::default(),
            lingering: Cell::new(0),
            seed,
            drawn: Cell::new(0),
            recent_ns: Cell::new(clock.now()),
            date: Cell::new(date::now()),
            draining: Cell::new(false),
            background: Cell::new(0),
            dropping_late: Cell::new(false),
            reserve: Cell::new(i32::MAX),
        }))
    }

    /// Now, ns since the start of the process.
    pub fn now(&self) -> u64 {
        let now = self.clock.now();
        self.recent_ns.set(now);
        now
    }

    /// The last result of [`Core::now`]: for code that runs right after a read, which refreshes it.
    pub fn recent(&self) -> u64 {
        self.recent_ns.get()
    }

    /// A new key of random draws.
    pub fn draw(&self) -> Key {
        let n = self.drawn.get();
        self.drawn.set(n + 1);
        self.seed.with(n)
    }

    /// The time for `Date` fields.
    pub fn date(&self) -> [u8; 29] {
        self.date.get()
    }

    /// Refreshes the time for `Date` fields; called once a second.
    pub fn renew_date(&self) {
        self.date.set(date::now());
    }

    /// Whether this thread begins nothing new.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Stops beginning anything new.
    pub fn drain(&self) {
        self.draining.set(true);
    }

    /// Leaves all but this number of descriptors to other threads and to what is no connection: connections that this
    /// thread makes fail as if there were no more.
    pub fn keep_reserve(&self, own: usize) {
        self.reserve.set(i32::try_from(own).unwrap_or(i32::MAX));
    }

    /// Whether a descriptor that was opened just now is one of the reserve. The system gives the lowest free number, so
    /// that all below are in use: nothing has to be counted.
    pub fn is_reserved(&self, opened: &impl AsRawFd) -> bool {
        opened.as_raw_fd() >= self.reserve.get()
    }

    /// An empty pipe from one socket to another; `None`: bytes are to be copied.
    pub fn pipe(&self) -> Option<Pipe> {
        self.pipes.take(|opened| self.is_reserved(opened))
    }

    /// Registers work whose end no client waits for: a drain waits for it.
    pub fn begin_background(self: &Rc<Self>) -> Background {
        self.background.set(self.background.get() + 1);
        Background(self.clone())
    }

    /// Whether any such work is running.
    pub fn has_background(&self) -> bool {
        self.background.get() > 0
    }

    /// Drops work that a time limit has ended. Connections that it shares with other work can tell by
    /// [`Core::is_dropping_late`].
    pub fn drop_late<T>(&self, work: T) {
        self.dropping_late.set(true);
        let _dropping = LateDrops(&self.dropping_late);
        drop(work);
    }

    /// Whether what is dropped now was ended by a time limit.
    pub fn is_dropping_late(&self) -> bool {
        self.dropping_late.get()
    }
}
