//! What can be cut off: limits, where a request stands that may not come to an end, and giving back what it holds.
//!
//! A limit is a scope of the request's own code, a row of fixed size in a stack beside its token; nothing is copied as one
//! begins. Its event names a place in a table with a tag, so an event whose limit is over is told at a glance. Where it
//! strikes, the request unwinds: from the step where it stands to the end of the limit, by the innermost step that gives
//! something back ([`Code::around`]) and the frames on the way.
//!
//! Consecutive waits are one event here too. What they take is added up as they begin; where a request is cut off between
//! them, they are gone through again and what had not passed is taken back.

use crate::blocks::NOT;
use crate::code::{Code, Op};
use crate::engine::{END_OF_TIME, Engine};
use crate::pending::{Class, Entry, order_key, ranked};
use crate::token::{IDLE, LINE, PARKED};
use weir_policy::Kind;

/// Drawn waits that follow each other as one event at most.
const DRAWN: usize = 4;

/// What a request that can be cut off has beside its token.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Scope {
    /// Where and when it began to wait.
    since: u64,
    pc: u32,
    member: u32,
    depth: u16,
    /// Limits that it is under.
    limits: u16,
    /// Its rank among what one request has going on; see [`ranked`].
    pub rank: u32,
    /// How long the drawn waits are since then, and how many they are.
    waits: [u64; DRAWN],
    drawn: u8,
}

const OUTSIDE: Scope =
    Scope { since: 0, pc: 0, member: 0, depth: 0, limits: 0, rank: 1, waits: [0; DRAWN], drawn: 0 };

/// A limit that a request is under: what holds outside of it, and where it goes on from there.
#[derive(Clone, Copy, Debug, Default)]
struct Limit {
    live: u32,
    end: u32,
    member: u32,
    rank: u32,
    depth: u16,
    retries: u8,
}

/// Whom a limit's event is for, if the tags are the same.
#[derive(Clone, Copy, Debug)]
struct Live {
    slot: u32,
    tag: u32,
}

/// The end of a limit that is the whole request's.
const WHOLE: u32 = u32::MAX;

/// All scopes, by slot.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    pub slots: Vec<Scope>,
    limits: Vec<Limit>,
    each: usize,
    live: Vec<Live>,
    spare: Vec<u32>,
}

impl Scopes {
    pub fn new(code: &Code) -> Scopes {
        Scopes { each: code.limit_depth, ..Scopes::default() }
    }

    /// A request begins in a slot.
    pub fn begin(&mut self, slot: u32) {
        if slot as usize >= self.slots.len() {
            self.slots.resize(slot as usize + 1, OUTSIDE);
            self.limits.resize(self.slots.len() * self.each, Limit::default());
        }
        let scope = &mut self.slots[slot as usize];
        (scope.limits, scope.rank) = (0, 1);
    }

    /// It is over, with the limits that it is under.
    pub fn end(&mut self, slot: u32) {
        self.leave(slot, 0);
    }

    /// A limit begins; the number and tag of its event.
    fn enter(&mut self, slot: u32, limit: Limit) -> (u32, u32) {
        let live = match self.spare.pop() {
            Some(live) => live,
            None => {
                self.live.push(Live { slot, tag: 0 });
                self.live.len() as u32 - 1
            }
        };
        self.live[live as usize].slot = slot;
        let scope = &mut self.slots[slot as usize];
        self.limits[slot as usize * self.each + usize::from(scope.limits)] = Limit { live, ..limit };
        scope.limits += 1;
        (live, self.live[live as usize].tag)
    }

    /// All limits but the first so many are over; what held outside of them holds again.
    fn leave(&mut self, slot: u32, keep: u16) {
        let scope = &mut self.slots[slot as usize];
        while scope.limits > keep {
            scope.limits -= 1;
            let limit = &self.limits[slot as usize * self.each + usize::from(scope.limits)];
            scope.rank = limit.rank;
            let live = &mut self.live[limit.live as usize];
            live.tag = live.tag.wrapping_add(1);
            self.spare.push(limit.live);
        }
    }

    /// The request and which of its limits an event is for.
    fn struck(&self, live: u32, tag: u32) -> Option<(u32, u16)> {
        let found = self.live.get(live as usize).filter(|l| l.tag == tag)?;
        let first = found.slot as usize * self.each;
        let limits = usize::from(self.slots[found.slot as usize].limits);
        let at = self.limits[first..first + limits].iter().position(|l| l.live == live)?;
        Some((found.slot, at as u16))
    }

    /// A request begins to wait.
    #[inline]
    pub fn stand(&mut self, slot: u32, now: u64, pc: usize, member: u32, depth: usize) {
        let scope = &mut self.slots[slot as usize];
        scope.since = now;
        scope.pc = pc as u32;
        scope.member = member;
        scope.depth = depth as u16;
        scope.drawn = 0;
    }

    /// Whether it has waited so many drawn times that it must stand up first.
    #[inline]
    pub fn is_full(&self, slot: u32) -> bool {
        usize::from(self.slots[slot as usize].drawn) == DRAWN
    }

    /// A drawn wait follows.
    #[inline]
    pub fn drew(&mut self, slot: u32, ns: u64) {
        let scope = &mut self.slots[slot as usize];
        if let Some(wait) = scope.waits.get_mut(usize::from(scope.drawn)) {
            *wait = ns;
            scope.drawn += 1;
        }
    }
}

/// How the waits of a request that is cut off are gone through: where it is in them.
struct Passing {
    at: u64,
    /// It was found where it stands; what comes after has not begun.
    found: bool,
}

impl Engine<'_> {
    /// The client of a new request has so much patience.
    pub(crate) fn be_patient(&mut self, slot: u32, now: u64, ns: u64) {
        let (live, tag) = self.scopes.enter(slot, Limit { end: WHOLE, rank: 1, ..Limit::default() });
        let key = order_key(Class::Limit, self.tokens.slots[slot as usize].ordinal);
        let at = now.saturating_add(ns).min(END_OF_TIME);
        self.pending.push_constant(at - now, Entry { at, key, who: crate::engine::LIMIT | live, tag });
    }

    /// A limit begins for what is behind.
    #[inline]
    pub(crate) fn begin_limit(&mut self, slot: u32, limit: u32, member: u32, depth: usize, now: u64) {
        let site = self.code.limits[limit as usize];
        let token = &self.tokens.slots[slot as usize];
        let rank = self.scopes.slots[slot as usize].rank;
        let (retries, depth) = (token.retries, depth as u16);
        let key = ranked(order_key(Class::Limit, token.ordinal), rank);
        let row = Limit { live: 0, end: site.end, member, rank, depth, retries };
        let (live, tag) = self.scopes.enter(slot, row);
        self.scopes.slots[slot as usize].rank = (rank + 1).min((1 << crate::pending::RANK_BITS) - 1);
        let at = now.saturating_add(site.ns).min(END_OF_TIME);
        self.pending.push_constant(at - now, Entry { at, key, who: crate::engine::LIMIT | live, tag });
    }

    /// What is behind has answered in time.
    #[inline]
    pub(crate) fn end_limit(&mut self, slot: u32) {
        let limits = self.scopes.slots[slot as usize].limits;
        self.scopes.leave(slot, limits - 1);
    }

    /// A limit has come to its end.
    #[cold]
    pub(crate) fn strike(&mut self, live: u32, tag: u32, now: u64) {
        let Some((slot, at)) = self.scopes.struck(live, tag) else { return };
        let limit = self.scopes.limits[slot as usize * self.scopes.each + usize::from(at)];
        self.take_back(slot, now);
        self.unwind(slot, &limit, now);
        self.tokens.drop_attempts(slot, limit.retries);
        self.scopes.leave(slot, at);
        let token = &mut self.tokens.slots[slot as usize];
        token.tag = token.tag.wrapping_add(1);
        if limit.end == WHOLE {
            token.set_outcome(Some(Kind::Cancelled));
            return self.end(slot, now, now);
        }
        token.set_outcome(Some(Kind::Timeout));
        token.pc = limit.end;
        token.member = limit.member;
        token.depth = limit.depth;
        self.go_on(slot, now, now, true);
    }

    /// Gives back what a request holds, from where it stands to the end of a limit.
    fn unwind(&mut self, slot: u32, limit: &Limit, now: u64) {
        let code = self.code;
        let token = &self.tokens.slots[slot as usize];
        let selected = token.mask();
        let (mut pc, mut member) = ((token.pc & !(PARKED | LINE)) as usize, token.member);
        let mut depth = usize::from(token.depth);
        if token.pc & LINE != 0 {
            pc -= 1;
            if let Op::Enter { queue } = code.steps[pc].op {
                self.leave_line(slot, queue, member, selected, now);
            }
        }
        // Back at a balancer, or from a call, the frame is its own.
        let mut popped = matches!(code.steps[pc].op, Op::Done { .. } | Op::Back);
        loop {
            if std::mem::take(&mut popped) {
                depth -= 1;
                if let Op::Done { lb } = code.steps[pc].op {
                    let [_, _, target] = self.tokens.frame(slot, depth);
                    let instance = member.wrapping_add(code.lbs[lb as usize].offset);
                    self.balancers[instance as usize].balancer.cancelled(now, target, 0);
                }
            }
            let outermost = depth == usize::from(limit.depth);
            let at = code.around[pc];
            if at != NOT && !(outermost && at >= limit.end) {
                if let Op::Leave { queue } = code.steps[at as usize].op {
                    self.leave(queue, member, selected, now);
                }
                pc = at as usize + 1;
                continue;
            }
            if outermost {
                return;
            }
            let [back, caller, _] = self.tokens.frame(slot, depth - 1);
            pc = (back & !IDLE) as usize;
            member = caller;
            popped = true;
        }
    }

    /// A request stands in line no longer; nobody served it.
    pub(crate) fn leave_line(&mut self, slot: u32, queue: u32, member: u32, selected: u64, now: u64) {
        let site = &self.code.queues[queue as usize];
        let gauge = &mut self.ledger.gauges[site.gauge.wrapping_add(member & self.code.mask) as usize];
        gauge.waiting = gauge.waiting.wrapping_add(now);
        let part = &mut self.ledger.parts[site.part.wrapping_add(member & self.code.mask) as usize];
        *part = part.wrapping_add(now & selected);
        self.members[member.wrapping_add(site.offset) as usize].queue.abandon(&mut self.links, slot);
    }

    /// A request is cut off on its way in: it has not come to what is behind.
    pub(crate) fn count_cut(&mut self, stage: u32, member: u32, selected: u64) {
        if let Some(offset) = self.code.stages[stage as usize].cuts {
            self.ledger.cuts[member.wrapping_add(offset) as usize] += selected as u32 & 1;
        }
    }

    /// Takes back what was added up for a request that will not come to it: waits, entries, visits.
    fn take_back(&mut self, slot: u32, now: u64) {
        let code = self.code;
        let token = self.tokens.slots[slot as usize];
        let selected = token.mask();
        let stop = (token.pc & !(PARKED | LINE)) as usize;
        if token.pc & PARKED == 0 {
            // In line, or called from it but not yet behind it.
            if let Op::Enter { queue } = code.steps[stop - 1].op {
                self.count_cut(code.queues[queue as usize].stage, token.member, selected);
            }
            return;
        }
        let scope = self.scopes.slots[slot as usize];
        let (mut pc, mut member, mut depth) = (scope.pc as usize, scope.member, usize::from(scope.depth));
        let mut drawn = scope.waits[..usize::from(scope.drawn)].iter();
        let mut passing = Passing { at: scope.since, found: false };
        if let Op::Again { retry } = code.steps[stop].op {
            let site = &code.retries[retry as usize];
            let (part, stage) = (site.part, site.stage);
            self.pass(
                &mut passing,
                drawn.next().copied().unwrap_or(0),
                now,
                (part, stage, member, true),
                selected,
            );
            return;
        }
        while pc != stop || depth != usize::from(token.depth) {
            match code.steps[pc].op {
                Op::Stand { wait } => {
                    let site = code.waits[wait as usize];
                    let at = (site.part, site.stage, member, site.inwards);
                    self.pass(&mut passing, site.ns, now, at, selected);
                    pc += 1;
                }
                Op::StandDrawn { draw } => {
                    let site = &code.draws[draw as usize];
                    let at = (site.part, site.stage, member, site.inwards);
                    if let (true, Some(counter)) = (passing.found, site.visits) {
                        self.tokens.forget_visit(slot, counter);
                    }
                    self.pass(&mut passing, drawn.next().copied().unwrap_or(0), now, at, selected);
                    pc += 1;
                }
                Op::Call { call } => {
                    let site = code.calls[call as usize];
                    let target = code.call_targets[member.wrapping_add(site.offset) as usize];
                    if passing.found {
                        self.members[target.member as usize].entries -= selected as u32 & 1;
                    }
                    depth += 1;
                    pc = target.pc as usize;
                    member = target.member;
                }
                Op::Return => {
                    let [back, caller, _] = self.tokens.frame(slot, depth - 1);
                    let behind = usize::from(back & IDLE != 0 && token.outcome().is_none());
                    pc = (back & !IDLE) as usize + behind;
                    depth -= behind;
                    member = caller;
                }
                Op::Back | Op::Done { .. } => {
                    depth -= 1;
                    pc += 1;
                }
                _ => pc += 1,
            }
        }
    }

    /// Goes past one wait: what of it is still to come is taken back.
    fn pass(&mut self, passing: &mut Passing, ns: u64, now: u64, at: (u32, u32, u32, bool), selected: u64) {
        let (part, stage, member, inwards) = at;
        let end = passing.at.saturating_add(ns);
        if end > now {
            let beyond = (end - passing.at.max(now)) & selected;
            let sum = &mut self.ledger.parts[part.wrapping_add(member & self.code.mask) as usize];
            *sum = sum.wrapping_sub(beyond);
            if !passing.found && inwards {
                self.count_cut(stage, member, selected);
            }
            passing.found = true;
        }
        passing.at = end;
    }
}
