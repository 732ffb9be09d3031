//! Balancers with something around them: health, ejection, full targets, pass-over of unreachable targets, keys,
//! spare nodes.
//!
//! - In virtual time: no time, except for waits while all targets are full. Requests are picked for and come back in
//!   their turn, and the balancer is examined when something changes by itself.
//! - Given back when cut off: the place in line; the target, which counts as no outcome.
//! - Draws: what the policy draws, by node and way.

use crate::code::bounds::MOST_IN_VAIN;
use crate::code::order::{Class, Entry, order_key};
use crate::code::{ColdOp, Op};
use crate::code::{MemberId, SlotId};
use crate::engine::{END_OF_TIME, Engine, Event};
use crate::state::guards::SPARE;
use crate::state::request_state::{BEGINS, LINE, PARKED};
use weir_policy::config::Exclude;
use weir_policy::{Ask, Kind, PickOutcome, Release, TargetId, Ticket};

impl Engine<'_> {
    /// A request arrives at a balancer. Where it goes on is in its state afterwards; false: it waits.
    pub(crate) fn ask_guard(
        &mut self,
        slot: SlotId,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) -> bool {
        let lb = match self.core.code().steps[pc].op {
            Op::Cold(ColdOp::AskGuard { lb }) => lb,
            _ => return false,
        };
        let site = &self.core.code().lbs[lb as usize];
        let index = self.instance(slot, site, member);
        self.leave_at(slot, pc as u32, member, depth);
        self.comes_to_balancer(slot, lb, member);
        if self.core.code().guards.probes {
            self.probe(slot, index, now_ns);
        }
        match self.ask(slot, index, now_ns) {
            PickOutcome::Target(ticket) => {
                self.send_to(slot, index, ticket);
                true
            }
            PickOutcome::Full => self.wait_for_target(slot, index, now_ns),
            PickOutcome::Empty => {
                self.nobody_left(slot, lb, index, now_ns);
                true
            }
        }
    }

    #[inline]
    fn ask(&mut self, slot: SlotId, index: u32, now_ns: u64) -> PickOutcome {
        self.left_out(slot, index);
        let detail = self.features.details.slots[slot.index()];
        let Some(guard) = self.features.guards.get(index) else { return PickOutcome::Empty };
        let (picks, site) = (guard.picks, guard.site);
        let draw = self.choice_key(slot, picks, detail.came);
        let key = self.core.code().guards.sites[site as usize].key.and_then(|key| self.key(slot, key));
        if self.features.work_left.is_kept() {
            self.tell_work_left(index, now_ns);
        }
        let Some((guard, on)) = self.features.guards.on_loop(index) else { return PickOutcome::Empty };
        let sticky = guard
            .sticky
            .as_ref()
            .zip(detail.key)
            .and_then(|(sticky, key)| sticky.target(&self.features.jar, key));
        let ask = Ask { draw, key, now_ns, exclude: self.core.excluded(), sticky };
        guard.upstream.on(on).pick(&ask)
    }

    /// Sends a request to a target, from the step of its balancer.
    fn send_to(&mut self, slot: SlotId, index: u32, mut ticket: Ticket) {
        let (exclude, own) = (self.core.state(slot).exclude(), self.features.hops.tag(slot, index));
        if exclude != Exclude::None {
            let list = self.features.branches.tried_of(slot);
            self.core.states_mut().tried[list.index()].picked(exclude, own, ticket.target);
        }
        self.features.branches.note_open(slot, own, ticket.target);
        let code = self.core.code();
        let Some(to) = self.features.guards.get(index).map(|guard| guard.target(code, ticket.target)) else {
            return;
        };
        if let Some(busy) = self.features.guards.busy.get_mut(self.core.code().ends.server(to.member).index())
        {
            ticket.met = busy.entered();
        }
        self.features.details.slots[slot.index()].load = None;
        self.goes_to_member(index, &ticket);
        self.step_to(slot, to, ticket);
        if self.features.work_left.is_kept() {
            self.bring_work(slot, to);
        }
    }

    /// Sends a request to a node behind a balancer; two frames record how it comes back.
    fn step_to(&mut self, slot: SlotId, to: crate::code::Target, ticket: Ticket) {
        let state = self.core.state(slot);
        let (depth, member, selected) = (usize::from(state.depth), state.member, state.selected());
        let back = (state.pc & !(PARKED | LINE)) + 1;
        let at = ticket.at_ns;
        self.core.states_mut().set_frame(
            slot,
            depth,
            [at as u32, (at >> 32) as u32, u32::from(ticket.met) << 1 | u32::from(ticket.probe)],
        );
        self.core.states_mut().set_frame(slot, depth + 1, [back, member.0, ticket.target.0]);
        self.leave_at(slot, to.pc, to.member, depth + 2);
        self.core.count_entries(to.member, i32::from(selected));
    }

    /// No target is left: an error, or the spare node.
    fn nobody_left(&mut self, slot: SlotId, lb: u32, index: u32, now_ns: u64) {
        let site = &self.core.code().lbs[lb as usize];
        let member = self.core.state(slot).member;
        let spares = self
            .features
            .guards
            .get(index)
            .and_then(|g| self.core.code().guards.sites[g.site as usize].spares);
        let Some(spares) = spares else {
            self.refuse(slot, member, site.stage, Kind::NoTarget);
            self.core.state_mut(slot).pc = site.skip;
            return;
        };
        let to = self.core.code().guards.spares[member.index_from(spares)];
        self.step_to(slot, to, Ticket { target: SPARE, probe: false, met: 0, at_ns: now_ns });
    }

    /// All targets are full; true: it is refused.
    fn wait_for_target(&mut self, slot: SlotId, index: u32, now_ns: u64) -> bool {
        let code = self.core.code();
        let Some(guard) = self.features.guards.get(index) else { return false };
        let (lb, site) = (&code.lbs[guard.lb as usize], &code.guards.sites[guard.site as usize]);
        let member = self.core.state(slot).member;
        if u64::from(guard.line.len()) >= site.max_waiting {
            self.refuse(slot, member, lb.stage, Kind::Overloaded);
            self.core.state_mut(slot).pc = lb.skip;
            return true;
        }
        guard.line.join(self.core.links_mut(), slot.0);
        guard.vain = 0;
        self.stops(slot, lb.stage, member, now_ns);
        let state = self.core.state_mut(slot);
        state.pc = (state.pc + 1) | LINE;
        if let Some(ns) = site.wait_timeout_ns {
            self.end_wait_after(slot, now_ns, ns);
        }
        false
    }

    /// The longest permitted wait for a target has passed.
    pub(crate) fn wait_for_target_no_longer(
        &mut self,
        slot: SlotId,
        lb: u32,
        member: MemberId,
        now_ns: u64,
    ) -> bool {
        let site = &self.core.code().lbs[lb as usize];
        let index = self.instance(slot, site, member);
        self.leave_guard_line(slot, index, now_ns);
        self.refuse(slot, member, site.stage, Kind::Timeout);
        self.core.state_mut(slot).pc = site.skip;
        false
    }

    /// Lets waiting requests go on, as far as there is room, each by the state of its own loop.
    pub(crate) fn admit(&mut self, index: u32, now_ns: u64) {
        while let Some((slot, lb)) =
            self.features.guards.get(index).and_then(|guard| Some((SlotId(guard.line.peek()?), guard.lb)))
        {
            let member = self.core.state(slot).member;
            let index = self.instance(slot, &self.core.code().lbs[lb as usize], member);
            let picked = self.ask(slot, index, now_ns);
            if picked == PickOutcome::Full {
                return;
            }
            self.leave_guard_line(slot, index, now_ns);
            if let Some(guard) = self.features.guards.get(index) {
                guard.vain = 0;
            }
            let state = self.core.state_mut(slot);
            // The event that would have ended its wait is stale.
            state.tag = state.tag.wrapping_add(1);
            state.pc = (state.pc & !LINE) - 1;
            match picked {
                PickOutcome::Target(ticket) => {
                    self.send_to(slot, index, ticket);
                    self.begins_later(slot);
                }
                _ => {
                    state.pc |= PARKED;
                    // It is there since now.
                    let (pc, member, depth) = (state.pc & !PARKED, state.member, usize::from(state.depth));
                    self.core.scopes_mut().stand(slot, now_ns, pc as usize, member, depth);
                    self.will_retake(slot);
                }
            }
            self.wake(slot, now_ns);
        }
    }

    /// The same, after health was looked at.
    pub(crate) fn admit_by_health(&mut self, index: u32, now_ns: u64) {
        if let Some(guard) = self.features.guards.get(index) {
            guard.vain += u32::from(guard.vain < MOST_IN_VAIN);
        }
        self.admit(index, now_ns);
    }

    /// A request that was sent on begins there in its turn; if it is cut off before that, it did not arrive there.
    pub(crate) fn begins_later(&mut self, slot: SlotId) {
        let state = self.core.state(slot);
        self.core.count_entries(state.member, -i32::from(state.selected()));
        self.core.state_mut(slot).pc |= BEGINS;
    }

    /// A request leaves the line for a target, and the balancer's place is free.
    pub(crate) fn leave_guard_line(&mut self, slot: SlotId, index: u32, now_ns: u64) {
        let member = self.core.state(slot).member;
        let Some(guard) = self.features.guards.get(index) else { return };
        guard.line.take_out(self.core.links_mut(), slot.0);
        let stage = self.core.code().lbs[guard.lb as usize].stage;
        self.charge(slot, stage, member, now_ns);
    }

    /// A request has returned from where a balancer sent it.
    pub(crate) fn told_guard(&mut self, slot: SlotId, lb: u32, member: MemberId, depth: usize, now_ns: u64) {
        let index = self.instance(slot, &self.core.code().lbs[lb as usize], member);
        let (target, ticket) = self.ticket(slot, depth);
        let state = self.core.state(slot);
        let (outcome, exclude, ordinal) = (state.outcome(), state.exclude(), state.ordinal);
        if target == SPARE {
            return;
        }
        if self.features.work_left.is_kept() {
            self.features.work_left.drop(slot);
        }
        let (status, detail) = (self.answered_with(slot), self.features.details.slots[slot.index()]);
        if exclude != Exclude::None {
            let reached = outcome.filter(|_| !detail.relayed);
            let list = self.features.branches.tried_of(slot);
            let own = self.features.hops.tag(slot, index);
            self.core.states_mut().tried[list.index()].came_back(exclude, own, target, reached);
        }
        let Some((guard, on)) = self.features.guards.on_loop(index) else { return };
        if let (Some(key), Some(sticky)) = (detail.key, &guard.sticky) {
            sticky.answered(&mut self.features.jar, key, target, outcome);
        }
        let to = guard.target(self.core.code(), target);
        if let Some(load) = detail.load.filter(|_| outcome.is_none()) {
            guard.upstream.on(on).loaded(now_ns, target, load);
        }
        let upstream = guard.upstream.on(on);
        let release = if detail.relayed {
            upstream.relayed(now_ns, ticket, outcome, status)
        } else {
            upstream.done(now_ns, ticket, outcome, status)
        };
        let watches = self.core.code().guards.sites[guard.site as usize].watches;
        self.features.guards.left_target(self.core.code(), to, &ticket, now_ns, outcome);
        self.leaves_member(index, ticket.target, now_ns);
        if let Release::After(ns) = release {
            self.hold(index, target, now_ns, ns, ordinal);
        }
        let failed = (outcome == Some(Kind::ConnectFailed) && !detail.relayed).then_some(target);
        self.end_withdrawn(index, failed, now_ns);
        if watches || outcome == Some(Kind::ConnectFailed) {
            self.watch(index, now_ns);
        }
        self.features.details.slots[slot.index()].relayed = outcome.is_some();
        self.admit(index, now_ns);
    }

    /// What a request must return to the balancer that sent it, whose frames are below that depth.
    pub(crate) fn ticket(&self, slot: SlotId, depth: usize) -> (TargetId, Ticket) {
        let [_, _, target] = self.core.states().frame(slot, depth - 1);
        let target = TargetId(target);
        let [low, high, rest] = self.core.states().frame(slot, depth - 2);
        let at_ns = u64::from(high) << 32 | u64::from(low);
        (target, Ticket { target, probe: rest & 1 != 0, met: (rest >> 1) as u16, at_ns })
    }

    /// A request that a balancer sent on is cut off; `late`: by a `timeout` around the balancer.
    pub(crate) fn guard_is_cut(&mut self, index: u32, ticket: Ticket, late: bool, now_ns: u64) {
        if ticket.target == SPARE {
            return;
        }
        let Some((guard, on)) = self.features.guards.on_loop(index) else { return };
        let to = guard.target(self.core.code(), ticket.target);
        let watches = self.core.code().guards.sites[guard.site as usize].watches;
        let upstream = guard.upstream.on(on);
        if late {
            upstream.timed_out(now_ns, ticket)
        } else {
            upstream.cancelled(now_ns, ticket)
        }
        self.features.guards.left_target(self.core.code(), to, &ticket, now_ns, Some(Kind::Cancelled));
        self.leaves_member(index, ticket.target, now_ns);
        self.end_withdrawn(index, None, now_ns);
        if watches {
            self.watch(index, now_ns);
        }
        self.admit(index, now_ns);
    }

    /// A request is sent to a target, which may be a member that a change moves.
    #[inline]
    fn goes_to_member(&mut self, index: u32, ticket: &Ticket) {
        let code = self.core.code();
        if code.watch.is_none() {
            return;
        }
        let (first, _) = self.features.guards.place(index);
        let guard = self.features.guards.of.get(first).and_then(Option::as_deref);
        if let Some(place) =
            guard.filter(|guard| guard.seen.is_some()).map(|guard| guard.place(ticket.target))
        {
            self.features.changes.sends_to(code, first as u32, place, ticket.at_ns);
        }
    }

    /// A request has left a target, which may be a member that is listed no more.
    #[inline]
    fn leaves_member(&mut self, index: u32, target: TargetId, now_ns: u64) {
        if !self.features.changes.follows_returns() {
            return;
        }
        let (first, _) = self.features.guards.place(index);
        let guard = self.features.guards.of.get(first).and_then(Option::as_deref);
        if let Some(place) = guard.filter(|guard| guard.seen.is_some()).map(|guard| guard.place(target)) {
            self.features.changes.left_target(self.core.code(), first as u32, place, now_ns);
        }
    }

    /// Schedules the next examination of a balancer for when its health, or the targets it passes over, change by
    /// themselves.
    pub(crate) fn watch(&mut self, index: u32, now_ns: u64) {
        let index = self.features.guards.place(index).0 as u32;
        self.tell_outside(index, now_ns);
        let Some(guard) = self.features.guards.get(index) else { return };
        let Some(at) = guard.upstream.next_deadline() else { return };
        let at = at.max(now_ns);
        if at >= guard.watched {
            return;
        }
        guard.watched = at;
        let key = order_key(Class::Hold, u64::from(index));
        self.core
            .schedule(now_ns, Entry { at: at.min(END_OF_TIME), key, who: Event::Watch.who(index), tag: 0 });
    }

    /// Examines the health of a balancer.
    pub(crate) fn look_at_guard(&mut self, index: u32, now_ns: u64) {
        let Some(guard) = self.features.guards.get(index).filter(|guard| guard.watched == now_ns) else {
            return;
        };
        guard.watched = u64::MAX;
        guard.upstream.tick(now_ns);
        self.end_withdrawn(index, None, now_ns);
        self.watch(index, now_ns);
        self.admit_by_health(index, now_ns);
    }

    /// Reports to the balancers outside whether one inside has a usable target left.
    fn tell_outside(&mut self, index: u32, now_ns: u64) {
        let tables = &self.core.code().guards;
        let Some(outside) = tables.behind.outside.get(index as usize).filter(|o| !o.is_empty()) else {
            return;
        };
        let Some(guard) = self.features.guards.get(index) else { return };
        let site = &tables.sites[guard.site as usize];
        let alive = site.spares.is_some() || guard.upstream.health().has_anyone();
        if std::mem::replace(&mut guard.alive, alive) == alive {
            return;
        }
        for &(outer, target) in outside {
            let inner = &tables.behind.inside[&(outer, target)];
            let up = inner.iter().any(|&i| self.features.guards.get(i).is_none_or(|guard| guard.alive));
            if let Some(guard) = self.features.guards.get(outer)
                && let Some(target) = guard.at_place(target)
            {
                guard.upstream.set_behind(now_ns, target, up);
            }
            self.watch(outer, now_ns);
            self.admit(outer, now_ns);
        }
    }
}
