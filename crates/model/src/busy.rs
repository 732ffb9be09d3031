//! The load that a built-in server reports in its answers: the share of its slots or cores that is busy.
//!
//! - In virtual time and in the proxy the same: as an answer leaves a `queue` or a `concurrent`, its own place has been
//!   given away already, to the next that waits if any does. So a server with one slot reports 1 while others wait, else
//!   0, and on average what its utilisation is: with Poisson arrivals an answer that leaves sees
//!   as many others as a request that arrives.
//! - Of several on the way the outermost counts, which an answer leaves last. A failed request reports nothing.
//! - Draws: nothing.

/// The share that is busy, 0 to 1, of this many slots or cores.
pub fn share(busy: f64, of: f64) -> f32 {
    (busy / of).clamp(0.0, 1.0) as f32
}

/// The same where this many of the slots are taken.
pub fn share_of_slots(taken: u32, slots: u32) -> f32 {
    share(f64::from(taken), f64::from(slots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!((share(1.0, 4.0), share(9.0, 4.0), share(0.0, 0.5)), (0.25, 1.0, 0.0));
        assert_eq!((share_of_slots(0, 1), share_of_slots(1, 1), share_of_slots(3, 8)), (0.0, 1.0, 0.375));
    }
}
