//! Warnings about figures that would mislead a reader; those about growth and drift are in `warnings/growth.rs`,
//! those about start-up and unlike replications in `warnings/settling.rs`, those about changes that took longer in
//! `warnings/delays.rs`; what each means is in `warnings/pages.rs`.

mod delays;
mod growth;
mod pages;
mod settling;

pub use pages::WARNINGS;

use crate::code::{Code, Stage};
use crate::results::job::JobOptions;
use crate::results::replicate::Program;
use crate::results::summary::Replication;
use growth::Growth;
use weir_model::Traffic;
use weir_plan::warn::WarningPage;
use weir_plan::{Edge, Faulty, Listen, Point, Scenario, Scope, Spec, listeners};

/// What the warnings about a finished scenario are derived from.
pub(crate) struct Finished<'a> {
    pub point: &'a Point,
    pub scenario: &'a Scenario,
    pub program: &'a Program,
    pub runs: &'a [Replication],
    pub asked: JobOptions,
    /// Quantiles for which single replications are too short.
    pub too_short: &'a [&'static str],
}

/// What would mislead a reader of a finished scenario.
pub(crate) struct Findings {
    /// The most serious first: what happened in the run, then what was known before.
    pub warnings: Vec<String>,
    /// How many times as long a replication would have to be to settle.
    pub needs_times: Option<f64>,
}

/// Looks at a finished scenario.
pub(crate) fn find(finished: &Finished) -> Findings {
    let Finished { point, scenario, program, runs, .. } = finished;
    let mut warnings = Vec::new();
    let mut tell = |page: &'static WarningPage, text: Option<String>| {
        debug_assert!(
            text.as_ref().is_none_or(|text| page.fits(text)),
            "{text:?} is not on the page {page:?}"
        );
        warnings.extend(text);
    };
    tell(&pages::NOTHING_SELECTED, nothing_selected(finished));
    tell(&pages::ENDED_EARLY, ended_early(finished));
    tell(&pages::NEVER_WARM, unsettled(runs));
    let known = point.warnings_of(scenario);
    let grows = growth::find(finished);
    let overloaded = grows.iter().any(|growth| matches!(growth, Growth::Overload(_)))
        || known.iter().any(|w| w.contains("the run will not settle"));
    match grows {
        Some(Growth::Overload(text)) => tell(&pages::OVERLOADED, Some(text)),
        Some(Growth::Drift(text)) => tell(&pages::DRIFT, Some(text)),
        None => {}
    }
    tell(&pages::TWO_OUTCOMES, settling::two_outcomes(runs));
    // What changes during the run is the question, not what comes after it.
    let changes = !scenario.events.is_empty();
    let start_up = if overloaded || changes { None } else { settling::start_up(finished) };
    tell(&pages::START_UP, start_up.as_ref().map(|of| of.warning(finished)));
    tell(&pages::HALTED, delays::halted(scenario, &program.code, runs));
    tell(&pages::HELD_UP, delays::held_up(scenario, &program.code, runs));
    tell(&pages::STRETCHED, stretched(finished));
    // A longer run does not help where latencies grow with it.
    if !overloaded {
        tell(&pages::TOO_SHORT, too_short(finished.too_short));
    }
    tell(&pages::INEXACT, inexact(runs));
    tell(&pages::LOST, lost(runs));
    tell(&pages::FEW_OUTAGES, few_outages(point, scenario, &program.code, runs));
    tell(&pages::TAKEN_AS_GET, taken_as_get(runs));
    tell(&pages::ONE_LOOP, one_loop(point, scenario, &program.code));
    warnings.extend(known.into_iter().map(str::to_string));
    warnings.dedup();
    Findings { warnings, needs_times: start_up.map(|of| of.needs_times()) }
}

/// Replications are longer than the file says.
fn stretched(finished: &Finished) -> Option<String> {
    let times = finished.asked.stretch;
    (times > 1).then(|| {
        format!(
            "made longer: `--precision` gave each replication {times} times as many requests as the file says, since more \
             short ones would all have ended in their start-up"
        )
    })
}

/// The window contains no request.
fn nothing_selected(finished: &Finished) -> Option<String> {
    let Finished { scenario, runs, .. } = finished;
    if runs.iter().any(|r| r.selected > 0) {
        return None;
    }
    let total: u64 = runs.iter().map(|r| r.total).sum();
    let why = match (total, scenario.duration_ns, &scenario.traffic) {
        (0, Some(_), Traffic::Closed { .. }) => {
            "no user finished thinking before its duration ended; a longer `duration`, or less `think`, \
                lets some send"
        }
        (0, Some(_), _) => {
            "its duration ended before the first arrival; give it a longer `duration`, or `requests`"
        }
        (0, None, _) => "its traffic has no arrivals",
        (_, _, _) => {
            "no request that was sent is in the window; run longer (--requests), or set window=\"all\""
        }
    };
    Some(format!("nothing selected: no request counts, so there are no figures: {why}"))
}

/// Fewer requests were simulated than requested.
fn ended_early(finished: &Finished) -> Option<String> {
    let Finished { scenario, runs, asked, .. } = finished;
    let wanted = asked.requests?;
    let fewest = runs.iter().map(|r| r.total).min().filter(|n| *n < wanted)?;
    let why = match (&scenario.traffic, scenario.duration_ns) {
        (Traffic::Closed { .. }, None) => {
            "its users wait for answers that never come; a `timeout` around what loses them, or `patience`, lets them go on"
        }
        // The file limits both, and gets what it says.
        (_, Some(_)) if !asked.overridden => return None,
        (_, Some(_)) => "the scenario's `duration` ended first; give it a longer one",
        (Traffic::Trace { .. }, _) => "its trace has no more requests",
        _ => "its traffic ends before",
    };
    Some(format!("ended early: of {wanted} requests {fewest} were sent in a replication: {why}"))
}

/// Scenarios that never settle.
fn unsettled(runs: &[Replication]) -> Option<String> {
    let never = runs.iter().any(|r| r.settled.is_some_and(|s| !s.settled));
    never.then(|| {
        "not settled: window=\"auto\" finds no end of the warm-up within the first half of the replications, so their second \
         half is taken; run longer (--requests) until it does. Where it never does, the system is overloaded"
            .to_owned()
    })
}

/// The warning of a result about quantiles for which a single replication has too few samples; `None` without any.
pub fn too_short(quantiles: &[&str]) -> Option<String> {
    (!quantiles.is_empty()).then(|| {
        format!(
            "too short for {}: single replications see too few samples, so the interval may miss the true value; make \
             replications longer (--requests), not more of them",
            listed(quantiles)
        )
    })
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Sums of times too large to be exact.
fn inexact(runs: &[Replication]) -> Option<String> {
    (!runs.iter().all(Replication::is_exact)).then(|| {
        "too long to add up: the times of all requests together may be more than 584 years, which is more \
            than can be added exactly; waits, service and parts of the latency are left out"
            .to_string()
    })
}

/// Requests without an answer have no latency, so the figures leave them out.
fn lost(runs: &[Replication]) -> Option<String> {
    let lost: u64 = runs.iter().map(Replication::lost).sum();
    let selected: u64 = runs.iter().map(|r| r.selected).sum();
    (lost > 0).then(|| {
        format!(
            "lost: {lost} of {selected} requests got no answer and never will; they have no latency and are in none of these \
             quantiles. A `timeout` around what loses them, or `patience`, says when their clients give up"
        )
    })
}

/// Attempts that a POST would not have had.
fn taken_as_get(runs: &[Replication]) -> Option<String> {
    let attempts: u64 = runs.iter().map(|r| r.as_get).sum();
    (attempts > 0).then(|| {
        format!(
            "taken as GET: {attempts} further attempts were made only because all requests are taken as GET; a POST would not \
             have been tried again, as `traffic.mix` with `request(method=\"POST\")` shows"
        )
    })
}

/// In the proxy, a listener on the path would have several event loops, and their balancers would each see fewer
/// requests.
fn one_loop(point: &Point, scenario: &Scenario, code: &Code) -> Option<String> {
    let spec = |id: u32| &point.specs[point.nodes[id as usize].spec as usize];
    // Requests enter at a listener or right behind one, and pass others.
    let on_the_way = || {
        let stages = code.order.iter().map(|s| &code.stages[s.index()]);
        let says_nothing = |stage: &&Stage| {
            matches!(point.specs[stage.spec as usize], Spec::Listen(Listen { loops: None, .. }))
        };
        stages.filter(says_nothing).find_map(|stage| stage.nodes.first().copied())
    };
    let before = listeners(point).into_iter().find(|&id| match spec(id) {
        Spec::Listen(Listen { loops, .. }) => {
            point.nodes[id as usize].to == Edge::Node(scenario.root) && *loops != Some(1)
        }
        _ => false,
    });
    let listener = before.or_else(on_the_way)?;
    // A policy that remembers its own picks knows less where other loops pick too.
    let remembers = |stage: &&Stage| match &point.specs[stage.spec as usize] {
        Spec::Lb(lb) => {
            lb.scope != Scope::Process && (lb.balance.traits().counts || lb.balance.traits().remembers)
        }
        _ => false,
    };
    let balancer = code.order.iter().map(|s| &code.stages[s.index()]).find(remembers)?;
    Some(format!(
        "one loop: here one event loop meets all requests; served, `{}` has {}, and {} keeps a state on each. `loops=` in \
         `listen`, with the listener as the scenario's node, simulates several",
        point.nodes[listener as usize].name.as_deref().unwrap_or("listen"),
        match spec(listener) {
            Spec::Listen(Listen { loops: Some(loops), .. }) => format!("{loops}"),
            _ => "one per core".to_string(),
        },
        point.sites[balancer.site.index()].label
    ))
}

/// With fewer outages in the window of a replication the figures say little about outages.
const FEW: f64 = 10.0;

/// Too few outages: replications differ by chance more than their interval shows.
fn few_outages(point: &Point, scenario: &Scenario, code: &Code, runs: &[Replication]) -> Option<String> {
    let longest_ns = scenario.duration_ns.or_else(|| {
        let rate = scenario.traffic.rate_per_s()?;
        Some((runs.first()?.total as f64 / rate * 1e9) as u64)
    });
    // A node that never comes back within the run is not an outage, but the state of the system.
    let comes_back = |mttr_ns: u64| longest_ns.is_none_or(|run| mttr_ns / 2 < run);
    let fails = faults(point, code).any(|fault| comes_back(fault.mttr_ns) && !fault.is_scheduled());
    // The window has as large a part of the outages as of the requests.
    let within = |r: &Replication| r.outages as f64 * r.selected as f64 / r.total.max(1) as f64;
    let seen: f64 = runs.iter().map(within).sum();
    let each = seen / runs.len().max(1) as f64;
    (fails && each < FEW).then(|| {
        format!(
            "few outages: about {seen:.0} fell into the windows of {} replications, {each:.1} into each; success and high \
             quantiles depend on when they happened, and their intervals may be too narrow. Make replications longer \
             (--requests), not more of them",
            runs.len()
        )
    })
}

/// The nodes that fail on the way of a scenario's requests.
fn faults<'a>(point: &'a Point, code: &'a Code) -> impl Iterator<Item = &'a Faulty> {
    code.stages.iter().filter_map(|s| match &point.specs[s.spec as usize] {
        Spec::Faulty(fault) => Some(fault),
        _ => None,
    })
}
