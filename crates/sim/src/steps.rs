//! The steps of a request: it runs through its code until it comes to one that is not yet its turn.

use crate::code::Op;
use crate::engine::{END_OF_TIME, Engine};
use crate::pending::{Class, Entry, order_key, ranked};
use crate::token::{BEGINS, IDLE, LINE, PARKED};
use weir_model::queue::Entry as QueueEntry;
use weir_policy::Kind;

impl Engine<'_> {
    /// Runs a request from where it stands. `now` is the clock, `time` the request's own, which may be ahead or, on
    /// arrival, behind by the prefix.
    ///
    /// Never inlined: inside the loop over events its registers end up on the stack, which costs a fifth.
    #[inline(never)]
    pub(crate) fn go_on(&mut self, slot: u32, now: u64, time: u64, after_faults: bool) {
        let code = self.code;
        if self.tokens.slots[slot as usize].pc & (LINE | BEGINS) != 0 && self.begin_or_go(slot, now) {
            return;
        }
        let token = &self.tokens.slots[slot as usize];
        let (mut pc, mut member, mut depth) =
            ((token.pc & !PARKED) as usize, token.member, usize::from(token.depth));
        let mut failed = token.outcome().is_some();
        let selected = token.mask();
        let mut time = time;
        if token.pc & PARKED != 0 {
            // It has waited before this step already.
            time -= code.steps[pc].wait_ns;
        }
        let mut drawn = false;
        // A step in turn, when it is not yet its time.
        macro_rules! in_turn {
            () => {
                if time != now {
                    break;
                }
            };
        }
        macro_rules! count_errors {
            () => {
                if failed {
                    if code.can_be_cut[pc] {
                        in_turn!();
                    }
                    self.count_errors(slot, member, pc);
                }
            };
        }
        loop {
            let step = code.steps[pc];
            time = time.saturating_add(step.wait_ns);
            match step.op {
                Op::Draw { draw } => {
                    time = time.saturating_add(self.draw(slot, member, draw, selected));
                    drawn = true;
                    pc += 1;
                }
                Op::Stand { wait } => {
                    let site = &code.waits[wait as usize];
                    if time == now {
                        self.scopes.stand(slot, now, pc, member, depth);
                    }
                    time = time.saturating_add(site.ns);
                    if code.books {
                        self.book(slot, site.stage, member, site.ns);
                    } else {
                        let part =
                            &mut self.ledger.parts[site.part.wrapping_add(member & code.mask) as usize];
                        *part = part.wrapping_add(site.ns & selected);
                    }
                    pc += 1;
                }
                Op::StandDrawn { draw } => {
                    if time == now {
                        self.scopes.stand(slot, now, pc, member, depth);
                    } else if self.scopes.is_full(slot) {
                        break;
                    }
                    let ns = self.drawn(slot, draw);
                    self.book(slot, code.draws[draw as usize].stage, member, ns);
                    self.scopes.drew(slot, ns);
                    time = time.saturating_add(ns);
                    drawn = true;
                    pc += 1;
                }
                Op::Limit { limit } => {
                    in_turn!();
                    self.begin_limit(slot, limit, member, depth, now);
                    if failed {
                        // Left behind by a client who has gone: what is behind knows nothing of that.
                        self.tokens.slots[slot as usize].set_outcome(None);
                        failed = false;
                    }
                    pc += 1;
                }
                Op::Limited => {
                    in_turn!();
                    count_errors!();
                    self.end_limit(slot);
                    pc += 1;
                }
                Op::Pick { lb } => {
                    let site = &code.lbs[lb as usize];
                    if site.ordered {
                        in_turn!();
                    }
                    let instance = self.instance(slot, site, member);
                    match self.pick(slot, instance, site.counts) {
                        Some(index) => {
                            let target = self.balancers[instance as usize].targets.get(code, index);
                            let back = (pc as u32 + 1) | if site.counts { 0 } else { IDLE };
                            self.tokens.set_frame(slot, depth, [back, member, index]);
                            depth += 1;
                            pc = target.pc as usize;
                            member = target.member;
                            self.members[member as usize].entries += selected as u32 & 1;
                        }
                        None => {
                            self.refuse(slot, member, site.stage, Kind::NoTarget);
                            failed = true;
                            pc = site.skip as usize;
                        }
                    }
                }
                Op::Done { lb } => {
                    let site = &code.lbs[lb as usize];
                    if site.can_be_cut {
                        in_turn!();
                    }
                    if site.counts {
                        let target = self.tokens.frame(slot, depth - 1)[2];
                        let instance = self.instance(slot, site, member);
                        if time == now {
                            self.done(slot, instance, target, now);
                        } else if failed || !self.done_late(slot, instance, target, time) {
                            break;
                        }
                    } else if failed {
                        let target = self.tokens.frame(slot, depth - 1)[2];
                        self.came_back(slot, self.instance(slot, site, member), target);
                    }
                    count_errors!();
                    depth -= 1;
                    pc += 1;
                }
                Op::Enter { queue } => {
                    let site = &code.queues[queue as usize];
                    let at = &mut self.members[member.wrapping_add(site.offset) as usize];
                    if time == now {
                        at.coming -= u32::from(site.ahead);
                    } else if site.ahead && at.coming == 0 && at.queue.is_idle() {
                        // Nobody can come in between: it enters at its time, which is known.
                        at.since = time;
                    } else {
                        at.coming += u32::from(site.ahead);
                        break;
                    }
                    let queue = &mut at.queue;
                    let gauge = &mut self.ledger.gauges[site.gauge.wrapping_add(member & code.mask) as usize];
                    match queue.enter(site.limits, &mut self.links, slot) {
                        QueueEntry::Inside => {
                            gauge.busy = gauge.busy.wrapping_sub(time);
                            gauge.served = gauge.served.wrapping_sub(time & selected);
                            gauge.started += selected & 1;
                            pc += 1;
                        }
                        QueueEntry::Waits => {
                            gauge.waiting = gauge.waiting.wrapping_sub(now);
                            gauge.most = gauge.most.max(queue.waiting());
                            if code.books {
                                self.stops(slot, site.stage, member, now);
                            } else {
                                let part = &mut self.ledger.parts
                                    [site.part.wrapping_add(member & code.mask) as usize];
                                *part = part.wrapping_sub(now & selected);
                            }
                            self.leave_at(slot, (pc as u32 + 1) | LINE, member, depth);
                            if let Some(ns) = site.timeout_ns {
                                self.end_wait_after(slot, now, ns);
                            }
                            return;
                        }
                        QueueEntry::Full => {
                            self.count_refusal(slot, member, site.stage);
                            self.refuse(slot, member, site.stage, Kind::Overloaded);
                            failed = true;
                            pc = site.skip as usize;
                        }
                    }
                }
                Op::Leave { queue } => {
                    in_turn!();
                    self.leave(queue, member, selected, now);
                    count_errors!();
                    if code.goes_on && self.is_left_at(slot, pc, depth) {
                        return self.vanish(slot, now);
                    }
                    pc += 1;
                }
                Op::Share { .. } | Op::Shared { .. } | Op::Token { .. } | Op::Flaky { .. } => {
                    in_turn!();
                    match self.rare(slot, pc, member, depth, now, failed) {
                        Some((next, fails)) => (pc, failed) = (next, fails),
                        None => return,
                    }
                }
                Op::Ask { .. }
                | Op::Told { .. }
                | Op::Choose { .. }
                | Op::Rewrite { .. }
                | Op::Unrewrite
                | Op::Answer { .. }
                | Op::Down { .. }
                | Op::Survived { .. }
                | Op::Lossy { .. }
                | Op::Warm { .. }
                | Op::Cool => {
                    in_turn!();
                    if !self.detour(slot, pc, member, depth, now, after_faults) {
                        return;
                    }
                    let token = &self.tokens.slots[slot as usize];
                    (pc, member, depth) = (token.pc as usize, token.member, usize::from(token.depth));
                    failed = token.outcome().is_some();
                }
                Op::Try { retry } => {
                    if let Some(budget) = code.retries[retry as usize].budget {
                        in_turn!();
                        self.earn(slot, member.wrapping_add(budget), now);
                    }
                    self.tokens.begin_attempts(slot, code.retries[retry as usize].config.exclude);
                    pc += 1;
                }
                Op::Again { .. } => pc += 1,
                Op::Tried { retry } => {
                    let site = &code.retries[retry as usize];
                    if site.in_turn || failed && (site.budget.is_some() || site.config.backoff_ns > 0) {
                        in_turn!();
                    }
                    count_errors!();
                    match self.next_attempt(slot, member, retry, now) {
                        None => pc += 1,
                        Some(0) => {
                            failed = false;
                            pc = site.again as usize;
                        }
                        Some(ns) => {
                            return self.back_off(slot, site.again, member, depth, now, ns);
                        }
                    }
                }
                Op::Fault { fault } => {
                    in_turn!();
                    let site = &code.faults[fault as usize];
                    let node = &mut self.faults[member.wrapping_add(site.offset) as usize];
                    if node.is_up(&site.law, now, after_faults) {
                        pc += 1;
                    } else {
                        self.count_refusal(slot, member, site.stage);
                        self.refuse(slot, member, site.stage, Kind::Refused);
                        failed = true;
                        pc = site.skip as usize;
                    }
                }
                Op::Pass => {
                    count_errors!();
                    pc += 1;
                }
                Op::Call { call } => {
                    let site = code.calls[call as usize];
                    let target = code.call_targets[member.wrapping_add(site.offset) as usize];
                    self.tokens.set_frame(slot, depth, [(pc as u32 + 1) | IDLE, member, 0]);
                    depth += 1;
                    pc = target.pc as usize;
                    member = target.member;
                    self.members[member as usize].entries += selected as u32 & 1;
                }
                Op::Back => {
                    depth -= 1;
                    pc += 1;
                }
                Op::Return => {
                    count_errors!();
                    let [back, caller, _] = self.tokens.frame(slot, depth - 1);
                    let behind = usize::from(back & IDLE != 0 && !failed);
                    pc = (back & !IDLE) as usize + behind;
                    depth -= behind;
                    member = caller;
                }
                Op::End => {
                    if code.patience_ns.is_some() {
                        in_turn!();
                    }
                    count_errors!();
                    return self.end(slot, now, time);
                }
            }
        }
        self.park(slot, pc, member, depth, now, time, drawn);
    }

    /// The order of a request's steps; by rank where several of one request can be on the way.
    #[inline]
    pub(crate) fn step_key(&self, slot: u32) -> u64 {
        let ordinal = self.tokens.slots[slot as usize].ordinal;
        if self.code.goes_on {
            return ranked(order_key(Class::Step, ordinal), self.scopes.slots[slot as usize].rank);
        }
        crate::engine::step_key(ordinal)
    }

    /// What few topologies have, in its turn: where the request goes on, and whether it has failed; `None`: it stops.
    #[inline(never)]
    pub(crate) fn rare(
        &mut self,
        slot: u32,
        pc: usize,
        member: u32,
        depth: usize,
        now: u64,
        failed: bool,
    ) -> Option<(usize, bool)> {
        let code = self.code;
        let selected = self.tokens.slots[slot as usize].mask();
        match code.steps[pc].op {
            Op::Share { share } => {
                let waits = self.enter_share(slot, share, member, selected, now);
                self.book(slot, code.shares[share as usize].stage, member, now.wrapping_neg());
                self.leave_at(slot, (pc as u32 + 1) | if waits { LINE } else { 0 }, member, depth);
                return None;
            }
            Op::Shared { share } => {
                self.leave_share(slot, share, member, selected, now);
                self.book(slot, code.shares[share as usize].stage, member, now);
                if failed {
                    self.count_errors(slot, member, pc);
                }
                if self.is_left_at(slot, pc, depth) {
                    self.vanish(slot, now);
                    return None;
                }
            }
            Op::Token { rate } => {
                let site = code.rate_sites[rate as usize];
                let key = site.key.and_then(|key| self.key(slot, key));
                if self.rates[member.wrapping_add(site.offset) as usize].take(now, key).is_err() {
                    self.count_refusal(slot, member, site.stage);
                    self.refuse(slot, member, site.stage, Kind::Overloaded);
                    return Some((site.skip as usize, true));
                }
            }
            Op::Flaky { flaky } => {
                if failed {
                    self.count_errors(slot, member, pc);
                }
                return Some((pc + 1, failed || self.fails(slot, flaky)));
            }
            _ => {}
        }
        Some((pc + 1, failed))
    }

    /// The request stops here until it is called again.
    #[inline]
    pub(crate) fn leave_at(&mut self, slot: u32, pc: u32, member: u32, depth: usize) {
        let token = &mut self.tokens.slots[slot as usize];
        token.pc = pc;
        token.member = member;
        token.depth = depth as u16;
    }

    /// The request has come to a step that is not yet its time.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the registers of a request, which must stay in registers")]
    pub(crate) fn park(
        &mut self,
        slot: u32,
        pc: usize,
        member: u32,
        depth: usize,
        now: u64,
        time: u64,
        drawn: bool,
    ) {
        self.leave_at(slot, pc as u32 | PARKED, member, depth);
        let token = &self.tokens.slots[slot as usize];
        let at = time.min(END_OF_TIME);
        let entry = Entry { at, key: self.step_key(slot), who: slot, tag: token.tag };
        debug_assert!(at >= now);
        if drawn || now > time {
            self.pending.push_often(now, entry);
        } else {
            self.pending.push_constant(at - now, entry);
        }
    }
}
