//! Nodes that fail and are repaired in other ways than refusing by themselves: several on one time-line, processes that crash,
//! black holes, slow ones.
//!
//! - In virtual time: none. A crash is a scope like a limit without an event of its own: what is inside when the time-line goes
//!   down is cut off at once and fails with `reset`; so is what only went on there because nobody told it to stop.
//! - Given back when cut off: all that is held inside, whatever a queue says of those who are gone.
//! - Draws: the periods of each time-line, by node or name.

use crate::blocks::{Draft, NOT, inside, spare};
use crate::code::{Code, Op};
use crate::compile::{Compiler, Post};
use crate::engine::{END_OF_TIME, Engine, FLIP};
use crate::order::{Class, Entry, order_key};
use crate::request_state::{CHECK, PARKED};
use crate::scopes::{GHOST, Limit};
use std::collections::{BTreeMap, BTreeSet};
use weir_model::draws::purpose;
use weir_model::faulty::{Faulty, Law};
use weir_plan::{Clock, Faulty as Spec, Line, Mode, To};
use weir_policy::Kind;
use weir_stats::Key;

/// The place of nodes that fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DownSite {
    pub mode: Mode,
    /// What work takes longer by while it is down.
    pub slow: f64,
    /// Whether checks pass while it is down.
    pub checks_pass: bool,
    /// Member to [`LineTables::of_node`].
    pub offset: u32,
    pub stage: u32,
    /// Where a request goes on that it refuses, or that a crash cuts off.
    pub skip: u32,
}

/// The time-line of a faulty node, or of several.
#[derive(Clone, Debug)]
pub(crate) struct LineSite {
    pub law: Law,
    key: LineKey,
    /// Whether it flips by events: there is something to do when it does.
    pub eager: bool,
    /// Warm-ups that begin anew when it comes up again.
    pub warmups: Vec<u32>,
}

/// What the periods of a time-line are drawn by.
#[derive(Clone, Debug)]
enum LineKey {
    /// Place, and number at it.
    Node(u32, u32),
    Name(String),
}

/// What a scenario knows of its time-lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineTables {
    pub sites: Vec<DownSite>,
    pub lines: Vec<LineSite>,
    /// The time-line of each faulty node.
    pub of_node: Vec<u32>,
    /// Nodes of processes that crash, each with its time-line.
    crashing: Vec<(u32, u32)>,
    /// Time-lines that several nodes share.
    shared: BTreeMap<Line, u32>,
    /// Place and number of every `block(...)` that requests can meet.
    blocks: BTreeSet<(u32, u32)>,
}

impl LineTables {
    /// All time-lines at their start.
    pub fn start(&self, code: &Code, key: Key) -> Vec<Faulty> {
        let node = key.with(purpose::NODE);
        let start = |line: &LineSite| {
            let key = match &line.key {
                LineKey::Node(place, number) => {
                    node.with(code.place_keys[*place as usize]).with(u64::from(*number))
                }
                LineKey::Name(name) => node.with(purpose::TOGETHER).with_text(name),
            };
            Faulty::new(&line.law, key)
        };
        self.lines.iter().map(start).collect()
    }
}

impl Compiler<'_> {
    /// The blocks of nodes that fail together.
    pub(crate) fn find_failing_blocks(&mut self) {
        let blocks = self.layout.reached().filter_map(|(id, spec)| match spec {
            weir_plan::Spec::Faulty(Spec { line: Line::Block(block), .. }) => {
                Some((self.layout.place(id), *block))
            }
            _ => None,
        });
        self.code.lines.blocks = blocks.collect();
    }

    pub(crate) fn down(&mut self, stage: u32, fault: &Spec, draft: &Draft, position: usize) -> Option<Post> {
        let offset = (self.code.lines.of_node.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let line = self.line(fault, node);
            let crashes = fault.mode == Mode::Crash;
            self.code.lines.lines[line as usize].eager |= crashes && fault.clock == Clock::Eager;
            self.code.lines.of_node.push(line);
            if crashes {
                self.code.lines.crashing.push((node, line));
            }
        }
        if matches!(fault.mode, Mode::Refuse | Mode::Crash) {
            self.layout.add_refusals(&mut self.code, stage, draft);
        }
        self.code.details = true;
        let (mode, slow, checks_pass) = (fault.mode, fault.slow, fault.checks_pass);
        self.code.lines.sites.push(DownSite { mode, slow, checks_pass, offset, stage, skip: NOT });
        let down = self.code.lines.sites.len() as u32 - 1;
        self.op(Op::Down { down }, &[]);
        Some(Post::Op(match mode {
            Mode::Refuse | Mode::Blackhole => Op::Pass,
            Mode::Slow => Op::Cool { slow: true },
            Mode::Crash => Op::Survived { down },
        }))
    }

    /// The time-line of a faulty node.
    fn line(&mut self, fault: &Spec, node: u32) -> u32 {
        if let Some(&known) = self.code.lines.shared.get(&fault.line) {
            return known;
        }
        let place = self.layout.place(node);
        let tables = &mut self.code.lines;
        let key = match &fault.line {
            Line::Own => LineKey::Node(place, self.layout.number[node as usize]),
            Line::Together(name) => LineKey::Name(name.clone()),
            // Numbered among those of their place; what the file makes elsewhere changes nothing.
            Line::Block(block) => {
                LineKey::Node(place, tables.blocks.range((place, 0)..(place, *block)).count() as u32)
            }
        };
        let law = fault.law();
        let line = tables.lines.len() as u32;
        tables.lines.push(LineSite { law, key, eager: false, warmups: Vec::new() });
        if fault.line != Line::Own {
            tables.shared.insert(fault.line.clone(), line);
        }
        line
    }

    /// Which warm-ups begin anew when a process comes back.
    pub(crate) fn find_restarts(&mut self) {
        if self.warm_nodes.is_empty() {
            return;
        }
        let point = self.layout.point;
        for (node, line) in std::mem::take(&mut self.code.lines.crashing) {
            let (mut seen, mut stack) = (BTreeSet::new(), vec![node]);
            while let Some(id) = stack.pop() {
                if !seen.insert(id) {
                    continue;
                }
                self.code.lines.lines[line as usize].warmups.extend(self.warm_nodes.get(&id));
                stack.extend(spare(point, id));
                match inside(point, id) {
                    To::None => {}
                    To::Node(child) => stack.push(child),
                    To::List(l) => stack.extend(&point.lists[l as usize]),
                }
            }
        }
        for line in &mut self.code.lines.lines {
            line.warmups.sort_unstable();
            line.warmups.dedup();
        }
    }
}

/// The time-lines of a replication.
pub(crate) struct Lines {
    pub state: Vec<Faulty>,
    /// How often each flipped since the last request ended, and which did: what fails after all have their
    /// answers is nobody's outage.
    since: Vec<u64>,
    which: Vec<u32>,
    /// When a request ends, for the last one of those known by now.
    ends: u64,
}

impl Lines {
    pub fn new(code: &Code, key: Key) -> Lines {
        let state = code.lines.start(code, key);
        Lines { since: vec![0; state.len()], which: Vec::new(), ends: 0, state }
    }

    /// A time-line has flipped.
    fn flip(&mut self, line: u32, flips: u64, now: u64) {
        if now >= self.ends {
            if self.since[line as usize] == 0 {
                self.which.push(line);
            }
            self.since[line as usize] += flips;
        }
    }

    /// A request ends at `time`; nothing can prevent that any more.
    #[inline]
    pub fn request_ends(&mut self, time: u64) {
        self.ends = self.ends.max(time);
        while let Some(line) = self.which.pop() {
            self.since[line as usize] = 0;
        }
    }

    /// How often nodes failed until the last request ended.
    pub fn outages(&mut self, sites: &[LineSite]) -> u64 {
        for (state, site) in self.state.iter_mut().zip(sites).filter(|(_, site)| site.eager) {
            while state.next_flip_ns() < self.ends {
                state.flip_due(&site.law);
            }
        }
        self.state.iter().zip(&self.since).map(|(line, since)| (line.flips() - since).div_ceil(2)).sum()
    }
}

impl Engine<'_> {
    /// Schedules the first flips of the time-lines that flip by events.
    pub(crate) fn schedule_flips(&mut self) {
        for line in 0..self.lines.state.len() as u32 {
            if self.code.lines.lines[line as usize].eager {
                self.schedule_flip(line, 0);
            }
        }
    }

    fn schedule_flip(&mut self, line: u32, now: u64) {
        let at = self.lines.state[line as usize].next_flip_ns().min(END_OF_TIME);
        let key = order_key(Class::Fault, u64::from(line));
        self.pending.push(now, Entry { at, key, who: FLIP | line, tag: 0 });
    }

    /// A time-line flips.
    pub(crate) fn flip(&mut self, line: u32, now: u64) {
        let state = &mut self.lines.state[line as usize];
        state.flip_due(&self.code.lines.lines[line as usize].law);
        let is_up = state.is_up_now();
        self.lines.flip(line, 1, now);
        self.schedule_flip(line, now);
        self.flipped(line, is_up, now);
    }

    fn flipped(&mut self, line: u32, is_up: bool, now: u64) {
        if !is_up {
            return self.crash(line, now);
        }
        for &warmup in &self.code.lines.lines[line as usize].warmups {
            self.warmups[warmup as usize].restart(now);
        }
    }

    /// Whether the nodes of a time-line are up for what enters now.
    fn line_is_up(&mut self, line: u32, now: u64, after_faults: bool) -> bool {
        let site = &self.code.lines.lines[line as usize];
        let state = &mut self.lines.state[line as usize];
        if site.eager {
            return state.is_up_now();
        }
        let before = state.flips();
        let is_up = state.is_up(&site.law, now, after_faults);
        let flips = state.flips() - before;
        if flips > 0 {
            if self.code.loses {
                self.lines.flip(line, flips, now);
            }
            self.flipped(line, is_up, now);
        }
        is_up
    }

    /// Whether the node of a member is up.
    pub(crate) fn is_up(&mut self, down: u32, member: u32, now: u64, after_faults: bool) -> bool {
        let site = self.code.lines.sites[down as usize];
        self.line_is_up(self.code.lines.of_node[member.wrapping_add(site.offset) as usize], now, after_faults)
    }

    /// A request comes to a node that may be down; false: it goes no further now.
    pub(crate) fn come_to_fault(
        &mut self,
        slot: u32,
        pc: usize,
        member: u32,
        depth: usize,
        now: u64,
        after_faults: bool,
    ) -> bool {
        let Op::Down { down } = self.code.steps[pc].op else { return false };
        let site = self.code.lines.sites[down as usize];
        let (tag, check) =
            (self.states.slots[slot as usize].tag, self.states.slots[slot as usize].pc & CHECK);
        let selected = self.states.slots[slot as usize].mask();
        // It may be inside of what is just found dead: another node on that time-line.
        self.leave_at(slot, pc as u32 | PARKED | check, member, depth);
        self.scopes.stand(slot, now, pc, member, depth);
        let is_up = self.is_up(down, member, now, after_faults);
        if self.states.slots[slot as usize].tag != tag {
            // It came here, and no further.
            self.count_cut(site.stage, member, selected);
            return false;
        }
        self.leave_at(slot, (pc as u32 + 1) | check, member, depth);
        let refused = match (site.mode, is_up) {
            (Mode::Slow, _) => {
                self.details.scale(slot, if is_up { 1.0 } else { site.slow });
                return true;
            }
            (Mode::Crash, true) => {
                let line = self.code.lines.of_node[member.wrapping_add(site.offset) as usize];
                self.enter_process(slot, line, site.skip, member, depth);
                return true;
            }
            (_, true) => return true,
            (Mode::Blackhole, false) => {
                self.lose(slot, site.stage, member, now);
                return false;
            }
            (Mode::Refuse, false) => Kind::Refused,
            (Mode::Crash, false) => Kind::ConnectFailed,
        };
        self.count_refusal(slot, member, site.stage);
        if site.mode == Mode::Crash {
            // What comes out of a process, or does not get in, passes its stage behind it.
            self.states.slots[slot as usize].set_outcome(Some(refused));
        } else {
            self.refuse(slot, member, site.stage, refused);
        }
        self.details.slots[slot as usize].relayed = false;
        self.states.slots[slot as usize].pc = site.skip;
        true
    }

    /// A request enters a process that can crash.
    fn enter_process(&mut self, slot: u32, line: u32, end: u32, member: u32, depth: usize) {
        let rank = self.scopes.slots[slot as usize].rank;
        let (retries, depth) = (self.states.slots[slot as usize].retries, depth as u16);
        let details = self.details.outside(slot);
        let row = Limit { live: 0, end, member, rank, depth, retries, details, until: 0 };
        let (live, _) = self.scopes.enter(slot, row, self.lines.state[line as usize].next_flip_ns());
        self.scopes.register(live, line);
        // Left behind by a client who has gone: what is behind knows nothing of that.
        self.states.slots[slot as usize].set_outcome(None);
    }

    /// A request comes out of a process that can crash.
    #[inline(never)]
    pub(crate) fn survived(&mut self, slot: u32, pc: usize, member: u32) {
        self.count_errors(slot, member, pc);
        self.scopes.leave_innermost(slot);
    }

    /// The processes on a time-line are killed.
    fn crash(&mut self, line: u32, now: u64) {
        let mut inside = self.scopes.inside(line, |slot| self.states.slots[slot as usize].ordinal);
        inside.sort_unstable();
        for (_, _, live, tag) in inside {
            let Some((slot, at)) = self.scopes.struck(live, tag) else { continue };
            let limit = self.scopes.limits[slot as usize * self.scopes.each + usize::from(at)];
            if limit.end == GHOST {
                self.kill(slot, now);
                continue;
            }
            self.cut_to(slot, &limit, now);
            self.back_to(slot, at, &limit);
            let token = &mut self.states.slots[slot as usize];
            token.set_outcome(Some(Kind::Reset));
            let end = limit.end | token.pc & CHECK;
            (token.pc, token.member, token.depth) = (end, limit.member, limit.depth);
            self.wake(slot, now);
        }
    }

    /// What goes on for nobody is cut off with all that it holds.
    pub(crate) fn kill(&mut self, slot: u32, now: u64) {
        let scope = &self.scopes.slots[slot as usize];
        let whole = Limit { end: scope.floor + 1, depth: scope.floor_depth, ..Limit::default() };
        self.cut_to(slot, &whole, now);
        self.vanish(slot, now);
    }
}
