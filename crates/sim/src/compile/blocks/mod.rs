//! The shape of a scenario: chains of nodes with one way in, grouped into blocks, and the tables of its code.

mod stages;
mod ways;

use crate::code::MemberId;
use crate::code::NOT;
use crate::code::ends::Ends;
use crate::code::{Code, Target, Targets};
use crate::compile::guards::looks_past_cables;
use std::collections::HashMap;
use weir_plan::{Edge, NodeId, Point, Spec};
use weir_workload::place_key;

/// The limit of everything that compiling produces; beyond it there is an error instead of a wrapped number.
pub(crate) const MOST: usize = u32::MAX as usize / 32;

/// A block before its code is known.
pub(crate) struct Draft {
    /// (site, spec) from the outside in.
    pub chain: Vec<(u32, u32)>,
    /// The plan's nodes by stage, then member.
    pub nodes: Vec<Vec<NodeId>>,
    pub end: End,
    pub base: u32,
    /// Where its code begins: a step, or a stage.
    pub pc: u32,
}

/// Where a chain ends.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    Leaf,
    Call,
    Lb,
}

/// The blocks of a scenario.
pub(crate) struct Layout<'a> {
    pub point: &'a Point,
    pub root: NodeId,
    pub reachable: Vec<bool>,
    head: Vec<bool>,
    /// Block and index in it of each head.
    block_of: Vec<(u32, u32)>,
    pub drafts: Vec<Draft>,
    /// The number of each node among the members of its site in the scenario.
    pub number: Vec<u32>,
    /// Nodes of all blocks' first stages.
    members: u32,
}

impl<'a> Layout<'a> {
    /// Groups the nodes behind `root`.
    pub fn new(point: &'a Point, root: NodeId) -> Layout<'a> {
        let n = point.nodes.len();
        let mut reachable = vec![false; n];
        let mut seen_list = vec![false; point.lists.len()];
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut reachable[id as usize], true) {
                continue;
            }
            stack.extend(spare(point, id));
            match inside(point, id) {
                Edge::None => {}
                Edge::Node(child) => stack.push(child),
                Edge::List(l) => {
                    if !std::mem::replace(&mut seen_list[l as usize], true) {
                        stack.extend(&point.lists[l as usize]);
                    }
                }
            }
        }
        let number = weir_workload::numbers(point, &reachable);
        let block_of = vec![(NOT, NOT); n];
        let drafts = Vec::new();
        let mut layout =
            Layout { point, root, reachable, head: vec![false; n], block_of, drafts, number, members: 0 };
        layout.find_heads();
        layout.make_blocks();
        layout
    }

    /// Tables without any code yet.
    pub fn code(&self, members: bool) -> Code {
        Code {
            place_keys: self.point.places.iter().map(place_key).collect(),
            queue_count: self.members,
            first_loops: 1,
            loops: 1,
            members: self.members,
            mask: if members { u32::MAX } else { 0 },
            takes_as_get: true,
            branches: self.has_branches(),
            turns: self.has_sequences(),
            leaves_branches: self.leaves_branches(),
            ..Code::default()
        }
    }

    /// Heads of blocks: targets, nodes that several others lead to, the root (which none leads to).
    fn find_heads(&mut self) {
        let mut ways_in = vec![0u8; self.point.nodes.len()];
        let mut seen_list = vec![false; self.point.lists.len()];
        for id in 0..self.point.nodes.len() {
            if !self.reachable[id] {
                continue;
            }
            if let Some(spare) = spare(self.point, id as u32) {
                ways_in[spare as usize] = 2;
            }
            match inside(self.point, id as u32) {
                Edge::None => {}
                Edge::Node(child) => ways_in[child as usize] = ways_in[child as usize].saturating_add(1),
                Edge::List(l) => {
                    if !std::mem::replace(&mut seen_list[l as usize], true) {
                        for &t in &self.point.lists[l as usize] {
                            ways_in[t as usize] = 2;
                        }
                    }
                }
            }
        }
        for (id, n) in ways_in.into_iter().enumerate() {
            self.head[id] = self.reachable[id] && n != 1;
        }
    }

    /// Groups chains of equal shape. Nodes come after everything that they lead to, so callees have their block
    /// already.
    fn make_blocks(&mut self) {
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let (mut chain, mut shape) = (Vec::new(), Vec::new());
        for id in 0..self.point.nodes.len() as u32 {
            if !self.head[id as usize] {
                continue;
            }
            chain.clear();
            shape.clear();
            if id == self.root {
                // Its block ends the request, so no other node may share it.
                shape.push(u64::MAX >> 1);
            }
            let mut at = id;
            let end = loop {
                chain.push(at);
                let node = &self.point.nodes[at as usize];
                shape.push(u64::from(node.site) << 32 | u64::from(node.spec));
                match inside(self.point, at) {
                    Edge::None => break End::Leaf,
                    Edge::List(_) => break End::Lb,
                    Edge::Node(child) if self.head[child as usize] => {
                        shape.push(u64::MAX - u64::from(self.block_of[child as usize].0));
                        break End::Call;
                    }
                    Edge::Node(child) => at = child,
                }
            };
            let block = match known.get(&shape) {
                Some(&block) => block,
                None => {
                    let block = self.drafts.len() as u32;
                    known.insert(shape.clone(), block);
                    let stage =
                        |&n: &u32| (self.point.nodes[n as usize].site, self.point.nodes[n as usize].spec);
                    self.drafts.push(Draft {
                        chain: chain.iter().map(stage).collect(),
                        nodes: vec![Vec::new(); chain.len()],
                        end,
                        base: 0,
                        pc: 0,
                    });
                    block
                }
            };
            let draft = &mut self.drafts[block as usize];
            self.block_of[id as usize] = (block, draft.nodes[0].len() as u32);
            for (stage, &node) in draft.nodes.iter_mut().zip(&chain) {
                stage.push(node);
            }
        }
        let mut base = 0;
        for draft in &mut self.drafts {
            draft.base = base;
            base += draft.nodes[0].len() as u32;
        }
        self.members = base;
    }

    /// The nodes that requests can reach, with their specs.
    pub fn reached(&self) -> impl Iterator<Item = (NodeId, &'a Spec)> {
        let point = self.point;
        let reached = (0..point.nodes.len()).filter(|&id| self.reachable[id]);
        reached.map(|id| (id as u32, &point.specs[point.nodes[id].spec as usize]))
    }

    /// The site of a node.
    pub fn place(&self, id: NodeId) -> u32 {
        self.point.sites[self.point.nodes[id as usize].site as usize].place
    }

    /// Where the code of a node that heads a block begins.
    pub fn target(&self, id: NodeId) -> Target {
        let (block, index) = self.block_of[id as usize];
        let draft = &self.drafts[block as usize];
        Target { pc: draft.pc, member: MemberId(draft.base + index) }
    }

    /// Completes what is known once all blocks have their code; `lists` are those in use beside the balancers'.
    /// Returns the number of the root's block.
    pub fn finish(&self, code: &mut Code, lists: &[u32]) -> Result<usize, String> {
        let root = self.root;
        let target = |id: NodeId| self.target(id);
        for t in &mut code.call_targets {
            *t = target(t.member.0);
        }
        let weight = |id: NodeId| match &self.point.specs[self.point.nodes[id as usize].spec as usize] {
            Spec::Weight { weight } => *weight,
            _ => 1.0,
        };
        let used: Vec<bool> = {
            let mut used = vec![false; self.point.lists.len()];
            code.instances.iter().for_each(|i| used[i.list as usize] = true);
            lists.iter().for_each(|&list| used[list as usize] = true);
            used
        };
        for (list, used) in self.point.lists.iter().zip(used) {
            let list: &[NodeId] = if used { list } else { &[] };
            let targets: Vec<Target> = list.iter().map(|&id| target(id)).collect();
            let in_a_row = |first: &Target| {
                let mut row = targets.iter().zip(first.member.0..);
                row.all(|(t, member)| *t == Target { pc: first.pc, member: MemberId(member) })
            };
            code.lists.push(match targets.first().filter(|first| in_a_row(first)) {
                Some(first) => Targets::Members(*first),
                None => Targets::Table(code.targets.len() as u32, targets.len() as u32),
            });
            if let Some(Targets::Table(..)) = code.lists.last() {
                code.targets.extend(targets);
            }
            code.weights.push(list.iter().map(|&id| weight(id)).collect());
        }
        if self.reached().any(|(_, spec)| looks_past_cables(spec)) {
            let mut ends = Ends::default();
            ends.find(self, code);
            code.ends = ends;
        }
        code.start = target(root);
        let root_block = self.block_of[root as usize].0 as usize;
        let guarded = |id: usize| code.guards.of_node.contains_key(&(id as u32));
        code.depth = self.depth(root, Nested::Frames, guarded)?;
        code.retry_depth = self.depth(root, Nested::Retries, guarded)?;
        code.limit_depth = self.depth(root, Nested::Limits, guarded)?;
        code.order = self.order(code, root_block);
        Ok(root_block)
    }
}

/// Things that nest.
#[derive(Clone, Copy, PartialEq)]
enum Nested {
    /// Balancers, calls and connections: a frame each.
    Frames,
    Retries,
    Limits,
}

/// The node that a balancer leads to when it has no target left.
pub(crate) fn spare(point: &Point, id: NodeId) -> Option<NodeId> {
    match &point.specs[point.nodes[id as usize].spec as usize] {
        Spec::Lb(lb) => lb.spare,
        _ => None,
    }
}

/// What a node leads to; a server leads to its model.
pub(crate) fn inside(point: &Point, id: NodeId) -> Edge {
    let node = &point.nodes[id as usize];
    match &point.specs[node.spec as usize] {
        Spec::Server { model: Some(model), .. } => Edge::Node(*model),
        _ => node.to,
    }
}

/// The distance from a member to its accumulator, where `next` is the first free one; see [`Code::mask`].
pub(crate) fn offset(next: u32, base: u32, mask: u32) -> u32 {
    next.wrapping_sub(base & mask)
}
