//! The order of events: by time, then by class, request, attempt and branch, all but the time in one number. It is
//! defined only here.
//!
//! | at one instant (`docs/spec/language.md#order-at-one-instant`) | [`Class`] |
//! |---|---|
//! | ends of work, crossings and answers | `Step` |
//! | then faults | `Fault` |
//! | then health checks (by target), ends of holds, ejections and pass-overs | `Hold` |
//! | then arrivals | `Arrival` |
//! | then timeouts, patience, hedges, backoffs and waits that expire | `Limit` |
//!
//! Within a class by request, then attempt, then branch (the *rank*); never by when an event was scheduled.

/// The classes of events at one instant, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Ends of work, crossings, answers.
    Step = 0,
    /// Nodes that fail and come back.
    Fault = 1,
    /// Health checks, ends of holds, ejections and pass-overs.
    Hold = 2,
    /// Arrivals.
    Arrival = 3,
    /// Timeouts, patience, hedges, backoffs and waits that expire.
    Limit = 4,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub at: u64,
    /// See [`order_key`].
    pub key: u64,
    pub who: u32,
    /// Distinguishes a live event from a stale one: the state's tag when it was scheduled.
    pub tag: u32,
}

/// Bits that distinguish events of one request; they are the lowest.
pub(crate) const RANK_BITS: u32 = 21;
/// Bits of a request's number: more than a file may ask for.
pub(crate) const REQUEST_BITS: u32 = 40;
const CLASS_SHIFT: u32 = RANK_BITS + REQUEST_BITS;
/// Bits of a rank that distinguish the branches of one request, in any attempt; the higher ones distinguish attempts,
/// which come first.
pub(crate) const BRANCH_BITS: u32 = 16;
/// Ranks that the branches of a request share: its own is the first.
pub(crate) const RANKS: u32 = (1 << BRANCH_BITS) - 1;
const _: () = assert!(BRANCH_BITS < RANK_BITS);

/// The rank of the same branch in its next attempt.
pub(crate) fn later_attempt(rank: u32) -> u32 {
    const ATTEMPT: u32 = 1 << BRANCH_BITS;
    if rank >= (1 << RANK_BITS) - ATTEMPT { rank } else { rank + ATTEMPT }
}

/// The ranks that the branches of a fan-out or hedge get: the first, counted from their parent's own, and how many each
/// of the `n` gets; 0 each: there are not enough. `turn`: how many of them the parent has had, if branches that an
/// earlier one left behind may still be on their way; these keep their ranks, so each gets half of what is left.
pub(crate) fn share_of_ranks(ranks: u32, n: u32, turn: Option<u32>) -> (u32, u32) {
    let (all, n) = (ranks.saturating_sub(1), n.max(1));
    let Some(turn) = turn else { return (1, all / n) };
    let left = all.checked_shr(turn).unwrap_or(0);
    match left.div_ceil(2) / n {
        // The ranks do not suffice for more: they are given again, which matters only while the former are on their way.
        0 => (1, all / n),
        each => (1 + all - left, each),
    }
}

/// The number of the `k`th request of a user, of as many users as `user_bits` can tell apart: by user, then by request. The
/// upper half of all numbers is for health checks and probes, which come after requests.
pub(crate) fn user_order(user: u32, user_bits: u32, k: u64) -> u64 {
    let bits = REQUEST_BITS - 1 - user_bits;
    u64::from(user) << bits | k & ((1 << bits) - 1)
}

/// The order of events at one instant: class, then request, then rank among the request's own.
#[inline]
pub(crate) fn order_key(class: Class, request: u64) -> u64 {
    (class as u64) << CLASS_SHIFT | request << RANK_BITS
}

/// That order for one of the request's attempts and branches.
#[inline]
pub(crate) fn ranked(key: u64, rank: u32) -> u64 {
    key | u64::from(rank)
}

impl Entry {
    /// Its class.
    #[inline]
    pub fn class(&self) -> Class {
        match self.key >> CLASS_SHIFT {
            0 => Class::Step,
            1 => Class::Fault,
            2 => Class::Hold,
            3 => Class::Arrival,
            _ => Class::Limit,
        }
    }

    /// Its class as part of a key.
    #[inline]
    pub fn class_key(&self) -> u64 {
        self.key >> CLASS_SHIFT << CLASS_SHIFT
    }

    /// Time and order in one number.
    #[inline]
    pub fn order(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.key)
    }

    #[inline]
    pub fn before(&self, other: &Entry) -> bool {
        self.at < other.at || self.at == other.at && self.key < other.key
    }

    /// Whether faults of its instant have happened when it happens.
    #[inline]
    pub fn after_faults(&self) -> bool {
        self.key >> CLASS_SHIFT != 0
    }
}

/// An entry that comes after all others.
pub(crate) const NOTHING: Entry = Entry { at: u64::MAX, key: u64::MAX, who: 0, tag: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    /// No two fan-outs of a branch share a rank, as long as there are enough.
    #[test]
    fn fan_outs_of_one_branch_have_ranks_of_their_own() {
        let mut beyond = 1;
        for turn in 0..14 {
            let (first, each) = share_of_ranks(RANKS, 3, Some(turn));
            assert!(first >= beyond && each > 0, "{turn}");
            beyond = first + 3 * each;
            assert!(beyond <= RANKS, "{turn}");
        }
        assert_eq!(share_of_ranks(RANKS, 3, Some(20)), (1, (RANKS - 1) / 3), "they begin again");
        assert_eq!(share_of_ranks(100, 100, None).1, 0);
    }

    /// A check at the instant of an answer comes after it, whichever user asked.
    #[test]
    fn requests_of_all_users_come_before_checks() {
        for users in [1, 4, 5, u32::MAX] {
            let bits = 32 - users.leading_zeros();
            let last = user_order(users - 1, bits, u64::MAX);
            assert!(last < 1 << (REQUEST_BITS - 1), "{users}");
            assert!(user_order(users - 1, bits, 0) >= u64::from(users - 1), "{users}");
        }
    }
}
