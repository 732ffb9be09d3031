//! Whether each target may be picked: the operator's setting, health checks and the outcomes of its requests, AND-ed.
//!
//! Four inputs per target, each changed by its own owner; weight is separate. Every change has a reason by which
//! metrics and logs name it. A target on probation (its ejection has ended) may be picked for one request, and counts
//! as not eligible.

use crate::TargetId;
use crate::ds::bits::Bits;

/// The operator's setting of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admin {
    /// By its health.
    #[default]
    Up,
    /// Up, regardless of checks and outcomes.
    Forced,
    /// No new requests; requests in flight finish.
    Drain,
    /// The same; marks a failed target.
    Down,
}

/// The outcome of a target's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passive {
    /// Nothing against it.
    #[default]
    In,
    /// Ejected.
    Out,
    /// One request may try it.
    Probation,
}

/// Why an input changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The target was added.
    Added,
    /// The target was removed.
    Removed,
    /// The operator set it up.
    AdminUp,
    /// The operator drains it.
    AdminDrain,
    /// The operator set it down.
    AdminDown,
    /// Enough checks in a row have passed.
    ChecksPassed,
    /// Enough checks in a row have failed.
    ChecksFailed,
    /// `eject`: failures in a row.
    EjectedConsecutive,
    /// `eject`: the request that tried it failed.
    EjectedProbe,
    /// `outlier`: errors in a row.
    EjectedConsecutive5xx,
    /// `outlier`: gateway errors in a row.
    EjectedGatewayFailure,
    /// `outlier`: failures without an answer in a row.
    EjectedLocalOrigin,
    /// `outlier`: a success rate far below the others'.
    EjectedSuccessRate,
    /// `outlier`: too great a share of failures.
    EjectedFailurePercentage,
    /// The ejection has run out; one request may try it.
    Probation,
    /// The request that tried it succeeded, or the ejection ended.
    Readmitted,
    /// A balancer behind it has an eligible target again.
    BehindUp,
    /// A balancer behind it has none.
    BehindDown,
    /// Its name has an address again.
    Resolved,
    /// Its name has no address.
    Unresolved,
}

impl Reason {
    /// Whether this is a reason of an ejection.
    pub fn is_ejection(self) -> bool {
        matches!(
            self,
            Reason::EjectedConsecutive
                | Reason::EjectedProbe
                | Reason::EjectedConsecutive5xx
                | Reason::EjectedGatewayFailure
                | Reason::EjectedLocalOrigin
                | Reason::EjectedSuccessRate
                | Reason::EjectedFailurePercentage
        )
    }

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Added => "added",
            Reason::Removed => "removed",
            Reason::AdminUp => "admin_up",
            Reason::AdminDrain => "admin_drain",
            Reason::AdminDown => "admin_down",
            Reason::ChecksPassed => "checks_passed",
            Reason::ChecksFailed => "checks_failed",
            Reason::EjectedConsecutive => "ejected_consecutive",
            Reason::EjectedProbe => "ejected_probe",
            Reason::EjectedConsecutive5xx => "ejected_consecutive_5xx",
            Reason::EjectedGatewayFailure => "ejected_gateway_failure",
            Reason::EjectedLocalOrigin => "ejected_local_origin",
            Reason::EjectedSuccessRate => "ejected_success_rate",
            Reason::EjectedFailurePercentage => "ejected_failure_percentage",
            Reason::Probation => "probation",
            Reason::Readmitted => "readmitted",
            Reason::BehindUp => "behind_up",
            Reason::BehindDown => "behind_down",
            Reason::Resolved => "resolved",
            Reason::Unresolved => "unresolved",
        }
    }
}

/// A change of one input of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The target.
    pub target: TargetId,
    /// The reason.
    pub reason: Reason,
    /// Whether it was eligible before.
    pub was_eligible: bool,
    /// Whether it is now.
    pub is_eligible: bool,
}

/// A new value of one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The operator's setting.
    Admin(Admin),
    /// Whether checks find it up.
    Active(bool),
    /// The outcome of its requests.
    Passive(Passive),
    /// Whether the node behind it can take a request.
    Behind(bool),
}

#[derive(Clone, Copy, Debug)]
struct State {
    admin: Admin,
    active: bool,
    passive: Passive,
    behind: bool,
    /// The reasons of the last two.
    because: (Reason, Reason),
}

const NEW: State = State {
    admin: Admin::Up,
    active: true,
    passive: Passive::In,
    behind: true,
    because: (Reason::Added, Reason::Added),
};

/// The eligibility of the targets of one balancer.
#[derive(Clone, Debug, Default)]
pub struct Eligibility {
    states: Vec<State>,
    eligible: Bits,
}

impl Eligibility {
    /// `n` targets with nothing against them.
    pub fn new(n: u32) -> Eligibility {
        let mut all = Eligibility::default();
        TargetId::all(n).for_each(|t| all.add(t));
        all
    }

    /// Adds a target, at the index of a removed one or the next.
    pub fn add(&mut self, target: TargetId) {
        let i = target.index();
        if i >= self.states.len() {
            self.states.resize(i + 1, NEW);
            self.eligible.grow(target.0 + 1);
        }
        self.states[i] = NEW;
        self.eligible.set(target.0, true);
    }

    /// Whether all inputs are in favour.
    pub fn is_eligible(&self, target: TargetId) -> bool {
        self.eligible.has(target.0)
    }

    /// Whether a request may be sent to it: eligible, or on probation with nothing else against it.
    pub fn may_be_picked(&self, target: TargetId) -> bool {
        self.states.get(target.index()).is_some_and(|s| match s.admin {
            Admin::Up => s.active && s.behind && s.passive != Passive::Out,
            Admin::Forced => s.behind,
            Admin::Drain | Admin::Down => false,
        })
    }

    /// Whether it may be picked when health is ignored: only the operator's setting counts.
    pub fn is_up_by_admin(&self, target: TargetId) -> bool {
        self.states.get(target.index()).is_some_and(|s| matches!(s.admin, Admin::Up | Admin::Forced))
    }

    /// The outcome of its requests.
    pub fn passive(&self, target: TargetId) -> Passive {
        self.states.get(target.index()).map_or(Passive::In, |s| s.passive)
    }

    /// The operator's setting.
    pub fn admin(&self, target: TargetId) -> Admin {
        self.states.get(target.index()).map_or(Admin::Up, |s| s.admin)
    }

    /// The reasons against a target: one of each input that excludes it.
    pub fn against(&self, target: TargetId) -> impl Iterator<Item = Reason> {
        let reasons = self.states.get(target.index()).map(|s| {
            let admin = match s.admin {
                Admin::Up | Admin::Forced => None,
                Admin::Drain => Some(Reason::AdminDrain),
                Admin::Down => Some(Reason::AdminDown),
            };
            let passive = (s.passive != Passive::In).then_some(s.because.0);
            let behind = (!s.behind).then_some(s.because.1);
            [admin, (!s.active).then_some(Reason::ChecksFailed), passive, behind]
        });
        reasons.into_iter().flatten().flatten()
    }

    /// Changes one input; returns nothing if it had that value.
    pub fn set(&mut self, target: TargetId, input: Input, reason: Reason) -> Option<Transition> {
        let state = self.states.get_mut(target.index())?;
        let before = (state.admin, state.active, state.passive, state.behind);
        match input {
            Input::Admin(admin) => state.admin = admin,
            Input::Active(up) => state.active = up,
            Input::Passive(passive) => (state.passive, state.because.0) = (passive, reason),
            Input::Behind(up) => (state.behind, state.because.1) = (up, reason),
        }
        let after = (state.admin, state.active, state.passive, state.behind);
        let was_eligible = self.eligible.has(target.0);
        let is_eligible =
            after == (Admin::Up, true, Passive::In, true) || matches!(after, (Admin::Forced, _, _, true));
        self.eligible.set(target.0, is_eligible);
        (before != after).then_some(Transition { target, reason, was_eligible, is_eligible })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All combinations of the inputs against the word "and".
    #[test]
    fn inputs_are_anded() {
        for admin in [Admin::Up, Admin::Forced, Admin::Drain, Admin::Down] {
            for active in [true, false] {
                for passive in [Passive::In, Passive::Out, Passive::Probation] {
                    for behind in [true, false] {
                        let mut all = Eligibility::new(3);
                        all.set(TargetId(1), Input::Behind(behind), Reason::BehindDown);
                        all.set(TargetId(1), Input::Passive(passive), Reason::EjectedConsecutive);
                        all.set(TargetId(1), Input::Active(active), Reason::ChecksFailed);
                        all.set(TargetId(1), Input::Admin(admin), Reason::AdminDrain);
                        let rest = admin == Admin::Up && active && behind;
                        let forced = admin == Admin::Forced && behind;
                        assert_eq!(all.is_eligible(TargetId(1)), rest && passive == Passive::In || forced);
                        assert_eq!(all.may_be_picked(TargetId(1)), rest && passive != Passive::Out || forced);
                        assert_eq!(
                            all.is_up_by_admin(TargetId(1)),
                            matches!(admin, Admin::Up | Admin::Forced)
                        );
                        assert!(all.is_eligible(TargetId(0)) && all.is_eligible(TargetId(2)));
                    }
                }
            }
        }
    }

    #[test]
    fn what_speaks_against_a_target_is_named() {
        let mut all = Eligibility::new(2);
        let against = |all: &Eligibility| all.against(TargetId(0)).map(Reason::name).collect::<Vec<_>>();
        assert!(against(&all).is_empty());
        all.set(TargetId(0), Input::Behind(false), Reason::Unresolved);
        all.set(TargetId(0), Input::Passive(Passive::Out), Reason::EjectedSuccessRate);
        all.set(TargetId(0), Input::Active(false), Reason::ChecksFailed);
        all.set(TargetId(0), Input::Admin(Admin::Drain), Reason::AdminDrain);
        assert_eq!(against(&all), ["admin_drain", "checks_failed", "ejected_success_rate", "unresolved"]);
        all.set(TargetId(0), Input::Passive(Passive::Probation), Reason::Probation);
        all.set(TargetId(0), Input::Admin(Admin::Up), Reason::AdminUp);
        all.set(TargetId(0), Input::Active(true), Reason::ChecksPassed);
        assert_eq!(against(&all), ["probation", "unresolved"]);
        assert_eq!((all.against(TargetId(1)).count(), all.against(TargetId(9)).count()), (0, 0));
    }

    #[test]
    fn a_change_says_what_it_changed() {
        let mut all = Eligibility::new(1);
        let down = all.set(TargetId(0), Input::Active(false), Reason::ChecksFailed);
        let want = Transition {
            target: TargetId(0),
            reason: Reason::ChecksFailed,
            was_eligible: true,
            is_eligible: false,
        };
        assert_eq!(down, Some(want));
        assert_eq!(all.set(TargetId(0), Input::Active(false), Reason::ChecksFailed), None);
        let out = all.set(TargetId(0), Input::Passive(Passive::Out), Reason::EjectedConsecutive);
        assert!(out.is_some_and(|t| !t.was_eligible && !t.is_eligible));
        assert_eq!(all.set(TargetId(9), Input::Active(true), Reason::ChecksPassed), None);
        all.add(TargetId(2));
        assert!(
            all.is_eligible(TargetId(2)) && !all.is_eligible(TargetId(0)) && all.may_be_picked(TargetId(1))
        );
        assert_eq!(Reason::Probation.name(), "probation");
    }
}
