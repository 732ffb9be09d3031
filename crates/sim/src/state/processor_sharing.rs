//! The state of servers that share their cores among requests.

use crate::code::Code;
use crate::code::MemberId;
use crate::code::SlotId;
use crate::state::meter::{Gauge, Meter, Snapshot};
use weir_model::concurrent::{Concurrent, Jobs};

/// A server, and when its next tick is due.
#[derive(Clone, Default)]
pub(crate) struct Server {
    pub state: Concurrent,
    /// The tick that is pending; 0: none.
    pub due: u64,
    pub tick: u32,
}

/// All servers of a scenario.
#[derive(Default)]
pub(crate) struct Shares {
    pub servers: Vec<Server>,
    pub jobs: Jobs,
    /// By gauge.
    pub meters: Vec<Meter>,
    pub done: Vec<u32>,
}

impl Shares {
    pub fn new(code: &Code) -> Shares {
        if code.shares.is_empty() {
            return Shares::default();
        }
        Shares {
            servers: vec![Server::default(); code.servers.len()],
            meters: vec![Meter::default(); code.gauge_count as usize],
            ..Shares::default()
        }
    }

    /// Requests that are inside or wait.
    pub fn left(&self) -> u64 {
        self.servers.iter().map(|s| u64::from(s.state.inside()) + u64::from(s.state.waiting())).sum()
    }

    /// Whether a request is inside of a server, or waits there.
    pub fn has_inside(&self, server: u32) -> bool {
        let state = &self.servers[server as usize].state;
        state.inside() > 0 || state.waiting() > 0
    }

    /// The remaining work of a request at a server, ns.
    pub fn left_ns(&self, code: &Code, server: u32, slot: SlotId, now_ns: u64) -> u64 {
        let (site, _) = code.servers[server as usize];
        let law = &code.shares[site as usize].law;
        self.servers[server as usize].state.left_ns(law, &self.jobs, now_ns, slot.0)
    }

    /// Adds the integrals of all servers at an instant; the longest line is counted anew from there.
    pub fn add_to(&self, snapshot: &mut Snapshot, gauges: &mut [Gauge], code: &Code, at: u64) {
        for site in &code.shares {
            for member in (site.base..site.base + site.members).map(MemberId) {
                let gauge = code.row(site.gauge, member);
                (snapshot.busy[gauge], snapshot.waiting[gauge]) = self.meters[gauge].until(at);
                let waiting = self.servers[member.index_from(site.offset)].state.waiting();
                gauges[gauge].most = gauges[gauge].most.max(waiting);
            }
        }
    }
}
