//! Gates: health checks that flap on purpose. What they decide is [`weir_policy::gate`].

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use weir_model::draws::purpose;
use weir_plan::NodeId;
use weir_policy::gate::{Asker, Gate, GateArgs, Place, asker_text, murmur3_x86_32};
use weir_stats::Key;

/// The gates of one site.
#[derive(Clone, Debug)]
pub(crate) struct GateSite {
    pub args: GateArgs,
    /// Member to gate.
    pub offset: u32,
}

/// All gates of a topology.
#[derive(Clone, Debug, Default)]
pub(crate) struct GateTables {
    pub sites: Vec<GateSite>,
    /// By gate, the number of its site, and the name of its process.
    pub of: Vec<(u32, String)>,
    /// By gate, its node, and the number of its place.
    nodes: Vec<(NodeId, u32)>,
    /// By place, its gates.
    places: BTreeMap<u32, Vec<u32>>,
}

impl GateTables {
    /// Adds a site with the gates of these members, each with its node, place and number; returns its number.
    pub fn add(&mut self, args: &GateArgs, base: u32, of: impl Iterator<Item = (NodeId, u32, u32)>) -> u32 {
        let (site, first) = (self.sites.len() as u32, self.of.len() as u32);
        self.sites.push(GateSite { args: args.clone(), offset: first.wrapping_sub(base) });
        for (gate, (node, place, number)) in (first..).zip(of) {
            self.of.push((site, number.to_string()));
            self.nodes.push((node, place));
            self.places.entry(place).or_default().push(gate);
        }
        site
    }

    /// Their states at the start: what runs then has run before.
    pub fn open(&self) -> Vec<Gate> {
        self.of.iter().map(|(site, _)| Gate::open(self.sites[*site as usize].args.clone(), 0)).collect()
    }

    /// The other gates of a gate's place, with their nodes, if it judges by them.
    pub fn judged_by(&self, gate: u32) -> impl Iterator<Item = (u32, NodeId)> {
        let args = &self.sites[self.of[gate as usize].0 as usize].args;
        let is_relative = args.work.as_ref().is_some_and(|work| work.is_relative);
        let beside = self.places.get(&self.nodes[gate as usize].1).filter(|_| is_relative);
        let others = beside.into_iter().flatten().copied().filter(move |other| *other != gate);
        others.map(|other| (other, self.nodes[other as usize].0))
    }

    /// A balancer as one of these gates knows it: by its address, as a real one does. `picks`: the key of the balancer's picks,
    /// `source`: the address that its checks come from.
    pub fn asker(&self, gate: u32, source: Option<IpAddr>, picks: Key) -> Asker {
        let drawn = || {
            let [_, x, y, z] = (picks.with(purpose::ASKER).bits() as u32).to_be_bytes();
            IpAddr::V4(Ipv4Addr::new(10, x, y, z))
        };
        let (site, id) = &self.of[gate as usize];
        let (flap, text) = (self.sites[*site as usize].args.flap, asker_text(source.unwrap_or_else(drawn)));
        Asker { number: murmur3_x86_32(text.as_bytes(), 0), place: Place::new(flap, id, &text) }
    }
}
