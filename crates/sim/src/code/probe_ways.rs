//! The cables that probes of `lb.prequal` cross to their targets.

use std::collections::BTreeMap;
use weir_model::probe::{Cable, ProbeWay};
use weir_model::sampler::Sampler;
use weir_plan::{Point, Spec, only_way};
use weir_policy::TargetId;
use weir_stats::Key;

/// The cables before the servers of targets, outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeWays {
    pub chains: Vec<ProbeWay>,
    /// By list of targets, where any target has cables: the chain of each.
    pub of: BTreeMap<u32, Vec<u32>>,
}

impl ProbeWays {
    /// Adds the cables of a list's targets.
    pub fn add(&mut self, point: &Point, list: u32) {
        let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut of = Vec::new();
        for &target in &point.lists[list as usize] {
            let specs = only_way(point, target).map(|id| point.nodes[id as usize].spec);
            let is_cable = |spec: &u32| matches!(point.specs[*spec as usize], Spec::Cable { .. });
            let specs: Vec<u32> = specs.filter(is_cable).collect();
            let chains = &mut self.chains;
            of.push(*known.entry(specs).or_insert_with_key(|specs| {
                chains.push(ProbeWay(specs.iter().filter_map(|spec| cable(point, *spec)).collect()));
                chains.len() as u32 - 1
            }));
        }
        if known.keys().any(|specs| !specs.is_empty()) {
            self.of.insert(list, of);
        }
    }

    /// Whether probes of a list take time.
    pub fn take_time(&self, list: u32) -> bool {
        self.of.contains_key(&list)
    }

    /// How long a probe takes to a target, and back from there; `None`: it is lost.
    pub fn times(&self, list: u32, target: TargetId, key: Key) -> Option<(u64, u64)> {
        let Some(of) = self.of.get(&list) else { return Some((0, 0)) };
        self.chains[of[target.index()] as usize].times(key)
    }
}

pub(crate) fn cable(point: &Point, spec: u32) -> Option<Cable> {
    match &point.specs[spec as usize] {
        Spec::Cable { time, loss, resend_ns } => {
            Some(Cable { time: Sampler::new(time), loss: *loss, resend_ns: *resend_ns })
        }
        _ => None,
    }
}
