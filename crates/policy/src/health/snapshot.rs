//! The health that one thread keeps, as the loops of a process see it: a copy of what each balancer needs.
//!
//! The owner takes one whenever [`Health::version`] has changed and sends it; a loop passes it to its balancer
//! ([`crate::upstream::Upstream::follow`]). Cost: a bit for each target and a few small allocations for a change, none for a
//! request. Weights that differ and ramps are lists beside the bits, made only where there are any: of a hundred thousand
//! targets all that a pick may need is 6 MB, which takes a loop longer to write and read than the rest of the change.

use crate::TargetId;
use crate::ds::bits::Bits;
use crate::health::{Health, View};
use serde::{Deserialize, Serialize};

/// The views of all targets at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Listed", into = "Listed")]
pub struct Snapshot {
    version: u64,
    /// Targets that may be picked.
    picks: Bits,
    /// Weights without ramps, by target; one where it is that of all.
    weights: Box<[f64]>,
    /// (weight with its ramp, room) by target; empty without ramps.
    ramped: Box<[(f64, f64)]>,
}

/// How it is written: (view, weight without its ramp) by target.
#[derive(Serialize, Deserialize)]
struct Listed {
    version: u64,
    targets: Box<[(View, f64)]>,
}

impl Snapshot {
    /// The present state.
    pub fn new(health: &Health) -> Snapshot {
        let all = || TargetId::all(health.len());
        let ramped = |t| {
            let View { weight, room, .. } = health.view(t);
            (weight, room)
        };
        Snapshot {
            version: health.version(),
            picks: bits(health.len(), all().map(|t| health.may_be_picked(t))),
            weights: weights(health.len(), all().map(|t| health.whole_weight(t))),
            ramped: all().filter(|_| health.has_ramps()).map(ramped).collect(),
        }
    }

    /// The version of the health at that moment.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Indices in use.
    pub fn len(&self) -> u32 {
        self.picks.len()
    }

    /// Whether there never was a target.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a pick needs to know of a target; `ramped`: its weight with its ramp.
    pub fn view(&self, target: TargetId, ramped: bool) -> View {
        let whole = *self.weights.get(target.index()).unwrap_or(&self.weights[0]);
        let (weight, room) = *self.ramped.get(target.index()).unwrap_or(&(whole, 1.0));
        View { weight: if ramped { weight } else { whole }, may_be_picked: self.picks.has(target.0), room }
    }
}

/// The set of the indices that are `true`, of this many.
fn bits(len: u32, all: impl Iterator<Item = bool>) -> Bits {
    let mut bits = Bits::new(len);
    (0..).zip(all).filter(|(_, is_in)| *is_in).for_each(|(index, _)| _ = bits.set(index, true));
    bits
}

/// Weights by target, of this many, or the one that all have.
fn weights(len: u32, all: impl Iterator<Item = f64> + Clone) -> Box<[f64]> {
    let are_same = all.clone().zip(all.clone().skip(1)).all(|(one, next)| one == next);
    all.take(if are_same { 1 } else { len as usize }).collect()
}

impl From<Listed> for Snapshot {
    fn from(Listed { version, targets }: Listed) -> Snapshot {
        let views = || targets.iter().map(|(view, _)| view);
        let has_ramps = targets.iter().any(|(view, whole)| view.weight != *whole || view.room != 1.0);
        Snapshot {
            version,
            picks: bits(targets.len() as u32, views().map(|view| view.may_be_picked)),
            weights: weights(targets.len() as u32, targets.iter().map(|(_, whole)| *whole)),
            ramped: views().filter(|_| has_ramps).map(|view| (view.weight, view.room)).collect(),
        }
    }
}

impl From<Snapshot> for Listed {
    fn from(health: Snapshot) -> Listed {
        let of = |t| (health.view(t, true), health.view(t, false).weight);
        Listed { version: health.version, targets: TargetId::all(health.len()).map(of).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eligibility::Admin;
    use crate::health::HealthConfig;
    use crate::health::slow_start::SlowStart;
    use weir_stats::Key;

    /// It says of each target what the health says, whatever is left out of it, and so does what was written and read.
    #[test]
    fn it_says_what_the_health_says() {
        let ramps = HealthConfig { slow_start: Some(SlowStart::new(100)), ..HealthConfig::default() };
        for (config, given) in [
            (HealthConfig::default(), vec![]),
            (HealthConfig::default(), vec![2.0]),
            (HealthConfig::default(), vec![1.0; 100]),
            (HealthConfig::default(), vec![1.0, 1.0, 3.0]),
            (ramps, vec![2.0; 5]),
        ] {
            let mut health = Health::new(config, &given, 0, Key::new(1));
            for round in 0..3 {
                let taken = Snapshot::new(&health);
                let read = Snapshot::from(Listed::from(taken.clone()));
                for own in [&taken, &read] {
                    assert_eq!((own.len(), own.version()), (health.len(), health.version()));
                    for t in TargetId::all(health.len()) {
                        let whole = View { weight: health.whole_weight(t), ..health.view(t) };
                        assert_eq!((own.view(t, true), own.view(t, false)), (health.view(t), whole));
                    }
                }
                if let Some(last) = health.len().checked_sub(1) {
                    health.set_admin(round, TargetId(round as u32 % (last + 1)), Admin::Down);
                    health.set_weight(TargetId(last), 0.5 + round as f64);
                }
            }
        }
    }
}
