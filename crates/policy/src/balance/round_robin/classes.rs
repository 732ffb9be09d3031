//! Targets by weight: a step of the smooth sequence that looks at each weight once, however many targets have it.
//!
//! All targets of one weight are raised alike, so their order changes only where one is taken and lowered by the sum,
//! which puts it last or nearly so. Each weight keeps its targets in that order, as a queue.

use std::cmp::Reverse;
use std::collections::VecDeque;

/// Below this a class is written down anew, long before a value would overflow.
const FLOOR: i64 = i64::MIN / 2;

/// The classes of one balancer, in order of weight. Targets are named by their place among the open ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    /// The first one's value in each class. Apart from the rest, so that raising all of them and finding the greatest
    /// are two short loops.
    values: Vec<i64>,
    weights: Vec<i64>,
    /// (value less what the class has been raised by, target): the greatest first, of equals the first target.
    queues: Vec<VecDeque<(i64, u32)>>,
    sum: i64,
}

impl Classes {
    /// Targets of these values and weights.
    pub fn new(smooth: &[(i64, i64)]) -> Classes {
        let mut weights: Vec<i64> = smooth.iter().map(|(_, weight)| *weight).collect();
        weights.sort_unstable();
        weights.dedup();
        let mut classes = Classes {
            values: vec![0; weights.len()],
            queues: vec![VecDeque::new(); weights.len()],
            weights,
            sum: smooth.iter().map(|(_, weight)| weight).sum(),
        };
        classes.load(smooth);
        classes
    }

    /// Distinct weights.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The same targets have these values now. O(n log n).
    pub fn load(&mut self, smooth: &[(i64, i64)]) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        for (target, (value, weight)) in (0..).zip(smooth) {
            if let Ok(class) = self.weights.binary_search(weight) {
                self.queues[class].push_back((*value, target));
            }
        }
        for (value, queue) in self.values.iter_mut().zip(&mut self.queues) {
            queue.make_contiguous().sort_unstable_by_key(|&(value, target)| (Reverse(value), target));
            *value = queue[0].0;
        }
    }

    /// The values of now.
    pub fn store(&self, smooth: &mut [(i64, i64)]) {
        for (first, queue) in self.values.iter().zip(&self.queues) {
            let raised = first - queue[0].0;
            queue.iter().for_each(|&(value, target)| smooth[target as usize].0 = value + raised);
        }
    }

    /// The next of the sequence.
    #[inline]
    pub fn step(&mut self) -> u32 {
        self.values.iter_mut().zip(&self.weights).for_each(|(value, weight)| *value += weight);
        let (mut best, mut most) = (0, i64::MIN);
        for (i, &value) in self.values.iter().enumerate() {
            // Equals are rare: the one that comes first among all.
            if value > most || value == most && self.queues[i][0].1 < self.queues[best][0].1 {
                (best, most) = (i, value);
            }
        }
        let queue = &mut self.queues[best];
        let (value, target) = queue[0];
        queue.pop_front();
        queue.push_back((value - self.sum, target));
        let place = |&(value, target): &(i64, u32)| (Reverse(value), target);
        let mut at = queue.len() - 1;
        while at > 0 && place(&queue[at - 1]) > place(&queue[at]) {
            queue.swap(at - 1, at);
            at -= 1;
        }
        self.values[best] = most - value + queue[0].0;
        if value < FLOOR {
            self.rebase(best);
        }
        target
    }

    /// Writes the values of a class down as they are now: what it has been raised by has grown with every pick.
    #[cold]
    fn rebase(&mut self, class: usize) {
        let queue = &mut self.queues[class];
        let raised = self.values[class] - queue[0].0;
        queue.iter_mut().for_each(|(value, _)| *value += raised);
    }
}
