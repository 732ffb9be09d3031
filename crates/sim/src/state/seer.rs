//! A balancer that sees members of fleets come and go.

use crate::code::Code;
use crate::code::changes::{SeenTargets, ViewSite};
use weir_plan::fleets::Member;
use weir_policy::key::distinct;
use weir_policy::sticky::Simulated;
use weir_policy::{Balancer, TargetChange, TargetId, Upstream};

/// A member that is a target from now on, or no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Add(Member),
    Remove(Member),
}

impl Move {
    pub fn member(self) -> Member {
        match self {
            Move::Add(member) | Move::Remove(member) => member,
        }
    }
}

/// A balancer that sees a change.
pub(crate) enum Seer<'s> {
    /// One with something around it, for all loops.
    Guarded(GuardedSeer<'s>),
    /// One with nothing around it: what it is on each loop.
    Plain(Vec<PlainSeer<'s>>),
}

/// What of a balancer with something around it a change concerns.
pub(crate) struct GuardedSeer<'s> {
    pub upstream: &'s mut Upstream,
    pub targets: &'s mut SeenTargets,
    pub sticky: Option<&'s mut Simulated>,
    /// The names of all that are ever in its list; empty where they do not matter.
    pub names: &'s [String],
}

/// What of a balancer with nothing around it a change concerns.
pub(crate) struct PlainSeer<'s> {
    pub balancer: &'s mut Balancer,
    pub targets: &'s mut SeenTargets,
}

impl Seer<'_> {
    /// Changes the targets, if there is a move. Returns whether there is.
    pub(super) fn apply(&mut self, code: &Code, site: &ViewSite, moves: &[Move], now_ns: u64) -> bool {
        let place = |of: &Move| (site.places[&of.member()], matches!(of, Move::Add(_)));
        let places: Vec<(u32, bool)> = moves.iter().map(place).collect();
        self.apply_places(code, site, &places, now_ns)
    }

    /// Adds (`true`) and removes the targets at places of its list. Returns whether there is any.
    pub(super) fn apply_places(
        &mut self,
        code: &Code,
        site: &ViewSite,
        places: &[(u32, bool)],
        now_ns: u64,
    ) -> bool {
        if places.is_empty() {
            return false;
        }
        let weights = &code.weights[site.list as usize];
        match self {
            Seer::Guarded(of) => {
                let changes = changes(of.targets, of.names, weights, places);
                if let Some(sticky) = &mut of.sticky {
                    set_cookies(sticky, of.targets, of.names, &changes);
                }
                of.upstream.change_targets(now_ns, &changes);
            }
            Seer::Plain(loops) => {
                for of in loops {
                    let changes = changes(of.targets, &[], weights, places);
                    of.balancer.change_targets(now_ns, &changes);
                }
            }
        }
        true
    }

    /// Whether there is a target at a place of its list.
    pub(super) fn has(&self, place: u32) -> bool {
        match self {
            Seer::Guarded(of) => of.targets.target(place).is_some(),
            Seer::Plain(loops) => loops.iter().any(|of| of.targets.target(place).is_some()),
        }
    }
}

/// What comes (`true`) and goes at places of a balancer's list, as changes of its targets.
fn changes<'a>(
    targets: &mut SeenTargets,
    names: &'a [String],
    weights: &[f64],
    places: &[(u32, bool)],
) -> Vec<TargetChange<'a>> {
    let mut changes: Vec<TargetChange<'_>> = Vec::with_capacity(places.len());
    for &(place, comes) in places {
        if comes {
            let target = TargetId(targets.add(place));
            let name = names.get(place as usize).map_or("", String::as_str);
            changes.push(TargetChange::Add { target, weight: weights[place as usize], name });
        } else {
            changes.extend(targets.remove(place).map(|t| TargetChange::Remove(TargetId(t))));
        }
    }
    changes
}

/// A cookie never means another member than the one that set it: each has the name that it would have among all that ever
/// are.
fn set_cookies(
    sticky: &mut Simulated,
    targets: &SeenTargets,
    names: &[String],
    changes: &[TargetChange<'_>],
) {
    let names = distinct(names);
    for change in changes {
        match *change {
            TargetChange::Add { target, .. } => {
                let name = names.get(targets.place(target.0) as usize);
                sticky.set(target, name.map(String::as_str));
            }
            TargetChange::Remove(target) => sticky.set(target, None),
        }
    }
}
