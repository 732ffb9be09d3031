//! A balancer that sees members of fleets come and go.

use crate::code::Code;
use crate::code::changes::{SeenTargets, ViewSite};
use weir_plan::fleets::Member;
use weir_policy::key::distinct;
use weir_policy::sticky::Simulated;
use weir_policy::{TargetChange, TargetId, Upstream};

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

/// What of a balancer a change concerns.
pub(crate) struct Seer<'s> {
    pub upstream: &'s mut Upstream,
    pub targets: &'s mut SeenTargets,
    pub sticky: Option<&'s mut Simulated>,
    /// The names of all that are ever in its list; empty where they do not matter.
    pub names: &'s [String],
}

impl Seer<'_> {
    /// Changes the targets, if there is a move. Returns whether there is.
    pub(super) fn apply(self, code: &Code, site: &ViewSite, moves: &[Move], now_ns: u64) -> bool {
        if moves.is_empty() {
            return false;
        }
        let weights = &code.weights[site.list as usize];
        let mut changes: Vec<TargetChange<'_>> = Vec::with_capacity(moves.len());
        for of in moves {
            let place = site.places[&of.member()];
            match of {
                Move::Add(_) => {
                    let target = TargetId(self.targets.add(place));
                    let name = self.names.get(place as usize).map_or("", String::as_str);
                    changes.push(TargetChange::Add { target, weight: weights[place as usize], name });
                }
                Move::Remove(_) => {
                    changes.extend(self.targets.remove(place).map(|t| TargetChange::Remove(TargetId(t))))
                }
            }
        }
        if let Some(sticky) = self.sticky {
            // A cookie never means another member than the one that set it: each has the name that it would have among all
            // that ever are.
            let names = distinct(self.names);
            for change in &changes {
                match *change {
                    TargetChange::Add { target, .. } => {
                        let name = names.get(self.targets.place(target.0) as usize);
                        sticky.set(target, name.map(String::as_str));
                    }
                    TargetChange::Remove(target) => sticky.set(target, None),
                }
            }
        }
        self.upstream.change_targets(now_ns, &changes);
        true
    }
}
