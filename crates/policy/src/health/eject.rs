//! Passive ejection: failures in a row exclude a target for a while; then one request tries it.
//!
//! - Idea: the outcomes of requests show a target's state without checks, and one request is enough to see that it
//!   has recovered.
//! - Signal: outcomes of requests. State per target: failures in a row, ejections in a row, the end of its ejection.
//! - Cost: O(1) per outcome, O(log n) per ejection.
//! - Formula: `consecutive` failures eject; the k-th ejection in a row lasts min(base · 2^(k−1), max); then a single
//!   request probes: its failure ejects again, its success resets. Never more than `max_percent` of the targets are
//!   out, but one may be, as long as that is not 0.
//! - What counts: [`is_failure`]. Success resets the row; anything else (a full queue, a client that left) is neither.
//! - Choices: outcomes of requests that were sent before an ejection change nothing while it lasts.
//! - Pathologies: a target that fails every other request never has a row.
//! - Source: Finagle failure accrual, nginx `max_fails`. In the language:
//!   `eject(consecutive=5, base=30*s, max=300*s, max_percent=50)`.

use crate::outcome::is_failure;
use crate::{Outcome, TargetId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// `eject(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eject {
    /// Failures in a row that eject.
    pub consecutive: u32,
    /// The length of the first ejection, ns; each in a row is twice as long as the one before.
    pub base_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// At most this share of the targets is out, percent.
    pub max_percent: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    In,
    Out {
        until: u64,
    },
    /// One request may try it.
    HalfOpen,
    /// A request is trying it.
    Probing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    state: State,
    failures: u32,
    /// Ejections in a row.
    ejections: u32,
}

/// What an outcome changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ejected for its row of failures.
    Ejected,
    /// Ejected again: the request that tried it failed.
    ProbeFailed,
    /// Recovered.
    Readmitted,
}

/// The ejections of the targets of one balancer.
#[derive(Clone, Debug)]
pub struct Ejections {
    config: Eject,
    records: Vec<Record>,
    out: u32,
    ends: BinaryHeap<Reverse<(u64, TargetId)>>,
}

impl Ejections {
    /// `n` targets without failures.
    pub fn new(config: Eject, n: u32) -> Ejections {
        Ejections { config, records: vec![Record::default(); n as usize], out: 0, ends: BinaryHeap::new() }
    }

    /// Replaces the arguments; the state of the targets stays.
    pub fn configure(&mut self, config: Eject) {
        self.config = config;
    }

    /// Adds a target, at the index of a removed one or the next; or removes one.
    pub fn forget(&mut self, target: TargetId) {
        let i = target.index();
        if i >= self.records.len() {
            self.records.resize(i + 1, Record::default());
        }
        self.out -= u32::from(self.records[i].state != State::In);
        self.records[i] = Record::default();
    }

    /// Ejected targets, those on probation included.
    pub fn out(&self) -> u32 {
        self.out
    }

    /// Whether the next request to it is its trial.
    pub fn is_half_open(&self, target: TargetId) -> bool {
        self.records.get(target.index()).is_some_and(|r| r.state == State::HalfOpen)
    }

    /// Whether a success of it could change anything.
    pub fn heeds_success(&self, target: TargetId) -> bool {
        self.records.get(target.index()).is_some_and(|r| r.state != State::In || r.failures > 0)
    }

    /// Targets that a request may try.
    pub fn half_open(&self) -> u32 {
        if self.out == 0 {
            0
        } else {
            self.records.iter().filter(|r| r.state == State::HalfOpen).count() as u32
        }
    }

    /// Notes that a request was sent to it; whether that is its trial.
    #[inline]
    pub fn picked(&mut self, target: TargetId) -> bool {
        let record = &mut self.records[target.index()];
        let probe = record.state == State::HalfOpen;
        if probe {
            record.state = State::Probing;
        }
        probe
    }

    /// The trial ended without saying anything about the target: another request may try it.
    pub fn probe_ended(&mut self, target: TargetId) {
        let record = &mut self.records[target.index()];
        if record.state == State::Probing {
            record.state = State::HalfOpen;
        }
    }

    /// Notes the outcome of a request; `probe` if it was the trial. `targets` is the number of targets.
    #[inline]
    pub fn outcome(
        &mut self,
        now_ns: u64,
        target: TargetId,
        probe: bool,
        outcome: Outcome,
        targets: u32,
    ) -> Option<Verdict> {
        let record = &mut self.records[target.index()];
        match (outcome, record.state) {
            (None, State::In) => {
                record.failures = 0;
                None
            }
            (Some(kind), State::In) if is_failure(kind) => {
                record.failures = record.failures.saturating_add(1);
                let enough = record.failures >= self.config.consecutive.max(1);
                (enough && self.has_room(targets))
                    .then(|| self.eject(now_ns, target))
                    .map(|()| Verdict::Ejected)
            }
            (None, State::Probing) if probe => {
                *record = Record::default();
                self.out -= 1;
                Some(Verdict::Readmitted)
            }
            (Some(kind), State::Probing) if probe && is_failure(kind) => {
                self.out -= 1;
                self.eject(now_ns, target);
                Some(Verdict::ProbeFailed)
            }
            (Some(_), State::Probing) if probe => {
                record.state = State::HalfOpen;
                None
            }
            _ => None,
        }
    }

    /// Whether one more of so many targets may go; the first always may, however small its share, as in Envoy.
    fn has_room(&self, targets: u32) -> bool {
        let most = self.config.max_percent;
        (self.out == 0 && most > 0.0) || 100.0 * f64::from(self.out + 1) <= most * f64::from(targets)
    }

    /// The remaining time of a target's ejection, ns (on probation for none), and its number of ejections in a row.
    pub fn known(&self, now_ns: u64, target: TargetId) -> (Option<u64>, u32) {
        let Some(record) = self.records.get(target.index()) else { return (None, 0) };
        let out_for_ns = match record.state {
            State::In => None,
            State::Out { until } => Some(until.saturating_sub(now_ns)),
            State::HalfOpen | State::Probing => Some(0),
        };
        (out_for_ns, record.ejections)
    }

    /// Ejects a target for this time, as found elsewhere.
    pub fn heed(&mut self, now_ns: u64, target: TargetId, out_for_ns: u64, ejections: u32) {
        self.forget(target);
        let until = now_ns.saturating_add(out_for_ns);
        self.records[target.index()] = Record { state: State::Out { until }, failures: 0, ejections };
        self.out += 1;
        self.ends.push(Reverse((until, target)));
    }

    fn eject(&mut self, now_ns: u64, target: TargetId) {
        let record = &mut self.records[target.index()];
        let doubled = u128::from(self.config.base_ns) << record.ejections.min(63);
        let lasts = doubled.min(u128::from(self.config.max_ns)) as u64;
        let until = now_ns.saturating_add(lasts);
        record.state = State::Out { until };
        record.failures = 0;
        record.ejections = record.ejections.saturating_add(1);
        self.out += 1;
        self.ends.push(Reverse((until, target)));
    }

    /// When the next ejection ends.
    pub fn next_deadline(&mut self) -> Option<u64> {
        while let Some(&Reverse((until, target))) = self.ends.peek() {
            if self.records[target.index()].state == (State::Out { until }) {
                return Some(until);
            }
            self.ends.pop();
        }
        None
    }

    /// The next target whose ejection has ended: it is on probation from now on. Call again until `None`.
    pub fn due(&mut self, now_ns: u64) -> Option<TargetId> {
        self.next_deadline().filter(|&until| until <= now_ns)?;
        let Reverse((_, target)) = self.ends.pop()?;
        self.records[target.index()].state = State::HalfOpen;
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use weir_stats::Key;

    const S: u64 = 1_000_000_000;
    const BAD: Outcome = Some(Kind::Status5xx);

    fn ejections(n: u32, max_percent: f64) -> Ejections {
        Ejections::new(Eject { consecutive: 5, base_ns: 30 * S, max_ns: 300 * S, max_percent }, n)
    }

    fn fail(all: &mut Ejections, now_ns: u64, target: TargetId, times: u32, of: u32) -> Option<Verdict> {
        (0..times).filter_map(|_| all.outcome(now_ns, target, false, BAD, of)).last()
    }

    #[test]
    fn five_in_a_row_eject_and_a_success_between_them_saves() {
        let mut all = ejections(2, 100.0);
        assert_eq!(fail(&mut all, 0, TargetId(0), 4, 2), None);
        assert_eq!(all.outcome(0, TargetId(0), false, None, 2), None);
        assert_eq!(fail(&mut all, 0, TargetId(0), 4, 2), None);
        assert_eq!(
            all.outcome(0, TargetId(0), false, Some(Kind::Overloaded), 2),
            None,
            "neither for nor against"
        );
        assert_eq!(fail(&mut all, 0, TargetId(0), 1, 2), Some(Verdict::Ejected));
        assert_eq!((all.out(), all.next_deadline()), (1, Some(30 * S)));
    }

    /// 30, 60, 120, 240, 300, 300 s, each after a failed trial; a successful trial starts anew.
    #[test]
    fn ejections_in_a_row_double_up_to_the_longest() {
        let mut all = ejections(2, 100.0);
        let mut now = 0;
        fail(&mut all, now, TargetId(0), 5, 2);
        for lasts in [30, 60, 120, 240, 300, 300] {
            assert_eq!(all.next_deadline(), Some(now + lasts * S));
            now += lasts * S;
            assert_eq!((all.due(now - 1), all.due(now), all.due(now)), (None, Some(TargetId(0)), None));
            assert!(
                all.is_half_open(TargetId(0))
                    && all.picked(TargetId(0))
                    && !all.picked(TargetId(0))
                    && !all.is_half_open(TargetId(0))
            );
            assert_eq!(all.outcome(now, TargetId(0), true, BAD, 2), Some(Verdict::ProbeFailed));
        }
        now += 300 * S;
        all.due(now);
        all.picked(TargetId(0));
        assert_eq!(all.outcome(now, TargetId(0), true, None, 2), Some(Verdict::Readmitted));
        fail(&mut all, now, TargetId(0), 5, 2);
        assert_eq!(all.next_deadline(), Some(now + 30 * S));
    }

    #[test]
    fn only_the_probe_speaks_for_a_target_that_is_out() {
        let mut all = ejections(2, 100.0);
        fail(&mut all, 0, TargetId(0), 5, 2);
        assert_eq!(all.outcome(1, TargetId(0), false, None, 2), None, "sent before, and came back well");
        all.due(30 * S);
        all.picked(TargetId(0));
        assert_eq!(all.outcome(30 * S, TargetId(0), false, None, 2), None);
        assert_eq!(fail(&mut all, 30 * S, TargetId(0), 9, 2), None);
        all.probe_ended(TargetId(0));
        assert!(all.is_half_open(TargetId(0)), "a probe whose client left tries nothing");
        all.picked(TargetId(0));
        assert_eq!(all.outcome(30 * S, TargetId(0), true, Some(Kind::Overloaded), 2), None);
        assert!(all.is_half_open(TargetId(0)));
    }

    #[test]
    fn no_more_than_the_share_goes() {
        let mut all = ejections(10, 50.0);
        (0..6).for_each(|t| _ = fail(&mut all, 0, TargetId(t), 20, 10));
        assert_eq!(all.out(), 5);
        all.due(30 * S);
        all.picked(TargetId(0));
        all.outcome(30 * S, TargetId(0), true, None, 10);
        assert_eq!(fail(&mut all, 30 * S, TargetId(5), 1, 10), Some(Verdict::Ejected), "there is room now");
        let mut few = ejections(3, 33.0);
        assert_eq!(
            fail(&mut few, 0, TargetId(0), 5, 3),
            Some(Verdict::Ejected),
            "33 % of three is less than one"
        );
        assert_eq!(fail(&mut few, 0, TargetId(1), 50, 3), None, "but no second one goes");
        assert_eq!(fail(&mut ejections(3, 0.0), 0, TargetId(0), 50, 3), None, "0 switches it off");
    }

    /// For any outcomes, the share holds, and the number of ejected targets is that of a plain count.
    #[test]
    fn the_account_is_right() {
        for seed in 0..50u64 {
            let mut all = ejections(7, 45.0);
            for step in 0..2000u64 {
                let draw = Key::new(seed).with(step);
                let (t, now) = (draw.below(7) as u32, step * S);
                while all.due(now).is_some() {}
                let probe = all.picked(TargetId(t));
                match draw.nth(1).below(20) {
                    0 => all.forget(TargetId(t)),
                    1..=3 => _ = all.outcome(now, TargetId(t), probe, None, 7),
                    _ => _ = all.outcome(now, TargetId(t), probe, BAD, 7),
                }
                let out = all.records.iter().filter(|r| r.state != State::In).count() as u32;
                assert!(all.out() == out && out <= 3);
            }
        }
    }
}
