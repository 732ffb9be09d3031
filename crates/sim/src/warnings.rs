//! What would mislead a reader of the figures, in words.

use crate::code::{Code, Stage};
use crate::summary::{Replication, Row};
use weir_stats::Estimate;
use weir_topology::plan::{Listen, Point, Scenario, Scope, Spec, To, listeners};

/// A queue busier than this has no steady state that a run could show.
const OVERLOADED: f64 = 0.995;
/// Growth of the mean latency from the window's first to its second half that is worth a word.
const DRIFT: f64 = 0.1;

/// The warnings of a finished scenario, the gravest first.
pub(crate) fn of(
    point: &Point,
    scenario: &Scenario,
    code: &Code,
    rows: &[Row],
    runs: &[Replication],
) -> Vec<String> {
    let mut warnings = Vec::new();
    let overloaded = overloaded_site(point, code, rows, runs);
    let drift = drift(runs);
    match (overloaded, drift) {
        (Some((site, busy)), _) => warnings.push(format!(
            "overloaded: the queue at {site} is busy {:.1} % of the time and its line grows; latencies depend on how long \
             the run is, not on the system",
            100.0 * busy
        )),
        (None, Some(growth)) => warnings.push(format!(
            "not settled: in the second half of the window the mean latency is {:.0} % {} than in the first; run longer \
             (--requests), or read the figures as those of a start",
            100.0 * growth.abs(),
            if growth > 0.0 { "higher" } else { "lower" }
        )),
        (None, None) => {}
    }
    warnings.extend(lost(runs));
    warnings.extend(few_outages(point, scenario, code, runs));
    warnings.extend(taken_as_get(runs));
    warnings.extend(one_loop(point, scenario, code));
    for &stage in &code.order {
        let stage = &code.stages[stage as usize];
        if let Spec::Server { addr: Some(addr), model: None, .. } = &point.specs[stage.spec as usize] {
            let name = stage.nodes.first().and_then(|id| point.nodes[*id as usize].name.as_deref());
            let name = name.unwrap_or("server");
            warnings.push(format!(
                "server \"{name}\" at {addr} has no model, so it answers at once here; give it model=, a distribution of \
                 its work"
            ));
        }
    }
    warnings.dedup();
    warnings
}

/// Requests without any answer have no latency, so they are missing in the figures.
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
            "taken as GET: {attempts} further attempts were made only because requests are idempotent here; `traffic.mix` \
             with `request(method=\"POST\")` shows what others get"
        )
    })
}

/// Served, the listener in front of this would have several event loops, and balancers that see less each.
fn one_loop(point: &Point, scenario: &Scenario, code: &Code) -> Option<String> {
    let spec = |id: u32| &point.specs[point.nodes[id as usize].spec as usize];
    // Requests enter at a listener, or right behind one.
    let listener = listeners(point).into_iter().find(|&id| match spec(id) {
        Spec::Listen(Listen { loops: None, .. }) if id == scenario.root => true,
        Spec::Listen(Listen { loops, .. }) => {
            point.nodes[id as usize].to == To::Node(scenario.root) && *loops != Some(1)
        }
        _ => false,
    })?;
    // What a policy knows of its own picks it knows less of where others pick too.
    let remembers = |stage: &&Stage| match &point.specs[stage.spec as usize] {
        Spec::Lb(lb) => {
            lb.scope == Scope::Loop && lb.balance.counts_in_flight() | lb.balance.remembers_picks()
        }
        _ => false,
    };
    let balancer = code.order.iter().map(|s| &code.stages[*s as usize]).find(remembers)?;
    Some(format!(
        "one loop: here one event loop meets all requests; served, `{}` has {}, and {} keeps a state on each. `loops=` in \
         `listen`, with the listener as the scenario's node, simulates several",
        point.nodes[listener as usize].name.as_deref().unwrap_or("listen"),
        match spec(listener) {
            Spec::Listen(Listen { loops: Some(loops), .. }) => format!("{loops}"),
            _ => "one per core".to_string(),
        },
        point.sites[balancer.site as usize].label
    ))
}

/// Fewer outages than this per replication say little of what outages do.
const FEW: f64 = 20.0;

/// Too few outages: replications differ by chance more than their interval tells.
fn few_outages(point: &Point, scenario: &Scenario, code: &Code, runs: &[Replication]) -> Option<String> {
    let longest_ns = scenario.duration_ns.or_else(|| {
        let rate = scenario.traffic.rate_per_s()?;
        Some((runs.first()?.total as f64 / rate * 1e9) as u64)
    });
    // What never comes back within the run is no outage of it, but how the system is.
    let comes_back = |mttr_ns: u64| longest_ns.is_none_or(|run| mttr_ns / 2 < run);
    let fails = code.stages.iter().any(|s| match &point.specs[s.spec as usize] {
        Spec::Faulty(fault) => comes_back(fault.mttr_ns),
        _ => false,
    });
    let seen: u64 = runs.iter().map(|r| r.outages).sum();
    let each = seen as f64 / runs.len().max(1) as f64;
    (fails && each < FEW).then(|| {
        format!(
            "few outages: {seen} were seen in {} replications, {each:.1} in each; success and high quantiles hang on when \
             they happened, and their intervals may be too narrow. Run longer (--requests) rather than more often",
            runs.len()
        )
    })
}

/// The queue that is busiest, if it is busy all the time.
fn overloaded_site<'a>(
    point: &'a Point,
    code: &Code,
    rows: &[Row],
    runs: &[Replication],
) -> Option<(&'a str, f64)> {
    let busy = |row: usize| Estimate::of(runs.iter().map(|r| r.utilisation(row))).value;
    // A bounded queue turns away what it cannot hold: it settles however much is offered.
    let unbounded = (0..rows.len()).filter(|&row| !rows[row].is_bounded(point, code));
    let (row, busy) =
        unbounded.filter_map(|row| busy(row).map(|b| (row, b))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (busy > OVERLOADED).then(|| (point.sites[rows[row].site() as usize].label.as_str(), busy))
}

/// By how much the mean latency of the second half exceeds the first one's, if that is beyond chance and worth a word.
fn drift(runs: &[Replication]) -> Option<f64> {
    let growth = |r: &Replication| match r.halves() {
        [Some(first), Some(second)] if first > 0.0 => Some(second / first - 1.0),
        _ => None,
    };
    let e = Estimate::of(runs.iter().map(growth));
    let value = e.value?;
    let beyond_chance = match (e.low, e.high) {
        (Some(low), Some(high)) => low > 0.0 || high < 0.0,
        // A single replication has no interval; then only what nobody would call chance.
        _ => value.abs() > 5.0 * DRIFT,
    };
    (value.abs() > DRIFT && beyond_chance).then_some(value)
}
