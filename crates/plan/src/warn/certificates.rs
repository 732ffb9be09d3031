//! Nodes that look at clients' certificates, which simulated clients do not have.

use super::{placed, warning};
use crate::diagnostic::{Diagnostic, Location};
use crate::offered::Walk;
use crate::template::asks_for_certificate;
use crate::{Point, Spec};
use std::collections::HashSet;

/// Warnings for rules and templates that a simulated request reaches and that ask for a client's certificate, once per
/// place. `standing`: the sites' locations.
pub fn certificates(point: &Point, standing: &[Option<Location>]) -> Vec<Diagnostic> {
    let reasons: Vec<Option<&str>> = point.specs.iter().map(reason).collect();
    let (mut found, mut places) = (Vec::new(), HashSet::new());
    if reasons.iter().all(Option::is_none) {
        return found;
    }
    for scenario in &point.scenarios {
        let Some(walk) = Walk::reaching(point, scenario) else { continue };
        for (id, node) in walk.nodes() {
            let Some(reason) = reasons[node.spec as usize] else { continue };
            let span = point.sites[node.site as usize].span.as_str();
            if places.contains(span) || walk.coming(id).is_empty() {
                continue;
            }
            places.insert(span);
            let kind = point.specs[node.spec as usize].kind();
            let message = format!("a simulated client has no certificate: in this `{kind}` {reason}");
            let at = standing.get(node.site as usize).and_then(Option::as_ref);
            let help =
                "simulate such requests by a field of `traffic.mix`, or leave it as it is: served, it counts";
            found.push(placed(warning(message).help(help), at));
        }
    }
    found
}

/// What a node does not do without a certificate.
fn reason(spec: &Spec) -> Option<&'static str> {
    let templates: Vec<&str> = match spec {
        Spec::Route { rules, .. } if rules.iter().any(|rule| !rule.client_name.is_empty()) => {
            return Some("`client_name` matches no request");
        }
        Spec::Rewrite(rewrite) => {
            rewrite.set.iter().chain(&rewrite.response_set).map(|(_, value)| value.as_str()).collect()
        }
        Spec::Redirect { to, .. } => vec![to],
        _ => Vec::new(),
    };
    templates.into_iter().any(asks_for_certificate).then_some("`{client_name}` and the like have no value")
}
