//! The steps of a request: it runs through its code until it comes to one that is not yet its turn.

mod rare;

use crate::code::Op;
use crate::draws::purpose;
#[cfg(test)]
use crate::engine::Sabotage;
use crate::engine::{END_OF_TIME, Engine};
use crate::order::{Class, Entry, order_key, ranked};
use crate::token::{BEGINS, CHECK, FAN, IDLE, LINE, PARKED};
use weir_model::queue::Entry as QueueEntry;
use weir_policy::Kind;
use weir_policy::config::{Exclude, Work};
use weir_stats::Key;

impl Engine<'_> {
    /// Runs a request from where it stands. `now` is the clock, `time` the request's own, which may be ahead or, on
    /// arrival, behind by the prefix.
    ///
    /// Never inlined: inside the loop over events its registers end up on the stack, which costs a fifth.
    #[inline(never)]
    pub(crate) fn go_on(&mut self, slot: u32, now: u64, time: u64, after_faults: bool) {
        let code = self.code;
        // Held as long as nobody else may change it: found anew after whatever does.
        let mut token = &mut self.tokens.slots[slot as usize];
        macro_rules! again {
            () => {
                token = &mut self.tokens.slots[slot as usize]
            };
        }
        if token.pc & (LINE | BEGINS | CHECK | FAN) != 0 {
            if self.begin_or_go(slot, now) {
                return;
            }
            again!();
        }
        let (mut pc, mut member, mut depth) =
            ((token.pc & !PARKED) as usize, token.member, usize::from(token.depth));
        // Whether it is selected, and has failed, is asked of the token each time: a local of it would be spilled.
        let (mut time, mut drawn) = (time, false);
        let mut step = code.steps[pc];
        if token.pc & PARKED == 0 {
            time = time.saturating_add(step.wait_ns);
        }
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
                if token.has_failed() {
                    if code.can_be_cut[pc] {
                        in_turn!();
                    }
                    self.count_errors(slot, member, pc);
                    again!();
                }
            };
        }
        // Time at a stage; as `book`.
        macro_rules! book {
            ($site:expr, $ns:expr) => {
                if code.books {
                    self.book(slot, $site.stage, member, $ns);
                    again!();
                } else {
                    let part = &mut self.ledger.parts[$site.part.wrapping_add(member & code.mask) as usize];
                    *part = part.wrapping_add($ns & token.mask());
                }
            };
        }
        macro_rules! instance {
            ($site:expr) => {{
                let first = member.wrapping_add($site.offset);
                if $site.shared {
                    first
                } else {
                    first + u32::from(self.scopes.slots[slot as usize].meets) * code.instances.len() as u32
                }
            }};
        }
        macro_rules! draw {
            ($site:expr) => {{
                let mut key = self.draw_keys[$site.key as usize].with(token.way.bits());
                if let Some(counter) = $site.visits {
                    key = on_visit(key, self.tokens.rows.visits.count(slot, counter));
                }
                $site.sampler.draw(key)
            }};
        }
        loop {
            match step.op {
                Op::Draw { draw } => {
                    let site = &code.draws[draw as usize];
                    let ns = draw!(site);
                    let booked = ns & token.mask();
                    #[cfg(test)]
                    let booked = {
                        let broken = self.breaks(Sabotage::MiscountWork);
                        again!();
                        if broken { 0 } else { booked }
                    };
                    let part = &mut self.ledger.parts[site.part.wrapping_add(member & code.mask) as usize];
                    *part = part.wrapping_add(booked);
                    time = time.saturating_add(ns);
                    drawn = true;
                    pc += 1;
                }
                Op::Stand { wait } => {
                    let site = &code.waits[wait as usize];
                    if time == now {
                        self.scopes.stand(slot, now, pc, member, depth);
                    }
                    time = time.saturating_add(site.ns);
                    book!(site, site.ns);
                    pc += 1;
                }
                Op::StandDrawn { draw } => {
                    if time == now {
                        self.scopes.stand(slot, now, pc, member, depth);
                    } else if self.scopes.is_full(slot) {
                        break;
                    }
                    let site = &code.draws[draw as usize];
                    let mut ns = draw!(site);
                    if site.scaled || site.loss.is_some() {
                        ns = self.longer(slot, draw, ns);
                        again!();
                    }
                    book!(site, ns);
                    self.scopes.drew(slot, ns);
                    time = time.saturating_add(ns);
                    drawn = true;
                    pc += 1;
                }
                Op::Limit { limit } => {
                    in_turn!();
                    self.begin_limit(slot, limit, member, depth, now);
                    again!();
                    if token.has_failed() {
                        // Left behind by a client who has gone: what is behind knows nothing of that.
                        token.set_outcome(None);
                    }
                    pc += 1;
                }
                Op::Limited => {
                    if time != now && (token.has_failed() || self.scopes.may_be_cut(slot, time)) {
                        break;
                    }
                    count_errors!();
                    self.scopes.leave_innermost(slot);
                    pc += 1;
                }
                Op::Pick { lb } => {
                    let site = &code.lbs[lb as usize];
                    if site.ordered {
                        in_turn!();
                    }
                    let instance = instance!(site);
                    let of = &mut self.balancers[instance as usize];
                    if site.counts {
                        of.take_returns(self.turn);
                    }
                    let draw = of.picks.with(self.tokens.rows.tries(token, slot).bits());
                    let rule = token.exclude();
                    let picked = if rule == Exclude::None || self.tokens.tried[slot as usize].is_empty() {
                        of.balancer.pick(draw, &[])
                    } else {
                        of.pick_anew(draw, &self.tokens.tried[slot as usize], instance, &mut self.excluded)
                    };
                    match picked {
                        Some(index) => {
                            if rule != Exclude::None {
                                self.tokens.tried[slot as usize].picked(rule, instance, index);
                            }
                            let target = of.targets.get(code, index);
                            let back = (pc as u32 + 1) | if site.counts { 0 } else { IDLE };
                            self.tokens.rows.set_frame(token, slot, depth, [back, member, index]);
                            depth += 1;
                            pc = target.pc as usize;
                            member = target.member;
                            self.members[member as usize].entries += i32::from(token.selected());
                        }
                        None => {
                            self.refuse(slot, member, site.stage, Kind::NoTarget);
                            again!();
                            pc = site.skip as usize;
                        }
                    }
                }
                Op::Done { lb } => {
                    let site = &code.lbs[lb as usize];
                    let failed = token.has_failed();
                    if site.can_be_cut && time != now && (failed || self.scopes.may_be_cut(slot, time)) {
                        break;
                    }
                    if site.counts || failed {
                        let target = self.tokens.rows.frame(token, slot, depth - 1)[2];
                        let instance = instance!(site);
                        if !site.counts {
                            self.came_back(slot, instance, target);
                            again!();
                        } else if time != now {
                            let noted = !failed && self.done_late(slot, instance, target, time);
                            again!();
                            if !noted {
                                break;
                            }
                        } else if failed {
                            self.done(slot, instance, target, now);
                            again!();
                        } else {
                            self.balancers[instance as usize].balancer.succeeded(target);
                        }
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
                            gauge.served = gauge.served.wrapping_sub(time & token.mask());
                            gauge.started += u64::from(token.selected());
                            pc += 1;
                        }
                        QueueEntry::Waits => {
                            gauge.waiting = gauge.waiting.wrapping_sub(now);
                            gauge.most = gauge.most.max(queue.waiting());
                            if code.books {
                                self.stops(slot, site.stage, member, now);
                                again!();
                            } else {
                                let part = &mut self.ledger.parts
                                    [site.part.wrapping_add(member & code.mask) as usize];
                                *part = part.wrapping_sub(now & token.mask());
                            }
                            token.stop_at((pc as u32 + 1) | LINE, member, depth);
                            if let Some(ns) = site.timeout_ns {
                                self.end_wait_after(slot, now, ns);
                            }
                            return;
                        }
                        QueueEntry::Full => {
                            self.count_refusal(slot, member, site.stage);
                            self.refuse(slot, member, site.stage, Kind::Overloaded);
                            again!();
                            pc = site.skip as usize;
                        }
                    }
                }
                Op::Leave { queue } => {
                    in_turn!();
                    let selected = token.mask();
                    self.leave(queue, member, selected, now);
                    again!();
                    count_errors!();
                    if code.goes_on {
                        if self.is_left_at(slot, pc, depth) {
                            return self.vanish(slot, now);
                        }
                        again!();
                    }
                    pc += 1;
                }
                Op::Share { .. } | Op::Shared { .. } | Op::Token { .. } | Op::Flaky { .. } => {
                    in_turn!();
                    match self.rare(slot, pc, member, depth, now) {
                        Some(next) => pc = next,
                        None => return,
                    }
                    again!();
                }
                Op::Ask { .. }
                | Op::Told { .. }
                | Op::Choose { .. }
                | Op::Rewrite { .. }
                | Op::Unrewrite
                | Op::Answer { .. }
                | Op::Sequence { .. }
                | Op::Next { .. }
                | Op::Come { .. }
                | Op::Fan { .. }
                | Op::Part { .. }
                | Op::Hedge { .. }
                | Op::Hedged { .. }
                | Op::Down { .. }
                | Op::Lossy { .. }
                | Op::Warm { .. }
                | Op::Cool { .. } => {
                    in_turn!();
                    if !self.detour(slot, pc, member, depth, now, after_faults) {
                        return;
                    }
                    again!();
                    (pc, member, depth) = (token.pc as usize, token.member, usize::from(token.depth));
                }
                Op::Survived { .. } => {
                    if time != now && (token.has_failed() || self.scopes.may_be_cut(slot, time)) {
                        break;
                    }
                    self.survived(slot, pc, member);
                    again!();
                    pc += 1;
                }
                Op::Try { retry } => {
                    if let Some(budget) = code.retries[retry as usize].budget {
                        in_turn!();
                        self.earn(slot, member.wrapping_add(budget), now);
                        again!();
                    }
                    let exclude = code.retries[retry as usize].config.exclude;
                    self.tokens.rows.begin_attempts(token, slot, exclude);
                    pc += 1;
                }
                Op::Again { .. } | Op::Serve => pc += 1,
                Op::Tried { retry } => {
                    let site = &code.retries[retry as usize];
                    let failed = token.has_failed();
                    if failed && (site.budget.is_some() || site.config.backoff_ns > 0) {
                        in_turn!();
                    }
                    if site.in_turn
                        && time != now
                        && (failed || code.details || self.scopes.may_be_cut(slot, time))
                    {
                        break;
                    }
                    count_errors!();
                    // An answer's status may be tried again though it is no failure.
                    if !failed && !code.details {
                        let redraw = site.config.work == Work::Redraw;
                        self.tokens.rows.end_attempts(token, slot, redraw);
                        pc += 1;
                    } else {
                        match self.next_attempt(slot, member, retry, now) {
                            None => pc += 1,
                            Some(0) => pc = site.again as usize,
                            Some(ns) => return self.back_off(slot, site.again, member, depth, now, ns),
                        }
                        again!();
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
                        again!();
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
                    let frame = [(pc as u32 + 1) | IDLE, member, 0];
                    self.tokens.rows.set_frame(token, slot, depth, frame);
                    depth += 1;
                    pc = target.pc as usize;
                    member = target.member;
                    self.members[member as usize].entries += i32::from(token.selected());
                }
                Op::Back => {
                    depth -= 1;
                    pc += 1;
                }
                Op::Return => {
                    count_errors!();
                    let [back, caller, _] = self.tokens.rows.frame(token, slot, depth - 1);
                    let behind = usize::from(back & IDLE != 0 && !token.has_failed());
                    pc = (back & !IDLE) as usize + behind;
                    depth -= behind;
                    member = caller;
                }
                Op::End => {
                    if code.ends_in_turn
                        || code.patience_ns.is_some() && time != now && self.scopes.may_be_cut(slot, time)
                    {
                        in_turn!();
                    }
                    if token.has_failed() {
                        if code.can_be_cut[pc] {
                            in_turn!();
                        }
                        self.count_errors(slot, member, pc);
                    }
                    return self.end(slot, now, time);
                }
            }
            step = code.steps[pc];
            time = time.saturating_add(step.wait_ns);
        }
        // It has come to a step that is not yet its time.
        token.stop_at(pc as u32 | PARKED, member, depth);
        let mut key = crate::engine::step_key(token.ordinal);
        if code.goes_on {
            key = ranked(order_key(Class::Step, token.ordinal), self.scopes.slots[slot as usize].rank);
        }
        let at = time.min(END_OF_TIME);
        let entry = Entry { at, key, who: slot, tag: token.tag };
        debug_assert!(at >= now);
        if drawn || now > time {
            self.pending.push_often(now, entry);
        } else {
            self.pending.push_constant(at - now, entry);
        }
    }
}

/// What a request draws by at a place where it has been so often before.
#[cold]
#[inline(never)]
fn on_visit(key: Key, before: u32) -> Key {
    if before == 0 { key } else { key.with(purpose::VISIT).with(u64::from(before)) }
}
