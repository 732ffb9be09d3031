//! Requests that do not bring what nodes on their way look at: a key, or what a rule matches.

use super::{placed, warning};
use crate::diagnostic::{Diagnostic, Location};
use crate::offered::Walk;
use crate::path::{self, PathRewrite};
use crate::{KeySource, NodeId, Point, RequestShape, Rewrite, RouteCondition, Scenario, Spec};
use std::collections::HashSet;
use weir_http1::Limits;
use weir_model::Traffic;

/// Warnings for nodes that look at what a scenario's requests do not have, once per place. `standing`: the sites'
/// locations.
pub fn asked(point: &Point, standing: &[Option<Location>]) -> Vec<Diagnostic> {
    let looks = |spec: &Spec| match spec {
        Spec::Route { otherwise, .. } => !otherwise,
        Spec::Rewrite(rewrite) => rewrite.path.is_some(),
        other => sources_of(other).iter().any(|s| *s != KeySource::Path),
    };
    let looking: Vec<bool> = point.specs.iter().map(looks).collect();
    let mut found: Vec<Diagnostic> = Vec::new();
    if !looking.contains(&true) {
        return found;
    }
    let mut places: HashSet<(&str, &str)> = HashSet::new();
    for scenario in &point.scenarios {
        let Some(walk) = Walk::reaching(point, scenario) else { continue };
        // Members of a pool share all of it.
        let mut seen: HashSet<(u32, u32, Vec<usize>)> = HashSet::new();
        for (id, node) in walk.nodes() {
            if !looking[node.spec as usize] {
                continue;
            }
            let coming = walk.coming(id);
            if coming.is_empty() || !seen.insert((node.site, node.spec, coming)) {
                continue;
            }
            let (spec, span) =
                (&point.specs[node.spec as usize], point.sites[node.site as usize].span.as_str());
            // A node without a key is reported once, one without a route for each scenario.
            let key = (span, if matches!(spec, Spec::Route { .. }) { scenario.name.as_str() } else { "" });
            if places.contains(&key) {
                continue;
            }
            let said = match spec {
                Spec::Route { rules, .. } => unrouted(rules, &walk, id, scenario),
                Spec::Rewrite(rewrite) => too_long(rewrite, &walk, id, scenario),
                spec => keyless(spec, &walk, id, scenario),
            };
            if let Some(finding) = said {
                places.insert(key);
                let at = standing.get(node.site as usize).and_then(Option::as_ref);
                found.push(placed(finding, at));
            }
        }
    }
    found
}

/// A node that goes by a key, reached by requests that have none.
fn keyless(spec: &Spec, walk: &Walk<'_>, id: NodeId, scenario: &Scenario) -> Option<Diagnostic> {
    if matches!(scenario.traffic, Traffic::Closed { .. }) {
        return None;
    }
    // The kind of a trace's row does not determine its key.
    let senders = scenario.recorded.as_ref().map(|r| r.senders.as_slice()).unwrap_or_default();
    let some = senders.iter().any(Option::is_some);
    let all = some && senders.iter().all(Option::is_some);
    sources_of(spec).iter().find_map(|source| {
        let (mut with, mut without) = (some, false);
        for shape in walk.members(id).filter(|s| s.weight > 0.0) {
            let has = shape.key.is_some() || shape.brings(source);
            with |= has;
            without |= !has && !all;
        }
        without.then(|| warning(without_key(spec, source, with, scenario)).help(HELP))
    })
}

const HELP: &str = "give them keys, as in `traffic.mix(arrivals, [(1, request(key=keys.uniform(1000)))])`; in \
                    `traffic.closed` the user is the key, in `traffic.trace` the column `key`";

/// The property by which a node distinguishes requests.
fn sources_of(spec: &Spec) -> Vec<KeySource> {
    match spec {
        Spec::Lb(lb) => {
            // In simulation a returning client has the same key.
            let sticky = lb.sticky.as_ref().map(|_| KeySource::Client);
            lb.key.iter().cloned().chain(sticky).collect()
        }
        Spec::Rate { key: Some(key), .. } | Spec::Split { key: Some(key), .. } => vec![key.clone()],
        _ => Vec::new(),
    }
}

/// The text of the warning; `with`: other requests have one.
fn without_key(spec: &Spec, source: &KeySource, with: bool, scenario: &Scenario) -> String {
    let which = if with { "some of the requests" } else { "requests" };
    let (by, end) = match spec {
        Spec::Lb(lb) if lb.key.as_ref() != Some(source) => {
            ("`sticky`".to_owned(), "none returns to its target")
        }
        Spec::Lb(_) => (written(source), "they are spread at random"),
        Spec::Rate { .. } => (written(source), "each finds a full bucket"),
        _ => (written(source), "they are split at random"),
    };
    format!(
        "{which} of scenario \"{}\" have no key for this `{}` ({by}): each counts as a separate client, \
            so {end}",
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

/// A `rewrite` that would make a target longer than any may be.
fn too_long(rewrite: &Rewrite, walk: &Walk<'_>, id: NodeId, scenario: &Scenario) -> Option<Diagnostic> {
    let (from, to) = rewrite.path.as_ref()?;
    let long = |s: &RequestShape| path::rewritten(from, to, s.path.as_bytes()) == PathRewrite::TooLong;
    walk.members(id).find(|s| s.weight > 0.0 && long(s))?;
    let message = format!(
        "requests of scenario \"{}\" would be longer than {} bytes after this `rewrite`: when served, \
            they are answered with 414; in simulation they keep their path",
        scenario.name,
        Limits::TARGET
    );
    Some(warning(message).help("use a shorter prefix, or shorter paths in `traffic.mix`"))
}

/// A `route` that has no way for any of the requests that come to it.
fn unrouted(
    rules: &[RouteCondition],
    walk: &Walk<'_>,
    id: NodeId,
    scenario: &Scenario,
) -> Option<Diagnostic> {
    if walk.matches_any(id) {
        return None;
    }
    let help = if scenario.mix.is_empty() {
        "without `traffic.mix` all requests are GET for \"/\": add one, or give the route `otherwise=`"
    } else if rules.iter().any(|r| !r.client.is_empty()) {
        "a simulated client has no address, so `client` matches none: give the route `otherwise=`"
    } else {
        "give the route `otherwise=`, or compare its rules with what `traffic.mix` sends"
    };
    let message = format!(
        "no request of scenario \"{}\" matches a rule of this `route`: all requests that reach it end as \
            `no_route`",
        scenario.name
    );
    Some(warning(message).help(help))
}
