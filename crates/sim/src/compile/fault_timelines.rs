//! Compiles nodes that fail in other ways than by refusing.

use crate::code::StageId;
use crate::code::changes::Birth;
use crate::code::fault_timelines::DownSite;
use crate::code::fault_timelines::LineKey;
use crate::code::fault_timelines::LineSite;
use crate::code::{ColdOp, NOT, Op};
use crate::compile::blocks::{Draft, inside, spare};
use crate::compile::owners::Owners;
use crate::compile::{Compiler, Post};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::{Clock, Edge, Faulty as Spec, Line, Mode};

impl Compiler<'_> {
    /// The blocks of nodes that fail together.
    pub(crate) fn find_failing_blocks(&mut self) {
        let blocks = self.layout.reached().filter_map(|(id, spec)| match spec {
            weir_plan::Spec::Faulty(Spec { line: Line::Block(block), .. }) => {
                Some((self.layout.place(id), *block))
            }
            _ => None,
        });
        self.code.lines.blocks = blocks.collect();
    }

    pub(crate) fn down(
        &mut self,
        stage: StageId,
        fault: &Spec,
        draft: &Draft,
        position: usize,
    ) -> Option<Post> {
        let offset = (self.code.lines.of_node.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let line = if fault.mode == Mode::Pause { self.pause_line(node) } else { self.line(fault, node) };
            let crashes = fault.mode == Mode::Crash;
            self.code.lines.lines[line as usize].eager |= crashes && fault.clock == Clock::Eager;
            self.code.lines.of_node.push(line);
            if crashes {
                self.code.lines.crashing.push((node, line));
            }
        }
        if matches!(fault.mode, Mode::Refuse | Mode::Crash) {
            self.layout.add_refusals(&mut self.code, stage, draft);
        }
        self.code.details = true;
        let (mode, slow, checks_pass) = (fault.mode, fault.slow, fault.checks_pass);
        self.code.lines.sites.push(DownSite { mode, slow, checks_pass, offset, stage, skip: NOT });
        let down = self.code.lines.sites.len() as u32 - 1;
        self.op(Op::Cold(ColdOp::EnterFaulty { down }), &[]);
        if mode == Mode::Pause {
            let pause = self.own_pauses(draft, position);
            self.wait_for_process(pause, stage, draft.chain[position].0, true);
            return Some(Post::Pause { pause });
        }
        Some(Post::Op(match mode {
            Mode::Refuse | Mode::Blackhole | Mode::Pause => Op::CountErrors,
            Mode::Slow => Op::Cold(ColdOp::LeaveScaled { slow: true }),
            Mode::Crash => Op::LeaveFaulty { down },
        }))
    }

    /// The timeline of a faulty node.
    pub(super) fn line(&mut self, fault: &Spec, node: u32) -> u32 {
        if let Some(&known) = self.code.lines.shared.get(&fault.line) {
            return known;
        }
        let place = self.layout.place(node);
        let tables = &mut self.code.lines;
        let key = match &fault.line {
            Line::Own | Line::Driven(_) => LineKey::Node(place, self.layout.number[node as usize]),
            Line::Together(name) => LineKey::Name(name.clone()),
            // Numbered among those of their site: what the file creates elsewhere changes nothing.
            Line::Block(block) => {
                LineKey::Node(place, tables.blocks.range((place, 0)..(place, *block)).count() as u32)
            }
        };
        let law = fault.law();
        let line = tables.lines.len() as u32;
        let is_driven = matches!(fault.line, Line::Driven(_));
        tables.lines.push(LineSite { law, key, eager: false, is_driven, anew: Vec::new() });
        match fault.line {
            Line::Driven(_) => tables.driven.push((node, line)),
            Line::Own | Line::Block(_) => self.born.push((node, Birth::Line(line))),
            Line::Together(_) => {}
        }
        if matches!(fault.line, Line::Together(_) | Line::Block(_)) {
            self.code.lines.shared.insert(fault.line.clone(), line);
        }
        line
    }

    /// Finds what begins anew when a process restarts.
    pub(crate) fn find_restarts(&mut self) {
        if self.beginnings.is_empty() {
            return;
        }
        let point = self.layout.point;
        let crashing: BTreeSet<u32> = self.code.lines.crashing.iter().map(|(node, _)| *node).collect();
        let driven = self.code.lines.driven.iter().copied();
        let driven: BTreeMap<u32, u32> = driven.filter(|(node, _)| crashing.contains(node)).collect();
        let entrances: BTreeSet<u32> = driven.keys().copied().collect();
        let owners = (!entrances.is_empty()).then(|| Owners::new(&self.layout, &entrances));
        for (&node, &birth) in owners.iter().flat_map(|_| &self.beginnings) {
            for entrance in owners.iter().flat_map(|owners| owners.around(node)) {
                self.code.lines.lines[driven[&entrance] as usize].anew.push(birth);
            }
        }
        let is_crashing = |(node, _): &(u32, u32)| !driven.contains_key(node);
        let crashing: Vec<_> = self.code.lines.crashing.iter().copied().filter(is_crashing).collect();
        for (node, line) in crashing {
            let (mut seen, mut stack) = (BTreeSet::new(), vec![node]);
            while let Some(id) = stack.pop() {
                if !seen.insert(id) {
                    continue;
                }
                self.code.lines.lines[line as usize].anew.extend(self.beginnings.get(&id));
                stack.extend(spare(point, id));
                match inside(point, id) {
                    Edge::None => {}
                    Edge::Node(child) => stack.push(child),
                    Edge::List(l) => stack.extend(&point.lists[l as usize]),
                }
            }
        }
        for line in &mut self.code.lines.lines {
            line.anew.sort_unstable();
            line.anew.dedup();
        }
    }
}
