//! The work of a server for a new connection (`connect_cost`): at the cores that its requests share, at once and without
//! a thread, or in a slot of its first queue.
//!
//! - In virtual time: the work, and the wait for a slot. It is not counted as a request, and has a slot of its own,
//!   as a health check does.
//! - Given back when the opening is cut off, or when the process crashes: what it holds.
//! - Draws: nothing.

use crate::code::{MemberId, Op, SlotId, Target};
use crate::engine::Engine;
use crate::state::connections::OpeningPhase;
use crate::state::processor_sharing::Shares;
use crate::state::request_state::{CHECK, LINE, PARKED};
use weir_stats::Key;

impl Engine<'_> {
    /// Whether a slot is a handshake, rather than a health check.
    pub(crate) fn is_handshake(&self, slot: SlotId) -> bool {
        self.features.connections.as_deref().is_some_and(|of| of.handshakes.contains_key(&slot.0))
    }

    /// The server begins its work for the connection that a request opens; false: it has none to do.
    pub(crate) fn begin_handshake(&mut self, opener: SlotId, at: u32, now_ns: u64) -> bool {
        let Some(tables) = self.core.code().connections.as_deref() else { return false };
        let from = *self.core.state(opener);
        let Some(Target { pc, member }) = tables.handshake(at, from.member) else { return false };
        let (server, cost_ns) = (tables.server(at, from.member), tables.sites[at as usize].cost_ns);
        let slot = self.core.states_mut().add(from.ordinal, now_ns, Key::from_bits(0), false);
        self.core.scopes_mut().begin(slot);
        self.features.hops.begin(slot);
        self.features.details.begin(slot, 0, None);
        self.core.scope_mut(slot).rank = self.core.scope(opener).rank;
        if let Some(of) = self.features.connections.as_deref_mut() {
            of.shake(slot, opener, server, cost_ns);
        }
        self.leave_at(slot, (pc + 1) | CHECK, member, 0);
        match self.core.code().steps[pc as usize].op {
            Op::EnterShare { share } => self.shake_at_cores(slot, share, member, cost_ns, now_ns),
            Op::EnterQueue { queue } => {
                let comes_in = self.check_enters(slot, queue, pc as usize, member, 0, now_ns);
                if self.core.state(slot).outcome().is_some() {
                    self.end_handshake(slot, false, now_ns);
                } else if comes_in {
                    self.check_sleeps(slot, now_ns, cost_ns);
                }
            }
            _ => {}
        }
        true
    }

    /// The work begins at cores that are shared.
    fn shake_at_cores(&mut self, slot: SlotId, share: u32, member: MemberId, cost_ns: u64, now_ns: u64) {
        let site = &self.core.code().shares[share as usize];
        let index = member.number_from(site.offset);
        let at = self.core.code().row(site.gauge, member);
        let shown_ns = self.shown_ns(site.pause, member, now_ns);
        let Shares { servers, jobs, meters, .. } = &mut self.features.shares;
        let state = &mut servers[index as usize].state;
        let before = site.law.busy_cores(state.inside());
        state.enter_without_thread(&site.law, jobs, shown_ns, slot.0, cost_ns);
        meters[at].add(now_ns, site.law.busy_cores(state.inside()) - before, 0.0);
        self.look_again(index, now_ns);
    }

    /// A handshake goes on: it has a slot, or its work is done, or it has waited too long.
    pub(crate) fn handshake_goes_on(&mut self, slot: SlotId, now_ns: u64) {
        let state = *self.core.state(slot);
        let Some(of) = self.features.connections.as_deref().and_then(|of| of.handshakes.get(&slot.0)) else {
            return;
        };
        let is_inside = state.pc & (LINE | PARKED) == 0;
        if is_inside && matches!(self.entered(slot), Some(Op::EnterQueue { .. })) {
            self.check_sleeps(slot, now_ns, of.cost_ns);
            return;
        }
        self.give_back_handshake(slot, now_ns);
        self.end_handshake(slot, state.pc & LINE == 0, now_ns);
    }

    /// The step at which a handshake waits or works.
    fn entered(&self, slot: SlotId) -> Option<Op> {
        let pc = self.core.state(slot).pc & !(LINE | PARKED | CHECK);
        self.core.code().steps.get(pc.wrapping_sub(1) as usize).map(|step| step.op)
    }

    fn give_back_handshake(&mut self, slot: SlotId, now_ns: u64) {
        let (state, code) = (*self.core.state(slot), self.core.code());
        match self.entered(slot) {
            Some(Op::EnterQueue { queue }) => {
                self.leaves_node(code.queues[queue as usize].stage, state.member, now_ns);
            }
            Some(Op::EnterShare { share }) => {
                self.leaves_node(code.shares[share as usize].stage, state.member, now_ns);
            }
            _ => {}
        }
        match self.entered(slot) {
            Some(Op::EnterQueue { queue }) if state.pc & LINE != 0 => {
                self.leave_line(slot, queue, state.member, now_ns);
            }
            Some(Op::EnterQueue { queue }) => self.give_back_slot(queue, state.member, 0, now_ns),
            Some(Op::EnterShare { share }) => self.leave_share(slot, share, state.member, 0, now_ns),
            _ => {}
        }
    }

    /// A handshake is over; the request that opens the connection goes on. `is_done`: else the connection fails.
    fn end_handshake(&mut self, slot: SlotId, is_done: bool, now_ns: u64) {
        let opener = self.remove_handshake(slot, OpeningPhase::Done);
        let Some(opener) = opener else { return };
        if let Some(of) = self.features.connections.as_deref_mut()
            && !is_done
        {
            of.refuse(opener);
        }
        self.wake(opener, now_ns);
    }

    fn remove_handshake(&mut self, slot: SlotId, phase: OpeningPhase) -> Option<SlotId> {
        self.core.scopes_mut().end(slot);
        self.core.states_mut().remove(slot);
        self.features.connections.as_deref_mut()?.end_handshake(slot, phase)
    }

    /// A handshake ends before its work is done.
    pub(crate) fn break_handshake(&mut self, slot: SlotId, now_ns: u64) -> Option<SlotId> {
        self.give_back_handshake(slot, now_ns);
        self.remove_handshake(slot, OpeningPhase::Broken)
    }

    /// The process of servers crashes: they do no work for connections any more.
    pub(crate) fn break_handshakes_on(&mut self, line: u32, now_ns: u64) {
        let code = self.core.code();
        let found = self.features.connections.as_deref().map(|of| of.handshakes_on(code, line));
        for slot in found.unwrap_or_default() {
            if let Some(opener) = self.break_handshake(slot, now_ns) {
                self.wake(opener, now_ns);
            }
        }
    }
}
