//! A target by its identity (`docs/spec/operating.md#identity-of-targets`): what its `server` says of where it is. However many
//! nodes of however many graphs lead to it, a loop has it once, with its place and its idle connections.

use super::connect::Place;
use super::multiplexed::Multiplexed;
use super::pool::Pool;
use crate::exchange::OriginConn;
use crate::h2::client::Conn;
use crate::metrics::{ConnectionCounts, Ending};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use weir_net::io::Core;
use weir_plan::Origin;

/// A target as one loop has it.
pub(crate) struct Target {
    /// Its identity, interned: the same on all threads, in every graph.
    pub key: u32,
    /// Where it is.
    pub place: Place,
    pool: RefCell<Pool>,
    /// Its connections of HTTP/2, which several requests have at once.
    pub multiplexed: Multiplexed,
    /// What is counted of its connections.
    pub counts: Rc<ConnectionCounts>,
    /// The longest that any of its nodes lets a connection be idle, ns; `None`: for ever.
    idle_timeout_ns: Cell<Option<u64>>,
    /// That it has chosen HTTP/1.1 where both were offered: for as long as a connection stands that says so.
    h1_chosen: RefCell<Weak<()>>,
    /// Whether no way leads here any more: no connection is kept.
    retired: Cell<bool>,
}

/// The targets of a loop.
#[derive(Default)]
pub(crate) struct Targets(RefCell<BTreeMap<u32, Rc<Target>>>);

impl Targets {
    /// The target with this identity, at a place that is found out where it is not known yet.
    pub fn get(&self, key: u32, origin: &Origin, place: impl FnOnce() -> Place) -> Rc<Target> {
        let mut targets = self.0.borrow_mut();
        let target = targets.entry(key).or_insert_with(|| {
            Rc::new(Target {
                key,
                place: place(),
                pool: RefCell::default(),
                multiplexed: Multiplexed::default(),
                counts: Rc::default(),
                idle_timeout_ns: Cell::new(Some(0)),
                h1_chosen: RefCell::default(),
                retired: Cell::new(false),
            })
        });
        let longest = target.idle_timeout_ns.get().zip(origin.idle_timeout_ns).map(|(a, b)| a.max(b));
        target.idle_timeout_ns.set(longest);
        target.retired.set(false);
        target.clone()
    }

    /// Closes the idle connections of those to which no way leads any more.
    pub fn retire_but(&self, reached: &BTreeSet<u32>) {
        for target in self.0.borrow().values().filter(|target| !reached.contains(&target.key)) {
            target.retire();
        }
    }

    /// Forgets those that no graph has any more.
    pub fn forget(&self) {
        self.0.borrow_mut().retain(|_, target| Rc::strong_count(target) > 1);
    }

    /// Each of them.
    pub fn for_each(&self, act: impl FnMut(&Rc<Target>)) {
        self.0.borrow().values().for_each(act);
    }

    /// Closes one idle connection to a target.
    pub fn close_idle(&self, key: u32) {
        if let Some(target) = self.0.borrow().get(&key) {
            target.close_idle();
        }
    }

    /// Closes the connection that has been idle for longest of all; whether there was one.
    pub fn close_oldest(&self) -> bool {
        let targets = self.0.borrow();
        let oldest = targets.values().filter_map(|t| Some((t.oldest_ns()?, t)));
        oldest.min_by_key(|(since_ns, _)| *since_ns).is_some_and(|(_, target)| target.close_idle())
    }

    /// A name has these addresses now: idle connections to others close, busy ones after their exchange.
    pub fn name_has(&self, now_ns: u64, name: u32, addresses: &[SocketAddr]) {
        for target in self.0.borrow().values() {
            if let Place::Tcp(own) = &target.place
                && own.name == Some(name)
            {
                own.set(now_ns, addresses);
                target.pool.borrow_mut().keep_only(|conn| own.lead(conn.opened_ns(), || conn.peer()));
                target.multiplexed.keep_only(|conn| own.lead(conn.opened_ns, || conn.peer));
            }
        }
    }
}

impl Target {
    /// Whether it is known to choose HTTP/1.1; what a connection of that has says so to those that come after it.
    pub fn h1_chosen(&self) -> Option<Rc<()>> {
        self.h1_chosen.borrow().upgrade()
    }

    /// It has chosen HTTP/1.1 just now.
    pub fn chooses_h1(&self) -> Rc<()> {
        let chosen = self.h1_chosen().unwrap_or_default();
        *self.h1_chosen.borrow_mut() = Rc::downgrade(&chosen);
        chosen
    }

    /// An idle connection that may be used.
    pub fn take(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<OriginConn> {
        let multiplexed = self.multiplexed.take(now_ns, idle_timeout_ns);
        multiplexed.or_else(|| self.take_h1(now_ns, idle_timeout_ns))
    }

    /// An idle connection of HTTP/1.1 that may be used.
    pub fn take_h1(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<OriginConn> {
        self.pool.borrow_mut().take(now_ns, idle_timeout_ns)
    }

    /// Keeps a connection that several requests may have at once, if it leads where it should.
    pub fn share(&self, core: &Core, conn: Rc<Conn>) {
        let leads = self.place.leads(conn.opened_ns, || conn.peer);
        if leads && !self.retired.get() && !core.is_draining() {
            self.multiplexed.put(conn);
        }
    }

    /// Since when a connection is idle, the one that has been so for longest.
    fn oldest_ns(&self) -> Option<u64> {
        let pooled = self.pool.borrow().oldest_ns();
        pooled.into_iter().chain(self.multiplexed.oldest_ns()).min()
    }

    /// Keeps a connection for the next request, if it leads where it should.
    pub fn put(&self, core: &Core, conn: OriginConn) {
        let leads = self.place.leads(conn.opened_ns(), || conn.peer());
        if leads && !self.retired.get() && !core.is_draining() {
            self.pool.borrow_mut().put(conn, core.recent());
        } else {
            conn.set_ending(Ending::Spare);
        }
    }

    /// Closes those that have been idle for too long, are too old, or that the origin has closed.
    pub fn sweep(&self, now_ns: u64) {
        let idle_ns = self.idle_timeout_ns.get();
        self.pool.borrow_mut().sweep(now_ns, idle_ns);
        self.multiplexed.keep_only(|conn| conn.is_usable(now_ns, idle_ns));
    }

    /// Connections on which nothing is asked.
    pub fn idle(&self) -> usize {
        self.pool.borrow().len() + self.multiplexed.idle()
    }

    /// Closes the connection that has been idle for longest; whether there was one.
    pub fn close_idle(&self) -> bool {
        self.pool.borrow_mut().close_one() || self.multiplexed.close_one()
    }

    /// No way leads here any more.
    pub fn retire(&self) {
        self.retired.set(true);
        self.pool.borrow_mut().clear();
        self.multiplexed.keep_only(|_| false);
    }
}
