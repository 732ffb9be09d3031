//! One replication in virtual time: requests run through the code, events in the contract's order.
//!
//! A request runs until it comes to a step that must happen in its turn (another request could see it) at a later time
//! than now; then it is scheduled for that time. Waits and stateless choices are run ahead, so consecutive waits are one
//! event. The engine decides nothing: balancers, retries, queues, faults and draws are `policy`'s and `model`'s.

use crate::check::{Left, violations};
use crate::code::{Code, Op, Targets};
use crate::cut::Scopes;
use crate::ending::{Cut, HORIZON_NS, MOST_AT_ONCE};
use crate::late::Late;
use crate::ledger::Ledger;
use crate::pending::{BRANCH_BITS, Class, Entry, Pending, later_attempt, order_key, ranked};
use crate::shares::Shares;
use crate::source::{Load, Source};
use crate::token::{IDLE, LINE, PARKED, Tokens};
use crate::walk::loops;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::faulty::Faulty;
use weir_model::flaky;
use weir_model::queue::{Entry as QueueEntry, Links, Queue};
use weir_policy::budget;
use weir_policy::config::{Exclude, Work};
use weir_policy::rate::RateLimit;
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
pub(crate) struct Instance {
    pub balancer: Balancer,
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
pub(crate) const END_OF_TIME: u64 = u64::MAX - 1;
/// The stop flag is looked at when these bits of the number of events are zero.
const PATIENCE: u64 = (1 << 16) - 1;

/// An event with this bit is not a request's but ends a hold.
const HOLD: u32 = 1 << 31;
/// One with this bit ends a limit.
pub(crate) const LIMIT: u32 = 1 << 30;
/// At one with this bit a server may be done with someone.
pub(crate) const TICK: u32 = 1 << 29;

pub(crate) struct Engine<'a> {
    pub(crate) code: &'a Code,
    source: Source,
    pub(crate) pending: Pending,
    pub(crate) tokens: Tokens,
    pub(crate) scopes: Scopes,
    excluded: Vec<u32>,
    /// By member; behind them further queues of their blocks.
    pub(crate) members: Vec<Member>,
    pub(crate) links: Links,
    pub(crate) balancers: Vec<Instance>,
    /// What the backoffs of each retry are drawn by, and what it may spend on them.
    backoffs: Vec<Key>,
    budgets: Vec<budget::Tokens>,
    rates: Vec<RateLimit>,
    pub(crate) shares: Shares,
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
    /// Time and order of the event that runs, and its class alone.
    turn: (u64, u64),
    pub(crate) class_key: u64,
    /// No more requests arrive.
    over: bool,
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
        let balancer = |(meets, i): (u32, &crate::code::Instance)| {
            let own = loops::of_loop(node.with(place(i.place)).with(u64::from(i.number)), meets);
            let picks = choice.with(place(i.place)).with(u64::from(i.number));
            let site = &code.lbs[i.lb as usize];
            let balancer = Balancer::new(&site.balance, &code.weights[i.list as usize], own);
            Instance { balancer, picks, targets: code.lists[i.list as usize], late: Late::default() }
        };
        let fault = |&(fault, at, number): &(u32, u32, u32)| {
            Faulty::new(&code.faults[fault as usize].law, node.with(place(at)).with(u64::from(number)))
        };
        let backoff = |&(at, number): &(u32, u32)| choice.with(place(at)).with(u64::from(number));
        let draw = |&(purpose, at): &(u64, u32)| key.with(purpose::DRAW).with(purpose).with(place(at));
        let (from, to) = load.ordinals();
        let half = from + (to - from) / 2;
        let mut engine = Engine {
            code,
            source: Source::new(load),
            pending: Pending::new(),
            tokens: Tokens::new(code),
            scopes: Scopes::new(code),
            excluded: Vec::new(),
            members: vec![Member::default(); code.queue_count as usize],
            links: Links::default(),
            balancers: (0..code.loops)
                .flat_map(|meets| code.instances.iter().map(move |i| (meets, i)))
                .map(balancer)
                .collect(),
            backoffs: code.retry_nodes.iter().map(backoff).collect(),
            budgets: code.budgets.iter().map(|b| budget::Tokens::new(b, 0)).collect(),
            rates: code.rates.iter().map(RateLimit::new).collect(),
            shares: Shares::new(code),
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
            class_key: 0,
            over: false,
            stop,
            attempts: 0,
            stopped: false,
            beyond_horizon: false,
            ledger: Ledger::new(code),
            #[cfg(test)]
            sabotage: None,
        };
        if code.goes_on {
            engine.ledger.spent = vec![0; code.part_count as usize];
            engine.ledger.behind = vec![0; code.gauge_count as usize];
        }
        engine
    }

    /// Runs all requests to their end, unless it is stopped or leaves the time that can be counted.
    #[inline(never)]
    pub fn run(&mut self) -> Result<(), Cut> {
        self.schedule_arrival();
        let mut now = 0;
        while !(self.over && self.tokens.is_empty())
            && let Some((event, is_arrival)) = self.pending.next()
        {
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
            self.class_key = event.class_key();
            if now > self.mark {
                self.pass_marks(now);
            }
            if is_arrival {
                self.arrive(event);
            } else if event.who >= TICK {
                self.no_step(event, now);
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

    /// An event that is no request's step.
    fn no_step(&mut self, event: Entry, now: u64) {
        if event.who & HOLD != 0 {
            self.end_hold(event.who & !HOLD);
        } else if event.who & LIMIT != 0 {
            self.strike(event.who & !LIMIT, event.tag, now);
        } else {
            self.tick(event.who & !TICK, event.tag, now);
        }
    }

    /// How long the window's first and last arrival are apart, ns.
    pub fn window_ns(&self) -> u64 {
        self.source.window[1].saturating_sub(self.source.window[0])
    }

    /// Every law that the finished replication breaks.
    pub fn violations(&mut self, requests: Option<u64>, selected: Option<u64>) -> Vec<String> {
        for index in 0..self.holds.len() as u32 {
            if !self.spare_holds.contains(&index) {
                self.end_hold(index);
            }
        }
        self.ledger.outages = self.faults.iter().map(|f| f.flips().div_ceil(2)).sum();
        let (at_balancers, in_queues) = (self.left_at_balancers(), self.left_in_queues());
        let left = Left { at_balancers, in_queues, on_the_way: self.tokens.live() };
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
        let queues = self.members.iter().map(|m| u64::from(m.queue.inside()) + u64::from(m.queue.waiting()));
        queues.sum::<u64>() + self.shares.left()
    }

    #[cold]
    fn pass_marks(&mut self, now: u64) {
        while self.passed < 2 && now > self.source.window[self.passed] {
            let at = self.source.window[self.passed];
            let mut snapshot = self.ledger.snapshot(self.code, &self.members, at);
            self.shares.add_to(&mut snapshot, &mut self.ledger.gauges, self.code, at);
            self.ledger.marks[self.passed] = snapshot;
            self.ledger.marked_ns[self.passed] = at;
            self.passed += 1;
        }
        self.mark = self.source.window.get(self.passed).copied().unwrap_or(u64::MAX);
    }

    /// With a constant way to the first step in turn, an arrival is looked at when it gets there.
    #[inline(always)]
    fn schedule_arrival(&mut self) {
        let prefix_ns = self.code.prefix_ns;
        let Some(arrived) = self.source.take(prefix_ns) else {
            self.over = true;
            return self.pending.set_source(None);
        };
        self.mark = self.source.window.get(self.passed).copied().unwrap_or(u64::MAX);
        let early = prefix_ns > 0;
        let key = if early { step_key(self.issued) } else { order_key(Class::Arrival, self.issued) };
        let at = arrived.saturating_add(prefix_ns).min(END_OF_TIME);
        self.pending.set_source(Some(Entry { at, key, who: 0, tag: 0 }));
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
        if self.code.cuts {
            self.scopes.begin(slot);
            self.scopes.slots[slot as usize].meets = loops::meets(self.code.loops, way);
            if let Some(ns) = self.code.patience_ns {
                self.be_patient(slot, arrived, ns);
            }
        }
        self.go_on(slot, event.at, arrived, event.after_faults());
    }

    /// Runs a request from where it stands. `now` is the clock, `time` the request's own, which may be ahead or, on
    /// arrival, behind by the prefix.
    ///
    /// Never inlined: inside the loop over events its registers end up on the stack, which costs a fifth.
    #[inline(never)]
    pub(crate) fn go_on(&mut self, slot: u32, now: u64, time: u64, after_faults: bool) {
        let code = self.code;
        if self.tokens.slots[slot as usize].pc & LINE != 0 && self.wait_no_longer(slot, now) {
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
                    return self.park(slot, pc, member, depth, now, time, drawn);
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
                    if code.goes_on {
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
                        return self.park(slot, pc, member, depth, now, time, drawn);
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
                            return self.park(slot, pc, member, depth, now, time, drawn);
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
                        return self.park(slot, pc, member, depth, now, time, drawn);
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
                            if code.goes_on {
                                self.book(slot, site.stage, member, now.wrapping_neg());
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
                        return self.vanish(slot);
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
                    if site.can_be_cut || failed && (site.budget.is_some() || site.config.backoff_ns > 0) {
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
    }

    /// The order of a request's steps; by rank where several of one request can be on the way.
    #[inline]
    pub(crate) fn step_key(&self, slot: u32) -> u64 {
        let ordinal = self.tokens.slots[slot as usize].ordinal;
        if self.code.goes_on {
            return ranked(order_key(Class::Step, ordinal), self.scopes.slots[slot as usize].rank);
        }
        step_key(ordinal)
    }

    /// What few topologies have, in its turn: where the request goes on, and whether it has failed; `None`: it stops.
    #[inline(never)]
    fn rare(
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
                    self.vanish(slot);
                    return None;
                }
            }
            Op::Token { rate } => {
                let site = code.rate_sites[rate as usize];
                if self.rates[member.wrapping_add(site.offset) as usize].take(now, None).is_err() {
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
        let entry = Entry { at, key: self.step_key(slot), who: slot, tag: token.tag };
        debug_assert!(at >= now);
        if drawn || now > time {
            self.pending.push_often(now, entry);
        } else {
            self.pending.push_constant(at - now, entry);
        }
    }

    /// What a request draws for something at a place, this time.
    #[inline(always)]
    fn draw_key(&mut self, slot: u32, key: u32, visits: Option<u32>) -> Key {
        let key = self.draw_keys[key as usize].with(self.tokens.slots[slot as usize].way.bits());
        let Some(counter) = visits else { return key };
        match self.tokens.visit(slot, counter) {
            0 => key,
            again => key.with(purpose::VISIT).with(u64::from(again)),
        }
    }

    /// What a request draws at a place, ns.
    #[inline(never)]
    pub(crate) fn drawn(&mut self, slot: u32, draw: u32) -> u64 {
        let site = &self.code.draws[draw as usize];
        site.sampler.draw(self.draw_key(slot, site.key, site.visits))
    }

    /// Whether what comes back has failed at random.
    fn fails(&mut self, slot: u32, flaky: u32) -> bool {
        let site = self.code.flaky[flaky as usize];
        let fails = flaky::fails(site.p, self.draw_key(slot, site.key, site.visits));
        if fails {
            self.tokens.slots[slot as usize].set_outcome(Some(site.kind));
        }
        fails
    }

    /// The balancer that a request meets at a place, on its loop.
    #[inline]
    pub(crate) fn instance(&self, slot: u32, site: &crate::code::LbSite, member: u32) -> u32 {
        let first = member.wrapping_add(site.offset);
        if self.code.loops == 1 || site.shared {
            return first;
        }
        first + self.scopes.slots[slot as usize].meets * self.code.instances.len() as u32
    }

    #[inline(always)]
    fn draw(&mut self, slot: u32, member: u32, draw: u32, selected: u64) -> u64 {
        let site = &self.code.draws[draw as usize];
        let ns = site.sampler.draw(self.draw_key(slot, site.key, site.visits));
        #[cfg(test)]
        if self.breaks(Sabotage::MiscountWork) {
            return ns;
        }
        self.ledger.parts[site.part.wrapping_add(member & self.code.mask) as usize] += ns & selected;
        ns
    }

    #[inline(always)]
    fn pick(&mut self, slot: u32, instance: u32, counts: bool) -> Option<u32> {
        let lb = &mut self.balancers[instance as usize];
        let draw = lb.picks.with(self.tokens.tries(slot).bits());
        if counts {
            while let Some(target) = lb.late.before(self.turn) {
                lb.balancer.release(target);
            }
        }
        let exclude = self.tokens.slots[slot as usize].exclude();
        self.excluded.clear();
        if exclude != Exclude::None {
            self.tokens.tried[slot as usize].at(instance, &mut self.excluded);
        }
        let target = lb.balancer.pick(draw, &self.excluded)?;
        if exclude != Exclude::None {
            self.tokens.tried[slot as usize].picked(exclude, instance, target);
        }
        Some(target)
    }

    #[inline(always)]
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
    #[inline(always)]
    fn done_late(&mut self, slot: u32, instance: u32, target: u32, time: u64) -> bool {
        #[cfg(test)]
        if self.breaks(Sabotage::ForgetReturn) {
            return true;
        }
        let key = self.step_key(slot);
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

    /// The same for what is cut off; apart, so that the other stays where it is used.
    #[cold]
    pub(crate) fn give_back_slot(&mut self, queue: u32, member: u32, selected: u64, now: u64) {
        self.leave(queue, member, selected, now);
    }

    /// A slot is given back; who waits longest takes it.
    #[inline(always)]
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
            let woken = &mut self.tokens.slots[next as usize];
            woken.pc &= !LINE;
            // What was to end its wait is stale.
            woken.tag = woken.tag.wrapping_add(u32::from(site.timeout_ns.is_some()));
            gauge.started += woken.mask() & 1;
            gauge.waiting = gauge.waiting.wrapping_add(now);
            gauge.busy = gauge.busy.wrapping_sub(now);
            gauge.served = gauge.served.wrapping_sub(now & woken.mask());
            let mask = woken.mask();
            if self.code.goes_on {
                self.book(next, site.stage, member, now);
            } else {
                let part = &mut self.ledger.parts[site.part.wrapping_add(member & self.code.mask) as usize];
                *part = part.wrapping_add(now & mask);
            }
            self.wake(next, now);
        }
    }

    /// How long until another attempt begins, if one does; otherwise the retry is left behind.
    #[inline]
    fn next_attempt(&mut self, slot: u32, member: u32, retry: u32, now: u64) -> Option<u64> {
        let site = &self.code.retries[retry as usize];
        let redraw = site.config.work == Work::Redraw;
        let outcome = self.tokens.slots[slot as usize].outcome();
        let attempt = self.tokens.attempt(slot);
        let mut next = site.config.next(attempt, outcome, None, true);
        if let (Some(_), Some(budget)) = (next, site.budget)
            && !self.budgets[member.wrapping_add(budget) as usize].take(now)
        {
            next = None;
        }
        // No event comes between attempts at one instant, and there may be millions: told to stop, no more are made.
        self.attempts += u64::from(next.is_some());
        self.stopped |= self.attempts & PATIENCE == PATIENCE && self.stop.load(Ordering::Relaxed);
        let Some(next) = next.filter(|_| !self.stopped) else {
            self.tokens.end_attempts(slot, redraw);
            return None;
        };
        if self.code.takes_as_get && site.config.next(attempt, outcome, None, false).is_none() {
            self.ledger.as_get += u64::from(self.tokens.slots[slot as usize].selected());
        }
        self.tokens.try_again(slot, next, redraw, purpose::ATTEMPT);
        let selected = self.tokens.slots[slot as usize].selected();
        self.ledger.extra_attempts += u64::from(selected);
        self.ledger.repeats[member.wrapping_add(site.repeats) as usize] += u32::from(selected);
        if self.code.cuts {
            let rank = &mut self.scopes.slots[slot as usize].rank;
            *rank = later_attempt(*rank);
        }
        if site.config.backoff_ns == 0 {
            return Some(0);
        }
        let own = self.backoffs[member.wrapping_add(site.nodes) as usize];
        let ns = site.config.backoff_ns(next, own.with(self.tokens.tries(slot).bits()));
        self.book(slot, site.stage, member, ns);
        Some(ns)
    }

    /// A request waits before its next attempt.
    fn back_off(&mut self, slot: u32, pc: u32, member: u32, depth: usize, now: u64, ns: u64) {
        self.scopes.stand(slot, now, pc as usize, member, depth);
        self.scopes.drew(slot, ns);
        self.leave_at(slot, pc | PARKED, member, depth);
        self.end_wait_after(slot, now, ns);
    }

    /// What a request waits for in vain, or before an attempt, ends.
    fn end_wait_after(&mut self, slot: u32, now: u64, ns: u64) {
        let token = &self.tokens.slots[slot as usize];
        let rank = if self.code.cuts { self.scopes.slots[slot as usize].rank } else { 0 };
        let key = ranked(order_key(Class::Limit, token.ordinal), rank);
        let at = now.saturating_add(ns).min(END_OF_TIME);
        self.pending.push(now, Entry { at, key, who: slot, tag: token.tag });
    }

    /// A request goes on at this instant, in its turn.
    #[inline]
    pub(crate) fn wake(&mut self, slot: u32, now: u64) {
        let rank = if self.code.cuts { self.scopes.slots[slot as usize].rank } else { 1 };
        let token = &self.tokens.slots[slot as usize];
        let key = ranked(self.class_key | order_key(Class::Step, token.ordinal), rank);
        self.pending.wake(Entry { at: now, key, who: slot, tag: token.tag });
    }

    /// Time of a request at a stage; a wrapped negative one is taken back.
    pub(crate) fn book(&mut self, slot: u32, stage: u32, member: u32, ns: u64) {
        let token = &self.tokens.slots[slot as usize];
        if token.is_unwanted() {
            return self.spend(slot, stage, member, ns);
        }
        let part = self.code.stages[stage as usize].part.wrapping_add(member & self.code.mask);
        let sum = &mut self.ledger.parts[part as usize];
        *sum = sum.wrapping_add(ns & token.mask());
    }

    /// The longest wait in line is over: the request goes back from the queue, or is gone if it went on for nobody.
    #[cold]
    fn wait_no_longer(&mut self, slot: u32, now: u64) -> bool {
        let token = &self.tokens.slots[slot as usize];
        let (enter, member, selected) = ((token.pc & !LINE) as usize - 1, token.member, token.mask());
        let Op::Enter { queue } = self.code.steps[enter].op else { return false };
        let site = &self.code.queues[queue as usize];
        self.leave_line(slot, queue, member, now);
        self.count_cut(site.stage, member, selected);
        self.refuse(slot, member, site.stage, Kind::Timeout);
        let (skip, depth) = (site.skip, usize::from(self.tokens.slots[slot as usize].depth));
        self.tokens.slots[slot as usize].pc = skip;
        let over = self.is_left_at(slot, skip as usize - 1, depth);
        if over {
            self.vanish(slot);
        }
        over
    }

    /// What a very first attempt earns for those that follow others.
    fn earn(&mut self, slot: u32, budget: u32, now: u64) {
        if !self.code.cuts || self.scopes.slots[slot as usize].rank >> BRANCH_BITS == 0 {
            self.budgets[budget as usize].earn(now);
        }
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

    /// The end of a request whose client has gone.
    #[cold]
    pub(crate) fn end_early(&mut self, slot: u32, now: u64) {
        self.end(slot, now, now);
    }

    #[inline(always)]
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
        if self.code.cuts {
            self.scopes.end(slot);
        }
        self.tokens.remove(slot);
    }
}

/// The order of a request's steps.
#[inline]
fn step_key(ordinal: u64) -> u64 {
    ranked(order_key(Class::Step, ordinal), 1)
}
