//! The histories of requests: `weir.trace/1`, a line each, or as trace events for Perfetto and Chrome.

mod events;
mod lines;

use std::collections::BTreeMap;
use std::io::{self, Write};
use weir_plan::{NodeId, Point, label, target_labels};
use weir_policy::{Kind, Outcome, TargetId};
use weir_sim::{Recording, Results};

/// The form of a file of histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceForm {
    /// A line of JSON for each request.
    Lines,
    /// Trace events.
    Events,
}

/// The histories to be written.
pub(crate) struct Histories<'a> {
    pub results: &'a Results,
    pub recordings: &'a [Recording<'a>],
    /// Which requests: `slowest:100`.
    pub selection: &'a str,
}

pub(crate) fn write(traced: &Histories<'_>, form: TraceForm, out: &mut dyn Write) -> io::Result<()> {
    match form {
        TraceForm::Lines => lines::write(traced, out),
        TraceForm::Events => events::write(traced, out),
    }
}

/// The names of nodes.
struct Names<'a> {
    point: &'a Point,
    /// By node: its number among those of its site; by site: how many there are.
    numbers: Vec<u32>,
    counts: Vec<u32>,
    targets: BTreeMap<NodeId, Vec<String>>,
}

impl<'a> Names<'a> {
    fn new(point: &'a Point) -> Names<'a> {
        let mut counts = vec![0; point.sites.len()];
        let number = |node: &weir_plan::Node| {
            counts[node.site as usize] += 1;
            counts[node.site as usize] - 1
        };
        let numbers = point.nodes.iter().map(number).collect();
        Names { point, numbers, counts, targets: BTreeMap::new() }
    }

    fn site(&self, node: NodeId) -> &'a str {
        &self.point.sites[self.point.nodes[node as usize].site as usize].label
    }

    /// A node itself: with its number where its site has several.
    fn member(&self, node: NodeId) -> String {
        let name = label(self.point, node);
        match self.counts[self.point.nodes[node as usize].site as usize] {
            1 => name,
            _ => format!("{name} #{}", self.numbers[node as usize]),
        }
    }

    fn target(&mut self, lb: NodeId, target: TargetId) -> &str {
        let names = self.targets.entry(lb).or_insert_with(|| target_labels(self.point, lb));
        names.get(target.index()).map_or("", String::as_str)
    }
}

fn said(outcome: Outcome) -> &'static str {
    outcome.map_or("ok", Kind::name)
}
