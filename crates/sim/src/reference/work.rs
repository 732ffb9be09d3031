//! The work left at targets, for `lb.least_work`: what a branch adds, and what becomes of it.

use super::balance::Instance;
use super::build::{Act, Draw, Next};
use super::run::Reference;
use crate::code::Target;
use crate::code::{MemberId, SlotId};
use crate::state::guards::seen_target;
use weir_model::draws::purpose;

/// The burden of a branch that was itself sent to the target, rather than being the child of one that was.
const PICKED: u16 = 1;

impl Reference<'_> {
    /// Gives a balancer that uses it the work left at its targets.
    pub(super) fn tell_work_left(&mut self, index: u32, on: u32) {
        let (code, tables, now) = (self.code, self.tables, self.now_ns);
        let (servers, jobs, work) = (&self.servers, &self.jobs, &self.work_left);
        let instance = &mut self.balancers[index as usize];
        let Instance { targets, seen, upstream, .. } = instance;
        let (targets, seen) = (*targets, seen.as_ref());
        let Some(lw) = upstream.on(on).balancer().least_work() else { return };
        let shared = |server: u32, slot: SlotId| {
            let (site, _) = tables.server_sites[server as usize];
            servers[server as usize].state.left_ns(&tables.servers[site as usize].law, jobs, now, slot.0)
        };
        lw.tell(|t| work.amount(code.ends.work(seen_target(code, targets, seen, t).member), now, shared));
    }

    /// A branch was sent to a target.
    pub(super) fn bring_work(&mut self, slot: SlotId, to: Target) {
        let ns = self.ahead_of(slot, to.pc, to.member, &mut Vec::new());
        self.work_left.bring(slot, self.code.ends.work(to.member), PICKED, ns);
    }

    /// The work that a branch will meet from a stage inwards if nothing fails.
    fn ahead_of(&self, slot: SlotId, stage: u32, member: MemberId, seen: &mut Vec<u32>) -> u64 {
        let node = &self.tables.nodes[stage as usize];
        let own = match node.act {
            Act::Work { draw } => self.will_draw(slot, &self.tables.draws[draw as usize], seen),
            Act::Share { server } => self.will_draw(slot, &self.tables.servers[server as usize].work, seen),
            Act::Sequence { group } => {
                let (list, len) = self.group_list(group, member);
                let mut ns = 0u64;
                for index in 0..len {
                    let to = self.code.lists[list].get(self.code, index);
                    ns = ns.saturating_add(self.ahead_of(slot, to.pc, to.member, seen));
                }
                ns
            }
            Act::Pass
            | Act::Answer { .. }
            | Act::Rewrite { .. }
            | Act::Cable { .. }
            | Act::Queue { .. }
            | Act::Retry { .. }
            | Act::Fault { .. }
            | Act::Flaky { .. }
            | Act::Warmup { .. }
            | Act::Gate { .. }
            | Act::Timeout { .. }
            | Act::Connect { .. }
            | Act::Balance { .. }
            | Act::Fanout { .. }
            | Act::Choose { .. }
            | Act::Limit { .. }
            | Act::Hedge { .. }
            | Act::Hop { .. } => 0,
        };
        own.saturating_add(match node.next {
            Next::Stage => self.ahead_of(slot, stage + 1, member, seen),
            Next::Leaf => 0,
            Next::Call(call) => {
                let to = self.call_target(call, member);
                self.ahead_of(slot, to.pc, to.member, seen)
            }
        })
    }

    fn will_draw(&self, slot: SlotId, draw: &Draw, seen: &mut Vec<u32>) -> u64 {
        let before = seen.iter().filter(|counter| Some(**counter) == draw.key.visits).count() as u32;
        seen.extend(draw.key.visits);
        self.foreseen(slot, draw, before)
    }

    /// What a branch will draw for its work after `more` further visits.
    pub(super) fn foreseen(&self, slot: SlotId, draw: &Draw, more: u32) -> u64 {
        let way = self.branches.slots[slot.index()].way;
        let key = self.draw_keys[draw.key.key as usize].with(way.bits());
        let before = draw.key.visits.map_or(0, |counter| self.branches.been_at(slot, counter)) + more;
        let again = || key.with(purpose::VISIT).with(u64::from(before));
        draw.sampler.draw(if before == 0 { key } else { again() })
    }

    /// A branch has ended: the work ahead of it passes to its parent, if that waits at the same target.
    pub(super) fn work_ends(&mut self, slot: SlotId) {
        let parent = self.branches.slots[slot.index()].parent;
        if parent.is_some() && self.work_left.burden(slot).mark != PICKED {
            self.work_left.hand(slot, parent);
        }
        self.work_left.drop(slot);
    }
}
