//! Connections to servers: a request takes one where it comes to a server, opens it, or waits for it.
//!
//! - In virtual time: what opening takes, by the request that opens, and then the server's work for it
//!   ([`crate::features::handshakes`]); others wait for it by HTTP/2. Which connection is taken,
//!   and when each ends, is decided in [`weir_model::connections`].
//! - Given back when cut off: the connection, which ends by HTTP/1.1; an opening is handed to the next
//!   request that waits.
//! - Draws: how long an opening takes, and how old the connection may become, by request, way and place of the server.

use crate::code::connections::ConnectionSite;
use crate::code::order::Entry;
use crate::code::{MemberId, SlotId};
use crate::engine::{END_OF_TIME, Engine};
use crate::state::connections::{Connections, NO_CONNECTION, Opening, OpeningPhase};
use crate::state::request_state::{FLAGS, LINE};
use weir_model::connections::{Come, ConnId, Pair};
use weir_policy::Kind;

impl Engine<'_> {
    /// A request comes to a server; false: it waits for a connection.
    pub(crate) fn take_connection(
        &mut self,
        slot: SlotId,
        at: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) -> bool {
        let Some(tables) = self.core.code().connections.as_deref() else { return true };
        let server = tables.server(at, member);
        let (instance, on) = (self.features.hops.instance(slot), u32::from(self.core.scope(slot).meets));
        let is_down = self.is_process_down(server);
        let Some(of) = self.features.connections.as_deref_mut() else { return true };
        let row = of.pools.row(Pair { instance, on, server });
        match of.pools.come(row, slot.0, now_ns) {
            Come::Takes(ConnId(conn)) => {
                self.goes_by(slot, conn);
                return true;
            }
            Come::Opens if is_down => {
                of.pools.next_to_fail(row);
                self.goes_by(slot, NO_CONNECTION);
                return true;
            }
            Come::Opens => {
                of.begin(slot, Opening::new(row));
                if self.opens(slot, at, now_ns) {
                    self.finish_opening(slot, at, now_ns);
                    return true;
                }
            }
            Come::Waits => of.begin(slot, Opening::new(row)),
        }
        self.charge(slot, tables.sites[at as usize].stage, member, now_ns.wrapping_neg());
        self.leave_at(slot, (pc as u32 + 1) | LINE, member, depth);
        false
    }

    /// Whether a process on the way to a server is down.
    fn is_process_down(&self, server: u32) -> bool {
        let tables = self.core.code().connections.as_deref();
        let lines = tables.and_then(|tables| tables.lines_of.get(server as usize));
        lines.is_some_and(|lines| {
            lines.iter().any(|line| !self.features.lines.state[*line as usize].is_up_now())
        })
    }

    /// A request goes on with a connection.
    fn goes_by(&mut self, slot: SlotId, conn: u32) {
        let state = self.core.state(slot);
        let (depth, member) = (usize::from(state.depth), state.member);
        // Its position is behind the step that takes a connection.
        let back = state.pc & !FLAGS;
        self.core.states_mut().set_frame(slot, depth, [back, member.0, conn]);
        self.core.state_mut(slot).depth += 1;
    }

    /// A request begins to open a connection; true: it takes no time.
    fn opens(&mut self, slot: SlotId, at: u32, now_ns: u64) -> bool {
        let Some(tables) = self.core.code().connections.as_deref() else { return true };
        let site = &tables.sites[at as usize];
        let key = self.draw_key(slot, site.key, site.visits);
        let drawn = Connections::draw(tables, at, self.core.state(slot).member, key);
        let Some(of) = self.features.connections.as_deref_mut() else { return true };
        if let Some(opening) = of.opening(slot) {
            of.begin(slot, Opening { fails: drawn.fails, sooner_ns: drawn.sooner_ns, ..opening });
        }
        if drawn.takes_ns == 0 {
            return !self.begin_handshake(slot, at, now_ns);
        }
        let (at_ns, tag) =
            (now_ns.saturating_add(drawn.takes_ns).min(END_OF_TIME), self.core.state(slot).tag);
        let key = self.step_key(slot);
        self.core.schedule(now_ns, Entry { at: at_ns, key, who: slot.0, tag });
        false
    }

    /// The time to open a connection is over for the request that opens it, or the server's work for it; false: that work
    /// begins, and the request waits for it.
    pub(crate) fn connection_is_due(&mut self, slot: SlotId, at: u32, member: MemberId, now_ns: u64) -> bool {
        let Some(tables) = self.core.code().connections.as_deref() else { return true };
        let Some(opening) = self.features.connections.as_deref().and_then(|of| of.opening(slot)) else {
            return true;
        };
        let is_down =
            opening.phase == OpeningPhase::Broken || self.is_process_down(tables.server(at, member));
        let is_open = !opening.is_over && !opening.fails && !is_down;
        if is_open && opening.phase == OpeningPhase::Connects && self.begin_handshake(slot, at, now_ns) {
            return false;
        }
        self.stops_waiting(slot, at, now_ns);
        self.end_opening(slot, at, opening, is_down, now_ns);
        true
    }

    fn end_opening(&mut self, slot: SlotId, at: u32, opening: Opening, is_down: bool, now_ns: u64) {
        let Some(tables) = self.core.code().connections.as_deref() else { return };
        let (site, member) = (&tables.sites[at as usize], self.core.state(slot).member);
        if opening.is_over {
            return self.connection_fails(slot, site, member);
        }
        if !opening.fails && !is_down {
            return self.finish_opening(slot, at, now_ns);
        }
        if opening.fails {
            self.connection_fails(slot, site, member);
        } else {
            self.goes_by(slot, NO_CONNECTION);
        }
        // The requests that waited for it fail too.
        while let Some(who) =
            self.features.connections.as_deref_mut().and_then(|of| of.pools.next_to_fail(opening.row))
        {
            let who = SlotId(who);
            if !opening.fails {
                self.stops_waiting(who, at, now_ns);
                self.goes_by(who, NO_CONNECTION);
            } else if let Some(of) = self.features.connections.as_deref_mut() {
                of.begin(who, Opening { is_over: true, ..opening });
            }
            self.wake(who, now_ns);
        }
    }

    /// The opening that a request waited for has failed.
    fn connection_fails(&mut self, slot: SlotId, site: &ConnectionSite, member: MemberId) {
        self.count_refusal(slot, member, site.stage);
        self.refuse(slot, member, site.stage, Kind::ConnectFailed);
        self.core.state_mut(slot).pc = site.skip;
        if self.core.code().details {
            self.features.details.slots[slot.index()].relayed = false;
        }
    }

    /// Ends a request's wait for a connection; its position is behind the step at which it waited.
    fn stops_waiting(&mut self, slot: SlotId, at: u32, now_ns: u64) {
        let Some(tables) = self.core.code().connections.as_deref() else { return };
        let member = self.core.state(slot).member;
        self.charge(slot, tables.sites[at as usize].stage, member, now_ns);
        self.core.state_mut(slot).pc &= !LINE;
    }

    /// A connection is open and takes the request that opened it, then waiting requests as far as it has room. The first of the
    /// rest opens the next one.
    fn finish_opening(&mut self, slot: SlotId, at: u32, now_ns: u64) {
        let mut opener = slot;
        loop {
            let Some(of) = self.features.connections.as_deref_mut() else { return };
            let Some(Opening { row, sooner_ns, .. }) = of.opening(opener) else { return };
            let ConnId(conn) = of.pools.opened(row, now_ns, sooner_ns);
            self.goes_by(opener, conn);
            if opener != slot {
                self.wake(opener, now_ns);
            }
            while let Some((who, ConnId(conn))) =
                self.features.connections.as_deref_mut().and_then(|of| of.pools.next_to_go(row, now_ns))
            {
                self.stops_waiting(SlotId(who), at, now_ns);
                self.goes_by(SlotId(who), conn);
                self.wake(SlotId(who), now_ns);
            }
            match self.next_opens(row, at, now_ns) {
                Some(next) => opener = next,
                None => return,
            }
        }
    }

    /// The first waiting request opens a connection. It is returned if that takes no time.
    fn next_opens(&mut self, row: weir_model::connections::RowId, at: u32, now_ns: u64) -> Option<SlotId> {
        let next = self.features.connections.as_deref_mut()?.pools.next_opener(row).map(SlotId)?;
        let at_once = self.opens(next, at, now_ns);
        if at_once {
            self.stops_waiting(next, at, now_ns);
        }
        at_once.then_some(next)
    }

    /// A request is cut off while it opens a connection, or waits for one.
    pub(crate) fn connecting_is_cut(&mut self, slot: SlotId, at: u32, member: MemberId, now_ns: u64) {
        let Some(tables) = self.core.code().connections.as_deref() else { return };
        self.charge(slot, tables.sites[at as usize].stage, member, now_ns);
        let Some(of) = self.features.connections.as_deref_mut() else { return };
        let Some(Opening { row, phase, .. }) = of.opening(slot) else { return };
        if let OpeningPhase::Shakes(handshake) = phase {
            self.break_handshake(handshake, now_ns);
        }
        let Some(of) = self.features.connections.as_deref_mut() else { return };
        let Some(next) = of.pools.abandon(row, slot.0).map(SlotId) else { return };
        if self.opens(next, at, now_ns) {
            self.stops_waiting(next, at, now_ns);
            self.finish_opening_of_another(next, at, now_ns);
        }
    }

    /// The same for a request that another one's end lets go on.
    fn finish_opening_of_another(&mut self, slot: SlotId, at: u32, now_ns: u64) {
        self.finish_opening(slot, at, now_ns);
        self.wake(slot, now_ns);
    }

    /// A request gives its connection back; `is_broken_off`: its exchange did not end.
    pub(crate) fn return_connection(&mut self, conn: u32, now_ns: u64, is_broken_off: bool) {
        if conn != NO_CONNECTION
            && let Some(of) = self.features.connections.as_deref_mut()
        {
            of.pools.give_back(ConnId(conn), now_ns, is_broken_off);
        }
    }

    /// Balancers have seen members of fleets come and go.
    pub(crate) fn connections_see(&mut self, now_ns: u64) {
        let code = self.core.code();
        if let Some(of) = self.features.connections.as_deref_mut() {
            of.see(code, &mut self.features.changes, now_ns);
        }
    }
}
