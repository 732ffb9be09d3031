//! The data kept of the requests of one replication while it runs.

use super::history::{HistoryStore, Selection};
use super::series::Samples;
use super::typical::Sums;
use crate::code::Code;
use crate::code::{MemberId, StageId};
use weir_policy::history::StageKind;
use weir_policy::{Outcome, TargetId};

/// A request's time at a stage, or (of no length) the answer that it got there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StageTime {
    pub stage: StageId,
    pub member: MemberId,
    pub what: StageKind,
    pub from: u64,
    pub to: u64,
    /// Attempts that had begun by then.
    pub attempt: u32,
    pub branch: u32,
    /// The innermost target that it had been sent to: its number in [`RecordedRequest::tries`], from 1.
    pub tried: u32,
    /// The answer.
    pub said: Option<Outcome>,
}

impl StageTime {
    pub fn new(stage: StageId, member: MemberId, what: StageKind, from: u64, to: u64) -> StageTime {
        StageTime { stage, member, what, from, to, attempt: 1, branch: 0, tried: 0, said: None }
    }

    pub fn said(self, outcome: Outcome) -> StageTime {
        StageTime { said: Some(outcome), ..self }
    }
}

/// A target that a balancer sent a request to: the balancer's place, and what came back, if anything did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Try {
    pub stage: StageId,
    pub member: MemberId,
    pub target: TargetId,
    pub outcome: Option<Outcome>,
    /// The attempt that encloses it.
    pub outer: u32,
}

/// A request that is recorded.
#[derive(Debug, Default)]
pub(crate) struct RecordedRequest {
    pub request: u64,
    pub arrived: u64,
    pub selected: bool,
    /// `None`: it will never be answered.
    pub latency: Option<u64>,
    pub outcome: Outcome,
    /// Each with whether it is part of the latency.
    pub stays: Vec<(StageTime, bool)>,
    pub tries: Vec<Try>,
}

/// What is recorded of a replication.
pub(crate) struct Tracks {
    pub kept: Option<HistoryStore>,
    pub sums: Option<Sums>,
    pub series: Option<Samples>,
}

impl Tracks {
    pub fn new(code: &Code, selection: Option<(&Selection, u64, u32)>, explain: bool) -> Tracks {
        Tracks {
            kept: selection
                .map(|(selection, seed, replication)| HistoryStore::new(selection, seed, replication)),
            sums: explain.then(|| Sums::new(code)),
            series: explain.then(Samples::default),
        }
    }

    /// Whether to record a request.
    pub fn wants(&self, request: u64, selected: bool) -> bool {
        self.sums.is_some() && selected
            || self.kept.as_ref().is_some_and(|kept| kept.may_be(request, selected))
    }

    /// A selected request was answered, so which stages count is known.
    pub fn ended(&mut self, latency: u64, noted: &RecordedRequest) {
        if let Some(sums) = &mut self.sums {
            sums.add(latency, noted);
        }
    }

    /// A request and everything that it left behind have ended.
    pub fn done(&mut self, noted: RecordedRequest) {
        if let Some(kept) = &mut self.kept {
            kept.take_in(noted);
        }
    }
}
