//! `weir serve FILE [LISTENER...]`: the topology as a load balancer. Here is what can be said without binding anything;
//! `weir check --serve` says the same.

use super::later;
use crate::args::Serve;
use crate::failure::Failure;
use crate::input;
use std::io::Write;
use weir_topology::Plan;
use weir_topology::plan::{NodeId, Point, listeners};
use weir_topology::serving::{Serving, serving};

pub(crate) fn run(args: &Serve) -> Result<(), Failure> {
    if let Some(option) = args.not_built() {
        later::option(option)?;
    }
    let plan = input::load(&args.file())?;
    let (point, _serving) = check(&plan, args.inject, args.quiet)?;
    let _chosen = choose(point, &args.listeners)?;
    Err(Failure::Usage("`weir serve` is not built yet".to_owned()))
}

/// The one point of a plan, and what its nodes are when served. Hints go to standard error, unless `quiet`.
pub(crate) fn check(plan: &Plan, inject: bool, quiet: bool) -> Result<(&Point, Serving), Failure> {
    let [point] = plan.points.as_slice() else {
        let swept = swept(plan);
        let example = swept.first().map_or(String::new(), |p| format!(", such as `-p {p}=...`"));
        return Err(Failure::Usage(format!(
            "the file makes {} topologies ({} is swept), and one can be served: choose it with -p{example}",
            plan.points.len(),
            swept.join(", ")
        )));
    };
    match serving(point, inject) {
        Ok(serving) => {
            let mut err = std::io::stderr().lock();
            for note in serving.notes.iter().filter(|_| !quiet) {
                let _ = writeln!(err, "{note}");
            }
            Ok((point, serving))
        }
        Err(wrong) => {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            Err(Failure::Worded(wrong.join("\n\n")))
        }
    }
}

/// Parameters that differ between points.
fn swept(plan: &Plan) -> Vec<&str> {
    let Some(first) = plan.points.first() else { return Vec::new() };
    let differs = |i: usize| plan.points.iter().any(|p| p.params.get(i) != first.params.get(i));
    first.params.iter().enumerate().filter(|(i, _)| differs(*i)).map(|(_, p)| p.0.as_str()).collect()
}

/// The listeners of these names, all if there are none, in the order of the file.
pub(crate) fn choose(point: &Point, names: &[String]) -> Result<Vec<NodeId>, Failure> {
    let name = |id: &NodeId| point.nodes[*id as usize].name.as_deref().unwrap_or_default();
    let all = listeners(point);
    if let Some(unknown) = names.iter().find(|n| !all.iter().any(|id| name(id) == n.as_str())) {
        let known: Vec<&str> = all.iter().map(name).collect();
        return Err(Failure::Usage(format!(
            "no listener is called `{unknown}`; the file has {}",
            known.join(", ")
        )));
    }
    Ok(all.into_iter().filter(|id| names.is_empty() || names.iter().any(|n| n == name(id))).collect())
}
