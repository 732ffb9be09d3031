//! Queues and servers that share their cores: lines, slots, and their statistics.

use super::branch::{Branch, Phase};
use super::build::{Act, NONE};
#[cfg(test)]
use super::run::Sabotage;
use super::run::{Flow, Reference, what};
use crate::code::order::{Class, Entry, order_key, ranked};
use crate::code::{MemberId, SlotId};
use crate::state::request_details::scaled;
use weir_model::busy;
use weir_model::concurrent::Concurrent;
use weir_model::queue::Entry as QueueEntry;
use weir_policy::Kind;

/// A server that shares its cores, and when its next tick is due.
#[derive(Clone, Default)]
pub(super) struct Server {
    pub state: Concurrent,
    /// The tick that is pending; 0: none.
    due: u64,
    tick: u32,
}

impl Reference<'_> {
    /// A branch enters a queue.
    pub(super) fn enter_queue(&mut self, slot: SlotId, queue: u32) -> Flow {
        let site = &self.tables.queues[queue as usize];
        let branch = &self.branches.slots[slot.index()];
        let (member, selected) = (branch.member, branch.selected);
        let state = &mut self.queues[member.index_from(site.offset)];
        match state.enter(site.limits, &mut self.links, slot.0) {
            QueueEntry::Inside => {
                self.slot_taken(site.gauge, member, selected, 0.0);
                Flow::On
            }
            QueueEntry::Waits => {
                let waiting = state.waiting();
                self.waits(slot, site.gauge, waiting, site.timeout_ns)
            }
            QueueEntry::Full => self.refuse(slot, Kind::Overloaded),
        }
    }

    fn gauge(&self, gauge: u32, member: MemberId) -> usize {
        self.code.row(gauge, member)
    }

    /// A branch gets a slot; `left` is how many leave the line for it.
    fn slot_taken(&mut self, gauge: u32, member: MemberId, selected: bool, left: f64) {
        let at = self.gauge(gauge, member);
        self.meters[at].add(self.now_ns, 1.0, -left);
        self.serving(at, selected, true);
    }

    /// The service of a selected branch begins or ends.
    fn serving(&mut self, at: usize, selected: bool, begins: bool) {
        let mask = 0u64.wrapping_sub(u64::from(selected));
        let gauge = &mut self.ledger.gauges[at];
        let now = self.now_ns & mask;
        gauge.served = if begins { gauge.served.wrapping_sub(now) } else { gauge.served.wrapping_add(now) };
        gauge.started += u64::from(selected && begins);
    }

    fn waits(&mut self, slot: SlotId, gauge: u32, waiting: u32, timeout_ns: Option<u64>) -> Flow {
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = Phase::Line;
        branch.since = self.now_ns;
        self.stops(slot);
        let at = self.gauge(gauge, self.branches.slots[slot.index()].member);
        self.meters[at].add(self.now_ns, 0.0, 1.0);
        let most = &mut self.ledger.gauges[at].most;
        *most = (*most).max(waiting);
        if let Some(ns) = timeout_ns {
            self.end_wait_after(slot, ns);
        }
        Flow::Stop
    }

    /// Limits the wait of a branch in line to `ns`.
    pub(super) fn end_wait_after(&mut self, slot: SlotId, ns: u64) {
        let branch = &self.branches.slots[slot.index()];
        let key = ranked(order_key(Class::Limit, branch.order), branch.rank);
        let at = self.now_ns.saturating_add(ns).min(u64::MAX - 1);
        let who = what::going_on(branch) | slot.0;
        self.schedule(Entry { at, key, who, tag: branch.epoch }, true);
    }

    /// A branch leaves the line without being served.
    pub(super) fn leave_line(&mut self, slot: SlotId) {
        let branch = &self.branches.slots[slot.index()];
        let member = branch.member;
        match self.tables.nodes[branch.stage as usize].act {
            Act::Queue { queue } => {
                let site = &self.tables.queues[queue as usize];
                self.queues[member.index_from(site.offset)].abandon(&mut self.links, slot.0);
                let at = self.gauge(site.gauge, member);
                self.meters[at].add(self.now_ns, 0.0, -1.0);
            }
            Act::Share { server } => {
                self.work_left.stop(slot);
                let site = &self.tables.servers[server as usize];
                self.servers[member.index_from(site.offset)].state.abandon(&mut self.jobs, slot.0);
                let at = self.gauge(site.gauge, member);
                self.meters[at].add(self.now_ns, 0.0, -1.0);
            }
            Act::Balance { lb } => {
                let index = self.instance(lb, member);
                self.balancers[index as usize].line.take_out(&mut self.links, slot.0);
            }
            Act::Connect { at } => self.connecting_is_cut(slot, at),
            Act::Pass
            | Act::Answer { .. }
            | Act::Rewrite { .. }
            | Act::Work { .. }
            | Act::Cable { .. }
            | Act::Retry { .. }
            | Act::Fault { .. }
            | Act::Flaky { .. }
            | Act::Warmup { .. }
            | Act::Gate { .. }
            | Act::Timeout { .. }
            | Act::Sequence { .. }
            | Act::Fanout { .. }
            | Act::Choose { .. }
            | Act::Limit { .. }
            | Act::Hedge { .. }
            | Act::Hop { .. } => {}
        }
    }

    /// The longest permitted wait in line has passed.
    pub(super) fn waited_too_long(&mut self, slot: SlotId) -> Flow {
        let Branch { stage, member, check, .. } = self.branches.slots[slot.index()];
        if let Act::Connect { at } = self.tables.nodes[stage as usize].act {
            return self.connection_is_due(slot, at);
        }
        self.leave_line(slot);
        if check != NONE {
            self.leaves_node(stage, member);
        }
        self.branches.slots[slot.index()].outcome = Some(Kind::Timeout);
        self.note_answer(slot, Some(Kind::Timeout));
        Flow::Out
    }

    /// Gives a slot back; the request that has waited longest takes it.
    pub(super) fn leave_queue(&mut self, queue: u32, member: MemberId, selected: bool) {
        let site = &self.tables.queues[queue as usize];
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::LeakSlot) && self.clients.issued >= 100 {
            return;
        }
        let next = self.queues[member.index_from(site.offset)].leave(&mut self.links);
        let at = self.gauge(site.gauge, member);
        self.meters[at].add(self.now_ns, -1.0, 0.0);
        self.serving(at, selected, false);
        if let Some(next) = next.map(SlotId) {
            let selected = self.branches.slots[next.index()].selected;
            self.slot_taken(site.gauge, member, selected, 1.0);
            self.wake_inside(next);
        }
    }

    /// A branch in line got its slot: books the wait and invalidates the event that would have ended it.
    fn wake_inside(&mut self, slot: SlotId) {
        self.charge(slot);
        let branch = &mut self.branches.slots[slot.index()];
        branch.epoch = branch.epoch.wrapping_add(1);
        self.wake(slot, Phase::Inside);
    }

    /// A branch that has a slot or share continues: behind the queue, or back from the server that has finished its
    /// work.
    pub(super) fn served(&mut self, slot: SlotId) -> Flow {
        let Branch { stage, member, check, .. } = self.branches.slots[slot.index()];
        match self.tables.nodes[stage as usize].act {
            Act::Share { server } => {
                self.leave_server(slot, server);
                if check != NONE {
                    self.leaves_node(stage, member);
                }
                self.report_cores(slot, server);
                self.note_answer(slot, None);
                Flow::Out
            }
            _ => Flow::On,
        }
    }

    /// A branch enters a server that shares its cores.
    pub(super) fn enter_server(&mut self, slot: SlotId, server: u32) -> Flow {
        let site = &self.tables.servers[server as usize];
        let work_ns = if self.branches.slots[slot.index()].check == NONE {
            if self.work_left.is_kept() {
                let member = self.branches.slots[slot.index()].member;
                self.work_left.share(
                    slot,
                    self.foreseen(slot, &site.work, 0),
                    member.number_from(site.offset),
                );
            }
            let key = self.draw(slot, site.work.key);
            scaled(site.work.sampler.draw(key), self.branches.slots[slot.index()].factor)
        } else {
            self.check_cost_ns(slot)
        };
        let branch = &mut self.branches.slots[slot.index()];
        let (member, selected) = (branch.member, branch.selected);
        branch.since = self.now_ns;
        let index = member.number_from(site.offset);
        let shown_ns = self.shown_ns(site.work.pause, member);
        let state = &mut self.servers[index as usize].state;
        let before = site.law.busy_cores(state.inside());
        let entry = state.enter(&site.law, &mut self.jobs, shown_ns, slot.0, work_ns);
        if entry == QueueEntry::Waits {
            let waiting = state.waiting();
            return self.waits(slot, site.gauge, waiting, None);
        }
        let busy = site.law.busy_cores(state.inside()) - before;
        self.branches.slots[slot.index()].phase = Phase::Inside;
        let at = self.gauge(site.gauge, member);
        self.meters[at].add(self.now_ns, busy, 0.0);
        self.serving(at, selected, true);
        self.look_again(index);
        Flow::Stop
    }

    /// A branch leaves its server, finished or cut off.
    pub(super) fn leave_server(&mut self, slot: SlotId, server: u32) {
        self.work_left.stop(slot);
        let site = &self.tables.servers[server as usize];
        let branch = &self.branches.slots[slot.index()];
        let (member, selected) = (branch.member, branch.selected);
        let index = member.number_from(site.offset);
        let shown_ns = self.shown_ns(site.work.pause, member);
        let state = &mut self.servers[index as usize].state;
        let before = site.law.busy_cores(state.inside());
        let next = state.leave(&site.law, &mut self.jobs, shown_ns, slot.0);
        let busy = site.law.busy_cores(state.inside()) - before;
        let at = self.gauge(site.gauge, member);
        self.meters[at].add(self.now_ns, busy, if next.is_some() { -1.0 } else { 0.0 });
        self.serving(at, selected, false);
        if let Some(next) = next.map(SlotId) {
            self.serving(at, self.branches.slots[next.index()].selected, true);
            self.charge(next);
            self.branches.slots[next.index()].phase = Phase::Inside;
        }
        self.look_again(index);
    }

    /// The answer of a branch that has left a queue reports its load.
    pub(super) fn report_slots(&mut self, slot: SlotId, queue: u32) {
        let site = &self.tables.queues[queue as usize];
        let branch = &mut self.branches.slots[slot.index()];
        if site.reports {
            let inside = self.queues[branch.member.index_from(site.offset)].inside();
            let load = busy::share_of_slots(inside, site.limits.concurrency);
            branch.load = branch.outcome.is_none().then_some(load);
        }
    }

    /// The same for a server that shares its cores.
    fn report_cores(&mut self, slot: SlotId, server: u32) {
        let site = &self.tables.servers[server as usize];
        let branch = &mut self.branches.slots[slot.index()];
        if site.reports {
            let state = &self.servers[branch.member.index_from(site.offset)].state;
            let load = busy::share(site.law.busy_cores(state.inside()), site.law.cores());
            branch.load = branch.outcome.is_none().then_some(load);
        }
    }

    /// Schedules the next tick of a server, for when it will finish a request.
    pub(super) fn look_again(&mut self, index: u32) {
        let (site, member) = self.tables.server_sites[index as usize];
        let site = &self.tables.servers[site as usize];
        let state = &self.servers[index as usize].state;
        let Some(end) = state.next_end_ns(&site.law, &self.jobs) else { return };
        let end = self.when_shown(site.work.pause, MemberId(member), end);
        let server = &mut self.servers[index as usize];
        if server.due != 0 && server.due <= end {
            return;
        }
        server.due = end.max(1);
        server.tick = server.tick.wrapping_add(1);
        // Before everything else at that instant: the tick only marks the requests whose turn comes as finished. A
        // request that finishes at this very instant continues in its turn.
        let class = if end <= self.now_ns { self.class } else { Class::Step };
        let entry = Entry {
            at: end.min(u64::MAX - 1),
            key: order_key(class, 0),
            who: what::TICK | index,
            tag: server.tick,
        };
        self.schedule(entry, false);
    }

    /// The tick of a server.
    pub(super) fn tick(&mut self, index: u32, tag: u32) {
        let (site, member) = self.tables.server_sites[index as usize];
        let shown_ns = self.shown_ns(self.tables.servers[site as usize].work.pause, MemberId(member));
        let server = &mut self.servers[index as usize];
        if server.tick != tag {
            return;
        }
        server.due = 0;
        let mut done = std::mem::take(&mut self.scratch);
        done.clear();
        server.state.done(&self.tables.servers[site as usize].law, &mut self.jobs, shown_ns, &mut done);
        for &slot in &done {
            self.wake(SlotId(slot), Phase::Inside);
        }
        if done.is_empty() {
            self.look_again(index);
        }
        self.scratch = done;
    }
}
