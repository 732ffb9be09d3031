//! Replacements of members batch by batch, and what each batch waits for.

use crate::code::Code;
use crate::code::changes::ChangeTables;
use crate::state::change_events::{Timer, timer_order};
use crate::state::changes::Changes;
use crate::state::processes::{Effect, Goal};
use crate::state::seer::Move;
use crate::state::sights::Occasion;
use std::collections::BTreeSet;
use weir_plan::fleets::{Departure, Member, StepKind};
use weir_plan::{ChangeKind, First, Leavers, Wait};
use weir_policy::fleet::draw;

/// How long a replacement waits for a batch before it halts, ns.
const PATIENCE_NS: u64 = 600_000_000_000;

/// A batch of a replacement that is under way.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The newcomers that are not listed yet.
    boots: BTreeSet<Member>,
    /// Those that it waits for otherwise: to be eligible.
    new: Vec<Member>,
    /// The members that leave when all newcomers are listed.
    leave: Option<Departure>,
    /// The next step, if it has to wait, and when it is due at the earliest.
    next: Option<(u32, u64)>,
}

impl Changes {
    /// A batch is replaced: returns what moves at once.
    pub(super) fn replace(&mut self, tables: &ChangeTables, step: u32, now_ns: u64) -> Vec<Move> {
        let of = tables.steps[step as usize];
        let StepKind::Move { leave: Some(leave), join: Some((into, k)), first } = of.what else {
            return Vec::new();
        };
        let key = self.key.with(tables.draws).with(u64::from(of.change)).with(u64::from(of.part));
        let waits = first == First::Join && tables.fleets[into as usize].life.is_some();
        let mut moves = Vec::new();
        // Newcomers that replace others are as many as those.
        let leavers = match waits {
            true => self.leavers(leave, of.change, key).len(),
            false => {
                let before = self.fleets[leave.fleet as usize].up.len();
                moves = self.leave(tables, leave, of.change, key, now_ns);
                before - self.fleets[leave.fleet as usize].up.len()
            }
        };
        let (new, mut come) = self.join(tables, into, k.min(leavers as u32), of.change, now_ns);
        let boots: BTreeSet<Member> = new.iter().copied().filter(|member| self.is_away(*member)).collect();
        let mut leave = waits.then_some(leave);
        // Newcomers that boot in no time are listed already.
        if let Some(leave) = leave.take_if(|_| boots.is_empty()) {
            moves = self.leave(tables, leave, of.change, key, now_ns);
        }
        self.batches.insert((of.change, of.part), Batch { boots, new, leave, next: None });
        self.note_wait(tables, step, now_ns);
        match first {
            First::Join => {
                come.append(&mut moves);
                come
            }
            _ => {
                moves.append(&mut come);
                moves
            }
        }
    }

    /// A batch stops, and begins anew: returns what moves at once.
    pub(super) fn restart(
        &mut self,
        tables: &ChangeTables,
        step: u32,
        of: Departure,
        now_ns: u64,
    ) -> Vec<Move> {
        let at = tables.steps[step as usize];
        let ChangeKind::Rolling { more, .. } = tables.events[at.change as usize].what else {
            return Vec::new();
        };
        let key = self.key.with(tables.draws).with(u64::from(at.change)).with(u64::from(at.part));
        let up = &self.fleets[of.fleet as usize].up;
        let rest = self.rest.entry(at.change).or_insert_with(|| up.clone());
        let there = rest.intersection(up).copied();
        let chosen: Vec<u32> = match of.which {
            Leavers::Random => draw(there.collect(), of.k as usize, key),
            _ => there.take(of.k as usize).collect(),
        };
        chosen.iter().for_each(|number| _ = rest.remove(number));
        let new: Vec<Member> = chosen.iter().map(|&number| Member { fleet: of.fleet, number }).collect();
        let boots = new.iter().copied().collect();
        self.batches.insert((at.change, at.part), Batch { boots, new: new.clone(), leave: None, next: None });
        self.note_wait(tables, step, now_ns);
        let processes = new.iter().filter_map(|member| tables.process_of(*member));
        let goal = Goal::Anew { change: at.change, more };
        processes.flat_map(|process| self.must_go(tables, process, goal, at.change, now_ns)).collect()
    }

    /// Notes what the step after this one waits for.
    fn note_wait(&mut self, tables: &ChangeTables, step: u32, now_ns: u64) {
        let of = tables.steps[step as usize];
        let ChangeKind::Rolling { every_ns, more, .. } = tables.events[of.change as usize].what else {
            return;
        };
        if more.wait.is_none() {
            return;
        }
        let is_next =
            |other: &weir_plan::fleets::Step| (other.change, other.part) == (of.change, of.part + 1);
        let Some(next) = tables.steps.iter().position(is_next) else { return };
        if let Some(batch) = self.batches.get_mut(&(of.change, of.part)) {
            batch.next = Some((next as u32, now_ns.saturating_add(every_ns)));
        }
        let halt = Timer::Halt { change: of.change, part: of.part };
        self.effects.push(Effect::Timer(halt, now_ns.saturating_add(PATIENCE_NS)));
    }

    /// Whether a member does not run, or is to go.
    fn is_away(&self, member: Member) -> bool {
        self.fleets[member.fleet as usize].away.contains(&member.number)
    }

    /// The members for which replacements wait.
    pub fn awaited_members(&self) -> impl Iterator<Item = Member> + '_ {
        self.batches.values().filter(|of| of.next.is_some()).flat_map(|of| of.new.iter().copied())
    }

    /// The batch of a process that runs may be complete: those that it replaces leave.
    pub(super) fn after_boot(&mut self, code: &Code, tables: &ChangeTables, index: usize, now_ns: u64) {
        let member = tables.processes[index].member;
        let due: Vec<(u32, u32)> =
            self.batches.iter().filter(|(_, of)| of.boots.contains(&member)).map(|of| *of.0).collect();
        for (change, part) in due {
            let Some(batch) = self.batches.get_mut(&(change, part)) else { continue };
            batch.boots.remove(&member);
            let Some(leave) = batch.leave.take_if(|_| batch.boots.is_empty()) else { continue };
            let key = self.key.with(tables.draws).with(u64::from(change)).with(u64::from(part));
            let moves = self.leave(tables, leave, change, key, now_ns);
            let order = timer_order(code, Timer::Boot(index as u32));
            let occasion = Occasion { fleet: leave.fleet, change, part: u64::from(part) | 1 << 41, order };
            self.moved(code, tables, &moves, occasion, now_ns);
        }
        self.look_at_batches(tables, now_ns);
    }

    /// Schedules the next step of each replacement whose batch is complete, where that is known without balancers.
    pub(super) fn look_at_batches(&mut self, tables: &ChangeTables, now_ns: u64) {
        self.complete_batches(tables, now_ns, |_| None);
    }

    /// Whether a replacement waits until members may be picked.
    pub fn waits_for_balancers(&self, tables: &ChangeTables) -> bool {
        self.batches
            .iter()
            .any(|((change, _), of)| of.next.is_some() && wait(tables, *change) == Some(Wait::Eligible))
    }

    /// Schedules the next step of each replacement whose batch is complete. `eligible`: whether a member may be picked at
    /// every balancer that has it; `None`: not known now.
    pub fn complete_batches(
        &mut self,
        tables: &ChangeTables,
        now_ns: u64,
        eligible: impl Fn(Member) -> Option<bool>,
    ) {
        let is_done = |change: u32, of: &Batch| match wait(tables, change) {
            _ if !of.boots.is_empty() || of.leave.is_some() => false,
            Some(Wait::Eligible) => of.new.iter().all(|member| eligible(*member) == Some(true)),
            Some(Wait::Running) | None => true,
        };
        let done: Vec<(u32, u32)> =
            self.batches.iter().filter(|((change, _), of)| is_done(*change, of)).map(|of| *of.0).collect();
        for key in done {
            let next = self.batches.remove(&key).and_then(|of| of.next);
            self.effects.extend(next.map(|(step, due_ns)| Effect::Step(step, due_ns.max(now_ns))));
        }
    }

    /// A replacement halts, if the batch still waits.
    pub fn halt(&mut self, change: u32, part: u32) {
        let next = self.batches.get_mut(&(change, part)).and_then(|of| of.next.take());
        self.delays.halted.extend(next.map(|_| change));
    }
}

/// What the next batch of a replacement waits for.
fn wait(tables: &ChangeTables, change: u32) -> Option<Wait> {
    match tables.events[change as usize].what {
        ChangeKind::Rolling { more, .. } => more.wait,
        _ => None,
    }
}

/// Whether a step is scheduled when the one before it is complete, rather than at its instant.
pub(crate) fn is_awaited(tables: &ChangeTables, step: u32) -> bool {
    let of = tables.steps[step as usize];
    let is_batch = matches!(of.what, StepKind::Move { .. } | StepKind::InPlace { .. });
    of.part > 0 && is_batch && wait(tables, of.change).is_some()
}
