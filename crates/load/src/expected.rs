//! The expectations of a scenario, judged by what was measured.
//!
//! One run has no replications, so a figure is judged by what its requests alone prove, with one-sided bounds of 95 %:
//! shares by the exact binomial bounds, quantiles by order statistics (the share of requests below a bound is binomial
//! as well). A mean has no such bound, whatever the latencies and however long the run: it is not judged, and a warning
//! says so.

use crate::outcome::{Latency, Outcome, Verdict};
use weir_plan::{Condition, Metric, Point, Scenario};
use weir_stats::{Estimate, Histogram, clopper_pearson};

/// The probability that a bound is wrong.
const TAIL: f64 = 0.05;

/// Why a run cannot judge a figure, however long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    Unseen,
    Unbounded,
    WorstPart,
}

impl Obstacle {
    const ALL: [Obstacle; 3] = [Obstacle::Unseen, Obstacle::Unbounded, Obstacle::WorstPart];

    fn words(self) -> &'static str {
        match self {
            Obstacle::Unseen => "it is not seen from outside",
            Obstacle::Unbounded => {
                "one run has no interval for a mean; a quantile, such as p50 or p99, can be judged"
            }
            Obstacle::WorstPart => "one run has no interval for its worst part",
        }
    }
}

/// Judges what a file expects of the scenario, but for what a run cannot judge, which a warning names with the reason.
pub(crate) fn judge(point: &Point, scenario: &Scenario, outcome: &mut Outcome) {
    let of_it = point.expectations.iter().filter(|e| e.scenario == scenario.name);
    let mut unjudged: Vec<(Obstacle, String)> = Vec::new();
    for e in of_it {
        for condition in &e.conditions {
            let node = e.node.as_ref().map_or(String::new(), |node| format!(" at {node}"));
            let expect = format!("{condition}{node}");
            let value = match measured(condition.metric, outcome) {
                Ok(value) => value,
                Err(obstacle) => {
                    unjudged.push((obstacle, expect));
                    continue;
                }
            };
            let (metric, span) = (condition.metric, e.span.clone());
            // A run that is void or was stopped says nothing of the scenario.
            let counts = outcome.void.is_none() && !outcome.interrupted;
            let holds = if counts { holds(condition, &value) } else { None };
            outcome.expectations.push(Verdict { expect, value, metric, holds, span });
        }
    }
    for obstacle in Obstacle::ALL {
        let of_it = unjudged.iter().filter(|(of, _)| *of == obstacle);
        let named: Vec<&str> = of_it.map(|(_, expect)| &expect[..]).collect();
        if !named.is_empty() {
            let what = format!("not judged, since {}: {}", obstacle.words(), named.join(", "));
            outcome.warnings.push(what);
        }
    }
}

fn holds(condition: &Condition, e: &Estimate) -> Option<bool> {
    let (low, high) = (condition.is_met(e.low?), condition.is_met(e.high?));
    (low == high).then_some(low)
}

/// A figure with its bounds, or why there are none.
fn measured(metric: Metric, outcome: &Outcome) -> Result<Estimate, Obstacle> {
    let r = &outcome.requests;
    let (of_all, of_ok) = (&outcome.all, &outcome.ok);
    Ok(match metric {
        Metric::Success => share(r.ok, r.selected),
        Metric::Errors(kind) => share(r.errors.get(&kind).copied().unwrap_or(0), r.selected),
        Metric::Mean | Metric::OkMean => return Err(Obstacle::Unbounded),
        Metric::P50 => quantile(of_all, 0),
        Metric::P90 => quantile(of_all, 1),
        Metric::P95 => quantile(of_all, 2),
        Metric::P99 => quantile(of_all, 3),
        Metric::P999 => quantile(of_all, 4),
        Metric::OkP50 => quantile(of_ok, 0),
        Metric::OkP90 => quantile(of_ok, 1),
        Metric::OkP95 => quantile(of_ok, 2),
        Metric::OkP99 => quantile(of_ok, 3),
        Metric::OkP999 => quantile(of_ok, 4),
        Metric::PeakP50 | Metric::PeakP95 | Metric::PeakP99 | Metric::PeakP999 | Metric::PeakMax => {
            return Err(Obstacle::WorstPart);
        }
        Metric::GoodputPerS
        | Metric::AttemptsPerRequest
        | Metric::Utilisation
        | Metric::WaitMs
        | Metric::Connections
        | Metric::OpenedPerS
        | Metric::Regained => return Err(Obstacle::Unseen),
    })
}

fn share(k: u64, n: u64) -> Estimate {
    if n == 0 {
        return Estimate::default();
    }
    let (low, high) = clopper_pearson(k, n, TAIL);
    Estimate { value: Some(k as f64 / n as f64), low: Some(low), high: Some(high) }
}

/// The quantile of that number among [`Latency::QUANTILES`], between order statistics: the greatest value of which
/// fewer than the share q of all requests lies below, as far as these show, and the least of which more does.
fn quantile(samples: &Histogram, number: usize) -> Estimate {
    let known = Latency::new(samples).quantiles;
    let (Some((_, q)), Some(value)) = (Latency::QUANTILES.get(number), known.get(number).copied().flatten())
    else {
        return Estimate::default();
    };
    let n = samples.count();
    let bounds = |k: u64| clopper_pearson(k, n, TAIL);
    // Both bounds rise with k. The first rank whose share is surely above q, and the first that may be.
    let surely = first_rank(n, |k| bounds(k).0 > *q);
    let maybe = first_rank(n, |k| bounds(k).1 > *q);
    let at = |rank: u64| {
        let place = (rank.clamp(1, n) - 1) as f64 / (n.max(2) - 1) as f64;
        samples.quantile(place).map(|ns| ns / 1e6)
    };
    let low = maybe.and_then(at).map(|low| low.min(value));
    Estimate { value: Some(value), low, high: surely.and_then(at) }
}

/// The least rank from 0 to n of which the predicate, which rises, is true.
fn first_rank(n: u64, is_true: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut from, mut to) = (0, n + 1);
    while from < to {
        let middle = from + (to - from) / 2;
        if is_true(middle) { to = middle } else { from = middle + 1 }
    }
    (from <= n).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Requests;
    use std::collections::BTreeMap;
    use weir_plan::Plan;
    use weir_policy::Kind;
    use weir_topology::{Request, evaluate};

    fn plan(expect: &str) -> Plan {
        let text = format!(
            "app = queue(delay(1*ms, server(\"a\")), name=\"line\")\n\
             scenario(\"s\", app, traffic.poisson(rate = 1), requests = 1)\n{expect}\n"
        );
        let request = Request { name: "a.star".into(), source: text.into(), ..Request::default() };
        evaluate(&request).expect("a plan").plan
    }

    /// 2,000 requests of 1 to 2,000 ms, of which one failed.
    fn outcome() -> Outcome {
        let mut outcome = Outcome::default();
        (1..=2000).for_each(|ms| outcome.all.record(ms * 1_000_000));
        (1..=1999).for_each(|ms| outcome.ok.record(ms * 1_000_000));
        let errors = BTreeMap::from([(Kind::Timeout, 1)]);
        outcome.requests = Requests { total: 2000, selected: 2000, ok: 1999, errors };
        outcome
    }

    fn judged(expect: &str, outcome: &mut Outcome) -> Vec<(String, Option<bool>)> {
        let plan = plan(expect);
        let point = &plan.points[0];
        judge(point, &point.scenarios[0], outcome);
        outcome.expectations.iter().map(|v| (v.expect.clone(), v.holds)).collect()
    }

    #[test]
    fn figures_are_judged_by_what_the_requests_prove() {
        let expect = "expect(\"s\", p50=[\"<1100ms\", \"<990ms\", \"<900ms\"], p999=\"<5s\", \
                      success=[\">=0.99\", \">=0.999\"], errors={\"timeout\": \"<=0.01\", \"reset\": \"<=0.0001\"})";
        let said = judged(expect, &mut outcome());
        let of = |text: &str| {
            said.iter().find(|(e, _)| e.starts_with(text)).unwrap_or_else(|| panic!("{text}: {said:?}")).1
        };
        assert_eq!([of("p50<1100"), of("p50<990"), of("p50<900")], [Some(true), None, Some(false)]);
        assert_eq!(of("p999"), None, "2,000 requests have no p99.9");
        assert_eq!([of("success>=0.99"), of("success>=0.999")], [Some(true), None], "{said:?}");
        assert_eq!([of("errors.timeout"), of("errors.reset")], [Some(true), None]);
    }

    #[test]
    fn what_is_not_seen_from_outside_is_named() {
        let expect = "expect(\"s\", p50=\"<1h\", attempts_per_request=\"<2\")\nexpect(\"s\", node=\"line\", utilisation=\"<1\")";
        let mut run = outcome();
        assert_eq!(judged(expect, &mut run), [("p50<1h".to_owned(), Some(true))]);
        assert!(
            run.warnings[0].contains("attempts_per_request<2, utilisation<1 at line"),
            "{:?}",
            run.warnings
        );
        let mut void = Outcome { void: Some("too late".to_owned()), ..outcome() };
        assert_eq!(judged(expect, &mut void)[0].1, None, "a void run says nothing");
    }

    #[test]
    fn a_mean_is_not_judged_and_fails_no_run() {
        let mut run = outcome();
        let said = judged("expect(\"s\", mean=\"<5s\", ok_mean=\"<1ms\", p50=\"<1h\")", &mut run);
        assert_eq!(said, [("p50<1h".to_owned(), Some(true))]);
        let reason = "not judged, since one run has no interval for a mean; a quantile, such as p50 or p99, can be judged: \
                      mean<5s, ok_mean<1ms";
        assert_eq!(run.warnings, [reason]);
    }

    /// With n uniform ranks the bounds are those of the binomial distribution: for the median of 2,000, ranks 963 and
    /// 1,038.
    #[test]
    fn bounds_of_quantiles_are_order_statistics() {
        let Estimate { low: Some(low), high: Some(high), .. } = quantile(&outcome().all, 0) else {
            panic!("bounds")
        };
        assert!((960.0..=968.0).contains(&low) && (1034.0..=1041.0).contains(&high), "{low} {high}");
    }
}
