//! What a branch does at each kind of node, on its way in and on its way back.

use super::branch::Phase;
use super::build::{Act, DrawKey, NOBODY, Next, RetrySite};
use super::walker::{Flow, Walker, what};
use crate::pending::{Class, Entry, order_key, ranked};
use weir_model::{crossing, flaky};
use weir_policy::Kind;
use weir_policy::config::{Exclude, Work};
use weir_policy::pass_over;
use weir_stats::Key;

impl Walker<'_> {
    /// A branch enters the stage where it stands.
    pub(super) fn enter(&mut self, slot: u32) -> Flow {
        let branch = &self.branches.slots[slot as usize];
        let node = &self.walk.nodes[branch.stage as usize];
        self.ledger.entries[branch.member.wrapping_add(node.entries) as usize] += u32::from(branch.selected);
        match node.act {
            Act::Pass => Flow::On,
            Act::Work { draw } => {
                let site = &self.walk.draws[draw as usize];
                let key = self.draw(slot, site.key);
                let ns = scaled(site.sampler.draw(key), self.branches.slots[slot as usize].factor);
                let constant = site.sampler.constant().is_some() && !self.walk.scales;
                self.sleep(slot, Phase::Out, ns, Class::Step, constant)
            }
            Act::Cable { cable } => self.cross(slot, cable, true),
            Act::Queue { queue } => self.enter_queue(slot, queue),
            Act::Share { server } => self.enter_server(slot, server),
            Act::Retry { retry } => {
                self.branches.begin_attempts(slot, self.walk.retries[retry as usize].retry.exclude);
                Flow::On
            }
            Act::Fault { fault } => self.enter_fault(slot, fault),
            Act::Flaky { .. } => Flow::On,
            Act::Warmup { warmup } => {
                let site = &self.walk.warmups[warmup as usize];
                let state = &mut self.warmups[branch.member.wrapping_add(site.offset) as usize];
                let factor = state.enter(&site.law, self.now);
                self.branches.scale(slot, factor);
                Flow::On
            }
            Act::Timeout { ns } => self.start_timeout(slot, ns),
            Act::Balance { lb } => self.pick(slot, lb),
            Act::Sequence { group } => self.step_into(slot, group, 0),
            Act::Fanout { group } => self.fan_out(slot, group),
        }
    }

    /// A branch comes back to the stage where it stands.
    pub(super) fn back(&mut self, slot: u32) -> Flow {
        let branch = &self.branches.slots[slot as usize];
        match self.walk.nodes[branch.stage as usize].act {
            Act::Pass | Act::Work { .. } | Act::Timeout { .. } | Act::Fanout { .. } | Act::Share { .. } => {
                Flow::Out
            }
            Act::Cable { cable } => self.cross(slot, cable, false),
            Act::Queue { queue } => {
                let (member, selected) = (branch.member, branch.selected);
                self.leave_queue(queue, member, selected);
                Flow::Out
            }
            Act::Retry { retry } => self.came_back(slot, retry),
            Act::Fault { fault } => {
                if self.walk.scales && self.slows(fault) {
                    self.branches.unscale(slot);
                }
                Flow::Out
            }
            Act::Flaky { flaky } => self.may_fail(slot, flaky),
            Act::Warmup { .. } => {
                self.branches.unscale(slot);
                Flow::Out
            }
            Act::Balance { lb } => self.picked_is_back(slot, lb),
            Act::Sequence { group } => {
                let [.., index] = self.branches.frame(slot, branch.depth);
                if branch.outcome.is_some() { Flow::Out } else { self.step_into(slot, group, index + 1) }
            }
        }
    }

    pub(super) fn draw(&mut self, slot: u32, key: DrawKey) -> Key {
        self.branches.draw_key(slot, &self.draw_keys, key)
    }

    /// A crossing of a cable.
    fn cross(&mut self, slot: u32, cable: u32, out: bool) -> Flow {
        let site = &self.walk.cables[cable as usize];
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

    /// Nothing will ever answer this branch.
    pub(super) fn lose(&mut self, slot: u32) -> Flow {
        let branch = &mut self.branches.slots[slot as usize];
        branch.phase = Phase::Lost;
        branch.since = self.now;
        Flow::Stop
    }

    /// The node itself says no: the branch goes back from it.
    pub(super) fn refuse(&mut self, slot: u32, kind: Kind) -> Flow {
        let branch = &mut self.branches.slots[slot as usize];
        branch.outcome = Some(kind);
        if let Some(offset) = self.code.stages[branch.stage as usize].refusals {
            self.ledger.refusals[branch.member.wrapping_add(offset) as usize] += u32::from(branch.selected);
        }
        Flow::Out
    }

    fn may_fail(&mut self, slot: u32, node: u32) -> Flow {
        let site = &self.walk.flaky[node as usize];
        if self.branches.slots[slot as usize].outcome.is_none() {
            let key = self.draw(slot, site.key);
            if flaky::fails(site.p, key) {
                self.branches.slots[slot as usize].outcome = Some(site.kind);
            }
        }
        Flow::Out
    }

    /// An attempt has come back.
    fn came_back(&mut self, slot: u32, retry: u32) -> Flow {
        let RetrySite { retry: config, offset } = &self.walk.retries[retry as usize];
        let redraw = config.work == Work::Redraw;
        let branch = &self.branches.slots[slot as usize];
        let (outcome, selected, member) = (branch.outcome, branch.selected, branch.member);
        let Some(next) = config.next(self.branches.attempt(slot), outcome, true) else {
            self.branches.end_attempts(slot, redraw);
            return Flow::Out;
        };
        // No event comes between attempts at one instant, and there may be millions.
        self.attempts += 1;
        if self.attempts & ATTEMPTS_PER_LOOK == 0 {
            self.look_up();
        }
        if self.cut.is_some() {
            return Flow::Stop;
        }
        self.branches.try_again(slot, next, redraw);
        self.ledger.extra_attempts += u64::from(selected);
        let branch = &mut self.branches.slots[slot as usize];
        branch.rank = later_attempt(branch.rank);
        let ns = match config.backoff_ns {
            0 => 0,
            _ => {
                let own = self.backoffs[member.wrapping_add(*offset) as usize];
                config.backoff_ns(next, own.with(self.branches.tries(slot).bits()))
            }
        };
        self.sleep(slot, Phase::Backoff, ns, Class::Limit, false)
    }

    /// What is behind becomes a branch of its own, with so long to answer.
    fn start_timeout(&mut self, slot: u32, ns: u64) -> Flow {
        let child = self.send_child(slot);
        let branch = &self.branches.slots[child as usize];
        let at = self.now.saturating_add(ns);
        let key = ranked(order_key(Class::Limit, branch.order), branch.rank);
        let entry = Entry { at: at.min(u64::MAX - 1), key, who: what::LIMIT | child, tag: branch.tag };
        self.schedule(entry, true);
        Flow::Begin(child)
    }

    /// A branch for what is behind the stage where `slot` stands.
    pub(super) fn send_child(&mut self, slot: u32) -> u32 {
        let branch = &mut self.branches.slots[slot as usize];
        branch.phase = Phase::Children;
        let (stage, member) = match self.walk.nodes[branch.stage as usize].next {
            Next::Call(call) => {
                let member = branch.member;
                let target = self.call_target(call, member);
                (target.pc, target.member)
            }
            _ => (branch.stage + 1, branch.member),
        };
        let child = self.branches.send_in(slot, stage, member, self.now);
        self.branches.copy_visits(slot, child);
        self.branches.child[slot as usize] = child;
        self.cells.enter(self.branches.slots[child as usize].cell);
        child
    }

    fn pick(&mut self, slot: u32, lb: u32) -> Flow {
        let site = &self.walk.lbs[lb as usize];
        let branch = &self.branches.slots[slot as usize];
        let (stage, member) = (branch.stage, branch.member);
        let index = member.wrapping_add(site.offset);
        let instance = &mut self.balancers[index as usize];
        let draw = instance.picks.with(self.branches.tries(slot).bits());
        let (exclude, tries_of) = (branch.exclude, branch.tries_of);
        let excludes = exclude != Exclude::None && tries_of != NOBODY;
        self.excluded.clear();
        if excludes {
            self.branches.tried[tries_of as usize].at(index, &mut self.excluded);
        }
        if !instance.passed_over.is_empty() {
            // Its end comes after the ends of work of the same instant.
            instance.passed_over.expire(self.now - u64::from(self.class < Class::Hold).min(self.now));
        }
        let excluded = if instance.passed_over.is_empty() {
            &self.excluded[..]
        } else {
            let weights = &self.code.weights[self.code.instances[index as usize].list as usize];
            let is_open = |target: u32| weights[target as usize] > 0.0;
            pass_over::leave_out(
                instance.open,
                is_open,
                &self.excluded,
                &instance.passed_over,
                &mut self.scratch,
            )
        };
        let Some(target) = instance.balancer.pick(draw, excluded) else {
            return self.refuse(slot, Kind::NoTarget);
        };
        if excludes {
            self.branches.tried[tries_of as usize].picked(exclude, index, target);
        }
        let to = self.balancers[index as usize].targets.get(self.code, target);
        self.branches.push_frame(slot, [stage, member, target]);
        let branch = &mut self.branches.slots[slot as usize];
        (branch.stage, branch.member) = (to.pc, to.member);
        Flow::In
    }

    fn picked_is_back(&mut self, slot: u32, lb: u32) -> Flow {
        let site = &self.walk.lbs[lb as usize];
        let branch = &self.branches.slots[slot as usize];
        let (outcome, order) = (branch.outcome, branch.order);
        let index = branch.member.wrapping_add(site.offset);
        let [.., target] = self.branches.frame(slot, branch.depth);
        if branch.exclude != Exclude::None && branch.tries_of != NOBODY {
            self.branches.tried[branch.tries_of as usize].came_back(branch.exclude, index, target, outcome);
        }
        if outcome == Some(Kind::ConnectFailed) && site.pass_over_ns > 0 {
            let until = self.now.saturating_add(site.pass_over_ns);
            self.balancers[index as usize].passed_over.connect_failed(target, until);
        }
        match self.balancers[index as usize].balancer.done(target, outcome) {
            weir_policy::Release::Now => {}
            weir_policy::Release::After(ns) => self.hold(index, target, ns, order),
        }
        Flow::Out
    }
}

/// The stop flag is looked at when these bits of the number of attempts are zero.
const ATTEMPTS_PER_LOOK: u64 = (1 << 16) - 1;

/// Work that takes so many times longer.
pub(super) fn scaled(ns: u64, factor: f64) -> u64 {
    if factor == 1.0 { ns } else { (ns as f64 * factor + 0.5) as u64 }
}

/// The rank of the same branch in its next attempt: attempts come before branches.
fn later_attempt(rank: u32) -> u32 {
    const ATTEMPT: u32 = 1 << super::group::BRANCH_BITS;
    if rank >= (1 << crate::pending::RANK_BITS) - ATTEMPT { rank } else { rank + ATTEMPT }
}
