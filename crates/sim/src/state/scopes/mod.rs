//! The limits of each request, and where it is: fixed rows beside its state.

mod remnant;

use crate::code::fault_timelines::LineTables;
use crate::code::order::RANKS;
use crate::code::{Code, NOT};
use crate::code::{MemberId, SlotId};
use crate::state::holds::Hold;

pub(crate) use remnant::{Passing, Remnant, WaitEnd};

/// The most consecutive drawn waits that are one event.
const DRAWN: usize = 2;

/// The record beside the state of a request that can be cut off: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Scope {
    /// Where and when it began to wait.
    pub since: u64,
    pub pc: u32,
    pub member: MemberId,
    pub depth: u16,
    /// The limits that it is under.
    pub limits: u16,
    /// Its rank among the branches of one request; see [`ranked`].
    pub rank: u32,
    /// The lengths of the drawn waits since then, and their number.
    pub waits: [u64; DRAWN],
    pub drawn: u8,
    /// The event loop of the request.
    pub meets: u16,
    /// Where a request that goes on unwanted ends.
    pub floor: u32,
    pub floor_depth: u16,
    /// Nothing cuts it off before this: the first time at which something around it may.
    pub until: u64,
    /// The number of frames below which it began, or was left behind.
    pub base_depth: u16,
    /// The first rank beyond its own and its children's; see [`RANKS`].
    pub ranks_end: u32,
}

const OUTSIDE: Scope = Scope {
    since: 0,
    pc: 0,
    member: MemberId(0),
    depth: 0,
    limits: 0,
    rank: 1,
    waits: [0; DRAWN],
    drawn: 0,
    meets: 0,
    floor: NOT,
    floor_depth: 0,
    until: 0,
    base_depth: 0,
    ranks_end: RANKS + 1,
};

impl Scope {
    /// How many ranks it has, from its own on.
    pub fn ranks(&self) -> u32 {
        self.ranks_end - (self.rank & RANKS)
    }
}

/// A limit of a request: the values outside of it, and where the request goes on when it strikes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit {
    pub live: u32,
    pub end: u32,
    /// Of a limit of time: its site.
    pub site: u32,
    pub member: MemberId,
    pub rank: u32,
    pub depth: u16,
    pub retries: u8,
    /// See [`crate::state::request_details::Details::outside`].
    pub details: (u32, u16),
    /// See [`Scope::until`].
    pub until: u64,
}

/// The request of a limit's event, if the tags match.
#[derive(Clone, Copy, Debug)]
struct Live {
    slot: SlotId,
    tag: u32,
    /// The timeline of a process that can crash, and the index in its list; [`NOT`]: it is a limit of time.
    line: u32,
    spot: u32,
}

/// The end of a limit on the whole request.
pub(crate) const WHOLE: u32 = u32::MAX;
/// The end of requests left behind in a process that can crash: all of it dies there.
pub(crate) const GHOST: u32 = u32::MAX - 1;
/// The end of a health check's time.
pub(crate) const CHECKED: u32 = u32::MAX - 2;

/// All scopes, by slot.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    pub slots: Vec<Scope>,
    pub limits: Vec<Limit>,
    pub each: usize,
    live: Vec<Live>,
    spare: Vec<u32>,
    /// By timeline: the requests inside its processes.
    inside: Vec<Vec<u32>>,
    /// By slot: part and time, not yet known to count; only where requests can be lost.
    pub notes: Vec<Vec<(u32, u64)>>,
    keeps_notes: bool,
    /// [`Scope::until`] outside of all limits.
    outside: u64,
}

impl Scopes {
    pub fn new(code: &Code) -> Scopes {
        let inside = vec![Vec::new(); code.lines.lines.len()];
        // Where requests are lost, or go on without their clients, everything happens in its turn.
        let outside = if code.notes || code.goes_on { 0 } else { u64::MAX };
        Scopes { each: code.limit_depth, inside, keeps_notes: code.notes, outside, ..Scopes::default() }
    }

    /// A request begins in a slot.
    #[inline]
    pub fn begin(&mut self, slot: SlotId) {
        match self.slots.get_mut(slot.index()) {
            Some(scope) => {
                (scope.limits, scope.rank) = (0, 1);
                (scope.base_depth, scope.ranks_end) = (0, RANKS + 1);
            }
            None => self.grow(slot),
        }
        self.slots[slot.index()].until = self.outside;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, slot: SlotId) {
        self.slots.resize(slot.index() + 1, OUTSIDE);
        self.limits.resize(self.slots.len() * self.each, Limit::default());
        if self.keeps_notes {
            self.notes.resize(self.slots.len(), Vec::new());
        }
    }

    /// The request has ended, with all its limits.
    #[inline]
    pub fn end(&mut self, slot: SlotId) {
        if self.slots[slot.index()].limits > 0 {
            self.leave(slot, 0);
        }
    }

    /// A limit begins that may strike at `until`; returns the number and tag of its event.
    #[inline(always)]
    pub fn enter(&mut self, slot: SlotId, limit: Limit, until: u64) -> (u32, u32) {
        let live = match self.spare.pop() {
            Some(live) => live,
            None => {
                self.live.push(Live { slot, tag: 0, line: NOT, spot: 0 });
                self.live.len() as u32 - 1
            }
        };
        self.live[live as usize].slot = slot;
        let scope = &mut self.slots[slot.index()];
        self.limits[slot.index() * self.each + usize::from(scope.limits)] =
            Limit { live, until: scope.until, ..limit };
        scope.limits += 1;
        scope.until = scope.until.min(until);
        (live, self.live[live as usize].tag)
    }

    /// The innermost limit has ended; the values outside of it are restored.
    #[inline(always)]
    pub fn leave_innermost(&mut self, slot: SlotId) {
        let scope = &mut self.slots[slot.index()];
        scope.limits -= 1;
        let limit = &self.limits[slot.index() * self.each + usize::from(scope.limits)];
        (scope.rank, scope.until) = (limit.rank, limit.until);
        let number = limit.live;
        let live = &mut self.live[number as usize];
        live.tag = live.tag.wrapping_add(1);
        if live.line != NOT {
            self.unregister(number);
        }
        self.spare.push(number);
    }

    /// All limits but the first `keep` have ended; the values outside of them are restored.
    pub fn leave(&mut self, slot: SlotId, keep: u16) {
        while self.slots[slot.index()].limits > keep {
            self.leave_innermost(slot);
        }
    }

    /// Whether an event is for a limit that has ended.
    #[inline]
    pub fn is_over(&self, live: u32, tag: u32) -> bool {
        self.live.get(live as usize).is_some_and(|l| l.tag != tag)
    }

    /// Registers a scope with a process that can crash.
    pub fn register(&mut self, number: u32, line: u32) {
        let list = &mut self.inside[line as usize];
        let live = &mut self.live[number as usize];
        (live.line, live.spot) = (line, list.len() as u32);
        list.push(number);
    }

    #[cold]
    fn unregister(&mut self, number: u32) {
        let Live { line, spot, .. } = self.live[number as usize];
        let list = &mut self.inside[line as usize];
        list.swap_remove(spot as usize);
        if let Some(&moved) = list.get(spot as usize) {
            self.live[moved as usize].spot = spot;
        }
        self.live[number as usize].line = NOT;
    }

    /// Whether no request is in the processes of a timeline.
    pub fn is_empty(&self, line: u32) -> bool {
        self.inside[line as usize].is_empty()
    }

    /// The requests in the processes of a timeline, each by the outermost one, in the order in which they die, with
    /// number and tag.
    pub fn inside(&self, line: u32, order: impl Fn(SlotId) -> u64) -> Vec<(u64, u32, u32, u32)> {
        let list = self.inside[line as usize].iter();
        let outermost = list.filter_map(|&number| {
            let Live { slot, tag, .. } = self.live[number as usize];
            let rows = self.rows(slot);
            let first = rows.iter().position(|row| self.live[row.live as usize].line == line)?;
            // The request that is inside now, in its attempt.
            let behind = rows[first + 1..].iter().find(|row| row.end != GHOST);
            let rank = behind.map_or(self.slots[slot.index()].rank, |row| row.rank);
            (rows[first].live == number).then(|| (order(slot), rank, number, tag))
        });
        outermost.collect()
    }

    /// The limits of a request, from the outside in.
    fn rows(&self, slot: SlotId) -> &[Limit] {
        let first = slot.index() * self.each;
        &self.limits[first..first + usize::from(self.slots[slot.index()].limits)]
    }

    /// Whether a limit, or a scheduled crash, will cut a request off. `changes`: whether changes are still to come, which
    /// may end a process.
    pub fn will_be_cut(&self, slot: SlotId, lines: &LineTables, changes: bool) -> bool {
        self.rows(slot).iter().any(|row| {
            let line = self.live[row.live as usize].line;
            lines.lines.get(line as usize).is_none_or(|line| line.eager && (changes || !line.is_driven))
        })
    }

    /// The request, and which of its limits an event is for.
    pub fn struck(&self, live: u32, tag: u32) -> Option<(SlotId, u16)> {
        let found = self.live.get(live as usize).filter(|l| l.tag == tag)?;
        let first = found.slot.index() * self.each;
        let limits = usize::from(self.slots[found.slot.index()].limits);
        let at = self.limits[first..first + limits].iter().position(|l| l.live == live)?;
        Some((found.slot, at as u16))
    }

    /// Whether something may have cut a request off by then, or at that very instant.
    #[inline(always)]
    pub fn may_be_cut(&self, slot: SlotId, by: u64) -> bool {
        by >= self.slots[slot.index()].until
    }

    /// Whether a request that goes on unwanted ends at a step.
    pub fn ends_at(&self, slot: SlotId, pc: usize, depth: usize) -> bool {
        let scope = &self.slots[slot.index()];
        scope.floor as usize == pc && usize::from(scope.floor_depth) == depth
    }

    /// A request goes on in another slot, under the limits up to `at`; the part left behind is under those inside of
    /// the place where it ends.
    pub fn split(&mut self, from: SlotId, to: SlotId, at: u16, floor: &Hold) {
        self.begin(to);
        self.slots[to.index()] = Scope { limits: at + 1, ..self.slots[from.index()] };
        let (old, new) = (from.index() * self.each, to.index() * self.each);
        let (kept, all) = (usize::from(at) + 1, usize::from(self.slots[from.index()].limits));
        for row in 0..kept {
            self.limits[new + row] = self.limits[old + row];
            self.live[self.limits[new + row].live as usize].slot = to;
        }
        let rows: Vec<Limit> = self.limits[old..old + all].to_vec();
        let around = |limit: &&Limit| {
            let depth = usize::from(limit.depth);
            depth < floor.depth || depth == floor.depth && limit.end > floor.pc
        };
        let gone = rows[kept..].iter().take_while(around).count();
        let stay = &rows[kept + gone..];
        let rank = stay.first().map_or(self.slots[from.index()].rank, |row| row.rank);
        (self.slots[from.index()].limits, self.slots[from.index()].until) = (0, 0);
        for (i, row) in rows[..kept + gone].iter().enumerate() {
            let Live { line, .. } = self.live[row.live as usize];
            if line != NOT {
                // The part left behind dies with the process all the same.
                let ghost = Limit { end: GHOST, rank, ..*row };
                let (live, _) = self.enter(from, ghost, 0);
                self.register(live, line);
            }
            if i >= kept {
                let live = &mut self.live[row.live as usize];
                live.tag = live.tag.wrapping_add(1);
                if line != NOT {
                    self.unregister(row.live);
                }
                self.spare.push(row.live);
            }
        }
        let scope = &mut self.slots[from.index()];
        scope.base_depth = scope.base_depth.max(rows[kept + gone - 1].depth);
        let ghosts = usize::from(scope.limits);
        self.limits[old + ghosts..old + ghosts + stay.len()].copy_from_slice(stay);
        self.slots[from.index()].limits = (ghosts + stay.len()) as u16;
    }

    /// Moves the notes of one request to another.
    pub fn hand_notes(&mut self, from: SlotId, to: SlotId) {
        if self.keeps_notes {
            self.notes.swap(from.index(), to.index());
        }
    }

    /// A request begins to wait.
    #[inline]
    pub fn stand(&mut self, slot: SlotId, now_ns: u64, pc: usize, member: MemberId, depth: usize) {
        let scope = &mut self.slots[slot.index()];
        scope.since = now_ns;
        scope.pc = pc as u32;
        scope.member = member;
        scope.depth = depth as u16;
        scope.drawn = 0;
    }

    /// Whether it has used up its drawn waits and must stop first.
    #[inline]
    pub fn is_full(&self, slot: SlotId) -> bool {
        usize::from(self.slots[slot.index()].drawn) == DRAWN
    }

    /// A drawn wait follows.
    #[inline]
    pub fn drew(&mut self, slot: SlotId, ns: u64) {
        let scope = &mut self.slots[slot.index()];
        if let Some(wait) = scope.waits.get_mut(usize::from(scope.drawn)) {
            *wait = ns;
            scope.drawn += 1;
        }
    }
}

const _: () = assert!(size_of::<Scope>() == 64);
const _: () = assert!(size_of::<Limit>() == 40);
