//! Whether targets fail that only a doubted list lacks: counts of checks, ejections and connections that failed, which
//! every thread has anyway. They are asked for while there is such a target, and of those targets alone.

use super::fleet::MemberKey;
use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use crate::metrics::counts::OutcomeLabel;
use crate::nodes::Node;
use crate::threads::event_loop::Loop;
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_plan::fleets::Member;
use weir_plan::{Edge, Spec};
use weir_policy::{Kind, TargetId};

/// A member: the fleet's number in the topology, and its key.
pub(crate) type Withdrawn = (usize, MemberKey);

/// A question about the targets that these members are, in one epoch.
pub(crate) struct Question {
    epoch: u32,
    members: Vec<Withdrawn>,
    /// By balancer: each such target with the number of its member here.
    targets: Vec<(NodeId, Vec<(TargetId, usize)>)>,
}

/// What a thread says: the failures of each member so far; `None`: it has another epoch.
pub(crate) type Answer = Option<Vec<u64>>;

impl Question {
    /// About these members, in what is served.
    pub fn new(blueprint: &Blueprint, members: Vec<Withdrawn>) -> Question {
        let (epoch, point) = (blueprint.epoch, &blueprint.point);
        let mut question = Question { epoch, members, targets: Vec::new() };
        let Some(fleets) = &point.fleets else { return question };
        let numbers: BTreeMap<&Withdrawn, usize> = question.members.iter().zip(0..).collect();
        let mut targets = Vec::new();
        let number = |member: &Member| {
            let listed =
                fleets.all.get(member.fleet as usize)?.listed.get(member.number as usize)?.as_ref()?;
            let key = MemberKey { addr: listed.addr.clone(), id: listed.id.clone() };
            numbers.get(&(member.fleet as usize, key)).copied()
        };
        for (id, node) in (0..).zip(&point.nodes) {
            let (Spec::Lb(_), Edge::List(list)) = (blueprint.spec(id), node.to) else { continue };
            let Some(who) = fleets.of_list(list) else { continue };
            let of_node: BTreeMap<NodeId, usize> = point.lists[list as usize]
                .iter()
                .zip(who)
                .filter_map(|(node, member)| Some((*node, number(member.as_ref()?)?)))
                .collect();
            let indices = (0..).map(TargetId).zip(blueprint.targets(id));
            let found = indices.filter_map(|(target, node)| Some((target, *of_node.get(node.as_ref()?)?)));
            targets.push((id, found.collect()));
        }
        question.targets = targets;
        question
    }

    /// The answer of a thread.
    pub fn answer(&self, lp: &Rc<Loop>) -> Answer {
        let graph = lp.graph().filter(|graph| graph.blueprint.epoch == self.epoch)?;
        let mut sums = vec![0; self.members.len()];
        for (lb, targets) in &self.targets {
            let Node::Lb(lb) = graph.node(*lb) else { continue };
            for (target, member) in targets {
                let counts = lb.counts.targets.get(target.index());
                let failed = OutcomeLabel(Some(Kind::ConnectFailed));
                sums[*member] += counts.map_or(0, |counts| counts.ended.get(failed));
                sums[*member] += lp.monitor().map_or(0, |monitor| monitor.failures(lb.id, *target));
            }
        }
        Some(sums)
    }

    /// The members that it is about.
    pub fn members(&self) -> &[Withdrawn] {
        &self.members
    }
}

/// The failures that were known when a member was first asked about, by thread.
#[derive(Debug, Default)]
pub(crate) struct Failures(BTreeMap<Withdrawn, BTreeMap<usize, u64>>);

impl Failures {
    /// The members of which a failure is known that was not when they were first asked about. Others than these are
    /// forgotten.
    pub fn new_in(&mut self, members: &[Withdrawn], answers: &[Answer]) -> Vec<Withdrawn> {
        let mut failed = Vec::new();
        let mut kept = BTreeMap::new();
        for (number, member) in members.iter().enumerate() {
            let mut known = self.0.remove(member).unwrap_or_default();
            let said = answers.iter().enumerate().filter_map(|(thread, said)| Some((thread, said.as_ref()?)));
            let mut has_failed = false;
            for (thread, sums) in said {
                let now = sums.get(number).copied().unwrap_or_default();
                has_failed |= now > *known.entry(thread).or_insert(now);
            }
            if has_failed {
                failed.push(member.clone());
            }
            kept.insert(member.clone(), known);
        }
        self.0 = kept;
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_before_does_not_count_and_silent_threads_say_nothing() {
        let of = |addr: &str| (0, MemberKey { addr: addr.to_owned(), id: None });
        let (a, b) = (of("a:1"), of("b:1"));
        let mut failures = Failures::default();
        let both = [a.clone(), b.clone()];
        assert_eq!(failures.new_in(&both, &[Some(vec![7, 0]), None]), []);
        // The second thread answers for the first time.
        assert_eq!(failures.new_in(&both, &[Some(vec![7, 0]), Some(vec![3, 3])]), []);
        assert_eq!(failures.new_in(&both, &[None, Some(vec![3, 4])]), std::slice::from_ref(&b));
        // One that was withdrawn again is another question.
        assert_eq!(failures.new_in(&[a], &[Some(vec![7]), Some(vec![3])]), []);
        assert_eq!(failures.new_in(&[b], &[Some(vec![9]), Some(vec![9])]), []);
    }
}
