//! Members that are processes: they boot, run, are told to go, stop, and begin anew; and the replacements that wait for
//! them. Both engines keep this state; when a process ends is decided in [`weir_model::process`].

use crate::code::Code;
use crate::code::changes::{Absence, Birth, ChangeTables, FailingNode, ProcessSite};
use crate::state::acts::{Subject, What};
use crate::state::change_events::{Timer, timer_order};
use crate::state::changes::Changes;
use crate::state::seer::Move;
use crate::state::sights::Occasion;
use std::collections::{BTreeSet, VecDeque};
use weir_model::draws::purpose;
use weir_model::process::{Phase, Process, Turn};
use weir_plan::fleets::{Departure, Member, StepKind};
use weir_plan::{ChangeKind, First, Leavers, Rollout, Wait};
use weir_policy::fleet::draw;

/// How long a replacement waits for a batch before it halts, ns.
const PATIENCE_NS: u64 = 600_000_000_000;

/// What the engine does after a step, in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Something begins with a newcomer.
    Birth(Birth),
    /// The process of a timeline runs: all that it has begins anew.
    Begin(u32),
    /// It takes nothing new.
    Close(u32),
    /// It has ended, with all that is inside.
    End(u32),
    /// A node fails, by its timeline; it is repaired.
    Fail(u32),
    Repair(u32),
    /// A balancer will see something, by the number of the sight.
    Sight(u32),
    /// Something is due at an instant.
    Timer(Timer, u64),
    /// A step is to be taken at an instant.
    Step(u32, u64),
}

/// What a process that is to go does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// Nothing.
    Gone,
    /// It boots again.
    Anew { change: u32, more: Rollout },
}

/// A member that is a process.
#[derive(Clone, Debug)]
pub(super) struct ProcessState {
    process: Process,
    /// The change that moves it, and how often it has begun to boot.
    change: u32,
    boots: u32,
    /// When the last balancer sees that it is to go; when it has booted, or boots again.
    seen_ns: u64,
    due_ns: u64,
    /// When it was asked last because nothing was inside.
    asked_ns: u64,
    goal: Goal,
    /// What it has to do once it runs.
    then: VecDeque<Goal>,
}

impl ProcessState {
    /// All processes of a scenario at its start.
    pub fn all(tables: &ChangeTables) -> Vec<ProcessState> {
        let runs = |member: Member| member.number < tables.fleets[member.fleet as usize].size;
        let state = |process: Process| ProcessState {
            process,
            change: 0,
            boots: 0,
            seen_ns: 0,
            due_ns: 0,
            asked_ns: 0,
            goal: Goal::Gone,
            then: VecDeque::new(),
        };
        tables.processes.iter().map(|site| state(Process::new(runs(site.member)))).collect()
    }
}

/// A batch of a replacement that is under way.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The newcomers that are not listed yet.
    boots: BTreeSet<Member>,
    /// Those that it waits for otherwise: to be eligible.
    new: Vec<Member>,
    /// Who leaves when all newcomers are listed.
    leave: Option<Departure>,
    /// The next step, if it has to wait, and when it is due at the earliest.
    next: Option<(u32, u64)>,
}

impl Changes {
    /// A batch is replaced: returns what moves at once.
    pub(super) fn replace(
        &mut self,
        tables: &ChangeTables,
        step: u32,
        (leave, (into, k)): (Departure, (u32, u32)),
        first: First,
        now_ns: u64,
    ) -> Vec<Move> {
        let of = tables.steps[step as usize];
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
        let (new, mut come) = self.join(tables, (into, k.min(leavers as u32)), of.change, now_ns);
        let boots = new.iter().copied().filter(|member| self.is_away(*member)).collect();
        let leave = waits.then_some(leave);
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
        processes.flat_map(|process| self.must_go(tables, process, goal, now_ns)).collect()
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

    /// A process is to go, now or once it runs; returns what moves.
    pub(super) fn must_go(
        &mut self,
        tables: &ChangeTables,
        index: usize,
        goal: Goal,
        now_ns: u64,
    ) -> Option<Move> {
        let member = tables.processes[index].member;
        let state = &mut self.processes[index];
        if !state.process.must_go(now_ns) {
            state.then.push_back(goal);
            return None;
        }
        (state.goal, state.seen_ns) = (goal, now_ns);
        self.draining.insert(index as u32);
        let (life, _) = tables.fleets[member.fleet as usize].life.as_ref()?;
        let due_ns = self.processes[index].process.due_ns(life);
        let looks = [Some(now_ns), due_ns];
        let look = |at_ns: u64| Effect::Timer(Timer::Look(index as u32), at_ns);
        self.effects.extend(looks.into_iter().flatten().map(look));
        let registry = &mut self.fleets[member.fleet as usize];
        let is_listed = match goal {
            Goal::Gone => {
                self.note_left(member, now_ns);
                !self.fleets[member.fleet as usize].unlisted.remove(&member.number)
            }
            Goal::Anew { more, .. } => {
                registry.away.insert(member.number);
                self.attendance.absent.entry(member).or_default().push(Absence::new(now_ns));
                more.is_unlisted && !registry.unlisted.contains(&member.number)
            }
        };
        is_listed.then_some(Move::Remove(member))
    }

    /// Notes when the last balancer sees that processes are to go; sights from `known` on are new.
    pub(super) fn note_seen_by(&mut self, tables: &ChangeTables, moves: &[Move], known: usize, now_ns: u64) {
        for of in moves.iter().filter(|of| matches!(of, Move::Remove(_))) {
            let Some(index) = tables.process_of(of.member()) else { continue };
            let sees = |sight: &&crate::state::sights::Sight| {
                tables.views[sight.view as usize].places.contains_key(&of.member())
            };
            let seen_ns = self.sights[known..].iter().filter(sees).map(|sight| sight.at_ns).max();
            let seen_ns = seen_ns.unwrap_or(now_ns);
            self.processes[index].seen_ns = seen_ns;
            if seen_ns > now_ns {
                self.effects.push(Effect::Timer(Timer::Look(index as u32), seen_ns));
            }
        }
    }

    /// The processes that end as soon as nothing is inside, with their timelines.
    pub fn awaited<'t>(
        &'t self,
        tables: &'t ChangeTables,
        now_ns: u64,
    ) -> impl Iterator<Item = (u32, u32)> + 't {
        let waits = move |index: &&u32| {
            let state = &self.processes[**index as usize];
            state.process.phase() == Phase::Stops || state.seen_ns <= now_ns
        };
        self.draining.iter().filter(waits).map(|index| (*index, tables.processes[*index as usize].line))
    }

    /// Notes that a process is asked again a nanosecond later; `false`: that is known.
    pub fn is_asked_later(&mut self, index: u32, now_ns: u64) -> bool {
        let asked_ns = &mut self.processes[index as usize].asked_ns;
        std::mem::replace(asked_ns, now_ns + 1) != now_ns + 1
    }

    /// The members for which replacements wait.
    pub fn awaited_members(&self) -> impl Iterator<Item = Member> + '_ {
        self.batches.values().filter(|of| of.next.is_some()).flat_map(|of| of.new.iter().copied())
    }

    /// A process is asked: when it is due, and when nothing is inside any more.
    pub fn look_at_process(&mut self, code: &Code, index: u32, is_empty: bool, now_ns: u64) {
        let Some(tables) = code.changes.as_deref() else { return };
        let site = tables.processes[index as usize];
        let Some((life, _)) = tables.fleets[site.member.fleet as usize].life.as_ref() else { return };
        let state = &mut self.processes[index as usize];
        let is_seen = state.seen_ns <= now_ns;
        let was = state.process.phase();
        match state.process.turn(life, now_ns, is_seen, is_empty) {
            None => {}
            Some(Turn::Stops) => {
                let due_ns = state.process.due_ns(life).unwrap_or(now_ns);
                self.report(Subject::Member(site.member), What::Stops, None, now_ns);
                self.effects.push(Effect::Close(site.line));
                self.effects.push(Effect::Timer(Timer::Look(index), due_ns));
            }
            Some(Turn::Ends) => {
                self.draining.remove(&index);
                if was == Phase::Drains {
                    self.report(Subject::Member(site.member), What::Stops, None, now_ns);
                }
                self.report(Subject::Member(site.member), What::Stopped, None, now_ns);
                self.effects.push(Effect::End(site.line));
                if code.connections.is_some() {
                    self.left.push(site.member);
                }
                self.ended(code, tables, index as usize, now_ns);
            }
        }
    }

    /// A process has ended: it may boot again.
    fn ended(&mut self, code: &Code, tables: &ChangeTables, index: usize, now_ns: u64) {
        let Goal::Anew { change, more } = self.processes[index].goal else { return };
        let due_ns = now_ns.saturating_add(more.down_ns);
        self.processes[index].change = change;
        self.processes[index].due_ns = due_ns;
        match more.down_ns {
            0 => self.boot_again(code, tables, index, now_ns),
            _ => self.effects.push(Effect::Timer(Timer::Boot(index as u32), due_ns)),
        }
    }

    /// Something that a process waits for is due: it boots, or has booted.
    pub fn process_is_due(&mut self, code: &Code, index: u32, now_ns: u64) {
        let Some(tables) = code.changes.as_deref() else { return };
        let state = &self.processes[index as usize];
        if state.due_ns != now_ns {
            return;
        }
        match state.process.phase() {
            Phase::Stopped => self.boot_again(code, tables, index as usize, now_ns),
            Phase::Boots => {
                let moves: Vec<Move> = self.runs(tables, index as usize, now_ns).into_iter().collect();
                self.show_process(code, tables, index as usize, &moves, now_ns);
                self.after_boot(code, tables, index as usize, now_ns);
            }
            _ => {}
        }
    }

    fn boot_again(&mut self, code: &Code, tables: &ChangeTables, index: usize, now_ns: u64) {
        let change = self.processes[index].change;
        let moves: Vec<Move> = self.begin_boot(tables, index, change, now_ns).into_iter().collect();
        self.show_process(code, tables, index, &moves, now_ns);
        if self.processes[index].process.phase() == Phase::Runs {
            self.after_boot(code, tables, index, now_ns);
        }
    }

    /// A process begins to boot; returns what moves if that takes no time.
    pub(super) fn begin_boot(
        &mut self,
        tables: &ChangeTables,
        index: usize,
        change: u32,
        now_ns: u64,
    ) -> Option<Move> {
        let member = tables.processes[index].member;
        let (_, boot) = tables.fleets[member.fleet as usize].life.as_ref()?;
        let state = &mut self.processes[index];
        let key = self.key.with(purpose::BOOT).with(u64::from(member.fleet)).with(u64::from(member.number));
        let boot_ns = boot.draw(key.with(u64::from(state.boots)));
        state.process.boot(now_ns);
        (state.change, state.boots) = (change, state.boots + 1);
        state.due_ns = now_ns.saturating_add(boot_ns);
        let due_ns = state.due_ns;
        self.report(Subject::Member(member), What::Boots, Some(change), now_ns);
        self.fleets[member.fleet as usize].away.insert(member.number);
        if boot_ns == 0 {
            return self.runs(tables, index, now_ns);
        }
        self.effects.push(Effect::Timer(Timer::Boot(index as u32), due_ns));
        None
    }

    /// A process has booted: it is listed, unless it is to go at once; returns what moves.
    fn runs(&mut self, tables: &ChangeTables, index: usize, now_ns: u64) -> Option<Move> {
        let ProcessSite { member, line } = tables.processes[index];
        self.processes[index].process.run(now_ns);
        self.report(Subject::Member(member), What::Runs, None, now_ns);
        let is_anew = matches!(self.processes[index].goal, Goal::Anew { .. });
        let registry = &mut self.fleets[member.fleet as usize];
        registry.away.remove(&member.number);
        let is_listed = !registry.unlisted.contains(&member.number) && registry.up.contains(&member.number);
        let was_listed = match self.processes[index].goal {
            Goal::Anew { more, .. } => !more.is_unlisted,
            Goal::Gone => false,
        };
        if is_anew {
            let times = self.attendance.absent.get_mut(&member);
            times.and_then(|times| times.last_mut()).into_iter().for_each(|time| time.relisted_ns = now_ns);
        } else {
            self.begin(tables, member, now_ns);
        }
        self.processes[index].goal = Goal::Gone;
        self.effects.push(Effect::Begin(line));
        if let Some(goal) = self.processes[index].then.pop_front() {
            return self.must_go(tables, index, goal, now_ns).filter(|_| was_listed);
        }
        (is_listed && !was_listed).then_some(Move::Add(member))
    }

    /// Lets balancers see what a process does by itself.
    fn show_process(
        &mut self,
        code: &Code,
        tables: &ChangeTables,
        index: usize,
        moves: &[Move],
        now_ns: u64,
    ) {
        let member = tables.processes[index].member;
        let state = &self.processes[index];
        let part = (u64::from(state.boots) << 32 | u64::from(member.number)) + (1 << 40);
        let order = timer_order(code, Timer::Boot(index as u32));
        let occasion = Occasion { fleet: member.fleet, change: state.change, part, order };
        self.moved(code, tables, moves, occasion, now_ns);
    }

    /// The batch of a process that runs may be complete: those that it replaces leave.
    fn after_boot(&mut self, code: &Code, tables: &ChangeTables, index: usize, now_ns: u64) {
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
        let batch = self.batches.get_mut(&(change, part));
        if batch.and_then(|of| of.next.take()).is_some() {
            self.halted.insert(change);
        }
    }

    /// Nodes fail: those that the change draws, or all.
    pub(super) fn let_fail(
        &mut self,
        tables: &ChangeTables,
        change: u32,
        key: weir_stats::Key,
        now_ns: u64,
    ) -> Vec<Move> {
        let ChangeKind::Down { k, which, .. } = tables.events[change as usize].what else {
            return Vec::new();
        };
        let nodes = tables.failing.get(&change).map_or(&[][..], |of| &of.nodes);
        let is_there = |member: Member| self.fleets[member.fleet as usize].up.contains(&member.number);
        let there: Vec<FailingNode> =
            nodes.iter().filter(|of| of.member.is_none_or(is_there)).copied().collect();
        let k = k.map_or(there.len(), |k| k as usize);
        let chosen: Vec<FailingNode> = match which {
            Leavers::Oldest => there.into_iter().take(k).collect(),
            Leavers::Newest => there.into_iter().rev().take(k).collect(),
            Leavers::Random => {
                let numbers = (0..there.len() as u32).collect();
                draw(numbers, k, key).into_iter().map(|i| there[i as usize]).collect()
            }
        };
        for of in &chosen {
            self.failed.extend(of.member);
            self.effects.push(Effect::Fail(of.line));
            self.report(subject(of), What::Down, Some(change), now_ns);
        }
        self.down.insert(change, chosen);
        Vec::new()
    }

    /// They are repaired.
    pub(super) fn repair(&mut self, change: u32, now_ns: u64) -> Vec<Move> {
        for of in self.down.remove(&change).unwrap_or_default() {
            self.effects.push(Effect::Repair(of.line));
            self.report(subject(&of), What::Up, Some(change), now_ns);
        }
        Vec::new()
    }
}

/// What fails.
fn subject(of: &FailingNode) -> Subject {
    of.member.map_or(Subject::Node(of.node), Subject::Member)
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
