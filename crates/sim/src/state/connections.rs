//! The connections of a replication, and the requests that open them.

use crate::code::Code;
use crate::code::connections::ConnectionTables;
use crate::code::{MemberId, SlotId};
use crate::state::changes::Changes;
use crate::state::seer::Move;
use std::collections::BTreeMap;
use weir_model::connections::{Count, Counts, Pools, RowId};
use weir_policy::{Kind, Outcome};
use weir_stats::Key;

/// The connections, and what is counted of them.
pub(crate) struct Connections {
    pub pools: Pools,
    /// By slot, the connection that a request opens or waits for.
    openings: Vec<Option<Opening>>,
    /// Servers' work for new connections that is in progress, by the slot that it has.
    pub handshakes: BTreeMap<u32, Handshake>,
    begun: u64,
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
    pub phase: OpeningPhase,
}

impl Opening {
    /// One that a request begins, or waits for.
    pub fn new(row: RowId) -> Opening {
        Opening { row, fails: false, sooner_ns: 0, is_over: false, phase: OpeningPhase::Connects }
    }
}

/// How far an opening is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpeningPhase {
    /// The time that it takes is not over.
    Connects,
    /// The server does its work for it, by this slot.
    Shakes(SlotId),
    /// That is done.
    Done,
    /// The server's process has ended over it.
    Broken,
}

/// The work of a server for a new connection, while it is being done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    /// The request that opens the connection.
    pub opener: SlotId,
    pub server: u32,
    pub cost_ns: u64,
    /// Its number among all: the order in which they began.
    pub number: u64,
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
        let (openings, handshakes) = (Vec::new(), BTreeMap::new());
        Some(Box::new(Connections { pools, openings, handshakes, begun: 0, marks: Default::default() }))
    }

    /// What a request draws that opens a connection at a site to the server of a member, with its key there.
    pub fn draw(tables: &ConnectionTables, at: u32, member: MemberId, key: Key) -> OpeningDraw {
        let site = &tables.sites[at as usize];
        let takes_ns = site.connect.draw(key);
        let sooner = |age_ns: u64| key.with(AGE).bits() % (age_ns / 10).max(1);
        let fails = takes_ns > site.timeout_ns;
        let cost_ns = if tables.handshake(at, member).is_some() { 0 } else { site.cost_ns };
        OpeningDraw {
            takes_ns: if fails { site.timeout_ns } else { takes_ns.saturating_add(cost_ns) },
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

    /// A server begins its work for the connection that a request opens, by a slot.
    pub fn shake(&mut self, slot: SlotId, opener: SlotId, server: u32, cost_ns: u64) {
        self.begun += 1;
        self.handshakes.insert(slot.0, Handshake { opener, server, cost_ns, number: self.begun });
        self.turn_to(opener, OpeningPhase::Shakes(slot));
    }

    /// A server's work for a connection is over, or ends early; returns the request that opens it.
    pub fn end_handshake(&mut self, slot: SlotId, phase: OpeningPhase) -> Option<SlotId> {
        let Handshake { opener, .. } = self.handshakes.remove(&slot.0)?;
        self.turn_to(opener, phase);
        Some(opener)
    }

    /// The server has refused the connection that a request opens.
    pub fn refuse(&mut self, opener: SlotId) {
        if let Some(Some(opening)) = self.openings.get_mut(opener.index()) {
            opening.fails = true;
        }
    }

    fn turn_to(&mut self, opener: SlotId, to: OpeningPhase) {
        if let Some(Some(opening)) = self.openings.get_mut(opener.index()) {
            opening.phase = to;
        }
    }

    /// The handshakes of servers that end with a timeline, in the order in which they began.
    pub fn handshakes_on(&self, code: &Code, line: u32) -> Vec<SlotId> {
        let tables = code.connections.as_deref().filter(|_| !self.handshakes.is_empty());
        let servers = tables.and_then(|tables| tables.servers_of.get(&line)).map_or(&[][..], Vec::as_slice);
        let on = self.handshakes.iter().filter(|(_, shake)| servers.contains(&shake.server));
        let mut found: Vec<(u64, SlotId)> = on.map(|(slot, shake)| (shake.number, SlotId(*slot))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Notes the counts at one of the window's two instants.
    pub fn mark(&mut self, which: usize, at_ns: u64) {
        self.marks[which] = self.pools.counts(at_ns);
    }

    /// The run is over: what is still on its way is given back, and ends no connection.
    pub fn end_run(&mut self) {
        self.pools.end_run();
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
