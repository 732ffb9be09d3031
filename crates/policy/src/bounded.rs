//! Bounded load: how much of the whole a target of a hashing policy may have in flight.
//!
//! - Idea: a popular key fills its target up to a factor of the fair share; what is more walks on to the next.
//! - State: a count per target. Formula: at most ceil(bound · (in flight at all + 1) · w / W), W over the eligible.
//! - Property: as the bounds of all eligible targets add up to more than is in flight, one has room.
//! - Pathologies: counts are this balancer's; with few requests in flight every bound is at least 1, so it is loose.
//! - Source: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads" (2016); Envoy `hash_balance_factor`.

/// Counts and bounds of the targets of one balancer.
#[derive(Clone, Debug)]
pub struct Bounded {
    bound: Option<f64>,
    counts: Vec<u32>,
    total: u64,
    weights: Vec<f64>,
    /// Of the eligible.
    sum: f64,
}

impl Bounded {
    /// Nothing in flight at targets of these effective weights.
    pub fn new(weights: &[f64], bound: Option<f64>) -> Bounded {
        let mut bounded = Bounded { bound, counts: Vec::new(), total: 0, weights: Vec::new(), sum: 0.0 };
        bounded.refresh(weights);
        bounded
    }

    /// Other effective weights, of these and perhaps of more targets; counts go on.
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

    /// Whether this one is.
    #[inline]
    pub fn is_open(&self, target: u32) -> bool {
        self.weights[target as usize] > 0.0
    }

    /// Whether it is eligible and one more request stays within its bound.
    #[inline]
    pub fn has_room(&self, target: u32) -> bool {
        let open = self.is_open(target);
        match self.bound {
            None => open,
            Some(bound) => open && self.counts[target as usize] < self.limit(target, bound),
        }
    }

    fn limit(&self, target: u32, bound: f64) -> u32 {
        let share = bound * (self.total + 1) as f64 * self.weights[target as usize] / self.sum;
        // What rounding put above a whole number is no reason for one more.
        (share - share * 1e-12).ceil() as u32
    }

    /// Whether loads are bounded at all.
    pub fn is_bounded(&self) -> bool {
        self.bound.is_some()
    }

    /// Requests in flight at a target.
    pub fn in_flight(&self, target: u32) -> u32 {
        self.counts[target as usize]
    }

    /// Requests in flight at all targets.
    pub fn total_in_flight(&self) -> u64 {
        self.total
    }

    /// Counts a request.
    #[inline]
    pub fn take(&mut self, target: u32) {
        self.counts[target as usize] += 1;
        self.total += 1;
    }

    /// It has come back.
    #[inline]
    pub fn release(&mut self, target: u32) {
        let count = &mut self.counts[target as usize];
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

    /// Whatever is in flight, some eligible target has room.
    #[test]
    fn one_always_has_room() {
        for seed in 0..200u64 {
            let draw = Key::new(seed);
            let n = 1 + draw.below(9) as u32;
            let weights: Vec<f64> = (0..n).map(|i| 1.0 + draw.nth(u64::from(i)).below(5) as f64).collect();
            let mut lb = Bounded::new(&weights, Some(1.0 + draw.nth(50).unit()));
            for step in 0..200 {
                let room: Vec<u32> = (0..n).filter(|&t| lb.has_room(t)).collect();
                assert!(!room.is_empty());
                lb.take(room[draw.with(step).below(room.len() as u64) as usize]);
                let t = draw.with(step).nth(1).below(u64::from(n)) as u32;
                if lb.in_flight(t) > 0 && draw.with(step).nth(2).unit() < 0.5 {
                    lb.release(t);
                }
            }
            assert_eq!(lb.total_in_flight(), (0..n).map(|t| u64::from(lb.in_flight(t))).sum());
        }
    }

    #[test]
    fn the_bound_is_that_of_the_contract() {
        let mut lb = Bounded::new(&[1.0, 1.0, 2.0, 0.0], Some(1.25));
        (0..7).for_each(|_| lb.take(2));
        // ceil(1.25 * 8 / 4) = 3, of weight 2: 5
        assert_eq!((lb.limit(0, 1.25), lb.limit(2, 1.25)), (3, 5));
        assert!(lb.has_room(0) && !lb.has_room(2) && !lb.has_room(3));
        assert_eq!(Bounded::new(&[1.0; 3], Some(1.2)).limit(0, 1.2), 1);
        let mut thirds = Bounded::new(&[1.0; 3], Some(1.2));
        (0..4).for_each(|_| thirds.take(1));
        assert_eq!(thirds.limit(0, 1.2), 2, "1.2 * 5 / 3 is 2, whatever the rounding");
        assert!(Bounded::new(&[1.0], None).has_room(0) && !Bounded::new(&[0.0], None).has_room(0));
    }
}
