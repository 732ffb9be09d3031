//! One replication in virtual time: requests run through the code, events in the contract's order.
//!
//! A request runs until it comes to a step that must happen in its turn (another request could see it) at a later time
//! than now; then it is scheduled for that time. Waits and stateless choices are run ahead, so consecutive waits are one
//! event. The engine decides nothing: balancers, retries, queues, faults and draws are `policy`'s and `model`'s.

use crate::code::{Code, Op};
use crate::late::Late;
use crate::ledger::Ledger;
use crate::pending::{Class, Entry, Pending, order_key};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::faulty::Faulty;
use weir_model::queue::{Entry as QueueEntry, Links, Queue};
use weir_model::traffic::Arrivals;
use weir_policy::config::{Exclude, Work};
use weir_policy::retry::{Attempt, Tried};
use weir_policy::{Balancer, Kind, Outcome, Release};
use weir_stats::Key;

/// Which requests, and when.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub arrivals: Arrivals,
    pub requests: u64,
    /// Ordinals of the window.
    pub from: u64,
    pub to: u64,
    pub deadline_ns: u64,
}

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

/// A request on its way.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Token {
    pc: u32,
    member: u32,
    /// Frames in use.
    depth: u32,
    /// Changes when the slot goes to another request: events of the old one are stale.
    tag: u32,
    ordinal: u64,
    arrived: u64,
    /// The request and its way: what its work is drawn by.
    way: Key,
    /// The request and all its attempts: what choices are drawn by.
    tries: Key,
    /// All ones if the window selects it, else 0.
    selected: u64,
    outcome: Outcome,
    exclude: Exclude,
}

/// A balancer in virtual time.
struct Instance {
    balancer: Balancer,
    /// What its choices are drawn by.
    picks: Key,
    /// Where its targets begin in [`Code::targets`].
    targets: u32,
    /// Requests that will have come back before its next pick.
    late: Late,
}

/// What a request returns to: (step, member, target) of a balancer or call; a retry needs two.
type Frame = [u32; 4];

/// An event with this bit is not a request's but ends a hold.
const HOLD: u32 = 1 << 31;
/// A step with this bit is one that the request has come to, waits and all.
const PARKED: u32 = 1 << 31;
/// Arrivals drawn at once; the stop flag is looked at as often.
const BATCH: u64 = 256;

pub(crate) struct Engine<'a> {
    code: &'a Code,
    load: Load,
    pending: Pending,
    tokens: Vec<Token>,
    spare: Vec<u32>,
    frames: Vec<Frame>,
    /// Counters of visits by slot, and their copies by frame.
    visits: Vec<u32>,
    saved_visits: Vec<u32>,
    tried: Vec<Tried>,
    excluded: Vec<u32>,
    queues: Vec<Queue>,
    links: Links,
    balancers: Vec<Instance>,
    faults: Vec<Faulty>,
    holds: Vec<(u32, u32)>,
    spare_holds: Vec<u32>,
    draw_keys: Vec<Key>,
    request_key: Key,
    issued: u64,
    /// Arrivals that are known already: at least all until the next one that is looked at.
    ahead: Vec<u64>,
    next_ahead: usize,
    last_drawn: u64,
    drawn: u64,
    /// Ordinal at which the second half of the window begins.
    half: u64,
    /// Instants of the window's first and last arrival, once known; and how many of them the clock has passed.
    pub window: [u64; 2],
    passed: usize,
    /// The next of them.
    mark: u64,
    /// Time and order of the event that runs.
    turn: (u64, u64),
    pub ledger: Ledger,
    #[cfg(test)]
    pub sabotage: Option<Sabotage>,
}

impl<'a> Engine<'a> {
    /// `key` is the replication's.
    pub fn new(code: &'a Code, load: Load, key: Key) -> Engine<'a> {
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
        let half = load.from + (load.to - load.from) / 2;
        Engine {
            code,
            load,
            pending: Pending::new(),
            tokens: Vec::new(),
            spare: Vec::new(),
            frames: Vec::new(),
            visits: Vec::new(),
            saved_visits: Vec::new(),
            tried: Vec::new(),
            excluded: Vec::new(),
            queues: vec![Queue::default(); code.queue_count as usize],
            links: Links::default(),
            balancers: code.instances.iter().map(balancer).collect(),
            faults: code.fault_nodes.iter().map(fault).collect(),
            holds: Vec::new(),
            spare_holds: Vec::new(),
            draw_keys: code.draw_keys.iter().map(draw).collect(),
            request_key: key.with(purpose::REQUEST),
            issued: 0,
            ahead: Vec::new(),
            next_ahead: 0,
            last_drawn: 0,
            drawn: 0,
            half,
            window: [u64::MAX; 2],
            passed: 0,
            mark: u64::MAX,
            turn: (0, 0),
            ledger: Ledger::new(code),
            #[cfg(test)]
            sabotage: None,
        }
    }

    /// Runs all requests to their end. False if it was stopped.
    pub fn run(&mut self, stop: &AtomicBool) -> bool {
        self.schedule_arrival();
        let mut now = 0;
        let mut looked = 0;
        while let Some((event, is_arrival)) = self.pending.next() {
            #[cfg(test)]
            if self.breaks(Sabotage::TurnClockBack) {
                now += 1_000_000_000;
            }
            self.ledger.time_went_back |= event.at < now;
            now = event.at;
            self.turn = (now, event.key);
            if now > self.mark {
                self.pass_marks(now);
            }
            if is_arrival {
                if self.drawn != looked {
                    looked = self.drawn;
                    if stop.load(Ordering::Relaxed) {
                        return false;
                    }
                }
                self.arrive(event);
            } else if event.who & HOLD != 0 {
                self.end_hold(event.who & !HOLD);
            } else if self.tokens[event.who as usize].tag == event.tag {
                self.go_on(event.who, now, now, event.after_faults());
            }
        }
        self.pass_marks(u64::MAX);
        true
    }

    /// Requests that balancers still count, once all late returns are in.
    pub fn left_at_balancers(&mut self) -> u64 {
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
    pub fn left_in_queues(&self) -> u64 {
        self.queues.iter().map(|q| u64::from(q.inside()) + u64::from(q.waiting())).sum()
    }

    #[cold]
    fn pass_marks(&mut self, now: u64) {
        while self.passed < 2 && now > self.window[self.passed] {
            let at = self.window[self.passed];
            self.ledger.marks[self.passed] = self.ledger.snapshot(self.code, &self.queues, at);
            self.passed += 1;
        }
        self.mark = self.window.get(self.passed).copied().unwrap_or(u64::MAX);
    }

    /// With a constant way to the first step in turn, an arrival is looked at when it gets there.
    #[inline]
    fn schedule_arrival(&mut self) {
        if self.issued == self.load.requests {
            return self.pending.set_source(None);
        }
        if self.next_ahead == self.ahead.len() {
            self.draw_arrivals();
        }
        let arrived = self.ahead[self.next_ahead];
        self.next_ahead += 1;
        let class = if self.code.prefix_ns > 0 { Class::Step } else { Class::Arrival };
        let at = arrived.saturating_add(self.code.prefix_ns);
        // The window's instants must be known before the clock passes them.
        while self.last_drawn <= at && self.drawn < self.load.requests {
            self.draw_arrivals();
        }
        self.pending.set_source(Some(Entry { at, key: order_key(class, self.issued), who: 0, tag: 0 }));
    }

    /// Draws a batch of arrivals ahead: they depend on nothing.
    fn draw_arrivals(&mut self) {
        self.ahead.drain(..self.next_ahead);
        self.next_ahead = 0;
        for _ in 0..BATCH.min(self.load.requests - self.drawn) {
            let at = self.load.arrivals.next_ns();
            self.ahead.push(at);
            if self.drawn == self.load.from {
                self.window[0] = at;
                self.mark = self.mark.min(at);
            }
            self.drawn += 1;
            if self.drawn == self.load.to {
                self.window[1] = at;
                self.mark = self.mark.min(at);
            }
            self.last_drawn = at;
        }
    }

    fn arrive(&mut self, event: Entry) {
        let ordinal = self.issued;
        self.issued += 1;
        self.schedule_arrival();
        let arrived = event.at - self.code.prefix_ns;
        let way = self.request_key.with(ordinal);
        let selected = (self.load.from..self.load.to).contains(&ordinal);
        let slot = self.spare.pop().unwrap_or_else(|| self.new_slot());
        let start = self.code.start;
        let token = &mut self.tokens[slot as usize];
        *token = Token {
            pc: start.pc,
            member: start.member,
            depth: 0,
            tag: token.tag,
            ordinal,
            arrived,
            way,
            tries: way,
            selected: 0u64.wrapping_sub(u64::from(selected)),
            outcome: None,
            exclude: Exclude::None,
        };
        if self.code.visits > 0 {
            let n = self.code.visits;
            self.visits[slot as usize * n..][..n].fill(0);
        }
        if self.code.excludes {
            self.tried[slot as usize].clear();
        }
        self.ledger.arrived += 1;
        self.ledger.entries[start.member as usize] += u32::from(selected);
        self.ledger.step(event.at, true);
        self.ledger.ahead = self.ledger.ahead.wrapping_add(self.code.prefix_ns);
        #[cfg(test)]
        if self.breaks(Sabotage::LoseRequest) {
            return;
        }
        self.go_on(slot, event.at, arrived, event.after_faults());
    }

    #[cold]
    fn new_slot(&mut self) -> u32 {
        let slot = self.tokens.len() as u32;
        assert!(slot < HOLD, "more requests in flight than can be numbered");
        let nobody = Key::from_bits(0);
        self.tokens.push(Token {
            pc: 0,
            member: 0,
            depth: 0,
            tag: 0,
            ordinal: 0,
            arrived: 0,
            way: nobody,
            tries: nobody,
            selected: 0,
            outcome: None,
            exclude: Exclude::None,
        });
        self.frames.resize(self.tokens.len() * self.code.depth, [0; 4]);
        self.visits.resize(self.tokens.len() * self.code.visits, 0);
        self.saved_visits.resize(self.frames.len() * self.code.visits, 0);
        if self.code.excludes {
            self.tried.push(Tried::default());
        }
        slot
    }

    /// Runs a request from where it stands. `now` is the clock, `time` the request's own, which may be ahead or, on
    /// arrival, behind by the prefix.
    fn go_on(&mut self, slot: u32, now: u64, time: u64, after_faults: bool) {
        let code = self.code;
        let frames = slot as usize * code.depth;
        let token = &self.tokens[slot as usize];
        let (mut pc, mut member, mut depth) =
            ((token.pc & !PARKED) as usize, token.member, token.depth as usize);
        let mut failed = token.outcome.is_some();
        let selected = token.selected;
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
                            let target =
                                code.targets[(self.balancers[instance as usize].targets + index) as usize];
                            self.frames[frames + depth] = [pc as u32 + 1, member, index, 0];
                            depth += 1;
                            pc = target.pc as usize;
                            member = target.member;
                            self.ledger.entries[member as usize] += selected as u32 & 1;
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
                        let target = self.frames[frames + depth - 1][2];
                        let instance = member.wrapping_add(site.offset);
                        if time == now {
                            self.done(slot, instance, target, now);
                        } else if failed || !self.done_late(slot, instance, target, time) {
                            return self.park(slot, pc, member, depth, now, time, drawn);
                        }
                    }
                    count_errors!();
                    depth -= 1;
                    pc += 1;
                }
                Op::Enter { queue } => {
                    in_turn!();
                    let site = &code.queues[queue as usize];
                    let queue = &mut self.queues[member.wrapping_add(site.offset) as usize];
                    let gauge = &mut self.ledger.gauges[site.gauge.wrapping_add(member & code.mask) as usize];
                    match queue.enter(site.limits, &mut self.links, slot) {
                        QueueEntry::Inside => {
                            gauge.busy = gauge.busy.wrapping_sub(now);
                            gauge.served = gauge.served.wrapping_sub(now & selected);
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
                    self.begin_attempts(slot, frames + depth, code.retries[retry as usize].config.exclude);
                    depth += 2;
                    pc += 1;
                }
                Op::Tried { retry } => {
                    count_errors!();
                    if self.next_attempt(slot, member, frames + depth - 2, retry) {
                        failed = false;
                        pc = code.retries[retry as usize].again as usize;
                    } else {
                        depth -= 2;
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
                Op::Turn => {
                    in_turn!();
                    pc += 1;
                }
                Op::Call { call } => {
                    let site = code.calls[call as usize];
                    let target = code.call_targets[member.wrapping_add(site.offset) as usize];
                    self.frames[frames + depth] = [pc as u32 + 1, member, 0, 0];
                    depth += 1;
                    pc = target.pc as usize;
                    member = target.member;
                    self.ledger.entries[member as usize] += selected as u32 & 1;
                }
                Op::Back => {
                    depth -= 1;
                    pc += 1;
                }
                Op::Return => {
                    count_errors!();
                    let frame = self.frames[frames + depth - 1];
                    pc = frame[0] as usize;
                    member = frame[1];
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
        let token = &mut self.tokens[slot as usize];
        token.pc = pc;
        token.member = member;
        token.depth = depth as u32;
    }

    /// The request has come to a step that is not yet its time.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the registers of a request, which must stay in registers")]
    fn park(&mut self, slot: u32, pc: usize, member: u32, depth: usize, now: u64, time: u64, drawn: bool) {
        self.leave_at(slot, pc as u32 | PARKED, member, depth);
        let token = &self.tokens[slot as usize];
        let entry = Entry { at: time, key: order_key(Class::Step, token.ordinal), who: slot, tag: token.tag };
        if drawn || now > time {
            self.pending.push(now, entry);
        } else {
            self.pending.push_constant(time - now, entry);
        }
    }

    #[inline]
    fn draw(&mut self, slot: u32, member: u32, draw: u32, selected: u64) -> u64 {
        let site = &self.code.draws[draw as usize];
        let mut key = self.draw_keys[site.key as usize].with(self.tokens[slot as usize].way.bits());
        if let Some(counter) = site.visits {
            let visits = &mut self.visits[slot as usize * self.code.visits + counter as usize];
            if *visits > 0 {
                key = key.with(purpose::VISIT).with(u64::from(*visits));
            }
            *visits += 1;
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
        let token = &self.tokens[slot as usize];
        let draw = lb.picks.with(token.tries.bits());
        if counts {
            while let Some(target) = lb.late.before(self.turn) {
                lb.balancer.release(target);
            }
        }
        if token.exclude == Exclude::None {
            return lb.balancer.pick(draw, &[]);
        }
        let tried = &mut self.tried[slot as usize];
        tried.at(instance, &mut self.excluded);
        let target = lb.balancer.pick(draw, &self.excluded)?;
        tried.picked(token.exclude, instance, target);
        Some(target)
    }

    #[inline]
    fn done(&mut self, slot: u32, instance: u32, target: u32, now: u64) {
        let token = &self.tokens[slot as usize];
        if token.exclude != Exclude::None {
            self.tried[slot as usize].came_back(token.exclude, instance, target, token.outcome);
        }
        if let Release::After(hold) = self.balancers[instance as usize].balancer.done(target, token.outcome) {
            self.hold(instance, target, now, hold, token.ordinal);
        }
    }

    /// Notes that a request will come back at `time`, which nothing can prevent any more. Only the balancer's own picks can
    /// tell, so they look it up; no event is needed. False if it must be one all the same.
    #[inline]
    fn done_late(&mut self, slot: u32, instance: u32, target: u32, time: u64) -> bool {
        if !self.code.fused {
            return false;
        }
        #[cfg(test)]
        if self.breaks(Sabotage::ForgetReturn) {
            return true;
        }
        let key = order_key(Class::Step, self.tokens[slot as usize].ordinal);
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
        let entry = Entry { at: now.saturating_add(hold), key, who: HOLD | index, tag: 0 };
        self.pending.push_constant(hold, entry);
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
        if let Some(next) = self.queues[member.wrapping_add(site.offset) as usize].leave(&mut self.links) {
            let woken = &self.tokens[next as usize];
            gauge.waiting = gauge.waiting.wrapping_add(now);
            gauge.busy = gauge.busy.wrapping_sub(now);
            gauge.served = gauge.served.wrapping_sub(now & woken.selected);
            let part = &mut self.ledger.parts[site.part.wrapping_add(member & self.code.mask) as usize];
            *part = part.wrapping_add(now & woken.selected);
            let key = order_key(Class::Step, woken.ordinal);
            self.pending.wake(Entry { at: now, key, who: next, tag: woken.tag });
        }
    }

    fn begin_attempts(&mut self, slot: u32, frame: usize, exclude: Exclude) {
        let token = &mut self.tokens[slot as usize];
        self.frames[frame] = [Attempt::FIRST.0, exclude_code(token.exclude), 0, 0];
        let (way, tries) = (token.way.bits(), token.tries.bits());
        self.frames[frame + 1] = [way as u32, (way >> 32) as u32, tries as u32, (tries >> 32) as u32];
        token.exclude = exclude;
        self.save_visits(slot, frame);
    }

    /// Whether another attempt begins; otherwise the retry is left behind.
    #[inline]
    fn next_attempt(&mut self, slot: u32, member: u32, frame: usize, retry: u32) -> bool {
        let attempt = Attempt(self.frames[frame][0]);
        let token = &mut self.tokens[slot as usize];
        let config = &self.code.retries[retry as usize].config;
        match config.next(attempt, token.outcome, true) {
            Some(next) => {
                self.try_again(slot, member, frame, retry, next);
                true
            }
            None => {
                token.exclude = exclude_of(self.frames[frame][1]);
                if attempt != Attempt::FIRST {
                    (token.way, token.tries) = way_of(self.frames[frame + 1]);
                    if config.work == Work::Redraw {
                        self.restore_visits(slot, frame);
                    }
                }
                false
            }
        }
    }

    /// The first attempt is the request itself, on the way that it came; each further one is a way of its own, on which
    /// nothing has been visited yet, or (`work="same"`) the first one again.
    #[cold]
    fn try_again(&mut self, slot: u32, member: u32, frame: usize, retry: u32, next: Attempt) {
        let (way, tries) = way_of(self.frames[frame + 1]);
        let site = &self.code.retries[retry as usize];
        let redraw = site.config.work == Work::Redraw;
        if redraw {
            if self.frames[frame][0] == Attempt::FIRST.0 {
                self.save_visits(slot, frame);
            }
            let n = self.code.visits;
            self.visits[slot as usize * n..][..n].fill(0);
        } else {
            self.restore_visits(slot, frame);
        }
        let token = &mut self.tokens[slot as usize];
        if redraw {
            token.way = way.with(purpose::ATTEMPT).with(u64::from(next.0));
        }
        token.tries = tries.with(purpose::ATTEMPT).with(u64::from(next.0));
        token.outcome = None;
        self.frames[frame][0] = next.0;
        self.ledger.extra_attempts += token.selected & 1;
        self.ledger.repeats[member.wrapping_add(site.repeats) as usize] += token.selected as u32 & 1;
    }

    fn save_visits(&mut self, slot: u32, frame: usize) {
        let n = self.code.visits;
        self.saved_visits[frame * n..][..n].copy_from_slice(&self.visits[slot as usize * n..][..n]);
    }

    fn restore_visits(&mut self, slot: u32, frame: usize) {
        let n = self.code.visits;
        self.visits[slot as usize * n..][..n].copy_from_slice(&self.saved_visits[frame * n..][..n]);
    }

    /// A stage says no: the request goes back from there.
    #[cold]
    fn refuse(&mut self, slot: u32, member: u32, stage: u32, kind: Kind) {
        let token = &mut self.tokens[slot as usize];
        token.outcome = Some(kind);
        if token.selected != 0 {
            let part = self.code.stages[stage as usize].part.wrapping_add(member & self.code.mask);
            self.ledger.error_at(part as usize, kind);
        }
    }

    fn count_refusal(&mut self, slot: u32, member: u32, stage: u32) {
        if let Some(offset) = self.code.stages[stage as usize].refusals {
            let selected = self.tokens[slot as usize].selected;
            self.ledger.refusals[member.wrapping_add(offset) as usize] += selected as u32 & 1;
        }
    }

    /// An error passes the stages that end at this step.
    #[cold]
    fn count_errors(&mut self, slot: u32, member: u32, pc: usize) {
        let token = &self.tokens[slot as usize];
        let Some(kind) = token.outcome.filter(|_| token.selected != 0) else { return };
        let (from, to) = self.code.covers[pc];
        for &stage in &self.code.cover_list[from as usize..to as usize] {
            let part = self.code.stages[stage as usize].part.wrapping_add(member & self.code.mask);
            self.ledger.error_at(part as usize, kind);
        }
    }

    #[inline]
    fn end(&mut self, slot: u32, now: u64, time: u64) {
        let token = &mut self.tokens[slot as usize];
        token.tag = token.tag.wrapping_add(1);
        let latency = time - token.arrived;
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
        if token.selected != 0 {
            match token.outcome {
                None => {
                    ledger.ok.record(latency);
                    ledger.good += u64::from(latency <= self.load.deadline_ns);
                }
                Some(kind) => {
                    ledger.failed.record(latency);
                    ledger.errors[kind as usize] += 1;
                }
            }
            ledger.first_end = ledger.first_end.min(time);
            ledger.last_end = ledger.last_end.max(time);
            let half = usize::from(token.ordinal >= self.half);
            ledger.halves[half].0 += u128::from(latency);
            ledger.halves[half].1 += 1;
        }
        self.spare.push(slot);
    }
}

fn way_of([a, b, c, d]: Frame) -> (Key, Key) {
    let key = |low: u32, high: u32| Key::from_bits(u64::from(low) | u64::from(high) << 32);
    (key(a, b), key(c, d))
}

fn exclude_code(exclude: Exclude) -> u32 {
    match exclude {
        Exclude::Tried => 0,
        Exclude::ConnectFailed => 1,
        Exclude::None => 2,
    }
}

fn exclude_of(code: u32) -> Exclude {
    match code {
        0 => Exclude::Tried,
        1 => Exclude::ConnectFailed,
        _ => Exclude::None,
    }
}
