//! Tokens of branches: what they have of the request that sends them in, and what that has of them.

use super::{Token, Tokens};
use weir_stats::Key;

impl Tokens {
    /// A branch of a request, that goes on where that is told.
    pub fn branch(&mut self, from: u32) -> u32 {
        let Token { ordinal, arrived, way, retries, .. } = self.slots[from as usize];
        let tries = self.tries(from);
        let (exclude, selected, unwanted) = {
            let token = &self.slots[from as usize];
            (token.exclude(), token.selected(), token.is_unwanted())
        };
        let to = self.add(ordinal, arrived, way, selected);
        let token = &mut self.slots[to as usize];
        token.retries = retries;
        token.set_exclude(exclude);
        if unwanted {
            token.set_unwanted();
        }
        if retries > 0 {
            let row = self.innermost(to);
            self.rows.attempts[row].tries_now = tries;
        }
        to
    }

    /// A branch goes on on a way of its own.
    pub fn begin_way(&mut self, slot: u32, further: impl Fn(Key) -> Key) {
        let token = &mut self.slots[slot as usize];
        token.way = further(token.way);
        if token.retries > 0 {
            let row = self.innermost(slot);
            let tries = &mut self.rows.attempts[row].tries_now;
            *tries = further(*tries);
        }
    }

    /// What one has tried another keeps in mind.
    pub fn inherit_tried(&mut self, from: u32, to: u32) {
        if self.excludes {
            self.tried[to as usize] = self.tried[from as usize].clone();
        }
    }

    /// What a request has visited on the way on which it had been inside of so many retries, another has visited. Whether it
    /// is on a way of its own by now: then that is what was kept as it left the other.
    pub fn hand_visits(&mut self, from: u32, outer: u8, to: u32) -> bool {
        let token = &self.slots[from as usize];
        let first = from as usize * self.rows.attempts_each;
        let rows = first + usize::from(outer)..first + usize::from(token.retries);
        let attempts = &self.rows.attempts;
        let inside = |row: usize| if row + 1 == rows.end { token.way } else { attempts[row + 1].way };
        match rows.clone().find(|&row| inside(row) != attempts[row].way) {
            Some(row) => self.rows.visits.restore(to, row),
            None => {
                self.rows.visits.copy(from, to);
                return false;
            }
        }
        true
    }
}
