//! What a request's way so far means for the nodes behind: draws, exclusions, edits, and what it stands inside of.

use crate::exchange::abort::Cut;
use crate::nodes::NodeId;
use crate::nodes::faulty::Process;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weir_http1::Edits;
use weir_policy::config::{Exclude, Work};
use weir_policy::retry::Tried;
use weir_stats::Key;

/// What is drawn at a place; part of a draw's key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Work = 1,
    Out,
    Back,
    LossOut,
    LossBack,
    Failure,
}

/// The attempts of a `hedge` that are open: number, balancer, target.
pub(crate) type Open = Rc<RefCell<Vec<(u32, NodeId, u32)>>>;

/// Cloned where ways part.
#[derive(Clone)]
pub(crate) struct Way {
    /// What choices on this way are drawn by.
    pub draw: Key,
    /// What work on this way is drawn by: with `work="same"` the same for all attempts.
    pub work: Key,
    /// Places and purposes that have drawn on it.
    visits: SmallVec<[u32; 4]>,
    /// Which targets were tried, with the rule of the `retry` around.
    pub tried: Option<(Exclude, Rc<RefCell<Tried>>)>,
    /// The attempts of the `hedge` around, and the number of this one.
    pub open: Option<(Open, u32)>,
    /// The targets that it goes by.
    pub cut: Cut,
    /// Changes of the request's head by `rewrite`.
    pub edits: Option<Rc<Edits>>,
    /// What work behind is multiplied by (`warmup`, `faulty` in mode `slow`).
    pub factor: f64,
    /// Whether no retry or hedge around has begun a further attempt: only such earn budget.
    pub first: bool,
    /// Bytes of the request's body that are kept for further attempts.
    pub keep: usize,
    /// A health check: what it costs a server in place of its work, ns.
    pub check: Option<u64>,
    /// The process that dies in a crash, around here.
    pub process: Option<Rc<Process>>,
    /// What the `queue` around, whose request goes on when its client has gone, wants to know.
    pub afar: Option<Rc<Afar>>,
    /// What it is told of this way.
    sent: Option<Rc<Sent>>,
}

/// How far one attempt is at its origin.
#[derive(Default)]
struct Sent {
    now: Cell<Sending>,
    /// Whether it is over: it has a head, or has failed.
    over: Cell<bool>,
}

/// An attempt that is open; dropped, it was cancelled.
pub(crate) struct Sender(Rc<Sent>);

impl Sender {
    /// It is over. Where there is an answer what was sent counts on, until there is a further attempt.
    pub fn ends(self, answered: bool) {
        self.0.over.set(true);
        if !answered {
            self.0.now.set(Sending::Nowhere);
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.0.over.replace(true) {
            self.0.now.set(Sending::Nowhere);
        }
    }
}

/// How far a request is that may go on without its client.
#[derive(Default)]
pub(crate) struct Afar {
    /// Its attempts: several may be open at once.
    attempts: RefCell<SmallVec<[Rc<Sent>; 2]>>,
    /// Nobody waits for the answer any more: the client's connection is not ours to write to.
    pub unwanted: Cell<bool>,
    /// The same of another such node around.
    outer: Option<Rc<Afar>>,
}

impl Afar {
    /// Of a node inside of another such one.
    pub fn inside(outer: Option<Rc<Afar>>) -> Afar {
        Afar { outer, ..Afar::default() }
    }

    /// One more attempt; those that are over count no longer.
    fn begins(&self, sent: &Rc<Sent>) {
        let mut attempts = self.attempts.borrow_mut();
        attempts.retain(|one| !one.over.get());
        attempts.push(sent.clone());
        if let Some(outer) = &self.outer {
            outer.begins(sent);
        }
    }

    /// Whether an origin is being sent the request, and whether one was sent all of it.
    pub fn sending(&self) -> Sending {
        self.attempts.borrow().iter().map(|one| one.now.get()).max().unwrap_or_default()
    }

    /// Whether somebody still waits for the answer.
    fn is_wanted(&self) -> bool {
        !self.unwanted.get() && self.outer.as_ref().is_none_or(|outer| outer.is_wanted())
    }
}

/// How far the sending of a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sending {
    /// No origin is involved.
    #[default]
    Nowhere,
    /// A part of it may be under way.
    Begun,
    /// All of it was sent.
    Whole,
}

impl Way {
    /// A request's way before its first node.
    pub fn new(draw: Key) -> Way {
        Way {
            draw,
            work: draw,
            visits: SmallVec::new(),
            tried: None,
            open: None,
            cut: Cut::default(),
            edits: None,
            factor: 1.0,
            first: true,
            keep: 0,
            check: None,
            process: None,
            afar: None,
            sent: None,
        }
    }

    /// The same for another branch: other draws.
    pub fn branch(&self, number: u32) -> Way {
        let mut way = self.clone();
        let part = u64::from(number) + 1;
        (way.draw, way.work) = (self.draw.with(part), self.work.with(part));
        way.visits.clear();
        way
    }

    /// The same for a further attempt, which brings the same work or other.
    pub fn attempt(&self, number: u32, work: Work) -> Way {
        match work {
            Work::Redraw => self.branch(number),
            Work::Same => Way { draw: self.draw.with(u64::from(number) + 1), ..self.clone() },
        }
    }

    /// What is drawn at a place now: what it was before, how often it was there on this way, and what for.
    pub fn draw_at(&mut self, place: u32, purpose: Purpose) -> Key {
        let visit = place << 3 | purpose as u32;
        let before = self.visits.iter().filter(|v| **v == visit).count() as u64;
        self.visits.push(visit);
        let key = self.work.with(purpose as u64).with(u64::from(place));
        if before == 0 { key } else { key.with(before) }
    }

    /// So long work takes behind what has warmed up or is slow.
    pub fn scaled(&self, ns: u64) -> u64 {
        if self.factor == 1.0 { ns } else { (ns as f64 * self.factor + 0.5) as u64 }
    }

    /// An attempt at an origin begins on this way; `None`: nobody wants to know how far it is.
    pub fn begins(&mut self) -> Option<Sender> {
        let afar = self.afar.as_ref()?;
        let sent = Rc::new(Sent::default());
        afar.begins(&sent);
        self.sent = Some(sent.clone());
        Some(Sender(sent))
    }

    /// How far the sending is, for whoever asks.
    pub fn sending(&self, now: Sending) {
        if let Some(sent) = &self.sent {
            sent.now.set(now);
        }
    }

    /// Whether the client still waits for what comes on this way.
    pub fn is_wanted(&self) -> bool {
        self.afar.as_ref().is_none_or(|afar| afar.is_wanted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_attempts_are_open_at_once() {
        let outer = Rc::new(Afar::default());
        let afar = Rc::new(Afar::inside(Some(outer.clone())));
        let mut first = Way { afar: Some(afar.clone()), ..Way::new(Key::new(1)) };
        let mut second = first.branch(1);
        let one = first.begins().unwrap();
        first.sending(Sending::Whole);
        let two = second.begins().unwrap();
        second.sending(Sending::Begun);
        assert_eq!((afar.sending(), outer.sending()), (Sending::Whole, Sending::Whole));
        drop(one);
        assert_eq!((afar.sending(), outer.sending()), (Sending::Begun, Sending::Begun));
        second.sending(Sending::Whole);
        two.ends(true);
        assert_eq!(afar.sending(), Sending::Whole, "its answer is on its way");
        let three = second.begins().unwrap();
        second.sending(Sending::Begun);
        assert_eq!(afar.sending(), Sending::Begun, "that answer was not wanted");
        three.ends(false);
        assert_eq!(afar.sending(), Sending::Nowhere);
    }
}
