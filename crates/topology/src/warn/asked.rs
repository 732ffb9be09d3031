//! Requests that do not bring what nodes on their way look at: a key, or what a rule matches.

use super::ways::down;
use super::{Found, at_span, index, warning};
use crate::context::State;
use crate::diagnostic::Diagnostic;
use crate::offered;
use crate::plan::{KeySource, Point, RequestShape, Scenario, Spec};
use weir_model::Traffic;

/// Nothing.
const NONE: u32 = u32::MAX;

/// Nodes that go by a key, reached by a scenario whose requests have none.
pub(super) fn keyless(state: &State, found: &mut Found) {
    let graph = &state.graph;
    let mut sources: Vec<KeySource> = Vec::new();
    for source in graph.specs().iter().flat_map(sources_of) {
        if source != KeySource::Path && !sources.contains(&source) {
            sources.push(source);
        }
    }
    for source in sources {
        // The first scenario that comes there without.
        let mut first = vec![NONE; graph.nodes().len()];
        for (i, scenario) in state.scenarios.iter().enumerate() {
            if lacking(scenario, &source) != Lacking::Nothing
                && let Some(root) = first.get_mut(scenario.root as usize)
            {
                *root = (*root).min(index(i));
            }
        }
        let first = down(graph, first, |_, _, by| by, u32::min);
        for (id, node) in graph.nodes().iter().enumerate() {
            let Some(spec) = graph.spec(index(id)).filter(|s| sources_of(s).contains(&source)) else {
                continue;
            };
            let Some(scenario) = state.scenarios.get(first[id] as usize) else { continue };
            found.warn(node.site, said(spec, &source, scenario), HELP);
        }
    }
}

const HELP: &str = "say who sends them, as in `traffic.mix(arrivals, [(1, request(key=keys.uniform(1000)))])`; in \
                    `traffic.closed` the user is the key";

/// What a node looks at to tell requests apart.
fn sources_of(spec: &Spec) -> Vec<KeySource> {
    match spec {
        Spec::Lb(lb) => {
            // In simulation it is the key that returns.
            let sticky = lb.sticky.as_ref().map(|_| KeySource::Client);
            lb.key.iter().cloned().chain(sticky).collect()
        }
        Spec::Rate { key: Some(key), .. } | Spec::Split { key: Some(key), .. } => vec![key.clone()],
        _ => Vec::new(),
    }
}

#[derive(PartialEq)]
enum Lacking {
    Nothing,
    Some,
    All,
}

/// Which of a scenario's requests have nothing there.
fn lacking(scenario: &Scenario, source: &KeySource) -> Lacking {
    if matches!(scenario.traffic, Traffic::Closed { .. }) {
        return Lacking::Nothing;
    }
    if scenario.mix.is_empty() {
        return Lacking::All;
    }
    let (mut with, mut without) = (false, false);
    for shape in scenario.mix.iter().filter(|s| s.weight > 0.0) {
        let has = shape.key.is_some() || brings(shape, source);
        with |= has;
        without |= !has;
    }
    match (with, without) {
        (_, false) => Lacking::Nothing,
        (true, true) => Lacking::Some,
        (false, true) => Lacking::All,
    }
}

/// Whether a request says it itself.
fn brings(shape: &RequestShape, source: &KeySource) -> bool {
    match source {
        KeySource::Header(name) => shape.headers.iter().any(|(n, _)| n == name),
        KeySource::Cookie(name) => shape
            .headers
            .iter()
            .filter(|(n, _)| n == "cookie")
            .flat_map(|(_, value)| value.split(';'))
            .any(|pair| pair.split_once('=').is_some_and(|(n, _)| n.trim() == name)),
        KeySource::Path => true,
        KeySource::Client => false,
    }
}

fn said(spec: &Spec, source: &KeySource, scenario: &Scenario) -> String {
    let which = if lacking(scenario, source) == Lacking::All { "requests" } else { "some of the requests" };
    let (by, end) = match spec {
        Spec::Lb(lb) if lb.key.as_ref() != Some(source) => {
            ("`sticky`".to_owned(), "none returns to its target")
        }
        Spec::Lb(_) => (written(source), "they are spread as by chance"),
        Spec::Rate { .. } => (written(source), "each finds a full bucket"),
        _ => (written(source), "they are split as by draw"),
    };
    format!(
        "{which} of scenario \"{}\" have no key for this `{}` to go by ({by}): each is a client of its own, so {end}",
        scenario.name,
        spec.kind()
    )
}

/// A key as the language writes it.
fn written(source: &KeySource) -> String {
    match source {
        KeySource::Header(name) => format!("`key.header(\"{name}\")`"),
        KeySource::Cookie(name) => format!("`key.cookie(\"{name}\")`"),
        KeySource::Path => "`key.path()`".to_owned(),
        KeySource::Client => "`key.client()`".to_owned(),
    }
}

/// A warning for each `route` where nothing of what a scenario sends there matches.
pub(crate) fn unrouted(point: &Point) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (i, scenario) in point.scenarios.iter().enumerate() {
        for id in offered::unrouted(point, i) {
            let node = point.nodes.get(id as usize);
            let site = node.and_then(|n| point.sites.get(n.site as usize));
            let spec = node.and_then(|n| point.specs.get(n.spec as usize));
            let (Some(site), Some(Spec::Route { rules, .. })) = (site, spec) else { continue };
            let sent = match scenario.mix.is_empty() {
                true => {
                    "without `traffic.mix` all requests are GET for \"/\": give it one, or the route `otherwise=`"
                }
                false if rules.iter().any(|r| !r.client.is_empty()) => {
                    "a simulated client has no address, so `client` matches none: give the route `otherwise=`"
                }
                false => "give the route `otherwise=`, or compare its rules with what `traffic.mix` sends",
            };
            let message = format!(
                "no request of scenario \"{}\" matches a rule of this `route`: all that come here end as `no_route`",
                scenario.name
            );
            let finding = at_span(warning(message).help(sent), &site.span);
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}
