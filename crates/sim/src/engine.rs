//! One replication in virtual time: requests run through the code, events in the contract's order.
//!
//! A request runs until it comes to a step that must happen in its turn (another request could see it) at a later time
//! than now; then it is scheduled for that time. Waits and stateless choices are run ahead, so consecutive waits are one
//! event. The engine decides nothing: balancers, retries, queues, faults and draws are `policy`'s and `model`'s.

use crate::check::{Left, violations};
use crate::code::{Code, Op, Targets};
use crate::ending::{Cut, HORIZON_NS, MOST_AT_ONCE};
use crate::late::Late;
use crate::ledger::Ledger;
use crate::pending::{Class, Entry, Pending, order_key};
use crate::source::{Load, Source};
use crate::token::{IDLE, PARKED, Tokens};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::faulty::Faulty;
use weir_model::queue::{Entry as QueueEntry, Links, Queue};
use weir_policy::config::{Exclude, Work};
use weir_policy::{Balancer, Kind, Release};
use weir_stats::Key;

/// What draws are keyed by, besides seed and replication.
mod purpose {
    pub(super) const REQUEST: u64 = 1;
    pub(super) const DRAW: u64 = 2;
    pub(super) const NODE: u64 = 3;
    pub(super) const CHOICE: u64 = 4;
    pub(super) const ATTEMPT: u64 = 5;
    pub(super) const VISIT: u64 = 6;
}

/// What a test breaks, to see the self-check fire that guards it.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sabotage {
    LoseRequest,
    LeakSlot,
    ForgetReturn,
    StretchLatency,
    MiscountWork,
    TurnClockBack,
    SkipRecord,
}

/// A balancer in virtual time.
struct Instance {
    balancer: Balancer,
    /// What its choices are drawn by.
    picks: Key,
    targets: Targets,
    /// Requests that will have come back before its next pick.
    late: Late,
}

/// A member of a block, and its first queue: what a pick touches is what the entry will need.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct Member {
    pub queue: Queue,
    /// Entries of selected requests.
    pub entries: u32,
    /// Requests on their way to the queue, where some enter ahead of time; and when the last of those does.
    coming: u32,
    pub since: u64,
}

/// What is later is scheduled here, and never run.
const END_OF_TIME: u64 = u64::MAX - 1;
/// The stop flag is looked at when these bits of the number of events are zero.
const PATIENCE: u64 = (1 << 16) - 1;

/// An event with this bit is not a request's but ends a hold.
const HOLD: u32 = 1 << 31;

pub(crate) struct Engine<'a> {
    code: &'a Code,
    source: Source,
    pending: Pending,
    tokens: Tokens,
    excluded: Vec<u32>,
    /// By member; behind them further queues of their blocks.
    members: Vec<Member>,
    links: Links,
    balancers: Vec<Instance>,
    faults: Vec<Faulty>,
    holds: Vec<(u32, u32)>,
    spare_holds: Vec<u32>,
    draw_keys: Vec<Key>,
    request_key: Key,
    issued: u64,
    /// Ordinal at which the second half of the window begins.
    half: u64,
    /// How many of the window's two instants the clock has passed.
    passed: usize,
    /// The next of them, once known.
    mark: u64,
    /// Time and order of the event that runs.
    turn: (u64, u64),
    stop: &'a AtomicBool,
    /// Further attempts so far, and whether it was told to stop among them.
    attempts: u64,
    stopped: bool,
    /// A request ended beyond the time that is counted.
    beyond_horizon: bool,
    pub ledger: Ledger,
    #[cfg(test)]
    pub sabotage: Option<Sabotage>,
}

impl<'a> Engine<'a> {
    /// `key` is the replication's.
    pub fn new(code: &'a Code, load: Load, key: Key, stop: &'a AtomicBool) -> Engine<'a> {
        let place = |i: u32| code.place_keys[i as usize];
        let node = key.with(purpose::NODE);
        let choice = key.with(purpose::CHOICE);
        let balancer = |i: &crate::code::Instance| {
            let own = node.with(place(i.place)).with(u64::from(i.number));
            let picks = choice.with(place(i.place)).with(u64::from(i.number));
            let site = &code.lbs[i.lb as usize];
            let balancer = Balancer::new(&site.balance, &code.weights[i.list as usize], own);
            Instance { balancer, picks, targets: code.lists[i.list as usize], late: Late::default() }
        };
        let fault = |&(fault, at, number): &(u32, u32, u32)| {
            Faulty::new(&code.faults[fault as usize].law, node.with(place(at)).with(u64::from(number)))
        };
        let draw = |&(purpose, at): &(u64, u32)| key.with(purpose::DRAW).with(purpose).with(place(at));
        let (from, to) = load.ordinals();
        let half = from + (to - from) / 2;
        Engine {
            code,
            source: Source::new(load),
            pending: Pending::new(),
            tokens: Tokens::new(code),
            excluded: Vec::new(),
            members: vec![Member::default(); code.queue_count as usize],
            links: Links::default(),
            balancers: code.instances.iter().map(balancer).collect(),
            faults: code.fault_nodes.iter().map(fault).collect(),
            holds: Vec::new(),
            spare_holds: Vec::new(),
            draw_keys: code.draw_keys.iter().map(draw).collect(),
            request_key: key.with(purpose::REQUEST),
            issued: 0,
            half,
            passed: 0,
            mark: u64::MAX,
            turn: (0, 0),
            stop,
            attempts: 0,
            stopped: false,
            beyond_horizon: false,
            ledger: Ledger::new(code),
            #[cfg(test)]
            sabotage: None,
        }
    }

    /// Runs all requests to their end, unless it is stopped or leaves the time that can be counted.
    #[inline(never)]
    pub fn run(&mut self) -> Result<(), Cut> {
        self.schedule_arrival();
        let mut now = 0;
        while let Some((event, is_arrival)) = self.pending.next() {
            #[cfg(test)]
            if self.breaks(Sabotage::TurnClockBack) {
                now += 1_000_000_000;
            }
            self.ledger.events += 1;
            if self.ledger.events & PATIENCE == 0 {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Cut::Stopped);
                }
                // An event brings one request at most.
                if self.tokens.slots.len() > MOST_AT_ONCE {
                    return Err(Cut::TooMany);
                }
            }
            if event.at > HORIZON_NS {
                return Err(Cut::TooLong);
            }
            self.ledger.time_went_back |= event.at < now;
            now = event.at;
            // A woken request may have a lower key than the event that woke it; what that one did has happened.
            let key = if self.turn.0 == now { self.turn.1.max(event.key) } else { event.key };
            self.turn = (now, key);
            if now > self.mark {
                self.pass_marks(now);
            }
            if is_arrival {
                self.arrive(event);
            } else if event.who & HOLD != 0 {
                self.end_hold(event.who & !HOLD);
            } else if self.tokens.slots[event.who as usize].tag == event.tag {
                self.go_on(event.who, now, now, event.after_faults());
            }
        }
        if self.stopped {
            return Err(Cut::Stopped);
        }
        if self.beyond_horizon {
            return Err(Cut::TooLong);
        }
        self.pass_marks(u64::MAX);
        self.ledger.end(self.tokens.slots.len(), now);
        self.ledger.entries = self.members[..self.code.members as usize].iter().map(|m| m.entries).collect();
        Ok(())
    }

    /// How long the window's first and last arrival are apart, ns.
    pub fn window_ns(&self) -> u64 {
        self.source.window[1].saturating_sub(self.source.window[0])
    }

    /// Every law that the finished replication breaks.
    pub fn violations(&mut self, requests: Option<u64>, selected: Option<u64>) -> Vec<String> {
        self.ledger.outages = self.faults.iter().map(|f| f.flips().div_ceil(2)).sum();
        let (at_balancers, in_queues) = (self.left_at_balancers(), self.left_in_queues());
        let left = Left { at_balancers, in_queues, on_the_way: 0 };
        violations(self.code, &self.ledger, &left, requests, selected, false)
    }

    /// Requests that balancers still count, once all late returns are in.
    fn left_at_balancers(&mut self) -> u64 {
        let end = (u64::MAX, u64::MAX);
        for lb in &mut self.balancers {
            while let Some(target) = lb.late.before(end) {
                lb.balancer.release(target);
            }
        }
        self.balancers.iter().map(|lb| lb.balancer.total_in_flight()).sum()
    }

    /// Whether this is the time to break that.
    #[cfg(test)]
    fn breaks(&self, what: Sabotage) -> bool {
        self.sabotage == Some(what) && self.issued >= 100
    }

    /// Slots still taken and requests still waiting at any queue.
    fn left_in_queues(&self) -> u64 {
        self.members.iter().map(|m| u64::from(m.queue.inside()) + u64::from(m.queue.waiting())).sum()
    }

    #[cold]
    fn pass_marks(&mut self, now: u64) {
        while self.passed < 2 && now > self.source.window[self.passed] {
            let at = self.source.window[self.passed];
            self.ledger.marks[self.passed] = self.ledger.snapshot(self.code, &self.members, at);
            self.ledger.marked_ns[self.passed] = at;
            self.passed += 1;
        }
        self.mark = self.source.window.get(self.passed).copied().unwrap_or(u64::MAX);
    }

    /// With a constant way to the first step in turn, an arrival is looked at when it gets there.
    #[inline]
    fn schedule_arrival(&mut self) {
        let prefix_ns = self.code.prefix_ns;
        let Some(arrived) = self.source.take(prefix_ns) else {
            return self.pending.set_source(None);
        };
        self.mark = self.source.window.get(self.passed).copied().unwrap_or(u64::MAX);
        let class = if prefix_ns > 0 { Class::Step } else { Class::Arrival };
        let at = arrived.saturating_add(prefix_ns).min(END_OF_TIME);
        self.pending.set_source(Some(Entry { at, key: order_key(class, self.issued), who: 0, tag: 0 }));
    }

    fn arrive(&mut self, event: Entry) {
        let ordinal = self.issued;
        self.issued += 1;
        self.schedule_arrival();
        let arrived = event.at - self.code.prefix_ns;
        let way = self.request_key.with(ordinal);
        let selected = (self.source.from..self.source.to).contains(&ordinal);
        let slot = self.tokens.add(ordinal, arrived, way, selected);
        let start = self.code.start;
        let token = &mut self.tokens.slots[slot as usize];
        token.pc = start.pc;
        token.member = start.member;
        self.ledger.arrived += 1;
        self.members[start.member as usize].entries += u32::from(selected);
        self.ledger.step(event.at, true);
        self.ledger.ahead = self.ledger.ahead.wrapping_add(self.code.prefix_ns);
        #[cfg(test)]
        if self.breaks(Sabotage::LoseRequest) {
            return;
        }
        self.go_on(slot, event.at, arrived, event.after_faults());
    }

    /// Runs a request from where it stands. `now` is the clock, `time` the request's own, which may be ahead or, on
    /// arrival, behind by the prefix.
    ///
    /// Never inlined: inside the loop over events its registers end up on the stack, which costs a fifth.
    #[inline(never)]
    fn go_on(&mut self, slot: u32, now: u64, time: u64, after_faults: bool) {
        let code = self.code;
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
                    return self.park(slot, pc, member, depth, now, time, drawn);
                }
            };
        }
        macro_rules! count_errors {
            () => {
                if failed {
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
                Op::Pick { lb } => {
                    let site = &code.lbs[lb as usize];
                    if site.ordered {
                        in_turn!();
                    }
                    let instance = member.wrapping_add(site.offset);
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
                    if site.counts {
                        let target = self.tokens.frame(slot, depth - 1)[2];
                        let instance = member.wrapping_add(site.offset);
                        if time == now {
                            self.done(slot, instance, target, now);
                        } else if failed || !self.done_late(slot, instance, target, time) {
                            return self.park(slot, pc, member, depth, now, time, drawn);
                        }
                    } else if failed {
                        let target = self.tokens.frame(slot, depth - 1)[2];
                        self.came_back(slot, member.wrapping_add(site.offset), target);
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
                        return self.park(slot, pc, member, depth, now, time, drawn);
                    }
                    let queue = &mut at.queue;
                    let gauge = &mut self.ledger.gauges[site.gauge.wrapping_add(member & code.mask) as usize];
                    match queue.enter(site.limits, &mut self.links, slot) {
                        QueueEntry::Inside => {
                            gauge.busy = gauge.busy.wrapping_sub(time);
                            gauge.served = gauge.served.wrapping_sub(time & selected);
                            pc += 1;
                        }
                        QueueEntry::Waits => {
                            gauge.waiting = gauge.waiting.wrapping_sub(now);
                            gauge.most = gauge.most.max(queue.waiting());
                            let part =
                                &mut self.ledger.parts[site.part.wrapping_add(member & code.mask) as usize];
                            *part = part.wrapping_sub(now & selected);
                            return self.leave_at(slot, pc as u32 + 1, member, depth);
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
                    pc += 1;
                }
                Op::Try { retry } => {
                    self.tokens.begin_attempts(slot, code.retries[retry as usize].config.exclude);
                    pc += 1;
                }
                Op::Tried { retry } => {
                    count_errors!();
                    if self.next_attempt(slot, member, retry) {
                        failed = false;
                        pc = code.retries[retry as usize].again as usize;
                    } else {
                        pc += 1;
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
                    count_errors!();
                    return self.end(slot, now, time);
                }
            }
        }
    }

    /// The request stops here until it is called again.
    #[inline]
    fn leave_at(&mut self, slot: u32, pc: u32, member: u32, depth: usize) {
        let token = &mut self.tokens.slots[slot as usize];
        token.pc = pc;
        token.member = member;
        token.depth = depth as u16;
    }

    /// The request has come to a step that is not yet its time.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the registers of a request, which must stay in registers")]
    fn park(&mut self, slot: u32, pc: usize, member: u32, depth: usize, now: u64, time: u64, drawn: bool) {
        self.leave_at(slot, pc as u32 | PARKED, member, depth);
        let token = &self.tokens.slots[slot as usize];
        let at = time.min(END_OF_TIME);
        let entry = Entry { at, key: order_key(Class::Step, token.ordinal), who: slot, tag: token.tag };
        if drawn || now > time {
            self.pending.push(now, entry);
        } else {
            self.pending.push_constant(at - now, entry);
        }
    }

    #[inline]
    fn draw(&mut self, slot: u32, member: u32, draw: u32, selected: u64) -> u64 {
        let site = &self.code.draws[draw as usize];
        let mut key = self.draw_keys[site.key as usize].with(self.tokens.slots[slot as usize].way.bits());
        if let Some(counter) = site.visits {
            let visits = self.tokens.visit(slot, counter);
            if visits > 0 {
                key = key.with(purpose::VISIT).with(u64::from(visits));
            }
        }
        let ns = site.sampler.draw(key);
        #[cfg(test)]
        if self.breaks(Sabotage::MiscountWork) {
            return ns;
        }
        self.ledger.parts[site.part.wrapping_add(member & self.code.mask) as usize] += ns & selected;
        ns
    }

    #[inline]
    fn pick(&mut self, slot: u32, instance: u32, counts: bool) -> Option<u32> {
        let lb = &mut self.balancers[instance as usize];
        let draw = lb.picks.with(self.tokens.tries(slot).bits());
        if counts {
            while let Some(target) = lb.late.before(self.turn) {
                lb.balancer.release(target);
            }
        }
        let exclude = self.tokens.slots[slot as usize].exclude();
        if exclude == Exclude::None {
            return lb.balancer.pick(draw, &[]);
        }
        let tried = &mut self.tokens.tried[slot as usize];
        tried.at(instance, &mut self.excluded);
        let target = lb.balancer.pick(draw, &self.excluded)?;
        tried.picked(exclude, instance, target);
        Some(target)
    }

    #[inline]
    fn done(&mut self, slot: u32, instance: u32, target: u32, now: u64) {
        let token = &self.tokens.slots[slot as usize];
        let (outcome, ordinal) = (token.outcome(), token.ordinal);
        self.came_back(slot, instance, target);
        if let Release::After(hold) = self.balancers[instance as usize].balancer.done(target, outcome) {
            self.hold(instance, target, now, hold, ordinal);
        }
    }

    /// What a retry leaves out next time may depend on how the request came back.
    #[inline]
    fn came_back(&mut self, slot: u32, instance: u32, target: u32) {
        let token = &self.tokens.slots[slot as usize];
        let (outcome, exclude) = (token.outcome(), token.exclude());
        if exclude != Exclude::None {
            self.tokens.tried[slot as usize].came_back(exclude, instance, target, outcome);
        }
    }

    /// Notes that a request will come back at `time`, which nothing can prevent any more. Only the balancer's own picks can
    /// tell, so they look it up; no event is needed. False if it must be one all the same.
    #[inline]
    fn done_late(&mut self, slot: u32, instance: u32, target: u32, time: u64) -> bool {
        #[cfg(test)]
        if self.breaks(Sabotage::ForgetReturn) {
            return true;
        }
        let key = order_key(Class::Step, self.tokens.slots[slot as usize].ordinal);
        self.balancers[instance as usize].late.note(time, key, target)
    }

    #[cold]
    fn hold(&mut self, instance: u32, target: u32, now: u64, hold: u64, ordinal: u64) {
        let index = self.spare_holds.pop().unwrap_or(self.holds.len() as u32);
        if index as usize == self.holds.len() {
            self.holds.push((0, 0));
        }
        self.holds[index as usize] = (instance, target);
        let key = order_key(Class::Hold, ordinal);
        let at = now.saturating_add(hold).min(END_OF_TIME);
        self.pending.push_constant(at - now, Entry { at, key, who: HOLD | index, tag: 0 });
    }

    fn end_hold(&mut self, index: u32) {
        let (instance, target) = self.holds[index as usize];
        self.balancers[instance as usize].balancer.release(target);
        self.spare_holds.push(index);
    }

    #[inline]
    fn leave(&mut self, queue: u32, member: u32, selected: u64, now: u64) {
        let site = &self.code.queues[queue as usize];
        let gauge = &mut self.ledger.gauges[site.gauge.wrapping_add(member & self.code.mask) as usize];
        gauge.busy = gauge.busy.wrapping_add(now);
        gauge.served = gauge.served.wrapping_add(now & selected);
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::LeakSlot) && self.issued >= 100 {
            return;
        }
        if let Some(next) =
            self.members[member.wrapping_add(site.offset) as usize].queue.leave(&mut self.links)
        {
            let woken = &self.tokens.slots[next as usize];
            gauge.waiting = gauge.waiting.wrapping_add(now);
            gauge.busy = gauge.busy.wrapping_sub(now);
            gauge.served = gauge.served.wrapping_sub(now & woken.mask());
            let part = &mut self.ledger.parts[site.part.wrapping_add(member & self.code.mask) as usize];
            *part = part.wrapping_add(now & woken.mask());
            let key = order_key(Class::Step, woken.ordinal);
            self.pending.wake(Entry { at: now, key, who: next, tag: woken.tag });
        }
    }

    /// Whether another attempt begins; otherwise the retry is left behind.
    #[inline]
    fn next_attempt(&mut self, slot: u32, member: u32, retry: u32) -> bool {
        let site = &self.code.retries[retry as usize];
        let redraw = site.config.work == Work::Redraw;
        let outcome = self.tokens.slots[slot as usize].outcome();
        let next = site.config.next(self.tokens.attempt(slot), outcome, None, true);
        // No event comes between attempts at one instant, and there may be millions: told to stop, no more are made.
        self.attempts += u64::from(next.is_some());
        self.stopped |= self.attempts & PATIENCE == PATIENCE && self.stop.load(Ordering::Relaxed);
        let Some(next) = next.filter(|_| !self.stopped) else {
            self.tokens.end_attempts(slot, redraw);
            return false;
        };
        self.tokens.try_again(slot, next, redraw, purpose::ATTEMPT);
        let selected = self.tokens.slots[slot as usize].selected();
        self.ledger.extra_attempts += u64::from(selected);
        self.ledger.repeats[member.wrapping_add(site.repeats) as usize] += u32::from(selected);
        true
    }

    /// A stage says no: the request goes back from there.
    #[cold]
    fn refuse(&mut self, slot: u32, member: u32, stage: u32, kind: Kind) {
        let token = &mut self.tokens.slots[slot as usize];
        token.set_outcome(Some(kind));
        if token.selected() {
            let part = self.code.stages[stage as usize].part.wrapping_add(member & self.code.mask);
            self.ledger.error_at(part as usize, kind);
        }
    }

    fn count_refusal(&mut self, slot: u32, member: u32, stage: u32) {
        if let Some(offset) = self.code.stages[stage as usize].refusals {
            let selected = self.tokens.slots[slot as usize].selected();
            self.ledger.refusals[member.wrapping_add(offset) as usize] += u32::from(selected);
        }
    }

    /// An error passes the stages that end at this step.
    #[cold]
    fn count_errors(&mut self, slot: u32, member: u32, pc: usize) {
        let token = &self.tokens.slots[slot as usize];
        let Some(kind) = token.outcome().filter(|_| token.selected()) else { return };
        let (from, to) = self.code.covers[pc];
        for &stage in &self.code.cover_list[from as usize..to as usize] {
            let part = self.code.stages[stage as usize].part.wrapping_add(member & self.code.mask);
            self.ledger.error_at(part as usize, kind);
        }
    }

    #[inline]
    fn end(&mut self, slot: u32, now: u64, time: u64) {
        let token = &self.tokens.slots[slot as usize];
        let latency = time - token.arrived;
        self.beyond_horizon |= time > HORIZON_NS;
        #[cfg(test)]
        let latency =
            latency + u64::from(self.sabotage == Some(Sabotage::StretchLatency) && self.issued >= 100);
        let ledger = &mut self.ledger;
        ledger.ended += 1;
        ledger.latency_sum = ledger.latency_sum.wrapping_add(latency);
        ledger.step(now, false);
        ledger.ahead = ledger.ahead.wrapping_add(time - now);
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::SkipRecord) && self.issued >= 100 {
            return;
        }
        if token.selected() {
            let second_half = token.ordinal >= self.half;
            ledger.record(latency, token.outcome(), time, second_half, self.source.load.deadline_ns);
        }
        self.tokens.remove(slot);
    }
}
