//! A queue: a limited number inside, the rest waiting in order of arrival.
//!
//! - In virtual time: the simulator passes tickets (its requests' slots) and receives those which may enter.
//! - In the proxy: built-in servers do the same with real requests.
//! - Draws: nothing.
//!
//! A ticket waits in one queue at a time, so all queues of a world share one [`Links`] table: no allocation per wait,
//! and a ticket in the middle is removed in constant time (cancellation).

use serde::{Deserialize, Serialize};

/// What happens to a request in a queue or a `concurrent` when its client has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// A waiting request leaves; one inside is cut off and frees its slot.
    #[default]
    Stop,
    /// A waiting request leaves; one inside continues to its end and keeps its slot.
    Skip,
    /// Both continue, and their result is dropped.
    Finish,
}

impl OnCancel {
    /// Whether a request continues that waits (not `inside`), or is inside.
    pub fn goes_on(self, inside: bool) -> bool {
        self == OnCancel::Finish || inside && self == OnCancel::Skip
    }
}

/// No ticket.
pub const NOBODY: u32 = u32::MAX;

/// Neighbours in a line, by ticket; shared by all lines of a world.
#[derive(Clone, Debug, Default)]
pub struct Links {
    of: Vec<(u32, u32)>,
}

impl Links {
    #[inline]
    fn reserve(&mut self, ticket: u32) {
        if ticket as usize >= self.of.len() {
            self.of.resize(ticket as usize + 1, (NOBODY, NOBODY));
        }
    }
}

/// Tickets in order of arrival.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for Line {
    fn default() -> Line {
        Line { head: NOBODY, tail: NOBODY, len: 0 }
    }
}

impl Line {
    /// The number waiting.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no ticket waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first ticket, which stays.
    #[inline]
    pub fn peek(&self) -> Option<u32> {
        (self.head != NOBODY).then_some(self.head)
    }

    /// Appends a ticket. It must not wait anywhere yet.
    #[inline]
    pub fn join(&mut self, links: &mut Links, ticket: u32) {
        links.reserve(ticket);
        links.of[ticket as usize] = (self.tail, NOBODY);
        if self.tail == NOBODY {
            self.head = ticket;
        } else {
            links.of[self.tail as usize].1 = ticket;
        }
        self.tail = ticket;
        self.len += 1;
    }

    /// Removes the first ticket.
    #[inline]
    pub fn first(&mut self, links: &mut Links) -> Option<u32> {
        if self.head == NOBODY {
            return None;
        }
        let ticket = self.head;
        self.take_out(links, ticket);
        Some(ticket)
    }

    /// Removes a ticket from any position. It must wait in this line.
    #[inline]
    pub fn take_out(&mut self, links: &mut Links, ticket: u32) {
        let (before, after) = links.of[ticket as usize];
        if before == NOBODY {
            self.head = after;
        } else {
            links.of[before as usize].1 = after;
        }
        if after == NOBODY {
            self.tail = before;
        } else {
            links.of[after as usize].0 = before;
        }
        self.len -= 1;
    }
}

/// The capacity of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Inside at once.
    pub concurrency: u32,
    /// Waiting at once.
    pub capacity: u64,
}

/// What happens to an arriving ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is inside.
    Inside,
    /// It waits; [`Queue::leave`] returns it later.
    Waits,
    /// There is no room: `overloaded`.
    Full,
}

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    line: Line,
    inside: u32,
}

impl Queue {
    /// The number inside.
    #[inline]
    pub fn inside(&self) -> u32 {
        self.inside
    }

    /// Whether no ticket is inside (then none waits either).
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.inside == 0
    }

    /// The number waiting.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.line.len()
    }

    /// Adds a ticket.
    #[inline]
    pub fn enter(&mut self, limits: Limits, links: &mut Links, ticket: u32) -> Entry {
        if self.inside < limits.concurrency {
            self.inside += 1;
            Entry::Inside
        } else if u64::from(self.line.len()) < limits.capacity {
            self.line.join(links, ticket);
            Entry::Waits
        } else {
            Entry::Full
        }
    }

    /// Removes a ticket from inside. Returns the ticket that takes its slot, if one waits.
    #[inline]
    pub fn leave(&mut self, links: &mut Links) -> Option<u32> {
        let next = self.line.first(links);
        self.inside -= u32::from(next.is_none());
        next
    }

    /// Removes a waiting ticket that gives up.
    #[inline]
    pub fn abandon(&mut self, links: &mut Links, ticket: u32) {
        self.line.take_out(links, ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use weir_stats::Key;

    /// Against a plain deque, with tickets that give up in the middle.
    #[test]
    fn agrees_with_a_deque() {
        for (concurrency, capacity) in [(1, u64::MAX), (3, 4), (2, 0)] {
            let limits = Limits { concurrency, capacity };
            let (mut queue, mut links) = (Queue::default(), Links::default());
            let (mut inside, mut line, mut next) = (0, VecDeque::new(), 0);
            for step in 0..5000u64 {
                let draw = Key::new(capacity).with(step);
                match draw.below(5) {
                    0 | 1 if inside > 0 => {
                        let expected = line.pop_front();
                        inside -= usize::from(expected.is_none());
                        assert_eq!(queue.leave(&mut links), expected);
                    }
                    2 if !line.is_empty() => {
                        let at = draw.nth(1).below(line.len() as u64) as usize;
                        if let Some(ticket) = line.remove(at) {
                            queue.abandon(&mut links, ticket);
                        }
                    }
                    _ => {
                        let got = queue.enter(limits, &mut links, next);
                        if inside < concurrency as usize {
                            inside += 1;
                            assert_eq!(got, Entry::Inside);
                        } else if (line.len() as u64) < capacity {
                            line.push_back(next);
                            assert_eq!(got, Entry::Waits);
                        } else {
                            assert_eq!(got, Entry::Full);
                        }
                        next += 1;
                    }
                }
                assert_eq!((queue.inside() as usize, queue.waiting() as usize), (inside, line.len()));
            }
        }
    }
}
