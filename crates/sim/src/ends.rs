//! Where the ways from targets end: two targets with a cable of their own before one server are two nodes, and yet that server's
//! work and requests in flight are one thing. A probe and `lb.least_work` look past the cables.

use crate::blocks::{Layout, inside};
use crate::code::Code;
use weir_plan::{Spec, To};

/// By member of a block: the member where the way from there ends; empty where nobody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Past cables alone: who answers a probe.
    server: Vec<u32>,
    /// As far as there is one way only: who does the work.
    work: Vec<u32>,
}

impl Ends {
    /// Of all members, once it is known where calls lead.
    pub fn find(&mut self, layout: &Layout, code: &Code) {
        let specs = &layout.point.specs;
        let crosses = |spec: u32| matches!(specs[spec as usize], Spec::Cable { .. } | Spec::Weight { .. });
        (self.server, self.work) = ((0..code.members).collect(), (0..code.members).collect());
        // What a block leads to comes before it.
        for block in &code.blocks {
            let Some(call) = block.calls else { continue };
            let stages = &code.stages[block.stages.start as usize..block.stages.end as usize];
            let only_crosses = stages.iter().all(|stage| crosses(stage.spec));
            for member in block.base..block.base + block.members {
                let site = code.calls[call as usize];
                let to = code.call_targets[member.wrapping_add(site.offset) as usize].member as usize;
                self.work[member as usize] = self.work[to];
                if only_crosses {
                    self.server[member as usize] = self.server[to];
                }
            }
        }
    }

    /// Who answers a probe that was sent to a member.
    #[inline]
    pub fn server(&self, member: u32) -> u32 {
        self.server.get(member as usize).copied().unwrap_or(member)
    }

    /// Who does the work that a request brings to a member.
    #[inline]
    pub fn work(&self, member: u32) -> u32 {
        self.work.get(member as usize).copied().unwrap_or(member)
    }
}

/// By node: where the only way from there ends, at a server or at a node that leads to several.
pub(crate) fn ends_of_nodes(layout: &Layout) -> Vec<u32> {
    let mut ends: Vec<u32> = Vec::with_capacity(layout.point.nodes.len());
    // Nodes come after all that they lead to.
    for id in 0..layout.point.nodes.len() as u32 {
        ends.push(match inside(layout.point, id) {
            To::Node(child) => ends[child as usize],
            To::None | To::List(_) => id,
        });
    }
    ends
}
