//! The timelines of nodes that fail together, crash, vanish or slow down.

use crate::code::Code;
use std::collections::{BTreeMap, BTreeSet};
use weir_model::draws::purpose;
use weir_model::faulty::{Faulty, Law};
use weir_plan::{Line, Mode};
use weir_stats::Key;

/// The place of nodes that fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DownSite {
    pub mode: Mode,
    /// What work takes longer by while it is down.
    pub slow: f64,
    /// Whether checks pass while it is down.
    pub checks_pass: bool,
    /// Member to [`LineTables::of_node`].
    pub offset: u32,
    pub stage: u32,
    /// Where a request goes on that it refuses, or that a crash cuts off.
    pub skip: u32,
}

/// The time-line of a faulty node, or of several.
#[derive(Clone, Debug)]
pub(crate) struct LineSite {
    pub law: Law,
    pub key: LineKey,
    /// Whether it flips by events: there is something to do when it does.
    pub eager: bool,
    /// Warm-ups that begin anew when it comes up again.
    pub warmups: Vec<u32>,
}

/// What the periods of a time-line are drawn by.
#[derive(Clone, Debug)]
pub(crate) enum LineKey {
    /// Place, and number at it.
    Node(u32, u32),
    Name(String),
}

/// What a scenario knows of its time-lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineTables {
    pub sites: Vec<DownSite>,
    pub lines: Vec<LineSite>,
    /// The time-line of each faulty node.
    pub of_node: Vec<u32>,
    /// Nodes of processes that crash, each with its time-line.
    pub crashing: Vec<(u32, u32)>,
    /// Time-lines that several nodes share.
    pub shared: BTreeMap<Line, u32>,
    /// Place and number of every `block(...)` that requests can meet.
    pub blocks: BTreeSet<(u32, u32)>,
}

impl LineTables {
    /// All time-lines at their start.
    pub fn start(&self, code: &Code, key: Key) -> Vec<Faulty> {
        let node = key.with(purpose::NODE);
        let start = |line: &LineSite| {
            let key = match &line.key {
                LineKey::Node(place, number) => {
                    node.with(code.place_keys[*place as usize]).with(u64::from(*number))
                }
                LineKey::Name(name) => node.with(purpose::TOGETHER).with_text(name),
            };
            Faulty::new(&line.law, key)
        };
        self.lines.iter().map(start).collect()
    }
}
