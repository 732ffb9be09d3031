//! Connections to servers: a branch takes one where it comes to a server, opens it, or waits for it.

use super::branch::Phase;
use super::run::{Flow, Reference, what};
use crate::code::SlotId;
use crate::code::order::{Class, Entry, order_key, ranked};
use crate::state::connections::{Connections, NO_CONNECTION, Opening, OpeningPhase, breaks_off};
use weir_model::connections::{Come, ConnId, Pair};
use weir_policy::Kind;

impl Reference<'_> {
    /// A branch comes to a server.
    pub(super) fn come_to_server(&mut self, slot: SlotId, at: u32) -> Flow {
        let Some(tables) = self.code.connections.as_deref() else { return Flow::On };
        let branch = &self.branches.slots[slot.index()];
        let server = tables.server(at, branch.member);
        let pair = Pair { instance: branch.instance, on: branch.meets, server };
        let is_down = self.is_process_down(server);
        let Some(of) = self.connections.as_deref_mut() else { return Flow::On };
        let row = of.pools.row(pair);
        match of.pools.come(row, slot.0, self.now_ns) {
            Come::Takes(ConnId(conn)) => self.goes_by(slot, conn),
            Come::Opens if is_down => {
                of.pools.next_to_fail(row);
                self.goes_by(slot, NO_CONNECTION);
            }
            come => {
                of.begin(slot, Opening::new(row));
                let branch = &mut self.branches.slots[slot.index()];
                (branch.phase, branch.since) = (Phase::Line, self.now_ns);
                if come == Come::Waits || !self.opens(slot, at) {
                    self.stops(slot);
                    return Flow::Stop;
                }
                self.finish_opening(slot, at);
            }
        }
        Flow::On
    }

    fn is_process_down(&self, server: u32) -> bool {
        let tables = self.code.connections.as_deref();
        let lines = tables.and_then(|tables| tables.lines_of.get(server as usize));
        lines.is_some_and(|lines| lines.iter().any(|line| !self.lines[*line as usize].is_up_now()))
    }

    /// A branch goes on with a connection.
    fn goes_by(&mut self, slot: SlotId, conn: u32) {
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = Phase::Inside;
        self.conns.insert((slot.0, branch.depth, branch.stage), conn);
    }

    /// A branch begins to open a connection; true: it takes no time.
    fn opens(&mut self, slot: SlotId, at: u32) -> bool {
        let Some(tables) = self.code.connections.as_deref() else { return true };
        let site = &tables.sites[at as usize];
        let key = super::build::DrawKey { key: site.key, visits: site.visits };
        let key = self.draw(slot, key);
        let drawn = Connections::draw(tables, at, self.branches.slots[slot.index()].member, key);
        let Some(of) = self.connections.as_deref_mut() else { return true };
        if let Some(opening) = of.opening(slot) {
            of.begin(slot, Opening { fails: drawn.fails, sooner_ns: drawn.sooner_ns, ..opening });
        }
        if drawn.takes_ns == 0 {
            return !self.begin_handshake(slot, at);
        }
        let branch = &self.branches.slots[slot.index()];
        let at_ns = self.now_ns.saturating_add(drawn.takes_ns).min(u64::MAX - 1);
        let key = ranked(order_key(Class::Step, branch.order), branch.rank);
        self.schedule(Entry { at: at_ns, key, who: what::GO_ON | slot.0, tag: branch.epoch }, false);
        false
    }

    /// The time to open a connection is over for the branch that opens it, or the server's work for it.
    pub(super) fn connection_is_due(&mut self, slot: SlotId, at: u32) -> Flow {
        let Some(tables) = self.code.connections.as_deref() else { return Flow::On };
        let server = tables.server(at, self.branches.slots[slot.index()].member);
        let Some(opening) = self.connections.as_deref().and_then(|of| of.opening(slot)) else {
            return Flow::On;
        };
        let is_down = opening.phase == OpeningPhase::Broken || self.is_process_down(server);
        if !opening.fails && !is_down {
            if opening.phase == OpeningPhase::Connects && self.begin_handshake(slot, at) {
                return Flow::Stop;
            }
            self.finish_opening(slot, at);
            return Flow::On;
        }
        while let Some(who) =
            self.connections.as_deref_mut().and_then(|of| of.pools.next_to_fail(opening.row)).map(SlotId)
        {
            if opening.fails {
                self.refuse(who, Kind::ConnectFailed);
                self.awake(who, Phase::Cut);
            } else {
                self.goes_by(who, NO_CONNECTION);
                self.awake(who, Phase::Inside);
            }
        }
        if opening.fails {
            return self.refuse(slot, Kind::ConnectFailed);
        }
        self.goes_by(slot, NO_CONNECTION);
        Flow::On
    }

    /// A branch that waited goes on, in its turn.
    fn awake(&mut self, slot: SlotId, phase: Phase) {
        self.branches.slots[slot.index()].phase = Phase::Line;
        self.charge(slot);
        let branch = &mut self.branches.slots[slot.index()];
        branch.epoch = branch.epoch.wrapping_add(1);
        self.wake(slot, phase);
    }

    /// A connection is open and takes the branch that opened it, then waiting branches as far as it has room. The first of the
    /// rest opens the next one.
    fn finish_opening(&mut self, slot: SlotId, at: u32) {
        let mut opener = slot;
        loop {
            let Some(of) = self.connections.as_deref_mut() else { return };
            let Some(Opening { row, sooner_ns, .. }) = of.opening(opener) else { return };
            let ConnId(conn) = of.pools.opened(row, self.now_ns, sooner_ns);
            self.goes_by(opener, conn);
            if opener != slot {
                self.awake(opener, Phase::Inside);
            }
            while let Some((who, ConnId(conn))) =
                self.connections.as_deref_mut().and_then(|of| of.pools.next_to_go(row, self.now_ns))
            {
                self.goes_by(SlotId(who), conn);
                self.awake(SlotId(who), Phase::Inside);
            }
            let next = self.connections.as_deref_mut().and_then(|of| of.pools.next_opener(row)).map(SlotId);
            match next {
                Some(next) if self.opens(next, at) => opener = next,
                _ => return,
            }
        }
    }

    /// A branch is cut off while it opens a connection, or waits for one.
    pub(super) fn connecting_is_cut(&mut self, slot: SlotId, at: u32) {
        let Some(of) = self.connections.as_deref_mut() else { return };
        let Some(Opening { row, phase, .. }) = of.opening(slot) else { return };
        if let OpeningPhase::Shakes(handshake) = phase {
            self.break_handshake(handshake);
        }
        let Some(of) = self.connections.as_deref_mut() else { return };
        let Some(next) = of.pools.abandon(row, slot.0).map(SlotId) else { return };
        if self.opens(next, at) {
            self.finish_opening(next, at);
            self.awake(next, Phase::Inside);
        }
    }

    /// A branch has returned from a server, or is cut off behind it.
    pub(super) fn return_connection(&mut self, slot: SlotId, place: (u16, u32), is_cut: bool) {
        let Some(conn) = self.conns.remove(&(slot.0, place.0, place.1)) else { return };
        let is_broken_off = is_cut || breaks_off(self.branches.slots[slot.index()].outcome);
        if conn != NO_CONNECTION
            && let Some(of) = self.connections.as_deref_mut()
        {
            of.pools.give_back(ConnId(conn), self.now_ns, is_broken_off);
        }
    }

    /// Balancers have seen members of fleets come and go.
    pub(super) fn connections_see(&mut self) {
        if let Some(of) = self.connections.as_deref_mut() {
            of.see(self.code, &mut self.changes, self.now_ns);
        }
    }

    /// A timeline goes down.
    pub(super) fn connections_end(&mut self, line: u32) {
        self.break_handshakes_on(line);
        if let Some(of) = self.connections.as_deref_mut() {
            of.process_ends(self.code, line, self.now_ns);
        }
    }
}
