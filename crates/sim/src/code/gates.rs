//! Gates: health checks that flap on purpose. What they decide is [`weir_policy::gate`].

use std::net::{IpAddr, Ipv4Addr};
use weir_model::draws::purpose;
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
}

impl GateTables {
    /// Adds a site with the gates of these members, which have these numbers; returns its number.
    pub fn add(&mut self, args: &GateArgs, base: u32, numbers: impl Iterator<Item = u32>) -> u32 {
        let site = self.sites.len() as u32;
        self.sites.push(GateSite { args: args.clone(), offset: (self.of.len() as u32).wrapping_sub(base) });
        self.of.extend(numbers.map(|number| (site, number.to_string())));
        site
    }

    /// Their states at the start: what runs then has run before.
    pub fn open(&self) -> Vec<Gate> {
        self.of.iter().map(|(site, _)| Gate::open(self.sites[*site as usize].args.clone(), 0)).collect()
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
