//! Nodes that one request comes to several times on one way, which takes a `sequence`: what it chooses there, or begins, is
//! another choice and another way each time. Most topologies have none, and then nothing is kept.

use crate::blocks::Layout;
use crate::code::Code;
use crate::engine::Engine;
use std::collections::BTreeMap;
pub(crate) use weir_model::way::further;
use weir_plan::{NodeId, Spec};

/// The counter of visits of each balancer, choosing node and retry that one way can pass more than once, by the numbers that
/// they have among their kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Again {
    lbs: BTreeMap<u32, u32>,
    choices: BTreeMap<u32, u32>,
    retries: BTreeMap<u32, u32>,
}

/// Marks in [`crate::detail::Detail::came`] that a request asks a balancer again that it has come to before.
const RETAKES: u32 = 1 << 31;

/// The nodes that one way from the root can pass more than once and that choose.
pub(crate) fn passed_again(layout: &Layout) -> Vec<bool> {
    let mut again = vec![false; layout.point.nodes.len()];
    if !layout.has_sequences() {
        return again;
    }
    for (id, spec) in layout.reached() {
        if let Spec::Lb(_) | Spec::Route { .. } | Spec::Split { .. } | Spec::Retry(_) = spec {
            again[id as usize] = layout.most_visits_of(|node| node == id) > 1;
        }
    }
    again
}

impl Layout<'_> {
    /// Whether a request can go to one node after another.
    pub fn has_sequences(&self) -> bool {
        self.reached().any(|(_, spec)| matches!(spec, Spec::Sequence))
    }
}

impl Again {
    /// Gives a counter to each such node. `again` is [`passed_again`].
    pub fn find(layout: &Layout, code: &mut Code, again: &[bool]) {
        let mut found = Again::default();
        let places = |stage: u32, offset: u32| (stage, offset);
        let lbs: Vec<_> = code.lbs.iter().map(|lb| places(lb.stage, lb.offset)).collect();
        let choices: Vec<_> = code.kinds.choices.iter().map(|c| places(c.stage, c.offset)).collect();
        let retries: Vec<_> = code.retries.iter().map(|r| places(r.stage, r.nodes)).collect();
        if !again.iter().any(|again| *again) {
            return;
        }
        for (places, counters) in
            [(lbs, &mut found.lbs), (choices, &mut found.choices), (retries, &mut found.retries)]
        {
            for (stage, offset) in places {
                let stage = &code.stages[stage as usize];
                let nodes: &[NodeId] = &stage.nodes;
                for (&node, member) in nodes.iter().zip(code.blocks[stage.block as usize].base..) {
                    if again[node as usize] {
                        counters.insert(member.wrapping_add(offset), code.visits as u32);
                        code.visits += 1;
                    }
                }
            }
        }
        debug_assert!(layout.has_sequences());
        code.again = found;
    }
}

impl Engine<'_> {
    fn come_again(&mut self, slot: u32, counter: Option<u32>) -> u32 {
        counter.map_or(0, |counter| self.states.visit(slot, counter))
    }

    /// A request comes to a balancer: how often it has been there is told to who picks.
    pub(crate) fn comes_to_balancer(&mut self, slot: u32, lb: u32, member: u32) {
        let code = self.code;
        if code.again.lbs.is_empty() {
            return;
        }
        let came = self.details.slots[slot as usize].came;
        let balancer = member.wrapping_add(code.lbs[lb as usize].offset);
        let came = match came & RETAKES {
            0 => self.come_again(slot, code.again.lbs.get(&balancer).copied()),
            _ => came & !RETAKES,
        };
        self.details.slots[slot as usize].came = came;
    }

    /// A request will ask the balancer where it stands again.
    pub(crate) fn will_retake(&mut self, slot: u32) {
        if !self.code.again.lbs.is_empty() {
            self.details.slots[slot as usize].came |= RETAKES;
        }
    }

    /// How often a request that comes to a choice has been there.
    pub(crate) fn comes_to_choice(&mut self, slot: u32, node: u32) -> u32 {
        self.come_again(slot, self.code.again.choices.get(&node).copied())
    }

    /// A request comes to a retry that may not be the first on its way.
    pub(crate) fn comes_to_retry(&mut self, slot: u32, retry: u32, member: u32) {
        let code = self.code;
        let node = member.wrapping_add(code.retries[retry as usize].nodes);
        let came = self.come_again(slot, code.again.retries.get(&node).copied());
        self.states.note_turn(slot, came);
    }
}
