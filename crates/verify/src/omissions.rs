//! What of a scenario is not compared, and why.

use crate::outcome::{Omission, OmissionCause};
use crate::prepare::Arrangement;
use crate::statistics::Statistic;
use weir_stats::samples_needed;

/// The statistics of latencies, each with how many requests of a run must have one.
fn list_latencies() -> [(&'static str, u64); 4] {
    let quantile = |name, q| (name, samples_needed(q));
    [("mean", 1), quantile("p50", 0.5), quantile("p95", 0.95), quantile("p99", 0.99)]
}

/// The statistics that have no value, each with the reason. `counted`: the requests that count, of the run that has the
/// fewest.
pub(crate) fn find_omissions(
    statistics: &[Statistic],
    counted: u64,
    prepared: &Arrangement,
) -> Vec<Omission> {
    let other = |names: Vec<&'static str>, why: String| Omission { names, why: OmissionCause::Other(why) };
    if statistics.is_empty() {
        return vec![other(Vec::new(), "every run is void".to_owned())];
    }
    let is_missing = |name: &str| !statistics.iter().any(|s| s.name == name && s.simulated.value.is_some());
    let latencies = list_latencies().into_iter().filter(|(name, _)| is_missing(name));
    let latencies = latencies.map(|(name, needed)| Omission {
        names: vec![name],
        why: match counted < needed {
            true => OmissionCause::FewRequests { counted, needed },
            false => OmissionCause::FewLatencies,
        },
    });
    let why_openings = prepared.explain_unknown_openings().filter(|_| is_missing("opened"));
    let openings = why_openings.map(|why| other(vec!["opened", "open"], why));
    let has_servers = !prepared.servers.is_empty() || !prepared.real.is_empty();
    let why_shares = "it is not known which server gets a request of another load balancer".to_owned();
    let shares =
        (has_servers && prepared.compared().next().is_none()).then(|| other(vec!["share"], why_shares));
    latencies.chain(openings).chain(shares).collect()
}

/// Warnings about latencies that are missing. `advice`: how runs become longer, which helps where requests are too few.
pub(crate) fn warn_of_latencies(omissions: &[Omission], advice: &str) -> Vec<String> {
    let (mut few_requests, mut few_latencies, mut fewest) = (Vec::new(), Vec::new(), 0);
    for Omission { names, why } in omissions {
        match why {
            OmissionCause::FewRequests { counted, needed } => {
                fewest = *counted;
                few_requests.extend(names.iter().map(|name| format!("{name} ({needed})")));
            }
            OmissionCause::FewLatencies => few_latencies.extend(names.iter().copied()),
            OmissionCause::Other(_) => {}
        }
    }
    let requests = (!few_requests.is_empty()).then(|| {
        let noun = if fewest == 1 { "request of a run counts" } else { "requests of a run count" };
        let names = few_requests.join(", ");
        format!("not compared, since only {fewest} {noun}, and more are needed: {names}; {advice}")
    });
    let latencies = (!few_latencies.is_empty()).then(|| {
        let names = few_latencies.join(", ");
        format!("not compared, since {}: {names}", OmissionCause::FewLatencies)
    });
    requests.into_iter().chain(latencies).collect()
}

/// Leaves out what is among the statistics all the same: those whose tolerance was set are undecided there.
pub(crate) fn omit_undecided(omissions: Vec<Omission>, statistics: &[Statistic]) -> Vec<Omission> {
    let is_absent = |name: &&'static str| statistics.iter().all(|s| s.name != *name);
    let rest = |omission: Omission| {
        let names: Vec<&'static str> = omission.names.iter().copied().filter(is_absent).collect();
        (names.is_empty() == omission.names.is_empty()).then_some(Omission { names, ..omission })
    };
    omissions.into_iter().filter_map(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Unit, Verdict};
    use weir_stats::Estimate;
    use weir_topology::{Request, evaluate};

    /// With the value that both worlds have, if there is one.
    fn make_statistic(name: &'static str, value: Option<f64>) -> Statistic {
        let estimate = Estimate { value, low: None, high: None };
        Statistic {
            name,
            simulated: estimate,
            real: estimate,
            difference: estimate,
            relative: estimate,
            tolerance: 0.05,
            unit: Unit::Ratio,
            no_matter_ms: None,
            verdict: Verdict::Undecided,
            runs_needed: None,
        }
    }

    fn with_values(names: &[&'static str]) -> Vec<Statistic> {
        names.iter().map(|name| make_statistic(name, Some(1.0))).collect()
    }

    fn prepare() -> Arrangement {
        let source = "apps = pool(2, lambda: delay(2*ms, server(\"app\")))\n\
                      scenario(\"one\", lb.random(apps), traffic.constant(rate = 100), requests = 100)\n";
        let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
        let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan;
        Arrangement::new(&plan.points[0], &plan.points[0].scenarios[0], false).unwrap()
    }

    /// What is omitted, each with its names and the reason in words.
    fn describe(omissions: &[Omission]) -> Vec<String> {
        omissions.iter().map(|of| format!("{}: {}", of.names.join(", "), of.why)).collect()
    }

    #[test]
    fn a_quantile_needs_requests_and_longer_runs_have_them() {
        let found = find_omissions(&with_values(&["mean", "p50", "success", "opened"]), 150, &prepare());
        let few =
            |name: &str, needed: u64| format!("{name}: 150 requests of a run count, and it needs {needed}");
        assert_eq!(describe(&found), [few("p95", 200), few("p99", 1000)]);
        let warning = "not compared, since only 150 requests of a run count, and more are needed: p95 (200), \
                       p99 (1000); wait";
        assert_eq!(warn_of_latencies(&found, "wait"), [warning]);
    }

    /// Clients gave up 4500 of 5000 requests: more requests would be given up as well.
    #[test]
    fn requests_without_a_latency_are_not_taken_for_too_few() {
        let found = find_omissions(&with_values(&["mean", "p50", "p95", "opened"]), 5000, &prepare());
        assert_eq!(describe(&found), ["p99: too few requests of a run have a latency"]);
        let warning = "not compared, since too few requests of a run have a latency: p99";
        assert_eq!(warn_of_latencies(&found, "wait"), [warning]);
    }

    /// There are 500, and none of them has a latency.
    #[test]
    fn a_mean_is_missing_too() {
        let found = find_omissions(&with_values(&["success", "opened"]), 500, &prepare());
        let latency = |name: &str| format!("{name}: too few requests of a run have a latency");
        let requests = "p99: 500 requests of a run count, and it needs 1000".to_owned();
        assert_eq!(describe(&found), [latency("mean"), latency("p50"), latency("p95"), requests]);
        let warnings = [
            "not compared, since only 500 requests of a run count, and more are needed: p99 (1000); wait",
            "not compared, since too few requests of a run have a latency: mean, p50, p95",
        ];
        assert_eq!(warn_of_latencies(&found, "wait"), warnings);
    }

    /// A statistic that was asked for is undecided, with the warning, and is not in the list a second time.
    #[test]
    fn what_is_undecided_is_warned_of() {
        let mut statistics = with_values(&["mean", "p50", "success", "opened"]);
        statistics.push(make_statistic("p99", None));
        let found = find_omissions(&statistics, 150, &prepare());
        assert!(warn_of_latencies(&found, "wait")[0].contains("p95 (200), p99 (1000)"));
        let rest = omit_undecided(found, &statistics);
        assert_eq!(describe(&rest), ["p95: 150 requests of a run count, and it needs 200"]);
    }

    #[test]
    fn where_every_run_is_void_all_is_missing() {
        let found = find_omissions(&[], 0, &prepare());
        assert_eq!(describe(&found), [": every run is void"]);
        assert_eq!(warn_of_latencies(&found, "wait"), [""; 0]);
        assert_eq!(omit_undecided(found.clone(), &[]), found);
    }
}
