//! A retry budget: further attempts may be a share of the first ones, plus a few per second.
//!
//! - Idea: retries help while few requests fail, and overload a service when all do; so they must be earned.
//! - State: earnings of first attempts, by time; a reserve. Cost: O(1), no allocation.
//! - Formula: a retry or hedge takes 1; a first attempt earns `ratio`, which expires after `window`; the reserve holds
//!   min_per_s · window at first and never more, and refills by min_per_s. What expires is spent first.
//! - In the long run at most min_per_s + ratio · first attempts per second; at 20 % a service at 0.8 of its capacity
//!   stays below 1.
//! - Choices: earnings are kept by 64ths of the window, and expire with the oldest of their 64th: never late, early
//!   by less than one.
//! - Pathologies: one budget per loop would let each loop have min_per_s: it belongs to the process.
//! - Source: Finagle `RetryBudget`, linkerd. In the language: `budget(ratio=0.2, min_per_s=10, window=10*s)`.

use serde::{Deserialize, Serialize};
use weir_stats::Ratio;

/// `budget(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// What a request's first attempt earns.
    pub ratio: f64,
    /// What the reserve gets per second.
    pub min_per_s: f64,
    /// After this time what was earned is gone, ns.
    pub window_ns: u64,
}

/// Divisions of the window.
const PARTS: u64 = 64;
/// A token, in units small enough to make any ratio whole.
const TOKEN: u64 = 1_000_000_000;

/// The balance of a budget.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// Earnings of a first attempt.
    earns: u64,
    part_ns: u64,
    /// Earnings in each of the last divisions of the window, by the division's number modulo their count.
    earned: [u64; PARTS as usize],
    /// Their sum.
    sum: u64,
    /// The number of the division that `earned` reaches up to.
    part: u64,
    reserve: u64,
    most: u64,
    /// Units per ns; `None`: there is no refill.
    refill: Option<Ratio>,
    /// Parts of a unit that the refill left over.
    carried: u64,
    stamp: u64,
}

impl Tokens {
    /// A full reserve and nothing earned.
    pub fn new(config: &Budget, now_ns: u64) -> Tokens {
        let part_ns = (config.window_ns / PARTS).max(1);
        let most = (config.min_per_s.max(0.0) * config.window_ns as f64) as u64;
        Tokens {
            earns: (config.ratio.max(0.0) * TOKEN as f64 + 0.5) as u64,
            part_ns,
            earned: [0; PARTS as usize],
            sum: 0,
            part: now_ns / part_ns,
            reserve: most,
            most,
            refill: (config.min_per_s > 0.0).then(|| Ratio::near(config.min_per_s)),
            carried: 0,
            stamp: now_ns,
        }
    }

    fn advance(&mut self, now_ns: u64) {
        let part = now_ns / self.part_ns;
        if part > self.part {
            for expired in (self.part + 1..=part).take(PARTS as usize) {
                let slot = &mut self.earned[(expired % PARTS) as usize];
                self.sum -= std::mem::take(slot);
            }
            self.part = part;
        }
        let since_ns = now_ns.saturating_sub(self.stamp);
        let (refill, carried) =
            self.refill.map_or((0, 0), |rate| rate.times_carrying(since_ns, self.carried));
        self.reserve = self.reserve.saturating_add(refill).min(self.most);
        self.carried = if self.reserve == self.most { 0 } else { carried };
        self.stamp = self.stamp.max(now_ns);
    }

    /// Credits a request's very first attempt.
    pub fn earn(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.earned[(self.part % PARTS) as usize] += self.earns;
        self.sum += self.earns;
    }

    /// Pays for a further attempt; whether it may begin.
    pub fn take(&mut self, now_ns: u64) -> bool {
        self.advance(now_ns);
        if self.sum.saturating_add(self.reserve) < TOKEN {
            return false;
        }
        let mut left = TOKEN;
        for number in self.part.saturating_sub(PARTS - 1)..=self.part {
            let slot = &mut self.earned[(number % PARTS) as usize];
            let part = left.min(*slot);
            *slot -= part;
            self.sum -= part;
            left -= part;
            if left == 0 || self.sum == 0 {
                break;
            }
        }
        self.reserve -= left;
        true
    }

    /// Further attempts that could begin now.
    pub fn left(&mut self, now_ns: u64) -> f64 {
        self.advance(now_ns);
        (self.sum.saturating_add(self.reserve)) as f64 / TOKEN as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Key;

    const S: u64 = 1_000_000_000;

    fn config(ratio: f64, min_per_s: f64) -> Budget {
        Budget { ratio, min_per_s, window_ns: 10 * S }
    }

    /// Requests at a rate for some seconds, all of which fail and ask for two retries; returns the retries of the
    /// last window.
    fn retries(ratio: f64, min_per_s: f64, rate: u64, seconds: u64) -> u64 {
        let mut budget = Tokens::new(&config(ratio, min_per_s), 0);
        let mut last = 0;
        for i in 0..rate * seconds {
            let now = i * S / rate;
            budget.earn(now);
            for _ in 0..2 {
                last += u64::from(budget.take(now) && now >= (seconds - 10) * S);
            }
        }
        last
    }

    /// The figure of the notes: with everything failing, min_per_s + ratio · rate retries per second.
    #[test]
    fn the_rate_of_retries_is_the_formulas() {
        for (rate, want) in [(1000, 210), (50, 20), (5, 10)] {
            let got = retries(0.2, 10.0, rate, 100);
            assert!(got.abs_diff(want * 10) <= 2, "{got} in 10 s at {rate}/s");
        }
        assert_eq!(retries(0.2, 0.0, 1000, 100), 2000);
        assert_eq!(retries(0.0, 10.0, 1000, 100), 100);
        assert_eq!(retries(0.0, 0.0, 1000, 20), 0);
        assert!(retries(0.0, 0.3, 1000, 100).abs_diff(3) <= 1, "slow refills are not lost");
    }

    /// A third of a unit is gained in each ns: floored each time, nothing ever would be.
    #[test]
    fn the_reserve_refills_exactly_however_often_it_is_asked() {
        let mut budget =
            Tokens::new(&Budget { ratio: 0.0, min_per_s: 1.0 / 3.0, window_ns: 1_000_000 * S }, 0);
        while budget.take(0) {}
        let before = budget.sum + budget.reserve;
        (1..=3_000_000).for_each(|ns| budget.advance(ns));
        assert_eq!(budget.reserve - before, 999_999, "0.3333333333333333 of 3,000,000");
        assert_eq!(budget.stamp, 3_000_000);
    }

    #[test]
    fn ratios_add_up_exactly() {
        for (ratio, n) in [(0.1, 10), (0.2, 5), (1.0 / 3.0, 3), (0.01, 100)] {
            let mut budget = Tokens::new(&config(ratio, 0.0), 0);
            (0..n - 1).for_each(|_| budget.earn(0));
            assert!(!budget.take(0));
            budget.earn(0);
            budget.earn(0);
            assert!(budget.take(0), "{ratio}");
        }
    }

    #[test]
    fn the_reserve_is_full_at_first_and_never_more() {
        let mut budget = Tokens::new(&config(0.2, 10.0), 7 * S);
        assert_eq!(budget.left(1000 * S), 100.0);
        (0..100).for_each(|_| assert!(budget.take(1000 * S)));
        assert!(!budget.take(1000 * S) && !budget.take(1000 * S + S / 20) && budget.take(1000 * S + S / 10));
        assert_eq!(budget.left(5000 * S), 100.0);
    }

    /// The obvious model: a list of earnings with their times, the oldest spent first; its two windows enclose what
    /// divisions of a window allow.
    struct Naive {
        window: u64,
        earned: Vec<(u64, u64)>,
    }

    impl Naive {
        fn take(&mut self, now_ns: u64) -> bool {
            self.earned.retain(|e| now_ns - e.0 < self.window);
            if self.earned.iter().map(|e| e.1).sum::<u64>() < TOKEN {
                return false;
            }
            let mut left = TOKEN;
            for e in &mut self.earned {
                let part = left.min(e.1);
                e.1 -= part;
                left -= part;
            }
            true
        }
    }

    /// Bursts of requests with and without retries: never more than the list allows, and hardly less.
    #[test]
    fn what_was_earned_expires_after_the_window() {
        let mut total = [0u32; 2];
        let mut budget = Tokens::new(&config(0.2, 0.0), 0);
        let mut naive = Naive { window: 10 * S, earned: Vec::new() };
        let mut now = 0;
        for step in 0..20_000u64 {
            let draw = Key::new(5).with(step);
            now += draw.below(S / 10);
            if draw.nth(1).unit() < 0.8 {
                budget.earn(now);
                naive.earned.push((now, TOKEN / 5));
            } else if (now / (15 * S)) % 2 == 1 {
                total[0] += u32::from(budget.take(now));
                total[1] += u32::from(naive.take(now));
            }
        }
        assert!(total[0] <= total[1] && total[1] - total[0] <= total[1] / 50, "{total:?}");
        let mut once = Tokens::new(&config(1.0, 0.0), 0);
        once.earn(S);
        assert!(once.clone().take(10 * S + S / 2) && !once.take(11 * S + 1));
    }
}
