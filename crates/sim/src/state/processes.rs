//! Members that are processes: they boot, run, stop, and begin anew. Both engines keep this state; when a process ends is
//! decided in [`weir_model::process`].

use crate::code::Code;
use crate::code::changes::{Absence, Birth, ChangeTables, ProcessSite};
use crate::state::acts::{ActKind, Subject};
use crate::state::change_events::{Timer, timer_order};
use crate::state::changes::Changes;
use crate::state::seer::Move;
use crate::state::sights::Occasion;
use std::collections::VecDeque;
use weir_model::draws::purpose;
use weir_model::process::{Phase, Process, Turn};
use weir_plan::Rollout;
use weir_plan::fleets::Member;

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

impl Changes {
    /// A process is to go by a change, now or once it runs; returns what moves.
    pub(super) fn must_go(
        &mut self,
        tables: &ChangeTables,
        index: usize,
        goal: Goal,
        change: u32,
        now_ns: u64,
    ) -> Option<Move> {
        let member = tables.processes[index].member;
        let state = &mut self.processes[index];
        if !state.process.must_go(now_ns) {
            state.then.push_back(goal);
            self.delays.held_up.insert(change);
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
                self.report(Subject::Member(site.member), ActKind::Stops, None, now_ns);
                self.effects.push(Effect::Close(site.line));
                self.effects.push(Effect::Timer(Timer::Look(index), due_ns));
            }
            Some(Turn::Ends) => {
                self.draining.remove(&index);
                if was == Phase::Drains {
                    self.report(Subject::Member(site.member), ActKind::Stops, None, now_ns);
                }
                self.report(Subject::Member(site.member), ActKind::Stopped, None, now_ns);
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
        self.report(Subject::Member(member), ActKind::Boots, Some(change), now_ns);
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
        self.report(Subject::Member(member), ActKind::Runs, None, now_ns);
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
            let change = self.processes[index].change;
            return self.must_go(tables, index, goal, change, now_ns).filter(|_| was_listed);
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
}
