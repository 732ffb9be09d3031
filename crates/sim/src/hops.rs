//! Listeners behind others: each is a hop of its own, as if another process stood there.
//!
//! Behind one a request is a new one: it has tried no target and opened none, each first attempt there is a first, and it meets
//! one of that listener's loops. Whoever stands before one is answered as a client of weir is.
//!
//! - In virtual time: none.
//! - Given back when cut off: what held outside.
//! - Draws: which of several loops a request meets, by the request, its way and its place.

use crate::blocks::NOT;
use crate::code::Op;
use crate::compile::{Compiler, Post};
use crate::engine::Engine;
use crate::order::BRANCH_BITS;
use crate::scopes::Limit;
use weir_model::draws::of_place as purpose;
use weir_model::loops::met;
use weir_policy::config::Exclude;
use weir_policy::outcome::answered;

/// The place of such a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HopSite {
    pub loops: u32,
    /// Index in [`crate::code::Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
    /// The step behind its way back.
    pub end: u32,
}

/// What a request is to those behind the innermost listener that it came through.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    /// Which entry of a listener this was; 0: none yet.
    serial: u32,
    /// Attempts that its request had begun by then.
    attempts: u32,
}

/// What held outside of a listener, and where that ends.
#[derive(Clone, Copy, Debug)]
struct Row {
    inside: Inside,
    meets: u16,
    exclude: Exclude,
    depth: u16,
    end: u32,
    /// Retries that the request was inside of.
    retries: u8,
}

/// The listeners that requests have come through, by slot; nothing is kept where none is behind another.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    kept: bool,
    now: Vec<Inside>,
    rows: Vec<Vec<Row>>,
    entered: u32,
}

impl Hops {
    pub fn new(kept: bool) -> Hops {
        Hops { kept, ..Hops::default() }
    }

    /// A request begins in a slot.
    #[inline]
    pub fn begin(&mut self, slot: u32) {
        if self.kept {
            self.set(slot, Inside::default());
        }
    }

    #[cold]
    fn set(&mut self, slot: u32, inside: Inside) {
        if slot as usize >= self.now.len() {
            self.now.resize(slot as usize + 1, Inside::default());
            self.rows.resize(slot as usize + 1, Vec::new());
        }
        self.now[slot as usize] = inside;
        self.rows[slot as usize].clear();
    }

    /// A branch of a request: it comes back to whoever sent it in, and leaves no listener that that one came through.
    pub fn branch(&mut self, from: u32, to: u32) {
        if self.kept {
            self.set(to, self.now[from as usize]);
        }
    }

    /// A request goes on in another slot as well.
    pub fn copy(&mut self, from: u32, to: u32) {
        if self.kept {
            self.set(to, self.now[from as usize]);
            self.rows[to as usize] = self.rows[from as usize].clone();
        }
    }

    /// What targets of a balancer are remembered by, for a request: not those that it has tried or opened elsewhere.
    pub fn tag(&self, slot: u32, balancer: u32) -> u32 {
        if self.kept { tag(balancer, self.now[slot as usize].serial) } else { balancer }
    }

    /// The loop that a request met at a step that it has come past, where it meets that one now.
    pub fn met_at(&self, slot: u32, pc: u32, depth: usize, now: u16) -> u16 {
        let rows = self.rows.get(slot as usize).map_or(&[][..], |rows| rows);
        let behind = |row: &&Row| {
            let at = usize::from(row.depth);
            at > depth || at == depth && row.end <= pc
        };
        rows.iter().rev().take_while(behind).last().map_or(now, |row| row.meets)
    }

    /// The attempts that a request had begun before it was a new one.
    pub fn attempts_before(&self, slot: u32) -> u32 {
        if self.kept { self.now[slot as usize].attempts } else { 0 }
    }
}

/// A balancer as the so-manieth entry of a listener knows it.
pub(crate) fn tag(balancer: u32, serial: u32) -> u32 {
    balancer ^ serial.wrapping_mul(0x9E37_79B9)
}

impl Compiler<'_> {
    /// A listener behind another.
    pub(crate) fn hop(&mut self, loops: u32, place: u32) -> Option<Post> {
        let key = self.layout.draw_key(&mut self.code, purpose::HOP, place);
        self.code.details = true;
        self.code.hops.push(HopSite { loops, key, visits: None, end: NOT });
        let hop = self.code.hops.len() as u32 - 1;
        self.op(Op::Hop { hop }, &[]);
        Some(Post::Op(Op::Hopped { hop }))
    }
}

impl Engine<'_> {
    /// A request comes to a listener behind another.
    pub(crate) fn enter_hop(&mut self, slot: u32, hop: u32, depth: usize) {
        let site = self.code.hops[hop as usize];
        let met =
            if site.loops == 1 { 0 } else { met(site.loops, self.draw_key(slot, site.key, site.visits)) };
        let state = &mut self.states.slots[slot as usize];
        let scope = &mut self.scopes.slots[slot as usize];
        let hops = &mut self.hops;
        hops.entered = hops.entered.wrapping_add(1).max(1);
        let now = &mut hops.now[slot as usize];
        let row = Row {
            inside: *now,
            meets: scope.meets,
            exclude: state.exclude(),
            depth: depth as u16,
            end: site.end,
            retries: state.retries,
        };
        hops.rows[slot as usize].push(row);
        *now = Inside { serial: hops.entered, attempts: scope.rank >> BRANCH_BITS };
        scope.meets = met as u16;
        state.set_exclude(Exclude::None);
    }

    /// A request comes back from one.
    pub(crate) fn leave_hop(&mut self, slot: u32) {
        if let Some(row) = self.hops.rows[slot as usize].pop() {
            self.is_outside(slot, row);
        }
        let state = &mut self.states.slots[slot as usize];
        let detail = &mut self.details.slots[slot as usize];
        let (outcome, status) = answered(state.outcome(), detail.status);
        state.set_outcome(outcome);
        (detail.status, detail.relayed) = (status, false);
    }

    fn is_outside(&mut self, slot: u32, row: Row) {
        self.hops.now[slot as usize] = row.inside;
        self.scopes.slots[slot as usize].meets = row.meets;
        self.states.slots[slot as usize].set_exclude(row.exclude);
    }

    /// A request is outside of a limit again, and of the listeners behind that.
    pub(crate) fn cut_hops(&mut self, slot: u32, limit: &Limit) {
        if !self.hops.kept {
            return;
        }
        let behind = |row: &Row| row.depth > limit.depth || row.depth == limit.depth && row.end < limit.end;
        while let Some(row) = self.hops.rows[slot as usize].pop_if(|row| behind(row)) {
            self.states.drop_attempts(slot, row.retries);
            self.is_outside(slot, row);
        }
    }
}
