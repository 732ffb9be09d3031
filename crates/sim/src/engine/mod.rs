//! One replication in virtual time: requests run through the code, events in the order of
//! `docs/spec/language.md#order-at-one-instant`.
//!
//! A request runs until it comes to a step that must happen in its turn (because another request could notice it) at
//! a later time than now; then it is scheduled for that time. Waits and stateless choices are run ahead, so
//! consecutive waits are one event. The engine decides nothing: balancers, retries, queues, faults and draws belong
//! to `policy` and `model`.
//!
//! Only the engine and the features touch a running replication; `results` starts one and reads its ledger.

mod arrivals;
mod boundaries;
mod cancellation;
mod cold_ops;
mod core;
mod keys;
pub(crate) mod steps;
mod transitions;

use crate::account::invariants::{Remainder, violations};
use crate::account::ledger::Ledger;
use crate::code::Code;
use crate::code::SlotId;
use crate::code::bounds::{Cut, HORIZON_NS, MOST_AT_ONCE};
use crate::code::changes::{SeenTargets, at_start};
use crate::code::order::{Class, Entry, order_key, ranked};
use crate::state::boundaries::{boundary_after, last_instant};
use crate::state::branches::Branches;
use crate::state::changes::Changes;
use crate::state::clients::Clients;
use crate::state::connections::Connections;
use crate::state::deferred::Deferred;
use crate::state::fault_timelines::Lines;
use crate::state::guards::{COOKIES, Guards};
use crate::state::hops::Hops;
use crate::state::members::Instance;
use crate::state::members::Member;
use crate::state::pending::Pending;
use crate::state::probes::{PROBE, Probes};
use crate::state::processor_sharing::Shares;
use crate::state::request_details::Details;
use crate::state::request_state::RequestStates;
use crate::state::scopes::Scopes;
use crate::state::source::Source;
use crate::state::work_left::WorkLeft;
pub(crate) use core::Core;
use keys::Keys;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::draws::purpose;
use weir_model::faulty::Faulty;
use weir_model::queue::Links;
use weir_model::warmup::Warmup;
use weir_policy::config::Balance;
use weir_policy::gate::Gate;
use weir_policy::rate::RateLimit;
use weir_policy::sticky::Jar;
use weir_policy::{Balancer, budget};
use weir_stats::Key;
use weir_workload::Load;

/// What a test breaks, to see the self-check that guards it fire.
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

/// The number of requests (and of attempts: [`PATIENCE`]) after which their entries are carried over: each may have
/// entered one member two thousand times by then.
const CARRIED: u64 = if cfg!(test) { 8 } else { 1 << 20 };

/// Later events are scheduled here, and never run.
pub(crate) const END_OF_TIME: u64 = u64::MAX - 1;
/// The stop flag is read when these bits of the number of events are zero.
pub(crate) const PATIENCE: u64 = (1 << 16) - 1;

/// The kind of an event: the upper three bits of [`Entry::who`]; below them is the index of what it concerns.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(crate) enum Event {
    /// A request's next step, or the arrival of one.
    Step,
    /// A server that shares its cores may have finished a request.
    Tick,
    /// A limit ends.
    Limit,
    /// A timeline flips.
    Flip,
    /// A hold ends.
    Hold,
    /// A balancer may change by itself.
    Watch,
    /// Health checks begin, or a probe is due.
    Checks,
    /// A user sends a request.
    Think,
}

impl Event {
    const SHIFT: u32 = 29;

    /// What [`Entry::who`] is for an event of this kind.
    #[inline(always)]
    pub(crate) const fn who(self, index: u32) -> u32 {
        (self as u32) << Event::SHIFT | index
    }

    /// Whether an event is a request's.
    #[inline(always)]
    pub(crate) const fn is_step(who: u32) -> bool {
        who < 1 << Event::SHIFT
    }

    /// The index of what an event concerns.
    #[inline(always)]
    pub(crate) const fn index(who: u32) -> u32 {
        who & ((1 << Event::SHIFT) - 1)
    }

    #[inline(always)]
    pub(crate) const fn from_who(who: u32) -> Event {
        match who >> Event::SHIFT {
            0 => Event::Step,
            1 => Event::Tick,
            2 => Event::Limit,
            3 => Event::Flip,
            4 => Event::Hold,
            5 => Event::Watch,
            6 => Event::Checks,
            _ => Event::Think,
        }
    }
}

/// One replication.
pub(crate) struct Engine<'a> {
    pub(crate) core: Core<'a>,
    pub(crate) features: FeatureStates,
}

/// The state of the features, each touched by its own file.
pub(crate) struct FeatureStates {
    pub(crate) clients: Clients,
    pub(crate) branches: Branches,
    pub(crate) shares: Shares,
    pub(crate) details: Details,
    pub(crate) guards: Guards,
    /// The cookies of clients.
    pub(crate) jar: Jar,
    pub(crate) work_left: WorkLeft,
    pub(crate) probes: Probes,
    pub(crate) hops: Hops,
    /// The keys of splits without a request key.
    pub(crate) choices: Vec<Key>,
    pub(crate) warmups: Vec<Warmup>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) lines: Lines,
    /// Connections to servers, where they are simulated.
    pub(crate) connections: Option<Box<Connections>>,
    /// The members of fleets that change.
    pub(crate) changes: Changes,
    /// Consecutive events that no request waited for.
    pub(crate) alone: u64,
}

/// The balancers of each loop; those with a guard pick elsewhere.
fn balancers(code: &Code, keys: &Keys<'_>) -> Vec<Instance> {
    let balancer = |(meets, number, i): (u32, u32, &crate::code::Instance)| {
        let (own, picks) = keys.balancer(meets, i);
        let site = &code.lbs[i.lb as usize];
        let weights = &code.weights[i.list as usize];
        let changes = code.changes.as_deref();
        let balancer = match site.guard {
            None => Balancer::new(&site.balance, &weights[..at_start(changes, number, weights.len())], own),
            Some(_) => Balancer::new(&Balance::Random, &[], own),
        };
        let view = changes.and_then(|changes| changes.of_instance(number)).filter(|_| site.guard.is_none());
        Instance {
            balancer,
            picks,
            targets: code.lists[i.list as usize],
            seen: view.map(|view| Box::new(SeenTargets::new(view, weights.len()))),
            deferred: Deferred::default(),
        }
    };
    let all = (0..code.loops)
        .flat_map(|meets| code.instances.iter().zip(0..).map(move |(i, number)| (meets, number, i)));
    all.map(balancer).collect()
}

fn faults(code: &Code, keys: &Keys) -> Vec<Faulty> {
    let fault = |&(fault, at, number): &(u32, u32, u32)| {
        Faulty::new(&code.faults[fault as usize].law, keys.node_at(at, number))
    };
    code.fault_nodes.iter().map(fault).collect()
}

impl<'a> Engine<'a> {
    /// `key` is the replication's.
    pub fn new(code: &'a Code, load: Load, key: Key, stop: &'a AtomicBool) -> Engine<'a> {
        let keys = Keys::new(code, key);
        let (from, to) = load.ordinals();
        let features = FeatureStates {
            clients: Clients::new(&load),
            branches: Branches::default(),
            shares: Shares::new(code),
            details: Details::default(),
            guards: Guards::new(code, |meets, i| keys.balancer(meets, i)),
            jar: Jar::new(COOKIES),
            probes: Probes::default(),
            work_left: WorkLeft::new(code, |lb| code.lbs[lb as usize].balance == Balance::LeastWork),
            hops: Hops::new(!code.hops.is_empty()),
            choices: code.kinds.nodes.iter().map(|&(_, at, number)| keys.choice_at(at, number)).collect(),
            warmups: vec![Warmup::default(); code.warmup_count as usize],
            gates: code.gates.open(),
            lines: Lines::new(code, key),
            connections: Connections::new(code),
            changes: Changes::new(code, key),
            alone: 0,
        };
        let source = Source::new(load);
        let first_boundary = boundary_after(code, &source, 0);
        let first_mark = HORIZON_NS.min(last_instant(&source, first_boundary));
        let core = Core {
            code,
            source,
            pending: Pending::new(),
            states: RequestStates::new(code),
            scopes: Scopes::new(code),
            excluded: Vec::new(),
            members: vec![Member::default(); code.queue_count as usize],
            links: Links::default(),
            balancers: balancers(code, &keys),
            backoffs: code.retry_nodes.iter().map(|&(at, number)| keys.choice_at(at, number)).collect(),
            budgets: code.budgets.iter().map(|b| budget::Tokens::new(b, 0)).collect(),
            rates: code.rates.iter().map(RateLimit::new).collect(),
            faults: faults(code, &keys),
            entered: Vec::new(),
            holds: Vec::new(),
            spare_holds: Vec::new(),
            draw_keys: code.draw_keys.iter().map(|&(purpose, at)| keys.draw(purpose, at)).collect(),
            request_key: key.with(purpose::REQUEST),
            issued: 0,
            half: from + (to - from) / 2,
            passed: 0,
            mark: first_mark,
            boundary: first_boundary,
            turn: (0, 0),
            class_key: 0,
            over: false,
            stop,
            attempts: 0,
            stopped: false,
            cut: None,
            beyond_horizon: false,
            ledger: Ledger::new(code),
            #[cfg(test)]
            sabotage: None,
        };
        Engine { core, features }
    }

    /// Runs all requests to their end, unless it is stopped or exceeds the time that can be counted.
    #[inline(never)]
    pub fn run(&mut self) -> Result<(), Cut> {
        self.schedule_changes();
        self.schedule_flips();
        self.schedule_checks();
        self.schedule_first_arrivals();
        let mut now = 0;
        while !(self.core.over && self.core.states.is_empty())
            && let Some((event, is_arrival)) = self.core.pending.next()
        {
            #[cfg(test)]
            if self.breaks(Sabotage::TurnClockBack) {
                now += 1_000_000_000;
            }
            self.core.ledger.events += 1;
            if self.core.ledger.events & PATIENCE == 0 {
                self.check_limits()?;
            }
            let passes = event.at > self.core.mark;
            if passes && event.at > HORIZON_NS {
                if Engine::never_ends(&event) {
                    continue;
                }
                return Err(Cut::TooLong);
            }
            if event.at < now {
                self.core.ledger.time_went_back = true;
            }
            now = event.at;
            // A woken request may have a lower key than the event that woke it; the effects of that event precede it.
            let key = if self.core.turn.0 == now { self.core.turn.1.max(event.key) } else { event.key };
            self.core.turn = (now, key);
            self.core.class_key = event.class_key();
            if passes {
                self.pass_marks(now);
            }
            self.core.prefetch_state();
            if is_arrival {
                self.core.prefetch_member();
                self.arrive(event);
            } else if !Event::is_step(event.who) {
                self.no_step(event, now);
            } else if self.core.states.slots[event.who as usize].tag == event.tag {
                self.go_on(SlotId(event.who), now, now, event.after_faults());
            }
            if self.features.branches.then.is_some() {
                self.go_on_then(now, event.after_faults());
            }
            if !self.features.changes.draining.is_empty() {
                self.look_at_processes(now);
            }
        }
        self.finish(now)
    }

    /// Whether it must end: it was stopped, or exceeds what memory has room for.
    #[cold]
    fn check_limits(&self) -> Result<(), Cut> {
        if self.core.stop.load(Ordering::Relaxed) {
            return Err(Cut::Stopped);
        }
        if let Some(cut) = self.core.cut {
            return Err(cut);
        }
        // An event adds one request at most.
        if self.core.states.slots.len() > MOST_AT_ONCE { Err(Cut::TooMany) } else { Ok(()) }
    }

    /// Sums up once no event is left.
    fn finish(&mut self, mut now_ns: u64) -> Result<(), Cut> {
        if self.core.stopped {
            return Err(Cut::Stopped);
        }
        if let Some(cut) = self.core.cut {
            return Err(cut);
        }
        if self.core.beyond_horizon {
            return Err(Cut::TooLong);
        }
        let loses = self.core.code.loses && !self.core.states.is_empty();
        self.finish_boundaries();
        if let Some(of) = self.features.connections.as_deref_mut() {
            of.end_run();
        }
        if loses {
            now_ns = self.give_up();
        }
        self.end_checks(now_ns);
        self.finish_marks(now_ns, loses);
        self.finish_connections(now_ns);
        self.core.ledger.end(self.core.states.slots.len(), now_ns);
        self.carry_entries();
        self.core.ledger.entries = self.core.entered.iter().map(|n| *n as u64).collect();
        Ok(())
    }

    /// Keeps what was counted of connections.
    fn finish_connections(&mut self, now_ns: u64) {
        if let Some(of) = self.features.connections.as_deref_mut() {
            self.core.ledger.connections = Some(Box::new(of.totals(now_ns)));
        }
    }

    /// Carries entries of members over: they are counted in few bytes, which could overflow.
    #[cold]
    pub(crate) fn carry_entries(&mut self) {
        let members = &mut self.core.members[..self.core.code.members as usize];
        self.core.entered.resize(members.len(), 0);
        for (sum, member) in self.core.entered.iter_mut().zip(members) {
            *sum += i64::from(std::mem::take(&mut member.entries));
        }
    }

    /// An event that is not a request's step.
    fn no_step(&mut self, event: Entry, now_ns: u64) {
        let index = Event::index(event.who);
        match Event::from_who(event.who) {
            Event::Hold => self.end_hold(index, now_ns),
            Event::Limit => self.strike(index, event.tag, now_ns),
            Event::Flip | Event::Watch | Event::Checks if !self.goes_on_alone() => {}
            Event::Flip => match index.checked_sub(self.features.lines.state.len() as u32) {
                None => self.flip(index, now_ns),
                Some(change) => self.change(change, now_ns),
            },
            Event::Watch => self.look_at_guard(index, now_ns),
            Event::Checks if event.tag == PROBE => self.probe_is_due(index, now_ns),
            Event::Checks => self.begin_checks(index, now_ns),
            Event::Think => self.user_sends(index, now_ns),
            Event::Tick => self.tick(index, event.tag, now_ns),
            // A request took its step in `run`.
            Event::Step => {}
        }
    }

    /// The time between the window's first and last arrival, ns.
    pub fn window_ns(&self) -> u64 {
        self.core.source.window[1].saturating_sub(self.core.source.window[0])
    }

    /// The laws that the finished replication breaks.
    pub fn violations(&mut self, requests: Option<u64>, selected: Option<u64>) -> Vec<String> {
        let mut open = vec![true; self.core.holds.len()];
        self.core.spare_holds.iter().for_each(|&spare| open[spare as usize] = false);
        for index in (0..self.core.holds.len() as u32).filter(|&index| open[index as usize]) {
            self.end_hold(index, self.core.turn.0);
        }
        let plain = self.core.faults.iter().map(|f| f.flips().div_ceil(2)).sum::<u64>();
        self.core.ledger.outages = plain + self.features.lines.outages(&self.core.code.lines.lines);
        self.core.ledger.ejections = self.features.guards.ejections();
        self.core.ledger.attendance = std::mem::take(&mut self.features.changes.attendance);
        self.core.ledger.delays = std::mem::take(&mut self.features.changes.delays);
        let acts = &mut self.features.changes.acts;
        self.core.ledger.aside.iter_mut().for_each(|aside| aside.take_acts(acts));
        let (at_balancers, in_queues) = (self.left_at_balancers(), self.left_in_queues());
        let on_connections = self.features.connections.as_deref().map_or(0, |of| of.pools.requests());
        let left = Remainder { at_balancers, in_queues, on_connections, on_the_way: self.core.states.live() };
        violations(self.core.code, &self.core.ledger, &left, requests, selected, self.core.code.loses)
    }

    /// Requests that balancers still count, once all deferred returns are processed.
    fn left_at_balancers(&mut self) -> u64 {
        let end = (u64::MAX, u64::MAX);
        for lb in &mut self.core.balancers {
            lb.take_returns(end);
        }
        self.core.balancers.iter().map(|lb| lb.balancer.total_in_flight()).sum::<u64>()
            + self.features.guards.left()
    }

    /// Breaks something, for a test of the self-checks.
    #[cfg(test)]
    pub fn sabotage(&mut self, what: Option<Sabotage>) {
        self.core.sabotage = what;
    }

    /// Whether this is the time to break that.
    #[cfg(test)]
    pub(crate) fn breaks(&self, what: Sabotage) -> bool {
        self.core.sabotage == Some(what) && self.core.issued >= 100
    }

    /// Slots still taken and requests still waiting at any queue.
    fn left_in_queues(&self) -> u64 {
        let queues =
            self.core.members.iter().map(|m| u64::from(m.queue.inside()) + u64::from(m.queue.waiting()));
        queues.sum::<u64>() + self.features.shares.left()
    }
}

/// The order of a request's steps.
#[inline]
pub(crate) fn step_key(ordinal: u64) -> u64 {
    ranked(order_key(Class::Step, ordinal), 1)
}
