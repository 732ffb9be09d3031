//! The changes of a scenario as steps in the order in which they happen, and what is surely wrong with them.

use crate::{Change, ChangeKind, First, Leavers, NodeId, Point, Rollout, Spec};
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
    /// The newest leave, or newcomers join, until the fleet has that many.
    Scale {
        /// The fleet.
        fleet: u32,
        /// How many there are then.
        to: u32,
        /// How many leave at most.
        leave: u32,
        /// How many join at most.
        join: u32,
    },
    /// Members stop, and begin anew.
    InPlace {
        /// The members.
        of: Departure,
    },
    /// Nodes fail.
    Down,
    /// They are repaired.
    Repair,
    /// The operator says something of targets.
    Set,
    /// What it said is taken back.
    Reset,
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
    let mut plan = Planner {
        nodes: compact.nodes.len() as u32,
        members: fleets.values().map(|(_, size)| Count::exactly(*size)).collect(),
        fleets: &fleets,
        rests: BTreeMap::new(),
        steps: Vec::new(),
        wrong: Vec::new(),
        joined: vec![0; fleets.len()],
    };
    let mut open: BinaryHeap<Reverse<(u64, u32, u32)>> =
        changes.iter().zip(0..).map(|(change, i)| Reverse((change.at_ns, i, 0))).collect();
    while let Some(Reverse((at_ns, i, part))) = open.pop() {
        let moment = Moment { at_ns, change: i, part };
        match plan.step(&changes[i as usize], moment) {
            Ok(Some(next_ns)) => open.push(Reverse((next_ns, i, part + 1))),
            Ok(None) => {}
            Err(why) => plan.wrong.push((i as usize, why)),
        }
    }
    if plan.wrong.is_empty() {
        Ok(Schedule { steps: plan.steps, newcomers: plan.joined })
    } else {
        Err(plan.wrong)
    }
}

/// How many there are: what a change finds to replace may depend on which members another one drew.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    least: u32,
    most: u32,
}

impl Count {
    fn exactly(n: u32) -> Count {
        Count { least: n, most: n }
    }

    fn at_most(self, n: u32) -> Count {
        Count { least: self.least.min(n), most: self.most.min(n) }
    }

    fn plus(self, more: Count) -> Count {
        let sum = |a: u32, b: u32| a.saturating_add(b);
        Count { least: sum(self.least, more.least), most: sum(self.most, more.most) }
    }

    fn minus(self, less: Count) -> Count {
        Count { least: self.least.saturating_sub(less.most), most: self.most.saturating_sub(less.least) }
    }
}

/// When a step is taken, and which it is.
#[derive(Clone, Copy)]
struct Moment {
    at_ns: u64,
    change: u32,
    part: u32,
}

/// What a change has still to replace.
struct Rest {
    fleet: u32,
    /// How many batches remain, in members.
    planned: u32,
    /// How many of those members may still be there.
    there: Count,
}

struct Planner<'f> {
    /// How many nodes there are.
    nodes: u32,
    /// By node: number and size.
    fleets: &'f BTreeMap<NodeId, (u32, u32)>,
    /// How many members each fleet has.
    members: Vec<Count>,
    /// By change.
    rests: BTreeMap<u32, Rest>,
    steps: Vec<Step>,
    wrong: Vec<(usize, String)>,
    joined: Vec<u32>,
}

impl Planner<'_> {
    /// Takes a step of a change; returns when its next one is.
    fn step(&mut self, of: &Change, moment: Moment) -> Result<Option<u64>, String> {
        let Moment { at_ns, change, part } = moment;
        if let ChangeKind::Down { .. } | ChangeKind::Set { .. } = of.what {
            return self.touch(of, moment);
        }
        let Some(&(fleet, _)) = self.fleets.get(&of.fleet) else {
            return Err("it names no fleet".to_owned());
        };
        let (what, next_ns) = match of.what {
            ChangeKind::Join { k } => {
                self.join(fleet, Count::exactly(k));
                (StepKind::Move { leave: None, join: Some((fleet, k)), first: First::Join }, None)
            }
            ChangeKind::Leave { k, which } => (self.take_away(fleet, k, which)?, None),
            ChangeKind::Scale { to } => (self.scale(fleet, to), None),
            ChangeKind::Unlist { share, lasts_ns } if part == 0 => {
                (StepKind::Unlist { fleet, share }, Some(at_ns.saturating_add(lasts_ns)))
            }
            ChangeKind::Unlist { .. } => (StepKind::Relist { fleet }, None),
            ChangeKind::Rolling { batch, every_ns, first, which, into, more } => {
                let into = match into {
                    None => fleet,
                    Some(into) => self.fleets.get(&into).ok_or("`into` names no fleet")?.0,
                };
                let (k, goes_on) = self.batch(change, fleet, into, batch, first, more)?;
                let leave = Departure { fleet, k, which, replaces: true };
                let what = match first {
                    First::InPlace => StepKind::InPlace { of: leave },
                    _ => StepKind::Move { leave: Some(leave), join: Some((into, k)), first },
                };
                (what, goes_on.then(|| at_ns.saturating_add(every_ns)))
            }
            ChangeKind::Down { .. } | ChangeKind::Set { .. } => return Ok(None),
        };
        self.steps.push(Step { at_ns, change, part, what });
        Ok(next_ns)
    }

    /// A step of a change of nodes, which need no fleet; returns when its next one is.
    fn touch(&mut self, of: &Change, moment: Moment) -> Result<Option<u64>, String> {
        let Moment { at_ns, change, part } = moment;
        let (what, lasts_ns, k) = match of.what {
            ChangeKind::Down { lasts_ns, k, .. } => ([StepKind::Down, StepKind::Repair], lasts_ns, k),
            ChangeKind::Set { lasts_ns, k, .. } => ([StepKind::Set, StepKind::Reset], lasts_ns, k),
            _ => return Err("it names no nodes".to_owned()),
        };
        self.count(of, k.filter(|_| part == 0))?;
        self.steps.push(Step { at_ns, change, part, what: what[usize::from(part > 0)] });
        Ok(lasts_ns.filter(|_| part == 0).map(|lasts_ns| at_ns.saturating_add(lasts_ns)))
    }

    /// Whether there are as many of the nodes that a change names as it concerns.
    fn count(&self, of: &Change, k: Option<u32>) -> Result<(), String> {
        let count = |id: NodeId| match self.fleets.get(&id) {
            Some((fleet, _)) => self.members[*fleet as usize].most,
            None => 1,
        };
        if let Some(id) = of.nodes().find(|id| *id >= self.nodes) {
            return Err(format!("there is no node {id}"));
        }
        let there = of.nodes().map(count).fold(0, u32::saturating_add);
        match k {
            Some(k) if k > there => Err(match of.what {
                ChangeKind::Set { .. } => format!("{k} targets are set, but there are {there} then"),
                _ => format!("{k} nodes fail, but there are {there} then"),
            }),
            _ => Ok(()),
        }
    }

    /// A batch of a replacement; returns how many at most, and whether others follow.
    fn batch(
        &mut self,
        change: u32,
        fleet: u32,
        into: u32,
        batch: u32,
        first: First,
        more: Rollout,
    ) -> Result<(u32, bool), String> {
        let there = self.members[fleet as usize];
        let is_first = !self.rests.contains_key(&change);
        if let Some(count) = more.count.filter(|count| is_first && *count > there.most) {
            return Err(format!("{count} members are to be replaced, but the fleet has {} then", there.most));
        }
        let rest = self.rests.entry(change).or_insert(Rest { fleet, planned: there.most, there });
        if let (true, Some(count)) = (is_first, more.count) {
            (rest.planned, rest.there) = (rest.planned.min(count), rest.there.at_most(count));
        }
        if first != First::InPlace {
            return Ok(self.replace(change, fleet, into, batch));
        }
        let k = rest.there.at_most(batch);
        rest.there = rest.there.minus(Count::exactly(batch));
        rest.planned -= batch.min(rest.planned);
        Ok((k.most, rest.planned > 0))
    }

    fn take_away(&mut self, fleet: u32, k: u32, which: Leavers) -> Result<StepKind, String> {
        let there = self.members[fleet as usize].most;
        if k > there {
            return Err(format!("{k} members leave, but the fleet has {there} then"));
        }
        self.leave(fleet, Count::exactly(k), None);
        let leave = Some(Departure { fleet, k, which, replaces: false });
        Ok(StepKind::Move { leave, join: None, first: First::Leave })
    }

    fn scale(&mut self, fleet: u32, to: u32) -> StepKind {
        let there = self.members[fleet as usize];
        let (leave, join) = (there.most.saturating_sub(to), to.saturating_sub(there.least));
        self.leave(fleet, Count { least: there.least.saturating_sub(to), most: leave }, None);
        self.join(fleet, Count { least: to.saturating_sub(there.most), most: join });
        self.members[fleet as usize] = Count::exactly(to);
        StepKind::Scale { fleet, to, leave, join }
    }

    /// Replaces a batch; returns how many at most, and whether others follow.
    fn replace(&mut self, change: u32, fleet: u32, into: u32, batch: u32) -> (u32, bool) {
        let there = self.members[fleet as usize];
        let rest = self.rests.entry(change).or_insert(Rest { fleet, planned: there.most, there });
        let k = rest.there.at_most(batch).at_most(there.most);
        rest.there = rest.there.minus(Count::exactly(batch));
        rest.planned -= batch.min(rest.planned);
        let goes_on = rest.planned > 0;
        self.leave(fleet, k, Some(change));
        self.join(into, k);
        if into == fleet {
            self.members[fleet as usize] = there;
        }
        (k.most, goes_on)
    }

    /// That many leave by a change; what the other ones have to replace may be among them.
    fn leave(&mut self, fleet: u32, k: Count, by: Option<u32>) {
        let members = &mut self.members[fleet as usize];
        *members = members.minus(k);
        for (change, rest) in self.rests.iter_mut().filter(|(_, rest)| rest.fleet == fleet) {
            if Some(*change) != by {
                rest.there.least = rest.there.least.saturating_sub(k.most);
            }
        }
    }

    fn join(&mut self, fleet: u32, k: Count) {
        let fleet = fleet as usize;
        self.members[fleet] = self.members[fleet].plus(k);
        self.joined[fleet] = self.joined[fleet].saturating_add(k.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(least: u32, most: u32) -> Count {
        Count { least, most }
    }

    fn planner(fleets: &BTreeMap<NodeId, (u32, u32)>) -> Planner<'_> {
        Planner {
            nodes: 0,
            members: fleets.values().map(|(_, size)| Count::exactly(*size)).collect(),
            fleets,
            rests: BTreeMap::new(),
            steps: Vec::new(),
            wrong: Vec::new(),
            joined: vec![0; fleets.len()],
        }
    }

    /// Of ten members two are replaced, three leave, three join: between five and eight are still to be replaced.
    #[test]
    fn a_replacement_finds_fewer_where_others_leave() {
        let fleets = BTreeMap::from([(1, (0, 10)), (2, (1, 0))]);
        let mut plan = planner(&fleets);
        assert_eq!(plan.replace(0, 0, 1, 2), (2, true));
        assert_eq!(plan.members, [counts(8, 8), counts(2, 2)]);
        assert!(plan.take_away(0, 3, Leavers::Random).is_ok());
        plan.join(0, Count::exactly(3));
        assert_eq!(plan.replace(0, 0, 1, 6), (6, true));
        assert_eq!(plan.members, [counts(2, 3), counts(7, 8)], "5 or 6 are replaced");
        assert_eq!(plan.replace(0, 0, 1, 2), (2, false));
        assert_eq!(plan.members, [counts(0, 3), counts(7, 10)]);
    }

    #[test]
    fn scaling_makes_a_number_certain() {
        let fleets = BTreeMap::from([(1, (0, 4))]);
        let mut plan = planner(&fleets);
        plan.members[0] = counts(2, 6);
        assert_eq!(plan.scale(0, 4), StepKind::Scale { fleet: 0, to: 4, leave: 2, join: 2 });
        assert_eq!((plan.members[0], plan.joined[0]), (Count::exactly(4), 2));
        assert!(plan.take_away(0, 5, Leavers::Oldest).is_err());
    }
}
