//! What one replication keeps of its requests while it runs.

use super::history::{Kept, Selection};
use super::series::Looks;
use super::typical::Sums;
use crate::code::Code;
use weir_policy::Outcome;
use weir_policy::history::What;

/// Time of a request at a stage, or (of no length) what it was answered there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stay {
    pub stage: u32,
    pub member: u32,
    pub what: What,
    pub from: u64,
    pub to: u64,
    /// Attempts that had begun by then.
    pub attempt: u32,
    pub branch: u32,
    /// The innermost target that it had been sent to: number in [`Noted::tries`], from 1.
    pub tried: u32,
    /// What was answered.
    pub said: Option<Outcome>,
}

impl Stay {
    pub fn new(stage: u32, member: u32, what: What, from: u64, to: u64) -> Stay {
        Stay { stage, member, what, from, to, attempt: 1, branch: 0, tried: 0, said: None }
    }

    pub fn said(self, outcome: Outcome) -> Stay {
        Stay { said: Some(outcome), ..self }
    }
}

/// A target that a request was sent to, by a balancer: where that stands, and what came back, if anything did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Try {
    pub stage: u32,
    pub member: u32,
    pub target: u32,
    pub outcome: Option<Outcome>,
    /// The one within which it is.
    pub outer: u32,
}

/// A request that is noted.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub request: u64,
    pub arrived: u64,
    pub selected: bool,
    /// `None`: nothing will ever answer it.
    pub latency: Option<u64>,
    pub outcome: Outcome,
    /// With whether they are part of the latency.
    pub stays: Vec<(Stay, bool)>,
    pub tries: Vec<Try>,
}

/// What is wanted of a replication.
pub(crate) struct Tracks {
    pub kept: Option<Kept>,
    pub sums: Option<Sums>,
    pub series: Option<Looks>,
}

impl Tracks {
    pub fn new(code: &Code, selection: Option<(&Selection, u64, u32)>, explain: bool) -> Tracks {
        Tracks {
            kept: selection.map(|(selection, seed, replication)| Kept::new(selection, seed, replication)),
            sums: explain.then(|| Sums::new(code)),
            series: explain.then(Looks::default),
        }
    }

    /// Whether a request is to be noted.
    pub fn wants(&self, request: u64, selected: bool) -> bool {
        self.sums.is_some() && selected
            || self.kept.as_ref().is_some_and(|kept| kept.may_be(request, selected))
    }

    /// A selected request has its answer: what counts is known.
    pub fn ended(&mut self, latency: u64, noted: &Noted) {
        if let Some(sums) = &mut self.sums {
            sums.add(latency, noted);
        }
    }

    /// A request is done with, and everything that it left behind.
    pub fn done(&mut self, noted: Noted) {
        if let Some(kept) = &mut self.kept {
            kept.take_in(noted);
        }
    }
}
