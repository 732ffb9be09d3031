//! The connections that exchanges need if each uses one alone and keeps it for the next (HTTP/1.1).
//!
//! - In virtual time: computed from the beginnings and ends of exchanges. In the proxy: the pools of `serve`, which
//!   take the connection that was returned last, and none that has been idle for too long.
//! - Draws: nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An exchange: takes or opens a connection, and returns or closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exchange {
    /// When it begins, ns.
    pub begins_ns: u64,
    /// When it ends, ns.
    pub ends_ns: u64,
    /// Whether its connection can be used again: neither side broke it off.
    pub keeps: bool,
}

/// The times at which these exchanges open connections in one pool, in order, ns. A connection that was idle for
/// longer than the timeout is not used again.
pub fn opened(mut exchanges: Vec<Exchange>, idle_timeout_ns: Option<u64>) -> Vec<u64> {
    exchanges.sort_unstable();
    let mut busy: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let (mut idle_since, mut opened) = (Vec::new(), Vec::new());
    for exchange in exchanges {
        let now = exchange.begins_ns;
        while let Some(Reverse(ended)) = busy.peek().copied().filter(|ended| ended.0 <= now) {
            busy.pop();
            idle_since.push(ended);
        }
        let fresh = |since: &u64| idle_timeout_ns.is_none_or(|most| now - since <= most);
        if idle_since.pop().filter(fresh).is_none() {
            // Those below have been idle for even longer.
            idle_since.clear();
            opened.push(now);
        }
        if exchange.keeps {
            busy.push(Reverse(exchange.ends_ns.max(now)));
        }
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openings(all: &[(u64, u64, bool)], idle_timeout_ns: Option<u64>) -> Vec<u64> {
        let exchange = |&(begins_ns, ends_ns, keeps): &_| Exchange { begins_ns, ends_ns, keeps };
        opened(all.iter().map(exchange).collect(), idle_timeout_ns)
    }

    #[test]
    fn as_many_as_there_are_exchanges_at_once() {
        let all = [(0, 10, true), (5, 15, true), (10, 20, true), (12, 13, true), (30, 40, true)];
        assert_eq!(openings(&all, None), [0, 5, 12]);
    }

    #[test]
    fn what_was_idle_for_too_long_or_broken_off_is_not_taken_again() {
        assert_eq!(openings(&[(0, 10, true), (20, 30, true)], Some(10)), [0]);
        assert_eq!(openings(&[(0, 10, true), (21, 30, true)], Some(10)), [0, 21]);
        assert_eq!(openings(&[(0, 10, false), (11, 30, true)], None), [0, 11]);
        // The connection returned last comes first, so the other one ages.
        let all = [(0, 10, true), (1, 12, true), (15, 25, true), (26, 36, true), (27, 28, true)];
        assert_eq!(openings(&all, Some(15)), [0, 1, 27]);
    }
}
