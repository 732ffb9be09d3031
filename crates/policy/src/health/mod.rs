//! The health of one balancer's targets: which may be picked. One per process, for any number of loops.
//!
//! It owns the inputs (checks, ejection, outliers, the operator) and the ramps, combines them, decides on panic and
//! on what to do without eligible targets, and gives each target's weight and whether it may be picked ([`View`]).
//! Loops follow it ([`crate::upstream::Upstream::follow`]); with a single loop an `Upstream` owns it.

use crate::health::active::Check;
use crate::health::active::Checks;
use crate::health::eject::Eject;
use crate::health::eject::{Ejections, Verdict};
use crate::health::eligibility::{Admin, Eligibility, Input, Passive, Reason, Transition};
use crate::health::outlier::Outlier;
use crate::health::outlier::Outliers;
use crate::health::panic::OnEmpty;
use crate::health::panic::is_panic;
use crate::health::slow_start::Ramps;
use crate::health::slow_start::SlowStart;
use crate::{Outcome, TargetChange, TargetId};
use serde::{Deserialize, Serialize};
use weir_stats::Key;

pub mod active;
mod curve;
pub mod eject;
pub mod eligibility;
mod known;
pub mod outlier;
pub mod panic;
mod renewal;
mod seen;
pub mod slow_start;
pub mod snapshot;

pub use known::HealthRecord;

/// Transitions kept for metrics and logs until they are taken; further ones are only counted.
const KEPT: usize = 4096;

/// The health settings of a balancer.
#[derive(Clone, Debug, Default)]
pub struct HealthConfig {
    /// Active checks.
    pub check: Option<Check>,
    /// Ejection after failures in a row. At most one of this and outlier detection.
    pub eject: Option<Eject>,
    /// Outlier detection.
    pub outlier: Option<Outlier>,
    /// Slow start; `None` for policies that hash.
    pub slow_start: Option<SlowStart>,
    /// Below this share of eligible targets, among those that are not out by hand, health is ignored.
    pub panic: f64,
    /// What to do without eligible targets.
    pub on_empty: OnEmpty,
}

/// What a pick needs to know of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Its weight now.
    pub weight: f64,
    /// Whether it may be picked.
    pub may_be_picked: bool,
    /// The share of the limit of requests in flight that it has now ([`slow_start::limit_at`]).
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub room: f64,
}

fn whole() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_whole(room: &f64) -> bool {
    *room == 1.0
}

/// The share of a target that has none yet, where no other target is left.
const LAST_RESORT: f64 = 0.01;

/// The health of the targets of one balancer.
#[derive(Clone, Debug)]
pub struct Health {
    weights: Vec<f64>,
    exists: Vec<bool>,
    eligibility: Eligibility,
    checks: Option<Checks>,
    ejections: Option<Ejections>,
    outliers: Option<Outliers>,
    ramps: Option<Ramps>,
    /// Whether all eligible targets are on their ramp.
    all_are_new: bool,
    /// Whether every target that may be picked is on its ramp and has no share yet.
    none_has_share: bool,
    panic: f64,
    on_empty: OnEmpty,
    /// Whether health is ignored.
    ignored: bool,
    /// Existing targets of weight > 0, and the eligible ones among them.
    targets: u32,
    eligible: u32,
    transitions: Vec<Transition>,
    /// The number of ejections.
    ejections_ever: u64,
    /// A version of everything that a view depends on.
    version: u64,
}

impl Health {
    /// Targets of these weights from `start` on. `draw` is for jitter and enforcement.
    pub fn new(config: HealthConfig, weights: &[f64], start: u64, draw: Key) -> Health {
        let n = weights.len() as u32;
        let checks = config.check.map(|c| Checks::new(c, n, start, draw.with(1)));
        let mut eligibility = Eligibility::new(n);
        if let Some(checks) = &checks {
            for t in TargetId::all(n).filter(|&t| !checks.is_up(t)) {
                eligibility.set(t, Input::Active(false), Reason::ChecksFailed);
            }
        }
        let mut health = Health {
            weights: weights.to_vec(),
            exists: vec![true; weights.len()],
            eligibility,
            checks,
            ejections: config.eject.map(|e| Ejections::new(e, n)),
            outliers: config.outlier.map(|o| Outliers::new(o, n, start, draw.with(2))),
            ramps: config.slow_start.map(Ramps::new),
            all_are_new: false,
            none_has_share: false,
            panic: config.panic,
            on_empty: config.on_empty,
            ignored: false,
            targets: 0,
            eligible: 0,
            transitions: Vec::new(),
            ejections_ever: 0,
            version: 0,
        };
        health.judge();
        health
    }

    /// Changes whenever a view may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Indices in use.
    pub fn len(&self) -> u32 {
        self.weights.len() as u32
    }

    /// Whether there never was a target.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// What a pick needs to know of a target.
    pub fn view(&self, target: TargetId) -> View {
        let weight = self.weights[target.index()] * self.ramp(target);
        View { weight, may_be_picked: self.may_be_picked(target), room: self.room(target) }
    }

    fn may_be_picked(&self, target: TargetId) -> bool {
        let picked = if self.ignored {
            self.eligibility.is_up_by_admin(target)
        } else {
            self.eligibility.may_be_picked(target)
        };
        picked && self.exists[target.index()]
    }

    /// The share of its weight that a target has while it ramps up; otherwise 1.
    pub fn ramp(&self, target: TargetId) -> f64 {
        let share = self.ramps.as_ref().map_or(1.0, |ramps| ramps.share(target));
        if share == 0.0 && self.none_has_share { LAST_RESORT } else { share }
    }

    /// The share of the limit of requests in flight that it has. Where all are new there is no other that could take the
    /// rest, so limits are whole.
    fn room(&self, target: TargetId) -> f64 {
        match &self.ramps {
            Some(ramps) if !self.all_are_new => ramps.room(target),
            _ => 1.0,
        }
    }

    /// The weight of a target without its ramp.
    pub fn whole_weight(&self, target: TargetId) -> f64 {
        self.weights[target.index()]
    }

    /// Whether a target is eligible, regardless of panic.
    pub fn is_eligible(&self, target: TargetId) -> bool {
        self.exists[target.index()] && self.eligibility.is_eligible(target)
    }

    /// The states of a target.
    pub const STANDINGS: [&str; 5] = ["eligible", "down", "ejected", "probation", "drained"];

    /// The state of a target.
    pub fn standing(&self, target: TargetId) -> &'static str {
        match self.eligibility.passive(target) {
            _ if self.is_eligible(target) => "eligible",
            _ if !self.eligibility.is_up_by_admin(target) => "drained",
            Passive::Out => "ejected",
            Passive::Probation => "probation",
            Passive::In => "down",
        }
    }

    /// Targets of weight > 0, and the number of eligible ones.
    pub fn count(&self) -> (u32, u32) {
        (self.targets, self.eligible)
    }

    /// Whether health is ignored now: panic, or no target is left and `on_empty` is any.
    pub fn is_ignored(&self) -> bool {
        self.ignored
    }

    /// The transitions since the last call, the first few thousand of them.
    pub fn take_transitions(&mut self) -> impl Iterator<Item = Transition> + '_ {
        self.transitions.drain(..)
    }

    /// The number of ejections since the start.
    pub fn ejections(&self) -> u64 {
        self.ejections_ever
    }

    fn judge(&mut self) {
        let (mut targets, mut eligible, mut judged, mut pickable) = (0, 0, 0, false);
        for t in TargetId::all(self.len()) {
            if !self.exists[t.index()] || self.weights[t.index()] <= 0.0 {
                continue;
            }
            targets += 1;
            eligible += u32::from(self.eligibility.is_eligible(t));
            // Maintenance of some targets by hand says nothing about the health of the others.
            judged += u32::from(self.eligibility.is_up_by_admin(t));
            pickable |= self.eligibility.may_be_picked(t);
        }
        self.ignored = is_panic(eligible, judged, self.panic) || !pickable && self.on_empty == OnEmpty::Any;
        (self.targets, self.eligible) = (targets, eligible);
        self.compare_ramps();
        self.version += 1;
    }

    /// Looks at the ramps of all targets: what one of them means depends on whether others are left.
    fn compare_ramps(&mut self) {
        (self.all_are_new, self.none_has_share) = (false, false);
        let Some(ramps) = self.ramps.as_ref().filter(|ramps| !ramps.is_empty()) else { return };
        let there = || TargetId::all(self.len()).filter(|t| self.weights[t.index()] > 0.0);
        let are_new = there().all(|t| !self.is_eligible(t) || ramps.has(t));
        // One on probation takes a single request.
        let is_tried = |t| matches!(self.eligibility.passive(t), Passive::Probation);
        let is_left = |t: TargetId| self.may_be_picked(t) && !is_tried(t);
        let have_none = there().all(|t| !is_left(t) || ramps.share(t) == 0.0);
        (self.all_are_new, self.none_has_share) = (are_new, have_none);
    }

    fn set(&mut self, now_ns: u64, target: TargetId, input: Input, reason: Reason) -> bool {
        self.set_all(now_ns, std::iter::once((target, input, reason)))
    }

    /// Sets an input of any number of targets; the whole is judged once. Returns whether that changed a view.
    fn set_all(&mut self, now_ns: u64, inputs: impl Iterator<Item = (TargetId, Input, Reason)>) -> bool {
        let mut changed = false;
        for (target, input, reason) in inputs {
            changed |= self.turn(now_ns, target, input, reason);
        }
        if changed {
            self.judge();
        }
        changed
    }

    /// Sets an input of a target, which is judged later.
    fn turn(&mut self, now_ns: u64, target: TargetId, input: Input, reason: Reason) -> bool {
        let Some(transition) = self.eligibility.set(target, input, reason) else { return false };
        self.note(transition);
        if let Some(ramps) = &mut self.ramps {
            match (transition.was_eligible, transition.is_eligible) {
                (false, true) => ramps.begin(now_ns, target),
                (true, false) => ramps.end(target),
                _ => {}
            }
        }
        true
    }

    fn note(&mut self, transition: Transition) {
        self.ejections_ever += u64::from(transition.reason.is_ejection());
        if self.transitions.len() < KEPT {
            self.transitions.push(transition);
        }
    }

    /// The operator's setting of a target.
    pub fn set_admin(&mut self, now_ns: u64, target: TargetId, admin: Admin) -> bool {
        let reason = match admin {
            Admin::Up | Admin::Forced => Reason::AdminUp,
            Admin::Drain => Reason::AdminDrain,
            Admin::Down => Reason::AdminDown,
        };
        self.set(now_ns, target, Input::Admin(admin), reason)
    }

    /// Whether the name of the server behind a target has an address.
    pub fn set_resolved(&mut self, now_ns: u64, target: TargetId, resolved: bool) -> bool {
        self.set(now_ns, target, Input::Behind(resolved), reason_of_name(resolved))
    }

    /// Whether each target can be reached: `is_name`: as [`Health::set_resolved`], otherwise as
    /// [`Health::set_behind`].
    pub fn set_reachable(&mut self, now_ns: u64, targets: impl Iterator<Item = (TargetId, bool, bool)>) {
        self.set_all(
            now_ns,
            targets.map(|(target, is_name, up)| {
                let reason = if is_name { reason_of_name(up) } else { reason_of_balancers(up) };
                (target, Input::Behind(up), reason)
            }),
        );
    }

    /// Whether the balancers behind a target have any target left.
    pub fn set_behind(&mut self, now_ns: u64, target: TargetId, up: bool) -> bool {
        self.set(now_ns, target, Input::Behind(up), reason_of_balancers(up))
    }

    /// Sets a weight.
    pub fn set_weight(&mut self, target: TargetId, weight: f64) {
        self.set_weights([(target, weight)]);
    }

    /// Sets any number of weights; the whole is judged once.
    pub fn set_weights(&mut self, weights: impl IntoIterator<Item = (TargetId, f64)>) {
        let mut weights = weights.into_iter().peekable();
        if weights.peek().is_none() {
            return;
        }
        for (target, weight) in weights {
            if let Some(w) = self.weights.get_mut(target.index()) {
                *w = weight.max(0.0);
            }
        }
        self.judge();
    }

    /// Adds and removes targets, in this order; the whole is judged once.
    pub fn change_targets<'a>(&mut self, now_ns: u64, changes: impl IntoIterator<Item = TargetChange<'a>>) {
        let mut changes = changes.into_iter().peekable();
        if changes.peek().is_none() {
            return;
        }
        // Then a count of targets is all that there is to judge.
        let is_plain = self.is_plain();
        for change in changes {
            let target = change.target();
            let counts = |health: &Health| {
                let i = target.index();
                u32::from(health.exists.get(i) == Some(&true) && health.weights[i] > 0.0)
            };
            self.targets -= counts(self);
            match change {
                TargetChange::Add { target, weight, .. } => self.add(now_ns, target, weight),
                TargetChange::Remove(target) => self.remove(target),
            }
            self.targets += counts(self);
        }
        if !is_plain {
            return self.judge();
        }
        self.eligible = self.targets;
        self.ignored = self.targets == 0 && self.on_empty == OnEmpty::Any;
        self.version += 1;
    }

    /// Whether every target may be picked, and newcomers may be at once, with the weights that they have.
    pub fn is_plain(&self) -> bool {
        let nothing_judges = self.checks.is_none() && self.ramps.is_none() && self.panic <= 1.0;
        nothing_judges && self.eligible == self.targets && !self.ignored
    }

    fn add(&mut self, now_ns: u64, target: TargetId, weight: f64) {
        let i = target.index();
        if i >= self.weights.len() {
            self.weights.resize(i + 1, 0.0);
            self.exists.resize(i + 1, false);
        }
        (self.weights[i], self.exists[i]) = (weight.max(0.0), true);
        self.eligibility.add(target);
        if let Some(ejections) = &mut self.ejections {
            ejections.forget(target);
        }
        if let Some(outliers) = &mut self.outliers {
            outliers.forget(target, true);
        }
        if let Some(checks) = &mut self.checks {
            checks.add(target, now_ns);
            if !checks.is_up(target) {
                self.eligibility.set(target, Input::Active(false), Reason::ChecksFailed);
            }
        }
        let is_eligible = self.eligibility.is_eligible(target);
        if let Some(ramps) = self.ramps.as_mut().filter(|_| is_eligible) {
            ramps.begin(now_ns, target);
        }
        self.note(Transition { target, reason: Reason::Added, was_eligible: false, is_eligible });
    }

    fn remove(&mut self, target: TargetId) {
        if !self.exists.get(target.index()).is_some_and(|e| *e) {
            return;
        }
        let was_eligible = self.eligibility.is_eligible(target);
        self.exists[target.index()] = false;
        if let Some(checks) = &mut self.checks {
            checks.remove(target);
        }
        if let Some(ejections) = &mut self.ejections {
            ejections.forget(target);
        }
        if let Some(outliers) = &mut self.outliers {
            outliers.forget(target, false);
        }
        if let Some(ramps) = &mut self.ramps {
            ramps.end(target);
        }
        self.note(Transition { target, reason: Reason::Removed, was_eligible, is_eligible: false });
    }

    /// Whether outcomes of requests matter at all.
    #[inline]
    pub fn listens(&self) -> bool {
        self.ejections.is_some() || self.outliers.is_some()
    }

    /// Whether the next request to a target is its trial; if so, it counts as sent.
    #[inline]
    pub fn picked(&mut self, target: TargetId) -> bool {
        self.ejections.as_mut().is_some_and(|e| e.picked(target))
    }

    /// Whether a request to some target would be its trial.
    pub fn anyone_half_open(&self) -> bool {
        self.ejections.as_ref().is_some_and(|e| e.half_open() > 0)
    }

    /// Whether the next request to a target is its trial.
    pub fn is_half_open(&self, target: TargetId) -> bool {
        self.ejections.as_ref().is_some_and(|e| e.is_half_open(target))
    }

    /// Whether a success of a target could change anything.
    pub fn heeds_success(&self, target: TargetId) -> bool {
        self.outliers.is_some() || self.ejections.as_ref().is_some_and(|e| e.heeds_success(target))
    }

    /// Whether a request would find a target here, so that a balancer outside may send one. On probation a target is
    /// not eligible, but only a request can show whether it has recovered.
    pub fn has_anyone(&self) -> bool {
        self.eligible > 0 || !self.ignored && self.pickable().next().is_some()
    }

    /// The targets that a pick may find now, with health ignored where it is.
    pub fn pickable(&self) -> impl Iterator<Item = TargetId> + '_ {
        TargetId::all(self.len()).filter(|&t| {
            let view = self.view(t);
            view.may_be_picked && view.weight > 0.0
        })
    }

    /// The trial of a target ended without saying anything about it.
    pub fn probe_ended(&mut self, target: TargetId) {
        if let Some(ejections) = &mut self.ejections {
            ejections.probe_ended(target);
        }
    }

    /// Notes the outcome of a request. Returns whether that changed a view.
    #[inline]
    pub fn outcome(
        &mut self,
        now_ns: u64,
        target: TargetId,
        probe: bool,
        outcome: Outcome,
        status: Option<u16>,
    ) -> bool {
        let mut changed = false;
        let targets = self.targets;
        let verdict =
            self.ejections.as_mut().and_then(|e| e.outcome(now_ns, target, probe, outcome, targets));
        if let Some(verdict) = verdict {
            let (passive, reason) = match verdict {
                Verdict::Ejected => (Passive::Out, Reason::EjectedConsecutive),
                Verdict::ProbeFailed => (Passive::Out, Reason::EjectedProbe),
                Verdict::Readmitted => (Passive::In, Reason::Readmitted),
            };
            changed |= self.set(now_ns, target, Input::Passive(passive), reason);
        }
        let outliers = self.outliers.as_mut();
        if let Some(reason) = outliers.and_then(|o| o.outcome(now_ns, target, outlier::seen(outcome, status)))
        {
            changed |= self.set(now_ns, target, Input::Passive(Passive::Out), reason);
        }
        changed
    }

    /// When the next check begins.
    pub fn next_check(&mut self) -> Option<u64> {
        self.checks.as_mut().and_then(Checks::next_due)
    }

    /// The next target whose check begins now; call again until `None`.
    pub fn start_check(&mut self, now_ns: u64) -> Option<TargetId> {
        self.checks.as_mut().and_then(|c| c.start(now_ns))
    }

    /// Ends a check. Returns whether that changed a view.
    pub fn check_result(&mut self, now_ns: u64, target: TargetId, passed: bool) -> bool {
        let Some(up) = self.checks.as_mut().and_then(|c| c.result(now_ns, target, passed)) else {
            return false;
        };
        let reason = if up { Reason::ChecksPassed } else { Reason::ChecksFailed };
        self.set(now_ns, target, Input::Active(up), reason)
    }

    /// Ends a check without a result.
    pub fn check_said_nothing(&mut self, now_ns: u64, target: TargetId) {
        if let Some(checks) = &mut self.checks {
            checks.no_result(now_ns, target);
        }
    }

    /// When [`Health::tick`] has something to do, except for checks.
    pub fn next_deadline(&mut self) -> Option<u64> {
        let ejections = self.ejections.as_mut().and_then(Ejections::next_deadline);
        let outliers = self.outliers.as_ref().map(Outliers::next_deadline);
        let ramps = self.ramps.as_ref().and_then(Ramps::next_deadline);
        ejections.into_iter().chain(outliers).chain(ramps).min()
    }

    /// Advances the time. Returns whether a view changed.
    pub fn tick(&mut self, now_ns: u64) -> bool {
        let version = self.version;
        while let Some(target) = self.ejections.as_mut().and_then(|e| e.due(now_ns)) {
            self.set(now_ns, target, Input::Passive(Passive::Probation), Reason::Probation);
        }
        if self.outliers.as_ref().is_some_and(|o| o.next_deadline() <= now_ns) {
            let mut swept = Vec::new();
            if let Some(outliers) = &mut self.outliers {
                outliers.tick(now_ns, |target, reason| swept.push((target, reason)));
            }
            for (target, reason) in swept {
                let passive = if reason == Reason::Readmitted { Passive::In } else { Passive::Out };
                self.set(now_ns, target, Input::Passive(passive), reason);
            }
        }
        if self.ramps.as_mut().is_some_and(|ramps| ramps.tick(now_ns)) {
            self.compare_ramps();
            self.version += 1;
        }
        self.version != version
    }
}

fn reason_of_name(resolved: bool) -> Reason {
    if resolved { Reason::Resolved } else { Reason::Unresolved }
}

fn reason_of_balancers(up: bool) -> Reason {
    if up { Reason::BehindUp } else { Reason::BehindDown }
}
