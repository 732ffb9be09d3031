//! Work that `lb.least_work` uses before it is done: the work that a request will bring to a target, and when it
//! begins.
//!
//! - In virtual time: none of its own. Where some balancer uses the work, it begins and ends in its turn; elsewhere
//!   it has no step of its own.
//! - Given back when cut off: what is left of the work ([`crate::state::work_left`]).
//! - Draws: none. Future draws are looked up, since draws of work are keyed by request and place.

use crate::code::KnownWork;
use crate::code::{ColdOp, NOT, Op, Target};
use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use crate::engine::steps::on_visit;
use crate::state::guards::seen_target;
use crate::state::request_details::scaled;
use crate::state::scopes::Limit;

impl Engine<'_> {
    /// Gives a balancer that uses it the work left at its targets.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_work_left(&mut self, index: u32, now_ns: u64) {
        let Some((targets, seen, lw)) = self.features.guards.least_work(index) else { return };
        let (code, work, shares) = (self.core.code(), &self.features.work_left, &self.features.shares);
        lw.tell(|t| {
            let account = code.ends.work(seen_target(code, targets, seen, t).member);
            work.amount(account, now_ns, |server, slot| shares.left_ns(code, server, slot, now_ns))
        });
    }

    /// A request was sent to a target: its work is known from now on.
    #[cold]
    #[inline(never)]
    pub(crate) fn bring_work(&mut self, slot: SlotId, to: Target) {
        if !self.features.work_left.is_asked(self.core.code().ends.work(to.member)) {
            return;
        }
        let ns = self.ahead_of(slot, to.pc, to.member, &mut Vec::new());
        let depth = self.core.state(slot).depth;
        self.features.work_left.bring(slot, self.core.code().ends.work(to.member), depth, ns);
    }

    /// The work that a request will meet from a step to the end of its block and back if nothing fails. `seen` are
    /// the visits on the way there.
    fn ahead_of(&self, slot: SlotId, pc: u32, member: MemberId, seen: &mut Vec<u32>) -> u64 {
        let (code, mut pc, mut ns) = (self.core.code(), pc as usize, 0u64);
        loop {
            let more = match code.steps[pc].op {
                Op::Cold(ColdOp::BeginWork { work }) => match code.known_work[work as usize] {
                    KnownWork { draw: NOT, ns } => ns,
                    KnownWork { draw, .. } => self.will_draw(slot, draw, seen),
                },
                Op::EnterShare { share } => self.will_draw(slot, code.shares[share as usize].work, seen),
                Op::Call { call } => {
                    let site = code.calls[call as usize];
                    let to = code.call_targets[member.index_from(site.offset)];
                    self.ahead_of(slot, to.pc, to.member, seen)
                }
                Op::Cold(ColdOp::EnterSequence { group }) => {
                    let (list, len) = self.group_list(group, member);
                    let each = (0..len).map(|index| code.lists[list].get(code, index));
                    each.map(|to| self.ahead_of(slot, to.pc, to.member, seen)).fold(0, u64::saturating_add)
                }
                Op::Return | Op::End => return ns,
                _ => 0,
            };
            ns = ns.saturating_add(more);
            pc += 1;
        }
    }

    fn will_draw(&self, slot: SlotId, draw: u32, seen: &mut Vec<u32>) -> u64 {
        let counter = self.core.code().draws[draw as usize].visits;
        let before = counter.map_or(0, |counter| seen.iter().filter(|c| **c == counter).count() as u32);
        seen.extend(counter);
        self.foreseen(slot, draw, before)
    }

    /// What a request will draw at a place for its work, before anything lengthens it, after `more` further visits.
    pub(crate) fn foreseen(&self, slot: SlotId, draw: u32, more: u32) -> u64 {
        let site = &self.core.code().draws[draw as usize];
        let key = self.core.draw_key(site.key).with(self.core.state(slot).way.bits());
        let before = site.visits.map_or(0, |counter| self.core.states().rows.visits.before(slot, counter));
        site.sampler.draw(on_visit(key, before + more))
    }

    /// Begins work that some balancer may use.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_known_work(&mut self, slot: SlotId, work: u32, now_ns: u64) {
        let KnownWork { draw, ns } = self.core.code().known_work[work as usize];
        let foreseen_ns = if draw == NOT { ns } else { self.foreseen(slot, draw, 0) };
        let longer = draw != NOT && self.core.code().draws[draw as usize].scaled;
        let factor = if longer { self.features.details.slots[slot.index()].factor } else { 1.0 };
        let until = now_ns.saturating_add(scaled(foreseen_ns, factor));
        self.features.work_left.work(slot, foreseen_ns, until);
    }

    /// Work begins, or waits for a thread, at a server that shares its cores.
    #[cold]
    #[inline(never)]
    pub(crate) fn share_known_work(&mut self, slot: SlotId, draw: u32, server: u32) {
        let foreseen_ns = self.foreseen(slot, draw, 0);
        self.features.work_left.share(slot, foreseen_ns, server);
    }

    /// Takes back the work that a limit cuts off; outside of its target a request has no work left there.
    pub(crate) fn work_is_cut(&mut self, slot: SlotId, limit: &Limit) {
        if !self.features.work_left.is_kept() {
            return;
        }
        if limit.depth < self.features.work_left.burden(slot).mark {
            self.features.work_left.drop(slot);
        } else {
            self.features.work_left.stop(slot);
        }
    }

    /// A request goes on without the part that goes on in its old slot.
    pub(crate) fn work_goes_on(&mut self, slot: SlotId, request: SlotId, limit: &Limit) {
        let burden = self.features.work_left.burden(slot);
        if burden.account != MemberId::NONE && limit.depth >= burden.mark {
            self.features.work_left.go_on_in(slot, request);
        }
    }
}
