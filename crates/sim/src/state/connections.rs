//! The connections of a replication, and the requests that open them.

use crate::code::Code;
use crate::code::SlotId;
use crate::code::connections::ConnectionTables;
use crate::state::changes::Changes;
use crate::state::seer::Move;
use weir_model::connections::{Count, Counts, Pools, RowId};
use weir_policy::{Kind, Outcome};
use weir_stats::Key;

/// The connections, and what is counted of them.
pub(crate) struct Connections {
    pub pools: Pools,
    /// By slot, the connection that a request opens or waits for.
    openings: Vec<Option<Opening>>,
    /// The counts at the window's two instants.
    pub marks: [Counts; 2],
}

/// What was counted of connections in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTotals {
    /// The counts at the window's two instants.
    pub marks: [Counts; 2],
    /// All connections from the start to the end.
    pub run: Count,
}

/// A connection that is being opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub row: RowId,
    /// Whether it will take longer than it may.
    pub fails: bool,
    /// How much earlier than its limit says it is too old, ns.
    pub sooner_ns: u64,
    /// Whether it has failed, and the request that waited for it is about to learn that.
    pub is_over: bool,
}

/// The number of a request that has no connection: its server's process is down.
pub(crate) const NO_CONNECTION: u32 = u32::MAX;

/// Whether a request that ends so has broken off its exchange.
pub(crate) fn breaks_off(outcome: Outcome) -> bool {
    outcome
        .is_some_and(|kind| matches!(kind, Kind::Cancelled | Kind::Reset | Kind::ConnectFailed | Kind::Lost))
}

/// How long an opening takes, ns.
pub(crate) struct OpeningDraw {
    pub takes_ns: u64,
    pub fails: bool,
    pub sooner_ns: u64,
}

/// The number of the draw of a connection's age, after that of its opening.
const AGE: u64 = 1;

impl Connections {
    /// Without any connection; `None` where the code has none.
    pub fn new(code: &Code) -> Option<Box<Connections>> {
        let tables = code.connections.as_deref()?;
        let pools = Pools::new(tables.servers.clone(), tables.instances.clone());
        Some(Box::new(Connections { pools, openings: Vec::new(), marks: Default::default() }))
    }

    /// What a request draws that opens a connection at a site, with its key there.
    pub fn draw(tables: &ConnectionTables, at: u32, key: Key) -> OpeningDraw {
        let site = &tables.sites[at as usize];
        let takes_ns = site.connect.draw(key);
        let sooner = |age_ns: u64| key.with(AGE).bits() % (age_ns / 10).max(1);
        let fails = takes_ns > site.timeout_ns;
        OpeningDraw {
            takes_ns: if fails { site.timeout_ns } else { takes_ns.saturating_add(site.cost_ns) },
            fails,
            sooner_ns: site.age_ns.map_or(0, sooner),
        }
    }

    /// A request opens a connection, or waits for one.
    pub fn begin(&mut self, slot: SlotId, opening: Opening) {
        if self.openings.len() <= slot.index() {
            self.openings.resize(slot.index() + 1, None);
        }
        self.openings[slot.index()] = Some(opening);
    }

    /// What it opens or waits for.
    pub fn opening(&self, slot: SlotId) -> Option<Opening> {
        self.openings.get(slot.index()).copied().flatten()
    }

    /// Notes the counts at one of the window's two instants.
    pub fn mark(&mut self, which: usize, at_ns: u64) {
        self.marks[which] = self.pools.counts(at_ns);
    }

    /// What was counted in the whole run, which ends now.
    pub fn totals(&mut self, now_ns: u64) -> ConnectionTotals {
        let run = self.pools.counts(now_ns).groups[0];
        ConnectionTotals { marks: std::mem::take(&mut self.marks), run }
    }

    /// Members of fleets have left or joined, and balancers have seen it.
    pub fn see(&mut self, code: &Code, changes: &mut Changes, now_ns: u64) {
        let Some(tables) = code.connections.as_deref() else { return };
        for member in changes.left.drain(..) {
            let instances = tables.of_member.get(&member).map_or(&[][..], |(_, instances)| instances);
            instances.iter().for_each(|instance| self.pools.instance_leaves(*instance, now_ns));
        }
        for (view, of) in changes.seen.drain(..) {
            let Some(view) = code.changes.as_deref().map(|changes| &changes.views[view as usize]) else {
                continue;
            };
            let instances = tables.instances_of.get(&view.instance).map_or(&[][..], Vec::as_slice);
            let servers = tables.of_member.get(&of.member()).map_or(&[][..], |(servers, _)| servers);
            for (&instance, &server) in instances.iter().flat_map(|i| servers.iter().map(move |s| (i, s))) {
                match of {
                    Move::Add(_) => self.pools.server_returns(instance, server),
                    Move::Remove(_) => self.pools.server_leaves(instance, server, now_ns),
                }
            }
        }
    }

    /// A timeline goes down: the connections of the servers on it end.
    pub fn process_ends(&mut self, code: &Code, line: u32, now_ns: u64) {
        let tables = code.connections.as_deref();
        let servers = tables.and_then(|tables| tables.servers_of.get(&line)).map_or(&[][..], Vec::as_slice);
        servers.iter().for_each(|server| self.pools.process_ends(*server, now_ns));
    }
}
