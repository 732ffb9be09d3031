//! Cancellation: limits, the position of a request that may not finish, and giving back what it holds.
//!
//! A limit is a scope of the request's own code, a row of fixed size in a stack beside its state; nothing is copied
//! as one begins. Its event names an entry of a table with a tag, so an event whose limit is over is recognised at
//! once. When it strikes, the request unwinds: from its step to the end of the limit, by the innermost step that
//! gives something back ([`Code::gives_back`]) and the frames on the way.
//!
//! Consecutive waits are one event here too. Their time is added up as they begin; when a request is cut off between
//! them, they are walked through again and what had not passed is taken back.

mod take_back;

use crate::code::order::{Class, Entry, order_key, ranked};
use crate::code::{ColdOp, NOT, Op};
use crate::code::{MemberId, SlotId, StageId};
use crate::engine::{END_OF_TIME, Engine, Event};
use crate::state::holds::Hold;
use crate::state::holds::HoldKind;
use crate::state::request_state::{CHECK, FAN, FLAGS, IDLE, LINE, PARKED};
use crate::state::scopes::WaitEnd;
use crate::state::scopes::{CHECKED, Limit, Remnant, WHOLE};
use weir_policy::{Kind, TargetId};

impl Engine<'_> {
    /// Limits a new request to its client's patience.
    pub(crate) fn be_patient(&mut self, slot: SlotId, now_ns: u64, ns: u64) {
        let key = order_key(Class::Limit, self.core.states.slots[slot.index()].ordinal);
        let at = now_ns.saturating_add(ns).min(END_OF_TIME);
        let (live, tag) = self.core.scopes.enter(slot, Limit { end: WHOLE, rank: 1, ..Limit::default() }, at);
        self.schedule_limit(at - now_ns, Entry { at, key, who: Event::Limit.who(live), tag });
    }

    /// A limit begins for what is behind.
    #[inline(always)]
    pub(crate) fn begin_limit(
        &mut self,
        slot: SlotId,
        limit: u32,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) {
        let site = self.core.code.limits[limit as usize];
        let state = &self.core.states.slots[slot.index()];
        let rank = self.core.scopes.slots[slot.index()].rank;
        let (retries, depth) = (state.retries, depth as u16);
        let key = ranked(order_key(Class::Limit, state.ordinal), rank);
        let details = if self.core.code.details { self.features.details.outside(slot) } else { (0, 0) };
        let row =
            Limit { live: 0, end: site.end, site: limit, member, rank, depth, retries, details, until: 0 };
        let at = now_ns.saturating_add(site.ns).min(END_OF_TIME);
        let (live, tag) = self.core.scopes.enter(slot, row, at);
        // Its children come after it where both end at one instant.
        let scope = &mut self.core.scopes.slots[slot.index()];
        scope.rank = rank + u32::from(scope.ranks() > 1);
        self.schedule_limit(at - now_ns, Entry { at, key, who: Event::Limit.who(live), tag });
    }

    /// Schedules the end of a limit; ends of limits that are over can be dropped.
    #[inline(always)]
    fn schedule_limit(&mut self, delay: u64, entry: Entry) {
        let scopes = &self.core.scopes;
        let is_over =
            |e: &Entry| Event::from_who(e.who) == Event::Limit && scopes.is_over(Event::index(e.who), e.tag);
        self.core.pending.push_limit(delay, entry, is_over);
    }

    /// The time of a limit has passed.
    #[cold]
    pub(crate) fn strike(&mut self, live: u32, tag: u32, now_ns: u64) {
        let Some((slot, at)) = self.core.scopes.struck(live, tag) else { return };
        let limit = self.core.scopes.limits[slot.index() * self.core.scopes.each + usize::from(at)];
        if limit.end == CHECKED {
            return self.check_times_out(slot, &limit, now_ns);
        }
        let slot = self.cut_off(slot, at, &limit, now_ns);
        self.back_to(slot, at, &limit);
        let state = &mut self.core.states.slots[slot.index()];
        if limit.end == WHOLE {
            state.set_outcome(Some(Kind::Cancelled));
            return self.end_early(slot, now_ns);
        }
        state.set_outcome(Some(Kind::Timeout));
        state.pc = limit.end;
        state.member = limit.member;
        state.depth = limit.depth;
        self.go_on(slot, now_ns, now_ns, true);
    }

    /// Restores the state of a request outside of a limit.
    pub(crate) fn back_to(&mut self, slot: SlotId, at: u16, limit: &Limit) {
        self.cut_hops(slot, limit);
        self.core.states.drop_attempts(slot, limit.retries);
        self.core.scopes.leave(slot, at);
        if self.core.code.details {
            self.features.details.cut(slot, limit.details.0, limit.details.1);
        }
        let state = &mut self.core.states.slots[slot.index()];
        state.tag = state.tag.wrapping_add(1);
    }

    /// Gives back everything that a request holds up to the end of a limit, even where queues or servers would go on.
    pub(crate) fn cut_to(&mut self, slot: SlotId, limit: &Limit, now_ns: u64) {
        let holds = self.holds_of(slot, limit);
        self.work_is_cut(slot, limit);
        let selected = self.core.states.slots[slot.index()].mask();
        self.take_back(slot, None, now_ns);
        let counts = !self.core.states.slots[slot.index()].is_unwanted();
        self.cut_branches(slot, true, counts, now_ns);
        holds.iter().for_each(|hold| self.give_back(slot, hold, selected, now_ns));
    }

    /// Cuts off what is behind a limit, which gives back what it holds, from the inside out, unless a queue or server
    /// on its way goes on. Then everything outside of that is given back, and the rest goes on unwanted. Returns the
    /// slot that the request itself is in now.
    fn cut_off(&mut self, slot: SlotId, at: u16, limit: &Limit, now_ns: u64) -> SlotId {
        let mut holds = self.holds_of(slot, limit);
        if self.is_timeout_of_balancer(limit)
            && let Some(Hold { what: HoldKind::Sent { late, .. }, .. }) = holds.last_mut()
        {
            *late = true;
        }
        let state = &self.core.states.slots[slot.index()];
        let selected = state.mask();
        let floor = holds.iter().rposition(|hold| self.goes_on(hold));
        let Some(floor) = floor else {
            self.work_is_cut(slot, limit);
            self.take_back(slot, None, now_ns);
            self.cut_branches(slot, false, true, now_ns);
            holds.iter().for_each(|hold| self.give_back(slot, hold, selected, now_ns));
            return slot;
        };
        holds[floor + 1..].iter().for_each(|hold| self.give_back(slot, hold, selected, now_ns));
        let request = self.core.states.fork(slot);
        self.features.clients.copy(slot, request);
        if self.core.code.details {
            self.features.details.copy(slot, request);
        }
        self.features.hops.copy(slot, request);
        if self.features.work_left.is_kept() {
            self.work_goes_on(slot, request, limit);
        }
        // A request whose client has gone has failed, as everything it passes must see.
        let failed = limit.end == WHOLE && self.core.scopes.slots[slot.index()].limits == at + 1;
        self.core.scopes.split(slot, request, at, &holds[floor]);
        let mut beyond = Vec::new();
        let mut stands = failed.then_some(None);
        self.take_back(slot, Some(Remnant { request, beyond: &mut beyond, stands: stands.as_mut() }), now_ns);
        for &(stage, member, ns) in &beyond {
            self.charge(slot, stage, member, ns.wrapping_neg());
        }
        let scope = &mut self.core.scopes.slots[slot.index()];
        (scope.floor, scope.floor_depth) = (holds[floor].pc, holds[floor].depth as u16);
        self.core.scopes.hand_notes(slot, request);
        self.part_from(slot, request, now_ns);
        self.core.states.slots[slot.index()].set_unwanted();
        if failed {
            self.core.states.slots[slot.index()].set_outcome(Some(Kind::Cancelled));
        }
        if let Some(Some(stands)) = stands {
            self.stop_at(slot, &stands, now_ns);
        }
        for (stage, member, ns) in beyond {
            self.charge(slot, stage, member, ns);
        }
        request
    }

    /// Whether a limit is a timeout of the balancer behind: then what it cuts off holds a target of that one last, if
    /// it is at one.
    fn is_timeout_of_balancer(&self, limit: &Limit) -> bool {
        if limit.end == WHOLE {
            return false;
        }
        let site = &self.core.code.limits[limit.site as usize];
        self.core.code.timed[limit.member.index_from(site.offset)]
    }

    /// Whether requests in a place go on after they are cancelled.
    pub(crate) fn goes_on(&self, hold: &Hold) -> bool {
        let (queues, shares) = (&self.core.code.queues, &self.core.code.shares);
        match hold.what {
            HoldKind::Line { queue } => queues[queue as usize].on_cancel.goes_on(false),
            HoldKind::Slot { queue } => queues[queue as usize].on_cancel.goes_on(true),
            HoldKind::ShareLine { share } => shares[share as usize].on_cancel.goes_on(false),
            HoldKind::Share { share } => shares[share as usize].on_cancel.goes_on(true),
            HoldKind::Picked { .. }
            | HoldKind::GuardLine { .. }
            | HoldKind::Sent { .. }
            | HoldKind::Connecting { .. }
            | HoldKind::Connection { .. }
            | HoldKind::Lost { .. } => false,
        }
    }

    /// The queue or server that a request is in or waits for by a hold.
    fn queue_of(&self, hold: &Hold) -> Option<StageId> {
        match hold.what {
            HoldKind::Line { queue } | HoldKind::Slot { queue } => {
                Some(self.core.code.queues[queue as usize].stage)
            }
            HoldKind::ShareLine { share } | HoldKind::Share { share } => {
                Some(self.core.code.shares[share as usize].stage)
            }
            HoldKind::Picked { .. }
            | HoldKind::GuardLine { .. }
            | HoldKind::Sent { .. }
            | HoldKind::Connecting { .. }
            | HoldKind::Connection { .. }
            | HoldKind::Lost { .. } => None,
        }
    }

    /// The balancer of which a request holds something, on the loop that it used there.
    fn instance_of(&self, slot: SlotId, lb: u32, hold: &Hold) -> u32 {
        let meets = self.core.scopes.slots[slot.index()].meets;
        let meets = self.features.hops.met_at(slot, hold.pc, hold.depth, meets);
        self.on_loop(&self.core.code.lbs[lb as usize], hold.member, meets)
    }

    pub(crate) fn give_back(&mut self, slot: SlotId, hold: &Hold, selected: u64, now_ns: u64) {
        let member = hold.member;
        if let Some(stage) = self.queue_of(hold) {
            self.leaves_node(stage, member, now_ns);
        }
        match hold.what {
            HoldKind::Line { queue } => self.leave_line(slot, queue, member, now_ns),
            HoldKind::Slot { queue } => self.give_back_slot(queue, member, selected, now_ns),
            HoldKind::ShareLine { share } => {
                self.charge(slot, self.core.code.shares[share as usize].stage, member, now_ns);
                self.leave_share_line(slot, share, member, now_ns);
            }
            HoldKind::Share { share } => {
                self.charge(slot, self.core.code.shares[share as usize].stage, member, now_ns);
                self.leave_share(slot, share, member, selected, now_ns);
            }
            HoldKind::Picked { lb, target } => {
                let instance = self.instance_of(slot, lb, hold);
                self.core.balancers[instance as usize].balancer.cancelled(now_ns, target, 0);
                if self.core.code.lbs[lb as usize].changes {
                    self.leaves_target(instance, target, now_ns);
                }
            }
            HoldKind::GuardLine { lb } => {
                let index = self.instance_of(slot, lb, hold);
                self.leave_guard_line(slot, index, now_ns);
            }
            HoldKind::Lost { stage } => self.charge(slot, stage, member, now_ns),
            HoldKind::Connecting { at } => self.connecting_is_cut(slot, at, member, now_ns),
            HoldKind::Connection { conn } => self.return_connection(conn, now_ns, true),
            HoldKind::Sent { lb, ticket, late } => {
                let index = self.instance_of(slot, lb, hold);
                self.guard_is_cut(index, ticket, late, now_ns);
            }
        }
    }

    /// What a request holds by the frame of the step it is back at, which is popped.
    fn hold_of_frame(&self, slot: SlotId, pc: usize, depth: &mut usize) -> Option<HoldKind> {
        let what = match self.core.code.steps[pc].op {
            Op::ReturnTarget { lb } => {
                let [_, _, target] = self.core.states.frame(slot, *depth - 1);
                Some(HoldKind::Picked { lb, target: TargetId(target) })
            }
            Op::Cold(ColdOp::TellGuard { lb }) => {
                let ticket = self.ticket(slot, *depth).1;
                *depth -= 1;
                Some(HoldKind::Sent { lb, ticket, late: false })
            }
            _ => None,
        };
        *depth -= 1;
        what
    }

    /// What a request holds, from its step to the end of a limit.
    pub(crate) fn holds_of(&self, slot: SlotId, limit: &Limit) -> Vec<Hold> {
        let code = self.core.code;
        let state = &self.core.states.slots[slot.index()];
        let (mut pc, mut member) = ((state.pc & !FLAGS) as usize, state.member);
        let mut depth = usize::from(state.depth);
        let mut holds = Vec::new();
        if let (Op::Cold(ColdOp::EndBranch { .. }), 0) = (code.steps[pc].op, state.pc & FAN) {
            // It has returned, and what is around that step is not its own.
            return holds;
        }
        if state.pc & PARKED == 0 && pc > 0 {
            let (own, at) = self.hold_at(code.steps[pc - 1].op, pc, state.pc & LINE != 0);
            pc = at;
            holds.extend(own.map(|(what, pc)| Hold { what, member, pc, depth }));
        }
        // Back at a balancer, or from a call, the frame is its own.
        let mut popped = matches!(
            code.steps[pc].op,
            Op::ReturnTarget { .. }
                | Op::Cold(ColdOp::TellGuard { .. })
                | Op::CallReturn
                | Op::Cold(ColdOp::NextInSequence { .. })
        );
        loop {
            if std::mem::take(&mut popped) {
                let what = self.hold_of_frame(slot, pc, &mut depth);
                holds.extend(what.map(|what| Hold { what, member, pc: pc as u32, depth }));
            }
            let outermost = depth == usize::from(limit.depth);
            let at = code.gives_back[pc];
            if at != NOT && !(outermost && at >= limit.end) {
                match code.steps[at as usize].op {
                    Op::LeaveQueue { queue } => {
                        holds.push(Hold { what: HoldKind::Slot { queue }, member, pc: at, depth });
                    }
                    // A health check takes none.
                    Op::Cold(ColdOp::ReturnConnection { .. }) if state.pc & CHECK == 0 => {
                        depth -= 1;
                        let [_, _, conn] = self.core.states.frame(slot, depth);
                        holds.push(Hold { what: HoldKind::Connection { conn }, member, pc: at, depth });
                    }
                    _ => {}
                }
                pc = at as usize + 1;
                continue;
            }
            if outermost {
                return holds;
            }
            let [back, caller, _] = self.core.states.frame(slot, depth - 1);
            pc = (back & !IDLE) as usize;
            member = MemberId(caller);
            popped = true;
        }
    }

    /// The hold of a request that waits at the step before `pc`, with the step that gives it back; and the step from
    /// which the search for further holds begins.
    fn hold_at(&self, before: Op, pc: usize, waits: bool) -> (Option<(HoldKind, u32)>, usize) {
        match before {
            Op::EnterQueue { queue } if waits => {
                let skip = self.core.code.queues[queue as usize].skip;
                (Some((HoldKind::Line { queue }, skip - 1)), pc - 1)
            }
            Op::Cold(ColdOp::AskGuard { lb }) if waits => {
                (Some((HoldKind::GuardLine { lb }, pc as u32 - 1)), pc - 1)
            }
            Op::Cold(ColdOp::TakeConnection { at }) if waits => {
                (Some((HoldKind::Connecting { at }, pc as u32 - 1)), pc - 1)
            }
            Op::EnterShare { share } if waits => (Some((HoldKind::ShareLine { share }, pc as u32)), pc),
            Op::EnterShare { share } => (Some((HoldKind::Share { share }, pc as u32)), pc),
            op => (self.lost_at(op).map(|(stage, _)| (HoldKind::Lost { stage }, pc as u32)), pc),
        }
    }

    /// A request left behind goes on from the end of its wait.
    fn stop_at(&mut self, slot: SlotId, stands: &WaitEnd, now_ns: u64) {
        self.core.scopes.slots[slot.index()].drawn = stands.drawn;
        let state = &mut self.core.states.slots[slot.index()];
        state.tag = state.tag.wrapping_add(1);
        (state.pc, state.member, state.depth) =
            (stands.pc as u32 | PARKED, stands.member, stands.depth as u16);
        let (at, tag) = (stands.at.min(END_OF_TIME), state.tag);
        self.core.pending.push(now_ns, Entry { at, key: self.step_key(slot), who: slot.0, tag });
    }

    /// Whether a request that goes on unwanted ends at a step.
    pub(crate) fn is_left_at(&self, slot: SlotId, pc: usize, depth: usize) -> bool {
        self.core.states.slots[slot.index()].is_unwanted() && self.core.scopes.ends_at(slot, pc, depth)
    }

    /// Ends a request that went on unwanted at the queue or server where it was left behind.
    #[cold]
    pub(crate) fn vanish_at(&mut self, slot: SlotId, stage: StageId, member: MemberId, now_ns: u64) {
        self.leaves_node(stage, member, now_ns);
        self.vanish(slot, now_ns);
    }

    /// Ends a request that went on unwanted.
    #[cold]
    pub(crate) fn vanish(&mut self, slot: SlotId, now_ns: u64) {
        self.core.ledger.last_stop = self.core.ledger.last_stop.max(now_ns);
        if self.features.work_left.is_kept() {
            self.features.work_left.drop(slot);
        }
        self.core.scopes.end(slot);
        self.features.branches.clear(slot);
        self.core.states.remove(slot);
    }

    /// Books time of a request that goes on unwanted. It passes outside of the slots around the place where the
    /// request was left behind: those were given back.
    #[cold]
    pub(crate) fn spend(&mut self, slot: SlotId, stage: StageId, member: MemberId, ns: u64) {
        let ns = ns & self.core.states.slots[slot.index()].mask();
        let at = |offset: u32| self.core.code.row(offset, member);
        let here = &self.core.code.stages[stage.index()];
        let spent = &mut self.core.ledger.spent[at(here.part)];
        *spent = spent.wrapping_add(ns);
        let top = self.features.branches.top(slot);
        let floor = self.core.scopes.slots[top.index()].floor;
        if floor == NOT {
            return;
        }
        let floor = match self.core.code.steps[floor as usize].op {
            Op::LeaveQueue { queue } => self.core.code.queues[queue as usize].stage,
            Op::LeaveShare { share } => self.core.code.shares[share as usize].stage,
            _ => return,
        };
        let first = self.core.code.blocks[here.block as usize].stages.start;
        if !(first..=stage.0).contains(&floor.0) {
            return;
        }
        for around in &self.core.code.stages[first as usize..floor.index()] {
            if let Some(gauge) = around.gauge {
                let behind = &mut self.core.ledger.behind[at(gauge)];
                *behind = behind.wrapping_add(ns);
            }
        }
    }

    /// A request leaves the line without being served.
    pub(crate) fn leave_line(&mut self, slot: SlotId, queue: u32, member: MemberId, now_ns: u64) {
        let site = &self.core.code.queues[queue as usize];
        let gauge = &mut self.core.ledger.gauges[self.core.code.row(site.gauge, member)];
        gauge.waiting = gauge.waiting.wrapping_add(now_ns);
        self.core.members[member.index_from(site.offset)].queue.abandon(&mut self.core.links, slot.0);
        self.charge(slot, site.stage, member, now_ns);
    }

    /// Counts a request that is cut off on its way in: it has not reached what is behind.
    pub(crate) fn count_cut(&mut self, stage: StageId, member: MemberId, selected: u64) {
        if let Some(offset) = self.core.code.stages[stage.index()].cuts {
            self.core.ledger.cuts[member.index_from(offset)] += selected & 1;
        }
    }
}
