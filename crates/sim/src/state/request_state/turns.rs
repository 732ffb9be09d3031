//! Counts the retries and fan-outs that each request has left on its way: another one begins ways of its own. Kept
//! only where one can follow another, which takes a `sequence`.

use crate::code::SlotId;

/// By slot; and by row (a retry that encloses a slot) the values outside, and how often the slot has come to the
/// retry before.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    kept: bool,
    now: Vec<u32>,
    outside: Vec<(u32, u32)>,
}

impl Turns {
    pub fn new(kept: bool) -> Turns {
        Turns { kept, ..Turns::default() }
    }

    /// Grows to `slots` and `rows`.
    pub fn grow(&mut self, slots: usize, rows: usize) {
        if self.kept {
            self.now.resize(slots, 0);
            self.outside.resize(rows, (0, 0));
        }
    }

    pub fn count(&self, slot: SlotId) -> u32 {
        if self.kept { self.now[slot.index()] } else { 0 }
    }

    #[inline]
    pub fn set(&mut self, slot: SlotId, turn: u32) {
        if self.kept {
            self.now[slot.index()] = turn;
        }
    }

    /// A slot begins a retry.
    pub fn begin(&mut self, slot: SlotId, row: usize, came: u32) {
        self.outside[row] = (self.now[slot.index()], came);
    }

    /// The values outside of a retry, and how often its slot had come to it before.
    pub fn outside(&self, row: usize) -> (u32, u32) {
        self.outside.get(row).copied().unwrap_or_default()
    }

    /// A slot leaves a retry.
    pub fn end(&mut self, slot: SlotId, row: usize) {
        if self.kept {
            self.now[slot.index()] = self.outside[row].0 + 1;
        }
    }

    pub fn copy(&mut self, from: SlotId, to: SlotId) {
        self.set(to, self.count(from));
    }

    pub fn copy_row(&mut self, from: usize, to: usize) {
        if self.kept {
            self.outside[to] = self.outside[from];
        }
    }
}
