//! How many runs a scenario has, how long they are, and how many go on beside each other.

use crate::calibrate::Calibration;
use crate::options::{Error, Options};
use crate::outcome::Progress;
use crate::prepare::CannotVerify;
use std::sync::atomic::AtomicBool;
use weir_plan::Scenario;
use weir_plan::duration::show_ns;
use weir_stats::Key;
use weir_workload::load_unless;

/// Of what this machine could send at most, a run may want this share: the generator, the router and the servers share
/// its cores.
const MOST_SHARE: f64 = 0.6;
/// Runs that go on beside each other may want this share together, so that their requests meet rarely.
const SHARE_BESIDE: f64 = 0.1;
/// The most parallel runs: the timers of each stay awake for a part of the time (`net/io/timers`), which more would
/// wait for.
const MOST_BESIDE: u32 = 2;
/// The overhead of a run beside its requests, ns.
const BESIDE_NS: u64 = 600_000_000;
/// The least time of a run, ns.
const LEAST_NS: u64 = 300_000_000;
/// With fewer runs nothing can be decided.
const LEAST_RUNS: u32 = 3;

/// The runs of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// Runs that count.
    pub runs: u32,
    /// With those that are void: for each of these another is made, if there is time for it.
    pub most_runs: u32,
    /// The number of parallel runs, each with its own processes and clocks.
    pub at_once: u32,
    /// Requests of each; `None`: by the options or the file.
    pub requests: Option<u64>,
    /// How long they arrive, ns; `None`: answers decide it.
    pub length_ns: Option<u64>,
    /// As late as this one timer of ten of its servers rings on this machine, ns.
    pub late_ns: f64,
}

impl Schedule {
    /// What makes runs longer, in words: that which ended them. `options`: those of the verification; `sent`: the most
    /// requests of a run.
    pub fn advise_longer(&self, scenario: &Scenario, options: &Options, sent: u64) -> String {
        if options.requests.or(scenario.requests).is_some_and(|asked| sent >= asked) {
            return "send more requests (--requests)".to_owned();
        }
        if self.requests.is_some_and(|fitting| sent >= fitting) {
            return "leave out --quick".to_owned();
        }
        match scenario.duration_ns {
            Some(ns) => format!(
                "the scenario's `duration` of {} ends its runs, whatever --requests is: write a longer one",
                show_ns(ns.into())
            ),
            None => "the scenario's traffic has no more requests".to_owned(),
        }
    }

    /// How long this number of runs takes, s; `None`: answers decide it.
    fn time_s(&self, runs: u32) -> Option<f64> {
        let each_s = (self.length_ns? as f64 + BESIDE_NS as f64) / 1e9;
        Some(f64::from(runs.div_ceil(self.at_once.max(1))) * each_s)
    }
}

/// How far a verification is when a scenario, the `at`th, has finished this number of its runs.
pub(crate) fn measure_progress<'a>(
    schedules: &[Schedule],
    at: usize,
    scenario: &'a str,
    done: u32,
) -> Progress<'a> {
    let (before, others) = schedules.split_at(at.min(schedules.len()));
    let own = others.first().map_or(0, |own| own.runs);
    let runs = |of: &[Schedule]| of.iter().map(|schedule| schedule.runs).sum::<u32>();
    let times = |of: &[Schedule]| of.iter().map(|of| of.time_s(of.runs)).sum::<Option<f64>>();
    let time = |runs: u32| others.first().map_or(Some(0.0), |own| own.time_s(runs));
    let add = |times: (Option<f64>, Option<f64>)| Some(times.0? + times.1?);
    Progress {
        scenario,
        run: done + 1,
        runs: own,
        done: runs(before) + done,
        all: runs(schedules),
        done_s: add((times(before), time(done))),
        left_s: add((time(own.saturating_sub(done)), times(others.get(1..).unwrap_or_default()))),
    }
}

/// The runs of each scenario.
///
/// # Errors
/// [`Error::Cannot`]: this machine is too slow for a scenario, or there are too many for the time.
pub(crate) fn schedules<'a>(
    scenarios: impl ExactSizeIterator<Item = &'a Scenario>,
    options: &Options,
    calibration: &Calibration,
    stop: &AtomicBool,
) -> Result<Vec<Schedule>, Error> {
    let (many, late_ns) = (scenarios.len() as u64, calibration.late_ns);
    let of_one = |scenario: &Scenario| {
        let Arrivals { rate_per_s: rate, length_ns } = measure_arrivals(scenario, options, stop)?;
        check_sendable(scenario, rate, calibration)?;
        let at_once = rate.map_or(1, |rate| at_once(rate, calibration));
        let Some(within_ns) = options.within_ns else {
            let runs = options.runs;
            return Ok(Schedule {
                runs,
                most_runs: runs.saturating_mul(2),
                at_once,
                requests: None,
                length_ns,
                late_ns,
            });
        };
        let (runs, each_ns) = spread(within_ns, many, at_once, options.runs)?;
        let requests = Some(fitting(scenario, options, each_ns, stop)?);
        let length_ns = length_ns.map(|ns| ns.min(each_ns));
        Ok(Schedule { runs, most_runs: runs, at_once, requests, length_ns, late_ns })
    };
    scenarios.map(of_one).collect()
}

/// The number of runs per scenario that fit in the time for all scenarios, and how long requests may arrive in each.
fn spread(within_ns: u64, scenarios: u64, at_once: u32, runs: u32) -> Result<(u32, u64), Error> {
    let own_ns = within_ns / scenarios.max(1);
    let waves = u32::try_from(own_ns / (BESIDE_NS + LEAST_NS)).unwrap_or(u32::MAX);
    let fit = waves.saturating_mul(at_once);
    if fit < LEAST_RUNS {
        return Err(Error::Cannot(CannotVerify(format!(
            "{scenarios} scenarios are too many for a quick verification; name some of them"
        ))));
    }
    let runs = runs.min(fit);
    let waves = runs.div_ceil(at_once).max(1);
    Ok((runs, (own_ns / u64::from(waves)).saturating_sub(BESIDE_NS)))
}

/// The number of runs at this request rate that can be in parallel.
fn at_once(rate_per_s: f64, calibration: &Calibration) -> u32 {
    let fit = calibration.most_per_s * SHARE_BESIDE / rate_per_s.max(1.0);
    (fit as u32).clamp(1, MOST_BESIDE)
}

/// The number of requests of a scenario that arrive within that time.
fn fitting(scenario: &Scenario, options: &Options, ns: u64, stop: &AtomicBool) -> Result<u64, Error> {
    let requests = options.requests.or(scenario.requests);
    let key = Key::new(options.seed).with(0);
    let mut load = load_unless(scenario, requests, key, stop).ok_or(Error::Interrupted)?;
    let within =
        std::iter::from_fn(|| load.arrivals.next_ns()).take_while(|at| *at < ns.max(LEAST_NS)).count();
    Ok(requests.map_or(within as u64, |most| most.min(within as u64)).max(1))
}

/// The arrivals of a scenario's first run.
struct Arrivals {
    /// Requests in a second; `None`: closed traffic, or a single request.
    rate_per_s: Option<f64>,
    /// When the last one is, ns; `None`: answers decide it.
    length_ns: Option<u64>,
}

/// Looks at all arrivals of a scenario's first run.
fn measure_arrivals(scenario: &Scenario, options: &Options, stop: &AtomicBool) -> Result<Arrivals, Error> {
    let requests = options.requests.or(scenario.requests);
    let key = Key::new(options.seed).with(0);
    let mut load = load_unless(scenario, requests, key, stop).ok_or(Error::Interrupted)?;
    if load.thinking.is_some() {
        // With a number of requests as well, that may be reached before.
        let length_ns = scenario.duration_ns.filter(|_| requests.is_none());
        return Ok(Arrivals { rate_per_s: None, length_ns });
    }
    let (mut n, mut last_ns) = (0u64, 0);
    while let Some(at) = load.arrivals.next_ns().filter(|_| n < load.requests) {
        (n, last_ns) = (n + 1, at);
    }
    let rate_per_s = (n > 1).then_some(n as f64 * 1e9 / last_ns.max(1) as f64);
    Ok(Arrivals { rate_per_s, length_ns: Some(last_ns) })
}

/// Whether this machine is fast enough for a scenario.
fn check_sendable(scenario: &Scenario, rate: Option<f64>, calibration: &Calibration) -> Result<(), Error> {
    let most = calibration.most_per_s * MOST_SHARE;
    let Some(per_s) = rate.filter(|per_s| *per_s > most) else { return Ok(()) };
    Err(Error::Cannot(CannotVerify(format!(
        "scenario \"{}\" sends {per_s:.0} requests a second; this machine, which is client, router and servers at once, \
         manages {:.0}, and up to {most:.0} can be verified: give it a lower rate",
        scenario.name, calibration.most_per_s
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use weir_topology::{Request, evaluate};

    fn make_schedule(requests: Option<u64>) -> Schedule {
        Schedule { runs: 5, most_runs: 10, at_once: 1, requests, length_ns: None, late_ns: 0.0 }
    }

    /// A hundred requests arrive each second.
    fn make_scenario(ends: &str) -> Scenario {
        let source = format!("scenario(\"one\", respond(200), traffic.constant(rate = 100), {ends})\n");
        let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
        let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan;
        plan.points[0].scenarios[0].clone()
    }

    #[test]
    fn what_ended_a_run_makes_it_longer() {
        let by = |ends: &str, asked: Option<u64>, fitting: Option<u64>, sent: u64| {
            let options = Options { requests: asked, ..Options::new(Path::new("")) };
            make_schedule(fitting).advise_longer(&make_scenario(ends), &options, sent)
        };
        let (more, quick) = ("send more requests (--requests)", "leave out --quick");
        let duration =
            "the scenario's `duration` of 2s ends its runs, whatever --requests is: write a longer one";
        assert_eq!(by("requests = 50", None, None, 50), more);
        assert_eq!(by("requests = 5000", Some(50), None, 50), more);
        assert_eq!(by("duration = 2*s", Some(50), None, 50), more);
        assert_eq!(by("duration = 2*s", None, None, 200), duration);
        assert_eq!(by("duration = 2*s", Some(5000), None, 200), duration);
        assert_eq!(by("duration = 2*s", Some(5000), Some(100), 100), quick);
        assert_eq!(by("duration = 2*s", None, Some(400), 200), duration);
        assert_eq!(by("requests = 50", None, Some(400), 50), more);
    }

    #[test]
    fn progress_is_of_all_scenarios() {
        let of = |runs, at_once, length_ns| Schedule { runs, at_once, length_ns, ..make_schedule(None) };
        let (short, long) = (Some(1_400_000_000), Some(9_400_000_000));
        let both = [of(5, 2, short), of(4, 1, long)];
        let first = measure_progress(&both, 0, "a", 2);
        assert_eq!((first.run, first.runs, first.done, first.all), (3, 5, 2, 9));
        assert_eq!((first.done_s, first.left_s), (Some(2.0), Some(44.0)));
        let second = measure_progress(&both, 1, "b", 1);
        assert_eq!((second.run, second.runs, second.done, second.all), (2, 4, 6, 9));
        assert_eq!((second.done_s, second.left_s), (Some(16.0), Some(30.0)));
        let unknown = measure_progress(&[of(5, 1, None), of(4, 1, long)], 1, "b", 1);
        assert_eq!((unknown.done_s, unknown.left_s), (None, Some(30.0)));
    }

    #[test]
    fn a_run_is_as_long_as_its_arrivals() {
        let length = |ends: &str, asked: Option<u64>| {
            let options = Options { requests: asked, ..Options::new(Path::new("")) };
            measure_arrivals(&make_scenario(ends), &options, &AtomicBool::new(false)).unwrap().length_ns
        };
        let by_number = length("requests = 300", None).unwrap();
        assert!((2_900_000_000..=3_000_000_000).contains(&by_number), "{by_number}");
        let by_duration = length("duration = 2*s", Some(5000)).unwrap();
        assert!((1_900_000_000..=2_000_000_000).contains(&by_duration), "{by_duration}");
    }

    #[test]
    fn runs_beside_each_other_want_a_tenth_of_the_machine_and_share_the_time() {
        let calibration = Calibration { most_per_s: 50_000.0, ..Calibration::default() };
        let beside = |rate| at_once(rate, &calibration);
        assert_eq!((beside(150.0), beside(2500.0), beside(4000.0)), (2, 2, 1));

        let s = 1_000_000_000;
        assert_eq!(spread(22 * s, 1, 8, 8).unwrap(), (8, 22 * s - BESIDE_NS));
        assert_eq!(spread(22 * s, 1, 1, 5).unwrap(), (5, 22 * s / 5 - BESIDE_NS));
        assert_eq!(spread(22 * s, 2, 5, 8).unwrap(), (8, 11 * s / 2 - BESIDE_NS));
        assert_eq!(spread(22 * s, 8, 1, 8).unwrap().0, 3, "as many as there is time for");
        assert!(spread(22 * s, 9, 1, 8).is_err());
    }
}
