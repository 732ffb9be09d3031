//! Runs too short for a station to settle, and replications that ended in two ways: their mean is the figure of
//! neither.

use super::Finished;
use crate::results::summary::Replication;
use weir_model::Traffic;
use weir_stats::Estimate;

/// A run should last this many times as long as its slowest station takes to settle.
const SETTLINGS: f64 = 10.0;

/// A line shorter than this share of what arrivals by chance alone would build belongs to a balancer that looks at
/// load: then the stations settle together, and sooner.
const ALONE: f64 = 0.25;

/// A replication that is short beside the start-up of its slowest station.
pub(super) struct StartUp {
    row: usize,
    settles_s: f64,
    run_s: f64,
}

impl StartUp {
    /// How many times as long a replication would have to be.
    pub fn needs_times(&self) -> f64 {
        SETTLINGS * self.settles_s / self.run_s.max(1e-9)
    }

    pub fn warning(&self, finished: &Finished) -> String {
        let site = finished.program.rows[self.row].site();
        format!(
            "start-up: {} forgets that it began empty only in some {}, and a replication lasts {}; figures are those of a \
             start-up, too low for a long run. Make replications longer (--requests), not more of them",
            finished.point.sites[site.index()].label,
            seconds(self.settles_s),
            seconds(self.run_s)
        )
    }
}

/// The start-up of the slowest queue or server that shares its cores. With utilisation ρ and service time S a queue
/// with exponential times forgets its start with the time constant S/(1-√ρ)² (Abate and Whitt 1987, "Transient behavior
/// of the M/M/1 queue: starting at the origin"); with c slots, a c-th of it.
pub(super) fn start_up(finished: &Finished) -> Option<StartUp> {
    let Finished { scenario, program, runs, .. } = finished;
    if matches!(scenario.traffic, Traffic::Closed { .. }) {
        return None;
    }
    let run_s = Estimate::new(runs.iter().map(|r| r.arrivals_s())).value?;
    let (settles_s, row) = (0..program.shown)
        .filter_map(|row| Some((settling_s(runs, row, program.rows[row].slots(&program.code))?, row)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (run_s < SETTLINGS * settles_s).then_some(StartUp { row, settles_s, run_s })
}

/// The time constant of a row's queues, s; `None` where they do not wait each for itself.
fn settling_s(runs: &[Replication], row: usize, slots: f64) -> Option<f64> {
    let mean = |of: &dyn Fn(&Replication) -> Option<f64>| Estimate::new(runs.iter().map(of)).value;
    let busy = mean(&|r| r.utilisation(row))?;
    let waiting = mean(&|r| r.queue_mean(row))?;
    let service_s = mean(&|r| r.service_s(row))?;
    let alone = busy * busy / (1.0 - busy).max(1e-3);
    let left = 1.0 - busy.sqrt();
    (busy < 1.0 && slots > 0.0 && waiting > ALONE * alone).then(|| service_s / (left * left) / slots)
}

/// `2.5 s`, `40 minutes`: a time of which only the size matters.
fn seconds(s: f64) -> String {
    match s {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.0} hours", s / 3600.0),
    }
}

/// With fewer replications no two groups can be told.
const FEWEST: usize = 4;
/// Two groups lie at least this far apart, as a share of all requests, and this many times as far as either is wide.
const APART: f64 = 0.05;
const WIDTHS: f64 = 3.0;

/// Replications whose shares of success fall into two groups.
pub(super) fn two_outcomes(runs: &[Replication]) -> Option<String> {
    let mut all: Vec<f64> = runs.iter().map(Replication::success).collect::<Option<_>>()?;
    if all.len() < FEWEST {
        return None;
    }
    all.sort_by(f64::total_cmp);
    let cut = (1..all.len()).max_by(|a, b| (all[*a] - all[*a - 1]).total_cmp(&(all[*b] - all[*b - 1])))?;
    let (low, high) = all.split_at(cut);
    let width = |group: &[f64]| group[group.len() - 1] - group[0];
    let gap = high[0] - low[low.len() - 1];
    if gap < APART || gap < WIDTHS * width(low).max(width(high)) {
        return None;
    }
    let told = |group: &[f64]| {
        let mean = 100.0 * group.iter().sum::<f64>() / group.len() as f64;
        format!("{mean:.0} % of requests succeeded")
    };
    let (few, many) = if low.len() <= high.len() { (low, high) } else { (high, low) };
    // One that is unlike the others may be chance.
    if few.len() < 2 {
        return None;
    }
    Some(format!(
        "two outcomes: in {} of {} replications {}, in the others {}; the mean of both is the figure of neither",
        few.len(),
        all.len(),
        told(few),
        told(many).trim_end_matches(" of requests succeeded")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_by_their_size() {
        assert_eq!([2.5, 600.0, 10_800.0].map(seconds), ["2.5 s", "10 minutes", "3 hours"]);
    }
}
