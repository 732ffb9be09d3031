//! Requests left behind: the processes whose crash still ends them, and the waits that are still to come.

use super::{GHOST, Limit, Scopes};
use crate::code::NOT;
use crate::code::StageId;
use crate::code::{MemberId, SlotId};
use crate::state::holds::Hold;

impl Scopes {
    /// A branch is left behind at a place: it stays under the limits inside of that place, and dies with the
    /// processes around it and with those on other timelines around its former parents.
    pub fn leave_behind(&mut self, slot: SlotId, floor: &Hold, lines: &[u32]) {
        let rows = self.rows(slot).to_vec();
        let around = |limit: &&Limit| {
            let depth = usize::from(limit.depth);
            depth < floor.depth || depth == floor.depth && limit.end > floor.pc
        };
        let gone = rows.iter().take_while(around).count();
        let mut lines = lines.to_vec();
        for row in &rows[..gone] {
            let live = &mut self.live[row.live as usize];
            live.tag = live.tag.wrapping_add(1);
            if live.line != NOT {
                lines.push(live.line);
                self.unregister(row.live);
            }
            self.spare.push(row.live);
        }
        let first = slot.index() * self.each;
        self.limits[first..first + rows.len() - gone].copy_from_slice(&rows[gone..]);
        let scope = &mut self.slots[slot.index()];
        scope.limits = (rows.len() - gone) as u16;
        let depth = rows[..gone].last().map_or(0, |row| row.depth);
        scope.base_depth = scope.base_depth.max(depth);
        self.haunt(slot, &lines);
    }

    /// Registers a request left behind with the processes on those timelines, outside of all its limits.
    pub fn haunt(&mut self, slot: SlotId, lines: &[u32]) {
        let rows = self.rows(slot).to_vec();
        let inside = rows.iter().find(|row| row.end != GHOST);
        let rank = inside.map_or(self.slots[slot.index()].rank, |row| row.rank);
        self.slots[slot.index()].limits = 0;
        for &line in lines {
            let (live, _) = self.enter(slot, Limit { end: GHOST, rank, ..Limit::default() }, 0);
            self.register(live, line);
        }
        let first = slot.index() * self.each + lines.len();
        self.limits[first..first + rows.len()].copy_from_slice(&rows);
        self.slots[slot.index()].limits = (lines.len() + rows.len()) as u16;
    }

    /// The timelines of the processes that a request is in.
    pub fn lines_of(&self, slot: SlotId, lines: &mut Vec<u32>) {
        let of = self.rows(slot).iter().map(|row| self.live[row.live as usize].line);
        lines.extend(of.filter(|line| *line != NOT));
    }

    /// How many frames deep the innermost part that can be cut off by itself begins.
    pub fn depth_of_innermost(&self, slot: SlotId) -> usize {
        let row = self.rows(slot).last().filter(|row| row.end != GHOST);
        usize::from(row.map_or(0, |row| row.depth).max(self.slots[slot.index()].base_depth))
    }
}

/// The position of a request that is cut off among its waits.
pub(crate) struct Passing<'b> {
    pub slot: SlotId,
    pub at: u64,
    /// Its order at the end of a wait: a wait that ends at this very instant may still be to come.
    pub key: u64,
    /// Its position was found; later waits have not begun.
    pub found: bool,
    pub left: Option<Remnant<'b>>,
}

impl Passing<'_> {
    /// A request left behind goes no further than its current wait.
    pub fn is_to_stop(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.stands.is_some())
    }

    /// A wait has been passed, up to this step.
    pub fn note_stop(&mut self, pc: usize, member: MemberId, depth: usize, drawn: u8) {
        let at = self.at;
        if let (true, Some(Remnant { stands: Some(stands), .. })) = (self.found, &mut self.left) {
            stands.get_or_insert(WaitEnd { pc, member, depth, at, drawn });
        }
    }
}

/// A request left behind goes on without its parent.
pub(crate) struct Remnant<'b> {
    /// [`SlotId::NONE`]: none.
    pub request: SlotId,
    /// Stage, member and time of the waits that it has still to pass.
    pub beyond: &'b mut Vec<(StageId, MemberId, u64)>,
    /// Where its wait ends, if it is to go no further than that.
    pub stands: Option<&'b mut Option<WaitEnd>>,
}

/// Where and when a wait ends, and how many drawn ones came before.
#[derive(Clone, Copy)]
pub(crate) struct WaitEnd {
    pub pc: usize,
    pub member: MemberId,
    pub depth: usize,
    pub at: u64,
    pub drawn: u8,
}
