//! The way of a probe that asks a target how busy it is (`lb.prequal`): the cables before that.
//!
//! - In virtual time: the target is looked at once the probe has crossed them, and the balancer knows once the answer has.
//! - In the proxy: the same, where the cables act; else the answer is there at once.
//! - Draws: the crossings, by what the probe is drawn by.

use crate::crossing;
use crate::draws::{of_place, purpose};
use crate::sampler::Sampler;
use weir_stats::Key;

/// A cable on the way.
#[derive(Clone, Debug)]
pub struct Cable {
    /// One crossing.
    pub time: Sampler,
    /// The share of crossings that are lost.
    pub loss: f64,
    /// A lost one is sent again after this, ns.
    pub resend_ns: Option<u64>,
}

impl Cable {
    fn ns(&self, key: Key, (time, loss): (u64, u64)) -> Option<u64> {
        let extra = match self.loss > 0.0 {
            true => crossing::extra_ns(self.loss, self.resend_ns, key.with(loss))?,
            false => 0,
        };
        Some(self.time.draw(key.with(time)).saturating_add(extra))
    }
}

/// The cables before a target, outermost first.
#[derive(Clone, Debug, Default)]
pub struct ProbeWay(pub Vec<Cable>);

impl ProbeWay {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How long a probe is on its way to the target, and back from there, ns; `None`: it is lost.
    pub fn times(&self, key: Key) -> Option<(u64, u64)> {
        let (mut out, mut back) = (0u64, 0u64);
        for (cable, i) in self.0.iter().zip(0..) {
            let key = key.with(purpose::PROBE).with(i);
            out = out.saturating_add(cable.ns(key, (of_place::OUT, of_place::LOSS_OUT))?);
            back = back.saturating_add(cable.ns(key, (of_place::BACK, of_place::LOSS_BACK))?);
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
