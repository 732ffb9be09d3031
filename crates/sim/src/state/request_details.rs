//! Details of requests that only some topologies need: their kind, their answer, and the factor of their work.

use crate::code::SlotId;
use crate::state::probes::NONE;
use weir_policy::TargetId;

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
    /// The load that the last answer reports.
    pub load: Option<f32>,
    /// How often it has come before to the balancer it is at, on this way.
    pub came: u32,
    /// The balancer and target of a health check, and the probe that it is, if it is one.
    pub check: (u32, TargetId),
    pub probe: u32,
    /// The factor of its work.
    pub factor: f64,
}

/// What a branch brings back to its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub relayed: bool,
    pub load: Option<f32>,
}

impl Detail {
    /// The answer that it has.
    pub fn answer(&self) -> Answer {
        Answer { status: self.status, relayed: self.relayed, load: self.load }
    }
}

const NEW: Detail = Detail {
    shape: 0,
    key: None,
    status: 0,
    relayed: false,
    load: None,
    came: 0,
    check: (0, TargetId(0)),
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
    pub fn begin(&mut self, slot: SlotId, shape: u32, key: Option<u64>) {
        self.reserve(slot);
        self.slots[slot.index()] = Detail { shape, key, ..NEW };
        self.factors[slot.index()].clear();
    }

    fn reserve(&mut self, slot: SlotId) {
        if slot.index() >= self.slots.len() {
            self.slots.resize(slot.index() + 1, NEW);
            self.factors.resize(slot.index() + 1, Vec::new());
        }
    }

    /// Copies the details of one request to another.
    pub fn copy(&mut self, from: SlotId, to: SlotId) {
        self.reserve(to);
        self.slots[to.index()] = self.slots[from.index()];
        self.factors[to.index()] = self.factors[from.index()].clone();
    }

    /// Gives a branch the details of its request.
    pub fn branch(&mut self, from: SlotId, to: SlotId) {
        self.reserve(to);
        self.slots[to.index()] =
            Detail { status: 0, relayed: false, load: None, came: 0, ..self.slots[from.index()] };
        self.factors[to.index()].clear();
    }

    /// Multiplies the work of a request from here on.
    pub fn scale(&mut self, slot: SlotId, factor: f64) {
        let detail = &mut self.slots[slot.index()];
        self.factors[slot.index()].push(detail.factor);
        detail.factor *= factor;
    }

    /// Reverts [`Details::scale`].
    pub fn unscale(&mut self, slot: SlotId) {
        if let Some(before) = self.factors[slot.index()].pop() {
            self.slots[slot.index()].factor = before;
        }
    }

    /// How many factors a request is under, and its kind: what must be restored outside of a limit.
    pub fn outside(&self, slot: SlotId) -> (u32, u16) {
        (self.slots[slot.index()].shape, self.factors[slot.index()].len() as u16)
    }

    /// A request is cut off: restores the values outside of a limit.
    pub fn cut(&mut self, slot: SlotId, shape: u32, factors: u16) {
        while self.factors[slot.index()].len() > usize::from(factors) {
            self.unscale(slot);
        }
        let detail = &mut self.slots[slot.index()];
        (detail.shape, detail.status, detail.relayed, detail.came) = (shape, 0, false, 0);
        detail.load = None;
    }

    /// Another attempt of a request begins.
    pub fn try_again(&mut self, slot: SlotId) {
        let detail = &mut self.slots[slot.index()];
        (detail.status, detail.relayed, detail.load) = (0, false, None);
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
        details.begin(SlotId(1), 3, None);
        details.scale(SlotId(1), 2.0);
        let outside = details.outside(SlotId(1));
        details.scale(SlotId(1), 3.0);
        details.scale(SlotId(1), 5.0);
        assert_eq!(details.slots[1].factor, 30.0);
        details.unscale(SlotId(1));
        assert_eq!(details.slots[1].factor, 6.0);
        details.copy(SlotId(1), SlotId(0));
        details.slots[1].shape = 7;
        details.cut(SlotId(1), outside.0, outside.1);
        assert_eq!((details.slots[1].factor, details.slots[1].shape), (2.0, 3));
        details.unscale(SlotId(1));
        assert_eq!((details.slots[1].factor, details.slots[0].factor), (1.0, 6.0));
    }
}
