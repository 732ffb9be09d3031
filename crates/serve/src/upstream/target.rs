//! A target by its identity (`docs/spec/operating.md#identity-of-targets`): the location in its `server`. However
//! many nodes of however many graphs lead to it, a loop has it once, with its location and its idle connections.

use super::connect::Place;
use super::multiplexed::Multiplexed;
use super::pool::Pool;
use crate::exchange::OriginConn;
use crate::h2::client::Conn;
use crate::metrics::{ConnectionCounts, Ending};
use crate::sync::discards::{Discards, Slice};
use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use weir_net::io::Core;
use weir_plan::Origin;

/// A target as one loop sees it.
pub(crate) struct Target {
    own: Weak<Target>,
    resting: Rc<Resting>,
    /// Whether it is among the targets with idle connections.
    is_resting: Cell<bool>,
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
pub(crate) struct Targets {
    by_key: RefCell<BTreeMap<u32, Rc<Target>>>,
    /// Those with idle connections.
    resting: Rc<Resting>,
    /// Where connections are closed that end together, and targets freed that no graph has any more.
    discards: Rc<Discards>,
}

impl Targets {
    /// No target yet.
    pub fn new(discards: Rc<Discards>) -> Targets {
        Targets { discards, ..Targets::default() }
    }

    /// The target with this identity; `place` is only called if it is not known yet.
    pub fn get(&self, key: u32, origin: &Origin, place: impl FnOnce() -> Place) -> Rc<Target> {
        let mut targets = self.by_key.borrow_mut();
        let target = targets.entry(key).or_insert_with(|| {
            Rc::new_cyclic(|own| Target {
                own: own.clone(),
                key,
                resting: self.resting.clone(),
                is_resting: Cell::new(false),
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

    /// Closes the idle connections of all targets except these, whose identities ascend.
    pub fn retire_but(&self, reached: &[u32]) {
        let mut reached = reached.iter().copied().peekable();
        for (key, target) in self.by_key.borrow().iter() {
            while reached.next_if(|reached| reached < key).is_some() {}
            if reached.peek() != Some(key) {
                self.discards.put(target.retire(), Slice::Connections);
            }
        }
    }

    /// Drops the targets that no graph has any more.
    pub fn forget(&self) {
        let mut targets = self.by_key.borrow_mut();
        let gone = targets.extract_if(.., |_, target| Rc::strong_count(target) == 1);
        self.discards.put(gone.map(|(_, target)| target).collect(), Slice::Memory);
    }

    /// Closes idle connections that were idle for too long, are too old, or were closed by the origin.
    pub fn sweep(&self, now_ns: u64) {
        self.resting.retain(|target| {
            self.discards.put(target.sweep(now_ns), Slice::Connections);
        });
    }

    /// When the first idle connection has been idle for too long, ns; without such a limit, a time that will not come.
    pub fn idle_due_ns(&self) -> Option<u64> {
        self.resting.due_ns()
    }

    /// Closes one idle connection to a target.
    pub fn close_idle(&self, key: u32) {
        if let Some(target) = self.by_key.borrow().get(&key) {
            target.close_idle();
        }
    }

    /// Closes the longest idle connection of all targets; returns whether there was one.
    pub fn close_oldest(&self) -> bool {
        self.resting.oldest().is_some_and(|target| target.close_idle())
    }

    /// Applies new addresses of a name: idle connections to other addresses close, busy ones after their exchange.
    pub fn name_has(&self, now_ns: u64, name: u32, addresses: &[SocketAddr]) {
        for target in self.by_key.borrow().values() {
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
            self.rest(core.recent());
        }
    }

    /// Notes that it may have idle connections, the oldest not before this time. Most often that is known.
    #[inline]
    fn rest(&self, since_ns: u64) {
        if !self.is_resting.replace(true) {
            self.resting.add(since_ns, self.own.clone());
        }
    }

    /// Whether it has any connection that may become idle.
    fn is_kept(&self) -> bool {
        self.pool.borrow().len() > 0 || self.multiplexed.len() > 0
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
            self.rest(core.recent());
        } else {
            conn.set_ending(Ending::Spare);
        }
    }

    /// Removes connections that were idle for too long, are too old, or were closed by the origin.
    fn sweep(&self, now_ns: u64) -> Vec<OriginConn> {
        let idle_ns = self.idle_timeout_ns.get();
        self.multiplexed.keep_only(|conn| conn.is_usable(now_ns, idle_ns));
        self.pool.borrow_mut().sweep(now_ns, idle_ns)
    }

    /// The number of idle connections.
    pub fn idle(&self) -> usize {
        self.pool.borrow().len() + self.multiplexed.idle()
    }

    /// Closes the longest idle connection; returns whether there was one.
    pub fn close_idle(&self) -> bool {
        self.pool.borrow_mut().close_one() || self.multiplexed.close_one()
    }

    /// Retires the target: no node leads here any more. Returns its idle connections, which are to be closed.
    pub fn retire(&self) -> Vec<OriginConn> {
        self.retired.set(true);
        self.multiplexed.keep_only(|_| false);
        self.pool.borrow_mut().take_all()
    }
}

/// The targets of a loop that have idle connections, found by how long these have been idle: to close the oldest costs
/// the logarithm of their number.
///
/// A target is entered once, with a time at or before that of its oldest idle connection. That time is put right when
/// the target comes up, not for each request.
#[derive(Default)]
struct Resting(RefCell<BinaryHeap<Reverse<Entry>>>);

struct Entry {
    /// The oldest of its connections did not become idle before, ns.
    since_ns: u64,
    target: Weak<Target>,
}

impl Resting {
    fn add(&self, since_ns: u64, target: Weak<Target>) {
        self.0.borrow_mut().push(Reverse(Entry { since_ns, target }));
    }

    /// The target with the longest idle connection.
    fn oldest(&self) -> Option<Rc<Target>> {
        let mut entries = self.0.borrow_mut();
        // Targets whose connections are all in use.
        let mut busy = Vec::new();
        let oldest = loop {
            let Some(Reverse(entry)) = entries.pop() else { break None };
            let Some(target) = entry.target.upgrade() else { continue };
            match target.oldest_ns() {
                Some(since_ns) => {
                    let is_oldest = since_ns <= entry.since_ns;
                    entries.push(Reverse(Entry { since_ns, ..entry }));
                    if is_oldest {
                        break Some(target);
                    }
                }
                None if target.is_kept() => busy.push(Reverse(entry)),
                None => target.is_resting.set(false),
            }
        };
        entries.extend(busy);
        oldest
    }

    /// Calls `act` for each, and forgets those that have no connection after it.
    fn retain(&self, mut act: impl FnMut(&Target)) {
        self.0.borrow_mut().retain(|Reverse(entry)| {
            let Some(target) = entry.target.upgrade() else { return false };
            act(&target);
            target.is_resting.set(target.is_kept());
            target.is_resting.get()
        });
    }

    fn due_ns(&self) -> Option<u64> {
        let targets = self.0.borrow();
        let due = targets.iter().filter_map(|Reverse(entry)| entry.target.upgrade()?.idle_due_ns());
        due.min()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.since_ns == other.since_ns
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.since_ns.cmp(&other.since_ns)
    }
}
