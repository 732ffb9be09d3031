//! The targets that subsets are made of: which exist, and their names where a policy uses them.

use crate::fleet::draw;
use crate::{TargetChange, TargetId, TargetNames};
use std::collections::{BTreeMap, BTreeSet};
use weir_stats::Key;

/// The targets of one balancer, by index.
#[derive(Clone, Debug)]
pub(super) struct Population {
    exists: Vec<bool>,
    count: u32,
    /// Empty names where the policy does not use them.
    names: Vec<Box<str>>,
    keeps_names: bool,
}

/// One change of the targets.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// By index.
    pub leavers: Vec<TargetId>,
    /// In the order in which they were given.
    pub newcomers: Vec<Newcomer>,
}

/// A target that joins.
#[derive(Clone, Debug)]
pub(super) struct Newcomer {
    target: TargetId,
    name: Box<str>,
}

impl Step {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.leavers.is_empty() && self.newcomers.is_empty()
    }

    /// The newcomers in a drawn order.
    pub fn shuffled(&self, key: Key) -> Vec<TargetId> {
        let targets: Vec<TargetId> = self.newcomers.iter().map(|new| new.target).collect();
        let n = targets.len();
        draw(targets, n, key)
    }
}

impl Population {
    /// No targets yet.
    pub fn new(keeps_names: bool) -> Population {
        Population { exists: Vec::new(), count: 0, names: Vec::new(), keeps_names }
    }

    /// How many exist.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Those that exist, by index.
    pub fn iter(&self) -> impl Iterator<Item = TargetId> + '_ {
        TargetId::all(self.exists.len() as u32).filter(|&target| self.exists(target))
    }

    pub fn exists(&self, target: TargetId) -> bool {
        self.exists.get(target.index()) == Some(&true)
    }

    /// The name of a target; empty where none was given.
    pub fn name(&self, target: TargetId) -> &str {
        self.names.get(target.index()).map_or("", |name| name)
    }

    /// The step that these changes make: a target that is added and removed again neither joins nor leaves, and one that
    /// takes the index of a removed one joins after that one has left.
    pub fn plan<'a>(&self, changes: impl Iterator<Item = TargetChange<'a>>) -> Step {
        let (mut leavers, mut newcomers) = (BTreeSet::new(), Vec::new());
        // The place of a newcomer in that list.
        let mut joins = BTreeMap::new();
        for change in changes {
            let target = change.target();
            let is_there = joins.contains_key(&target) || self.exists(target) && !leavers.contains(&target);
            match change {
                TargetChange::Remove(_) if !is_there => {}
                TargetChange::Remove(_) => match joins.remove(&target) {
                    Some(at) => newcomers[at] = None,
                    None => _ = leavers.insert(target),
                },
                TargetChange::Add { name, .. } => {
                    debug_assert!(!is_there, "that index is taken");
                    if !is_there {
                        joins.insert(target, newcomers.len());
                        newcomers.push(Some(self.newcomer(target, name)));
                    }
                }
            }
        }
        let newcomers = newcomers.into_iter().flatten().collect();
        Step { leavers: leavers.into_iter().collect(), newcomers }
    }

    /// The step from the targets before to those that exist now.
    pub fn compare(&self, exists: &[bool], names: &TargetNames) -> Step {
        let n = exists.len().max(self.exists.len()) as u32;
        let exists_now = |target: TargetId| exists.get(target.index()) == Some(&true);
        let mut step = Step::default();
        for target in TargetId::all(n) {
            match (self.exists(target), exists_now(target)) {
                (true, false) => step.leavers.push(target),
                (false, true) => {
                    let name = names.get(target.index()).map_or("", |name| name);
                    step.newcomers.push(self.newcomer(target, name));
                }
                _ => {}
            }
        }
        step
    }

    fn newcomer(&self, target: TargetId, name: &str) -> Newcomer {
        Newcomer { target, name: if self.keeps_names { name.into() } else { Box::default() } }
    }

    pub fn remove(&mut self, leavers: &[TargetId]) {
        leavers.iter().for_each(|target| self.exists[target.index()] = false);
        self.count -= leavers.len() as u32;
    }

    pub fn add(&mut self, newcomers: &[Newcomer]) {
        for Newcomer { target, name } in newcomers {
            let i = target.index();
            if i >= self.exists.len() {
                self.exists.resize(i + 1, false);
                self.names.resize(if self.keeps_names { i + 1 } else { 0 }, Box::default());
            }
            self.exists[i] = true;
            if self.keeps_names {
                self.names[i].clone_from(name);
            }
        }
        self.count += newcomers.len() as u32;
    }

    /// Brings targets in the order of their names, which is the same in every process; of equal names by index. Most are in
    /// order already, which this sort makes use of.
    pub fn sort_by_name(&self, targets: &mut [TargetId]) {
        targets.sort_by(|a, b| self.name(*a).cmp(self.name(*b)).then(a.cmp(b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_what_is_left_of_its_changes() {
        let mut all = Population::new(true);
        let start = all.compare(&[true, true, false, true], &TargetNames::new(&["a", "b", "c", "d"]));
        all.add(&start.newcomers);
        assert_eq!((all.count(), all.name(TargetId(3))), (3, "d"));
        let add = |i, name| TargetChange::Add { target: TargetId(i), weight: 1.0, name };
        let remove = |i| TargetChange::Remove(TargetId(i));
        let step =
            all.plan([add(4, "e"), remove(0), add(0, "f"), remove(4), remove(0), remove(2)].into_iter());
        assert_eq!((step.leavers.as_slice(), step.newcomers.len()), (&[TargetId(0)][..], 0));
        let step = all.plan([remove(1), add(1, "g")].into_iter());
        all.remove(&step.leavers);
        all.add(&step.newcomers);
        assert_eq!((all.count(), all.name(TargetId(1))), (3, "g"));
        assert!(all.compare(&[true, true, false, true], &TargetNames::default()).is_empty());
        let mut sorted: Vec<TargetId> = all.iter().collect();
        all.sort_by_name(&mut sorted);
        assert_eq!(sorted, [0, 3, 1].map(TargetId));
    }
}
