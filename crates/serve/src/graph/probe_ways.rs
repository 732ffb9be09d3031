//! The links between a balancer that probes and its targets, found once for all threads.

use crate::exchange::NodeId;
use std::sync::Arc;
use weir_model::probe::{Cable, ProbeWay};
use weir_model::sampler::Sampler;
use weir_plan::serving::{Role, Serving};
use weir_plan::{Point, Spec, only_way};

/// By index, the cables that act before each target; empty: there is none before any.
pub(super) fn probe_ways(point: &Point, serving: &Serving, targets: &[Option<NodeId>]) -> Arc<[ProbeWay]> {
    let way = |target: &Option<NodeId>| {
        let mut is_built_in = false;
        let acts = |id: &NodeId| {
            let role = serving.roles.get(*id as usize).copied().unwrap_or_default();
            is_built_in |= role == Role::BuiltIn;
            // The model of a real server is for simulations only.
            matches!(role, Role::Model | Role::BuiltIn) || is_built_in && role == Role::Inside
        };
        let nodes = target.iter().flat_map(|target| only_way(point, *target));
        ProbeWay(nodes.filter(acts).filter_map(|id| cable(point, id)).collect())
    };
    let ways: Vec<ProbeWay> = targets.iter().map(way).collect();
    if ways.iter().all(ProbeWay::is_empty) { Arc::default() } else { ways.into() }
}

fn cable(point: &Point, id: NodeId) -> Option<Cable> {
    match &point.specs[point.nodes[id as usize].spec as usize] {
        Spec::Cable { time, loss, resend_ns } => {
            Some(Cable { time: Sampler::new(time), loss: *loss, resend_ns: *resend_ns })
        }
        _ => None,
    }
}
