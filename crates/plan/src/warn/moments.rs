//! Warnings about times that have no mean or no variance, so that no run is long enough for figures made of them.

use super::{Draft, Findings};
use crate::Spec;
use weir_model::Dist;

/// Nodes whose time has so heavy a tail that its mean or its variance is infinite.
pub(super) fn heavy_tails(draft: &Draft<'_>, found: &mut Findings) {
    for node in &draft.point.nodes {
        let Some(spec) = draft.point.specs.get(node.spec as usize) else { continue };
        let heaviest = times(spec).into_iter().filter_map(Dist::tail_exponent).reduce(f64::min);
        let Some(alpha) = heaviest.filter(|alpha| *alpha <= 2.0) else { continue };
        let kind = spec.kind();
        if alpha <= 1.0 {
            found.warn(
                node.site,
                format!(
                    "the time of this `{kind}` has no mean (`dist.pareto` with alpha {alpha}): means of a run say how long it \
                        was, and their intervals nothing"
                ),
                "read quantiles, or give it an alpha above 1",
            );
        } else {
            found.warn(
                node.site,
                format!(
                    "the time of this `{kind}` has no variance (`dist.pareto` with alpha {alpha}): intervals of means are too \
                        narrow, and a queue before it has no mean wait"
                ),
                "read quantiles, or give it an alpha above 2",
            );
        }
    }
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
