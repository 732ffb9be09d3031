//! The changes of a scenario as steps in the order in which they happen, and what is surely wrong with them.

use crate::{Change, ChangeKind, First, Leavers, NodeId, Point, Spec};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What a scenario's changes do, step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// By instant, then in the order of the list of changes.
    pub steps: Vec<Step>,
    /// By fleet: how many join at most.
    pub newcomers: Vec<u32>,
}

/// A step of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When, ns.
    pub at_ns: u64,
    /// The number of the change in the scenario's list.
    pub change: u32,
    /// The number of the step in the change: of a batch.
    pub part: u32,
    /// What is done.
    pub what: StepKind,
}

/// What a step does. Fleets are numbered in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepKind {
    /// Members leave, join, or both.
    Move {
        /// The members that leave; the fleet that they leave, too.
        leave: Option<Departure>,
        /// The fleet that newcomers join, and how many; where members leave in their place, as many as those are.
        join: Option<(u32, u32)>,
        /// What is done first.
        first: First,
    },
    /// The registry forgets a share of the members.
    Unlist {
        /// The fleet.
        fleet: u32,
        /// The share.
        share: f64,
    },
    /// It lists again what the change has unlisted.
    Relist {
        /// The fleet.
        fleet: u32,
    },
}

/// Members that leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    /// The fleet.
    pub fleet: u32,
    /// How many.
    pub k: u32,
    /// Which of them.
    pub which: Leavers,
    /// Only members that were there before the change's first step.
    pub replaces: bool,
}

/// The steps of a scenario's changes.
///
/// # Errors
/// What is surely wrong, each with the number of the change.
pub fn schedule(compact: &Point, changes: &[Change]) -> Result<Schedule, Vec<(usize, String)>> {
    let fleets: BTreeMap<NodeId, (u32, u32)> = super::templates(compact)
        .into_iter()
        .zip(0..)
        .map(|((_, id), number)| {
            let size = if let Some(Spec::Fleet(fleet)) = compact.spec(id) { fleet.size } else { 0 };
            (id, (number, size))
        })
        .collect();
    let members = fleets.values().map(|(_, size)| *size).collect();
    let mut plan = Planner {
        fleets: &fleets,
        members,
        steps: Vec::new(),
        wrong: Vec::new(),
        joined: vec![0; fleets.len()],
    };
    let mut open: BinaryHeap<Reverse<(u64, u32, u32)>> =
        changes.iter().zip(0..).map(|(change, i)| Reverse((change.at_ns, i, 0))).collect();
    let mut left: BTreeMap<u32, u32> = BTreeMap::new();
    while let Some(Reverse((at_ns, i, part))) = open.pop() {
        if let Some(next_ns) = plan.step(&changes[i as usize], at_ns, i, part, &mut left) {
            open.push(Reverse((next_ns, i, part + 1)));
        }
    }
    if plan.wrong.is_empty() {
        Ok(Schedule { steps: plan.steps, newcomers: plan.joined })
    } else {
        Err(plan.wrong)
    }
}

struct Planner<'f> {
    /// By node: number and size.
    fleets: &'f BTreeMap<NodeId, (u32, u32)>,
    /// How many members each fleet has.
    members: Vec<u32>,
    steps: Vec<Step>,
    wrong: Vec<(usize, String)>,
    joined: Vec<u32>,
}

impl Planner<'_> {
    /// Takes a step of a change; returns when its next one is.
    fn step(
        &mut self,
        of: &Change,
        at_ns: u64,
        change: u32,
        part: u32,
        left: &mut BTreeMap<u32, u32>,
    ) -> Option<u64> {
        let Some(&(fleet, _)) = self.fleets.get(&of.fleet) else {
            self.wrong.push((change as usize, "it names no fleet".to_owned()));
            return None;
        };
        let leaves = |k, which, replaces| Some(Departure { fleet, k, which, replaces });
        let members = self.members[fleet as usize];
        let (what, next_ns) = match of.what {
            ChangeKind::Join { k } => (self.moves(None, Some((fleet, k)), First::Join), None),
            ChangeKind::Leave { k, which } => {
                if k > members {
                    let message = format!("{k} members leave, but the fleet has {members} then");
                    self.wrong.push((change as usize, message));
                    return None;
                }
                (self.moves(leaves(k, which, false), None, First::Leave), None)
            }
            ChangeKind::Scale { to } if to >= members => {
                (self.moves(None, (to > members).then_some((fleet, to - members)), First::Join), None)
            }
            ChangeKind::Scale { to } => {
                (self.moves(leaves(members - to, Leavers::Newest, false), None, First::Leave), None)
            }
            ChangeKind::Unlist { share, .. } if part == 0 => {
                let ChangeKind::Unlist { lasts_ns, .. } = of.what else { return None };
                (StepKind::Unlist { fleet, share }, Some(at_ns.saturating_add(lasts_ns)))
            }
            ChangeKind::Unlist { .. } => (StepKind::Relist { fleet }, None),
            ChangeKind::Rolling { batch, every_ns, first, which, into } => {
                let into = match into.map(|into| self.fleets.get(&into)) {
                    None => fleet,
                    Some(Some((into, _))) => *into,
                    Some(None) => {
                        self.wrong.push((change as usize, "`into` names no fleet".to_owned()));
                        return None;
                    }
                };
                let rest = left.entry(change).or_insert(members);
                let k = batch.min(*rest).min(members);
                *rest -= batch.min(*rest);
                let goes_on = *rest > 0;
                let what = self.moves(leaves(k, which, true), Some((into, k)), first);
                (what, goes_on.then(|| at_ns.saturating_add(every_ns)))
            }
        };
        self.steps.push(Step { at_ns, change, part, what });
        next_ns
    }

    fn moves(&mut self, leave: Option<Departure>, join: Option<(u32, u32)>, first: First) -> StepKind {
        if let Some(leave) = leave {
            self.members[leave.fleet as usize] -= leave.k;
        }
        if let Some((fleet, k)) = join {
            let fleet = fleet as usize;
            self.members[fleet] = self.members[fleet].saturating_add(k);
            self.joined[fleet] = self.joined[fleet].saturating_add(k);
        }
        StepKind::Move { leave, join, first }
    }
}
