//! The listeners that requests have come through.

use weir_policy::config::Exclude;

/// What a request is to those behind the innermost listener that it came through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inside {
    /// Which entry of a listener this was; 0: none yet.
    pub serial: u32,
    /// Attempts that its request had begun by then.
    pub attempts: u32,
}

/// What held outside of a listener, and where that ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub inside: Inside,
    pub meets: u16,
    pub exclude: Exclude,
    pub depth: u16,
    pub end: u32,
    /// Retries that the request was inside of.
    pub retries: u8,
}

/// The listeners that requests have come through, by slot; nothing is kept where none is behind another.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    pub kept: bool,
    pub now: Vec<Inside>,
    pub rows: Vec<Vec<Row>>,
    pub entered: u32,
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
    pub fn set(&mut self, slot: u32, inside: Inside) {
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
