//! The way of a request, from which everything drawn for it is keyed (`docs/spec/language.md#way`).
//!
//! - In virtual time: the engine keeps the same in its own tables (`further` is shared). In the proxy: a request
//!   carries it along, and passes it to the server process of a verification.

use crate::draws::purpose;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weir_stats::Key;

/// The way, or the attempts, of what a request begins: derived from `key` and the number of such beginnings since.
pub fn further(key: Key, what: u64, position: u64, turn: u32) -> Key {
    let key = key.with(what).with(position);
    if turn == 0 { key } else { key.with(purpose::VISIT).with(u64::from(turn)) }
}

/// The number of draws at each site so far, by purpose.
type Visits = SmallVec<[(u64, u32); 4]>;

/// The history of a way.
#[derive(Clone, Debug, Default)]
struct WayHistory {
    visits: RefCell<Visits>,
    /// Fan-outs that were left.
    turn: Cell<u32>,
}

/// The way of a request.
#[derive(Clone, Debug)]
pub struct Way {
    /// The key of work; with `work="same"` the same for all attempts.
    work: Key,
    /// The key of choices: the request and its attempts.
    tries: Key,
    /// The retries around the request.
    retries: u32,
    /// The nodes above that have passed it on: balancers, choices, sequences.
    depth: u32,
    /// Shared with everything on the same way; `None`: nothing has happened yet, so that most requests need no
    /// memory for it.
    past: Option<Rc<WayHistory>>,
}

impl Way {
    /// The way of a request before its first node.
    pub fn new(request: Key) -> Way {
        Way { work: request, tries: request, retries: 0, depth: 0, past: None }
    }

    /// The key of the next draw at a site; `own` is that draw's own key, the same for all requests.
    pub fn draw(&mut self, own: Key) -> Key {
        let key = own.with(self.work.bits());
        let mut visits = self.past.get_or_insert_default().visits.borrow_mut();
        let Some((_, again)) = visits.iter_mut().find(|(of, _)| *of == own.bits()) else {
            visits.push((own.bits(), 0));
            return key;
        };
        *again += 1;
        key.with(purpose::VISIT).with(u64::from(*again))
    }

    /// The key of this node's choice.
    pub fn choice(&self, own: Key) -> Key {
        own.with(self.tries.bits())
    }

    /// Notes that a node has passed the request on.
    pub fn goes_on(&mut self) {
        self.depth += 1;
    }

    /// Another user of this way: a draw on one of the two counts for both.
    pub fn shared(&mut self) -> Way {
        self.past.get_or_insert_default();
        self.clone()
    }

    /// Ends what was begun in branches: branches begun later have ways of their own.
    pub fn ends_branches(&mut self) {
        let turn = &self.past.get_or_insert_default().turn;
        turn.set(turn.get() + 1);
    }

    /// The way inside a `retry`, in the attempt with this number (from 1): a way of its own unless attempts have
    /// the `same` work.
    pub fn attempt(&self, number: u32, same: bool) -> Way {
        let retries = self.retries + 1;
        if number <= 1 {
            return Way { retries, past: self.copied(), ..*self };
        }
        let position = u64::from(retries) << 32 | u64::from(number);
        let tries = further(self.tries, purpose::ATTEMPT, position, self.turn());
        if same {
            return Way { tries, retries, past: self.copied(), ..*self };
        }
        let work = further(self.work, purpose::ATTEMPT, position, self.turn());
        Way { work, tries, retries, past: None, ..*self }
    }

    /// The way of an attempt of a `hedge`, by its number from 0.
    pub fn hedged(&self, number: u32) -> Way {
        if number == 0 { Way { past: self.copied(), ..*self } } else { self.part(purpose::HEDGE, number) }
    }

    /// The way of a branch of a `fanout`.
    pub fn branch(&self, number: u32) -> Way {
        self.part(purpose::BRANCH, number)
    }

    fn part(&self, what: u64, number: u32) -> Way {
        let position = u64::from(self.depth) << 32 | u64::from(number);
        let work = further(self.work, what, position, self.turn());
        let tries = further(self.tries, what, position, self.turn());
        Way { work, tries, past: None, ..*self }
    }

    fn turn(&self) -> u32 {
        self.past.as_ref().map_or(0, |past| past.turn.get())
    }

    /// The same past, without a shared future.
    fn copied(&self) -> Option<Rc<WayHistory>> {
        self.past.as_ref().map(|past| Rc::new((**past).clone()))
    }

    /// As words of hexadecimal digits, for another process.
    pub fn words(&self) -> String {
        let (work, tries) = (self.work.bits(), self.tries.bits());
        let mut words =
            format!("{work:016x} {tries:016x} {:x} {:x} {:x}", self.retries, self.depth, self.turn());
        for (of, again) in self.past.iter().flat_map(|past| past.visits.borrow().clone()) {
            words += &format!(" {of:016x} {again:x}");
        }
        words
    }

    /// From such words; `None`: they are malformed.
    pub fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Way> {
        let mut number = || u64::from_str_radix(words.next()?, 16).ok();
        let mut key = || number().map(Key::from_bits);
        let (work, tries) = (key()?, key()?);
        let mut small = || number().and_then(|n| u32::try_from(n).ok());
        let (retries, depth, turn) = (small()?, small()?, small()?);
        let mut visits = Visits::new();
        while let Some(of) = number() {
            visits.push((of, number().and_then(|n| u32::try_from(n).ok())?));
        }
        let past = (turn > 0 || !visits.is_empty())
            .then(|| Rc::new(WayHistory { visits: RefCell::new(visits), turn: Cell::new(turn) }));
        Some(Way { work, tries, retries, depth, past })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(way: &mut Way) -> [Key; 2] {
        [way.draw(Key::new(7)), way.draw(Key::new(7))]
    }

    #[test]
    fn a_place_draws_something_else_each_time() {
        let mut way = Way::new(Key::new(1));
        let [first, second] = draws(&mut way);
        assert_ne!(first, second);
        assert_eq!(first, Key::new(7).with(Key::new(1).bits()));
        let mut inner = way.shared();
        assert_ne!(inner.draw(Key::new(7)), way.draw(Key::new(7)), "both go on on the same way");
    }

    #[test]
    fn attempts_bring_the_same_work_or_other() {
        for same in [true, false] {
            let mut way = Way::new(Key::new(1));
            way.draw(Key::new(7));
            let mut first = way.attempt(1, same);
            let mut second = way.attempt(2, same);
            assert_eq!(draws(&mut first) == draws(&mut second), same);
            assert_ne!(first.choice(Key::new(2)), second.choice(Key::new(2)), "picks are drawn afresh");
            assert_ne!(way.attempt(2, same).choice(Key::new(2)), way.attempt(3, same).choice(Key::new(2)));
        }
    }

    #[test]
    fn a_way_goes_to_another_process() {
        let mut way = Way::new(Key::new(3)).attempt(2, false);
        way.goes_on();
        draws(&mut way);
        let mut there = Way::read(&mut way.words().split(' ')).unwrap();
        assert_eq!(draws(&mut there), draws(&mut way));
        assert_eq!(there.hedged(1).choice(Key::new(9)), way.hedged(1).choice(Key::new(9)));
        for wrong in ["", "12", "zz", "1 2 3 4 5 6", "1 2 3 4 fffffffff"] {
            assert!(Way::read(&mut wrong.split(' ')).is_none(), "{wrong}");
        }
    }
}
