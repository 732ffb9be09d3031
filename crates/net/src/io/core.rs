//! What every task of a thread works with: its clock, tasks and sockets, timers, buffers and randomness. It knows nobody.

use crate::io::buffers::Buffers;
use crate::io::clock::Clock;
use crate::io::date;
use crate::io::deadlines::Deadlines;
use crate::io::heavy::Heavy;
use crate::io::reuse::Reuse;
use crate::io::runtime::Runtime;
use crate::io::tcp::TcpSettings;
use crate::io::timers::Timers;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use weir_stats::Key;

/// The core of one thread.
pub struct Core {
    /// What time it is.
    pub clock: Clock,
    /// Tasks and sockets.
    pub runtime: Runtime,
    /// Exact waits.
    pub timers: Rc<Timers>,
    /// Limits of seconds that every request has.
    pub deadlines: Rc<Deadlines>,
    /// Options of the TCP connections that the thread makes.
    pub tcp: TcpSettings,
    /// What is read into.
    pub buffers: Rc<Buffers>,
    /// Memory of requests' futures.
    pub reuse: Reuse,
    /// Whose turn it is to do what takes long.
    pub heavy: Heavy,
    /// Connections that are being closed with care.
    pub lingering: Cell<u32>,
    seed: Key,
    drawn: Cell<u64>,
    recent_ns: Cell<u64>,
    date: Cell<[u8; 29]>,
    draining: Cell<bool>,
    background: Cell<u32>,
}

/// Work that goes on without its client; dropped, it is done.
pub struct Background(Rc<Core>);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.background.set(self.0.background.get() - 1);
    }
}

impl Core {
    /// A thread's core on this runtime; nobody else draws by `seed`.
    ///
    /// # Errors
    /// When the system has no timer left.
    pub fn new(runtime: Runtime, clock: Clock, seed: Key, tcp: TcpSettings) -> io::Result<Rc<Core>> {
        Ok(Rc::new(Core {
            clock,
            timers: Timers::new(&runtime, clock)?,
            runtime,
            deadlines: Deadlines::new(clock),
            tcp,
            buffers: Rc::default(),
            reuse: Reuse::default(),
            heavy: Heavy::default(),
            lingering: Cell::new(0),
            seed,
            drawn: Cell::new(0),
            recent_ns: Cell::new(clock.now()),
            date: Cell::new(date::now()),
            draining: Cell::new(false),
            background: Cell::new(0),
        }))
    }

    /// Now, ns since the start of the process.
    pub fn now(&self) -> u64 {
        let now = self.clock.now();
        self.recent_ns.set(now);
        now
    }

    /// What [`Core::now`] said last: for whoever is called right after something was read, since that asks for the time.
    pub fn recent(&self) -> u64 {
        self.recent_ns.get()
    }

    /// Randomness that nobody else has got.
    pub fn draw(&self) -> Key {
        let n = self.drawn.get();
        self.drawn.set(n + 1);
        self.seed.with(n)
    }

    /// The time for `Date` fields.
    pub fn date(&self) -> [u8; 29] {
        self.date.get()
    }

    /// A second has passed.
    pub fn renew_date(&self) {
        self.date.set(date::now());
    }

    /// Whether this thread begins nothing new.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// From now on it begins nothing new.
    pub fn drain(&self) {
        self.draining.set(true);
    }

    /// Work begins, or goes on, of which no client waits for the end: a drain waits for it.
    pub fn begin_background(self: &Rc<Self>) -> Background {
        self.background.set(self.background.get() + 1);
        Background(self.clone())
    }

    /// Whether any such work goes on.
    pub fn has_background(&self) -> bool {
        self.background.get() > 0
    }
}
