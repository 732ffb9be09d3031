//! What few requests have beside their state: what kind they are, what they were answered, what their work is multiplied by.

use crate::state::probes::NONE;

/// The details of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// The kind of request, and the hash of its key.
    pub shape: u32,
    pub key: Option<u64>,
    /// The status of the last answer; 0: nothing says which.
    pub status: u16,
    /// A balancer behind which it failed has passed its error on: whom that one could reach was reached.
    pub relayed: bool,
    /// How often it has come to the balancer where it stands before, on this way.
    pub came: u32,
    /// The balancer and the target of a health check, and the probe that it is rather than one.
    pub check: (u32, u32),
    pub probe: u32,
    /// What its work is multiplied by.
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

/// The details of all requests, by slot; none where nothing reads them.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub slots: Vec<Detail>,
    /// Factors that held outside, innermost last.
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

    /// What one request has another has.
    pub fn copy(&mut self, from: u32, to: u32) {
        self.reserve(to);
        self.slots[to as usize] = self.slots[from as usize];
        self.factors[to as usize] = self.factors[from as usize].clone();
    }

    /// What a branch knows of the request that sends it in.
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

    /// Takes that back.
    pub fn unscale(&mut self, slot: u32) {
        if let Some(before) = self.factors[slot as usize].pop() {
            self.slots[slot as usize].factor = before;
        }
    }

    /// How many factors a request is under, and of what kind it is: what a limit outside of it must know.
    pub fn outside(&self, slot: u32) -> (u32, u16) {
        (self.slots[slot as usize].shape, self.factors[slot as usize].len() as u16)
    }

    /// A request is cut off: what it has met behind a limit is forgotten.
    pub fn cut(&mut self, slot: u32, (shape, factors): (u32, u16)) {
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

/// Work that takes so many times longer.
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
        details.cut(1, outside);
        assert_eq!((details.slots[1].factor, details.slots[1].shape), (2.0, 3));
        details.unscale(1);
        assert_eq!((details.slots[1].factor, details.slots[0].factor), (1.0, 6.0));
    }
}
