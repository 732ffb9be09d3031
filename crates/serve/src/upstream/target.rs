//! A target by its identity (`docs/spec/operating.md#identity-of-targets`): the location in its `server`. However
//! many nodes of however many graphs lead to it, a loop has it once, with its location and its idle connections.

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

/// A target as one loop sees it.
pub(crate) struct Target {
    /// Its identity, interned: the same on all threads, in every graph.
    pub key: u32,
    /// Its location.
    pub place: Place,
    pool: RefCell<Pool>,
    /// Its HTTP/2 connections, which several requests share.
    pub multiplexed: Multiplexed,
    /// The counters of its connections.
    pub counts: Rc<ConnectionCounts>,
    /// The longest idle time that any of its nodes allows, ns; `None`: forever.
    idle_timeout_ns: Cell<Option<u64>>,
    /// Alive while a connection is open on which it chose HTTP/1.1 although both versions were offered.
    h1_chosen: RefCell<Weak<()>>,
    /// Whether no node leads here any more, so that no connection is kept.
    retired: Cell<bool>,
}

/// The targets of a loop.
#[derive(Default)]
pub(crate) struct Targets(RefCell<BTreeMap<u32, Rc<Target>>>);

impl Targets {
    /// The target with this identity; `place` is only called if it is not known yet.
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

    /// Closes the idle connections of all targets except these.
    pub fn retire_but(&self, reached: &BTreeSet<u32>) {
        for target in self.0.borrow().values().filter(|target| !reached.contains(&target.key)) {
            target.retire();
        }
    }

    /// Drops the targets that no graph has any more.
    pub fn forget(&self) {
        self.0.borrow_mut().retain(|_, target| Rc::strong_count(target) > 1);
    }

    /// Calls `act` for each target.
    pub fn for_each(&self, act: impl FnMut(&Rc<Target>)) {
        self.0.borrow().values().for_each(act);
    }

    /// Closes one idle connection to a target.
    pub fn close_idle(&self, key: u32) {
        if let Some(target) = self.0.borrow().get(&key) {
            target.close_idle();
        }
    }

    /// Closes the longest idle connection of all targets; returns whether there was one.
    pub fn close_oldest(&self) -> bool {
        let targets = self.0.borrow();
        let oldest = targets.values().filter_map(|t| Some((t.oldest_ns()?, t)));
        oldest.min_by_key(|(since_ns, _)| *since_ns).is_some_and(|(_, target)| target.close_idle())
    }

    /// Applies new addresses of a name: idle connections to other addresses close, busy ones after their exchange.
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
    /// The mark that it chooses HTTP/1.1, if it is known to; connections made because of that keep the mark alive.
    pub fn h1_chosen(&self) -> Option<Rc<()>> {
        self.h1_chosen.borrow().upgrade()
    }

    /// Marks that it has chosen HTTP/1.1.
    pub fn chooses_h1(&self) -> Rc<()> {
        let chosen = self.h1_chosen().unwrap_or_default();
        *self.h1_chosen.borrow_mut() = Rc::downgrade(&chosen);
        chosen
    }

    /// Takes an idle connection that may be used.
    pub fn take(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<OriginConn> {
        let multiplexed = self.multiplexed.take(now_ns, idle_timeout_ns);
        multiplexed.or_else(|| self.take_h1(now_ns, idle_timeout_ns))
    }

    /// Takes an idle HTTP/1.1 connection that may be used.
    pub fn take_h1(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<OriginConn> {
        self.pool.borrow_mut().take(now_ns, idle_timeout_ns)
    }

    /// Keeps a connection that several requests share, if it leads where it should.
    pub fn share(&self, core: &Core, conn: Rc<Conn>) {
        let leads = self.place.leads(conn.opened_ns, || conn.peer);
        if leads && !self.retired.get() && !core.is_draining() {
            self.multiplexed.put(conn);
        }
    }

    /// When the longest idle connection became idle, ns.
    fn oldest_ns(&self) -> Option<u64> {
        let pooled = self.pool.borrow().oldest_ns();
        pooled.into_iter().chain(self.multiplexed.oldest_ns()).min()
    }

    /// When the longest idle connection has been idle for too long, ns.
    pub fn idle_due_ns(&self) -> Option<u64> {
        self.oldest_ns().map(|since| since.saturating_add(self.idle_timeout_ns.get().unwrap_or(u64::MAX)))
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

    /// Closes connections that were idle for too long, are too old, or were closed by the origin.
    pub fn sweep(&self, now_ns: u64) {
        let idle_ns = self.idle_timeout_ns.get();
        self.pool.borrow_mut().sweep(now_ns, idle_ns);
        self.multiplexed.keep_only(|conn| conn.is_usable(now_ns, idle_ns));
    }

    /// The number of idle connections.
    pub fn idle(&self) -> usize {
        self.pool.borrow().len() + self.multiplexed.idle()
    }

    /// Closes the longest idle connection; returns whether there was one.
    pub fn close_idle(&self) -> bool {
        self.pool.borrow_mut().close_one() || self.multiplexed.close_one()
    }

    /// Retires the target: no node leads here any more.
    pub fn retire(&self) {
        self.retired.set(true);
        self.pool.borrow_mut().clear();
        self.multiplexed.keep_only(|_| false);
    }
}
