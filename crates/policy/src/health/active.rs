//! Active health checks: when each is due, and what its result changes.
//!
//! - Idea: check every target periodically; several results in a row, not one, change its state.
//! - State per target: up or down, results in a row against that, when its next check is due. Cost: O(log n) per
//!   check.
//! - Formula: up after `rise` passes in a row, down after `fall` failures; each check begins an interval after the
//!   one before began (± `jitter`), at `fast_interval` while a change is under way, at `down_interval` while down.
//!   The first check of target i of n comes at i/n of an interval. A target never has two checks at once: one that
//!   takes longer than its interval delays the next.
//! - Detection of a dead target: between (fall − 1) intervals and fall intervals plus the check's timeout.
//! - Pathologies: a target whose check lies; n loops that all check (one does it for the process); an interval so
//!   short that checks are load.
//! - Source: HAProxy `inter`, `fastinter`, `downinter`, `rise`, `fall`, `spread-checks`. In the language:
//!   `health.http`, `health.tcp`.

use crate::TargetId;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_stats::Key;

/// What a target is before its first health check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// Up; it takes `fall` failures in a row to go down.
    #[default]
    Up,
    /// Down; it takes `rise` passes in a row to come up.
    Down,
    /// Down until one has passed.
    Checked,
}

/// When health checks are made and what they decide; what is sent is the caller's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// From the beginning of a check to that of the next, ns.
    pub interval_ns: u64,
    /// Passes in a row that bring a target up.
    pub rise: u32,
    /// Failures in a row that take it down.
    pub fall: u32,
    /// Each interval is longer or shorter by up to this share.
    pub jitter: f64,
    /// The interval while a change is under way (some passes or failures in a row, not yet enough), or before the first
    /// check.
    pub fast_interval_ns: Option<u64>,
    /// The interval while a target is down.
    pub down_interval_ns: Option<u64>,
    /// Before the first check.
    pub initial: Initial,
}

#[derive(Clone, Copy, Debug)]
struct State {
    up: bool,
    /// No result yet, and one pass is enough.
    unchecked: bool,
    /// Results in a row against `up`.
    against: u32,
    began: u64,
    running: bool,
    /// The number of checks so far, for jitter. It also distinguishes entries of a removed target from those of its
    /// successor.
    number: u64,
    exists: bool,
}

/// The checks of the targets of one balancer.
#[derive(Clone, Debug)]
pub struct Checks {
    config: Check,
    draw: Key,
    states: Vec<State>,
    /// (when, target, number of the check): entries with an old number are dropped as they come up.
    due: BinaryHeap<Reverse<(u64, TargetId, u64)>>,
}

impl Checks {
    /// Checks of `n` targets from `start` on. `draw` is for jitter.
    pub fn new(config: Check, n: u32, start: u64, draw: Key) -> Checks {
        let mut checks = Checks { config, draw, states: Vec::new(), due: BinaryHeap::new() };
        for target in TargetId::all(n) {
            let offset = u128::from(checks.config.interval_ns) * u128::from(target.0) / u128::from(n);
            checks.add(target, start.saturating_add(offset as u64));
        }
        checks
    }

    /// Replaces the arguments; the targets keep their state and the time of their next check.
    pub fn configure(&mut self, config: Check) {
        self.config = config;
    }

    /// Adds a target, at the index of a removed one or the next, with its first check at `first`.
    pub fn add(&mut self, target: TargetId, first: u64) {
        let i = target.index();
        let number = self.states.get(i).map_or(0, |s| s.number + 1);
        let state = State {
            up: self.config.initial == Initial::Up,
            unchecked: self.config.initial == Initial::Checked,
            against: 0,
            began: first,
            running: false,
            number,
            exists: true,
        };
        if i >= self.states.len() {
            self.states.resize(i + 1, State { exists: false, ..state });
        }
        self.states[i] = state;
        self.due.push(Reverse((first, target, number)));
    }

    /// Ends the checks of a target; the result of a running one is ignored.
    pub fn remove(&mut self, target: TargetId) {
        if let Some(state) = self.states.get_mut(target.index()) {
            (state.exists, state.running) = (false, false);
            state.number += 1;
        }
    }

    /// Whether checks find the target up.
    pub fn is_up(&self, target: TargetId) -> bool {
        self.states.get(target.index()).is_some_and(|s| s.up)
    }

    /// Sets the state of a target, as found elsewhere.
    pub fn believe(&mut self, target: TargetId, up: bool) {
        if let Some(state) = self.states.get_mut(target.index()) {
            (state.up, state.unchecked, state.against) = (up, false, 0);
        }
    }

    /// When the next check begins; `None` while all run.
    pub fn next_due(&mut self) -> Option<u64> {
        while let Some(&Reverse((when, target, number))) = self.due.peek() {
            let state = &self.states[target.index()];
            if state.exists && state.number == number && !state.running {
                return Some(when);
            }
            self.due.pop();
        }
        None
    }

    /// The next target whose check begins now, by time and then by target; call again until `None`.
    pub fn start(&mut self, now_ns: u64) -> Option<TargetId> {
        self.next_due().filter(|&when| when <= now_ns)?;
        let Reverse((_, target, _)) = self.due.pop()?;
        let state = &mut self.states[target.index()];
        (state.began, state.running) = (now_ns, true);
        Some(target)
    }

    /// Ends a check. Returns the new state of the target, if it has changed.
    pub fn result(&mut self, now_ns: u64, target: TargetId, passed: bool) -> Option<bool> {
        let state = self.states.get_mut(target.index()).filter(|s| s.exists && s.running)?;
        state.running = false;
        state.number += 1;
        state.against = if passed == state.up { 0 } else { state.against + 1 };
        let enough = match (state.up, state.unchecked) {
            (true, _) => self.config.fall,
            (false, true) => 1,
            (false, false) => self.config.rise,
        };
        let changes = state.against >= enough.max(1);
        if changes {
            (state.up, state.unchecked, state.against) = (!state.up, false, 0);
        }
        let (up, next) = (state.up, self.next(target).max(now_ns));
        self.due.push(Reverse((next, target, self.states[target.index()].number)));
        changes.then_some(up)
    }

    /// Ends a check without a result: the state stays, and the next check comes in its turn.
    pub fn no_result(&mut self, now_ns: u64, target: TargetId) {
        let Some(state) = self.states.get_mut(target.index()).filter(|s| s.exists && s.running) else {
            return;
        };
        state.running = false;
        state.number += 1;
        let next = self.next(target).max(now_ns);
        self.due.push(Reverse((next, target, self.states[target.index()].number)));
    }

    /// When a target is checked again.
    fn next(&self, target: TargetId) -> u64 {
        let state = &self.states[target.index()];
        let (config, normal) = (&self.config, self.config.interval_ns);
        let interval = if state.against > 0 || state.unchecked {
            config.fast_interval_ns.unwrap_or(normal)
        } else if !state.up {
            config.down_interval_ns.unwrap_or(normal)
        } else {
            normal
        };
        let unit = self.draw.with(u64::from(target.0)).with(state.number).unit();
        let factor = 1.0 + config.jitter * (2.0 * unit - 1.0);
        let interval = if config.jitter > 0.0 { (interval as f64 * factor) as u64 } else { interval };
        state.began.saturating_add(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn config(initial: Initial) -> Check {
        Check {
            interval_ns: 2 * S,
            rise: 2,
            fall: 3,
            jitter: 0.0,
            fast_interval_ns: None,
            down_interval_ns: None,
            initial,
        }
    }

    type CheckStart = Vec<(u64, u32)>;
    type Changes = Vec<(u64, u32, bool)>;

    /// Runs the checks until `end`, each taking `took`; returns the times and targets of checks, and the changes.
    fn run(
        checks: &mut Checks,
        end: u64,
        took: u64,
        passes: impl Fn(u64, u32) -> bool,
    ) -> (CheckStart, Changes) {
        let (mut began, mut changes) = (Vec::new(), Vec::new());
        let mut running: Vec<(u64, u32)> = Vec::new();
        loop {
            let due = checks.next_due();
            let ends = running.iter().copied().min();
            let now = due.into_iter().chain(ends.map(|e| e.0)).min().unwrap_or(end);
            if now >= end {
                return (began, changes);
            }
            if let Some(e) = ends.filter(|e| e.0 == now) {
                running.retain(|r| *r != e);
                let passed = passes(now, e.1);
                changes.extend(checks.result(now, TargetId(e.1), passed).map(|up| (now, e.1, up)));
            } else if let Some(t) = checks.start(now) {
                assert!(running.iter().all(|r| r.1 != t.0), "never two at once");
                began.push((now, t.0));
                running.push((now + took, t.0));
            }
        }
    }

    #[test]
    fn first_checks_are_spread_over_an_interval() {
        let mut checks = Checks::new(config(Initial::Up), 4, 100, Key::new(1));
        let (began, changes) = run(&mut checks, 100 + 4 * S, 1, |_, _| true);
        let want = |k: u64| (100 + k * S / 2, (k % 4) as u32);
        assert_eq!(began, (0..8).map(want).collect::<Vec<_>>());
        assert!(changes.is_empty());
    }

    #[test]
    fn results_in_a_row_change_what_is_believed() {
        let after = |initial, passes: &[bool]| {
            let mut checks = Checks::new(config(initial), 1, 0, Key::new(1));
            let mut ups = String::new();
            for (k, &passed) in passes.iter().enumerate() {
                assert_eq!(checks.start(k as u64 * 2 * S), Some(TargetId(0)));
                checks.result(k as u64 * 2 * S, TargetId(0), passed);
                ups.push(if checks.is_up(TargetId(0)) { 'u' } else { 'd' });
            }
            ups
        };
        let (f, p) = (false, true);
        assert_eq!(after(Initial::Up, &[f, f, p, f, f, f, f, p, f, p, p]), "uuuuudddddu");
        assert_eq!(after(Initial::Down, &[p, f, p, p, f]), "ddduu");
        assert_eq!(after(Initial::Checked, &[p, f, f, f, p, p]), "uuuddu");
        assert_eq!(after(Initial::Checked, &[f, f, p]), "ddu");
    }

    /// A target dies at any moment: it is detected within (fall − 1) to fall intervals plus the time of a check;
    /// sooner if a first failure makes checks fast.
    #[test]
    fn detection_takes_its_time() {
        for dies in (0..40).map(|k| 20 * S + k * S / 20) {
            let found = |config: Check| {
                let mut checks = Checks::new(config, 1, 0, Key::new(1));
                run(&mut checks, 60 * S, S / 10, |now, _| now < dies).1[0].0 - dies
            };
            let slow = found(config(Initial::Up));
            assert!((4 * S..=6 * S + S / 10).contains(&slow), "{slow}");
            let fast = found(Check { fast_interval_ns: Some(S / 2), ..config(Initial::Up) });
            assert!(fast <= 2 * S + 2 * S / 2 + S / 10, "{fast}");
        }
    }

    #[test]
    fn a_slow_check_delays_the_next_and_down_targets_have_their_own_interval() {
        let mut checks = Checks::new(config(Initial::Up), 1, 0, Key::new(1));
        let (began, _) = run(&mut checks, 10 * S, 3 * S, |_, _| true);
        assert_eq!(began.iter().map(|b| b.0 / S).collect::<Vec<_>>(), [0, 3, 6, 9]);
        let down = Check { down_interval_ns: Some(5 * S), fall: 1, ..config(Initial::Up) };
        let (began, _) = run(&mut Checks::new(down, 1, 0, Key::new(1)), 20 * S, 0, |_, _| false);
        assert_eq!(began.iter().map(|b| b.0 / S).collect::<Vec<_>>(), [0, 5, 10, 15]);
    }

    #[test]
    fn a_check_without_result_changes_nothing_but_the_time() {
        let mut checks = Checks::new(config(Initial::Up), 1, 0, Key::new(1));
        for (k, result) in [Some(false), Some(false), None, None, None, Some(false)].into_iter().enumerate() {
            assert_eq!(checks.next_due(), Some(2 * S * k as u64));
            assert!(checks.start(2 * S * k as u64) == Some(TargetId(0)) && checks.is_up(TargetId(0)));
            match result {
                Some(passed) => drop(checks.result(2 * S * k as u64, TargetId(0), passed)),
                None => checks.no_result(2 * S * k as u64, TargetId(0)),
            }
        }
        assert!(!checks.is_up(TargetId(0)), "those before and after still count");
    }

    #[test]
    fn jitter_spreads_and_keeps_the_mean() {
        let jittered = Check { jitter: 0.1, ..config(Initial::Up) };
        let (began, _) = run(&mut Checks::new(jittered, 1, 0, Key::new(7)), 4000 * S, 0, |_, _| true);
        let gaps: Vec<u64> = began.windows(2).map(|w| w[1].0 - w[0].0).collect();
        assert!(gaps.iter().all(|g| (S * 9 / 5..=S * 11 / 5).contains(g)));
        assert!((1980..2020).contains(&began.len()) && gaps.iter().any(|g| *g > 2 * S + S / 6));
    }

    #[test]
    fn targets_come_and_go() {
        let mut checks = Checks::new(config(Initial::Down), 2, 0, Key::new(1));
        assert_eq!(checks.start(0), Some(TargetId(0)));
        checks.remove(TargetId(0));
        assert_eq!(checks.result(1, TargetId(0), true), None, "the result of one that is gone");
        checks.add(TargetId(0), 5);
        checks.add(TargetId(2), 6);
        assert_eq!((checks.next_due(), checks.start(4), checks.start(5)), (Some(5), None, Some(TargetId(0))));
        assert_eq!(
            (checks.start(S), checks.start(S), checks.start(S), checks.next_due()),
            (Some(TargetId(2)), Some(TargetId(1)), None, None)
        );
    }
}
