//! Compares a statistic of both worlds: the interval of its paired differences decides.

use crate::statistics::{Statistic, Unit, Verdict};
use weir_stats::Estimate;
use weir_stats::t95;

/// Differences below this agree at any share, ms.
const NO_MATTER_MS: f64 = 1.0;
/// The same of numbers of connections: fewer than three.
const NO_MATTER_COUNT: f64 = 3.0;
/// More runs than this are not suggested.
const MOST_RUNS: u32 = 10_000;

/// A statistic that is compared: what it is called and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    pub name: &'static str,
    pub unit: Unit,
    /// Whether it is a latency, or a number of connections: then small differences agree at any share.
    pub is_ms: bool,
    pub is_count: bool,
}

/// Compares a statistic: pairs of what was simulated and what was. The difference has at least the half width `least`.
/// `None`: it cannot be said in any run.
pub(crate) fn compare(
    of: Compared,
    pairs: &[(Option<f64>, Option<f64>)],
    tolerance: f64,
    least: f64,
) -> Option<Statistic> {
    let both = |pick: fn(f64, f64) -> f64| {
        pairs.iter().map(move |(simulated, real)| Some(pick((*simulated)?, (*real)?)))
    };
    let simulated = Estimate::new(both(|simulated, _| simulated));
    let real = Estimate::new(both(|_, real| real));
    let over_runs = Estimate::new(both(|simulated, real| real - simulated));
    let bound = |by: Option<f64>, most: fn(f64, f64) -> f64, least: f64| {
        Some(by?).zip(over_runs.value).map(|(by, value)| most(by, value + least))
    };
    let difference = Estimate {
        value: over_runs.value,
        low: bound(over_runs.low, f64::min, -least),
        high: bound(over_runs.high, f64::max, least),
    };
    let mean = simulated.value?;
    let share = |value: Option<f64>| value.map(|v| v / mean).filter(|v| v.is_finite());
    let relative =
        Estimate { value: share(difference.value), low: share(difference.low), high: share(difference.high) };
    let mut band = match of.unit {
        Unit::Ratio => tolerance * mean.abs(),
        Unit::Points => tolerance / 100.0,
    };
    if of.is_ms {
        band = band.max(NO_MATTER_MS);
    } else if of.is_count {
        band = band.max(NO_MATTER_COUNT);
    }
    let verdict = match (difference.low, difference.high) {
        (Some(low), Some(high)) if -band <= low && high <= band => Verdict::Agrees,
        (Some(low), Some(high)) if high < -band || band < low => Verdict::Differs,
        _ => Verdict::Undecided,
    };
    let runs_needed =
        if verdict == Verdict::Undecided { runs_needed(&difference, pairs.len(), band) } else { None };
    Some(Statistic {
        name: of.name,
        simulated,
        real,
        difference,
        relative,
        tolerance,
        unit: of.unit,
        no_matter_ms: of.is_ms.then_some(NO_MATTER_MS),
        verdict,
        runs_needed,
    })
}

/// A statistic of which nothing can be said.
pub(crate) fn unsaid(of: Compared, tolerance: f64) -> Statistic {
    let nothing = Estimate { value: None, low: None, high: None };
    Statistic {
        name: of.name,
        simulated: nothing,
        real: nothing,
        difference: nothing,
        relative: nothing,
        tolerance,
        unit: of.unit,
        no_matter_ms: of.is_ms.then_some(NO_MATTER_MS),
        verdict: Verdict::Undecided,
        runs_needed: None,
    }
}

/// With how many runs the interval would be on one side, if its middle stays.
fn runs_needed(difference: &Estimate, runs: usize, band: f64) -> Option<u32> {
    let (value, half) = (difference.value?, difference.half_width());
    let Some(half) = half else { return Some(2) };
    let runs = u32::try_from(runs).ok()?;
    let deviation = half * f64::from(runs).sqrt() / t95(runs.checked_sub(1)?);
    let room = (value.abs() - band).abs();
    let enough = |n: &u32| t95(n - 1) * deviation / f64::from(*n).sqrt() < room;
    (runs + 1..MOST_RUNS).find(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    const P50: Compared = Compared { name: "p50", unit: Unit::Ratio, is_ms: true, is_count: false };

    fn verdict(real: [f64; 5]) -> Verdict {
        let pairs = real.map(|real| (Some(100.0), Some(real)));
        compare(P50, &pairs, 0.03, 0.0).unwrap().verdict
    }

    #[test]
    fn the_whole_interval_decides() {
        assert_eq!(verdict([100.1, 100.2, 99.9, 100.0, 100.3]), Verdict::Agrees);
        assert_eq!(verdict([102.5, 102.6, 102.4, 102.5, 102.5]), Verdict::Agrees);
        assert_eq!(verdict([104.0, 104.1, 104.2, 104.0, 104.1]), Verdict::Differs);
        assert_eq!(verdict([96.0, 95.9, 96.1, 96.0, 96.2]), Verdict::Differs);
        assert_eq!(verdict([90.0, 110.0, 95.0, 105.0, 100.0]), Verdict::Undecided);
    }

    #[test]
    fn what_is_undecided_says_how_many_runs_would_tell() {
        let pairs = [97.0, 103.5, 100.0].map(|real| (Some(100.0), Some(real)));
        let needed = compare(P50, &pairs, 0.03, 0.0).unwrap().runs_needed.unwrap();
        assert!((5..30).contains(&needed), "{needed}");
        let one = compare(P50, &pairs[..1], 0.03, 0.0).unwrap();
        assert_eq!((one.verdict, one.runs_needed), (Verdict::Undecided, Some(2)));
        let nothing = [(Some(1.0), None)];
        assert_eq!(compare(P50, &nothing, 0.03, 0.0).map(|s| s.verdict), None);
    }

    /// All of 400 requests succeeded in both worlds: that is no proof that they agree to half a point.
    #[test]
    fn few_requests_prove_no_agreement() {
        let success = Compared { name: "success", unit: Unit::Points, is_ms: false, is_count: false };
        let pairs = [(Some(1.0), Some(1.0)); 5];
        let verdict = |n: u64| compare(success, &pairs, 0.5, weir_stats::no_other_end(n)).unwrap().verdict;
        assert_eq!((verdict(400), verdict(4_000)), (Verdict::Undecided, Verdict::Agrees));
    }

    #[test]
    fn small_differences_do_not_matter() {
        let pairs = [0.9, 0.8, 0.7].map(|more| (Some(2.0), Some(2.0 + more)));
        assert_eq!(compare(P50, &pairs, 0.03, 0.0).unwrap().verdict, Verdict::Undecided);
        let pairs = [0.7, 0.71, 0.7].map(|more| (Some(2.0), Some(2.0 + more)));
        assert_eq!(compare(P50, &pairs, 0.03, 0.0).unwrap().verdict, Verdict::Agrees);
    }
}
