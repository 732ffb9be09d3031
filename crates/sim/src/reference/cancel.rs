//! Cancellation: everything behind is cut off in the same instant, however far away, and gives back what it holds.
//!
//! It travels inwards and stops at the first queue or server whose requests continue (`on_cancel`). Then everything
//! outside of that place is given back, and the branch continues to it, unwanted.

use super::branch::{Branch, Frame, Phase};
use super::build::Act;
#[cfg(test)]
use super::run::Sabotage;
use super::run::{Flow, Reference};
use crate::code::{MemberId, SlotId};
use weir_policy::Kind;

/// A stage that a branch is at or has passed.
#[derive(Clone, Copy)]
struct Position {
    stage: u32,
    member: MemberId,
    depth: u16,
    /// The branch's frame there.
    frame: Frame,
    /// Whether the branch is at it, rather than past it.
    own: bool,
}

impl Reference<'_> {
    /// A branch with a limit did not return in time: it is cut off, and its parent continues with an error.
    pub(super) fn cut_child(&mut self, child: SlotId, kind: Kind) {
        let parent = self.branches.slots[child.index()].parent;
        if parent == SlotId::NONE {
            return;
        }
        self.settle(child);
        self.branches.hand_visits(child, parent);
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::KeepChild) && self.clients.issued >= 100 {
            self.branches.slots[child.index()].parent = SlotId::NONE;
            self.resume_parent(parent, Some(kind), 0);
            return self.run_branch(parent, Flow::Out);
        }
        self.late = self.timed_pick(child);
        self.cancel(child, false);
        self.late = None;
        self.resume_parent(parent, Some(kind), 0);
        self.note_answer(parent, Some(kind));
        self.run_branch(parent, Flow::Out);
    }

    /// The balancer that sent on a branch with a limit, if nothing but retries is between the limit and it: the branch,
    /// the depth and the stage.
    fn timed_pick(&self, child: SlotId) -> Option<(SlotId, u16, u32)> {
        let (mut at, mut found) = (Some(self.innermost(child)), None);
        while let Some(here) = at {
            match self.tables.nodes[here.stage as usize].act {
                Act::Balance { .. } if !here.own => found = Some((child, here.depth, here.stage)),
                Act::Retry { .. } => {}
                _ => found = None,
            }
            at = self.around(child, here);
        }
        found
    }

    /// The client of a request leaves.
    pub(super) fn leave_client(&mut self, slot: SlotId) {
        self.settle(slot);
        self.branches.slots[slot.index()].outcome = Some(Kind::Cancelled);
        self.end_request(slot);
        self.cancel(slot, false);
    }

    /// A branch with children continues with their outcome and the status of their answer (0: none).
    pub(super) fn resume_parent(&mut self, parent: SlotId, outcome: weir_policy::Outcome, status: u16) {
        let branch = &mut self.branches.slots[parent.index()];
        (branch.outcome, branch.status, branch.relayed) = (outcome, status, false);
        branch.load = None;
        branch.since = self.now_ns;
        branch.epoch = branch.epoch.wrapping_add(1);
        self.branches.child[parent.index()] = SlotId::NONE;
    }

    /// Books the time of a branch that is about to be cut off, down to where the request is, and moves its notes to
    /// its parent: that time counts.
    pub(super) fn settle(&mut self, slot: SlotId) {
        if self.branches.slots[slot.index()].phase == Phase::Children {
            if let Some(child) = self.standing_child(slot) {
                if self.branches.groups[slot.index()].hedging.is_some() {
                    self.note_start(slot, self.branches.slots[child.index()].begun);
                }
                self.settle(child);
                let hedged = self.branches.groups[slot.index()].hedging.is_some();
                let first = hedged && self.branches.slots[child.index()].index == 0;
                if first || child == self.branches.child[slot.index()] {
                    self.branches.hand_visits(child, slot);
                }
            }
            self.branches.slots[slot.index()].since = self.now_ns;
        } else {
            self.charge(slot);
        }
        let parent = self.branches.slots[slot.index()].parent;
        if parent.is_some() && self.tables.notes {
            self.move_notes(slot, parent);
        }
    }

    /// Copies the visits of a child that is about to be cut off to its parent, which is on the same way.
    pub(super) fn settle_visits(&mut self, child: SlotId, parent: SlotId) {
        let single = self.branches.child[child.index()];
        let hedged = self.branches.groups[child.index()].hedging.is_some();
        let first = self.branches.groups[child.index()].branches.first().copied().filter(|_| hedged);
        let inner = if single == SlotId::NONE { first.unwrap_or(SlotId::NONE) } else { single };
        if self.branches.slots[child.index()].phase == Phase::Children && inner != SlotId::NONE {
            self.settle_visits(inner, child);
        }
        self.branches.hand_visits(child, parent);
    }

    /// Moves the notes of one branch to another.
    pub(super) fn move_notes(&mut self, from: SlotId, to: SlotId) {
        if let Some(recorder) = &mut self.branches.recorder {
            recorder.move_stays(from, to);
        }
        let mut notes = std::mem::take(&mut self.branches.notes[from.index()]);
        self.branches.notes[to.index()].append(&mut notes);
        self.branches.notes[from.index()] = notes;
    }

    /// The branch whose answer was waited for: a single one, or the first that is open.
    fn standing_child(&self, slot: SlotId) -> Option<SlotId> {
        let single = self.branches.child[slot.index()];
        if single != SlotId::NONE {
            return Some(single);
        }
        self.branches.groups[slot.index()].branches.iter().copied().find(|b| b.is_some())
    }

    /// Cuts a branch off. With `force`, no request behind it continues.
    pub(super) fn cancel(&mut self, slot: SlotId, force: bool) {
        #[cfg(test)]
        self.see_cut(slot, force);
        let goes_on = if force { None } else { self.outermost_that_goes_on(slot) };
        let Some((depth, stage)) = goes_on else {
            return self.cut_off(slot, force);
        };
        let mut at = self.innermost(slot);
        let mut outside = false;
        loop {
            if outside {
                self.give_back(slot, at);
            }
            outside |= (at.depth, at.stage) == (depth, stage);
            match self.around(slot, at) {
                Some(next) => at = next,
                None => break,
            }
        }
        // Time up to now has been booked where it counts, or never will be.
        self.charge(slot);
        self.spend_notes(slot);
        self.unwanted_behind(slot);
        let branch = &mut self.branches.slots[slot.index()];
        (branch.floor_depth, branch.floor_stage) = (depth, stage);
        branch.parent = SlotId::NONE;
        self.stay_in_cell(slot);
    }

    /// Marks a branch that continues, and all its children, as unwanted. They keep the list of targets that the request
    /// tried: the branch that kept it for them is removed.
    fn unwanted_behind(&mut self, slot: SlotId) {
        let heir = slot;
        let Branch { tries_of, hedge_of, .. } = self.branches.slots[slot.index()];
        let inherits = tries_of.is_some() && tries_of != heir;
        if inherits {
            self.branches.tried[heir.index()] = self.branches.tried[tries_of.index()].clone();
        }
        let mut stack = vec![slot];
        while let Some(slot) = stack.pop() {
            let branch = &mut self.branches.slots[slot.index()];
            branch.wanted = false;
            if branch.hedge_of == hedge_of {
                branch.hedge_of = SlotId::NONE;
            }
            if inherits && branch.tries_of == tries_of {
                branch.tries_of = heir;
            }
            if branch.phase != Phase::Children {
                self.charge(slot);
                continue;
            }
            let single = self.branches.child[slot.index()];
            if single != SlotId::NONE {
                stack.push(single);
            } else {
                let group = &self.branches.groups[slot.index()];
                stack.extend(group.branches.iter().copied().filter(|b| b.is_some()));
            }
        }
    }

    /// Removes a branch, with all that it holds and all its children.
    fn cut_off(&mut self, slot: SlotId, force: bool) {
        if self.branches.slots[slot.index()].phase == Phase::Children {
            let single = self.branches.child[slot.index()];
            if single != SlotId::NONE {
                self.cancel(single, force);
            } else {
                let open = std::mem::take(&mut self.branches.groups[slot.index()].branches);
                open.iter().filter(|b| b.is_some()).for_each(|b| self.cancel(*b, force));
                self.branches.groups[slot.index()].branches = open;
            }
        } else {
            let branch = &mut self.branches.slots[slot.index()];
            branch.wanted = false;
            self.charge(slot);
        }
        self.work_ends(slot);
        let mut at = self.innermost(slot);
        loop {
            self.give_back(slot, at);
            match self.around(slot, at) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.spend_notes(slot);
        self.leave_cell(slot);
        self.stops(slot);
        self.branches.remove(slot);
    }

    fn innermost(&self, slot: SlotId) -> Position {
        let branch = &self.branches.slots[slot.index()];
        Position {
            stage: branch.stage,
            member: branch.member,
            depth: branch.depth,
            frame: Frame::default(),
            own: true,
        }
    }

    /// The stage around a position; `None` at the one where the branch ends.
    fn around(&self, slot: SlotId, at: Position) -> Option<Position> {
        let branch = &self.branches.slots[slot.index()];
        if (at.stage, at.depth) == (branch.floor_stage, branch.floor_depth) {
            return None;
        }
        if at.stage == self.tables.nodes[at.stage as usize].first {
            let depth = at.depth - 1;
            let frame = self.branches.frame(slot, depth);
            let Frame { stage, member, .. } = frame;
            return Some(Position { stage, member, depth, frame, own: false });
        }
        Some(Position { stage: at.stage - 1, own: false, ..at })
    }

    /// Depth and stage of the outermost queue or server whose request continues.
    pub(super) fn outermost_that_goes_on(&self, slot: SlotId) -> Option<(u16, u32)> {
        let phase = self.branches.slots[slot.index()].phase;
        let mut at = Some(self.innermost(slot));
        let mut found = None;
        while let Some(here) = at {
            let on_cancel = match self.tables.nodes[here.stage as usize].act {
                Act::Queue { queue } => Some(self.tables.queues[queue as usize].on_cancel),
                Act::Share { server } => Some(self.tables.servers[server as usize].on_cancel),
                _ => None,
            };
            let inside = !here.own || phase == Phase::Inside;
            let holds = !here.own || matches!(phase, Phase::Inside | Phase::Line);
            if holds && on_cancel.is_some_and(|o| o.goes_on(inside)) {
                found = Some((here.depth, here.stage));
            }
            at = self.around(slot, here);
        }
        found
    }

    /// Gives back what a branch holds at a position.
    fn give_back(&mut self, slot: SlotId, at: Position) {
        let branch = &self.branches.slots[slot.index()];
        let (phase, selected) = (branch.phase, branch.selected);
        let act = self.tables.nodes[at.stage as usize].act;
        let holds = !at.own || matches!(phase, Phase::Inside | Phase::Line);
        if matches!(act, Act::Queue { .. } | Act::Share { .. }) && holds {
            self.leaves_node(at.stage, at.member);
        }
        match act {
            Act::Queue { .. } | Act::Share { .. } | Act::Balance { .. } | Act::Connect { .. }
                if at.own && phase == Phase::Line =>
            {
                self.leave_line(slot);
            }
            Act::Connect { .. } if !at.own || phase == Phase::Inside => {
                self.return_connection(slot, (at.depth, at.stage), true);
            }
            Act::Queue { queue } if !at.own || phase == Phase::Inside => {
                self.leave_queue(queue, at.member, selected);
            }
            Act::Share { server } if at.own && phase == Phase::Inside => self.leave_server(slot, server),
            Act::Balance { lb } if !at.own => {
                #[cfg(test)]
                if self.sabotage == Some(Sabotage::LeakCount) && self.clients.issued >= 100 {
                    return;
                }
                let late = self.late == Some((slot, at.depth, at.stage));
                self.pick_is_cut(lb, at.member, at.frame, late);
            }
            _ => {}
        }
    }

    /// The run is over: gives up all requests that are still in flight.
    pub(super) fn give_up(&mut self) {
        if let Some(of) = self.connections.as_deref_mut() {
            of.end_run();
        }
        if self.tables.loses && self.branches.live > 0 {
            self.now_ns = self.ledger.last_step.max(self.ledger.last_stop);
            if self.branches.live > self.checks_live {
                self.changes.attendance.end(self.now_ns);
            }
        }
        // A branch in a line gets no further.
        for slot in (0..self.branches.slots.len() as u32).map(SlotId) {
            let branch = &self.branches.slots[slot.index()];
            if branch.live && branch.phase == Phase::Line && !branch.shakes_for.is_some() {
                let (stage, member) = (branch.stage, branch.member);
                if let Act::Queue { .. } | Act::Share { .. } = self.tables.nodes[stage as usize].act {
                    self.leaves_node(stage, member);
                }
                self.leave_line(slot);
                self.branches.slots[slot.index()].phase = Phase::Lost;
            }
        }
        for slot in (0..self.branches.slots.len() as u32).map(SlotId) {
            let branch = &mut self.branches.slots[slot.index()];
            if !branch.live || branch.parent.is_some() || branch.shakes_for.is_some() {
                continue;
            }
            if branch.wanted {
                branch.outcome = Some(Kind::Lost);
                self.lose_request(slot);
            }
            self.cancel(slot, true);
        }
    }
}
