//! Details of requests that only some topologies need: their kind, their answer, and the factor of their work.

use crate::state::probes::NONE;

/// The details of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// The kind of request, and the hash of its key.
    pub shape: u32,
    pub key: Option<u64>,
    /// The status of the last answer; 0: unknown.
    pub status: u16,
    /// A balancer behind which it failed has passed its error on: that balancer's target was reached.
    pub relayed: bool,
    /// How often it has come before to the balancer it is at, on this way.
    pub came: u32,
    /// The balancer and target of a health check, and the probe that it is, if it is one.
    pub check: (u32, u32),
    pub probe: u32,
    /// The factor of its work.
    pub factor: f64,
}

const NEW: Detail = Detail {
    shape: 0,
    key: None,
    status: 0,
    relayed: false,
    came: 0,
    check: (0, 0),
    probe: NONE,
    factor: 1.0,
};

/// The details of all requests, by slot; empty where no node reads them.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub slots: Vec<Detail>,
    /// The factors outside, innermost last.
    factors: Vec<Vec<f64>>,
}

impl Details {
    /// A request of that kind begins in a slot.
    pub fn begin(&mut self, slot: u32, shape: u32, key: Option<u64>) {
        self.reserve(slot);
        self.slots[slot as usize] = Detail { shape, key, ..NEW };
        self.factors[slot as usize].clear();
    }

    fn reserve(&mut self, slot: u32) {
        if slot as usize >= self.slots.len() {
            self.slots.resize(slot as usize + 1, NEW);
            self.factors.resize(slot as usize + 1, Vec::new());
        }
    }

    /// Copies the details of one request to another.
    pub fn copy(&mut self, from: u32, to: u32) {
        self.reserve(to);
        self.slots[to as usize] = self.slots[from as usize];
        self.factors[to as usize] = self.factors[from as usize].clone();
    }

    /// Gives a branch the details of its request.
    pub fn branch(&mut self, from: u32, to: u32) {
        self.reserve(to);
        self.slots[to as usize] = Detail { status: 0, relayed: false, came: 0, ..self.slots[from as usize] };
        self.factors[to as usize].clear();
    }

    /// Multiplies the work of a request from here on.
    pub fn scale(&mut self, slot: u32, factor: f64) {
        let detail = &mut self.slots[slot as usize];
        self.factors[slot as usize].push(detail.factor);
        detail.factor *= factor;
    }

    /// Reverts [`Details::scale`].
    pub fn unscale(&mut self, slot: u32) {
        if let Some(before) = self.factors[slot as usize].pop() {
            self.slots[slot as usize].factor = before;
        }
    }

    /// How many factors a request is under, and its kind: what must be restored outside of a limit.
    pub fn outside(&self, slot: u32) -> (u32, u16) {
        (self.slots[slot as usize].shape, self.factors[slot as usize].len() as u16)
    }

    /// A request is cut off: restores the values outside of a limit.
    pub fn cut(&mut self, slot: u32, shape: u32, factors: u16) {
        while self.factors[slot as usize].len() > usize::from(factors) {
            self.unscale(slot);
        }
        let detail = &mut self.slots[slot as usize];
        (detail.shape, detail.status, detail.relayed, detail.came) = (shape, 0, false, 0);
    }

    /// Another attempt of a request begins.
    pub fn try_again(&mut self, slot: u32) {
        let detail = &mut self.slots[slot as usize];
        (detail.status, detail.relayed) = (0, false);
    }
}

/// The time of work that takes `factor` times as long.
pub(crate) fn scaled(ns: u64, factor: f64) -> u64 {
    if factor == 1.0 { ns } else { (ns as f64 * factor + 0.5) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_taken_back_one_by_one_or_all_that_a_limit_cuts_off() {
        let mut details = Details::default();
        details.begin(1, 3, None);
        details.scale(1, 2.0);
        let outside = details.outside(1);
        details.scale(1, 3.0);
        details.scale(1, 5.0);
        assert_eq!(details.slots[1].factor, 30.0);
        details.unscale(1);
        assert_eq!(details.slots[1].factor, 6.0);
        details.copy(1, 0);
        details.slots[1].shape = 7;
        details.cut(1, outside.0, outside.1);
        assert_eq!((details.slots[1].factor, details.slots[1].shape), (2.0, 3));
        details.unscale(1);
        assert_eq!((details.slots[1].factor, details.slots[0].factor), (1.0, 6.0));
    }
}
