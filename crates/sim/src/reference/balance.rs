//! Balancers: picks, outcomes, waiting while all targets are full, and the timers of what surrounds a balancer.

use super::branch::{Frame, Phase};
use super::run::{Flow, Reference, what};
use crate::code::StageId;
use crate::code::bounds::{HORIZON_NS, MOST_IN_VAIN};
use crate::code::changes::SeenTargets;
use crate::code::order::{Class, Entry, order_key};
use crate::code::{Code, Target, Targets};
use crate::code::{MemberId, SlotId};
use crate::state::hops::tag;
use weir_model::queue::Line;
use weir_policy::config::Exclude;
use weir_policy::prequal::Busy;
use weir_policy::sticky::Simulated;
use weir_policy::{Ask, Kind, Outcome, PickOutcome, Release, TargetId, Ticket, Upstream};
use weir_stats::Key;

/// A balancer in virtual time, for all loops that use it: only the policy's state and the targets that it passes over
/// exist per loop.
pub(super) struct Instance {
    pub upstream: Upstream,
    /// The key of its picks.
    pub picks: Key,
    /// All that ever are.
    pub targets: Targets,
    /// The place of each target among them, where they change.
    pub seen: Option<SeenTargets>,
    /// Its site.
    pub lb: u32,
    /// Requests that wait until a target is not full any more.
    pub line: Line,
    /// The cookies that it issues and recognises.
    pub sticky: Option<Simulated>,
    /// When its health is to be examined next, and when its next checks begin; an event at any other time is stale.
    watched: u64,
    pub check_due: u64,
    /// How often its health was examined since a request last joined or left its line.
    vain: u32,
    /// Whether anything behind it could be picked at the last examination.
    pub alive: bool,
}

impl Instance {
    pub fn new(
        upstream: Upstream,
        sticky: Option<Simulated>,
        picks: Key,
        targets: Targets,
        seen: Option<SeenTargets>,
        lb: u32,
    ) -> Instance {
        Instance {
            upstream,
            picks,
            targets,
            seen,
            lb,
            line: Line::default(),
            sticky,
            watched: u64::MAX,
            check_due: u64::MAX,
            vain: 0,
            alive: true,
        }
    }
}

impl Instance {
    /// Where a target is.
    pub fn target(&self, code: &Code, target: TargetId) -> Target {
        self.targets.get(code, self.place(target))
    }

    /// The place of a target in the list of all that ever are.
    pub fn place(&self, target: TargetId) -> u32 {
        self.seen.as_ref().map_or(target.0, |seen| seen.place(target.0))
    }
}

/// The target index in the frame of a request that went to the spare node.
const SPARE: u32 = u32::MAX;

impl Reference<'_> {
    /// The balancer of a member.
    pub(super) fn instance(&self, lb: u32, member: MemberId) -> u32 {
        member.number_from(self.tables.lbs[lb as usize].offset)
    }

    /// The loop whose state of the balancer a branch uses.
    pub(super) fn on(&self, lb: u32, slot: SlotId) -> u32 {
        let meets = self.branches.slots[slot.index()].meets;
        if self.tables.lbs[lb as usize].shared { 0 } else { meets }
    }

    /// A branch arrives at a balancer.
    pub(super) fn pick(&mut self, slot: SlotId, lb: u32) -> Flow {
        let tables = self.tables;
        let site = &tables.lbs[lb as usize];
        let branch = &self.branches.slots[slot.index()];
        let index = self.instance(lb, branch.member);
        if branch.phase != Phase::Retake {
            let counter = tables.visits_of_lbs.get(&index).copied();
            self.branches.slots[slot.index()].came = self.branches.come_again(slot, counter);
        }
        self.branches.slots[slot.index()].phase = Phase::Out;
        if site.measures_probes {
            self.probe(lb, index, slot);
        }
        match self.ask(slot, lb, index) {
            PickOutcome::Target(ticket) => self.go_to(slot, index, ticket),
            PickOutcome::Full => self.wait_for_target(slot, lb, index),
            PickOutcome::Empty => self.nobody_left(slot, lb),
        }
    }

    fn ask(&mut self, slot: SlotId, lb: u32, index: u32) -> PickOutcome {
        let site = &self.tables.lbs[lb as usize];
        let branch = &self.branches.slots[slot.index()];
        let picks = self.balancers[index as usize].picks;
        let (draw, own) = (self.branches.choice_key(slot, picks, branch.came), tag(index, branch.serial));
        self.excluded.clear();
        if branch.exclude != Exclude::None && branch.tries_of.is_some() {
            self.branches.tried[branch.tries_of.index()].add_to(own, &mut self.excluded);
        }
        if branch.hedge_of.is_some() {
            self.branches.open_elsewhere(slot, own, &mut self.excluded);
        }
        let key = site.key.and_then(|key| self.key(slot, key));
        if self.work_left.is_kept() {
            self.tell_work_left(index, self.on(lb, slot));
        }
        let cookies = self.balancers[index as usize].sticky.as_ref();
        let sticky = cookies.zip(self.branches.slots[slot.index()].key);
        let sticky = sticky.and_then(|(cookies, key)| cookies.target(&self.jar, key));
        let ask = Ask { draw, key, now_ns: self.now_ns, exclude: &self.excluded, sticky };
        let on = self.on(lb, slot);
        self.balancers[index as usize].upstream.on(on).pick(&ask)
    }

    fn go_to(&mut self, slot: SlotId, index: u32, ticket: Ticket) -> Flow {
        let branch = self.branches.slots[slot.index()];
        let (exclude, tries_of, hedge_of) = (branch.exclude, branch.tries_of, branch.hedge_of);
        let own = tag(index, branch.serial);
        if exclude != Exclude::None && tries_of.is_some() {
            self.branches.tried[tries_of.index()].picked(exclude, own, ticket.target);
        }
        if hedge_of.is_some() {
            self.branches.note_open(slot, own, ticket.target);
        }
        let to = self.balancers[index as usize].target(self.code, ticket.target);
        let busy = self.busy.get_mut(self.code.ends.server(to.member).index());
        let met = busy.map_or(0, Busy::entered);
        let frame = Frame {
            stage: branch.stage,
            member: branch.member,
            index: ticket.target.0,
            probe: ticket.probe,
            met,
            at_ns: self.now_ns,
            on: self.on(self.balancers[index as usize].lb, slot),
        };
        self.branches.push_frame(slot, frame);
        self.branches.slots[slot.index()].load = None;
        let balancer = &self.balancers[index as usize];
        if balancer.seen.is_some() {
            self.changes.sends_to(self.code, index, balancer.place(ticket.target), self.now_ns);
        }
        if let Some(recorder) = &mut self.branches.recorder {
            let balancer = &self.balancers[index as usize];
            // Recorded by its place in the list, as names are.
            let place = balancer.place(ticket.target);
            recorder.pick(slot, StageId(branch.stage), branch.member, TargetId(place));
            if balancer.seen.is_some() {
                self.changes.sent_to(self.code, index, place);
            }
        }
        let branch = &mut self.branches.slots[slot.index()];
        (branch.stage, branch.member) = (to.pc, to.member);
        if self.work_left.is_asked(self.code.ends.work(to.member)) {
            self.bring_work(slot, to);
        }
        Flow::In
    }

    /// No target is left: an error, or the spare node.
    fn nobody_left(&mut self, slot: SlotId, lb: u32) -> Flow {
        let site = &self.tables.lbs[lb as usize];
        let branch = &self.branches.slots[slot.index()];
        let Some(spares) = site.spares else { return self.refuse(slot, Kind::NoTarget) };
        let to = self.tables.spares[branch.member.index_from(spares)];
        let frame = Frame { stage: branch.stage, member: branch.member, index: SPARE, ..Frame::default() };
        self.branches.push_frame(slot, frame);
        let branch = &mut self.branches.slots[slot.index()];
        (branch.stage, branch.member) = (to.pc, to.member);
        Flow::In
    }

    /// All targets are full.
    fn wait_for_target(&mut self, slot: SlotId, lb: u32, index: u32) -> Flow {
        let site = &self.tables.lbs[lb as usize];
        let line = &mut self.balancers[index as usize].line;
        if u64::from(line.len()) >= site.max_waiting {
            return self.refuse(slot, Kind::Overloaded);
        }
        line.join(&mut self.links, slot.0);
        self.balancers[index as usize].vain = 0;
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = Phase::Line;
        branch.since = self.now_ns;
        self.stops(slot);
        if let Some(ns) = site.wait_timeout_ns {
            self.end_wait_after(slot, ns);
        }
        Flow::Stop
    }

    /// Lets waiting requests continue, as far as there is room.
    pub(super) fn admit(&mut self, index: u32) {
        while let Some(slot) = self.balancers[index as usize].line.peek().map(SlotId) {
            let lb = self.balancers[index as usize].lb;
            let picked = self.ask(slot, lb, index);
            if picked == PickOutcome::Full {
                return;
            }
            self.balancers[index as usize].line.take_out(&mut self.links, slot.0);
            self.balancers[index as usize].vain = 0;
            self.charge(slot);
            let branch = &mut self.branches.slots[slot.index()];
            branch.epoch = branch.epoch.wrapping_add(1);
            match picked {
                PickOutcome::Target(ticket) => {
                    self.go_to(slot, index, ticket);
                    self.wake(slot, Phase::Begin);
                }
                _ => self.wake(slot, Phase::Retake),
            }
        }
    }

    /// A branch has returned from the target that was picked.
    pub(super) fn picked_is_back(&mut self, slot: SlotId, lb: u32) -> Flow {
        let site = &self.tables.lbs[lb as usize];
        let branch = &self.branches.slots[slot.index()];
        let (outcome, order, key) = (branch.outcome, branch.order, branch.key);
        let (status, relayed) = (branch.answered_with(), branch.relayed);
        let load = branch.load.filter(|_| outcome.is_none());
        let index = self.instance(lb, branch.member);
        let frame = self.branches.frame(slot, branch.depth);
        if frame.index == SPARE {
            return Flow::Out;
        }
        self.work_left.drop(slot);
        if branch.exclude != Exclude::None && branch.tries_of.is_some() {
            self.branches.tried[branch.tries_of.index()].came_back(
                branch.exclude,
                tag(index, branch.serial),
                TargetId(frame.index),
                outcome.filter(|_| !relayed),
            );
        }
        let ticket = frame.ticket();
        self.left_target(index, &ticket, outcome);
        if let (Some(key), Some(cookies)) = (key, &self.balancers[index as usize].sticky) {
            cookies.answered(&mut self.jar, key, TargetId(frame.index), outcome);
        }
        let on = self.on(lb, slot);
        if let Some(load) = load {
            let upstream = self.balancers[index as usize].upstream.on(on);
            upstream.loaded(self.now_ns, TargetId(frame.index), load);
        }
        let upstream = self.balancers[index as usize].upstream.on(on);
        let release = if relayed {
            upstream.relayed(self.now_ns, ticket, outcome, status)
        } else {
            upstream.done(self.now_ns, ticket, outcome, status)
        };
        if let Release::After(ns) = release {
            self.hold((index, on, TargetId(frame.index)), ns, order);
        }
        self.note_back(slot, outcome, release);
        let failed = outcome == Some(Kind::ConnectFailed) && !relayed;
        self.end_withdrawn(index, failed.then_some(TargetId(frame.index)));
        if site.watches || outcome == Some(Kind::ConnectFailed) {
            self.watch(index);
        }
        self.branches.slots[slot.index()].relayed = outcome.is_some();
        if !self.balancers[index as usize].line.is_empty() {
            self.admit(index);
        }
        Flow::Out
    }

    /// A branch is cut off behind a target; `late`: by a `timeout` around the balancer.
    pub(super) fn pick_is_cut(&mut self, lb: u32, member: MemberId, frame: Frame, late: bool) {
        if frame.index == SPARE {
            return;
        }
        let (index, on) = (self.instance(lb, member), frame.on);
        let ticket = frame.ticket();
        self.left_target(index, &ticket, Some(Kind::Cancelled));
        let upstream = self.balancers[index as usize].upstream.on(on);
        match late {
            true => upstream.timed_out(self.now_ns, ticket),
            false => upstream.cancelled(self.now_ns, ticket),
        }
        self.end_withdrawn(index, None);
        if self.tables.lbs[lb as usize].watches {
            self.watch(index);
        }
        if !self.balancers[index as usize].line.is_empty() {
            self.admit(index);
        }
    }

    fn left_target(&mut self, index: u32, ticket: &Ticket, outcome: Outcome) {
        let instance = &self.balancers[index as usize];
        if instance.seen.is_some() {
            self.changes.left_target(self.code, index, instance.place(ticket.target), self.now_ns);
        }
        if self.busy.is_empty() {
            return;
        }
        let to = self.balancers[index as usize].target(self.code, ticket.target);
        self.busy[self.code.ends.server(to.member).index()].left(
            ticket.met,
            self.now_ns - ticket.at_ns,
            outcome,
        );
    }

    /// Schedules the next examination of a balancer for when its health, or the targets it passes over, change by
    /// themselves.
    pub(super) fn watch(&mut self, index: u32) {
        self.tell_outside(index);
        let instance = &mut self.balancers[index as usize];
        let Some(at) = instance.upstream.next_deadline() else { return };
        let at = at.max(self.now_ns);
        if at >= instance.watched {
            return;
        }
        instance.watched = at;
        let key = order_key(Class::Hold, u64::from(index));
        self.pending
            .push(self.now_ns, Entry { at: at.min(u64::MAX - 1), key, who: what::WATCH | index, tag: 0 });
    }

    /// Examines the health of a balancer.
    pub(super) fn look_at_balancer(&mut self, index: u32) {
        let instance = &mut self.balancers[index as usize];
        if instance.watched != self.now_ns {
            return;
        }
        instance.watched = u64::MAX;
        instance.upstream.tick(self.now_ns);
        self.end_withdrawn(index, None);
        self.watch(index);
        self.admit_by_health(index);
    }

    /// Lets waiting requests continue, as far as there is room, after health was examined.
    pub(super) fn admit_by_health(&mut self, index: u32) {
        let vain = &mut self.balancers[index as usize].vain;
        *vain = (*vain + 1).min(MOST_IN_VAIN);
        self.admit(index);
    }

    /// Whether a request waits for a target that may recover by itself or by a check, or for a change of targets.
    pub(super) fn anyone_waits_for_health(&self) -> bool {
        self.balancers.iter().any(|b| {
            let changes = b.seen.is_some() && self.changes.to_come > 0
                || self.tables.lbs[b.lb as usize].check_timeout_ns > 0
                || b.watched <= HORIZON_NS;
            changes && b.vain < MOST_IN_VAIN && !b.line.is_empty()
        })
    }

    /// Reports to the balancers outside whether one inside has a usable target left.
    fn tell_outside(&mut self, index: u32) {
        let tables = self.tables;
        let Some(outside) = tables.outside.get(index as usize).filter(|o| !o.is_empty()) else { return };
        let instance = &mut self.balancers[index as usize];
        let site = &tables.lbs[instance.lb as usize];
        let health = instance.upstream.health();
        // A target on probation is not eligible, but only a request can find out whether it is well again.
        let may_be_picked = |t: TargetId| health.view(t).may_be_picked && health.view(t).weight > 0.0;
        let on_probation = || !health.is_ignored() && TargetId::all(health.len()).any(may_be_picked);
        let alive = health.count().1 > 0 || site.spares.is_some() || on_probation();
        if std::mem::replace(&mut instance.alive, alive) == alive {
            return;
        }
        for &(outer, target) in outside {
            let inner = &tables.inside[&(outer, target)];
            let up = inner.iter().any(|&i| self.balancers[i as usize].alive);
            let seen = self.balancers[outer as usize].seen.as_ref();
            if let Some(target) = seen.map_or(Some(target), |seen| seen.target(target.0).map(TargetId)) {
                self.balancers[outer as usize].upstream.set_behind(self.now_ns, target, up);
            }
            self.watch(outer);
            self.admit(outer);
        }
    }
}
