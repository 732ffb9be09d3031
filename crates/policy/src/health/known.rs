//! What a process knows of targets' health, for the process that takes its place.

use super::Health;
use crate::TargetId;
use crate::health::eligibility::{Input, Passive, Reason};
use serde::{Deserialize, Serialize};

/// The known health of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRecord {
    /// Whether checks find it up.
    pub up: bool,
    /// The remaining time of its ejection, ns; 0: on probation.
    pub out_for_ns: Option<u64>,
    /// The number of ejections in a row.
    pub ejections: u32,
    /// How long ago it became eligible, if it is on its ramp, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_ns: Option<u64>,
}

impl Health {
    /// Whether targets have ramps. Then it is known of each target whether it is on one.
    pub fn has_ramps(&self) -> bool {
        self.ramps.is_some()
    }

    /// The known health of a target.
    pub fn known(&self, now_ns: u64, target: TargetId) -> HealthRecord {
        let up = self.checks.as_ref().is_none_or(|checks| checks.is_up(target));
        let (out_for_ns, ejections) = match (&self.ejections, &self.outliers) {
            (Some(ejections), _) => ejections.known(now_ns, target),
            (None, Some(outliers)) => outliers.known(now_ns, target),
            (None, None) => (None, 0),
        };
        let ramp_ns = self.ramps.as_ref().and_then(|ramps| ramps.elapsed_ns(now_ns, target));
        HealthRecord { up, out_for_ns, ejections, ramp_ns }
    }

    /// Restores a target's health from another process; inputs that this balancer does not use are ignored.
    pub fn restore(&mut self, now_ns: u64, target: TargetId, known: HealthRecord) {
        self.restore_eligibility(now_ns, target, known);
        // That it is believed here begins no ramp: the target is as new as the other process knew it.
        let is_eligible = self.is_eligible(target);
        if let Some(ramps) = &mut self.ramps {
            let was_ramping = ramps.has(target);
            match known.ramp_ns.filter(|_| is_eligible) {
                Some(ahead_ns) => ramps.resume(now_ns, target, ahead_ns),
                None => ramps.end(target),
            }
            // Thousands that are on no ramp are not judged one by one.
            if was_ramping || ramps.has(target) {
                self.judge();
            }
        }
    }

    fn restore_eligibility(&mut self, now_ns: u64, target: TargetId, known: HealthRecord) {
        if let Some(checks) = &mut self.checks {
            checks.believe(target, known.up);
            let reason = if known.up { Reason::ChecksPassed } else { Reason::ChecksFailed };
            self.set(now_ns, target, Input::Active(known.up), reason);
        }
        let Some(out_for_ns) = known.out_for_ns else { return };
        if let Some(ejections) = &mut self.ejections {
            ejections.heed(now_ns, target, out_for_ns, known.ejections);
        } else if let Some(outliers) = &mut self.outliers {
            outliers.heed(now_ns, target, out_for_ns, known.ejections);
        } else {
            return;
        }
        self.set(now_ns, target, Input::Passive(Passive::Out), Reason::EjectedConsecutive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::config::Eject;
    use crate::health::HealthConfig;
    use weir_stats::Key;

    #[test]
    fn another_process_goes_on_with_ejections() {
        let eject = Eject { consecutive: 1, base_ns: 1_000, max_ns: 9_000, max_percent: 100.0 };
        let config = HealthConfig { eject: Some(eject), ..HealthConfig::default() };
        let new = || Health::new(config.clone(), &[1.0; 3], 0, Key::new(1));
        let (mut old, mut successor) = (new(), new());
        old.outcome(10, TargetId(1), false, Some(Kind::Reset), None);
        let known = [0, 1, 2].map(|t| old.known(510, TargetId(t)));
        assert_eq!(known[1], HealthRecord { up: true, out_for_ns: Some(500), ejections: 1, ramp_ns: None });
        // That process has a clock of its own.
        (0..).zip(known).for_each(|(t, known)| successor.restore(70, TargetId(t), known));
        assert_eq!([0, 1, 2].map(|t| successor.is_eligible(TargetId(t))), [true, false, true]);
        successor.tick(569);
        assert!(!successor.is_half_open(TargetId(1)));
        successor.tick(570);
        assert!(successor.is_half_open(TargetId(1)));
    }
}
