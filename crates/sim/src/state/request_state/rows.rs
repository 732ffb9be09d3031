//! Tables beside request states: frames beyond their own, the retries that requests are inside of, and visits.

use super::{Frame, OWN_FRAMES, RequestState};
use crate::code::SlotId;
use crate::state::visits::Visits;
use weir_policy::config::Exclude;
use weir_policy::retry::Attempt;
use weir_stats::Key;

/// A retry that encloses a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    pub(super) attempt: Attempt,
    /// The values outside of it.
    pub(super) exclude: Exclude,
    pub(super) way: Key,
    pub(super) tries: Key,
    /// The request and all its attempts up to now: the key of choices.
    pub(super) tries_now: Key,
}

/// The tables beside request states: frames beyond their own, retries, visits, and copies of visits; a fixed number
/// per slot.
pub(crate) struct Rows {
    pub(super) deep: Vec<Frame>,
    pub(super) deep_each: usize,
    pub(super) attempts: Vec<Attempts>,
    pub(super) attempts_each: usize,
    pub visits: Visits,
    pub turns: super::turns::Turns,
}

impl Rows {
    /// Sets frame `depth` of a request.
    #[inline(always)]
    pub fn set_frame(&mut self, state: &mut RequestState, slot: SlotId, depth: usize, frame: Frame) {
        match state.frames.get_mut(depth) {
            Some(own) => *own = frame,
            None => self.deep[slot.index() * self.deep_each + depth - OWN_FRAMES] = frame,
        }
    }

    /// Frame `depth` of a request.
    #[inline(always)]
    pub fn frame(&self, state: &RequestState, slot: SlotId, depth: usize) -> Frame {
        match state.frames.get(depth) {
            Some(own) => *own,
            None => self.deep[slot.index() * self.deep_each + depth - OWN_FRAMES],
        }
    }

    /// The request and all its attempts: the key of choices.
    #[inline(always)]
    pub fn tries(&self, state: &RequestState, slot: SlotId) -> Key {
        if state.retries == 0 { state.way } else { self.attempts[self.innermost(state, slot)].tries_now }
    }

    #[inline]
    pub(super) fn innermost(&self, state: &RequestState, slot: SlotId) -> usize {
        slot.index() * self.attempts_each + usize::from(state.retries) - 1
    }

    /// A request enters a retry with a rule of exclusion.
    #[inline]
    pub fn begin_attempts(&mut self, state: &mut RequestState, slot: SlotId, exclude: Exclude) {
        let tries = self.tries(state, slot);
        let row = slot.index() * self.attempts_each + usize::from(state.retries);
        let (outside, way) = (state.exclude(), state.way);
        self.attempts[row] =
            Attempts { attempt: Attempt::FIRST, exclude: outside, way, tries, tries_now: tries };
        state.set_exclude(exclude);
        state.retries += 1;
        self.visits.save(slot, row);
    }

    /// A request leaves the innermost retry with its answer.
    #[inline(always)]
    pub fn end_attempts(&mut self, state: &mut RequestState, slot: SlotId, redraw: bool) {
        let row = self.innermost(state, slot);
        let attempts = &self.attempts[row];
        if attempts.attempt != Attempt::FIRST && redraw {
            self.visits.restore(slot, row);
        }
        state.set_exclude(attempts.exclude);
        state.way = attempts.way;
        state.retries -= 1;
    }
}
