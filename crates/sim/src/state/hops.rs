//! The listeners that requests have passed.

use crate::code::SlotId;
use weir_policy::config::Exclude;
use weir_policy::retry::BalancerId;

/// The state of a request for the nodes behind the innermost listener that it passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hop {
    /// The number of this entry of a listener; 0: none yet.
    pub serial: u32,
    /// Attempts that its request had begun by then.
    pub attempts: u32,
    /// The listener, as an instance that has connections; 0: none yet.
    pub instance: u32,
}

/// The state outside of a listener, and where that hop ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub inside: Hop,
    pub meets: u16,
    pub exclude: Exclude,
    pub depth: u16,
    pub end: u32,
    /// The number of retries that enclosed the request.
    pub retries: u8,
}

/// The listeners that requests have passed, by slot; empty where none is behind another.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    pub kept: bool,
    pub now: Vec<Hop>,
    pub rows: Vec<Vec<Row>>,
    pub entered: u32,
}

impl Hops {
    pub fn new(kept: bool) -> Hops {
        Hops { kept, ..Hops::default() }
    }

    /// A request begins in a slot.
    #[inline]
    pub fn begin(&mut self, slot: SlotId) {
        if self.kept {
            self.set(slot, Hop::default());
        }
    }

    #[cold]
    pub fn set(&mut self, slot: SlotId, inside: Hop) {
        if slot.index() >= self.now.len() {
            self.now.resize(slot.index() + 1, Hop::default());
            self.rows.resize(slot.index() + 1, Vec::new());
        }
        self.now[slot.index()] = inside;
        self.rows[slot.index()].clear();
    }

    /// Begins a branch of a request: it returns to its parent, and leaves no listener that the parent passed.
    pub fn branch(&mut self, from: SlotId, to: SlotId) {
        if self.kept {
            self.set(to, self.now[from.index()]);
        }
    }

    /// A request goes on in another slot as well.
    pub fn copy(&mut self, from: SlotId, to: SlotId) {
        if self.kept {
            self.set(to, self.now[from.index()]);
            self.rows[to.index()] = self.rows[from.index()].clone();
        }
    }

    /// The tag under which a request remembers targets of a balancer: apart from those that it tried or opened in
    /// other hops.
    pub fn tag(&self, slot: SlotId, balancer: u32) -> BalancerId {
        if self.kept { tag(balancer, self.now[slot.index()].serial) } else { BalancerId(balancer) }
    }

    /// The loop that a request used at a step that it has passed; `now` is its present loop.
    pub fn met_at(&self, slot: SlotId, pc: u32, depth: usize, now: u16) -> u16 {
        let rows = self.rows.get(slot.index()).map_or(&[][..], |rows| rows);
        let behind = |row: &&Row| {
            let at = usize::from(row.depth);
            at > depth || at == depth && row.end <= pc
        };
        rows.iter().rev().take_while(behind).last().map_or(now, |row| row.meets)
    }

    /// The instance whose connections a request uses.
    pub fn instance(&self, slot: SlotId) -> u32 {
        if self.kept { self.now[slot.index()].instance } else { 0 }
    }

    /// The attempts that a request had begun before it was a new one.
    pub fn attempts_before(&self, slot: SlotId) -> u32 {
        if self.kept { self.now[slot.index()].attempts } else { 0 }
    }
}

/// The tag of a balancer behind entry number `serial` of a listener.
pub(crate) fn tag(balancer: u32, serial: u32) -> BalancerId {
    BalancerId(balancer ^ serial.wrapping_mul(0x9E37_79B9))
}
