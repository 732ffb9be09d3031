//! From a point of a plan and one of its scenarios to [`Code`].

use crate::ahead;
use crate::code::{
    Block, CallSite, Code, DrawSite, FaultSite, Instance, LbSite, Op, QueueSite, RetrySite, Stage, Step,
    Target, Targets,
};
use std::collections::HashMap;
use weir_model::Dist;
use weir_model::faulty::Law;
use weir_model::queue::Limits;
use weir_model::sampler::Sampler;
use weir_policy::config::Exclude;
use weir_stats::Key;
use weir_topology::plan::{Clock, Faulty, Lb, NodeId, Place, Point, Spec, To};

/// Purposes of draws that belong to a request; part of their keys.
mod purpose {
    pub(super) const WORK: u64 = 1;
    pub(super) const OUT: u64 = 2;
    pub(super) const BACK: u64 = 3;
}

/// What compiling may not exceed; a clear error instead of a wrapped number.
const MOST: usize = u32::MAX as usize / 4;

/// Compiles the graph behind `root`. With `members`, statistics are kept for every member; without `fuse` every wait is an
/// event of its own (the results are the same; a test sees to that).
pub(crate) fn compile(point: &Point, root: NodeId, members: bool, fuse: bool) -> Result<Code, String> {
    let mut c = Compiler::new(point, root, members, fuse);
    c.find_heads();
    c.make_blocks(root);
    c.number_nodes();
    c.emit()?;
    c.find_repeated_places();
    let mut code = c.finish(root)?;
    if fuse {
        ahead::find(&mut code);
    }
    Ok(code)
}

/// The hash of a place that its draws are keyed by.
fn place_key(place: &Place) -> u64 {
    let key = Key::new(0).with(u64::from(place.file)).with_text(&place.def).with_text(&place.kind);
    key.with_text(&place.via).with(u64::from(place.number)).bits()
}

struct Draft {
    /// (site, spec) from the outside in.
    chain: Vec<(u32, u32)>,
    /// The plan's nodes by stage, then member.
    nodes: Vec<Vec<NodeId>>,
    end: End,
    base: u32,
    pc: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Leaf,
    Call,
    Lb,
}

const NOT: u32 = u32::MAX;

struct Compiler<'a> {
    point: &'a Point,
    reachable: Vec<bool>,
    head: Vec<bool>,
    /// Block and index in it of each head.
    block_of: Vec<(u32, u32)>,
    drafts: Vec<Draft>,
    /// Number of each node among those of its place in the scenario.
    number: Vec<u32>,
    /// Constant waits that the next step will stand behind.
    wait_ns: u64,
    fuse: bool,
    code: Code,
}

/// What a stage does on the way back.
enum Post {
    Op(Op),
    Wait(Dist),
}

impl<'a> Compiler<'a> {
    fn new(point: &'a Point, root: NodeId, members: bool, fuse: bool) -> Compiler<'a> {
        let n = point.nodes.len();
        let mut reachable = vec![false; n];
        let mut seen_list = vec![false; point.lists.len()];
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut reachable[id as usize], true) {
                continue;
            }
            match inside(point, id) {
                To::None => {}
                To::Node(child) => stack.push(child),
                To::List(l) => {
                    if !std::mem::replace(&mut seen_list[l as usize], true) {
                        stack.extend(&point.lists[l as usize]);
                    }
                }
            }
        }
        let code = Code {
            steps: Vec::new(),
            covers: Vec::new(),
            cover_list: Vec::new(),
            start: Target { pc: 0, member: 0 },
            prefix_ns: 0,
            draws: Vec::new(),
            draw_keys: Vec::new(),
            place_keys: point.places.iter().map(place_key).collect(),
            lbs: Vec::new(),
            instances: Vec::new(),
            lists: Vec::new(),
            targets: Vec::new(),
            weights: Vec::new(),
            queues: Vec::new(),
            queue_count: 0,
            gauge_count: 0,
            retries: Vec::new(),
            faults: Vec::new(),
            fault_nodes: Vec::new(),
            calls: Vec::new(),
            call_targets: Vec::new(),
            blocks: Vec::new(),
            stages: Vec::new(),
            order: Vec::new(),
            members: 0,
            part_count: 0,
            refusal_count: 0,
            repeat_count: 0,
            mask: if members { u32::MAX } else { 0 },
            depth: 0,
            retry_depth: 0,
            visits: 0,
            excludes: false,
            fused: fuse,
        };
        Compiler {
            point,
            reachable,
            head: vec![false; n],
            block_of: vec![(NOT, NOT); n],
            drafts: Vec::new(),
            number: vec![0; n],
            wait_ns: 0,
            fuse,
            code,
        }
    }

    /// Heads of blocks: targets, nodes with several ways in, the root (which has none).
    fn find_heads(&mut self) {
        let mut ways_in = vec![0u8; self.point.nodes.len()];
        let mut seen_list = vec![false; self.point.lists.len()];
        for id in 0..self.point.nodes.len() {
            if !self.reachable[id] {
                continue;
            }
            match inside(self.point, id as u32) {
                To::None => {}
                To::Node(child) => ways_in[child as usize] = ways_in[child as usize].saturating_add(1),
                To::List(l) => {
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

    /// Groups chains of equal shape. Nodes come after all that they lead to, so callees have their block already.
    fn make_blocks(&mut self, root: NodeId) {
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let (mut chain, mut shape) = (Vec::new(), Vec::new());
        for id in 0..self.point.nodes.len() as u32 {
            if !self.head[id as usize] {
                continue;
            }
            chain.clear();
            shape.clear();
            if id == root {
                // Its block ends the request, so nobody may share it.
                shape.push(u64::MAX >> 1);
            }
            let mut at = id;
            let end = loop {
                chain.push(at);
                let node = &self.point.nodes[at as usize];
                shape.push(u64::from(node.site) << 32 | u64::from(node.spec));
                match inside(self.point, at) {
                    To::None => break End::Leaf,
                    To::List(_) => break End::Lb,
                    To::Node(child) if self.head[child as usize] => {
                        shape.push(u64::MAX - u64::from(self.block_of[child as usize].0));
                        break End::Call;
                    }
                    To::Node(child) => at = child,
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
        self.code.members = base;
        self.code.queue_count = base;
    }

    fn number_nodes(&mut self) {
        let mut next = vec![0; self.point.places.len()];
        for id in 0..self.point.nodes.len() {
            if self.reachable[id] {
                let site = self.point.nodes[id].site as usize;
                let place = self.point.sites[site].place as usize;
                self.number[id] = next[place];
                next[place] += 1;
            }
        }
    }

    fn emit(&mut self) -> Result<(), String> {
        let mut drafts = std::mem::take(&mut self.drafts);
        for (block, draft) in drafts.iter_mut().enumerate() {
            draft.pc = self.code.steps.len() as u32;
            self.emit_block(block as u32, draft);
            if self.code.steps.len() > MOST || self.code.part_count as usize > MOST {
                return Err("the topology has too many different nodes to simulate".into());
            }
        }
        self.drafts = drafts;
        Ok(())
    }

    fn add_stages(&mut self, block: u32, draft: &Draft) -> u32 {
        let first = self.code.stages.len() as u32;
        let members = draft.nodes[0].len() as u32;
        for (position, (&(site, spec), nodes)) in draft.chain.iter().zip(&draft.nodes).enumerate() {
            let part = offset(self.code.part_count, draft.base, self.code.mask);
            self.code.part_count += if self.code.mask == 0 { 1 } else { members };
            self.code.stages.push(Stage {
                site,
                spec,
                block,
                position: position as u32,
                part,
                wait_ns: 0,
                nodes: nodes.clone(),
                refusals: None,
                repeats: None,
                queue: None,
            });
        }
        let stages = first..self.code.stages.len() as u32;
        self.code.blocks.push(Block {
            base: draft.base,
            members,
            stages,
            calls: None,
            leaf: draft.end == End::Leaf,
        });
        first
    }

    fn emit_block(&mut self, block: u32, draft: &Draft) {
        let first = self.add_stages(block, draft);
        let inner: Vec<Option<Post>> =
            (0..draft.chain.len()).map(|i| self.emit_stage(first + i as u32, draft, i)).collect();
        if draft.end == End::Call {
            let offset = (self.code.call_targets.len() as u32).wrapping_sub(draft.base);
            let call = self.code.calls.len() as u32;
            self.code.calls.push(CallSite { offset });
            if let Some(block) = self.code.blocks.last_mut() {
                block.calls = Some(call);
            }
            for &node in draft.nodes.last().into_iter().flatten() {
                // The block's first step is not known yet where it comes later; `finish` fills it in.
                if let To::Node(child) = inside(self.point, node) {
                    self.code.call_targets.push(Target { pc: NOT, member: child });
                }
            }
            self.op(Op::Call { call }, &[]);
            self.op(Op::Back, &[]);
        }
        let mut waiting = Vec::new();
        for (i, post) in inner.into_iter().enumerate().rev() {
            waiting.push(first + i as u32);
            match post {
                None => {}
                Some(Post::Wait(time)) => {
                    let (site, _) = draft.chain[i];
                    self.wait(&time, purpose::BACK, self.point.sites[site as usize].place, first + i as u32);
                }
                Some(Post::Op(op @ Op::Tried { .. })) => {
                    // The nodes inside fail with each attempt, the retry itself with the last one only.
                    let itself = waiting.pop();
                    self.op(op, &waiting);
                    waiting = itself.into_iter().collect();
                }
                Some(Post::Op(op)) => {
                    self.op(op, &waiting);
                    waiting.clear();
                    self.patch_skip(first + i as u32);
                }
            }
        }
        self.op(Op::Return, &waiting);
    }

    fn op(&mut self, op: Op, covers: &[u32]) {
        let from = self.code.cover_list.len() as u32;
        self.code.cover_list.extend(covers);
        self.code.covers.push((from, self.code.cover_list.len() as u32));
        let wait_ns = std::mem::take(&mut self.wait_ns);
        self.code.steps.push(Step { wait_ns, op });
    }

    /// The step after the one just emitted is where a request that the stage refused goes on.
    fn patch_skip(&mut self, stage: u32) {
        let next = self.code.steps.len() as u32;
        match self.code.steps.last().map(|s| s.op) {
            Some(Op::Leave { queue }) => self.code.queues[queue as usize].skip = next,
            Some(Op::Done { lb }) => self.code.lbs[lb as usize].skip = next,
            Some(Op::Pass) => {
                if let Some(fault) = self.code.faults.iter_mut().rev().find(|f| f.stage == stage) {
                    fault.skip = next;
                }
            }
            _ => {}
        }
    }

    fn refusals(&mut self, stage: u32, draft: &Draft) {
        self.code.stages[stage as usize].refusals = Some(self.code.refusal_count.wrapping_sub(draft.base));
        self.code.refusal_count += draft.nodes[0].len() as u32;
    }

    /// Emits what the stage does on the way in; returns what it does on the way back.
    fn emit_stage(&mut self, stage: u32, draft: &Draft, position: usize) -> Option<Post> {
        let (site, spec) = draft.chain[position];
        let place = self.point.sites[site as usize].place;
        let point = self.point;
        match &point.specs[spec as usize] {
            Spec::Server { .. } | Spec::Weight { .. } => None,
            Spec::Delay { time } => {
                self.wait(time, purpose::WORK, place, stage);
                None
            }
            Spec::Cable { time, .. } => {
                self.wait(time, purpose::OUT, place, stage);
                Some(Post::Wait(time.clone()))
            }
            Spec::Queue { concurrency, capacity, .. } => {
                let limits = Limits { concurrency: *concurrency, capacity: capacity.unwrap_or(u64::MAX) };
                Some(Post::Op(self.queue(stage, draft, limits)))
            }
            Spec::Retry(config) => {
                let retry = self.code.retries.len() as u32;
                self.code.excludes |= config.exclude != Exclude::None;
                self.op(Op::Try { retry }, &[]);
                let again = self.code.steps.len() as u32;
                let repeats = self.code.repeat_count.wrapping_sub(draft.base);
                self.code.repeat_count += draft.nodes[0].len() as u32;
                self.code.stages[stage as usize].repeats = Some(repeats);
                self.code.retries.push(RetrySite { config: config.clone(), again, repeats });
                Some(Post::Op(Op::Tried { retry }))
            }
            Spec::Faulty(Faulty { mtbf_ns, mttr_ns, clock, starts_up, .. }) => {
                let fault = self.code.faults.len() as u32;
                let offset = (self.code.fault_nodes.len() as u32).wrapping_sub(draft.base);
                let law = Law::new(*mtbf_ns, *mttr_ns, *clock == Clock::Lazy, *starts_up);
                self.code.faults.push(FaultSite { law, offset, stage, skip: NOT });
                let numbers = draft.nodes[position].iter().map(|&n| (fault, place, self.number[n as usize]));
                self.code.fault_nodes.extend(numbers);
                self.refusals(stage, draft);
                self.op(Op::Fault { fault }, &[]);
                Some(Post::Op(Op::Pass))
            }
            Spec::Lb(Lb { balance, .. }) => {
                let lb = self.code.lbs.len() as u32;
                let offset = (self.code.instances.len() as u32).wrapping_sub(draft.base);
                for &node in &draft.nodes[position] {
                    let To::List(list) = point.nodes[node as usize].to else { continue };
                    let number = self.number[node as usize];
                    self.code.instances.push(Instance { lb, list, place, number });
                }
                let (ordered, counts) = (balance.remembers_picks(), balance.counts_in_flight());
                let site = LbSite { balance: balance.clone(), offset, stage, skip: NOT, ordered, counts };
                self.code.lbs.push(site);
                self.op(Op::Pick { lb }, &[]);
                Some(Post::Op(Op::Done { lb }))
            }
            _ => None,
        }
    }

    fn queue(&mut self, stage: u32, draft: &Draft, limits: Limits) -> Op {
        let members = draft.nodes[0].len() as u32;
        let block = self.code.stages[stage as usize].block;
        let queue = self.code.queues.len() as u32;
        // The block's first queue stands with its member; further ones behind all members.
        let first = self.code.queues.last().is_none_or(|q| self.code.stages[q.stage as usize].block != block);
        let slot = if first { 0 } else { self.code.queue_count.wrapping_sub(draft.base) };
        if !first {
            self.code.queue_count += members;
        }
        self.code.queues.push(QueueSite {
            limits,
            offset: slot,
            gauge: offset(self.code.gauge_count, draft.base, self.code.mask),
            part: self.code.stages[stage as usize].part,
            stage,
            skip: NOT,
            ahead: false,
            members,
            base: draft.base,
        });
        self.code.gauge_count += if self.code.mask == 0 { 1 } else { members };
        self.code.stages[stage as usize].queue = Some(queue);
        if limits.capacity != u64::MAX {
            self.refusals(stage, draft);
        }
        self.op(Op::Enter { queue }, &[]);
        Op::Leave { queue }
    }

    /// A wait: a constant one stands before the next step, a drawn one is a step.
    fn wait(&mut self, time: &Dist, purpose: u64, place: u32, stage: u32) {
        let sampler = Sampler::new(time);
        let entry = &mut self.code.stages[stage as usize];
        if let Some(ns) = sampler.constant() {
            entry.wait_ns = entry.wait_ns.saturating_add(ns);
            self.wait_ns = self.wait_ns.saturating_add(ns);
        } else {
            let part = entry.part;
            let known = self.code.draw_keys.iter().position(|k| *k == (purpose, place));
            let key = known.unwrap_or_else(|| {
                self.code.draw_keys.push((purpose, place));
                self.code.draw_keys.len() - 1
            }) as u32;
            self.code.draws.push(DrawSite { sampler, part, key, visits: None });
            self.op(Op::Draw { draw: self.code.draws.len() as u32 - 1 }, &[]);
        }
        if !self.fuse {
            self.op(Op::Turn, &[]);
        }
    }

    /// Gives a counter to each place that a request can pass more than once on one way.
    fn find_repeated_places(&mut self) {
        let mut stages_of = vec![0u32; self.code.draw_keys.len()];
        self.code.draws.iter().for_each(|d| stages_of[d.key as usize] += 1);
        for key in 0..stages_of.len() as u32 {
            // A place in a single block repeats only where members of that block lead to one another, which takes a
            // loop in the file; those are rare enough to look at them all.
            let looped = self.drafts.iter().any(|d| d.end == End::Lb && d.nodes[0].len() > 1);
            if stages_of[key as usize] < 2 && !looped {
                continue;
            }
            let (_, place) = self.code.draw_keys[key as usize];
            if self.most_visits(place) > 1 {
                let counter = Some(self.code.visits as u32);
                self.code.visits += 1;
                self.code.draws.iter_mut().filter(|d| d.key == key).for_each(|d| d.visits = counter);
            }
        }
    }

    /// How often one way from the root can pass a place.
    fn most_visits(&self, place: u32) -> u32 {
        let mut behind = vec![0u32; self.point.nodes.len()];
        let mut of_list: Vec<Option<u32>> = vec![None; self.point.lists.len()];
        let mut most = 0;
        for id in 0..self.point.nodes.len() {
            if !self.reachable[id] {
                continue;
            }
            let beyond = match inside(self.point, id as u32) {
                To::None => 0,
                To::Node(child) => behind[child as usize],
                To::List(l) => *of_list[l as usize].get_or_insert_with(|| {
                    self.point.lists[l as usize].iter().map(|&t| behind[t as usize]).max().unwrap_or(0)
                }),
            };
            let here = self.point.sites[self.point.nodes[id].site as usize].place == place;
            behind[id] = beyond + u32::from(here);
            most = most.max(behind[id]);
        }
        most
    }

    fn finish(mut self, root: NodeId) -> Result<Code, String> {
        let drafts = &self.drafts;
        let target = |id: NodeId| {
            let (block, index) = self.block_of[id as usize];
            Target { pc: drafts[block as usize].pc, member: drafts[block as usize].base + index }
        };
        for t in &mut self.code.call_targets {
            *t = target(t.member);
        }
        let weight = |id: NodeId| match &self.point.specs[self.point.nodes[id as usize].spec as usize] {
            Spec::Weight { weight } => *weight,
            _ => 1.0,
        };
        let used: Vec<bool> = {
            let mut used = vec![false; self.point.lists.len()];
            self.code.instances.iter().for_each(|i| used[i.list as usize] = true);
            used
        };
        for (list, used) in self.point.lists.iter().zip(used) {
            let list: &[NodeId] = if used { list } else { &[] };
            let targets: Vec<Target> = list.iter().map(|&id| target(id)).collect();
            let in_a_row = |first: &Target| {
                let row = targets.iter().zip(first.member..);
                row.into_iter().all(|(t, member)| *t == Target { pc: first.pc, member })
            };
            self.code.lists.push(match targets.first().filter(|first| in_a_row(first)) {
                Some(first) => Targets::Members(*first),
                None => Targets::Table(self.code.targets.len() as u32, targets.len() as u32),
            });
            if let Some(Targets::Table(..)) = self.code.lists.last() {
                self.code.targets.extend(targets);
            }
            self.code.weights.push(list.iter().map(|&id| weight(id)).collect());
        }
        self.code.start = target(root);
        // Nothing leads to the root, so its block has one member and its return ends the request.
        let root_block = self.block_of[root as usize].0 as usize;
        let next = drafts.get(root_block + 1).map_or(self.code.steps.len(), |d| d.pc as usize);
        self.code.steps[next - 1].op = Op::End;
        self.code.depth = self.depth(root, false)?;
        self.code.retry_depth = self.depth(root, true)?;
        self.code.order = self.order(root_block);
        Ok(self.code)
    }

    /// What a request from `root` passes at most, one inside another: balancers and calls (a frame each), or retries.
    fn depth(&self, root: NodeId, retries: bool) -> Result<usize, String> {
        let mut behind = vec![0u32; self.point.nodes.len()];
        let mut of_list: Vec<Option<u32>> = vec![None; self.point.lists.len()];
        for id in 0..=root as usize {
            if !self.reachable[id] {
                continue;
            }
            let retry = matches!(self.point.specs[self.point.nodes[id].spec as usize], Spec::Retry(_));
            behind[id] = u32::from(retry && retries)
                + match inside(self.point, id as u32) {
                    To::None => 0,
                    To::Node(child) => {
                        behind[child as usize] + u32::from(self.head[child as usize] && !retries)
                    }
                    To::List(l) => {
                        let most = of_list[l as usize].get_or_insert_with(|| {
                            self.point.lists[l as usize]
                                .iter()
                                .map(|&t| behind[t as usize])
                                .max()
                                .unwrap_or(0)
                        });
                        *most + u32::from(!retries)
                    }
                };
        }
        let depth = behind[root as usize] as usize;
        let (most, what) = if retries { (200, "retries") } else { (10_000, "balancers and shared nodes") };
        if depth > most {
            return Err(format!(
                "a request would pass {depth} {what} one inside another; {most} is the limit"
            ));
        }
        Ok(depth)
    }

    /// All stages, outside in, blocks in the order in which the first members lead to them.
    fn order(&self, root_block: usize) -> Vec<u32> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.drafts.len()];
        let mut stack = vec![root_block];
        while let Some(block) = stack.pop() {
            if std::mem::replace(&mut seen[block], true) {
                continue;
            }
            order.extend(self.code.blocks[block].stages.clone());
            let mut next = Vec::new();
            for &node in self.drafts[block].nodes.last().into_iter().flatten() {
                match inside(self.point, node) {
                    To::Node(child) => next.push(self.block_of[child as usize].0 as usize),
                    To::List(l) => {
                        let list = &self.point.lists[l as usize];
                        next.extend(list.iter().map(|&t| self.block_of[t as usize].0 as usize));
                    }
                    To::None => {}
                }
                next.retain(|b| *b != usize::MAX && !seen[*b]);
                next.dedup();
                if next.len() > 4 * self.drafts.len() {
                    next.sort_unstable();
                    next.dedup();
                }
            }
            next.reverse();
            stack.extend(next);
        }
        order
    }
}

/// What a node leads to; a server leads to its model.
fn inside(point: &Point, id: NodeId) -> To {
    let node = &point.nodes[id as usize];
    match &point.specs[node.spec as usize] {
        Spec::Server { model: Some(model), .. } => To::Node(*model),
        _ => node.to,
    }
}

fn offset(next: u32, base: u32, mask: u32) -> u32 {
    next.wrapping_sub(base & mask)
}
