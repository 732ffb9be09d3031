//! Nodes that fail and are repaired, and the requests that a crash cuts off.

use super::branch::Phase;
use super::build::{LineKey, LineSite, NONE};
use super::run::{Flow, Reference, what};
use crate::code::Code;
use crate::code::order::{Class, Entry, order_key};
use crate::code::{MemberId, SlotId};
use weir_model::draws::purpose;
use weir_model::faulty::{Faulty, Law};
use weir_model::pause::ProcessClock;
use weir_plan::Mode;
use weir_policy::Kind;
use weir_stats::Key;

impl LineSite {
    /// The timeline at its start, and the clock of a process that follows it. `node` is the key of the nodes' own
    /// draws.
    pub(super) fn start(&self, code: &Code, node: Key) -> (Faulty, ProcessClock) {
        let key = match &self.key {
            LineKey::Node(place, number) => {
                node.with(code.place_keys[*place as usize]).with(u64::from(*number))
            }
            LineKey::Name(name) => node.with(purpose::TOGETHER).with_text(name),
        };
        (Faulty::new(&self.law, key), ProcessClock::new(&self.law, key))
    }
}

/// The crashable processes that a branch is inside of: a cell is one of them, together with the cell around it.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    /// By timeline: the cell that is inside no other, and all cells that die with it.
    of_line: Vec<(u32, Vec<u32>)>,
    /// By cell: the branches that were sent into it or were left behind in it.
    inside: Vec<Vec<SlotId>>,
    /// Branches that live in any cell.
    branches_inside: u64,
    /// Those of them that a scheduled flip will reach, if nothing else does.
    pub will_be_cut: u64,
    /// Those that a change may reach.
    pub may_be_cut: u64,
}

#[derive(Debug)]
struct Cell {
    line: u32,
    around: u32,
    /// Whether its timeline, or one around it, flips by events; whether changes drive it, or one around it.
    eager: bool,
    driven: bool,
}

/// How a timeline flips.
#[derive(Clone, Copy)]
pub(super) struct Flips {
    /// By events of its own.
    pub eager: bool,
    /// By changes.
    pub driven: bool,
}

impl Cells {
    /// The cell inside `around` of a node on that timeline.
    fn within(&mut self, line: u32, flips: Flips, around: u32) -> u32 {
        if around != NONE {
            // There are few: one per path through nested processes. The search begins at the end, where the latest
            // are.
            let known = self.cells.iter().rposition(|c| (c.line, c.around) == (line, around));
            return known.unwrap_or_else(|| self.add(line, flips, around)) as u32;
        }
        let known = self.of_line.get(line as usize).map_or(NONE, |of| of.0);
        if known != NONE {
            return known;
        }
        let cell = self.add(line, flips, NONE) as u32;
        self.of_line[line as usize].0 = cell;
        cell
    }

    fn add(&mut self, line: u32, flips: Flips, around: u32) -> usize {
        let cell = self.cells.len();
        let eager = flips.eager || self.is_eager(around);
        let driven = flips.driven || self.is_driven(around);
        self.cells.push(Cell { line, around, eager, driven });
        self.inside.push(Vec::new());
        let mut at = cell as u32;
        while let Some(&Cell { line: of, around, .. }) = self.cells.get(at as usize) {
            if self.of_line.len() <= of as usize {
                self.of_line.resize(of as usize + 1, (NONE, Vec::new()));
            }
            let dies = &mut self.of_line[of as usize].1;
            if dies.last() != Some(&(cell as u32)) {
                dies.push(cell as u32);
            }
            at = around;
        }
        cell
    }

    /// Adds a branch to a cell's list, when it begins or is left behind there; returns its index in the list.
    pub fn register(&mut self, cell: u32, slot: SlotId) -> u32 {
        let list = &mut self.inside[cell as usize];
        list.push(slot);
        list.len() as u32 - 1
    }

    /// Removes a branch from a cell's list; returns the branch that takes its index, if any.
    pub fn strike(&mut self, cell: u32, spot: u32) -> Option<SlotId> {
        let list = &mut self.inside[cell as usize];
        list.swap_remove(spot as usize);
        list.get(spot as usize).copied()
    }

    fn is_eager(&self, cell: u32) -> bool {
        self.cells.get(cell as usize).is_some_and(|c| c.eager)
    }

    fn is_driven(&self, cell: u32) -> bool {
        self.cells.get(cell as usize).is_some_and(|c| c.driven)
    }

    /// Whether nothing is inside of the processes of a timeline.
    pub fn is_empty(&self, line: u32) -> bool {
        let cells = self.of_line.get(line as usize).map_or(&[][..], |of| &of.1);
        cells.iter().all(|cell| self.inside[*cell as usize].is_empty())
    }

    fn is_within(&self, cell: u32, line: u32) -> bool {
        let mut at = cell;
        while let Some(&Cell { line: of, around, .. }) = self.cells.get(at as usize) {
            if of == line {
                return true;
            }
            at = around;
        }
        false
    }

    pub fn enter(&mut self, cell: u32) {
        self.branches_inside += u64::from(cell != NONE);
        self.will_be_cut += u64::from(self.is_eager(cell));
        self.may_be_cut += u64::from(self.is_driven(cell));
    }

    pub fn leave(&mut self, cell: u32) {
        self.branches_inside -= u64::from(cell != NONE);
        self.will_be_cut -= u64::from(self.is_eager(cell));
        self.may_be_cut -= u64::from(self.is_driven(cell));
    }
}

impl Reference<'_> {
    /// Schedules the first flips of the timelines that flip by events.
    pub(super) fn schedule_flips(&mut self) {
        for line in 0..self.lines.len() as u32 {
            let begins_later = self.lines[line as usize].next_flip_ns() == u64::MAX;
            let site = &self.tables.lines[line as usize];
            if site.eager_crash && !site.is_driven && !begins_later {
                self.schedule_flip(line);
            }
        }
    }

    pub(super) fn schedule_flip(&mut self, line: u32) {
        let at = self.lines[line as usize].next_flip_ns().min(u64::MAX - 1);
        let key = order_key(Class::Fault, u64::from(line));
        self.pending.push(self.now_ns, Entry { at, key, who: what::FLIP | line, tag: 0 });
    }

    /// A timeline flips.
    pub(super) fn flip(&mut self, line: u32) {
        let state = &mut self.lines[line as usize];
        state.flip_due(&self.tables.lines[line as usize].law);
        let is_up = state.is_up_now();
        self.count_flips(line, 1);
        self.schedule_flip(line);
        self.flipped(line, is_up);
    }

    fn count_flips(&mut self, line: u32, flips: u64) {
        if self.flips_since[line as usize] == 0 {
            self.flipped_since.push(line);
        }
        self.flips_since[line as usize] += flips;
    }

    /// A change lets the nodes of a timeline fail, or repairs them.
    pub(super) fn drive(&mut self, line: u32, is_up: bool) {
        if self.lines[line as usize].drive(is_up) {
            self.count_flips(line, 1);
            self.flipped(line, is_up);
        }
    }

    fn flipped(&mut self, line: u32, is_up: bool) {
        if is_up {
            let tables = self.tables;
            for &birth in &tables.lines[line as usize].anew {
                self.brings(birth);
            }
        } else {
            self.crash(line);
        }
    }

    /// Whether the nodes of a timeline are up for a branch that enters now.
    fn is_up(&mut self, line: u32) -> bool {
        let site = &self.tables.lines[line as usize];
        let state = &mut self.lines[line as usize];
        if site.eager_crash {
            return state.is_up_now();
        }
        let before = state.flips();
        let is_up = state.is_up(&site.law, self.now_ns, self.class >= Class::Fault);
        let flips = state.flips() - before;
        if flips > 0 {
            if self.tables.loses {
                self.count_flips(line, flips);
            }
            self.flipped(line, is_up);
        }
        is_up
    }

    /// Whether the node that a branch is at is up.
    pub(super) fn is_up_for(&mut self, slot: SlotId, fault: u32) -> bool {
        let site = &self.tables.faults[fault as usize];
        let member = self.branches.slots[slot.index()].member;
        self.is_up(self.tables.fault_lines[member.index_from(site.offset)])
    }

    /// A branch enters a node that may be down.
    pub(super) fn enter_fault(&mut self, slot: SlotId, fault: u32) -> Flow {
        let site = &self.tables.faults[fault as usize];
        let member = self.branches.slots[slot.index()].member;
        let line = self.tables.fault_lines[member.index_from(site.offset)];
        let tag = self.branches.slots[slot.index()].tag;
        let is_up = self.is_up(line);
        if self.branches.slots[slot.index()].tag != tag {
            // The branch was inside a process that was just found dead: another node on that timeline.
            return Flow::Stop;
        }
        match (site.mode, is_up) {
            (Mode::Slow, _) => {
                self.branches.scale(slot, if is_up { 1.0 } else { site.slow });
                Flow::On
            }
            (Mode::Crash, true) => {
                let around = self.branches.slots[slot.index()].cell;
                let of = &self.tables.lines[line as usize];
                let flips = Flips { eager: of.eager_crash && !of.is_driven, driven: of.is_driven };
                let cell = self.cells.within(line, flips, around);
                let child = self.send_child(slot);
                // It was counted in the cell around, if any.
                self.cells.leave(around);
                self.cells.enter(cell);
                let spot = self.cells.register(cell, child);
                let branch = &mut self.branches.slots[child.index()];
                (branch.cell, branch.spot) = (cell, spot);
                Flow::Begin(child)
            }
            (Mode::Pause, _) => {
                let ns = self.held_ns(line, 0);
                self.sleep(slot, Phase::Out, ns, Class::Step, false)
            }
            (_, true) => Flow::On,
            (Mode::Refuse, false) => self.refuse(slot, Kind::Refused),
            (Mode::Crash, false) => self.refuse(slot, Kind::ConnectFailed),
            (Mode::Blackhole, false) => self.lose(slot),
        }
    }

    /// A branch that may have been inside processes has ended.
    pub(super) fn leave_cell(&mut self, slot: SlotId) {
        let branch = &self.branches.slots[slot.index()];
        let (cell, spot) = (branch.cell, branch.spot);
        self.cells.leave(cell);
        if spot != NONE
            && let Some(moved) = self.cells.strike(cell, spot)
        {
            self.branches.slots[moved.index()].spot = spot;
        }
    }

    /// Registers a branch that is left behind: no parent would take it along when a process dies.
    pub(super) fn stay_in_cell(&mut self, slot: SlotId) {
        let branch = &mut self.branches.slots[slot.index()];
        if branch.cell != NONE && branch.spot == NONE {
            branch.spot = self.cells.register(branch.cell, slot);
        }
    }

    /// The timeline that stops a member.
    fn pausing(&self, pause: Option<u32>, member: MemberId) -> Option<u32> {
        Some(self.tables.pauses[member.index_from(pause?)]).filter(|line| *line != NONE)
    }

    /// The clock of processes that follow a timeline, and its law.
    fn clock(&mut self, line: u32) -> (&ProcessClock, &Law) {
        let law = &self.tables.lines[line as usize].law;
        let clock = &mut self.clocks[line as usize];
        clock.advance(law, self.now_ns);
        (clock, law)
    }

    /// How long a wait takes that begins now inside of a process that pauses, or at its border.
    fn held_ns(&mut self, line: u32, ns: u64) -> u64 {
        let now_ns = self.now_ns;
        let (clock, law) = self.clock(line);
        clock.end_of(law, now_ns, ns).saturating_sub(now_ns)
    }

    /// How long the work of a branch takes that begins now.
    pub(super) fn worked_ns(&mut self, slot: SlotId, pause: Option<u32>, ns: u64) -> u64 {
        match self.pausing(pause, self.branches.slots[slot.index()].member) {
            Some(line) => self.held_ns(line, ns),
            None => ns,
        }
    }

    /// What the clock around a member shows now.
    pub(super) fn shown_ns(&mut self, pause: Option<u32>, member: MemberId) -> u64 {
        let now_ns = self.now_ns;
        let Some(line) = self.pausing(pause, member) else { return now_ns };
        let (clock, law) = self.clock(line);
        clock.read(law, now_ns)
    }

    /// When the clock around a member will show that.
    pub(super) fn when_shown(&mut self, pause: Option<u32>, member: MemberId, shown_ns: u64) -> u64 {
        let now_ns = self.now_ns;
        let Some(line) = self.pausing(pause, member) else { return shown_ns };
        let (clock, law) = self.clock(line);
        clock.when(law, now_ns, shown_ns)
    }

    /// A branch comes back to a node that may be down.
    pub(super) fn leave_fault(&mut self, slot: SlotId, fault: u32) -> Flow {
        let site = &self.tables.faults[fault as usize];
        match site.mode {
            Mode::Slow => self.branches.unscale(slot),
            Mode::Pause => {
                let member = self.branches.slots[slot.index()].member;
                let ns = self.held_ns(self.tables.fault_lines[member.index_from(site.offset)], 0);
                return self.sleep(slot, Phase::Back, ns, Class::Step, false);
            }
            Mode::Refuse | Mode::Crash | Mode::Blackhole => {}
        }
        Flow::Out
    }

    /// Kills the processes of a timeline: requests inside are cut off and fail with `reset`, as do those that continued
    /// only because no cancellation reached them.
    pub(super) fn crash(&mut self, line: u32) {
        self.connections_end(line);
        if self.cells.branches_inside == 0 {
            return;
        }
        let mut inside: Vec<(u64, u32, SlotId, u32)> = Vec::new();
        for &cell in self.cells.of_line.get(line as usize).map_or(&[][..], |of| &of.1) {
            for &slot in &self.cells.inside[cell as usize] {
                let branch = &self.branches.slots[slot.index()];
                // Children of other branches inside end with these.
                let parent = self.branches.slots.get(branch.parent.index());
                if parent.is_none_or(|p| !self.cells.is_within(p.cell, line)) {
                    inside.push((branch.order, branch.rank, slot, branch.tag));
                }
            }
        }
        inside.sort_unstable();
        for (_, _, slot, tag) in inside {
            let branch = &self.branches.slots[slot.index()];
            if branch.tag != tag || !branch.live {
                continue;
            }
            let parent = branch.parent;
            if parent.is_some() {
                self.settle(slot);
                self.branches.hand_visits(slot, parent);
            }
            self.cancel(slot, true);
            if parent.is_some() {
                self.resume_parent(parent, Some(Kind::Reset), 0);
                self.note_answer(parent, Some(Kind::Reset));
                self.wake(parent, Phase::Cut);
            }
        }
    }
}
