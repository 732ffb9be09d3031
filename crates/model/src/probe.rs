//! The path of a probe that asks a target for its load (`lb.prequal`): the links before the target.
//!
//! - In virtual time: the target is read once the probe has crossed them, and the balancer gets the result once the
//!   answer has.
//! - In the proxy: the same where the links act; otherwise the answer is there at once.
//! - Draws: the crossings, by the probe's key.

use crate::crossing;
use crate::draws::{of_place, purpose};
use crate::sampler::Sampler;
use weir_stats::Key;

/// A link on the path.
#[derive(Clone, Debug)]
pub struct Cable {
    /// One crossing.
    pub time: Sampler,
    /// The share of crossings that are lost.
    pub loss: f64,
    /// The delay until a lost message is sent again, ns.
    pub resend_ns: Option<u64>,
}

impl Cable {
    fn ns(&self, key: Key, time: u64, loss: u64) -> Option<u64> {
        let extra = match self.loss > 0.0 {
            true => crossing::extra_ns(self.loss, self.resend_ns, key.with(loss))?,
            false => 0,
        };
        Some(self.time.draw(key.with(time)).saturating_add(extra))
    }
}

/// The links before a target, outermost first.
#[derive(Clone, Debug, Default)]
pub struct ProbeWay(pub Vec<Cable>);

impl ProbeWay {
    /// Whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The times that a probe takes to the target and back, ns; `None`: it is lost.
    pub fn times(&self, key: Key) -> Option<(u64, u64)> {
        let (mut out, mut back) = (0u64, 0u64);
        for (cable, i) in self.0.iter().zip(0..) {
            let key = key.with(purpose::PROBE).with(i);
            out = out.saturating_add(cable.ns(key, of_place::OUT, of_place::LOSS_OUT)?);
            back = back.saturating_add(cable.ns(key, of_place::BACK, of_place::LOSS_BACK)?);
        }
        Some((out, back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dist;

    #[test]
    fn a_probe_crosses_all_cables_twice() {
        let cable = |ns, loss| Cable { time: Sampler::new(&Dist::Fixed { ns }), loss, resend_ns: None };
        let key = Key::new(1);
        assert_eq!(ProbeWay::default().times(key), Some((0, 0)));
        assert_eq!(ProbeWay(vec![cable(5, 0.0), cable(7, 0.0)]).times(key), Some((12, 12)));
        assert_eq!(ProbeWay(vec![cable(5, 1.0)]).times(key), None);
    }
}
