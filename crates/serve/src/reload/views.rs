//! The targets of balancers in a run of a verification, by what these have seen of fleets. A list of a source may be doubted:
//! the rules are those of [`weir_policy::fleet`], by which simulations and `find.*` go.

use crate::exchange::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::fleets::{Sight, SourceDoubt, TargetList, TargetNews, Timetable};
use weir_policy::fleet::{Entry, MemberChange, Members, State};

/// The targets of the balancers whose targets change, each in the order of their indices.
pub(super) type TargetLists = BTreeMap<NodeId, Vec<NodeId>>;

/// What balancers have seen.
pub(super) struct Views {
    targets: TargetLists,
    /// What the lists of a source have come to at a balancer, by balancer and number of the source.
    lists: BTreeMap<(NodeId, u32), Members<NodeId>>,
    /// When a balancer has last seen something, ns from the start of the run.
    seen_ns: BTreeMap<NodeId, u64>,
}

/// What one step does to the targets of balancers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TargetStep {
    /// The balancers that get targets, or lose some.
    pub changed: BTreeSet<NodeId>,
    /// Those of them that get new ones before they lose others.
    pub gains_first: BTreeSet<NodeId>,
}

impl TargetStep {
    /// Whether no balancer has other targets.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }
}

impl Views {
    /// At the start of a run.
    pub fn new(timetable: &Timetable) -> Views {
        let members = |of: &SourceDoubt| {
            let mut members = Members::new(of.doubt);
            members.list(0, &entries(&of.first), &mut Vec::new());
            ((of.lb, of.source), members)
        };
        Views {
            targets: timetable.first.iter().cloned().collect(),
            lists: timetable.doubts.iter().map(members).collect(),
            seen_ns: BTreeMap::new(),
        }
    }

    /// The targets of each balancer.
    pub fn targets(&self) -> &TargetLists {
        &self.targets
    }

    /// When the next grace ends, ns from the start of the run; `None`: no list that was doubted lacks a target.
    pub fn next_deadline(&self) -> Option<u64> {
        self.lists.values().filter_map(Members::next_deadline).min()
    }

    /// A balancer sees what is new to it.
    pub fn see(&mut self, sight: &Sight, step: &mut TargetStep) {
        self.seen_ns.insert(sight.lb, sight.at_ns);
        let mut changes = Vec::with_capacity(sight.news.len());
        for of in &sight.news {
            match of {
                TargetNews::Add(target) => {
                    changes.push(MemberChange::Add { key: *target, weight: 1.0, drain: false });
                }
                TargetNews::Remove(target) => changes.push(MemberChange::Remove { key: *target }),
                TargetNews::List(TargetList { source, targets }) => {
                    if let Some(members) = self.lists.get_mut(&(sight.lb, *source)) {
                        members.list(sight.at_ns, &entries(targets), &mut changes);
                    }
                }
            }
        }
        apply(&mut self.targets, sight.lb, &changes, step);
    }

    /// A target has failed at a balancer: if the last list lacks it, it is none any more. What failed before the balancer saw
    /// that list counts for nothing: the report of it came late.
    pub fn fail(&mut self, lb: NodeId, target: NodeId, now_ns: u64, step: &mut TargetStep) {
        if self.seen_ns.get(&lb).is_some_and(|seen_ns| now_ns < *seen_ns) {
            return;
        }
        let mut changes = Vec::new();
        for (_, members) in self.lists.range_mut((lb, 0)..=(lb, u32::MAX)) {
            members.failed(now_ns, &target, &mut changes);
        }
        apply(&mut self.targets, lb, &changes, step);
    }

    /// Ends the graces that are over.
    pub fn end_graces(&mut self, now_ns: u64, step: &mut TargetStep) {
        for ((lb, _), members) in &mut self.lists {
            let mut changes = Vec::new();
            members.tick(now_ns, &mut changes);
            apply(&mut self.targets, *lb, &changes, step);
        }
    }
}

/// A list of a source.
fn entries(targets: &[NodeId]) -> Vec<Entry<NodeId>> {
    targets.iter().map(|target| Entry { key: *target, state: State::Up, weight: 1.0 }).collect()
}

/// Changes the targets of a balancer. New ones are behind all others, as their indices are.
fn apply(targets: &mut TargetLists, lb: NodeId, changes: &[MemberChange<NodeId>], step: &mut TargetStep) {
    let Some(first) = changes.first() else { return };
    step.changed.insert(lb);
    if matches!(first, MemberChange::Add { .. }) {
        step.gains_first.insert(lb);
    }
    let list = targets.entry(lb).or_default();
    for change in changes {
        match change {
            MemberChange::Add { key, .. } => list.push(*key),
            MemberChange::Remove { key } => list.retain(|own| own != key),
            // Weights are those of the file, and no member drains.
            MemberChange::Set { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::fleet::Doubt;

    const LB: NodeId = 9;

    fn only() -> BTreeSet<NodeId> {
        BTreeSet::from([LB])
    }

    /// A balancer with targets 1 to 4 of a source that may be doubted, and target 7 of another.
    fn views() -> Views {
        let doubt = Doubt { shrink: Some(0.5), grace_ns: 100 };
        Views::new(&Timetable {
            first: vec![(LB, vec![1, 2, 3, 4, 7])],
            doubts: vec![SourceDoubt { lb: LB, source: 0, doubt, first: vec![1, 2, 3, 4] }],
            ..Timetable::default()
        })
    }

    fn see(views: &mut Views, at_ns: u64, news: &[TargetNews]) -> TargetStep {
        let mut step = TargetStep::default();
        views.see(&Sight { at_ns, lb: LB, news: news.to_vec() }, &mut step);
        step
    }

    fn list(targets: &[NodeId]) -> TargetNews {
        TargetNews::List(TargetList { source: 0, targets: targets.to_vec() })
    }

    fn fail(views: &mut Views, target: NodeId, now_ns: u64) -> TargetStep {
        let mut step = TargetStep::default();
        views.fail(LB, target, now_ns, &mut step);
        step
    }

    #[test]
    fn changes_are_believed_in_their_order() {
        let mut views = views();
        let step = see(&mut views, 5, &[TargetNews::Add(8), TargetNews::Remove(7)]);
        assert_eq!((step.changed, step.gains_first), (only(), only()));
        assert_eq!(views.targets()[&LB], [1, 2, 3, 4, 8]);
        let step = see(&mut views, 6, &[TargetNews::Remove(8), TargetNews::Add(7)]);
        assert_eq!((step.changed, step.gains_first), (only(), BTreeSet::new()));
        assert_eq!(views.targets()[&LB], [1, 2, 3, 4, 7]);
    }

    /// A failure counts while the last list lacks the target, and not before.
    #[test]
    fn a_withdrawn_target_that_fails_is_none_any_more() {
        let mut views = views();
        assert_eq!((fail(&mut views, 2, 4).is_empty(), views.next_deadline()), (true, None));
        assert!(see(&mut views, 5, &[list(&[1])]).is_empty());
        assert_eq!(views.next_deadline(), Some(105));
        assert!(fail(&mut views, 2, 4).is_empty(), "it failed before the list");
        assert_eq!(fail(&mut views, 2, 6).changed, only());
        // It is gone, listed, or of no source.
        assert!([2, 1, 7].into_iter().all(|target| fail(&mut views, target, 7).is_empty()));
        assert_eq!(views.targets()[&LB], [1, 3, 4, 7]);
        // The one that had gone is a new target.
        let step = see(&mut views, 50, &[list(&[1, 2, 3, 4])]);
        assert_eq!((step.changed, views.next_deadline()), (only(), None));
        assert_eq!(views.targets()[&LB], [1, 3, 4, 7, 2]);
    }

    #[test]
    fn a_grace_ends() {
        let mut views = views();
        assert!(see(&mut views, 5, &[list(&[])]).is_empty());
        let end = |views: &mut Views, now_ns| {
            let mut step = TargetStep::default();
            views.end_graces(now_ns, &mut step);
            step
        };
        assert!(end(&mut views, 104).is_empty());
        assert_eq!((end(&mut views, 105).changed, views.next_deadline()), (only(), None));
        assert_eq!(views.targets()[&LB], [7]);
    }
}
