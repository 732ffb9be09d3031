//! `expect(scenario_name, p99="<300ms", success=">=0.999", ...)`: what a scenario must show.
//!
//! - In virtual time: judged once its replications are done, at each point of a sweep.
//! - In the proxy: nothing.
//! - Draws: nothing.

use super::{Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome, describe, list};
use crate::language::context::{LocatedExpectation, State};
use crate::language::value::Poison;
use starlark::values::dict::DictRef;
use starlark::values::{Value, ValueLike};
use std::collections::BTreeSet;
use weir_plan::diagnostic::{Diagnostic, Location};
use weir_plan::duration::parse_duration;
use weir_plan::suggest;
use weir_plan::{Condition, Edge, Expectation, Metric, Order, Spec};
use weir_policy::Kind;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "expect",
    about: Description {
        group: Group::Ask,
        meaning: "A requirement on a scenario's results: turns a topology file into a test, for example in \
            CI.",
        simulated: "checked at each point of a sweep, once all replications are done; exit code 1 if one \
            fails or is undecided",
        served: "nothing",
        draws: "nothing",
        example: examples::EXPECT,
    },
    args: &[
        need("scenario_name", "a string", "the scenario that it applies to"),
        may("mean", TIME, "None", "mean latency of all requests"),
        may("p50", TIME, "None", "its median"),
        may("p90", TIME, "None", "its 90 % quantile"),
        may("p95", TIME, "None", "its 95 % quantile"),
        may("p99", TIME, "None", "its 99 % quantile"),
        may("p999", TIME, "None", "its 99.9 % quantile"),
        may("ok_mean", TIME, "None", "mean latency of the requests that succeeded"),
        may("ok_p50", TIME, "None", "its median"),
        may("ok_p90", TIME, "None", "its 90 % quantile"),
        may("ok_p95", TIME, "None", "its 95 % quantile"),
        may("ok_p99", TIME, "None", "its 99 % quantile"),
        may("ok_p999", TIME, "None", "its 99.9 % quantile"),
        may("success", SHARE, "None", "the share of requests that succeeded"),
        may("goodput_per_s", NUMBER, "None", "successes within the scenario's deadline, per second"),
        may("attempts_per_request", NUMBER, "None", "1 and every further attempt"),
        may(
            "errors",
            "a dictionary of kinds of error and conditions",
            "None",
            "for each kind, the share of requests that failed with it",
        ),
        may("peak_p50", TIME, "None", "of a scenario with `every`: the greatest median of a part"),
        may("peak_p95", TIME, "None", "its greatest 95 % quantile"),
        may("peak_p99", TIME, "None", "its greatest 99 % quantile"),
        may("peak_p999", TIME, "None", "its greatest 99.9 % quantile"),
        may("peak_max", TIME, "None", "its greatest latency"),
        may("connections", NUMBER, "None", "connections to servers, on average"),
        may("opened_per_s", NUMBER, "None", "connections opened per second"),
        may(
            "node",
            "a string",
            "None",
            "the name of a queue or concurrent that the conditions apply to; for connections, of a server or listen; for \
                `regained`, of what a change moves",
        ),
        may("utilisation", SHARE, "None", "with `node`: its utilisation"),
        may("wait_ms", TIME, "None", "with `node`: how long requests wait there"),
        may(
            "regained",
            TIME,
            "None",
            "with `node` and `every`: how long after it runs (anew) it has its share of the requests again",
        ),
    ],
    more: &[],
    make,
}];
const TIME: &str = "a condition such as \"<300ms\", or a list of them";
const SHARE: &str = "a condition such as \">=0.999\" or \">=99.9%\", or a list of them";
const NUMBER: &str = "a condition such as \"<1.1\", or a list of them";

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let scenario = call.text("scenario_name");
    if call.is_none("scenario_name") {
        call.unfit("scenario_name", "a string", Value::new_none());
    }
    let node = call.text("node");
    let mut conditions = Vec::new();
    let metrics = Metric::OF_REQUESTS
        .into_iter()
        .chain(Metric::OF_PARTS)
        .chain(Metric::OF_NODES)
        .chain(Metric::OF_CONNECTIONS);
    for metric in metrics {
        let Some(value) = call.value_or_none(metric.name()) else { continue };
        let is_of_both = Metric::OF_CONNECTIONS.contains(&metric);
        if !is_of_both && Metric::OF_NODES.contains(&metric) != node.is_some() && !call.failed() {
            misplaced(call, metric, node.is_some());
        }
        let what = call.describe(metric.name());
        conditions.extend(of_value(call, &what, metric, value));
    }
    if let Some(value) = call.value_or_none("errors") {
        if node.is_some() && !call.failed() {
            misplaced(call, Metric::Errors(Kind::Refused), true);
        }
        conditions.extend(of_errors(call, value));
    }
    if conditions.is_empty() && !call.failed() {
        call.wrong_but("`expect` has no condition", "add one, such as `p99=\"<300ms\"`");
    }
    let (Some(scenario), false) = (scenario, call.failed()) else { return Ok(None) };
    let at = call.location();
    let span = at.as_ref().map(Location::span).unwrap_or_default();
    let expectation = Expectation { scenario, node, conditions, span };
    call.context.state.borrow_mut().expectations.push(LocatedExpectation { expectation, at });
    Ok(Some(Value::new_none()))
}

fn misplaced(call: &mut Call<'_, '_, '_, '_>, metric: Metric, of_node: bool) {
    let name = metric.name();
    if of_node {
        call.wrong_but(
            format!("`{name}` is a figure of requests, but this `expect` names a node"),
            "a node has `utilisation` and `wait_ms`, `connections` and `opened_per_s`, or `regained`: write a separate `expect` for \
             the rest",
        );
    } else {
        call.wrong_but(
            format!("`{name}` is a figure of a node, but no node is named"),
            "name it: `node=\"name\"`",
        );
    }
}

/// A condition, or a list of them.
fn of_value<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    what: &str,
    metric: Metric,
    value: Value<'v>,
) -> Vec<Condition> {
    match list(value) {
        Some(items) => items.into_iter().filter_map(|item| condition(call, what, metric, item)).collect(),
        None => condition(call, what, metric, value).into_iter().collect(),
    }
}

/// `{kind: condition}`.
fn of_errors<'v>(call: &mut Call<'v, '_, '_, '_>, value: Value<'v>) -> Vec<Condition> {
    let Some(by_kind) = DictRef::from_value(value) else {
        call.unfit_but("errors", "a dictionary", value, "write `errors={\"timeout\": \"<=0.001\"}`");
        return Vec::new();
    };
    let mut conditions = Vec::new();
    for (key, value) in by_kind.iter() {
        let text = key.unpack_str().unwrap_or_default();
        let Some(kind) = Kind::from_name(text) else {
            let names = Kind::ALL.map(Kind::name);
            let help = suggest::did_you_mean(text, names)
                .unwrap_or_else(|| format!("there are {}", names.join(", ")));
            let message =
                format!("`errors` of `expect` needs kinds of error, and {} is not one", describe(key));
            call.wrong_but(message, help);
            continue;
        };
        let what = format!("`errors[\"{text}\"]` of `expect`");
        conditions.extend(of_value(call, &what, Metric::Errors(kind), value));
    }
    conditions
}

/// One condition: a side and a bound.
fn condition<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    what: &str,
    metric: Metric,
    value: Value<'v>,
) -> Option<Condition> {
    if value.downcast_ref::<Poison>().is_some() {
        call.poison();
        return None;
    }
    let example = example(metric);
    let Some(text) = value.unpack_str() else {
        let message = format!("{what} must be a condition, not {}", describe(value));
        call.wrong_but(message, format!("write it as a string: \"{example}\""));
        return None;
    };
    let said: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let sides = [("<=", Order::AtMost), (">=", Order::AtLeast), ("<", Order::Less), (">", Order::More)];
    let found = sides.iter().find_map(|(sign, order)| Some((*order, said.strip_prefix(sign)?)));
    let Some((is, bound)) = found else {
        let message = format!("{what}: \"{text}\" does not begin with <, <=, > or >=");
        call.wrong_but(message, format!("write it as \"{example}\""));
        return None;
    };
    match bound_of(metric, bound) {
        Ok(bound) => Some(Condition { metric, is, bound, said }),
        Err(why) => {
            call.wrong_but(format!("{what}: {why}"), format!("write it as \"{example}\""));
            None
        }
    }
}

fn example(metric: Metric) -> &'static str {
    match metric {
        Metric::Success => ">=0.999",
        Metric::Errors(_) => "<=0.001",
        Metric::Utilisation => "<0.8",
        Metric::GoodputPerS => ">=1000",
        Metric::AttemptsPerRequest => "<1.1",
        Metric::Connections => "<4000",
        Metric::OpenedPerS => "<10",
        _ => "<300ms",
    }
}

/// A bound in the unit of the figure: ms, a share, or a number.
fn bound_of(metric: Metric, text: &str) -> Result<f64, String> {
    // Its unit is in its name.
    let in_ms = metric == Metric::WaitMs && text.parse::<f64>().is_ok();
    if metric.is_time() && !in_ms {
        let ns = parse_duration(text).map_err(|e| e.to_string())?;
        return if ns < 0 { Err(format!("\"{text}\" is negative")) } else { Ok(ns as f64 / 1e6) };
    }
    let (digits, per) = match text.strip_suffix('%') {
        Some(digits) if metric.is_share() => (digits, 100.0),
        _ => (text, 1.0),
    };
    let number: Option<f64> = digits.parse().ok().filter(|x: &f64| x.is_finite());
    let Some(bound) = number.map(|x| x / per) else { return Err(format!("\"{text}\" is not a number")) };
    if metric.is_share() && !(0.0..=1.0).contains(&bound) {
        return Err(format!("a share must be between 0 and 1 (or 0% and 100%), not \"{text}\""));
    }
    Ok(bound)
}

/// Reports expectations of scenarios or nodes that do not exist.
pub(crate) fn check(state: &mut State) {
    let expectations = std::mem::take(&mut state.expectations);
    for LocatedExpectation { expectation, at } in &expectations {
        let finding = unknown_scenario(state, expectation)
            .or_else(|| without_parts(state, expectation))
            .or_else(|| unmoved_node(state, expectation))
            .or_else(|| unknown_node(state, expectation));
        if let Some(finding) = finding {
            let finding = match at {
                Some(at) => finding.with_location(at),
                None => finding,
            };
            state.findings.add(finding);
        }
    }
    state.expectations = expectations;
}

fn unknown_scenario(state: &State, expectation: &Expectation) -> Option<Diagnostic> {
    let name = &expectation.scenario;
    if state.named_scenarios.contains_key(name) {
        return None;
    }
    let known = state.scenarios.iter().map(|s| s.name.as_str());
    let found = Diagnostic::error(format!("`expect` names the scenario \"{name}\", which does not exist"));
    Some(match suggest::nearest(name, known) {
        Some(near) => found.help(format!("did you mean \"{near}\"?")),
        None => found.help("name one of the file's scenarios"),
    })
}

/// A figure of the result over time, of a scenario that has none.
fn without_parts(state: &State, expectation: &Expectation) -> Option<Diagnostic> {
    let scenario = state.scenarios.get(*state.named_scenarios.get(&expectation.scenario)?)?;
    let condition = expectation.conditions.iter().find(|c| c.metric.needs_parts())?;
    scenario.every_ns.is_none().then(|| {
        let (metric, name) = (condition.metric.name(), &expectation.scenario);
        let message = format!(
            "`{metric}` is a figure of the result over time, and the scenario \"{name}\" at {} has none",
            scenario.span
        );
        Diagnostic::error(message).help("give the scenario the length of a part: `every=1*s`")
    })
}

/// Something that no change moves, of which it is asked how long it takes to have its share again.
fn unmoved_node(state: &State, expectation: &Expectation) -> Option<Diagnostic> {
    let name = expectation.node.as_deref()?;
    expectation.conditions.iter().find(|c| c.metric == Metric::Regained)?;
    let scenario = state.scenarios.get(*state.named_scenarios.get(&expectation.scenario)?)?;
    if scenario.events.is_empty() {
        let message =
            format!("nothing changes in the scenario \"{}\", so \"{name}\" regains nothing", scenario.name);
        return Some(
            Diagnostic::error(message).help("give the scenario `events=`, such as `[change.join(...)]`"),
        );
    }
    let reached = reached(state, &expectation.scenario);
    let fleet = |id: u32| match state.graph.spec(id) {
        Some(Spec::Fleet(fleet)) => Some(fleet.label.as_str()),
        _ => None,
    };
    let named = |id: u32| state.graph.node(id).and_then(|node| node.name.as_deref());
    let known = || reached.iter().flat_map(|id| [fleet(*id), named(*id)]).flatten();
    if known().any(|known| known == name) {
        return None;
    }
    let message = format!(
        "no request of the scenario \"{}\" comes to a node or a fleet that is called \"{name}\"",
        scenario.name
    );
    Some(match suggest::nearest(name, known()) {
        Some(near) => Diagnostic::error(message).help(format!("did you mean \"{near}\"?")),
        None => Diagnostic::error(message).help("name a fleet, or give what its function makes a `name=`"),
    })
}

/// A node that the scenario does not reach, that nothing waits at, or that is one of several of its name.
fn unknown_node(state: &State, expectation: &Expectation) -> Option<Diagnostic> {
    let name = expectation.node.as_deref()?;
    if expectation.conditions.iter().all(|c| c.metric == Metric::Regained) {
        return None;
    }
    let reached = reached(state, &expectation.scenario);
    let is_of_connections = |c: &Condition| Metric::OF_CONNECTIONS.contains(&c.metric);
    let wants =
        |of_connections: bool| expectation.conditions.iter().any(|c| is_of_connections(c) == of_connections);
    let is_queue = |id: &u32| match state.graph.spec(*id) {
        Some(Spec::Queue { .. } | Spec::Concurrent { .. }) => !wants(true),
        Some(Spec::Server { .. } | Spec::Listen(_)) => !wants(false),
        _ => false,
    };
    let queues = || reached.iter().filter(|id| is_queue(id)).filter_map(|id| state.graph.node(*id));
    let sites: BTreeSet<u32> =
        queues().filter(|node| node.name.as_deref() == Some(name)).map(|node| node.site).collect();
    match sites.len() {
        1 => return None,
        2.. => {
            let places: Vec<String> = sites.iter().filter_map(|site| place(state, *site)).collect();
            let message = format!(
                "\"{name}\" is the name of {} places in the scenario \"{}\": {}",
                sites.len(),
                expectation.scenario,
                places.join(" and ")
            );
            return Some(Diagnostic::error(message).help("give each a name of its own"));
        }
        0 => {}
    }
    let is_named = |id: u32| state.graph.node(id).is_some_and(|node| node.name.as_deref() == Some(name));
    if (0u32..).take_while(|id| state.graph.node(*id).is_some()).any(is_named) {
        if !reached.iter().any(|id| is_named(*id)) {
            let scenario = &expectation.scenario;
            let message = format!("no request of the scenario \"{scenario}\" comes to the node \"{name}\"");
            let help = "name a node that it reaches, or the scenario that reaches this one";
            return Some(Diagnostic::error(message).help(help));
        }
        let (message, help) = match (wants(true), wants(false)) {
            (true, true) => (
                "no node has both a line and connections".to_owned(),
                "write an `expect` for the queue, and another for the server",
            ),
            (true, false) => (
                format!("\"{name}\" is neither a `server` nor a `listen`: no connections lead there"),
                "name a server or a listener",
            ),
            _ => (
                format!("\"{name}\" is neither a `queue` nor a `concurrent`: nothing waits there"),
                "give the queue a `name=`, and use that name",
            ),
        };
        return Some(Diagnostic::error(message).help(help));
    }
    let found = Diagnostic::error(format!("`expect` names the node \"{name}\", which does not exist"));
    Some(match suggest::nearest(name, queues().filter_map(|node| node.name.as_deref())) {
        Some(near) => found.help(format!("did you mean \"{near}\"?")),
        None => found.help("give the queue a `name=`, and use that name"),
    })
}

/// The place of a site in the file.
fn place(state: &State, site: u32) -> Option<String> {
    state.graph.describe(site).1.map(Location::span)
}

/// The nodes behind a scenario's, models of servers included.
fn reached(state: &State, scenario: &str) -> BTreeSet<u32> {
    let known = state.named_scenarios.get(scenario).and_then(|at| state.scenarios.get(*at));
    let (mut seen, mut lists, mut stack) =
        (BTreeSet::new(), BTreeSet::new(), known.map(|s| s.root).into_iter().collect::<Vec<u32>>());
    while let Some(id) = stack.pop() {
        let (true, Some(node)) = (seen.insert(id), state.graph.node(id)) else { continue };
        stack.extend(state.graph.spec(id).and_then(Spec::aside));
        match node.to {
            Edge::None => {}
            Edge::Node(next) => stack.push(next),
            Edge::List(list) if lists.insert(list) => {
                stack.extend(state.graph.lists().get(list as usize).into_iter().flatten());
            }
            Edge::List(_) => {}
        }
    }
    seen
}
