//! A node whose answers fail now and then, independently.
//!
//! - In virtual time and in the proxy: asked when the node behind has done its work.
//! - Draws: one number per request, by the caller's key.

use weir_stats::Key;

/// Whether an answer fails, with probability `p`.
#[inline]
pub fn fails(p: f64, key: Key) -> bool {
    // Never at 0, though a draw may be the least possible; always at 1.
    p > 0.0 && key.unit() <= p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_as_asked_for() {
        let share = |p: f64| {
            let n = 200_000u64;
            (0..n).filter(|i| fails(p, Key::new(4).with(*i))).count() as f64 / n as f64
        };
        assert_eq!((share(0.0), share(1.0)), (0.0, 1.0));
        // Three standard errors.
        assert!((share(0.3) - 0.3).abs() < 0.0031, "{}", share(0.3));
    }
}
