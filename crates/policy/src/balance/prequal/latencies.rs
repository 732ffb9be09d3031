//! The latency that a target of `lb.prequal` would report: the paper's, by the number of requests that a request met.
//!
//! A median of its latest answers to requests that met as many says what one more request takes, whatever the target
//! does with many at once: works on one after another, on several, or on all. Errors are not counted, since a target
//! may fail faster than it works, nor are cancelled requests, whose time is only a lower bound: what both do to a
//! target is in [`super::doubts`].

use crate::Outcome;

/// Answers kept for each number met.
const KEPT: usize = 16;
/// Answers that a median needs, from the nearest numbers if there are fewer.
const ENOUGH: usize = 3;
/// The most that a median is of: too few, and two full numbers at the next distance.
const MOST: usize = ENOUGH - 1 + 2 * KEPT;
/// Below this number each has its own answers. Above, those that share their leading bits have the same, 64 for each
/// doubling, so that memory stays bounded: they differ by less than a sixty-fourth.
const EXACT: u16 = 128;

/// The latest answers to requests that met one number.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    ns: [u64; KEPT],
    kept: u8,
    /// The place of the next one: that of the oldest, once all are taken.
    next: u8,
    /// The places of those kept, by their times: each probe reads the middle.
    order: [u8; KEPT],
}

impl Latest {
    fn kept(&self) -> &[u64] {
        &self.ns[..usize::from(self.kept)]
    }

    fn add(&mut self, ns: u64) {
        let (at, mut others) = (self.next, usize::from(self.kept));
        if let Some(oldest) = self.order[..others].iter().position(|place| *place == at) {
            self.order.copy_within(oldest + 1..others, oldest);
            others -= 1;
        }
        let to = self.order[..others].partition_point(|place| self.ns[usize::from(*place)] <= ns);
        self.order.copy_within(to..others, to + 1);
        self.order[to] = at;
        self.ns[usize::from(at)] = ns;
        self.next = (at + 1) % KEPT as u8;
        self.kept = others as u8 + 1;
    }

    /// The median of those kept; there is one at least.
    fn median_ns(&self) -> u64 {
        let of = |nth: usize| self.ns[usize::from(self.order[nth])];
        let kept = usize::from(self.kept);
        let upper = of(kept / 2);
        if kept % 2 == 1 { upper } else { half_way(of(kept / 2 - 1), upper) }
    }
}

/// The latest answers of a target.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    /// By the [`place`] of the number met; as long as the greatest number needs so far.
    of: Vec<Latest>,
}

impl Latencies {
    /// A request that had met that many ended after this time.
    pub fn ended(&mut self, met: u16, took_ns: u64, outcome: Outcome) {
        if outcome.is_some() {
            return;
        }
        let at = place(met);
        if at >= self.of.len() {
            self.of.resize(at + 1, Latest::default());
        }
        self.of[at].add(took_ns);
    }

    /// The median of the latest answers to requests that met about as many, ns; 0 without any.
    pub fn median_ns(&self, met: u16) -> u64 {
        let at = place(met);
        match self.of.get(at) {
            Some(latest) if usize::from(latest.kept) >= ENOUGH => latest.median_ns(),
            _ => self.median_around(at),
        }
    }

    /// The same where answers to requests that met other numbers are needed, the nearest first.
    fn median_around(&self, at: usize) -> u64 {
        let (mut found, mut n) = ([0; MOST], 0);
        let nearest = at.saturating_sub(self.of.len().saturating_sub(1));
        for distance in nearest..=at.max(self.of.len()) {
            let below = at.checked_sub(distance);
            let above = (distance > 0).then_some(at + distance);
            for latest in [below, above].into_iter().flatten().filter_map(|i| self.of.get(i)) {
                let kept = latest.kept();
                found[n..n + kept.len()].copy_from_slice(kept);
                n += kept.len();
            }
            if n >= ENOUGH {
                break;
            }
        }
        median(&mut found[..n])
    }
}

/// The place of a number's answers.
fn place(met: u16) -> usize {
    if met < EXACT {
        return usize::from(met);
    }
    let doublings = met.ilog2() - EXACT.ilog2();
    let (half, leading) = (usize::from(EXACT / 2), usize::from(met >> (doublings + 1)));
    usize::from(EXACT) + doublings as usize * half + leading - half
}

/// The middle one, or half way between the middle two; 0 of none.
fn median(of: &mut [u64]) -> u64 {
    let Some(last) = of.len().checked_sub(1) else { return 0 };
    let (below, upper, _) = of.select_nth_unstable(last.div_ceil(2));
    let upper = *upper;
    match below.iter().max() {
        Some(&lower) if last % 2 == 1 => half_way(lower, upper),
        _ => upper,
    }
}

/// Half way from the lower to the upper.
fn half_way(lower: u64, upper: u64) -> u64 {
    lower + (upper - lower) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use weir_stats::Key;

    /// What the specification says, from an account of all answers, most recent last.
    fn naive(account: &[(u16, u64)], met: u16) -> u64 {
        let mut taken: Vec<u64> = Vec::new();
        for distance in 0..1000 {
            for number in 0..1000u16 {
                if number.abs_diff(met) == distance {
                    let of = account.iter().rev().filter(|(n, _)| *n == number);
                    taken.extend(of.take(16).map(|(_, took)| *took));
                }
            }
            if taken.len() >= 3 {
                break;
            }
        }
        taken.sort_unstable();
        match taken.len() {
            0 => 0,
            n if n % 2 == 1 => taken[n / 2],
            n => (taken[n / 2 - 1] + taken[n / 2]) / 2,
        }
    }

    #[test]
    fn medians_are_those_of_the_account() {
        for (most, answers) in [(1, 40), (4, 100), (30, 60), (100, 25), (127, 300)] {
            let (mut latencies, mut account) = (Latencies::default(), Vec::new());
            for i in 0..answers {
                let draw = Key::new(5).with(i);
                let met = draw.below(most) as u16;
                for asked in [met, draw.nth(1).below(most + 20) as u16] {
                    let asked = asked.min(EXACT - 1);
                    assert_eq!(latencies.median_ns(asked), naive(&account, asked), "{asked} of {account:?}");
                }
                let took = draw.nth(2).below(1000);
                let outcome = [None, None, Some(Kind::Status5xx), Some(Kind::Cancelled)];
                let outcome = outcome[draw.nth(3).below(4) as usize];
                latencies.ended(met, took, outcome);
                if outcome.is_none() {
                    account.push((met, took));
                }
            }
        }
    }

    #[test]
    fn great_numbers_share_places_with_their_neighbours() {
        let mut last = 0;
        for met in 1..=u16::MAX {
            let at = place(met);
            assert!(at == last || at == last + 1, "{met}");
            assert!(met < EXACT || at == last || f64::from(met) / f64::from(met - 1) <= 1.0 + 1.0 / 127.0);
            last = at;
        }
        assert_eq!(last, 703);
        let mut latencies = Latencies::default();
        latencies.ended(u16::MAX, 70, None);
        assert_eq!((latencies.median_ns(u16::MAX), latencies.median_ns(0)), (70, 70));
    }
}
