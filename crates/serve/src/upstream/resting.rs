//! The targets of a loop that have idle connections of one kind (HTTP/1.1, HTTP/2), in the order of how long these have been idle: the longest idle
//! connection, and the time when the first has been idle for too long, are found without looking at all of them.
//!
//! A target is entered once, with a time at or before that of its oldest idle connection. A request does not touch its
//! entry: the entry is put right when the target comes up, and once a second by [`Resting::renew`].

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::{Rc, Weak};

/// A target as it is entered, with its connections of HTTP/2 (`H2`) or of HTTP/1.1.
pub(super) trait Rests<const H2: bool> {
    /// Its identity.
    fn key(&self) -> u32;

    /// Where its entry is.
    fn entry(&self) -> &Entry;

    /// When its longest idle connection became idle, ns.
    fn oldest_ns(&self) -> Option<u64>;

    /// How long its connections may be idle, ns; `None`: forever.
    fn idle_timeout_ns(&self) -> Option<u64>;

    /// Whether it has any connection that may become idle.
    fn is_kept(&self) -> bool;
}

/// The place of a target among the others: the time under which it is entered, ns; `None`: it is not.
#[derive(Default)]
pub(super) struct Entry(Cell<Option<u64>>);

/// A position: time and identity.
pub(super) type Position = (u64, u32);

/// The targets.
pub(super) struct Resting<T, const H2: bool> {
    entries: RefCell<BTreeMap<Position, Weak<T>>>,
    /// No target lets a connection be idle for less, ns.
    least_timeout_ns: Cell<u64>,
}

impl<T, const H2: bool> Default for Resting<T, H2> {
    fn default() -> Resting<T, H2> {
        Resting { entries: RefCell::default(), least_timeout_ns: Cell::new(u64::MAX) }
    }
}

impl<T: Rests<H2>, const H2: bool> Resting<T, H2> {
    /// Enters a target whose oldest connection did not become idle before this time, unless it is entered. Most often
    /// it is.
    #[inline]
    pub fn add(&self, since_ns: u64, target: &T, own: &Weak<T>) {
        if target.entry().0.get().is_none() {
            self.enter(since_ns, target, own.clone());
        }
    }

    fn enter(&self, since_ns: u64, target: &T, own: Weak<T>) {
        target.entry().0.set(Some(since_ns));
        let timeout_ns = target.idle_timeout_ns().unwrap_or(u64::MAX);
        self.least_timeout_ns.set(self.least_timeout_ns.get().min(timeout_ns));
        self.entries.borrow_mut().insert((since_ns, target.key()), own);
    }

    /// Removes a target.
    pub fn remove(&self, target: &T) {
        if let Some(since_ns) = target.entry().0.take() {
            self.entries.borrow_mut().remove(&(since_ns, target.key()));
        }
    }

    /// Puts the entry of a target right; it ends if no connection is left. What is in use now became idle at no time
    /// before this one.
    pub fn renew(&self, now_ns: u64, target: &Rc<T>) {
        let since_ns = target.oldest_ns().or(target.is_kept().then_some(now_ns));
        if target.entry().0.get() == since_ns {
            return;
        }
        self.remove(target);
        if let Some(since_ns) = since_ns {
            self.enter(since_ns, target, Rc::downgrade(target));
        }
    }

    /// The target with the longest idle connection, which became idle then, ns.
    pub fn oldest(&self) -> Option<(u64, Rc<T>)> {
        // Targets whose connections are all in use.
        let mut busy = Vec::new();
        let oldest = loop {
            let first = self.entries.borrow_mut().pop_first();
            let Some(((entered_ns, _), own)) = first else { break None };
            let Some(target) = own.upgrade() else { continue };
            target.entry().0.set(None);
            match target.oldest_ns() {
                Some(since_ns) => {
                    self.enter(since_ns, &target, own);
                    if since_ns <= entered_ns {
                        break Some((since_ns, target));
                    }
                }
                None if target.is_kept() => busy.push((entered_ns, target)),
                None => {}
            }
        };
        busy.iter().for_each(|(since_ns, target)| self.enter(*since_ns, target, Rc::downgrade(target)));
        oldest
    }

    /// The next targets, at most `most`, entered after this position and not after `until_ns`; and the last position.
    /// Those that are gone are removed.
    pub fn next(
        &self,
        after: Option<Position>,
        until_ns: u64,
        most: usize,
    ) -> (Vec<Rc<T>>, Option<Position>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut entries = self.entries.borrow_mut();
        let (mut next, mut gone, mut last) = (Vec::new(), Vec::new(), None);
        for (position, own) in entries.range((from, Bound::Included((until_ns, u32::MAX)))).take(most) {
            last = Some(*position);
            match own.upgrade() {
                Some(target) => next.push(target),
                None => gone.push(*position),
            }
        }
        gone.iter().for_each(|position| drop(entries.remove(position)));
        (next, last)
    }

    /// When the first idle connection has been idle for too long, ns; without such a limit, a time that will not come.
    pub fn due_ns(&self) -> Option<u64> {
        let least_ns = self.least_timeout_ns.get();
        let mut due_ns: Option<u64> = None;
        for ((since_ns, _), own) in &*self.entries.borrow() {
            if due_ns.is_some_and(|due_ns| since_ns.saturating_add(least_ns) >= due_ns) {
                break;
            }
            let Some(target) = own.upgrade() else { continue };
            let Some(oldest_ns) = target.oldest_ns() else { continue };
            let at_ns = oldest_ns.saturating_add(target.idle_timeout_ns().unwrap_or(u64::MAX));
            due_ns = Some(due_ns.map_or(at_ns, |due_ns| due_ns.min(at_ns)));
        }
        due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: u64 = 60_000_000_000;

    /// A target that counts how often it is looked at.
    struct Fake {
        key: u32,
        entry: Entry,
        idle_ns: Cell<Option<u64>>,
        is_kept: Cell<bool>,
        looks: Rc<Cell<u32>>,
    }

    impl Rests<false> for Fake {
        fn key(&self) -> u32 {
            self.key
        }

        fn entry(&self) -> &Entry {
            &self.entry
        }

        fn oldest_ns(&self) -> Option<u64> {
            self.looks.set(self.looks.get() + 1);
            self.idle_ns.get()
        }

        fn idle_timeout_ns(&self) -> Option<u64> {
            Some(MINUTE_NS)
        }

        fn is_kept(&self) -> bool {
            self.is_kept.get()
        }
    }

    struct Site {
        resting: Resting<Fake, false>,
        targets: Vec<Rc<Fake>>,
        looks: Rc<Cell<u32>>,
    }

    /// This number of targets, the i-th with a connection that is idle since i ns.
    fn site(count: u32) -> Site {
        let (resting, looks) = (Resting::default(), Rc::<Cell<u32>>::default());
        let fake = |key: u32| {
            let (idle_ns, is_kept) = (Cell::new(Some(key.into())), Cell::new(true));
            Rc::new(Fake { key, entry: Entry::default(), idle_ns, is_kept, looks: looks.clone() })
        };
        let targets: Vec<_> = (0..count).map(fake).collect();
        for target in &targets {
            resting.add(target.key.into(), &**target, &Rc::downgrade(target));
        }
        Site { resting, targets, looks }
    }

    /// A loop asks for the time before each rest, and for the oldest at each new connection once descriptors are short.
    #[test]
    fn the_first_is_found_without_a_look_at_the_others() {
        let site = site(10_000);
        assert_eq!(site.resting.due_ns(), Some(MINUTE_NS));
        assert_eq!(site.resting.oldest().map(|(_, target)| target.key), Some(0));
        // What came back later is entered under its old time until it comes up.
        site.targets[0].idle_ns.set(Some(20_000));
        assert_eq!(site.resting.oldest().map(|(_, target)| target.key), Some(1));
        assert_eq!(site.resting.due_ns(), Some(MINUTE_NS + 1));
        assert!(site.looks.get() <= 8, "{} looks", site.looks.get());
    }

    #[test]
    fn what_is_removed_or_gone_is_not_found() {
        let mut site = site(4);
        site.resting.remove(&site.targets[0]);
        site.targets.remove(1);
        // In use: it may become idle again.
        site.targets[1].idle_ns.set(None);
        assert_eq!(site.resting.oldest().map(|(_, target)| target.key), Some(3));
        site.targets[2].idle_ns.set(None);
        site.targets[2].is_kept.set(false);
        assert!(site.resting.oldest().is_none() && site.resting.due_ns().is_none());
        site.targets[1].idle_ns.set(Some(7));
        assert_eq!(site.resting.due_ns(), Some(MINUTE_NS + 7));
    }

    /// A pass visits each once, a slice at a time, although it enters them anew.
    #[test]
    fn a_pass_in_slices_ends() {
        let site = site(1_000);
        let (mut after, mut visited) = (None, 0);
        loop {
            let (some, last) = site.resting.next(after, 5_000, 64);
            let Some(last) = last else { break };
            assert!(some.len() <= 64);
            for target in &some {
                target.idle_ns.set(Some(9_000));
                site.resting.renew(9_000, target);
            }
            (after, visited) = (Some(last), visited + some.len());
        }
        assert_eq!(visited, 1_000);
        assert_eq!(site.resting.due_ns(), Some(MINUTE_NS + 9_000));
    }
}
