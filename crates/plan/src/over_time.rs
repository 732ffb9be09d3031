//! Results over time: into which parts a scenario's run is divided.

use crate::Scenario;
use crate::duration::show_ns;
use weir_model::Traffic;

/// The shortest part, ns.
pub const LEAST_NS: u64 = 10_000_000;
/// The most parts of a run.
pub const MOST_PARTS: u64 = 10_000;

/// Why a scenario's `every` is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong: the end of a sentence that begins with the argument.
    pub why: String,
    /// The shortest that would do, ns.
    pub least_ns: u64,
}

/// How many parts of that length a time has, the last one with its end.
pub fn parts(length_ns: u64, every_ns: u64) -> u64 {
    length_ns.div_ceil(every_ns.max(1)).max(1)
}

/// Whether the parts of a scenario are neither too short nor too many.
///
/// # Errors
/// They are: why, and what would do.
pub fn fits(scenario: &Scenario) -> Result<(), Unfit> {
    let Some(every_ns) = scenario.every_ns else { return Ok(()) };
    divides(length_ns(scenario).unwrap_or(0), every_ns)
}

/// Whether the parts of a run in which requests arrive for that time are neither too short nor too many.
///
/// # Errors
/// They are: why, and what would do.
pub fn divides(length_ns: u64, every_ns: u64) -> Result<(), Unfit> {
    let least_ns = least_ns(length_ns);
    if every_ns < LEAST_NS {
        let why = format!("must be 10ms or more, not {}", show_ns(i128::from(every_ns)));
        return Err(Unfit { why, least_ns });
    }
    let number = parts(length_ns, every_ns);
    if number > MOST_PARTS {
        let why = format!(
            "divides the run into {number} parts, and there may be {MOST_PARTS}: requests arrive for {}",
            show_ns(i128::from(length_ns / 1_000_000 * 1_000_000))
        );
        return Err(Unfit { why, least_ns });
    }
    Ok(())
}

/// The shortest part, in whole milliseconds, of which a run of that length has not too many.
fn least_ns(length_ns: u64) -> u64 {
    let millis = length_ns.div_ceil(MOST_PARTS).div_ceil(1_000_000);
    millis.saturating_mul(1_000_000).max(LEAST_NS)
}

/// How long requests arrive, ns, where that is known before the run: on average, where it is drawn.
pub fn length_ns(scenario: &Scenario) -> Option<u64> {
    let gap_ns = match &scenario.traffic {
        Traffic::Poisson { gap_ns } | Traffic::Constant { gap_ns } => Some(*gap_ns),
        Traffic::Renewal { gap } => gap.mean_ns().filter(|mean| mean.is_finite()),
        _ => None,
    };
    let by_number = gap_ns.zip(scenario.requests).map(|(gap_ns, n)| (gap_ns * n as f64).min(1e19) as u64);
    let by_trace = match &scenario.traffic {
        Traffic::Trace { arrivals_ns, .. } => {
            let most = scenario.requests.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
            arrivals_ns.get(..most.min(arrivals_ns.len())).and_then(|sent| sent.last().copied())
        }
        _ => None,
    };
    by_number.into_iter().chain(by_trace).chain(scenario.duration_ns).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;

    fn scenario(
        traffic: Traffic,
        requests: Option<u64>,
        duration_ns: Option<u64>,
        every_ns: u64,
    ) -> Scenario {
        Scenario {
            name: "s".to_owned(),
            root: 0,
            traffic,
            mix: Vec::new(),
            recorded: None,
            requests,
            duration_ns,
            window: Window::All,
            every_ns: Some(every_ns),
            deadline_ns: 1,
            patience_ns: None,
            events: Vec::new(),
            span: String::new(),
        }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_part_is_10_ms_or_more_and_there_are_10_000_at_most() {
        let of = |duration_ns, every_ns| {
            let traffic = Traffic::Constant { gap_ns: 1e6 };
            fits(&scenario(traffic, None, Some(duration_ns), every_ns)).map_err(|unfit| unfit.least_ns)
        };
        assert_eq!(of(100 * S, 10_000_000), Ok(()));
        assert_eq!(of(100 * S + 1, 10_000_000), Err(11_000_000));
        assert_eq!(of(S, 9_999_999), Err(LEAST_NS));
        assert_eq!(of(10_000 * S, S), Ok(()));
        assert_eq!(of(10_001 * S, S), Err(1_001_000_000));
    }

    #[test]
    fn what_ends_first_is_divided() {
        let of = |requests, duration_ns| {
            let traffic = Traffic::Poisson { gap_ns: 1e9 };
            length_ns(&scenario(traffic, requests, duration_ns, S))
        };
        assert_eq!(of(Some(7), None), Some(7 * S));
        assert_eq!(of(Some(7), Some(5 * S)), Some(5 * S));
        assert_eq!(of(None, Some(5 * S)), Some(5 * S));
        let trace = Traffic::Trace { file: String::new(), arrivals_ns: vec![1, 2, 30] };
        assert_eq!(length_ns(&scenario(trace.clone(), None, None, S)), Some(30));
        assert_eq!(length_ns(&scenario(trace, Some(2), None, S)), Some(2));
    }
}
