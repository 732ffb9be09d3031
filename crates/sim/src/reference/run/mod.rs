//! One replication in the reference: branches run through the nodes, events in the order of
//! `docs/spec/language.md#order-at-one-instant`.
//!
//! A branch runs until it must wait; then an event is scheduled that wakes it. The behaviour of nodes is in `nodes`,
//! `servers`, `faults` and `group`; decisions (targets, attempts, factors, periods) are made in `policy` and `model`.

mod begin;
mod books;
mod boundaries;
mod moves;

use super::balance::Instance;
use super::branch::{Branch, Branches, Phase};
use super::build::{NONE, Tables};
use super::clients::Clients;
use super::faults::Cells;
use super::servers::Server;
use crate::account::ledger::Ledger;
use crate::code::Code;
use crate::code::bounds::{Cut, HORIZON_NS, MOST_AT_ONCE};
use crate::code::order::{Class, Entry, order_key, ranked};
use crate::code::{MemberId, SlotId};
use crate::state::changes::Changes;
use crate::state::connections::Connections;
use crate::state::meter::Meter;
use crate::state::pending::Pending;
use crate::state::probes::Probes;
use crate::state::work_left::WorkLeft;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::concurrent::Jobs;
use weir_model::faulty::Faulty;
use weir_model::pause::ProcessClock;
use weir_model::queue::{Links, Queue};
use weir_model::warmup::Warmup;
use weir_policy::budget::Tokens;
use weir_policy::gate::Gate;
use weir_policy::prequal::Busy;
use weir_policy::rate::RateLimit;
use weir_policy::sticky::Jar;
use weir_policy::{Kind, TargetId};
use weir_stats::Key;

/// What a test breaks, to see the self-check that guards it fire.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sabotage {
    LoseBranch,
    LeakSlot,
    LeakCount,
    KeepChild,
    ForgetTime,
    ForgetBehind,
    StretchLatency,
    SkipRecord,
    TurnClockBack,
}

/// Later events are scheduled here, and never run.
const END_OF_TIME: u64 = u64::MAX - 1;
/// The most health checks and flips in a row that a request may wait behind.
const MOST_UNASKED: u64 = 10_000;
/// The stop flag is read when these bits of the number of events are zero.
const PATIENCE: u64 = (1 << 16) - 1;

/// The purpose of an event: the four highest bits of its `who`; the rest is an index.
pub(super) mod what {
    /// A branch continues, if it is still in the wait that this ends.
    pub const GO_ON: u32 = 0;
    /// The time limit of a branch has passed.
    pub const LIMIT: u32 = 1 << 28;
    /// A server may have finished a request.
    pub const TICK: u32 = 2 << 28;
    /// A timeline flips.
    pub const FLIP: u32 = 3 << 28;
    /// A count that was held ends.
    pub const HOLD: u32 = 4 << 28;
    /// A user sends the next request.
    pub const THINK: u32 = 5 << 28;
    /// A balancer's health may change by itself.
    pub const WATCH: u32 = 6 << 28;
    /// A balancer's health checks are due.
    pub const CHECK: u32 = 7 << 28;
    /// A health check continues.
    pub const CHECK_ON: u32 = 8 << 28;
    /// The time limit of a health check has passed.
    pub const CHECK_LIMIT: u32 = 9 << 28;
    /// Another attempt of a hedge may begin.
    pub const HEDGE: u32 = 10 << 28;
    /// A probe continues.
    pub const PROBE: u32 = 11 << 28;
    pub const MASK: u32 = 15 << 28;

    /// The event that wakes a branch.
    pub fn going_on(branch: &super::Branch) -> u32 {
        if branch.check == super::NONE { GO_ON } else { CHECK_ON }
    }

    /// Whether such events are scheduled for ever, so that a run does not wait for them.
    pub fn never_ends(who: u32) -> bool {
        matches!(who & MASK, FLIP | WATCH | CHECK | CHECK_ON | CHECK_LIMIT | PROBE)
    }
}

/// Where a branch goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Into its stage.
    In,
    /// Past it, to what is behind.
    On,
    /// Back to it: what is behind has answered.
    Back,
    /// Out of it.
    Out,
    /// Another branch continues, out of its stage.
    Switch(SlotId),
    /// Another branch begins.
    Begin(SlotId),
    /// Nowhere until it is woken.
    Stop,
}

pub(crate) struct Reference<'a> {
    pub(super) code: &'a Code,
    pub(super) tables: &'a Tables,
    pub(super) clients: Clients,
    pub(super) pending: Pending,
    pub(super) branches: Branches,
    pub(super) queues: Vec<Queue>,
    pub(super) links: Links,
    pub(super) servers: Vec<Server>,
    pub(super) jobs: Jobs,
    pub(super) balancers: Vec<Instance>,
    /// The keys of splits.
    pub(super) choices: Vec<Key>,
    pub(super) limits: Vec<RateLimit>,
    pub(super) budgets: Vec<Tokens>,
    /// How busy each probed member is, and the work left at each target.
    pub(super) busy: Vec<Busy>,
    /// The cookies of clients.
    pub(super) jar: Jar,
    pub(super) work_left: WorkLeft,
    pub(super) probes: Probes,
    /// Health checks in flight, and begun so far.
    pub(super) checks_live: u64,
    pub(super) checks_begun: u64,
    pub(super) lines: Vec<Faulty>,
    pub(super) clocks: Vec<ProcessClock>,
    /// How often each timeline flipped by an event since the last request ended.
    pub(super) flips_since: Vec<u64>,
    pub(super) flipped_since: Vec<u32>,
    pub(super) cells: Cells,
    pub(super) warmups: Vec<Warmup>,
    pub(super) gates: Vec<Gate>,
    /// The members of fleets that change.
    pub(super) changes: Changes,
    /// Connections to servers, where they are simulated; by slot, depth and stage those that branches have.
    pub(super) connections: Option<Box<Connections>>,
    pub(super) conns: BTreeMap<(u32, u16, u32), u32>,
    /// Balancer, loop and target of each count that is held.
    pub(super) holds: Vec<(u32, u32, TargetId)>,
    pub(super) spare_holds: Vec<u32>,
    /// The keys of each retry's backoffs.
    pub(super) backoffs: Vec<Key>,
    pub(super) meters: Vec<Meter>,
    pub(super) draw_keys: Vec<Key>,
    pub(super) request_key: Key,
    pub(super) now_ns: u64,
    /// The class of the current event.
    pub(super) class: Class,
    /// Why the run must end early.
    pub(super) cut: Option<Cut>,
    pub(super) stop: &'a AtomicBool,
    /// Further attempts so far, and requests that ended at this instant without having taken any time.
    pub(super) retried: u64,
    pub(super) at_once: u64,
    /// Checks and flips in a row while requests waited for nothing else.
    pub(super) unasked: u64,
    /// Pending events other than flips and checks, which never end.
    pub(super) scheduled: u64,
    pub(super) scratch: Vec<u32>,
    pub(super) excluded: Vec<TargetId>,
    /// Of the branch that a limit is cutting off: its depth and stage at the balancer that the limit is around.
    pub(super) late: Option<(SlotId, u16, u32)>,
    /// How often inner listeners were entered.
    pub(super) hopped: u32,
    /// When the next part of the run ends at which something is counted.
    pub(super) boundary: u64,
    pub ledger: Ledger,
    #[cfg(test)]
    pub sabotage: Option<Sabotage>,
    /// How often a test lets it go on although it is to stop.
    #[cfg(test)]
    pub patience: u32,
    /// What tests inspect beside the ledger.
    #[cfg(test)]
    pub seen: super::tests::Observations,
}

impl<'a> Reference<'a> {
    /// Runs all requests to their end, unless it is stopped or exceeds the time that can be counted.
    pub fn run(&mut self) -> Result<(), Cut> {
        self.begin();
        while self.has_more()
            && let Some((event, is_arrival)) = self.pending.next()
        {
            self.ledger.events += 1;
            if self.ledger.events & PATIENCE == 0 {
                self.look_up();
            }
            #[cfg(test)]
            self.see_ranks();
            if let Some(cut) = self.cut {
                return Err(cut);
            }
            if self.branches.slots.len() > MOST_AT_ONCE {
                return Err(Cut::TooMany);
            }
            if event.at > HORIZON_NS {
                if what::never_ends(event.who) && !is_arrival {
                    continue;
                }
                return Err(Cut::TooLong);
            }
            #[cfg(test)]
            if self.sabotage == Some(Sabotage::TurnClockBack) {
                self.now_ns = event.at + 1;
            }
            self.ledger.time_went_back |= event.at < self.now_ns;
            if event.at > self.now_ns {
                self.at_once = 0;
            }
            self.look_until(event.at);
            self.now_ns = event.at;
            self.class = event.class();
            self.pass_marks();
            self.pass_boundaries(event.at);
            if is_arrival {
                self.arrive();
            } else {
                self.unasked = if self.scheduled > 0 { 0 } else { self.unasked + 1 };
                self.scheduled -= u64::from(!what::never_ends(event.who));
                self.handle(event);
            }
            if !self.changes.draining.is_empty() {
                self.look_at_processes();
            }
        }
        if let Some(cut) = self.cut {
            return Err(cut);
        }
        let loses = self.tables.loses && self.branches.live > self.checks_live;
        self.finish_boundaries();
        self.give_up();
        self.finish_marks(loses);
        if let Some(of) = self.connections.as_deref_mut() {
            self.ledger.connections = Some(Box::new(of.totals(self.now_ns)));
        }
        self.ledger.end(self.branches.slots.len(), self.now_ns);
        Ok(())
    }

    /// Checks whether the run is to stop.
    pub(super) fn look_up(&mut self) {
        #[cfg(test)]
        if self.patience > 0 {
            self.patience -= 1;
            return;
        }
        if self.stop.load(Ordering::Relaxed) {
            self.cut = Some(Cut::Stopped);
        }
    }

    /// Whether anything is still to come: not if only failures and repairs that affect no request are left, or events
    /// of branches that have ended.
    fn has_more(&self) -> bool {
        self.clients.will_send()
            || self.branches.live > self.checks_live
                && (self.scheduled > 0
                    || self.cells.will_be_cut > 0
                    || self.cells.may_be_cut > 0 && self.changes.to_come > 0
                    || self.checks_live > 0 && self.unasked < MOST_UNASKED
                    || self.anyone_waits_for_health())
    }

    fn handle(&mut self, event: Entry) {
        let index = event.who & !what::MASK;
        match event.who & what::MASK {
            what::LIMIT => {
                let branch = &self.branches.slots[index as usize];
                if branch.tag == event.tag && branch.live {
                    self.limit(SlotId(index));
                }
            }
            what::TICK => self.tick(index, event.tag),
            what::FLIP => match index.checked_sub(self.lines.len() as u32) {
                None => self.flip(index),
                Some(change) => self.change(change),
            },
            what::WATCH => self.look_at_balancer(index),
            what::CHECK => self.begin_checks(index),
            what::PROBE => self.probe_is_due(index),
            what::CHECK_LIMIT => {
                if self.branches.slots[index as usize].tag == event.tag {
                    self.check_times_out(SlotId(index));
                }
            }
            what::HEDGE => {
                if self.branches.slots[index as usize].epoch == event.tag {
                    self.hedge_is_due(SlotId(index));
                }
            }
            what::HOLD => self.end_hold(index),
            what::THINK => self.user_sends(index),
            _ => {
                if self.branches.slots[index as usize].epoch == event.tag {
                    self.go_on(SlotId(index));
                }
            }
        }
    }

    /// A branch wakes from where it waited.
    fn go_on(&mut self, slot: SlotId) {
        let branch = &mut self.branches.slots[slot.index()];
        branch.epoch = branch.epoch.wrapping_add(1);
        let phase = branch.phase;
        self.charge(slot);
        if self.branches.slots[slot.index()].shakes_for.is_some() {
            return self.handshake_goes_on(slot, phase);
        }
        let flow = match phase {
            Phase::Out => {
                self.work_left.stop(slot);
                Flow::On
            }
            Phase::Inside => self.served(slot),
            Phase::Backoff => Flow::On,
            Phase::Retake => {
                // It came to the balancer earlier, and has not gone on since.
                let branch = &self.branches.slots[slot.index()];
                let entries = self.tables.nodes[branch.stage as usize].entries;
                let again = u64::from(branch.selected);
                self.ledger.entries[branch.member.index_from(entries)] -= again;
                Flow::In
            }
            Phase::Back | Phase::Cut => Flow::Out,
            Phase::Line => self.waited_too_long(slot),
            Phase::Begin => Flow::In,
            // No event wakes those.
            Phase::Children | Phase::Lost => Flow::Stop,
        };
        self.run_branch(slot, flow);
    }

    pub(super) fn call_target(&self, call: u32, member: MemberId) -> crate::code::Target {
        let site = self.code.calls[call as usize];
        self.code.call_targets[member.index_from(site.offset)]
    }

    /// A branch waits for `ns`.
    pub(super) fn sleep(
        &mut self,
        slot: SlotId,
        phase: Phase,
        ns: u64,
        class: Class,
        constant: bool,
    ) -> Flow {
        if ns == 0 {
            return if phase == Phase::Back { Flow::Out } else { Flow::On };
        }
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = phase;
        branch.since = self.now_ns;
        let at = self.now_ns.saturating_add(ns).min(END_OF_TIME);
        let key = ranked(order_key(class, branch.order), branch.rank);
        let entry = Entry { at, key, who: what::going_on(branch) | slot.0, tag: branch.epoch };
        self.schedule(entry, constant);
        Flow::Stop
    }

    /// Schedules an event after a wait, which is either the same for all of its kind or not.
    pub(super) fn schedule(&mut self, entry: Entry, constant: bool) {
        self.scheduled += u64::from(!what::never_ends(entry.who));
        if constant {
            self.pending.push_constant(entry.at - self.now_ns, entry);
        } else {
            self.pending.push(self.now_ns, entry);
        }
    }

    /// Wakes a branch at this instant, in its turn.
    pub(super) fn wake(&mut self, slot: SlotId, phase: Phase) {
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = phase;
        let key = ranked(order_key(self.class, branch.order), branch.rank);
        let entry = Entry { at: self.now_ns, key, who: what::going_on(branch) | slot.0, tag: branch.epoch };
        self.scheduled += u64::from(!what::never_ends(entry.who));
        self.pending.wake(entry);
    }

    /// Schedules the end of a held count after `ns`.
    pub(super) fn hold(&mut self, held: (u32, u32, TargetId), ns: u64, order: u64) {
        let index = self.spare_holds.pop().unwrap_or(self.holds.len() as u32);
        if index as usize == self.holds.len() {
            self.holds.push(held);
        }
        self.holds[index as usize] = held;
        let at = self.now_ns.saturating_add(ns).min(END_OF_TIME);
        let key = order_key(Class::Hold, order);
        self.schedule(Entry { at, key, who: what::HOLD | index, tag: 0 }, true);
    }

    fn end_hold(&mut self, index: u32) {
        let (instance, on, target) = self.holds[index as usize];
        self.balancers[instance as usize].upstream.on(on).release(self.now_ns, target);
        self.admit(instance);
        self.spare_holds.push(index);
    }

    /// The time between the window's first and last arrival, ns.
    pub fn window_ns(&self) -> u64 {
        self.clients.window_ns()
    }

    /// The kind of error of a branch whose time limit has passed.
    fn limit(&mut self, slot: SlotId) {
        if self.branches.slots[slot.index()].parent == SlotId::NONE {
            if self.branches.slots[slot.index()].wanted {
                self.leave_client(slot);
            }
            return;
        }
        self.cut_child(slot, Kind::Timeout);
    }
}
