//! Hedging: a further attempt starts when the last has not answered in time; the first good answer wins.
//!
//! - Idea: latency is mostly bad luck; a second try after the 95th percentile costs 5 % more requests and squares the
//!   tail.
//! - State per request: attempts begun, which are open, when the next may start. Cost: O(1).
//! - Formula: each attempt starts `after` the last, or at once when one failed, up to `attempts`; the first `ok` wins
//!   and the rest is cancelled; when all have failed the last error is the answer. If the share q of answers is later
//!   than `after`, both are with q²; attempts per request 1 + q.
//! - Choices: idempotent requests only, by default; each further attempt is charged to the budget by the caller. An
//!   attempt that may not begin is not requested again. An error after which a retry would be unsafe starts no
//!   attempt either.
//! - Pathologies: under overload every request is late, and hedging doubles the load: give it a budget.
//! - Source: Dean, Barroso, "The Tail at Scale" (2013). In the language:
//!   `hedge(after, node, attempts=2, methods=, budget=)`.

use crate::attempts::retry::Methods;
use crate::attempts::retry::may_retry;
use crate::{Kind, Outcome};
use serde::{Deserialize, Serialize};

/// `hedge(after, node, ...)`, without the node and the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hedge {
    /// The delay after the last attempt before the next one starts, ns.
    pub after_ns: u64,
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// Which methods are hedged.
    pub methods: Methods,
}

/// The next step of a hedged request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Wait for the open attempts.
    Wait,
    /// Start another attempt now, if the budget allows it: then call [`Hedging::started`], else [`Hedging::refused`].
    Start,
    /// This is the answer: cancel the open attempts.
    Answer(Outcome),
}

/// The attempts of one request.
#[derive(Clone, Copy, Debug)]
pub struct Hedging {
    after_ns: u64,
    /// Attempts that may still begin.
    left: u32,
    open: u32,
    next: u64,
    idempotent: bool,
    methods: Methods,
    last: Option<Kind>,
}

impl Hedging {
    /// A request whose first attempt begins now.
    pub fn new(config: &Hedge, now_ns: u64, idempotent: bool) -> Hedging {
        let hedged = idempotent || config.methods == Methods::Any;
        Hedging {
            after_ns: config.after_ns,
            left: if hedged { config.attempts.saturating_sub(1) } else { 0 },
            open: 1,
            next: now_ns.saturating_add(config.after_ns),
            idempotent,
            methods: config.methods,
            last: None,
        }
    }

    /// When to call [`Hedging::due`], if no attempt comes back before.
    pub fn next_deadline(&self) -> Option<u64> {
        (self.left > 0).then_some(self.next)
    }

    /// Attempts under way.
    pub fn open(&self) -> u32 {
        self.open
    }

    /// The time for a further attempt has come.
    pub fn due(&self, now_ns: u64) -> Step {
        if self.left > 0 && now_ns >= self.next { Step::Start } else { Step::Wait }
    }

    /// A further attempt has begun.
    pub fn started(&mut self, now_ns: u64) {
        self.left -= u32::from(self.left > 0);
        self.open += 1;
        self.next = now_ns.saturating_add(self.after_ns);
    }

    /// A further attempt may not begin (no budget): there will be none.
    pub fn refused(&mut self) -> Step {
        self.left = 0;
        self.settle()
    }

    /// An attempt has come back.
    pub fn came_back(&mut self, outcome: Outcome) -> Step {
        self.open -= u32::from(self.open > 0);
        let Some(kind) = outcome else { return Step::Answer(None) };
        self.last = Some(kind);
        if self.left > 0 && may_retry(kind, self.idempotent, self.methods) {
            return Step::Start;
        }
        self.settle()
    }

    fn settle(&mut self) -> Step {
        match self.last {
            Some(kind) if self.open == 0 => {
                self.left = 0;
                Step::Answer(Some(kind))
            }
            _ => Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Outcome = Some(Kind::Reset);

    fn hedging(attempts: u32, idempotent: bool) -> Hedging {
        Hedging::new(&Hedge { after_ns: 20, attempts, methods: Methods::Idempotent }, 100, idempotent)
    }

    #[test]
    fn attempts_follow_each_other_and_the_first_good_one_wins() {
        let mut h = hedging(3, true);
        assert_eq!((h.next_deadline(), h.due(119), h.due(120)), (Some(120), Step::Wait, Step::Start));
        h.started(120);
        assert_eq!((h.next_deadline(), h.due(139), h.due(140)), (Some(140), Step::Wait, Step::Start));
        h.started(140);
        assert_eq!((h.next_deadline(), h.open()), (None, 3));
        assert_eq!(h.came_back(None), Step::Answer(None));
    }

    #[test]
    fn a_failure_starts_the_next_at_once_and_the_last_error_is_the_answer() {
        let mut h = hedging(3, true);
        assert_eq!(h.came_back(BAD), Step::Start);
        h.started(105);
        assert_eq!(h.next_deadline(), Some(125));
        h.started(125);
        assert_eq!(h.came_back(BAD), Step::Wait);
        assert_eq!(h.came_back(Some(Kind::Timeout)), Step::Answer(Some(Kind::Timeout)));
    }

    #[test]
    fn what_may_not_be_repeated_is_not_hedged() {
        let mut post = hedging(2, false);
        assert_eq!((post.next_deadline(), post.due(500)), (None, Step::Wait));
        assert_eq!(post.came_back(BAD), Step::Answer(BAD));
        let any = Hedge { after_ns: 20, attempts: 2, methods: Methods::Any };
        assert_eq!(Hedging::new(&any, 0, false).due(20), Step::Start);
        assert_eq!(hedging(2, true).came_back(Some(Kind::BadRequest)), Step::Answer(Some(Kind::BadRequest)));
    }

    #[test]
    fn without_budget_the_open_attempt_is_waited_for() {
        let mut h = hedging(3, true);
        assert_eq!(h.refused(), Step::Wait);
        assert_eq!((h.next_deadline(), h.came_back(BAD)), (None, Step::Answer(BAD)));
        let mut h = hedging(2, true);
        assert_eq!((h.came_back(BAD), h.refused()), (Step::Start, Step::Answer(BAD)));
    }

    /// The acceptance check `hedge`: an attempt takes 10 ms, one of ten 100 ms, hedged after 20: 10, 30 or 100 ms
    /// with shares 0.9, 0.09 and 0.01.
    #[test]
    fn the_tail_is_squared() {
        let mut seen = std::collections::BTreeMap::new();
        for i in 0..100u64 {
            let slow = [i % 10 == 0, i / 10 == 0];
            let mut h = hedging(2, true);
            let mut ends = vec![100 + if slow[0] { 100 } else { 10 }];
            let end = loop {
                let first = *ends.iter().min().unwrap();
                match h.next_deadline().filter(|&at| at < first) {
                    Some(at) => {
                        h.started(at);
                        ends.push(at + if slow[1] { 100 } else { 10 });
                    }
                    None => break first,
                }
            };
            *seen.entry(end - 100).or_insert(0) += 1;
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(10, 90), (30, 9), (100, 1)]);
    }
}
