//! The event loop that a request meets.
//!
//! - In virtual time: each with equal probability, by the request alone, so equal traffic meets equal loops.
//! - In the proxy: the loop that accepted its connection.
//! - Draws: one number per request, if there are several loops.

use weir_stats::Key;

/// The loop that a request meets, from 0; `own` is the request's key for it, and there is at least one loop.
pub fn met(loops: u32, own: Key) -> u32 {
    if loops <= 1 { 0 } else { own.below(u64::from(loops)) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_met_alike() {
        let mut counts = [0u32; 4];
        (0..40_000).for_each(|i| counts[met(4, Key::new(1).with(i)) as usize] += 1);
        assert!(counts.iter().all(|n| n.abs_diff(10_000) < 450), "{counts:?}");
        assert_eq!((met(1, Key::new(7)), met(0, Key::new(7))), (0, 0));
    }
}
