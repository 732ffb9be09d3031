//! The properties of a single branch: its answer, its place among others at one instant, its way.

use super::Branch;
use crate::code::order::share_of_ranks;
use weir_model::way::further;
use weir_policy::Kind;

impl Branch {
    /// The status of its answer, if there is an answer and its status is known.
    pub fn answered_with(&self) -> Option<u16> {
        let answered = matches!(self.outcome, None | Some(Kind::Status5xx));
        Some(self.status).filter(|status| answered && *status != 0)
    }

    /// Its children come after it where both end at one instant.
    pub fn step_inside(&mut self) {
        if self.ranks > 1 {
            (self.rank, self.ranks) = (self.rank + 1, self.ranks - 1);
        }
    }

    /// Takes its share, number `index` of `n`, of its parent's ranks; `turn` as in [`share_of_ranks`]. False: there are
    /// not enough.
    pub fn take_ranks(&mut self, index: u32, n: u32, turn: Option<u32>) -> bool {
        let (first, each) = share_of_ranks(self.ranks, n, turn);
        (self.rank, self.ranks) = (self.rank + first + index * each, each);
        each > 0
    }

    /// It enters a way of its own: an attempt, or a branch of a fan-out.
    pub fn begin_way(&mut self, purpose: u64, position: u64) {
        self.way = further(self.way, purpose, position, self.turn);
        self.turn = 0;
    }
}
