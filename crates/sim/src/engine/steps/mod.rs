//! The step loop of a request: it runs through its code until it reaches a step whose turn has not come.
//!
//! The loop in [`Engine::go_on`] is one function on purpose, and the only one that may be longer than a screen: where
//! the request is (`pc`, `member`, `depth`, `time`) stays in locals from step to step. Three conventions hold in it:
//!
//! - `state` borrows the request's slot, and `again!()` borrows it anew. It follows every call on `self`, before
//!   `state` is used once more, since the call may have changed or moved the states.
//! - A step that another request could see begins with `in_turn!()`, which leaves the loop while the request is ahead
//!   of the clock.
//! - A step that few topologies have is out of line: [`crate::code::ColdOp`] in `detour`, some others in functions of
//!   their own.

mod cold_steps;
mod waiting;

pub(crate) use cold_steps::on_visit;

use crate::code::MemberId;
use crate::code::Op;
use crate::code::SlotId;
use crate::engine::Engine;
#[cfg(test)]
use crate::engine::Sabotage;
use crate::state::request_state::{BEGINS, CHECK, FAN, IDLE, LINE, PARKED};
use weir_model::queue::Entry as QueueEntry;
use weir_policy::config::{Exclude, Work};
use weir_policy::{Kind, TargetId};

impl Engine<'_> {
    /// Runs a request from its step. `now` is the clock, `time` the request's own, which may be ahead or, on arrival,
    /// behind by the prefix.
    ///
    /// Never inlined: inside the loop over events its registers end up on the stack, which costs a fifth.
    #[inline(never)]
    #[expect(clippy::too_many_lines, reason = "the head of this file says why")]
    pub(crate) fn go_on(&mut self, slot: SlotId, now_ns: u64, time: u64, after_faults: bool) {
        let code = self.core.code;
        // Held as long as nothing else may change it: borrowed again after each call that could.
        let mut state = &mut self.core.states.slots[slot.index()];
        macro_rules! again {
            () => {
                state = &mut self.core.states.slots[slot.index()]
            };
        }
        if state.pc & (LINE | BEGINS | CHECK | FAN) != 0 {
            if self.begin_or_go(slot, now_ns) {
                return;
            }
            again!();
        }
        let (mut pc, mut member, mut depth) =
            ((state.pc & !PARKED) as usize, state.member, usize::from(state.depth));
        // Whether it is selected, and has failed, is read from the state each time: a local would be spilled.
        let (mut time, mut drawn) = (time, false);
        let mut step = code.steps[pc];
        if state.pc & PARKED == 0 {
            time = time.saturating_add(step.wait_ns);
        }
        // A step in turn whose time has not come.
        macro_rules! in_turn {
            () => {
                if time != now_ns {
                    break;
                }
            };
        }
        macro_rules! count_errors {
            () => {
                if state.has_failed() {
                    if code.can_be_cut[pc] {
                        in_turn!();
                    }
                    self.count_errors(slot, member, pc);
                    again!();
                }
            };
        }
        // Time at a stage; as `book`.
        macro_rules! charge {
            ($site:expr, $ns:expr) => {
                if code.charges {
                    self.charge(slot, $site.stage, member, $ns);
                    again!();
                } else {
                    let part = &mut self.core.ledger.parts[code.row($site.part, member)];
                    *part = part.wrapping_add($ns & state.mask());
                }
            };
        }
        macro_rules! instance {
            ($site:expr) => {{
                let first = member.number_from($site.offset);
                if $site.shared {
                    first
                } else {
                    first
                        + u32::from(self.core.scopes.slots[slot.index()].meets) * code.instances.len() as u32
                }
            }};
        }
        macro_rules! draw {
            ($site:expr) => {{
                let mut key = self.core.draw_keys[$site.key as usize].with(state.way.bits());
                if let Some(counter) = $site.visits {
                    key = on_visit(key, self.core.states.rows.visits.count(slot, counter));
                }
                $site.sampler.draw(key)
            }};
        }
        loop {
            match step.op {
                Op::Draw { draw } => {
                    let site = &code.draws[draw as usize];
                    let ns = draw!(site);
                    let booked = ns & state.mask();
                    #[cfg(test)]
                    let booked = {
                        let broken = self.breaks(Sabotage::MiscountWork);
                        again!();
                        if broken { 0 } else { booked }
                    };
                    let part = &mut self.core.ledger.parts[code.row(site.part, member)];
                    *part = part.wrapping_add(booked);
                    time = time.saturating_add(ns);
                    drawn = true;
                    pc += 1;
                }
                Op::Wait { wait } => {
                    let site = &code.waits[wait as usize];
                    if time == now_ns {
                        self.core.scopes.stand(slot, now_ns, pc, member, depth);
                    }
                    time = time.saturating_add(site.ns);
                    charge!(site, site.ns);
                    pc += 1;
                }
                Op::WaitDrawn { draw } => {
                    if time == now_ns {
                        self.core.scopes.stand(slot, now_ns, pc, member, depth);
                    } else if self.core.scopes.is_full(slot) {
                        break;
                    }
                    let site = &code.draws[draw as usize];
                    let mut ns = draw!(site);
                    if site.scaled || site.loss.is_some() {
                        ns = self.longer(slot, draw, ns);
                        if let Some(pause) = site.pause {
                            ns = self.held_ns(pause, member, time, ns);
                        }
                        again!();
                    }
                    charge!(site, ns);
                    self.core.scopes.drew(slot, ns);
                    time = time.saturating_add(ns);
                    drawn = true;
                    pc += 1;
                }
                Op::EnterLimit { limit } => {
                    in_turn!();
                    self.begin_limit(slot, limit, member, depth, now_ns);
                    again!();
                    if state.has_failed() {
                        // Left behind by a client that has gone: the nodes behind know nothing of that.
                        state.set_outcome(None);
                    }
                    pc += 1;
                }
                Op::LeaveLimit => {
                    if time != now_ns && (state.has_failed() || self.core.scopes.may_be_cut(slot, time)) {
                        break;
                    }
                    count_errors!();
                    self.core.scopes.leave_innermost(slot);
                    pc += 1;
                }
                Op::PickTarget { lb } => {
                    let site = &code.lbs[lb as usize];
                    if site.ordered {
                        in_turn!();
                    }
                    let instance = instance!(site);
                    let of = &mut self.core.balancers[instance as usize];
                    if site.counts {
                        of.take_returns(self.core.turn);
                    }
                    let draw = of.picks.with(self.core.states.rows.tries(state, slot).bits());
                    let rule = state.exclude();
                    let picked = if rule == Exclude::None || self.core.states.tried[slot.index()].is_empty() {
                        of.balancer.pick(draw, &[])
                    } else {
                        let own = self.features.hops.tag(slot, instance);
                        of.pick_anew(
                            draw,
                            &self.core.states.tried[slot.index()],
                            own,
                            &mut self.core.excluded,
                        )
                    };
                    match picked {
                        Some(index) => {
                            if rule != Exclude::None {
                                let own = self.features.hops.tag(slot, instance);
                                self.core.states.tried[slot.index()].picked(rule, own, index);
                            }
                            let target = of.target(code, index);
                            let back = (pc as u32 + 1) | if site.counts || site.changes { 0 } else { IDLE };
                            self.core.states.rows.set_frame(state, slot, depth, [back, member.0, index.0]);
                            depth += 1;
                            pc = target.pc as usize;
                            member = target.member;
                            self.core.members[member.index()].entries += i32::from(state.selected());
                            if site.changes && code.watch.is_some() {
                                self.goes_to_target(instance, index, now_ns);
                                again!();
                            }
                        }
                        None => {
                            self.refuse(slot, member, site.stage, Kind::NoTarget);
                            again!();
                            pc = site.skip as usize;
                        }
                    }
                }
                Op::ReturnTarget { lb } => {
                    let site = &code.lbs[lb as usize];
                    let failed = state.has_failed();
                    if site.can_be_cut
                        && time != now_ns
                        && (failed || self.core.scopes.may_be_cut(slot, time))
                    {
                        break;
                    }
                    if site.changes {
                        in_turn!();
                    }
                    if site.counts || failed || site.changes {
                        let target = TargetId(self.core.states.rows.frame(state, slot, depth - 1)[2]);
                        let instance = instance!(site);
                        if site.changes && self.features.changes.follows_returns() {
                            self.leaves_target(instance, target, now_ns);
                            again!();
                        }
                        if !site.counts {
                            self.came_back(slot, instance, target);
                            again!();
                        } else if time != now_ns {
                            let noted = !failed && self.done_late(slot, instance, target, time);
                            again!();
                            if !noted {
                                break;
                            }
                        } else if failed {
                            self.done(slot, instance, target, now_ns);
                            again!();
                        } else {
                            self.core.balancers[instance as usize].balancer.succeeded(target);
                        }
                    }
                    count_errors!();
                    depth -= 1;
                    pc += 1;
                }
                Op::EnterQueue { queue } => {
                    let site = &code.queues[queue as usize];
                    let at = &mut self.core.members[member.index_from(site.offset)];
                    if time == now_ns {
                        at.coming -= u32::from(site.ahead);
                    } else if site.ahead && at.coming == 0 && at.queue.is_idle() {
                        // No other request can come in between: it enters at its time, which is known.
                        at.since = time;
                    } else {
                        at.coming += u32::from(site.ahead);
                        break;
                    }
                    let queue = &mut at.queue;
                    let gauge = &mut self.core.ledger.gauges[code.row(site.gauge, member)];
                    match queue.enter(site.limits, &mut self.core.links, slot.0) {
                        QueueEntry::Inside => {
                            gauge.busy = gauge.busy.wrapping_sub(time);
                            gauge.served = gauge.served.wrapping_sub(time & state.mask());
                            gauge.started += u64::from(state.selected());
                            pc += 1;
                        }
                        QueueEntry::Waits => {
                            gauge.waiting = gauge.waiting.wrapping_sub(now_ns);
                            gauge.most = gauge.most.max(queue.waiting());
                            return self.stand_in_line(site, slot, pc, member, depth, now_ns);
                        }
                        QueueEntry::Full => {
                            self.count_refusal(slot, member, site.stage);
                            self.refuse(slot, member, site.stage, Kind::Overloaded);
                            again!();
                            pc = site.skip as usize;
                        }
                    }
                }
                Op::LeaveQueue { queue } => {
                    in_turn!();
                    let selected = state.mask();
                    self.leave(queue, member, selected, now_ns);
                    again!();
                    count_errors!();
                    if code.goes_on {
                        if self.is_left_at(slot, pc, depth) {
                            return self.vanish_at(slot, code.queues[queue as usize].stage, member, now_ns);
                        }
                        again!();
                    }
                    pc += 1;
                }
                Op::EnterShare { share } => {
                    in_turn!();
                    self.come_to_share(slot, share, pc, member, depth, now_ns);
                    return;
                }
                Op::LeaveShare { share } => {
                    in_turn!();
                    if !self.go_from_share(slot, share, pc, member, depth, now_ns) {
                        return;
                    }
                    again!();
                    pc += 1;
                }
                Op::TakeToken { rate } => {
                    in_turn!();
                    pc = self.take_token(slot, rate, member, now_ns).unwrap_or(pc + 1);
                    again!();
                }
                Op::Flaky { flaky } => {
                    in_turn!();
                    self.pass_flaky(slot, flaky, pc, member);
                    again!();
                    pc += 1;
                }
                Op::LeaveFaulty { .. } => {
                    if time != now_ns && (state.has_failed() || self.core.scopes.may_be_cut(slot, time)) {
                        break;
                    }
                    self.survived(slot, pc, member);
                    again!();
                    pc += 1;
                }
                Op::EnterRetry { retry } => {
                    if let Some(budget) = code.retries[retry as usize].budget {
                        in_turn!();
                        self.earn(slot, member.number_from(budget), now_ns);
                        again!();
                    }
                    let exclude = code.retries[retry as usize].config.exclude;
                    self.core.states.rows.begin_attempts(state, slot, exclude);
                    pc += 1;
                }
                Op::BeginAttempt { .. } | Op::Serve => pc += 1,
                Op::EndAttempt { retry } => {
                    let site = &code.retries[retry as usize];
                    let failed = state.has_failed();
                    if failed && (site.budget.is_some() || site.config.backoff_ns > 0) {
                        in_turn!();
                    }
                    if site.in_turn
                        && time != now_ns
                        && (failed || code.details || self.core.scopes.may_be_cut(slot, time))
                    {
                        break;
                    }
                    count_errors!();
                    // An answer's status may be retried although it is not a failure.
                    if !failed && !code.details {
                        let redraw = site.config.work == Work::Redraw;
                        self.core.states.rows.end_attempts(state, slot, redraw);
                        pc += 1;
                    } else {
                        match self.next_attempt(slot, member, retry, now_ns) {
                            None => pc += 1,
                            Some(0) => pc = site.again as usize,
                            Some(ns) => return self.back_off(slot, site.again, member, depth, now_ns, ns),
                        }
                        again!();
                    }
                }
                Op::Fault { fault } => {
                    in_turn!();
                    let site = &code.faults[fault as usize];
                    let node = &mut self.core.faults[member.index_from(site.offset)];
                    if node.is_up(&site.law, now_ns, after_faults) {
                        pc += 1;
                    } else {
                        self.count_refusal(slot, member, site.stage);
                        self.refuse(slot, member, site.stage, Kind::Refused);
                        again!();
                        pc = site.skip as usize;
                    }
                }
                Op::CountErrors => {
                    count_errors!();
                    pc += 1;
                }
                Op::Call { call } => {
                    let site = code.calls[call as usize];
                    let target = code.call_targets[member.index_from(site.offset)];
                    let frame = [(pc as u32 + 1) | IDLE, member.0, 0];
                    self.core.states.rows.set_frame(state, slot, depth, frame);
                    depth += 1;
                    pc = target.pc as usize;
                    member = target.member;
                    self.core.members[member.index()].entries += i32::from(state.selected());
                }
                Op::CallReturn => {
                    depth -= 1;
                    pc += 1;
                }
                Op::Return => {
                    count_errors!();
                    let [back, caller, _] = self.core.states.rows.frame(state, slot, depth - 1);
                    let behind = usize::from(back & IDLE != 0 && !state.has_failed());
                    pc = (back & !IDLE) as usize + behind;
                    depth -= behind;
                    member = MemberId(caller);
                }
                Op::End => {
                    if code.ends_in_turn
                        || code.patience_ns.is_some()
                            && time != now_ns
                            && self.core.scopes.may_be_cut(slot, time)
                    {
                        in_turn!();
                    }
                    if state.has_failed() {
                        if code.can_be_cut[pc] {
                            in_turn!();
                        }
                        self.count_errors(slot, member, pc);
                    }
                    return self.end(slot, now_ns, time);
                }
                // Steps that only some topologies have: in turn, and out of line.
                Op::Cold(_) => {
                    in_turn!();
                    if !self.detour(slot, pc, member, depth, now_ns, after_faults) {
                        return;
                    }
                    again!();
                    (pc, member, depth) = (state.pc as usize, state.member, usize::from(state.depth));
                }
            }
            step = code.steps[pc];
            time = time.saturating_add(step.wait_ns);
        }
        // It has reached a step whose time has not come.
        state.stop_at(pc as u32 | PARKED, member, depth);
        self.come_back_at(slot, now_ns, time, drawn);
    }
}
