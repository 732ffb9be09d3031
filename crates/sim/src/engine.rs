//! One replication in virtual time: requests run through the code, events in the contract's order.
//!
//! A request runs until it comes to a step that must happen in its turn (another request could see it) at a later time
//! than now; then it is scheduled for that time. Waits and stateless choices are run ahead, so consecutive waits are one
//! event. The engine decides nothing: balancers, retries, queues, faults and draws are `policy`'s and `model`'s.

use crate::code::{Code, Op};
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
    /// Instants of its first and last arrival.
    pub first_ns: u64,
    pub last_ns: u64,
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

/// A request on its way.
#[derive(Clone, Copy, Debug)]
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

/// What a request returns to: (step, member, target) of a balancer or call; a retry needs two.
type Frame = [u32; 4];

/// An event with this bit is not a request's but ends a hold.
const HOLD: u32 = 1 << 31;
/// Events between two looks at the stop flag.
const PATIENCE: u32 = 1 << 16;

pub(crate) struct Engine<'a> {
    code: &'a Code,
    fuse: bool,
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
    balancers: Vec<(Balancer, Key)>,
    faults: Vec<Faulty>,
    holds: Vec<(u32, u32)>,
    spare_holds: Vec<u32>,
    draw_keys: Vec<Key>,
    request_key: Key,
    issued: u64,
    /// The next mark to pass, and which it is.
    mark: u64,
    passed: usize,
    pub ledger: Ledger,
}

impl<'a> Engine<'a> {
    /// `key` is the replication's.
    pub fn new(code: &'a Code, load: Load, key: Key, fuse: bool) -> Engine<'a> {
        let place = |i: u32| code.place_keys[i as usize];
        let node = key.with(purpose::NODE);
        let choice = key.with(purpose::CHOICE);
        let balancer = |i: &crate::code::Instance| {
            let own = node.with(place(i.place)).with(u64::from(i.number));
            let picks = choice.with(place(i.place)).with(u64::from(i.number));
            let site = &code.lbs[i.lb as usize];
            (Balancer::new(&site.balance, &code.weights[i.list as usize], own), picks)
        };
        let fault = |&(fault, at, number): &(u32, u32, u32)| {
            Faulty::new(&code.faults[fault as usize].law, node.with(place(at)).with(u64::from(number)))
        };
        let draw = |&(purpose, at): &(u64, u32)| key.with(purpose::DRAW).with(purpose).with(place(at));
        let mark = load.first_ns;
        Engine {
            code,
            fuse,
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
            mark,
            passed: 0,
            ledger: Ledger::new(code),
        }
    }

    /// Runs all requests to their end. False if it was stopped.
    pub fn run(&mut self, stop: &AtomicBool) -> bool {
        self.schedule_arrival();
        let mut patience = PATIENCE;
        let mut now = 0;
        while let Some((event, is_arrival)) = self.pending.next() {
            self.ledger.time_went_back |= event.at < now;
            now = event.at;
            if now > self.mark {
                self.pass_marks(now);
            }
            if is_arrival {
                self.arrive(event);
            } else if event.who & HOLD != 0 {
                self.end_hold(event.who & !HOLD);
            } else if self.tokens[event.who as usize].tag == event.tag {
                self.go_on(event.who, now, now, event.after_faults());
            }
            patience -= 1;
            if patience == 0 {
                patience = PATIENCE;
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
            }
        }
        self.pass_marks(u64::MAX);
        true
    }

    /// Slots still taken and requests still waiting at any queue.
    pub fn left_in_queues(&self) -> u64 {
        self.queues.iter().map(|q| u64::from(q.inside()) + u64::from(q.waiting())).sum()
    }

    #[cold]
    fn pass_marks(&mut self, now: u64) {
        while now > self.mark && self.passed < 2 {
            self.ledger.marks[self.passed] = self.ledger.snapshot(self.code, &self.queues, self.mark);
            self.passed += 1;
            self.mark = if self.passed == 1 { self.load.last_ns } else { u64::MAX };
        }
    }

    fn schedule_arrival(&mut self) {
        if self.issued == self.load.requests {
            return self.pending.set_source(None);
        }
        let arrived = self.load.arrivals.next_ns();
        // With a constant way to the first step in turn, the arrival is looked at when it gets there.
        let class = if self.code.prefix_ns > 0 { Class::Step } else { Class::Arrival };
        let at = arrived.saturating_add(self.code.prefix_ns);
        self.pending.set_source(Some(Entry { at, key: order_key(class, self.issued), who: 0, tag: 0 }));
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
        self.ledger.ahead += u128::from(self.code.prefix_ns);
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
        let mut token = self.tokens[slot as usize];
        let mut time = time;
        let mut drawn = false;
        // A step in turn, when it is not yet its time.
        macro_rules! in_turn {
            () => {
                if time != now {
                    return self.park(slot, token, now, time, drawn);
                }
            };
        }
        loop {
            let pc = token.pc as usize;
            match code.ops[pc] {
                Op::Wait { ns, part } => {
                    self.ledger.parts[part.wrapping_add(token.member & code.mask) as usize] += ns & token.selected;
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    time = time.saturating_add(ns);
                    token.pc += 1;
                    if !self.fuse {
                        in_turn!();
                    }
                }
                Op::Draw { draw, part } => {
                    let ns = self.draw(slot, &token, draw);
                    self.ledger.parts[part.wrapping_add(token.member & code.mask) as usize] += ns & token.selected;
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    time = time.saturating_add(ns);
                    drawn = true;
                    token.pc += 1;
                    if !self.fuse {
                        in_turn!();
                    }
                }
                Op::Pick { lb } => {
                    let site = &code.lbs[lb as usize];
                    if site.ordered {
                        in_turn!();
                    }
                    let instance = token.member.wrapping_add(site.offset);
                    match self.pick(slot, &token, instance) {
                        Some(index) => {
                            let list = code.instances[instance as usize].list;
                            let target = code.lists[list as usize][index as usize];
                            let frame = slot as usize * code.depth + token.depth as usize;
                            self.frames[frame] = [token.pc + 1, token.member, index, 0];
                            token.depth += 1;
                            token.pc = target.pc;
                            token.member = target.member;
                            self.ledger.entries[target.member as usize] += token.selected as u32 & 1;
                        }
                        None => self.refuse(&mut token, site.stage, Kind::NoTarget, site.skip),
                    }
                }
                Op::Done { lb } => {
                    let site = &code.lbs[lb as usize];
                    if site.counts {
                        in_turn!();
                    }
                    token.depth -= 1;
                    let target = self.frames[slot as usize * code.depth + token.depth as usize][2];
                    let instance = token.member.wrapping_add(site.offset);
                    self.done(slot, &token, instance, target, now);
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    token.pc += 1;
                }
                Op::Enter { queue } => {
                    in_turn!();
                    let site = &code.queues[queue as usize];
                    let index = token.member.wrapping_add(site.offset) as usize;
                    let gauge = site.gauge.wrapping_add(token.member & code.mask) as usize;
                    match self.queues[index].enter(site.limits, &mut self.links, slot) {
                        QueueEntry::Inside => {
                            let gauge = &mut self.ledger.gauges[gauge];
                            gauge.busy = gauge.busy.wrapping_sub(now);
                            gauge.served = gauge.served.wrapping_sub(now & token.selected);
                            token.pc += 1;
                        }
                        QueueEntry::Waits => {
                            let waiting = self.queues[index].waiting();
                            let gauge = &mut self.ledger.gauges[gauge];
                            gauge.waiting = gauge.waiting.wrapping_sub(now);
                            gauge.most = gauge.most.max(waiting);
                            let part = code.stages[site.stage as usize].part.wrapping_add(token.member & code.mask);
                            let part = &mut self.ledger.parts[part as usize];
                            *part = part.wrapping_sub(now & token.selected);
                            token.pc += 1;
                            self.tokens[slot as usize] = token;
                            return;
                        }
                        QueueEntry::Full => {
                            let refusals = code.stages[site.stage as usize].refusals;
                            self.count_refusal(&token, refusals);
                            self.refuse(&mut token, site.stage, Kind::Overloaded, site.skip);
                        }
                    }
                }
                Op::Leave { queue } => {
                    in_turn!();
                    self.leave(&token, queue, now);
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    token.pc += 1;
                }
                Op::Try { retry } => {
                    let site = &code.retries[retry as usize];
                    self.begin_attempts(slot, &mut token, site.config.exclude);
                    token.pc += 1;
                }
                Op::Tried { retry } => {
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    let again = self.next_attempt(slot, &mut token, retry);
                    token.pc = if again { code.retries[retry as usize].again } else { token.pc + 1 };
                }
                Op::Fault { fault } => {
                    in_turn!();
                    let site = &code.faults[fault as usize];
                    let node = &mut self.faults[token.member.wrapping_add(site.offset) as usize];
                    if node.is_up(&site.law, now, after_faults) {
                        token.pc += 1;
                    } else {
                        self.count_refusal(&token, code.stages[site.stage as usize].refusals);
                        self.refuse(&mut token, site.stage, Kind::Refused, site.skip);
                    }
                }
                Op::Pass => {
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    token.pc += 1;
                }
                Op::Call { call } => {
                    let site = code.calls[call as usize];
                    let target = code.call_targets[token.member.wrapping_add(site.offset) as usize];
                    self.frames[slot as usize * code.depth + token.depth as usize] =
                        [token.pc + 1, token.member, 0, 0];
                    token.depth += 1;
                    token.pc = target.pc;
                    token.member = target.member;
                    self.ledger.entries[target.member as usize] += token.selected as u32 & 1;
                }
                Op::Back => {
                    token.depth -= 1;
                    token.pc += 1;
                }
                Op::Return => {
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    let frame = self.frames[slot as usize * code.depth + token.depth as usize - 1];
                    token.pc = frame[0];
                    token.member = frame[1];
                }
                Op::End => {
                    if token.outcome.is_some() {
                        self.count_errors(&token, pc);
                    }
                    return self.end(slot, &token, now, time);
                }
            }
        }
    }

    /// The request waits for its time.
    #[inline]
    fn park(&mut self, slot: u32, token: Token, now: u64, time: u64, drawn: bool) {
        self.tokens[slot as usize] = token;
        let entry = Entry { at: time, key: order_key(Class::Step, token.ordinal), who: slot, tag: token.tag };
        if drawn || now > time {
            self.pending.push(entry);
        } else {
            self.pending.push_constant(time - now, entry);
        }
    }

    #[inline]
    fn draw(&mut self, slot: u32, token: &Token, draw: u32) -> u64 {
        let site = &self.code.draws[draw as usize];
        let mut key = self.draw_keys[site.key as usize].with(token.way.bits());
        if let Some(counter) = site.visits {
            let visits = &mut self.visits[slot as usize * self.code.visits + counter as usize];
            if *visits > 0 {
                key = key.with(purpose::VISIT).with(u64::from(*visits));
            }
            *visits += 1;
        }
        site.sampler.draw(key)
    }

    #[inline]
    fn pick(&mut self, slot: u32, token: &Token, instance: u32) -> Option<u32> {
        let (balancer, key) = &mut self.balancers[instance as usize];
        let draw = key.with(token.tries.bits());
        if token.exclude == Exclude::None {
            return balancer.pick(draw, &[]);
        }
        let tried = &mut self.tried[slot as usize];
        tried.at(instance, &mut self.excluded);
        let target = balancer.pick(draw, &self.excluded)?;
        tried.picked(token.exclude, instance, target);
        Some(target)
    }

    #[inline]
    fn done(&mut self, slot: u32, token: &Token, instance: u32, target: u32, now: u64) {
        if token.exclude != Exclude::None {
            self.tried[slot as usize].came_back(token.exclude, instance, target, token.outcome);
        }
        if let Release::After(hold) = self.balancers[instance as usize].0.done(target, token.outcome) {
            let index = self.spare_holds.pop().unwrap_or(self.holds.len() as u32);
            if index as usize == self.holds.len() {
                self.holds.push((0, 0));
            }
            self.holds[index as usize] = (instance, target);
            let key = order_key(Class::Hold, token.ordinal);
            let entry = Entry { at: now.saturating_add(hold), key, who: HOLD | index, tag: 0 };
            self.pending.push_constant(hold, entry);
        }
    }

    fn end_hold(&mut self, index: u32) {
        let (instance, target) = self.holds[index as usize];
        self.balancers[instance as usize].0.release(target);
        self.spare_holds.push(index);
    }

    #[inline]
    fn leave(&mut self, token: &Token, queue: u32, now: u64) {
        let site = &self.code.queues[queue as usize];
        let gauge_index = site.gauge.wrapping_add(token.member & self.code.mask) as usize;
        let gauge = &mut self.ledger.gauges[gauge_index];
        gauge.busy = gauge.busy.wrapping_add(now);
        gauge.served = gauge.served.wrapping_add(now & token.selected);
        let index = token.member.wrapping_add(site.offset) as usize;
        if let Some(next) = self.queues[index].leave(&mut self.links) {
            let woken = &self.tokens[next as usize];
            gauge.waiting = gauge.waiting.wrapping_add(now);
            gauge.busy = gauge.busy.wrapping_sub(now);
            gauge.served = gauge.served.wrapping_sub(now & woken.selected);
            let part = self.code.stages[site.stage as usize].part.wrapping_add(token.member & self.code.mask);
            let part = &mut self.ledger.parts[part as usize];
            *part = part.wrapping_add(now & woken.selected);
            let key = order_key(Class::Step, woken.ordinal);
            self.pending.wake(Entry { at: now, key, who: next, tag: woken.tag });
        }
    }

    fn begin_attempts(&mut self, slot: u32, token: &mut Token, exclude: Exclude) {
        let frame = slot as usize * self.code.depth + token.depth as usize;
        self.frames[frame] = [Attempt::FIRST.0, exclude_code(token.exclude), 0, 0];
        let (way, tries) = (token.way.bits(), token.tries.bits());
        self.frames[frame + 1] = [way as u32, (way >> 32) as u32, tries as u32, (tries >> 32) as u32];
        self.save_visits(slot, frame);
        token.exclude = exclude;
        token.depth += 2;
    }

    /// Whether another attempt begins; otherwise the retry is left behind.
    fn next_attempt(&mut self, slot: u32, token: &mut Token, retry: u32) -> bool {
        let site = &self.code.retries[retry as usize];
        let frame = slot as usize * self.code.depth + token.depth as usize - 2;
        let attempt = Attempt(self.frames[frame][0]);
        let [a, b, c, d] = self.frames[frame + 1];
        let way = Key::from_bits(u64::from(a) | u64::from(b) << 32);
        let tries = Key::from_bits(u64::from(c) | u64::from(d) << 32);
        let redraw = site.config.work == Work::Redraw;
        let Some(next) = site.config.next(attempt, token.outcome, true) else {
            token.depth -= 2;
            token.exclude = exclude_of(self.frames[frame][1]);
            token.way = way;
            token.tries = tries;
            if redraw && attempt != Attempt::FIRST {
                self.restore_visits(slot, frame);
            }
            return false;
        };
        // The first attempt is the request itself, on the way that it came; each further one is a way of its own, on
        // which nothing has been visited yet, or (`work="same"`) the first one again.
        if !redraw {
            self.restore_visits(slot, frame);
        } else {
            if attempt == Attempt::FIRST {
                self.save_visits(slot, frame);
            }
            let n = self.code.visits;
            self.visits[slot as usize * n..][..n].fill(0);
            token.way = way.with(purpose::ATTEMPT).with(u64::from(next.0));
        }
        token.tries = tries.with(purpose::ATTEMPT).with(u64::from(next.0));
        token.outcome = None;
        self.frames[frame][0] = next.0;
        self.ledger.extra_attempts += token.selected & 1;
        true
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
    fn refuse(&mut self, token: &mut Token, stage: u32, kind: Kind, skip: u32) {
        token.outcome = Some(kind);
        token.pc = skip;
        if token.selected != 0 {
            let part = self.code.stages[stage as usize].part.wrapping_add(token.member & self.code.mask);
            self.ledger.error_at(part as usize, kind);
        }
    }

    fn count_refusal(&mut self, token: &Token, refusals: Option<u32>) {
        if let Some(offset) = refusals {
            self.ledger.refusals[token.member.wrapping_add(offset) as usize] += token.selected as u32 & 1;
        }
    }

    /// An error passes the stages that end at this step.
    #[cold]
    fn count_errors(&mut self, token: &Token, pc: usize) {
        let Some(kind) = token.outcome.filter(|_| token.selected != 0) else { return };
        let (from, to) = self.code.covers[pc];
        for &stage in &self.code.cover_list[from as usize..to as usize] {
            let part = self.code.stages[stage as usize].part.wrapping_add(token.member & self.code.mask);
            self.ledger.error_at(part as usize, kind);
        }
    }

    #[inline]
    fn end(&mut self, slot: u32, token: &Token, now: u64, time: u64) {
        let latency = time - token.arrived;
        let ledger = &mut self.ledger;
        ledger.ended += 1;
        ledger.latency_sum += u128::from(latency);
        ledger.step(now, false);
        ledger.ahead += u128::from(time - now);
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
            let half = usize::from(token.ordinal >= (self.load.from + self.load.to) / 2);
            ledger.halves[half].0 += u128::from(latency);
            ledger.halves[half].1 += 1;
        }
        let token = &mut self.tokens[slot as usize];
        token.tag = token.tag.wrapping_add(1);
        self.spare.push(slot);
    }
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
