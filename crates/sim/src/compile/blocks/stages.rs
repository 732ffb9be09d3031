//! The stages of a block: what each site counts, and where its members are in the tables.

use super::{Draft, End, Layout, NOT, inside, offset};
use crate::code::CallSite;
use crate::code::MemberId;
use crate::code::SiteId;
use crate::code::StageId;
use crate::code::{Block, Code, Instance, Stage, Target};
use weir_plan::{Edge, Mode, Spec};

impl Layout<'_> {
    /// Adds a block and its stages; returns the number of the first one.
    pub fn add_stages(&self, code: &mut Code, block: u32, draft: &Draft) -> u32 {
        let first = code.stages.len() as u32;
        let members = draft.nodes[0].len() as u32;
        for (&(site, spec), nodes) in draft.chain.iter().zip(&draft.nodes) {
            let part = offset(code.part_count, draft.base, code.mask);
            code.part_count += if code.mask == 0 { 1 } else { members };
            code.stages.push(Stage {
                site: SiteId(site),
                spec,
                block,
                part,
                wait_ns: 0,
                nodes: nodes.clone(),
                refusals: None,
                repeats: None,
                gauge: None,
                slots: 0.0,
                parallel: false,
                entries: None,
                cuts: None,
            });
        }
        let stages = first..code.stages.len() as u32;
        code.blocks.push(Block {
            base: draft.base,
            members,
            stages,
            calls: None,
            leaf: draft.end == End::Leaf,
        });
        first
    }

    /// Adds the call in which a block ends; its targets are node numbers until [`Layout::finish`].
    pub fn add_call(&self, code: &mut Code, draft: &Draft) -> u32 {
        let offset = (code.call_targets.len() as u32).wrapping_sub(draft.base);
        let call = code.calls.len() as u32;
        let last = draft.chain.last().map(|&(_, spec)| &self.point.specs[spec as usize]);
        let sends_in = match last {
            Some(Spec::Timeout { time_ns }) => time_ns.is_some(),
            Some(Spec::Faulty(fault)) => fault.mode == Mode::Crash,
            Some(Spec::Hedge(_)) => true,
            _ => false,
        };
        code.calls.push(CallSite { offset, sends_in });
        if let Some(block) = code.blocks.last_mut() {
            block.calls = Some(call);
        }
        for &node in draft.nodes.last().into_iter().flatten() {
            if let Edge::Node(child) = inside(self.point, node) {
                code.call_targets.push(Target { pc: NOT, member: MemberId(child) });
            }
        }
        call
    }

    /// Adds the balancers of a site, one per member; returns the distance from the members' numbers to theirs.
    pub fn add_instances(&self, code: &mut Code, draft: &Draft, position: usize, lb: u32) -> u32 {
        let offset = (code.instances.len() as u32).wrapping_sub(draft.base);
        let (site, _) = draft.chain[position];
        let place = self.point.sites[site as usize].place;
        for &node in &draft.nodes[position] {
            let Edge::List(list) = self.point.nodes[node as usize].to else { continue };
            code.instances.push(Instance { lb, list, place, number: self.number[node as usize] });
        }
        offset
    }

    /// Makes room for the refusals of a stage, by member.
    pub fn add_refusals(&self, code: &mut Code, stage: StageId, draft: &Draft) {
        code.stages[stage.index()].refusals = Some(code.refusal_count.wrapping_sub(draft.base));
        code.refusal_count += draft.nodes[0].len() as u32;
    }

    /// Makes room for the requests that are cut off at a stage, by member.
    pub fn add_cuts(&self, code: &mut Code, stage: StageId, draft: &Draft) {
        code.stages[stage.index()].cuts = Some(code.cut_count.wrapping_sub(draft.base));
        code.cut_count += draft.nodes[0].len() as u32;
    }

    /// The index of the key of work and crossings at a place.
    pub fn draw_key(&self, code: &mut Code, purpose: u64, place: u32) -> u32 {
        let known = code.draw_keys.iter().position(|k| *k == (purpose, place));
        known.unwrap_or_else(|| {
            code.draw_keys.push((purpose, place));
            code.draw_keys.len() - 1
        }) as u32
    }
}
