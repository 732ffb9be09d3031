//! The targets of a balancer: their weights, and which are eligible or removed. It changes while requests are in
//! flight.
//!
//! A target keeps its index for as long as it exists, so that its requests in flight stay counted; the index of a
//! removed one is free once nothing is in flight there. Eligibility is separate from weight: a target comes back with
//! the weight that it had. Where loops prefer a subset of the targets ([`crate::subset`]) the others are hidden: they may
//! be picked, but no pick sees them until they are shown.

use crate::{TargetChange, TargetId, TargetNames};

/// The greatest weight: plans and operators are held to it. A greater one counts as this, so that no sum overflows.
pub const GREATEST_WEIGHT: f64 = 1_000_000.0;

/// A weight with which no sum overflows; what is not a number is 0.
fn bounded(weight: f64) -> f64 {
    if weight.is_nan() { 0.0 } else { weight.clamp(0.0, GREATEST_WEIGHT) }
}

/// The targets of one balancer.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// The configured weight; 0 for removed targets.
    weights: Vec<f64>,
    /// The weight that a pick sees: 0 if not eligible, or hidden.
    effective: Vec<f64>,
    eligible: Vec<bool>,
    gone: Vec<bool>,
    /// Whether no pick sees it, of the first targets; those beyond are seen. Empty without subsets.
    hidden: Vec<bool>,
    /// The name that a hashing policy uses for a target; empty for other policies.
    names: TargetNames,
    /// Whether targets have names, also those that are added where there was none.
    is_named: bool,
}

impl Roster {
    /// Targets of these weights, all eligible.
    pub fn new(weights: &[f64]) -> Roster {
        let weights: Vec<f64> = weights.iter().copied().map(bounded).collect();
        Roster {
            effective: weights.clone(),
            eligible: vec![true; weights.len()],
            gone: vec![false; weights.len()],
            hidden: Vec::new(),
            names: TargetNames::default(),
            is_named: false,
            weights,
        }
    }

    /// Gives them names, one each.
    #[must_use]
    pub fn named(mut self, names: impl Into<TargetNames>) -> Roster {
        self.names = names.into();
        self.is_named = self.names.len() == self.weights.len();
        self
    }

    /// Indices in use, those of removed targets included.
    pub fn len(&self) -> u32 {
        self.weights.len() as u32
    }

    /// Whether there never was a target.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Configured weights; 0 for removed targets.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weights that a pick sees: 0 for targets that are removed, not eligible or hidden.
    pub fn effective(&self) -> &[f64] {
        &self.effective
    }

    /// Names, if they were given.
    pub fn names(&self) -> &TargetNames {
        &self.names
    }

    /// Whether the target exists.
    pub fn exists(&self, target: TargetId) -> bool {
        self.gone.get(target.index()) == Some(&false)
    }

    /// Whether the target is eligible (it may still have weight 0).
    pub fn is_eligible(&self, target: TargetId) -> bool {
        self.eligible.get(target.index()) == Some(&true)
    }

    /// Whether the target has this weight and is eligible as said, or does not exist.
    #[inline]
    pub(crate) fn agrees(&self, target: TargetId, weight: f64, eligible: bool) -> bool {
        let i = target.index();
        self.gone[i] || self.eligible[i] == eligible && self.weights[i] == weight
    }

    /// The weight of a target that may be picked, shown or hidden: 0 if it is removed or not eligible.
    pub fn open_weight(&self, target: TargetId) -> f64 {
        if self.is_eligible(target) { self.weights[target.index()] } else { 0.0 }
    }

    /// Whether a target may be picked, shown or hidden.
    pub fn is_open(&self, target: TargetId) -> bool {
        self.open_weight(target) > 0.0
    }

    /// Whether no pick sees the target though it may be picked.
    pub fn is_hidden(&self, target: TargetId) -> bool {
        self.hidden.get(target.index()) == Some(&true)
    }

    /// Sets whether a pick sees the target. Returns whether that makes a difference now.
    pub fn set_hidden(&mut self, target: TargetId, hidden: bool) -> bool {
        let i = target.index();
        if i >= self.hidden.len() {
            if !hidden || i >= self.weights.len() {
                return false;
            }
            self.hidden.resize(self.weights.len(), false);
        }
        self.hidden[i] = hidden;
        self.see(target)
    }

    /// Hides what is hidden in another roster of the same targets.
    pub(crate) fn hide_as(&mut self, other: &Roster) {
        self.hidden.clone_from(&other.hidden);
        TargetId::all(self.len()).for_each(|target| _ = self.see(target));
    }

    /// The removed targets.
    pub fn gone(&self) -> impl Iterator<Item = TargetId> + '_ {
        TargetId::all(self.len()).filter(|t| self.gone[t.index()])
    }

    fn see(&mut self, target: TargetId) -> bool {
        let i = target.index();
        let sees = if self.eligible[i] && !self.is_hidden(target) { self.weights[i] } else { 0.0 };
        let changed = sees != self.effective[i];
        self.effective[i] = sees;
        changed
    }

    /// Sets a weight. Returns whether a pick sees the difference. A removed target is left alone.
    pub fn set_weight(&mut self, target: TargetId, weight: f64) -> bool {
        if !self.exists(target) {
            return false;
        }
        self.weights[target.index()] = bounded(weight);
        self.see(target)
    }

    /// Sets whether it may be picked. Returns whether a pick sees the difference.
    pub fn set_eligible(&mut self, target: TargetId, eligible: bool) -> bool {
        if !self.exists(target) {
            return false;
        }
        self.eligible[target.index()] = eligible;
        self.see(target)
    }

    /// Adds and removes targets, in this order. `names`: of all targets after that.
    pub fn change<'a>(&mut self, changes: impl Iterator<Item = TargetChange<'a>>, names: &TargetNames) {
        for change in changes {
            match change {
                TargetChange::Add { target, weight, .. } => self.add_at(target, weight),
                TargetChange::Remove(target) => self.remove(target),
            }
        }
        if self.is_named {
            self.names.clone_from(names);
        }
    }

    /// Adds an eligible target at a free index or the next one.
    fn add_at(&mut self, target: TargetId, weight: f64) {
        let i = target.index();
        debug_assert!(i <= self.weights.len() && !self.exists(target), "that index is taken");
        if i == self.weights.len() {
            self.weights.push(0.0);
            self.effective.push(0.0);
            self.eligible.push(true);
            self.gone.push(false);
        }
        self.weights[i] = bounded(weight);
        (self.eligible[i], self.gone[i]) = (true, false);
        self.see(target);
    }

    /// Removes a target. Its requests in flight continue.
    pub(crate) fn remove(&mut self, target: TargetId) {
        if self.exists(target) {
            let i = target.index();
            self.weights[i] = 0.0;
            (self.eligible[i], self.gone[i]) = (false, true);
            self.see(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(roster: &Roster) -> String {
        roster.names().iter().map(|name| &**name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn eligibility_is_apart_from_weight() {
        let mut roster = Roster::new(&[1.0, 2.0, 0.0]);
        assert!(roster.set_eligible(TargetId(1), false) && !roster.set_eligible(TargetId(1), false));
        assert_eq!(roster.effective(), [1.0, 0.0, 0.0]);
        assert!(!roster.set_weight(TargetId(1), 5.0), "not seen while it is out");
        assert!(roster.set_eligible(TargetId(1), true));
        assert_eq!(roster.effective(), [1.0, 5.0, 0.0]);
        assert!(!roster.set_eligible(TargetId(2), false), "weight 0 was never picked");
        assert!(!roster.set_weight(TargetId(9), 1.0) && !roster.set_eligible(TargetId(9), true));
    }

    /// A hidden target keeps its weight and its eligibility, both of which may change meanwhile.
    #[test]
    fn a_hidden_target_is_open_and_not_seen() {
        let mut roster = Roster::new(&[1.0, 2.0, 3.0]);
        assert!(roster.set_hidden(TargetId(1), true) && !roster.set_hidden(TargetId(1), true));
        assert!(!roster.set_hidden(TargetId(9), true) && !roster.set_hidden(TargetId(9), false));
        assert_eq!(roster.effective(), [1.0, 0.0, 3.0]);
        assert!(
            roster.is_open(TargetId(1)) && roster.is_hidden(TargetId(1)) && !roster.is_hidden(TargetId(2))
        );
        assert!(!roster.set_weight(TargetId(1), 5.0), "no pick sees that");
        assert!(!roster.set_eligible(TargetId(1), false) && !roster.is_open(TargetId(1)));
        assert!(!roster.set_hidden(TargetId(1), false), "it is not eligible");
        assert!(roster.set_eligible(TargetId(1), true));
        assert_eq!((roster.effective(), roster.open_weight(TargetId(1))), (&[1.0, 5.0, 3.0][..], 5.0));
    }

    #[test]
    fn an_index_comes_back_as_another_target() {
        let mut roster = Roster::new(&[1.0, 2.0]).named(&["a", "b"]);
        roster.remove(TargetId(0));
        roster.remove(TargetId(0));
        assert_eq!((roster.effective(), roster.exists(TargetId(0))), (&[0.0, 2.0][..], false));
        assert!(!roster.set_weight(TargetId(0), 3.0) && !roster.set_eligible(TargetId(0), true));
        assert_eq!(roster.gone().collect::<Vec<_>>(), [TargetId(0)]);
        let add = |i, weight| TargetChange::Add { target: TargetId(i), weight, name: "" };
        let names = TargetNames::new(&["c", "b", "d"]);
        roster.change([add(0, 3.0), add(2, 4.0)].into_iter(), &names);
        assert!(roster.names().is_copy_of(&names), "no name is looked at");
        assert_eq!(roster.effective(), [3.0, 2.0, 4.0]);
        assert_eq!(joined(&roster), "c b d");
        assert_eq!(roster.len(), 3);
    }

    /// A fleet may begin empty; a target that is added then has a name nonetheless.
    #[test]
    fn names_begin_with_the_first_target() {
        let mut roster = Roster::new(&[]).named(TargetNames::default());
        let first = || [TargetChange::Add { target: TargetId(0), weight: 1.0, name: "a" }].into_iter();
        let names = TargetNames::new(&["a"]);
        roster.change(first(), &names);
        assert_eq!(joined(&roster), "a");
        let mut nameless = Roster::new(&[]);
        nameless.change(first(), &names);
        assert!(nameless.names().is_empty());
    }
}
