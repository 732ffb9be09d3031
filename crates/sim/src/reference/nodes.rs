//! What a branch does at each kind of node, on its way in and on its way back.

use super::branch::Phase;
use super::build::{Act, DrawKey, NONE, Next, RetrySite};
use super::run::{Flow, Reference, what};
use crate::code::SlotId;
use crate::code::order::{Class, Entry, later_attempt, order_key, ranked};
use crate::state::request_details::scaled;
use weir_model::{crossing, flaky};
use weir_policy::Kind;
use weir_policy::config::Work;
use weir_stats::Key;

impl Reference<'_> {
    /// A branch enters its stage.
    pub(super) fn enter(&mut self, slot: SlotId) -> Flow {
        let branch = &self.branches.slots[slot.index()];
        let node = &self.tables.nodes[branch.stage as usize];
        self.ledger.entries[branch.member.index_from(node.entries)] += u64::from(branch.selected);
        if branch.check != NONE {
            return self.check_enters(slot, node.act);
        }
        match node.act {
            Act::Pass => Flow::On,
            Act::Answer { status } => self.answer(slot, status),
            Act::Rewrite { rewrite } => {
                let branch = &mut self.branches.slots[slot.index()];
                branch.shape = self.tables.rewrites[rewrite as usize][branch.shape as usize];
                Flow::On
            }
            Act::Work { draw } => self.work(slot, draw),
            Act::Cable { cable } => self.cross(slot, cable, true),
            Act::Queue { queue } => self.enter_queue(slot, queue),
            Act::Share { server } => self.enter_server(slot, server),
            Act::Retry { retry } => self.enter_retry(slot, retry),
            Act::Fault { fault } => self.enter_fault(slot, fault),
            Act::Flaky { .. } => Flow::On,
            Act::Warmup { warmup } => {
                let site = &self.tables.warmups[warmup as usize];
                let state = &mut self.warmups[branch.member.index_from(site.offset)];
                let factor = state.enter(&site.law, self.now_ns);
                self.branches.scale(slot, factor);
                Flow::On
            }
            Act::Gate { gate } => {
                let site = &self.tables.gates.sites[gate as usize];
                self.gates[branch.member.index_from(site.offset)].enter();
                Flow::On
            }
            Act::Timeout { ns } => self.start_timeout(slot, ns),
            Act::Balance { lb } => self.pick(slot, lb),
            Act::Sequence { group } => self.step_into(slot, group, 0),
            Act::Fanout { group } => self.fan_out(slot, group),
            Act::Choose { choice } => self.choose(slot, choice),
            Act::Limit { limit } => self.take_token(slot, limit),
            Act::Hedge { hedge } => self.start_hedge(slot, hedge),
            Act::Hop { hop } => self.enter_hop(slot, hop),
            Act::Connect { at } => self.come_to_server(slot, at),
        }
    }

    /// The node answers a branch itself.
    fn answer(&mut self, slot: SlotId, status: u16) -> Flow {
        let branch = &mut self.branches.slots[slot.index()];
        branch.status = status;
        branch.outcome = (status >= 500).then_some(Kind::Status5xx);
        let outcome = branch.outcome;
        self.note_answer(slot, outcome);
        Flow::Out
    }

    /// A branch takes the time of its work.
    fn work(&mut self, slot: SlotId, draw: u32) -> Flow {
        let site = &self.tables.draws[draw as usize];
        let foreseen_ns = if self.work_left.is_kept() { self.foreseen(slot, site, 0) } else { 0 };
        let key = self.draw(slot, site.key);
        let ns = scaled(site.sampler.draw(key), self.branches.slots[slot.index()].factor);
        let ns = self.worked_ns(slot, site.pause, ns);
        let constant = site.sampler.constant().is_some() && !self.tables.scales;
        self.work_left.work(slot, foreseen_ns, self.now_ns.saturating_add(ns));
        if ns == 0 {
            self.work_left.stop(slot);
        }
        self.sleep(slot, Phase::Out, ns, Class::Step, constant)
    }

    /// A branch begins its first attempt.
    fn enter_retry(&mut self, slot: SlotId, retry: u32) -> Flow {
        let site = &self.tables.retries[retry as usize];
        let member = self.branches.slots[slot.index()].member;
        if let Some(budget) = site.budget
            && self.is_first_attempt(slot)
        {
            self.budgets[member.index_from(budget)].earn(self.now_ns);
        }
        let counter = self.tables.visits_of_retries.get(&member.number_from(site.offset)).copied();
        self.branches.begin_attempts(slot, site.retry.exclude, counter);
        Flow::On
    }

    /// A branch returns to its stage.
    pub(super) fn back(&mut self, slot: SlotId) -> Flow {
        let branch = &self.branches.slots[slot.index()];
        let act = self.tables.nodes[branch.stage as usize].act;
        if branch.check != NONE {
            return self.check_comes_back(slot, act);
        }
        match act {
            Act::Pass | Act::Work { .. } | Act::Timeout { .. } | Act::Fanout { .. } | Act::Share { .. } => {
                Flow::Out
            }
            Act::Choose { .. } | Act::Limit { .. } | Act::Hedge { .. } | Act::Answer { .. } => Flow::Out,
            // See `outwards`.
            Act::Hop { .. } => Flow::Out,
            Act::Rewrite { .. } => {
                let branch = &mut self.branches.slots[slot.index()];
                branch.shape = self.tables.before[branch.shape as usize];
                Flow::Out
            }
            Act::Cable { cable } => self.cross(slot, cable, false),
            Act::Connect { .. } => {
                let place = (branch.depth, branch.stage);
                self.return_connection(slot, place, false);
                Flow::Out
            }
            Act::Queue { queue } => {
                let (member, selected) = (branch.member, branch.selected);
                self.leave_queue(queue, member, selected);
                self.report_slots(slot, queue);
                Flow::Out
            }
            Act::Retry { retry } => self.came_back(slot, retry),
            Act::Fault { fault } => self.leave_fault(slot, fault),
            Act::Flaky { flaky } => self.fail_at_random(slot, flaky),
            Act::Warmup { .. } => {
                self.branches.unscale(slot);
                Flow::Out
            }
            // Only checks are judged there.
            Act::Gate { .. } => Flow::Out,
            Act::Balance { lb } => self.picked_is_back(slot, lb),
            Act::Sequence { group } => {
                let index = self.branches.frame(slot, branch.depth).index;
                if branch.outcome.is_some() { Flow::Out } else { self.step_into(slot, group, index + 1) }
            }
        }
    }

    pub(super) fn draw(&mut self, slot: SlotId, key: DrawKey) -> Key {
        self.branches.draw_key(slot, &self.draw_keys, key)
    }

    /// A branch crosses a cable.
    pub(super) fn cross(&mut self, slot: SlotId, cable: u32, out: bool) -> Flow {
        let site = &self.tables.cables[cable as usize];
        let (time, lost) = if out { (&site.out, site.lost_out) } else { (&site.back, site.lost_back) };
        let mut ns = match time.sampler.constant() {
            Some(ns) => ns,
            None => time.sampler.draw(self.draw(slot, time.key)),
        };
        if site.loss > 0.0 {
            let key = self.draw(slot, lost);
            match crossing::extra_ns(site.loss, site.resend_ns, key) {
                Some(extra) => ns = ns.saturating_add(extra),
                None => return self.lose(slot),
            }
        }
        let phase = if out { Phase::Out } else { Phase::Back };
        let constant = time.sampler.constant().is_some() && site.loss == 0.0;
        self.sleep(slot, phase, ns, Class::Step, constant)
    }

    /// A branch waits for others or for nothing, or has ended.
    pub(super) fn stops(&mut self, slot: SlotId) {
        if self.branches.slots[slot.index()].check == NONE {
            self.ledger.last_stop = self.now_ns;
        }
    }

    /// This branch will never be answered.
    pub(super) fn lose(&mut self, slot: SlotId) -> Flow {
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = Phase::Lost;
        branch.since = self.now_ns;
        self.stops(slot);
        Flow::Stop
    }

    /// The node itself refuses the request: the branch returns from it.
    pub(super) fn refuse(&mut self, slot: SlotId, kind: Kind) -> Flow {
        let branch = &mut self.branches.slots[slot.index()];
        (branch.outcome, branch.status, branch.relayed) = (Some(kind), 0, false);
        if let Some(offset) = self.code.stages[branch.stage as usize].refusals {
            self.ledger.refusals[branch.member.index_from(offset)] += u64::from(branch.selected);
        }
        self.note_answer(slot, Some(kind));
        Flow::Out
    }

    fn fail_at_random(&mut self, slot: SlotId, node: u32) -> Flow {
        let site = &self.tables.flaky[node as usize];
        if self.branches.slots[slot.index()].outcome.is_none() {
            let key = self.draw(slot, site.key);
            if flaky::fails(site.p, key) {
                let branch = &mut self.branches.slots[slot.index()];
                (branch.outcome, branch.status) = (Some(site.kind), FLAKY_STATUS);
                branch.relayed = false;
                self.note_answer(slot, Some(site.kind));
            }
        }
        Flow::Out
    }

    /// An attempt has returned.
    fn came_back(&mut self, slot: SlotId, retry: u32) -> Flow {
        let RetrySite { retry: config, offset, budget } = &self.tables.retries[retry as usize];
        let redraw = config.work == Work::Redraw;
        let branch = &self.branches.slots[slot.index()];
        let (outcome, selected, member) = (branch.outcome, branch.selected, branch.member);
        let status = branch.answered_with();
        let attempt = self.branches.attempt(slot);
        let idempotent = self.is_idempotent(slot);
        let mut next = config.next(attempt, outcome, status, idempotent);
        if let (Some(_), Some(budget)) = (next, budget)
            && !self.budgets[member.index_from(*budget)].take(self.now_ns)
        {
            next = None;
        }
        if next.is_some()
            && self.tables.shapes.is_empty()
            && config.next(attempt, outcome, status, false).is_none()
        {
            self.ledger.as_get += u64::from(selected);
        }
        let Some(next) = next else {
            self.branches.end_attempts(slot, redraw);
            return Flow::Out;
        };
        // No event separates attempts of one instant, and there may be millions of them.
        self.retried += 1;
        if self.retried & ATTEMPTS_PER_LOOK == 0 {
            self.look_up();
        }
        if self.cut.is_some() {
            return Flow::Stop;
        }
        self.branches.try_again(slot, next, redraw);
        if let Some(recorder) = &mut self.branches.recorder {
            recorder.attempt(slot);
        }
        self.ledger.extra_attempts += u64::from(selected);
        let branch = &mut self.branches.slots[slot.index()];
        branch.rank = later_attempt(branch.rank);
        let ns = match config.backoff_ns {
            0 => 0,
            _ => {
                let own = self.backoffs[member.index_from(*offset)];
                let came = self.branches.came_to_retry(slot);
                config.backoff_ns(next, self.branches.choice_key(slot, own, came))
            }
        };
        self.sleep(slot, Phase::Backoff, ns, Class::Limit, false)
    }

    /// Sends what is behind the node in as a branch with a time limit of `ns`.
    fn start_timeout(&mut self, slot: SlotId, ns: u64) -> Flow {
        let child = self.send_child(slot);
        let branch = &mut self.branches.slots[child.index()];
        let at = self.now_ns.saturating_add(ns);
        let key = ranked(order_key(Class::Limit, branch.order), branch.rank);
        branch.step_inside();
        let entry = Entry { at: at.min(u64::MAX - 1), key, who: what::LIMIT | child.0, tag: branch.tag };
        self.schedule(entry, true);
        Flow::Begin(child)
    }

    /// Creates a branch for what is behind the stage of `slot`.
    pub(super) fn send_child(&mut self, slot: SlotId) -> SlotId {
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = Phase::Children;
        let (stage, member) = match self.tables.nodes[branch.stage as usize].next {
            Next::Call(call) => {
                let member = branch.member;
                let target = self.call_target(call, member);
                (target.pc, target.member)
            }
            _ => (branch.stage + 1, branch.member),
        };
        let child = self.branches.send_in(slot, stage, member, self.now_ns);
        self.branches.copy_visits(slot, child);
        self.work_left.hand(slot, child);
        self.branches.child[slot.index()] = child;
        self.cells.enter(self.branches.slots[child.index()].cell);
        child
    }
}

/// The status of an answer that a `flaky` node turned into a `status_5xx`.
const FLAKY_STATUS: u16 = 500;

/// The stop flag is read when these bits of the number of attempts are zero.
const ATTEMPTS_PER_LOOK: u64 = (1 << 16) - 1;
