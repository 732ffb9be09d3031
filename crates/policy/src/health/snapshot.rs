//! The health that one thread keeps, as the loops of a process see it: a copy of what each balancer needs.
//!
//! The owner takes one whenever [`Health::version`] has changed and sends it; a loop passes it to its balancer
//! ([`crate::upstream::Upstream::follow`]). Cost: a few small allocations for a change, none for a request. It is a bit for each
//! target, with lists of weights where they differ and of ramps where any goes on: written out, a hundred thousand targets are
//! 3 MB, which takes a thread longer to write and read than the rest of the change.

use crate::TargetId;
use crate::ds::bits::Bits;
use crate::health::{Health, View};
use serde::{Deserialize, Serialize};

/// The views of all targets at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "SnapshotRecord", into = "SnapshotRecord")]
pub struct Snapshot {
    version: u64,
    /// Targets that may be picked.
    pickable: Bits,
    /// Weights without ramps, by target; a single one is that of all.
    weights: Box<[f64]>,
    /// (weight with its ramp, room) by target; empty where no ramp changes anything.
    ramps: Box<[(f64, f64)]>,
}

/// How it is written: (view, weight without its ramp) by target.
#[derive(Serialize, Deserialize)]
struct SnapshotRecord {
    version: u64,
    targets: Box<[(View, f64)]>,
}

impl Snapshot {
    /// The present state.
    pub fn new(health: &Health) -> Snapshot {
        let ramp = |t| {
            let View { weight, room, .. } = health.view(t);
            (weight, room)
        };
        let all = TargetId::all(health.len());
        Snapshot::collect(
            health.version(),
            health.len(),
            all.clone().map(|t| health.may_be_picked(t)),
            all.clone().map(|t| health.whole_weight(t)),
            all.filter(|_| health.has_ramps()).map(ramp),
        )
    }

    /// Of this many targets; without `ramps`, or with those of all.
    fn collect(
        version: u64,
        len: u32,
        may_be_picked: impl Iterator<Item = bool>,
        weights: impl Iterator<Item = f64> + Clone,
        ramps: impl Iterator<Item = (f64, f64)> + Clone,
    ) -> Snapshot {
        let mut pickable = Bits::new(len);
        for (index, _) in (0..).zip(may_be_picked).filter(|(_, may_be)| *may_be) {
            pickable.set(index, true);
        }
        let are_same = weights.clone().zip(weights.clone().skip(1)).all(|(one, next)| one == next);
        let have_effect = ramps.clone().zip(weights.clone()).any(|(ramp, whole)| ramp != (whole, 1.0));
        Snapshot {
            version,
            pickable,
            weights: weights.take(if are_same { 1 } else { len as usize }).collect(),
            ramps: ramps.filter(|_| have_effect).collect(),
        }
    }

    /// The version of the health at that moment.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Indices in use.
    pub fn len(&self) -> u32 {
        self.pickable.len()
    }

    /// Whether there never was a target.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a pick needs to know of a target; `ramped`: its weight with its ramp.
    ///
    /// # Panics
    ///
    /// If there never was such a target.
    #[inline]
    pub fn view(&self, target: TargetId, ramped: bool) -> View {
        assert!(target.0 < self.len(), "there never was target {}", target.0);
        let whole = if let [same] = *self.weights { same } else { self.weights[target.index()] };
        let (weight, room) = self.ramps.get(target.index()).copied().unwrap_or((whole, 1.0));
        let weight = if ramped { weight } else { whole };
        View { weight, may_be_picked: self.pickable.has(target.0), room }
    }
}

impl From<SnapshotRecord> for Snapshot {
    fn from(SnapshotRecord { version, targets }: SnapshotRecord) -> Snapshot {
        let views = targets.iter().map(|(view, _)| view);
        Snapshot::collect(
            version,
            targets.len() as u32,
            views.clone().map(|view| view.may_be_picked),
            targets.iter().map(|(_, whole)| *whole),
            views.map(|view| (view.weight, view.room)),
        )
    }
}

impl From<Snapshot> for SnapshotRecord {
    fn from(health: Snapshot) -> SnapshotRecord {
        let of = |t| (health.view(t, true), health.view(t, false).weight);
        SnapshotRecord { version: health.version, targets: TargetId::all(health.len()).map(of).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetChange;
    use crate::eligibility::Admin;
    use crate::health::HealthConfig;
    use crate::health::slow_start::SlowStart;
    use weir_stats::Key;

    fn check(health: &Health) -> Snapshot {
        let taken = Snapshot::new(health);
        let read = Snapshot::from(SnapshotRecord::from(taken.clone()));
        assert_eq!(read, taken);
        assert_eq!((taken.len(), taken.version()), (health.len(), health.version()));
        for t in TargetId::all(health.len()) {
            let whole = View { weight: health.whole_weight(t), ..health.view(t) };
            assert_eq!((taken.view(t, true), taken.view(t, false)), (health.view(t), whole));
        }
        taken
    }

    /// It says of each target what the health says, whatever is left out of it, and so does what was written and read.
    #[test]
    fn it_says_what_the_health_says() {
        for given in [vec![], vec![2.0], vec![1.0; 100], vec![1.0, 1.0, 3.0]] {
            let mut health = Health::new(HealthConfig::default(), &given, 0, Key::new(1));
            for round in 0..3 {
                check(&health);
                if let Some(last) = health.len().checked_sub(1) {
                    health.set_admin(round, TargetId(round as u32 % (last + 1)), Admin::Down);
                    health.set_weight(TargetId(last), 0.5 + round as f64);
                }
            }
        }
    }

    #[test]
    fn ramps_are_in_it_while_they_go_on() {
        let slow_start = Some(SlowStart { limits: true, ..SlowStart::new(100) });
        let config = HealthConfig { slow_start, ..HealthConfig::default() };
        let mut health = Health::new(config, &[2.0; 5], 0, Key::new(1));
        assert!(check(&health).ramps.is_empty());
        let newcomer = TargetId(5);
        health.change_targets(10, [TargetChange::Add { target: newcomer, weight: 2.0, name: "" }]);
        let view = check(&health).view(newcomer, true);
        assert!(view.weight < 2.0 && view.room < 1.0, "{view:?}");
        health.tick(60);
        assert!(check(&health).view(newcomer, true).weight > view.weight);
        health.tick(200);
        assert!(check(&health).ramps.is_empty());
    }
}
