//! The state that travels with a request: one cache line for what every event needs, side tables for what few
//! topologies need.

mod branch;
mod rows;
mod turns;

use crate::code::Code;
use crate::code::{MemberId, SlotId};
use crate::state::visits::Visits;
use weir_model::way::further;
use weir_policy::config::Exclude;
use weir_policy::retry::{Attempt, TriedTargets};
use weir_policy::{Kind, Outcome};
use weir_stats::Key;

use rows::Attempts;
pub(crate) use rows::Rows;

/// Where a request returns to: step, member, and the target that was picked.
pub(crate) type Frame = [u32; 3];

/// Frames that a state holds itself; deeper ones are in a table.
const OWN_FRAMES: usize = 2;

/// A frame whose step has this bit returns past that step, unless the request failed: otherwise there is nothing to
/// do there.
pub(crate) const IDLE: u32 = 1 << 31;

/// A request whose step has this bit has arrived at the step, waits included.
pub(crate) const PARKED: u32 = 1 << 31;

/// A request whose step has this bit is in the line of the queue before that step.
pub(crate) const LINE: u32 = 1 << 30;

/// A request whose step has this bit begins where it was sent, at once but in its turn.
pub(crate) const BEGINS: u32 = 1 << 29;

/// A state whose step has this bit is a health check, which is stepped differently.
pub(crate) const CHECK: u32 = 1 << 28;

/// A request whose step has this bit waits for the branches that it has sent in.
pub(crate) const FAN: u32 = 1 << 27;

/// All bits that can accompany the number of a step.
pub(crate) const FLAGS: u32 = PARKED | LINE | BEGINS | CHECK | FAN;

/// A request in flight.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct RequestState {
    pub pc: u32,
    pub member: MemberId,
    /// Changes when the slot is reused: events of the old request are stale.
    pub tag: u32,
    /// Frames in use.
    pub depth: u16,
    /// Retries that it is inside of.
    pub retries: u8,
    /// Selected (1 bit), exclusion rule (2), outcome (4).
    bits: u8,
    pub ordinal: u64,
    pub arrived: u64,
    /// The request and its way: the key of its work.
    pub way: Key,
    frames: [Frame; OWN_FRAMES],
}

const SELECTED: u8 = 1;
const UNWANTED: u8 = 1 << 7;
const EXCLUDE_SHIFT: u8 = 1;
const OUTCOME_SHIFT: u8 = 3;
const OUTCOME: u8 = 15;
const _: () = assert!(Kind::ALL.len() <= OUTCOME as usize);

impl RequestState {
    fn new(tag: u32, ordinal: u64, arrived: u64, way: Key, selected: bool) -> RequestState {
        let bits = u8::from(selected) | exclude_code(Exclude::None) << EXCLUDE_SHIFT;
        let frames = [[0; 3]; OWN_FRAMES];
        RequestState {
            pc: 0,
            member: MemberId(0),
            tag,
            depth: 0,
            retries: 0,
            bits,
            ordinal,
            arrived,
            way,
            frames,
        }
    }

    /// Stops it at a step until it is called again.
    #[inline]
    pub fn stop_at(&mut self, pc: u32, member: MemberId, depth: usize) {
        self.pc = pc;
        self.member = member;
        self.depth = depth as u16;
    }

    /// Whether the window selects it.
    #[inline]
    pub fn selected(&self) -> bool {
        self.bits & SELECTED != 0
    }

    /// All ones if the window selects it, else 0.
    #[inline]
    pub fn mask(&self) -> u64 {
        0u64.wrapping_sub(u64::from(self.bits & SELECTED))
    }

    /// Whether nothing waits for it any more.
    #[inline]
    pub fn is_unwanted(&self) -> bool {
        self.bits & UNWANTED != 0
    }

    /// Marks it as unwanted from here on.
    pub fn set_unwanted(&mut self) {
        self.bits |= UNWANTED;
    }

    /// The outcome of its present attempt.
    #[inline]
    pub fn outcome(&self) -> Outcome {
        match self.bits >> OUTCOME_SHIFT & OUTCOME {
            0 => None,
            kind => Kind::ALL.get(usize::from(kind) - 1).copied(),
        }
    }

    /// Whether its present attempt has failed.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.bits & OUTCOME << OUTCOME_SHIFT != 0
    }

    pub fn set_outcome(&mut self, outcome: Outcome) {
        let code = outcome.map_or(0, |kind| kind as u8 + 1);
        self.bits = self.bits & !(OUTCOME << OUTCOME_SHIFT) | code << OUTCOME_SHIFT;
    }

    /// Which targets its further attempts exclude.
    #[inline]
    pub fn exclude(&self) -> Exclude {
        exclude_of(self.bits >> EXCLUDE_SHIFT & 3)
    }

    pub fn set_exclude(&mut self, exclude: Exclude) {
        self.bits = self.bits & !(3 << EXCLUDE_SHIFT) | exclude_code(exclude) << EXCLUDE_SHIFT;
    }
}

fn exclude_code(exclude: Exclude) -> u8 {
    match exclude {
        Exclude::None => 0,
        Exclude::Tried => 1,
        Exclude::ConnectFailed => 2,
    }
}

#[inline]
fn exclude_of(code: u8) -> Exclude {
    match code {
        0 => Exclude::None,
        1 => Exclude::Tried,
        _ => Exclude::ConnectFailed,
    }
}

/// All requests in flight, by slot.
pub(crate) struct RequestStates {
    pub slots: Vec<RequestState>,
    spare: Vec<SlotId>,
    /// How many of those in flight are health checks.
    pub checks: usize,
    pub rows: Rows,
    pub tried: Vec<TriedTargets>,
    excludes: bool,
}

impl RequestStates {
    pub fn new(code: &Code) -> RequestStates {
        RequestStates {
            slots: Vec::new(),
            spare: Vec::new(),
            checks: 0,
            rows: Rows {
                deep: Vec::new(),
                deep_each: code.depth.saturating_sub(OWN_FRAMES),
                attempts: Vec::new(),
                attempts_each: code.retry_depth,
                visits: Visits::new(code.visits),
                turns: turns::Turns::new(code.turns),
            },
            tried: Vec::new(),
            excludes: code.excludes,
        }
    }

    /// Sets frame `depth` of a request, in rare cases.
    pub fn set_frame(&mut self, slot: SlotId, depth: usize, frame: Frame) {
        self.rows.set_frame(&mut self.slots[slot.index()], slot, depth, frame);
    }

    /// Takes a slot for a request that arrives.
    #[inline]
    pub fn add(&mut self, ordinal: u64, arrived: u64, way: Key, selected: bool) -> SlotId {
        let slot = self.spare.pop().unwrap_or_else(|| self.grow());
        let state = &mut self.slots[slot.index()];
        *state = RequestState::new(state.tag, ordinal, arrived, way, selected);
        self.rows.visits.clear(slot);
        self.rows.turns.set(slot, 0);
        if self.excludes {
            self.tried[slot.index()].clear();
        }
        slot
    }

    /// Which slots are free.
    pub fn free(&self) -> Vec<bool> {
        let mut free = vec![false; self.slots.len()];
        self.spare.iter().for_each(|slot| free[slot.index()] = true);
        free
    }

    /// The numbers of all slots, free ones too.
    pub fn ids(&self) -> impl Iterator<Item = SlotId> + use<> {
        (0..self.slots.len() as u32).map(SlotId)
    }

    /// Whether no request is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spare.len() + self.checks == self.slots.len()
    }

    /// How many are in flight.
    pub fn live(&self) -> u64 {
        (self.slots.len() - self.spare.len()) as u64
    }

    /// Copies a request that goes on elsewhere into a slot of its own.
    pub fn fork(&mut self, from: SlotId) -> SlotId {
        let to = self.spare.pop().unwrap_or_else(|| self.grow());
        let tag = self.slots[to.index()].tag;
        self.slots[to.index()] = RequestState { tag, ..self.slots[from.index()] };
        let of = |slot: SlotId, each: usize| slot.index() * each..(slot.index() + 1) * each;
        let rows = &mut self.rows;
        rows.deep.copy_within(of(from, rows.deep_each), to.index() * rows.deep_each);
        rows.attempts.copy_within(of(from, rows.attempts_each), to.index() * rows.attempts_each);
        rows.visits.copy(from, to);
        rows.turns.copy(from, to);
        for (a, b) in of(from, rows.attempts_each).zip(of(to, rows.attempts_each)) {
            rows.visits.copy_row(a, b);
            rows.turns.copy_row(a, b);
        }
        if self.excludes {
            self.tried[to.index()] = self.tried[from.index()].clone();
        }
        to
    }

    /// Removes a request; events that are still scheduled for it become stale.
    #[inline]
    pub fn remove(&mut self, slot: SlotId) {
        let state = &mut self.slots[slot.index()];
        state.tag = state.tag.wrapping_add(1);
        self.spare.push(slot);
    }

    #[cold]
    fn grow(&mut self) -> SlotId {
        let slot = SlotId(self.slots.len() as u32);
        // The code that runs requests ends the run before that; see `crate::code::bounds`.
        assert!(slot.0 < u32::MAX / 2, "more requests in flight than can be numbered");
        let nobody = Key::from_bits(0);
        let exclude = Exclude::None;
        self.slots.push(RequestState::new(0, 0, 0, nobody, false));
        let n = self.slots.len();
        let rows = &mut self.rows;
        rows.deep.resize(n * rows.deep_each, [0; 3]);
        let outside =
            Attempts { attempt: Attempt::FIRST, exclude, way: nobody, tries: nobody, tries_now: nobody };
        rows.attempts.resize(n * rows.attempts_each, outside);
        rows.visits.grow(n, rows.attempts.len());
        rows.turns.grow(n, rows.attempts.len());
        if self.excludes {
            self.tried.push(TriedTargets::default());
        }
        slot
    }

    /// Frame `depth` of a request.
    #[inline]
    pub fn frame(&self, slot: SlotId, depth: usize) -> Frame {
        self.rows.frame(&self.slots[slot.index()], slot, depth)
    }

    /// The request and all its attempts: the key of choices.
    #[inline]
    pub fn tries(&self, slot: SlotId) -> Key {
        self.rows.tries(&self.slots[slot.index()], slot)
    }

    /// The current attempt of the request's innermost retry.
    #[inline]
    pub fn attempt(&self, slot: SlotId) -> Attempt {
        self.rows.attempts[self.innermost(slot)].attempt
    }

    #[inline]
    fn innermost(&self, slot: SlotId) -> usize {
        self.rows.innermost(&self.slots[slot.index()], slot)
    }

    /// The innermost retry begins another attempt, keyed by `tag`. The first attempt is the request itself, on the
    /// way on which it came; each further one is a way of its own, on which no place has been visited yet, or
    /// (without `redraw`) the first one again.
    #[cold]
    pub fn try_again(&mut self, slot: SlotId, next: Attempt, redraw: bool, tag: u64) {
        let row = self.innermost(slot);
        let rows = &mut self.rows;
        if !redraw {
            rows.visits.restore(slot, row);
        } else {
            if rows.attempts[row].attempt == Attempt::FIRST {
                rows.visits.save(slot, row);
            }
            rows.visits.clear(slot);
        }
        let attempts = &mut rows.attempts[row];
        let state = &mut self.slots[slot.index()];
        // The key includes the depth of the retry among nested ones: (1, 2) and (2, 1) are different ways.
        let position = u64::from(state.retries) << 32 | u64::from(next.0);
        let (turn, _) = rows.turns.outside(row);
        rows.turns.set(slot, if redraw { 0 } else { turn });
        if redraw {
            state.way = further(attempts.way, tag, position, turn);
        }
        attempts.tries_now = further(attempts.tries, tag, position, turn);
        attempts.attempt = next;
        state.set_outcome(None);
    }

    /// A request leaves the innermost retry with its answer.
    #[inline]
    pub fn end_attempts(&mut self, slot: SlotId, redraw: bool) {
        let row = self.innermost(slot);
        self.rows.end_attempts(&mut self.slots[slot.index()], slot, redraw);
        self.rows.turns.end(slot, row);
    }

    /// A request enters a retry for the `came`-th time on this way: it may have been inside others before.
    pub fn note_turn(&mut self, slot: SlotId, came: u32) {
        let retries = self.slots[slot.index()].retries;
        let row = slot.index() * self.rows.attempts_each + usize::from(retries);
        self.rows.turns.begin(slot, row, came);
        if self.excludes && retries == 0 {
            self.tried[slot.index()].clear();
        }
    }

    /// How often a request had come to its innermost retry before.
    pub fn came_to_retry(&self, slot: SlotId) -> u32 {
        self.rows.turns.outside(self.innermost(slot)).1
    }

    /// A request that is cut off leaves all retries but the first `keep`.
    pub fn drop_attempts(&mut self, slot: SlotId, keep: u8) {
        while self.slots[slot.index()].retries > keep {
            // On a way of its own it visited other places than on the one to which it returns.
            let redrawn = self.rows.attempts[self.innermost(slot)].way != self.slots[slot.index()].way;
            self.end_attempts(slot, redrawn);
        }
    }

    /// Takes back a visit that did not take place after all.
    pub fn forget_visit(&mut self, slot: SlotId, counter: u32) {
        self.rows.visits.take_back(slot, counter);
    }

    /// How often a request has been at a counted place before; counts this visit.
    #[inline]
    pub fn visit(&mut self, slot: SlotId, counter: u32) -> u32 {
        self.rows.visits.count(slot, counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_cache_line() {
        assert_eq!(size_of::<RequestState>(), 64);
    }

    #[test]
    fn bits_do_not_disturb_each_other() {
        let mut state = RequestState::new(0, 1, 2, Key::new(3), true);
        for kind in Kind::ALL {
            for exclude in [Exclude::Tried, Exclude::ConnectFailed, Exclude::None] {
                state.set_outcome(Some(kind));
                state.set_exclude(exclude);
                assert_eq!((state.outcome(), state.exclude(), state.selected()), (Some(kind), exclude, true));
            }
        }
        state.set_outcome(None);
        assert_eq!((state.outcome(), state.mask()), (None, u64::MAX));
    }
}
