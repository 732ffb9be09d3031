//! Warnings about times that have no mean or no variance, so that no run is long enough for figures made of them, and about
//! times that are cut off.

use super::warning;
use crate::diagnostic::Diagnostic;
use crate::{Point, Spec};
use std::collections::BTreeSet;
use weir_model::Dist;
use weir_model::sampler::LONGEST_NS;

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

/// Fewer draws than this share do not matter.
const FEW: f64 = 1e-6;

/// A warning for each scenario and site whose nodes draw times that are cut at the longest there is.
pub fn cut_off(point: &Point) -> Vec<Diagnostic> {
    let cut = |spec: &Spec| times(spec).into_iter().map(|d| d.share_beyond(LONGEST_NS)).fold(0.0, f64::max);
    let shares: Vec<f64> = point.specs.iter().map(cut).collect();
    let mut found = Vec::new();
    if shares.iter().all(|share| *share < FEW) {
        return found;
    }
    for scenario in &point.scenarios {
        let mut sites = BTreeSet::new();
        for node in point.reached(scenario) {
            let share = shares.get(node.spec as usize).copied().unwrap_or(0.0);
            if share < FEW || !sites.insert(node.site) {
                continue;
            }
            let kind = point.specs[node.spec as usize].kind();
            let finding = warning(format!(
                "scenario \"{}\": of the times of a `{kind}` {} % are longer than 100 years, the longest that weir knows, \
                 and count as that",
                scenario.name,
                percent(share)
            ));
            let span = point.sites.get(node.site as usize).map_or("", |site| site.span.as_str());
            found.push(finding.help("give it shorter times").at_span(span));
        }
    }
    found
}

/// Two digits, without an exponent.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let places = (1.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
    let written = format!("{percent:.places$}");
    if places > 0 { written.trim_end_matches('0').trim_end_matches('.').to_string() } else { written }
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
