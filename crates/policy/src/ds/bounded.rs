//! Bounded load: the share of all requests that a target of a hashing policy may have in flight.
//!
//! - Idea: a popular key fills its target up to a factor of the fair share; further requests walk on to the next
//!   target.
//! - State: a count per target. Formula: at most ceil(bound · (in flight at all + 1) · w / W), W over the eligible.
//! - Property: since the bounds of all eligible targets add up to more than is in flight, one has room.
//! - Pathologies: counts are this balancer's; with few requests in flight every bound is at least 1, so it is loose.
//! - Source: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads" (2016); Envoy
//!   `hash_balance_factor`.

use crate::TargetId;

/// Counts and bounds of the targets of one balancer.
#[derive(Clone, Debug)]
pub struct Bounded {
    bound: Option<f64>,
    counts: Vec<u32>,
    total: u64,
    weights: Vec<f64>,
    /// The total weight of the eligible targets.
    sum: f64,
}

impl Bounded {
    /// Nothing in flight at targets of these effective weights.
    pub fn new(weights: &[f64], bound: Option<f64>) -> Bounded {
        let mut bounded = Bounded { bound, counts: Vec::new(), total: 0, weights: Vec::new(), sum: 0.0 };
        bounded.refresh(weights);
        bounded
    }

    /// Replaces the effective weights, of these and perhaps of more targets; counts stay.
    pub fn refresh(&mut self, weights: &[f64]) {
        self.weights.clear();
        self.weights.extend_from_slice(weights);
        self.counts.resize(weights.len(), 0);
        self.sum = weights.iter().sum();
    }

    /// Whether any target is eligible.
    pub fn any(&self) -> bool {
        self.sum > 0.0
    }

    /// Whether this target is eligible.
    #[inline]
    pub fn is_open(&self, target: TargetId) -> bool {
        self.weights[target.index()] > 0.0
    }

    /// The number per unit of weight that may be in flight when the next request is counted; infinite without a
    /// bound. One division per pick, for any number of targets that it walks past.
    #[inline]
    pub fn per_weight(&self) -> f64 {
        self.bound.map_or(f64::INFINITY, |bound| bound * (self.total + 1) as f64 / self.sum)
    }

    /// Whether it is eligible and one more request stays within its bound, given [`Bounded::per_weight`].
    #[inline]
    pub fn has_room(&self, target: TargetId, per_weight: f64) -> bool {
        // A whole number is below a ceiling exactly if it is below the unrounded value; and a value that rounding
        // errors lifted above a whole number must not allow one more. Weight 0 has no room: infinity times 0 is NaN.
        let share = per_weight * self.weights[target.index()];
        f64::from(self.counts[target.index()]) < share * (1.0 - 1e-12)
    }

    /// Requests in flight at a target.
    pub fn in_flight(&self, target: TargetId) -> u32 {
        self.counts[target.index()]
    }

    /// Requests in flight at all targets.
    pub fn total_in_flight(&self) -> u64 {
        self.total
    }

    /// Counts a request.
    #[inline]
    pub fn take(&mut self, target: TargetId) {
        self.counts[target.index()] += 1;
        self.total += 1;
    }

    /// Removes a request that has come back.
    #[inline]
    pub fn release(&mut self, target: TargetId) {
        let count = &mut self.counts[target.index()];
        debug_assert!(*count > 0, "a target with nothing in flight released a request");
        if *count > 0 {
            *count -= 1;
            self.total -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Key;

    /// With any requests in flight, some eligible target has room.
    #[test]
    fn one_always_has_room() {
        for seed in 0..200u64 {
            let draw = Key::new(seed);
            let n = 1 + draw.below(9) as u32;
            let weights: Vec<f64> = (0..n).map(|i| 1.0 + draw.nth(u64::from(i)).below(5) as f64).collect();
            let mut lb = Bounded::new(&weights, Some(1.0 + draw.nth(50).unit()));
            for step in 0..200 {
                let room: Vec<u32> = (0..n).filter(|&t| lb.has_room(TargetId(t), lb.per_weight())).collect();
                assert!(!room.is_empty());
                lb.take(TargetId(room[draw.with(step).below(room.len() as u64) as usize]));
                let t = draw.with(step).nth(1).below(u64::from(n)) as u32;
                if lb.in_flight(TargetId(t)) > 0 && draw.with(step).nth(2).unit() < 0.5 {
                    lb.release(TargetId(t));
                }
            }
            assert_eq!(lb.total_in_flight(), (0..n).map(|t| u64::from(lb.in_flight(TargetId(t)))).sum());
        }
    }

    #[test]
    fn the_bound_is_that_of_the_contract() {
        // The obvious model: the formula of `docs/spec/language.md#bounded-hashes`.
        for (bound, weights) in
            [(1.25, [1.0, 1.0, 2.0, 0.0]), (1.2, [1.0, 1.0, 1.0, 0.0]), (2.0, [0.3, 0.1, 5.0, 0.7])]
        {
            let sum: f64 = weights.iter().sum();
            for target in TargetId::all(4) {
                let mut lb = Bounded::new(&weights, Some(bound));
                for total in 0..200 {
                    // 1.2 * 5 / 3 is 2, with any rounding error.
                    let limit = (bound * f64::from(total + 1) * weights[target.index()] / sum - 1e-9).ceil();
                    let room = f64::from(lb.in_flight(target)) < limit;
                    assert_eq!(
                        lb.has_room(target, lb.per_weight()),
                        room,
                        "{target} of {weights:?} at {total}"
                    );
                    lb.take(if room && total % 2 == 0 { target } else { TargetId(3 - target.0) });
                }
            }
        }
        let free = Bounded::new(&[1.0, 0.0], None);
        assert!(
            free.has_room(TargetId(0), free.per_weight()) && !free.has_room(TargetId(1), free.per_weight())
        );
    }
}
