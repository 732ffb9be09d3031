//! Processes that stand still from time to time: their clocks, by which work inside of them ends.
//!
//! - In virtual time: none; a pause delays what is inside, as if it took longer.
//! - Given back when cut off: nothing.
//! - Draws: the periods of each timeline ([`crate::features::fault_timelines`]).

use crate::code::{MemberId, NOT};
use crate::engine::Engine;

impl Engine<'_> {
    /// The timeline that stops a member.
    fn pausing(&self, pause: u32, member: MemberId) -> Option<usize> {
        let line = self.core.code().lines.pauses[member.index_from(pause)];
        (line != NOT).then_some(line as usize)
    }

    /// How long a wait takes that begins at `from_ns` inside of a process, or at its border.
    #[cold]
    pub(crate) fn held_ns(&mut self, pause: u32, member: MemberId, from_ns: u64, ns: u64) -> u64 {
        let Some(line) = self.pausing(pause, member) else { return ns };
        let law = &self.core.code().lines.lines[line].law;
        let clock = &mut self.features.lines.clocks[line];
        // A request may run ahead of the others, so only what lies before this event is over.
        clock.advance(law, self.core.turn().0);
        clock.end_of(law, from_ns, ns).saturating_sub(from_ns)
    }

    /// What the clock around a member shows now.
    pub(crate) fn shown_ns(&mut self, pause: Option<u32>, member: MemberId, now_ns: u64) -> u64 {
        let Some(line) = pause.and_then(|pause| self.pausing(pause, member)) else { return now_ns };
        let law = &self.core.code().lines.lines[line].law;
        let clock = &mut self.features.lines.clocks[line];
        clock.advance(law, now_ns);
        clock.read(law, now_ns)
    }

    /// When the clock around a member will show that.
    pub(crate) fn when_shown(&self, pause: Option<u32>, member: MemberId, now_ns: u64, shown_ns: u64) -> u64 {
        let Some(line) = pause.and_then(|pause| self.pausing(pause, member)) else { return shown_ns };
        let law = &self.core.code().lines.lines[line].law;
        self.features.lines.clocks[line].when(law, now_ns, shown_ns)
    }
}
