//! Servers that share their cores: requests at work and in line, and their statistics.

use crate::code::order::{Class, Entry, order_key};
use crate::code::{MemberId, SlotId};
use crate::engine::{END_OF_TIME, Engine, Event};
use crate::state::processor_sharing::Shares;
use crate::state::request_state::{CHECK, LINE};
use weir_model::queue::Entry as QueueEntry;

impl Engine<'_> {
    /// A request enters a server; returns whether it must wait for a thread.
    pub(crate) fn enter_share(
        &mut self,
        slot: SlotId,
        share: u32,
        member: MemberId,
        selected: u64,
        now_ns: u64,
    ) -> bool {
        let site = &self.core.code().shares[share as usize];
        let is_check = self.core.state(slot).pc & CHECK != 0;
        let index = member.number_from(site.offset);
        if self.features.work_left.is_kept() && !is_check {
            self.share_known_work(slot, site.work, index);
        }
        let work_ns = if is_check { self.check_cost_ns(slot) } else { self.drawn(slot, site.work) };
        let at = self.core.code().row(site.gauge, member);
        let shown_ns = self.shown_ns(site.pause, member, now_ns);
        let Shares { servers, jobs, meters, .. } = &mut self.features.shares;
        let state = &mut servers[index as usize].state;
        let before = site.law.busy_cores(state.inside());
        if state.enter(&site.law, jobs, shown_ns, slot.0, work_ns) == QueueEntry::Waits {
            meters[at].add(now_ns, 0.0, 1.0);
            let most = &mut self.core.ledger_mut().gauges[at].most;
            *most = (*most).max(state.waiting());
            return true;
        }
        meters[at].add(now_ns, site.law.busy_cores(state.inside()) - before, 0.0);
        let gauge = &mut self.core.ledger_mut().gauges[at];
        gauge.served = gauge.served.wrapping_sub(now_ns & selected);
        gauge.started += selected & 1;
        self.look_again(index, now_ns);
        false
    }

    /// A request leaves its server, finished or cut off.
    pub(crate) fn leave_share(
        &mut self,
        slot: SlotId,
        share: u32,
        member: MemberId,
        selected: u64,
        now_ns: u64,
    ) {
        if self.features.work_left.is_kept() {
            self.features.work_left.stop(slot);
        }
        let site = &self.core.code().shares[share as usize];
        let index = member.number_from(site.offset);
        let at = self.core.code().row(site.gauge, member);
        let shown_ns = self.shown_ns(site.pause, member, now_ns);
        let Shares { servers, jobs, meters, .. } = &mut self.features.shares;
        let state = &mut servers[index as usize].state;
        let before = site.law.busy_cores(state.inside());
        let next = state.leave(&site.law, jobs, shown_ns, slot.0);
        let busy = site.law.busy_cores(state.inside()) - before;
        meters[at].add(now_ns, busy, if next.is_some() { -1.0 } else { 0.0 });
        let gauge = &mut self.core.ledger_mut().gauges[at];
        gauge.served = gauge.served.wrapping_add(now_ns & selected);
        if let Some(next) = next {
            let begins = self.core.state_mut(SlotId(next));
            begins.pc &= !LINE;
            let mask = begins.mask();
            let gauge = &mut self.core.ledger_mut().gauges[at];
            gauge.served = gauge.served.wrapping_sub(now_ns & mask);
            gauge.started += mask & 1;
        }
        self.look_again(index, now_ns);
    }

    /// A request leaves the line for a thread.
    pub(crate) fn leave_share_line(&mut self, slot: SlotId, share: u32, member: MemberId, now_ns: u64) {
        if self.features.work_left.is_kept() {
            self.features.work_left.stop(slot);
        }
        let site = &self.core.code().shares[share as usize];
        let Shares { servers, jobs, meters, .. } = &mut self.features.shares;
        servers[member.index_from(site.offset)].state.abandon(jobs, slot.0);
        meters[self.core.code().row(site.gauge, member)].add(now_ns, 0.0, -1.0);
    }

    /// Schedules the next tick of a server, for when it will finish a request.
    pub(crate) fn look_again(&mut self, index: u32, now_ns: u64) {
        let (site, member) = self.core.code().servers[index as usize];
        let site = &self.core.code().shares[site as usize];
        let state = &self.features.shares.servers[index as usize].state;
        let Some(end) = state.next_end_ns(&site.law, &self.features.shares.jobs) else { return };
        let end = self.when_shown(site.pause, MemberId(member), now_ns, end);
        let server = &mut self.features.shares.servers[index as usize];
        if server.due != 0 && server.due <= end {
            return;
        }
        server.due = end.max(1);
        server.tick = server.tick.wrapping_add(1);
        // Before everything else at that instant: the tick only marks the requests whose turn comes as finished. A
        // request that finishes at this very instant goes on in its turn.
        let key = if end <= now_ns { self.core.class_key() } else { order_key(Class::Step, 0) };
        let at = end.min(END_OF_TIME);
        self.core.schedule(now_ns, Entry { at, key, who: Event::Tick.who(index), tag: server.tick });
    }

    /// The tick of a server: finished requests go on in their turn.
    pub(crate) fn tick(&mut self, index: u32, tag: u32, now_ns: u64) {
        let (site, member) = self.core.code().servers[index as usize];
        let shown_ns = self.shown_ns(self.core.code().shares[site as usize].pause, MemberId(member), now_ns);
        let Shares { servers, jobs, done, .. } = &mut self.features.shares;
        let server = &mut servers[index as usize];
        if server.tick != tag {
            return;
        }
        server.due = 0;
        let mut done = std::mem::take(done);
        done.clear();
        server.state.done(&self.core.code().shares[site as usize].law, jobs, shown_ns, &mut done);
        for &slot in &done {
            self.wake(SlotId(slot), now_ns);
        }
        if done.is_empty() {
            self.look_again(index, now_ns);
        }
        self.features.shares.done = done;
    }
}
