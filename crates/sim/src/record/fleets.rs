//! Fleets over time: how many members there are, and how evenly requests come to them.

use super::outages::Mark;
use crate::code::changes::ChangeTables;
use std::collections::BTreeMap;
use weir_plan::ChangeKind;
use weir_plan::fleets::{Step, StepKind};

/// A fleet at an instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct FleetSample {
    /// Members that have not left.
    pub members: u32,
    /// Those of them that are not listed.
    pub unlisted: u32,
    /// By number, requests that were sent to each listed member so far.
    pub sent: BTreeMap<u32, u64>,
}

/// A fleet over time, a number per part.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetOverTime {
    /// Its name.
    pub fleet: String,
    /// Members at the end of each part.
    pub members: Vec<u64>,
    /// Those of them that the registry does not list.
    pub unlisted: Vec<u64>,
    /// Requests per second to each member that is listed at the end of a part: the least, the 5th, 50th and 95th of a hundred, and the
    /// most; `None`: none is listed.
    pub requests_per_s: [Vec<Option<f64>>; 5],
}

impl FleetOverTime {
    /// From samples, each with the length of its part, ns.
    pub(crate) fn new<'s>(
        fleet: String,
        samples: impl Iterator<Item = (&'s FleetSample, u64)>,
    ) -> FleetOverTime {
        let mut own = FleetOverTime {
            fleet,
            members: Vec::new(),
            unlisted: Vec::new(),
            requests_per_s: Default::default(),
        };
        let mut before: Option<&FleetSample> = None;
        for (sample, part_ns) in samples {
            own.members.push(u64::from(sample.members));
            own.unlisted.push(u64::from(sample.unlisted));
            let earlier = |number: &u32| before.and_then(|b| b.sent.get(number)).copied().unwrap_or(0);
            let mut sent: Vec<u64> =
                sample.sent.iter().map(|(number, n)| n.saturating_sub(earlier(number))).collect();
            sent.sort_unstable();
            for (of, share) in own.requests_per_s.iter_mut().zip([0.0, 0.05, 0.5, 0.95, 1.0]) {
                let rate = nearest(&sent, share).filter(|_| part_ns > 0);
                of.push(rate.map(|n| n as f64 / (part_ns as f64 / 1e9)));
            }
            before = Some(sample);
        }
        own
    }
}

/// The changes that began before the run ended, as marks: each from its first step to its last.
pub(crate) fn change_marks(tables: &ChangeTables, end_ns: u64) -> Vec<Mark> {
    let mut marks: BTreeMap<u32, Mark> = BTreeMap::new();
    for step in tables.steps.iter().filter(|step| step.at_ns <= end_ns) {
        let (fleet, what, members) = match step.what {
            StepKind::Unlist { fleet, .. } | StepKind::Relist { fleet } => (fleet, "unlist", 0),
            StepKind::Move { leave: Some(leave), join: Some(_), .. } => (leave.fleet, "rolling", leave.k),
            StepKind::Move { leave: Some(leave), .. } => (leave.fleet, "leave", leave.k),
            StepKind::Move { join: Some((fleet, k)), .. } => (fleet, "join", k),
            StepKind::Scale { fleet, leave, join: 0, .. } if leave > 0 => (fleet, "leave", leave),
            StepKind::Scale { fleet, join, .. } if join > 0 => (fleet, "join", join),
            StepKind::InPlace { of } => (of.fleet, "rolling", of.k),
            StepKind::Down => {
                marks.extend(failure_mark(tables, step, end_ns).map(|mark| (step.change, mark)));
                continue;
            }
            StepKind::Set
            | StepKind::Reset
            | StepKind::Repair
            | StepKind::Move { .. }
            | StepKind::Scale { .. } => continue,
        };
        let Some(site) = tables.fleets.get(fleet as usize) else { continue };
        let mark = marks.entry(step.change).or_insert_with(|| Mark {
            place: site.label.clone(),
            what,
            from_ns: step.at_ns,
            to_ns: step.at_ns,
            members: 0,
            count: u64::from(site.size),
        });
        mark.to_ns = step.at_ns;
        mark.members += u64::from(members);
    }
    marks.into_values().collect()
}

/// The time in which nodes fail by a change.
fn failure_mark(tables: &ChangeTables, step: &Step, end_ns: u64) -> Option<Mark> {
    let of = tables.failing.get(&step.change)?;
    let ChangeKind::Down { lasts_ns, k, mode, .. } = tables.events[step.change as usize].what else {
        return None;
    };
    let count = of.nodes.len() as u64;
    Some(Mark {
        place: of.label.clone(),
        what: mode.word(),
        from_ns: step.at_ns,
        to_ns: lasts_ns.map_or(end_ns, |ns| step.at_ns.saturating_add(ns).min(end_ns)),
        members: k.map_or(count, u64::from),
        count,
    })
}

/// The value at a share of sorted ones, by nearest rank.
fn nearest(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_listed_members_and_of_the_part() {
        let sample = |members, unlisted, sent: &[(u32, u64)]| FleetSample {
            members,
            unlisted,
            sent: sent.iter().copied().collect(),
        };
        let samples = [
            sample(2, 0, &[(0, 10), (1, 30)]),
            // One has joined, and one is forgotten.
            sample(3, 1, &[(0, 10), (2, 5)]),
            sample(1, 1, &[]),
        ];
        let over_time = FleetOverTime::new("a".to_owned(), samples.iter().zip([500_000_000; 3]));
        assert_eq!((over_time.members, over_time.unlisted), (vec![2, 3, 1], vec![0, 1, 1]));
        let [least, .., most] = over_time.requests_per_s;
        assert_eq!(least, [Some(20.0), Some(0.0), None]);
        assert_eq!(most, [Some(60.0), Some(10.0), None]);
    }
}
