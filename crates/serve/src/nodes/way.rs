//! What a request's way so far means for the nodes behind: draws, exclusions, edits, and what it stands inside of.

use super::NodeId;
use super::faulty::Process;
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
}

/// How far a request is that may go on without its client.
#[derive(Default)]
pub(crate) struct Afar {
    /// Whether an origin is being sent the request, and whether it was sent whole.
    pub sending: Cell<Sending>,
    /// Nobody waits for the answer any more: the client's connection is not ours to write to.
    pub unwanted: Cell<bool>,
    /// The same of another such node around.
    pub outer: Option<Rc<Afar>>,
}

impl Afar {
    /// The sending has come so far.
    fn tell(&self, now: Sending) {
        self.sending.set(now);
        if let Some(outer) = &self.outer {
            outer.tell(now);
        }
    }

    /// Whether somebody still waits for the answer.
    fn is_wanted(&self) -> bool {
        !self.unwanted.get() && self.outer.as_ref().is_none_or(|outer| outer.is_wanted())
    }
}

/// How far the sending of a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
            edits: None,
            factor: 1.0,
            first: true,
            keep: 0,
            check: None,
            process: None,
            afar: None,
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

    /// How far the sending is, for whoever asks.
    pub fn sending(&self, now: Sending) {
        if let Some(afar) = &self.afar {
            afar.tell(now);
        }
    }

    /// Whether the client still waits for what comes on this way.
    pub fn is_wanted(&self) -> bool {
        self.afar.as_ref().is_none_or(|afar| afar.is_wanted())
    }
}
