//! Warnings about times that have no mean or no variance, so that no run is long enough for figures made of them.

use super::warning;
use crate::diagnostic::Diagnostic;
use crate::{Point, Spec};
use std::collections::BTreeSet;
use weir_model::Dist;

/// A warning for each scenario and site whose nodes draw times with so heavy a tail that their mean or their variance is
/// infinite.
pub fn heavy_tails(point: &Point) -> Vec<Diagnostic> {
    let tail = |spec: &Spec| times(spec).into_iter().filter_map(Dist::tail_exponent).reduce(f64::min);
    let tails: Vec<Option<f64>> = point.specs.iter().map(|s| tail(s).filter(|alpha| *alpha <= 2.0)).collect();
    let mut found = Vec::new();
    if tails.iter().all(Option::is_none) {
        return found;
    }
    for scenario in &point.scenarios {
        let mut sites = BTreeSet::new();
        for node in point.reached(scenario) {
            let Some(Some(alpha)) = tails.get(node.spec as usize) else { continue };
            if !sites.insert(node.site) {
                continue;
            }
            let (kind, name) = (point.specs[node.spec as usize].kind(), &scenario.name);
            let (what, end, help) = if *alpha <= 1.0 {
                (
                    "mean",
                    "means of a run say how long it was, and their intervals nothing",
                    "read quantiles, or give it an alpha above 1",
                )
            } else {
                (
                    "variance",
                    "intervals of means are too narrow, and a queue that serves it has no mean wait",
                    "read quantiles, or give it an alpha above 2",
                )
            };
            let finding = warning(format!(
                "scenario \"{name}\": the time of a `{kind}` has no {what} (`dist.pareto` with alpha {alpha}): {end}"
            ));
            let span = point.sites.get(node.site as usize).map_or("", |site| site.span.as_str());
            found.push(finding.help(help).at_span(span));
        }
    }
    found
}

/// The times that a node draws.
fn times(spec: &Spec) -> Vec<&Dist> {
    match spec {
        Spec::Delay { time } | Spec::Cable { time, .. } => vec![time],
        Spec::Concurrent { work, .. } => vec![work],
        Spec::Faulty(fault) => fault.up.iter().chain(&fault.down).collect(),
        _ => Vec::new(),
    }
}
