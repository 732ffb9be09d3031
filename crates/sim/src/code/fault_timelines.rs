//! The timelines of nodes that fail together, crash, vanish or slow down.

use crate::code::Code;
use crate::code::StageId;
use crate::code::changes::Birth;
use std::collections::{BTreeMap, BTreeSet};
use weir_model::draws::purpose;
use weir_model::faulty::{Faulty, Law};
use weir_model::pause::ProcessClock;
use weir_plan::{Line, Mode};
use weir_stats::Key;

/// The site of nodes that fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DownSite {
    pub mode: Mode,
    /// The factor of work while it is down.
    pub slow: f64,
    /// Whether checks pass while it is down.
    pub checks_pass: bool,
    /// Member to [`LineTables::of_node`].
    pub offset: u32,
    pub stage: StageId,
    /// Where a request continues if the node refuses it or a crash cuts it off.
    pub skip: u32,
}

/// The timeline of a faulty node, or of several.
#[derive(Clone, Debug)]
pub(crate) struct LineSite {
    pub law: Law,
    pub key: LineKey,
    /// Whether it flips by events, because a flip cuts requests off.
    pub eager: bool,
    /// Whether changes drive it, rather than its law.
    pub is_driven: bool,
    /// What begins anew when it comes up again.
    pub anew: Vec<Birth>,
}

/// The key of the periods of a timeline.
#[derive(Clone, Debug)]
pub(crate) enum LineKey {
    /// Site, and number among its members.
    Node(u32, u32),
    Name(String),
}

impl LineKey {
    /// `node` is the key of the nodes' own draws.
    pub fn key(&self, code: &Code, node: Key) -> Key {
        match self {
            LineKey::Node(place, number) => {
                node.with(code.place_keys[*place as usize]).with(u64::from(*number))
            }
            LineKey::Name(name) => node.with(purpose::TOGETHER).with_text(name),
        }
    }
}

/// The tables of a scenario's timelines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineTables {
    pub sites: Vec<DownSite>,
    pub lines: Vec<LineSite>,
    /// The timeline of each faulty node.
    pub of_node: Vec<u32>,
    /// The timeline that stops each member of a stage inside of a process that pauses; `NOT`: none does.
    pub pauses: Vec<u32>,
    /// Nodes of processes that crash, each with its timeline.
    pub crashing: Vec<(u32, u32)>,
    /// Nodes that changes drive, each with its timeline.
    pub driven: Vec<(u32, u32)>,
    /// Timelines that several nodes share.
    pub shared: BTreeMap<Line, u32>,
    /// Site and number of every `block(...)` that requests can reach.
    pub blocks: BTreeSet<(u32, u32)>,
}

impl LineTables {
    /// All timelines at their start.
    pub fn start(&self, code: &Code, key: Key) -> Vec<Faulty> {
        let keys = self.lines.iter().map(|line| (line, line.key.key(code, key.with(purpose::NODE))));
        keys.map(|(line, key)| Faulty::new(&line.law, key)).collect()
    }

    /// The clocks of processes that follow them; empty where none pauses.
    pub fn clocks(&self, code: &Code, key: Key) -> Vec<ProcessClock> {
        let lines = if self.pauses.is_empty() { &[][..] } else { &self.lines };
        let keys = lines.iter().map(|line| (line, line.key.key(code, key.with(purpose::NODE))));
        keys.map(|(line, key)| ProcessClock::new(&line.law, key)).collect()
    }
}
