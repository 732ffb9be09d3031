//! The work of a server for a new connection: at the cores that its requests share, at once and without a thread, or in a
//! slot of its first queue.

use super::branch::Phase;
use super::build::Act;
use super::run::{Flow, Reference};
use crate::code::order::Class;
use crate::code::{MemberId, SlotId, Target};
use crate::state::connections::OpeningPhase;

impl Reference<'_> {
    /// The server begins its work for the connection that a branch opens; false: it has none to do.
    pub(super) fn begin_handshake(&mut self, opener: SlotId, at: u32) -> bool {
        let Some(tables) = self.code.connections.as_deref() else { return false };
        let from = self.branches.slots[opener.index()];
        let Some(Target { pc, member }) = tables.handshake(at, from.member) else { return false };
        let (server, cost_ns) = (tables.server(at, from.member), tables.sites[at as usize].cost_ns);
        let slot = self.branches.add();
        let branch = &mut self.branches.slots[slot.index()];
        (branch.stage, branch.member, branch.floor_stage) = (pc, member, pc);
        (branch.order, branch.rank, branch.since) = (from.order, from.rank, self.now_ns);
        (branch.wanted, branch.shakes_for) = (false, opener);
        if let Some(of) = self.connections.as_deref_mut() {
            of.shake(slot, opener, server, cost_ns);
        }
        match self.tables.nodes[pc as usize].act {
            Act::Share { server } => self.shake_at_cores(slot, server, member, cost_ns),
            Act::Queue { queue } => match self.enter_queue(slot, queue) {
                Flow::On => self.shake_inside(slot),
                Flow::Stop => {}
                _ => self.end_handshake(slot, false),
            },
            _ => {}
        }
        true
    }

    /// The work begins at cores that are shared.
    fn shake_at_cores(&mut self, slot: SlotId, server: u32, member: MemberId, cost_ns: u64) {
        let site = &self.tables.servers[server as usize];
        let index = member.number_from(site.offset);
        let shown_ns = self.shown_ns(site.work.pause, member);
        let state = &mut self.servers[index as usize].state;
        let before = site.law.busy_cores(state.inside());
        state.enter_without_thread(&site.law, &mut self.jobs, shown_ns, slot.0, cost_ns);
        let busy = site.law.busy_cores(state.inside()) - before;
        self.branches.slots[slot.index()].phase = Phase::Inside;
        let at = self.code.row(site.gauge, member);
        self.meters[at].add(self.now_ns, busy, 0.0);
        self.look_again(index);
    }

    /// The work begins in a slot of a queue.
    fn shake_inside(&mut self, slot: SlotId) {
        let of = self.connections.as_deref().and_then(|of| of.handshakes.get(&slot.0));
        let cost_ns = of.map_or(0, |handshake| handshake.cost_ns);
        self.sleep(slot, Phase::Out, cost_ns, Class::Step, false);
    }

    /// A handshake goes on: it has a slot, or its work is done, or it has waited too long.
    pub(super) fn handshake_goes_on(&mut self, slot: SlotId, phase: Phase) {
        let stage = self.branches.slots[slot.index()].stage;
        if let (Act::Queue { .. }, Phase::Inside) = (self.tables.nodes[stage as usize].act, phase) {
            return self.shake_inside(slot);
        }
        self.give_back_handshake(slot, phase);
        self.end_handshake(slot, phase != Phase::Line);
    }

    fn give_back_handshake(&mut self, slot: SlotId, phase: Phase) {
        let (stage, member) =
            (self.branches.slots[slot.index()].stage, self.branches.slots[slot.index()].member);
        self.leaves_node(stage, member);
        match self.tables.nodes[stage as usize].act {
            Act::Queue { .. } if phase == Phase::Line => self.leave_line(slot),
            Act::Queue { queue } => self.leave_queue(queue, member, false),
            Act::Share { server } => self.leave_server(slot, server),
            _ => {}
        }
    }

    /// A handshake is over; the branch that opens the connection goes on. `is_done`: else the connection fails.
    fn end_handshake(&mut self, slot: SlotId, is_done: bool) {
        let Some(opener) = self.remove_handshake(slot, OpeningPhase::Done) else { return };
        if let Some(of) = self.connections.as_deref_mut()
            && !is_done
        {
            of.refuse(opener);
        }
        self.wake(opener, Phase::Line);
    }

    fn remove_handshake(&mut self, slot: SlotId, phase: OpeningPhase) -> Option<SlotId> {
        self.branches.remove(slot);
        self.connections.as_deref_mut()?.end_handshake(slot, phase)
    }

    /// A handshake ends before its work is done.
    pub(super) fn break_handshake(&mut self, slot: SlotId) -> Option<SlotId> {
        self.give_back_handshake(slot, self.branches.slots[slot.index()].phase);
        self.remove_handshake(slot, OpeningPhase::Broken)
    }

    /// The process of servers crashes: they do no work for connections any more.
    pub(super) fn break_handshakes_on(&mut self, line: u32) {
        let found = self.connections.as_deref().map(|of| of.handshakes_on(self.code, line));
        for slot in found.unwrap_or_default() {
            if let Some(opener) = self.break_handshake(slot) {
                self.wake(opener, Phase::Line);
            }
        }
    }
}
