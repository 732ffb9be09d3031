//! What every replication has, and the doors by which a feature touches it.

use crate::account::ledger::Ledger;
use crate::code::Code;
use crate::code::QueueSite;
use crate::code::bounds::Cut;
use crate::code::order::Entry;
use crate::code::{MemberId, SlotId};
use crate::engine::Event;
#[cfg(test)]
use crate::engine::Sabotage;
use crate::state::members::{Instance, Member};
use crate::state::meter::Gauge;
use crate::state::pending::Pending;
use crate::state::request_state::{RequestState, RequestStates};
use crate::state::scopes::{Scope, Scopes};
use crate::state::source::Source;
use std::sync::atomic::AtomicBool;
use weir_memory::prefetch;
use weir_model::faulty::Faulty;
use weir_model::queue::{Entry as QueueEntry, Links, Queue};
use weir_policy::TargetId;
use weir_policy::budget;
use weir_policy::rate::RateLimit;
use weir_policy::retry::BalancerId;
use weir_stats::Key;

/// The most members that fit into a core's cache.
const CACHED_MEMBERS: usize = 1 << 12;

/// What every replication has.
pub(crate) struct Core<'a> {
    pub(super) code: &'a Code,
    pub(super) source: Source,
    pub(super) pending: Pending,
    pub(super) states: RequestStates,
    pub(super) scopes: Scopes,
    pub(super) excluded: Vec<TargetId>,
    /// By member; behind them further queues of their blocks.
    pub(super) members: Vec<Member>,
    pub(super) links: Links,
    pub(super) balancers: Vec<Instance>,
    /// The keys of each retry's backoffs, and its budgets.
    pub(super) backoffs: Vec<Key>,
    pub(super) budgets: Vec<budget::Tokens>,
    pub(super) rates: Vec<RateLimit>,
    pub(super) faults: Vec<Faulty>,
    /// By member: entries of selected requests that were carried over.
    pub(super) entered: Vec<i64>,
    pub(super) holds: Vec<(u32, TargetId)>,
    pub(super) spare_holds: Vec<u32>,
    pub(super) draw_keys: Vec<Key>,
    pub(super) request_key: Key,
    pub(super) issued: u64,
    /// Ordinal at which the second half of the window begins.
    pub(super) half: u64,
    /// How many of the window's two instants the clock has passed.
    pub(super) passed: usize,
    /// The next of them, once known, or the end of the time that is counted.
    pub(super) mark: u64,
    /// When the next part of the run ends at which something is counted; the end of time, if nothing is.
    pub(super) boundary: u64,
    /// Time and order of the current event, and its class alone.
    pub(super) turn: (u64, u64),
    pub(super) class_key: u64,
    /// Whether no more requests arrive.
    pub(super) over: bool,
    pub(super) stop: &'a AtomicBool,
    /// Further attempts so far, and whether the run was stopped among them.
    pub(super) attempts: u64,
    pub(super) stopped: bool,
    /// Why the run must end early.
    pub(super) cut: Option<Cut>,
    /// Whether a request ended beyond the time that is counted.
    pub(super) beyond_horizon: bool,
    pub(super) ledger: Ledger,
    #[cfg(test)]
    pub(super) sabotage: Option<Sabotage>,
}

/// What the next event at a drawn time needs: with many requests in flight it is in no cache.
impl Core<'_> {
    /// Begins to load the state of its request.
    #[inline(always)]
    pub(super) fn prefetch_state(&self) {
        if let Some(state) = self.states.slots.get(self.pending.next_drawn() as usize) {
            prefetch(state);
        }
    }

    /// Begins to load the member that its request is at. Reads the state, which the event before has usually asked for.
    #[inline(always)]
    pub(super) fn prefetch_member(&self) {
        if self.members.len() > CACHED_MEMBERS
            && let Some(state) = self.states.slots.get(self.pending.next_drawn() as usize)
            && let Some(member) = self.members.get(state.member.index())
        {
            prefetch(member);
        }
    }
}

/// What a feature may touch of a replication.
impl<'a> Core<'a> {
    /// The compiled scenario.
    #[inline(always)]
    pub(crate) fn code(&self) -> &'a Code {
        self.code
    }

    /// A request.
    #[inline(always)]
    pub(crate) fn state(&self, slot: SlotId) -> &RequestState {
        &self.states.slots[slot.index()]
    }

    /// A request, to change it.
    #[inline(always)]
    pub(crate) fn state_mut(&mut self, slot: SlotId) -> &mut RequestState {
        &mut self.states.slots[slot.index()]
    }

    /// A balancer with nothing around it, on one loop.
    #[inline(always)]
    pub(crate) fn balancer(&self, instance: u32) -> &Instance {
        &self.balancers[instance as usize]
    }

    /// The same on each loop; `first`: its number on the first one.
    pub(crate) fn on_each_loop(&mut self, first: u32) -> impl Iterator<Item = &mut Instance> {
        self.balancers.iter_mut().skip(first as usize).step_by(self.code.instances.len().max(1))
    }

    /// All requests: their frames, attempts and visits.
    #[inline(always)]
    pub(crate) fn states(&self) -> &RequestStates {
        &self.states
    }

    /// The same, to change them.
    #[inline(always)]
    pub(crate) fn states_mut(&mut self) -> &mut RequestStates {
        &mut self.states
    }

    /// The limits and waits that a request is in.
    #[inline(always)]
    pub(crate) fn scope(&self, slot: SlotId) -> &Scope {
        &self.scopes.slots[slot.index()]
    }

    /// The same, to change them.
    #[inline(always)]
    pub(crate) fn scope_mut(&mut self, slot: SlotId) -> &mut Scope {
        &mut self.scopes.slots[slot.index()]
    }

    /// Those of all requests.
    #[inline(always)]
    pub(crate) fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The same, to change them.
    #[inline(always)]
    pub(crate) fn scopes_mut(&mut self) -> &mut Scopes {
        &mut self.scopes
    }

    /// What is added up.
    #[inline(always)]
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The same, to add to it.
    #[inline(always)]
    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Schedules an event.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, now_ns: u64, event: Entry) {
        self.pending.push(now_ns, event);
    }

    /// Schedules the end of a limit of this length; those of requests that are over may be dropped meanwhile.
    pub(crate) fn schedule_limit(&mut self, ns: u64, event: Entry) {
        let (scopes, slots) = (&self.scopes, &self.states.slots);
        let is_over = |e: &Entry| match Event::from_who(e.who) {
            Event::Step => slots[e.who as usize].tag != e.tag,
            Event::Limit => scopes.is_over(Event::index(e.who), e.tag),
            Event::Tick | Event::Flip | Event::Hold | Event::Watch | Event::Checks | Event::Think => false,
        };
        self.pending.push_limit(ns, event, is_over);
    }

    /// Drops all events: nothing happens any more.
    pub(crate) fn drop_events(&mut self) {
        self.pending = Pending::new();
    }

    /// The run ends as soon as it can, for this reason.
    pub(crate) fn cut_off(&mut self, why: Cut) {
        self.cut = Some(why);
    }

    /// Why the run must end early, if it must.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// Time and order of the current event.
    #[inline(always)]
    pub(crate) fn turn(&self) -> (u64, u64) {
        self.turn
    }

    /// The class of the current event.
    #[inline(always)]
    pub(crate) fn class_key(&self) -> u64 {
        self.class_key
    }

    /// Counts entries of a member.
    #[inline(always)]
    pub(crate) fn count_entries(&mut self, member: MemberId, entries: i32) {
        self.members[member.index()].entries += entries;
    }

    /// The lines of queues.
    #[inline(always)]
    pub(crate) fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    /// The traffic, and the window of requests that count.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The same, to change the window.
    pub(crate) fn source_mut(&mut self) -> &mut Source {
        &mut self.source
    }

    /// Targets that a pick leaves out.
    pub(crate) fn excluded(&self) -> &[TargetId] {
        &self.excluded
    }

    /// The same, to collect them.
    pub(crate) fn excluded_mut(&mut self) -> &mut Vec<TargetId> {
        &mut self.excluded
    }

    /// A request and its limits, to change both.
    #[inline(always)]
    pub(crate) fn state_and_scope_mut(&mut self, slot: SlotId) -> (&mut RequestState, &mut Scope) {
        (&mut self.states.slots[slot.index()], &mut self.scopes.slots[slot.index()])
    }

    /// The times that a request has noted, and where they are added.
    pub(crate) fn notes_and_ledger_mut(&mut self, slot: SlotId) -> (&mut Vec<(u32, u64)>, &mut Ledger) {
        (&mut self.scopes.notes[slot.index()], &mut self.ledger)
    }

    /// The limits of a timeline that requests are in.
    pub(crate) fn inside(&mut self, line: u32) -> Vec<(u64, u32, u32, u32)> {
        let slots = &self.states.slots;
        self.scopes.inside(line, |slot| slots[slot.index()].ordinal)
    }

    /// The queue of a member.
    pub(crate) fn queue(&self, index: usize) -> &Queue {
        &self.members[index].queue
    }

    /// Whether a request is inside of a queue now. One that entered ahead of time is not yet.
    pub(crate) fn has_inside(&self, site: &QueueSite, member: MemberId, now_ns: u64) -> bool {
        let Member { queue, since, .. } = &self.members[member.index_from(site.offset)];
        !(queue.is_idle() || site.ahead && *since > now_ns)
    }

    /// Enters a queue; also how many wait there then.
    pub(crate) fn enter_queue(
        &mut self,
        slot: SlotId,
        site: &QueueSite,
        member: MemberId,
    ) -> (QueueEntry, u32) {
        let at = &mut self.members[member.index_from(site.offset)];
        let entry = at.queue.enter(site.limits, &mut self.links, slot.0);
        (entry, at.queue.waiting())
    }

    /// What is counted of a queue's slots and its line.
    pub(crate) fn gauge_mut(&mut self, gauge: u32, member: MemberId) -> &mut Gauge {
        &mut self.ledger.gauges[self.code.row(gauge, member)]
    }

    /// A node that is up and down.
    pub(crate) fn fault_mut(&mut self, index: u32) -> &mut Faulty {
        &mut self.faults[index as usize]
    }

    /// The tokens of a budget.
    pub(crate) fn budget_mut(&mut self, index: u32) -> &mut budget::Tokens {
        &mut self.budgets[index as usize]
    }

    /// The key of what requests draw at a place.
    #[inline(always)]
    pub(crate) fn draw_key(&self, index: u32) -> Key {
        self.draw_keys[index as usize]
    }

    /// The root of what requests draw themselves.
    pub(crate) fn request_key(&self) -> Key {
        self.request_key
    }

    /// The number of requests that have arrived.
    pub(crate) fn issued(&self) -> u64 {
        self.issued
    }

    /// Whether no more requests arrive.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Sets whether no more requests arrive.
    pub(crate) fn set_over(&mut self, over: bool) {
        self.over = over;
    }

    /// All ends are counted in the first half; which belong to the second is known later.
    pub(crate) fn count_halves_later(&mut self) {
        self.half = u64::MAX;
    }

    /// How many of the window's two instants have passed.
    pub(crate) fn marks_passed(&self) -> usize {
        self.passed
    }

    /// One of them passes.
    pub(crate) fn pass_mark(&mut self) {
        self.passed += 1;
    }

    /// Leaves out the targets that the attempts of a retry have tried.
    pub(crate) fn exclude_tried(&mut self, list: SlotId, own: BalancerId) {
        self.states.tried[list.index()].add_to(own, &mut self.excluded);
    }

    /// What was added up, at the end.
    pub(crate) fn into_ledger(self) -> Ledger {
        self.ledger
    }
}
