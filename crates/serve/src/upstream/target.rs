//! A target by its identity (`docs/spec/operating.md#identity-of-targets`): the location in its `server`. However
//! many nodes of however many graphs lead to it, a loop has it once, with its location and its idle connections.

use super::connect::Place;
use super::multiplexed::{Choice, Multiplexed};
use super::pool::Pool;
use super::resting::{Entry, Position, Resting, Rests};
use crate::exchange::OriginConn;
use crate::h2::client::Conn;
use crate::metrics::{ConnectionCounts, Ending};
use crate::sync::discards::{Discards, Slice};
use crate::sync::slices::{AT_ONCE, Pauses};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Bound;
use std::rc::{Rc, Weak};
use weir_net::io::Core;
use weir_net::io::runtime::Runtime;
use weir_plan::Origin;

/// A target as one loop sees it.
pub(crate) struct Target {
    own: Weak<Target>,
    resting: Rc<BothResting>,
    /// Its places among the targets with idle connections: of HTTP/1.1, of HTTP/2.
    entries: [Entry; 2],
    /// Its identity, interned: the same on all threads, in every graph.
    pub key: u32,
    /// Its location.
    pub place: Place,
    pool: RefCell<Pool>,
    /// Its HTTP/2 connections, which several requests share.
    pub multiplexed: Multiplexed,
    /// The counters of its connections.
    pub counts: Rc<ConnectionCounts>,
    /// The longest idle times that any of its nodes allows, of HTTP/1.1 and of HTTP/2, ns; `None`: forever.
    idle_timeout_ns: [Cell<Option<u64>>; 2],
    /// Alive while a connection is open on which it chose HTTP/1.1 although both versions were offered.
    h1_chosen: RefCell<Weak<()>>,
    /// Whether a connection is being made that offers both although it is known to choose HTTP/1.1.
    is_asked: Cell<bool>,
    /// Whether no node leads here any more, so that no connection is kept.
    retired: Cell<bool>,
}

/// Changes of few targets between passes over all.
const MOST_SMALL_CHANGES: u32 = 64;

/// The targets of a loop.
#[derive(Default)]
pub(crate) struct Targets {
    by_key: RefCell<BTreeMap<u32, Rc<Target>>>,
    /// Those with idle connections.
    resting: Rc<BothResting>,
    /// Where connections are closed that end together, and targets freed that no graph has any more.
    discards: Rc<Discards>,
    /// The number of the last pass over all of them, and whether it goes on.
    pass: Cell<u64>,
    is_passing: Cell<bool>,
    /// Changes of few targets since then.
    small_changes: Cell<u32>,
    /// The identities of the retired ones that are here.
    retired: RefCell<BTreeSet<u32>>,
    /// Targets that were visited between two polls of the sockets.
    pub visits: Visits,
}

/// The targets with idle connections of each kind. They are apart since they are kept for different times, and the one
/// that ends first is found at once only among equals.
#[derive(Default)]
struct BothResting {
    h1: Resting<Target, false>,
    h2: Resting<Target, true>,
}

/// Targets that a loop visits before it polls the sockets again. In tests the most that a turn has had.
#[derive(Default)]
pub(crate) struct Visits {
    #[cfg(test)]
    turn: Cell<(u64, usize)>,
    #[cfg(test)]
    pub most: Cell<usize>,
}

impl Visits {
    /// Counts a visit in this turn.
    #[cfg(test)]
    pub fn count(&self, turn: u64) {
        let (last, visits) = self.turn.get();
        let visits = if last == turn { visits + 1 } else { 1 };
        self.turn.set((turn, visits));
        self.most.set(self.most.get().max(visits));
    }

    #[cfg(not(test))]
    #[inline]
    pub fn count(&self, _: u64) {}
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
                entries: <[Entry; 2]>::default(),
                place: place(),
                pool: RefCell::default(),
                multiplexed: Multiplexed::default(),
                counts: Rc::default(),
                idle_timeout_ns: [Cell::new(Some(0)), Cell::new(Some(0))],
                h1_chosen: RefCell::default(),
                is_asked: Cell::new(false),
                retired: Cell::new(false),
            })
        });
        for (own, is_h2) in target.idle_timeout_ns.iter().zip([false, true]) {
            own.set(own.get().zip(origin.idle_ns(is_h2)).map(|(a, b)| a.max(b)));
        }
        if target.retired.replace(false) {
            self.retired.borrow_mut().remove(&key);
        }
        target.clone()
    }

    /// Retires these targets, to which no way leads any more, and keeps the connections of those to which one leads again.
    /// Returns `false`, and does nothing, where a pass over all is needed: they are too many to be visited at once, an earlier
    /// pass goes on, or it is the 64th change since one. A target that no way ever led to is in neither list.
    pub fn retire_changed(&self, rt: &Runtime, gained: &[u32], lost: &[u32]) -> bool {
        let before = self.small_changes.get();
        if self.is_passing.get() || gained.len() + lost.len() > AT_ONCE || before >= MOST_SMALL_CHANGES {
            return false;
        }
        self.small_changes.set(before + 1);
        let mut closing = Vec::new();
        let targets = self.by_key.borrow();
        for (key, is_reached) in
            gained.iter().map(|key| (key, true)).chain(lost.iter().map(|key| (key, false)))
        {
            if let Some(target) = targets.get(key) {
                self.visits.count(rt.looks());
                self.set_reached(*key, target, is_reached, &mut closing);
            }
        }
        drop(targets);
        self.discards.put(closing, Slice::Connections);
        true
    }

    /// A way leads to a target, or none does any more: then its idle connections are to be closed. It looks at identities alone
    /// where nothing changes: each target is in lines of memory of its own.
    fn set_reached(&self, key: u32, target: &Target, is_reached: bool, closing: &mut Vec<OriginConn>) {
        let mut retired = self.retired.borrow_mut();
        // A pass of an earlier generation may have retired it.
        if is_reached && !retired.is_empty() && retired.remove(&key) {
            target.retired.set(false);
        } else if !is_reached && retired.insert(key) {
            closing.extend(target.retire());
        }
    }

    /// Begins a pass over all targets, and ends the one before; [`Targets::retire_but`] makes it.
    pub fn begin_pass(&self) -> u64 {
        self.pass.set(self.pass.get() + 1);
        self.is_passing.set(true);
        self.small_changes.set(0);
        self.pass.get()
    }

    /// Retires all targets except these, whose identities ascend: their idle connections close, and no further one is
    /// kept. In slices; ends early if another `pass` has begun.
    pub async fn retire_but(&self, core: &Core, pass: u64, reached: &[u32]) {
        let pauses = Pauses::new(core);
        let mut reached = reached.iter().copied().peekable();
        let mut after = None;
        while self.pass.get() == pass {
            let mut closing = Vec::new();
            after = self.visit_some(&core.runtime, after, |key, target| {
                while reached.next_if(|reached| *reached < key).is_some() {}
                self.set_reached(key, target, reached.peek() == Some(&key), &mut closing);
            });
            self.discards.put(closing, Slice::Connections);
            if after.is_none() {
                self.is_passing.set(false);
                return;
            }
            pauses.pause().await;
        }
    }

    /// Visits the targets of one slice, those after this identity. Returns the identity of the last; `None`: there is none.
    fn visit_some(
        &self,
        rt: &Runtime,
        after: Option<u32>,
        mut act: impl FnMut(u32, &Rc<Target>),
    ) -> Option<u32> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let targets = self.by_key.borrow();
        let mut last = None;
        for (key, target) in targets.range((from, Bound::Unbounded)).take(AT_ONCE) {
            self.visits.count(rt.looks());
            act(*key, target);
            last = Some(*key);
        }
        last
    }

    /// Drops the retired targets that no graph and no request has any more, in slices.
    pub async fn forget(&self, core: &Core) {
        let pauses = Pauses::new(core);
        let retired: Vec<u32> = self.retired.borrow().iter().copied().collect();
        for some in retired.chunks(AT_ONCE) {
            let mut gone = Vec::new();
            for key in some {
                self.visits.count(core.runtime.looks());
                gone.extend(self.take_unused(*key));
            }
            self.discards.put(gone, Slice::Memory);
            pauses.pause().await;
        }
    }

    /// Takes a target out if it is still retired and nothing else has it.
    fn take_unused(&self, key: u32) -> Option<Rc<Target>> {
        let (mut targets, mut retired) = (self.by_key.borrow_mut(), self.retired.borrow_mut());
        let is_unused = targets.get(&key).is_none_or(|target| Rc::strong_count(target) == 1);
        if !retired.contains(&key) || !is_unused {
            return None;
        }
        retired.remove(&key);
        targets.remove(&key)
    }

    /// Closes idle connections that were idle for too long, are too old, or were closed by the origin; in slices.
    pub async fn sweep(&self, core: &Core) {
        self.sweep_kind(core, &self.resting.h1).await;
        self.sweep_kind(core, &self.resting.h2).await;
    }

    async fn sweep_kind<const H2: bool>(&self, core: &Core, resting: &Resting<Target, H2>)
    where
        Target: Rests<H2>,
    {
        let begun_ns = core.now();
        let mut after: Option<Position> = None;
        loop {
            let (some, last) = resting.next(after, begun_ns, AT_ONCE);
            let now_ns = core.now();
            let mut closing = Vec::new();
            for target in some {
                self.visits.count(core.runtime.looks());
                closing.extend(target.sweep(now_ns, H2));
                resting.renew(now_ns, &target);
            }
            self.discards.put(closing, Slice::Connections);
            if last.is_none() {
                return;
            }
            after = last;
            core.runtime.next_turn().await;
        }
    }

    /// When the first idle connection has been idle for too long, ns; without such a limit, a time that will not come.
    pub fn idle_due_ns(&self) -> Option<u64> {
        self.resting.h1.due_ns().into_iter().chain(self.resting.h2.due_ns()).min()
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_key.borrow().len()
    }

    /// Closes one idle connection to a target.
    pub fn close_idle(&self, key: u32) {
        if let Some(target) = self.by_key.borrow().get(&key) {
            target.close_idle();
        }
    }

    /// Closes the longest idle connection of all targets; returns whether there was one.
    pub fn close_oldest(&self) -> bool {
        let both = [self.resting.h1.oldest(), self.resting.h2.oldest()];
        let oldest = both.into_iter().flatten().min_by_key(|(since_ns, _)| *since_ns);
        oldest.is_some_and(|(_, target)| target.close_idle())
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
    /// The mark that it chooses HTTP/1.1, if it is known to.
    pub fn h1_chosen(&self) -> Option<Rc<()>> {
        self.h1_chosen.borrow().upgrade()
    }

    /// Marks that it has chosen HTTP/1.1.
    pub fn chooses_h1(&self) -> Rc<()> {
        let chosen = self.h1_chosen().unwrap_or_default();
        *self.h1_chosen.borrow_mut() = Rc::downgrade(&chosen);
        chosen
    }

    /// The right to offer it both versions again although it is known to choose HTTP/1.1; one has it at a time.
    pub(super) fn ask_again(&self) -> Option<Question> {
        let own = self.own.upgrade()?;
        (self.h1_chosen().is_some() && !self.is_asked.replace(true)).then(|| Question(own))
    }

    /// It chooses HTTP/1.1 no more.
    pub fn forget_h1(&self) {
        *self.h1_chosen.borrow_mut() = Weak::new();
    }

    /// Takes an idle connection that may be used.
    pub fn take(&self, now_ns: u64, origin: &Origin, choice: Choice) -> Option<OriginConn> {
        let multiplexed = self.multiplexed.take(now_ns, origin.idle_ns(true), choice);
        multiplexed.or_else(|| self.take_h1(now_ns, origin.idle_ns(false)))
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
            self.resting.h2.add(core.recent(), self, &self.own);
        }
    }

    /// Keeps a connection for the next request, if it leads where it should.
    pub fn put(&self, core: &Core, conn: OriginConn) {
        let leads = self.place.leads(conn.opened_ns(), || conn.peer());
        if leads && !self.retired.get() && !core.is_draining() {
            self.pool.borrow_mut().put(conn, core.recent());
            self.resting.h1.add(core.recent(), self, &self.own);
        } else {
            conn.set_ending(Ending::Spare);
        }
    }

    /// Removes connections of this kind that were idle for too long, are too old, or were closed by the origin.
    fn sweep(&self, now_ns: u64, is_h2: bool) -> Vec<OriginConn> {
        let idle_ns = self.idle_timeout_ns[usize::from(is_h2)].get();
        if is_h2 {
            self.multiplexed.keep_only(|conn| conn.is_usable(now_ns, idle_ns));
            return Vec::new();
        }
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
        self.resting.h1.remove(self);
        self.resting.h2.remove(self);
        self.multiplexed.keep_only(|_| false);
        self.pool.borrow_mut().take_all()
    }
}

/// See [`Target::ask_again`].
pub(super) struct Question(Rc<Target>);

impl Drop for Question {
    fn drop(&mut self) {
        self.0.is_asked.set(false);
    }
}

impl Rests<false> for Target {
    fn key(&self) -> u32 {
        self.key
    }

    fn entry(&self) -> &Entry {
        &self.entries[0]
    }

    fn oldest_ns(&self) -> Option<u64> {
        self.pool.borrow().oldest_ns()
    }

    fn idle_timeout_ns(&self) -> Option<u64> {
        self.idle_timeout_ns[0].get()
    }

    fn is_kept(&self) -> bool {
        self.pool.borrow().len() > 0
    }
}

impl Rests<true> for Target {
    fn key(&self) -> u32 {
        self.key
    }

    fn entry(&self) -> &Entry {
        &self.entries[1]
    }

    fn oldest_ns(&self) -> Option<u64> {
        self.multiplexed.oldest_ns()
    }

    fn idle_timeout_ns(&self) -> Option<u64> {
        self.idle_timeout_ns[1].get()
    }

    fn is_kept(&self) -> bool {
        self.multiplexed.len() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_changes_are_made_without_a_pass_unless_one_goes_on_or_is_due() {
        let (rt, targets) = (Runtime::new().expect("a runtime"), Targets::default());
        let one = |key| targets.get(key, &Origin::new(false), || Place::Unix("origin".into()));
        let all: Vec<Rc<Target>> = (0..1000).map(one).collect();
        let retired = || {
            let retired = all.iter().filter(|target| target.retired.get());
            retired.map(|target| target.key).collect::<Vec<_>>()
        };
        let change = |gained: &[u32], lost: &[u32]| targets.retire_changed(&rt, gained, lost);
        assert!(change(&[], &[3, 7, 5000]));
        assert!(change(&[3], &[9]));
        assert_eq!((retired(), targets.visits.most.get()), (vec![7, 9], 4));
        let many: Vec<u32> = (0..1000).collect();
        assert!(!change(&[], &many), "a request would wait for all of them");
        assert_eq!(retired(), [7, 9]);
        targets.begin_pass();
        assert!(!change(&[7], &[]), "the pass knows nothing of it");
        targets.is_passing.set(false);
        let small = (0..100).take_while(|_| change(&[], &[])).count();
        assert_eq!(small, MOST_SMALL_CHANGES as usize);
    }
}
