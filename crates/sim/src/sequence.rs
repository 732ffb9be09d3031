//! One node after another.
//!
//! - In virtual time: none of its own. The next node is gone to in its turn, once the one before has answered well; a frame
//!   knows which that was.
//! - Given back when cut off: nothing.
//! - Draws: none; what repeats on one way is told apart by [`crate::again`].

use crate::blocks::{Draft, Layout};
use crate::code::Op;
use crate::compile::{Compiler, Post};
use crate::engine::Engine;
use weir_plan::To;

/// The place of nodes that lead to several, one after another or all at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupSite {
    /// How many must be ok, where all are gone to at once.
    pub need: u32,
    /// Member to [`Groups::lists`].
    pub offset: u32,
    pub stage: u32,
}

/// What a scenario knows of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    pub sites: Vec<GroupSite>,
    /// The list of each such node.
    pub lists: Vec<u32>,
}

impl Groups {
    /// A place more; its number.
    pub fn add(&mut self, layout: &Layout, stage: u32, draft: &Draft, (position, need): (usize, u32)) -> u32 {
        let offset = (self.lists.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let To::List(list) = layout.point.nodes[node as usize].to else { continue };
            self.lists.push(list);
        }
        self.sites.push(GroupSite { need, offset, stage });
        self.sites.len() as u32 - 1
    }
}

impl Compiler<'_> {
    pub(crate) fn sequence(&mut self, stage: u32, draft: &Draft, position: usize) -> Option<Post> {
        self.code.details = true;
        let group = self.code.groups.add(&self.layout, stage, draft, (position, 0));
        self.op(Op::Sequence { group }, &[]);
        Some(Post::Op(Op::Next { group }))
    }
}

impl Engine<'_> {
    /// The list of a node with several behind it, and how long it is.
    pub(crate) fn group_list(&self, group: u32, member: u32) -> (usize, u32) {
        let site = &self.code.groups.sites[group as usize];
        let list = self.code.groups.lists[member.wrapping_add(site.offset) as usize] as usize;
        (list, self.code.weights[list].len() as u32)
    }

    /// A request goes to the node of that index of a sequence, to come back to the step `back`; or past that, when it has been
    /// at all.
    pub(crate) fn go_to_next(&mut self, slot: u32, group: u32, back: usize, index: u32) {
        let state = &self.states.slots[slot as usize];
        let (member, depth, selected) = (state.member, usize::from(state.depth), state.selected());
        let (list, len) = self.group_list(group, member);
        if index == len {
            return self.leave_at(slot, back as u32 + 1, member, depth);
        }
        let target = self.code.lists[list].get(self.code, index);
        self.states.set_frame(slot, depth, [back as u32, member, index]);
        self.leave_at(slot, target.pc, target.member, depth + 1);
        self.members[target.member as usize].entries += i32::from(selected);
        // What the node before answered is no answer of this one.
        self.details.slots[slot as usize].status = 0;
    }

    /// A request is back from one of the nodes.
    pub(crate) fn go_on_in_sequence(&mut self, slot: u32, group: u32, pc: usize) {
        let state = &mut self.states.slots[slot as usize];
        state.depth -= 1;
        let (member, depth) = (state.member, usize::from(state.depth));
        if state.has_failed() {
            return self.count_errors(slot, member, pc);
        }
        let [_, _, index] = self.states.frame(slot, depth);
        self.go_to_next(slot, group, pc, index + 1);
    }
}
