//! A balancer as one event loop sees it: it picks for requests and receives their outcomes.
//!
//! What a pick leaves out, hardest first: targets that may not be picked at all (health, weight; the balancer knows),
//! targets that are full or already tried on probation, targets that are passed over since a connection failed,
//! targets that the request excludes. The last two yield if no other is left, exclusion first.
//!
//! A loop that prefers a subset of the targets looks for one in the whole subset first, in the next one then, and only
//! if there is none in any it lets a rule yield ([`Preference`]).
//!
//! With nothing around it a pick costs one flag more than the balancer's own.

use super::preference::Preference;
use super::{PickOutcome, Ticket, Upstream};
use crate::balance::Ask;
use crate::balance::Balancer;
use crate::upstream::passed_over::PassedOver;
use crate::{Kind, Outcome, Release, TargetId};

/// The state of each loop.
#[derive(Clone, Debug)]
pub(super) struct PerLoop {
    pub balancer: Balancer,
    /// Nothing is left out and nothing counted: the balancer alone decides.
    pub plain: bool,
    pub passed_over: PassedOver,
    /// The subset that it prefers; mostly there is none.
    pub preference: Option<Box<Preference>>,
}

impl PerLoop {
    pub fn new(balancer: Balancer, passed_over: PassedOver) -> PerLoop {
        PerLoop { balancer, plain: false, passed_over, preference: None }
    }
}

/// All loops. There is nearly always one, so it is stored beside the process's state.
#[derive(Clone, Debug)]
pub(super) struct Loops {
    pub first: PerLoop,
    pub others: Vec<PerLoop>,
}

impl Loops {
    #[inline]
    pub fn get(&mut self, on: u32) -> &mut PerLoop {
        match on {
            0 => &mut self.first,
            _ => &mut self.others[on as usize - 1],
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &PerLoop> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut PerLoop> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}

/// A balancer on one of its loops.
#[derive(Debug)]
pub struct OnLoop<'a> {
    process: &'a mut Upstream,
    on: u32,
}

impl<'a> OnLoop<'a> {
    #[inline]
    pub(super) fn new(process: &'a mut Upstream, on: u32) -> OnLoop<'a> {
        OnLoop { process, on }
    }

    #[inline]
    fn own(&mut self) -> &mut PerLoop {
        self.process.loops.get(self.on)
    }

    /// The balancer itself.
    pub fn balancer(self) -> &'a mut Balancer {
        &mut self.process.loops.get(self.on).balancer
    }

    /// Picks a target for a request and counts it.
    #[inline]
    pub fn pick(mut self, ask: &Ask) -> PickOutcome {
        let own = self.own();
        if own.plain && ask.sticky.is_none() {
            return match own.balancer.ask(ask) {
                Some(target) => {
                    PickOutcome::Target(Ticket { target, probe: false, met: 0, at_ns: ask.now_ns })
                }
                None => PickOutcome::Empty,
            };
        }
        self.pick_among(ask)
    }

    #[inline(never)]
    fn pick_among(mut self, ask: &Ask) -> PickOutcome {
        if self.process.has_all_loops() {
            self.process.see_others(ask.now_ns, |_| {});
        }
        let target = match self.stick(ask) {
            Some(target) => Some(target),
            None => self.choose(ask),
        };
        match target {
            Some(target) => {
                self.process.picked_shared(target);
                PickOutcome::Target(self.process.sent(ask, target))
            }
            None if self.anyone_full() => PickOutcome::Full,
            None => PickOutcome::Empty,
        }
    }

    /// The target that the request should return to, if it may be picked.
    fn stick(&mut self, ask: &Ask) -> Option<TargetId> {
        let target = ask.sticky?;
        let barred = self.process.full.has(target.0) || self.process.probing.has(target.0);
        let own = self.own();
        let out = barred || own.passed_over.targets().has(target.0) || ask.exclude.contains(&target);
        (own.balancer.roster().is_open(target) && !out).then(|| {
            own.balancer.take(target);
            if let Some(preference) = &mut own.preference {
                preference.note(target);
            }
            target
        })
    }

    fn choose(&mut self, ask: &Ask) -> Option<TargetId> {
        let Upstream { loops, full, probing, .. } = &mut *self.process;
        let PerLoop { balancer, passed_over, preference, .. } = loops.get(self.on);
        let over = passed_over.targets();
        let (hard, soft) = (!full.is_empty() || !probing.is_empty(), !over.is_empty());
        let target = if !hard && !soft && (preference.is_none() || ask.exclude.is_empty()) {
            balancer.ask(ask)
        } else {
            let rules = [(true, true), (true, false), (false, true), (false, false)];
            let rules = rules.iter().filter(|rule| (!rule.0 || soft) && (!rule.1 || !ask.exclude.is_empty()));
            rules.copied().find_map(|(passed, excluded)| {
                let barred = |t: TargetId| {
                    let out = full.has(t.0) || probing.has(t.0) || passed && over.has(t.0);
                    out || excluded && ask.exclude.contains(&t)
                };
                let target = balancer.ask_where(ask, barred);
                target.or_else(|| preference.as_mut()?.borrow(balancer, ask, barred))
            })
        };
        if let (Some(preference), Some(target)) = (preference, target) {
            preference.note(target);
        }
        target
    }

    fn anyone_full(&mut self) -> bool {
        let Upstream { loops, full, .. } = &mut *self.process;
        let roster = loops.get(self.on).balancer.roster();
        full.iter().any(|t| roster.is_open(TargetId(t)))
    }

    /// Notes the end of a request, with the status of its answer, if there was one.
    #[inline]
    pub fn done(mut self, now_ns: u64, ticket: Ticket, outcome: Outcome, status: Option<u16>) -> Release {
        if self.process.simple && outcome != Some(Kind::ConnectFailed) {
            return self.own().balancer.done(ticket.target, outcome);
        }
        self.done_fully(now_ns, ticket, outcome, status, false)
    }

    /// Notes the end of a request at a target that was reached: a connection error is one behind that target. It
    /// counts as every error does, and is not a reason to pass the target over.
    pub fn relayed(self, now_ns: u64, ticket: Ticket, outcome: Outcome, status: Option<u16>) -> Release {
        self.done_fully(now_ns, ticket, outcome, status, true)
    }

    #[inline(never)]
    fn done_fully(
        mut self,
        now_ns: u64,
        ticket: Ticket,
        outcome: Outcome,
        status: Option<u16>,
        reached: bool,
    ) -> Release {
        let (target, measures, on) = (ticket.target, self.process.measures, self.on);
        let release = self.process.counting(on, target, now_ns, |process| {
            let balancer = &mut process.loops.get(on).balancer;
            if measures {
                balancer.finished(now_ns, target, now_ns.saturating_sub(ticket.at_ns), outcome)
            } else {
                balancer.done(target, outcome)
            }
        });
        self.process.came_back(target);
        self.process.heard(now_ns, ticket, outcome, status);
        let unreached = outcome == Some(Kind::ConnectFailed) && !reached;
        let n = self.process.full.len();
        if unreached && self.own().passed_over.failed(now_ns, target, n) {
            self.process.simplify();
        }
        release
    }

    /// Notes the load that a target reports in an answer, for policies that use it.
    pub fn loaded(mut self, now_ns: u64, target: TargetId, load: f32) {
        self.own().balancer.loaded(now_ns, target, load);
    }

    /// Notes that a request was cancelled: its outcome is unknown.
    pub fn cancelled(mut self, now_ns: u64, ticket: Ticket) {
        self.cut_off(now_ns, ticket, Balancer::cancelled);
        self.process.heard_nothing(ticket);
    }

    /// Notes that a `timeout` around the balancer cut a request off. To most policies it is like any that was cancelled; to
    /// the health of its target it is an error, since a target that never answers gives no other.
    pub fn timed_out(mut self, now_ns: u64, ticket: Ticket) {
        self.cut_off(now_ns, ticket, Balancer::timed_out);
        self.process.heard(now_ns, ticket, Some(Kind::Timeout), None);
    }

    fn cut_off(&mut self, now_ns: u64, ticket: Ticket, note: fn(&mut Balancer, u64, TargetId, u64)) {
        let (took, on) = (now_ns.saturating_sub(ticket.at_ns), self.on);
        self.process.counting(on, ticket.target, now_ns, |process| {
            note(&mut process.loops.get(on).balancer, now_ns, ticket.target, took);
        });
        self.process.came_back(ticket.target);
    }

    /// Ends a count that was held ([`Release::After`]).
    pub fn release(self, now_ns: u64, target: TargetId) {
        let on = self.on;
        self.process.counting(on, target, now_ns, |process| process.loops.get(on).balancer.release(target));
    }

    /// Undoes a pick whose last slot another request took first.
    pub fn give_up(self, ticket: Ticket) {
        let (on, target) = (self.on, ticket.target);
        self.process
            .counting(on, target, ticket.at_ns, |process| process.loops.get(on).balancer.release(target));
        self.process.came_back(target);
    }
}

/// The process's record of a request's outcome.
impl Upstream {
    fn sent(&mut self, ask: &Ask, target: TargetId) -> Ticket {
        let probe = self.health.listens() && self.health.picked(target);
        if probe {
            self.probing.set(target.0, true);
        }
        let limit = self.limit(target);
        if let Some(count) = self.counts.get_mut(target.index()) {
            *count += 1;
            if *count >= limit {
                self.full.set(target.0, true);
            }
        }
        Ticket { target, probe, met: 0, at_ns: ask.now_ns }
    }

    fn heard(&mut self, now_ns: u64, ticket: Ticket, outcome: Outcome, status: Option<u16>) {
        let target = ticket.target;
        if self.health.listens() && self.health.outcome(now_ns, target, ticket.probe, outcome, status) {
            self.look(now_ns);
        }
        if ticket.probe {
            self.probing.set(target.0, false);
            self.simplify();
        }
    }

    fn heard_nothing(&mut self, ticket: Ticket) {
        if ticket.probe {
            self.health.probe_ended(ticket.target);
            self.probing.set(ticket.target.0, false);
            self.simplify();
        }
    }

    #[inline]
    fn came_back(&mut self, target: TargetId) {
        let limit = self.limit(target);
        if let Some(count) = self.counts.get_mut(target.index()) {
            debug_assert!(*count > 0, "a target with nothing in flight got a request back");
            *count = count.saturating_sub(1);
            if *count < limit {
                self.full.set(target.0, false);
            }
        }
    }
}
