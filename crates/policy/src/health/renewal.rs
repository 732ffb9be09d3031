//! New arguments for running health: ejected targets stay out as long as a rule that ejected them remains, and no
//! target is excluded by the change itself.

use super::{Health, HealthConfig};
use crate::TargetId;
use crate::health::active::Checks;
use crate::health::active::{Check, Initial};
use crate::health::eject::Ejections;
use crate::health::eligibility::{Input, Passive, Reason};
use crate::health::outlier::Outliers;
use crate::health::slow_start::Ramps;
use weir_stats::Key;

impl Health {
    /// Replaces the arguments.
    pub fn configure(&mut self, config: HealthConfig, now_ns: u64, draw: Key) {
        self.configure_checks(config.check, now_ns, draw.with(1));
        let n = self.len();
        let passive = (self.ejections.is_some(), self.outliers.is_some());
        match (&mut self.ejections, config.eject) {
            (Some(ejections), Some(eject)) => ejections.configure(eject),
            (ejections, eject) => *ejections = eject.map(|e| Ejections::new(e, n)),
        }
        match (&mut self.outliers, config.outlier) {
            (Some(outliers), Some(outlier)) => outliers.configure(outlier),
            (outliers, outlier) => {
                *outliers = outlier.map(|o| self::outliers(o, &self.exists, now_ns, draw.with(2)))
            }
        }
        if passive != (self.ejections.is_some(), self.outliers.is_some()) {
            // No remaining rule would let those targets in again.
            let back = |t| (t, Input::Passive(Passive::In), Reason::Readmitted);
            self.set_all(now_ns, TargetId::all(n).map(back));
        }
        match (&mut self.ramps, config.slow_start) {
            (Some(ramps), Some(slow_start)) => ramps.configure(slow_start, now_ns),
            (ramps, slow_start) => *ramps = slow_start.map(Ramps::new),
        }
        (self.panic, self.on_empty) = (config.panic, config.on_empty);
        self.judge();
    }

    fn configure_checks(&mut self, check: Option<Check>, now_ns: u64, draw: Key) {
        match (&mut self.checks, check) {
            (Some(checks), Some(check)) => checks.configure(check),
            (None, Some(check)) => {
                // A target that served until now continues until a check fails.
                let up = Check { initial: Initial::Up, ..check.clone() };
                let mut checks = Checks::new(up, self.exists.len() as u32, now_ns, draw);
                checks.configure(check);
                gone(&self.exists).for_each(|t| checks.remove(t));
                self.checks = Some(checks);
            }
            (Some(_), None) => {
                self.checks = None;
                let back = |t| (t, Input::Active(true), Reason::ChecksPassed);
                self.set_all(now_ns, TargetId::all(self.len()).map(back));
            }
            (None, None) => {}
        }
    }
}

fn outliers(config: crate::health::outlier::Outlier, exists: &[bool], now_ns: u64, draw: Key) -> Outliers {
    let mut outliers = Outliers::new(config, exists.len() as u32, now_ns, draw);
    gone(exists).for_each(|t| outliers.forget(t, false));
    outliers
}

/// The indices of removed targets.
fn gone(exists: &[bool]) -> impl Iterator<Item = TargetId> {
    TargetId::all(exists.len() as u32).filter(|t| !exists[t.index()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::config::Eject;

    fn eject(consecutive: u32) -> Eject {
        Eject { consecutive, base_ns: 1_000, max_ns: 10_000, max_percent: 50.0 }
    }

    fn check(interval_ns: u64) -> Check {
        let (rise, fall, jitter) = (2, 3, 0.0);
        let (fast_interval_ns, down_interval_ns, initial) = (None, None, Initial::Checked);
        Check { interval_ns, rise, fall, jitter, fast_interval_ns, down_interval_ns, initial }
    }

    #[test]
    fn who_is_ejected_stays_so_and_nobody_goes_out_for_new_checks() {
        let config =
            |consecutive| HealthConfig { eject: Some(eject(consecutive)), ..HealthConfig::default() };
        let mut health = Health::new(config(1), &[1.0; 4], 0, Key::new(1));
        health.outcome(10, TargetId(2), false, Some(Kind::Reset), None);
        assert!(!health.is_eligible(TargetId(2)));
        health.configure(HealthConfig { check: Some(check(500)), ..config(3) }, 20, Key::new(1));
        assert_eq!(health.count(), (4, 3), "only the ejected one is out");
        health.tick(1_010);
        assert!(health.is_half_open(TargetId(2)), "its time is over as it was to be");
        health.configure(HealthConfig::default(), 1_020, Key::new(1));
        assert_eq!(health.count(), (4, 4));
    }
}
