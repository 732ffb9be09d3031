//! The ends of the paths from targets: two targets with cables of their own before one server are two nodes, and yet
//! that server's work and requests in flight are one. A probe and `lb.least_work` look past the cables.

use crate::code::Code;
use crate::code::MemberId;
use crate::code::ends::Ends;
use crate::compile::blocks::{Layout, inside};
use weir_plan::{Edge, Spec};

impl Ends {
    /// Finds the ends of all members, once it is known where calls lead.
    pub fn find(&mut self, layout: &Layout, code: &Code) {
        let specs = &layout.point.specs;
        let crosses = |spec: u32| {
            matches!(specs[spec as usize], Spec::Cable { .. } | Spec::Weight { .. } | Spec::Connection(_))
        };
        let all: Vec<MemberId> = (0..code.members).map(MemberId).collect();
        (self.server, self.work) = (all.clone(), all);
        // Blocks come after those that they lead to.
        for block in &code.blocks {
            let Some(call) = block.calls else { continue };
            let stages = &code.stages[block.stages.start as usize..block.stages.end as usize];
            let only_crosses = stages.iter().all(|stage| crosses(stage.spec));
            for member in (block.base..block.base + block.members).map(MemberId) {
                let site = code.calls[call as usize];
                let to = code.call_targets[member.index_from(site.offset)].member.index();
                self.work[member.index()] = self.work[to];
                if only_crosses {
                    self.server[member.index()] = self.server[to];
                }
            }
        }
    }
}

/// By node: where the only path from there ends, at a server or at a node that leads to several.
pub(crate) fn ends_of_nodes(layout: &Layout) -> Vec<u32> {
    let mut ends: Vec<u32> = Vec::with_capacity(layout.point.nodes.len());
    // Nodes come after all that they lead to.
    for id in 0..layout.point.nodes.len() as u32 {
        ends.push(match inside(layout.point, id) {
            Edge::Node(child) => ends[child as usize],
            Edge::None | Edge::List(_) => id,
        });
    }
    ends
}
