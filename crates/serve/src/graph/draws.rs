//! The keys of draws of a plan's nodes: those of the simulator for the same seed.

use crate::exchange::NodeId;
use crate::nodes::cable;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use weir_model::draws::{of_place, purpose};
use weir_plan::{Line, Point, Spec};
use weir_stats::Key;
use weir_workload::Places;

/// The keys of a plan's nodes before any request.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    places: Places,
    key: Key,
    /// Blocks by their numbers in the file: their numbers among the blocks of their place.
    blocks: BTreeMap<u32, u64>,
    /// In a verification: the nodes of members that join while it runs, ascending, with when they do, ns.
    joins: Arc<[(Range<NodeId>, u64)]>,
}

impl Draws {
    /// The keys of nodes that are met from these on; `key`: the seed's, of a replication.
    pub fn new(point: &Point, roots: &[NodeId], key: Key) -> Draws {
        let places = Places::new(point, roots);
        let mut met: BTreeSet<(u32, u32)> = BTreeSet::new();
        for (id, node) in (0..).zip(&point.nodes) {
            if let Spec::Faulty(faulty) = &point.specs[node.spec as usize]
                && let Line::Block(block) = faulty.line
                && places.meets(id)
            {
                met.insert((places.place_of(id), block));
            }
        }
        let before = |(place, block): &(u32, u32)| met.range((*place, 0)..(*place, *block)).count() as u64;
        let blocks = met.iter().map(|at| (at.1, before(at))).collect();
        Draws { places, key, blocks, joins: Arc::default() }
    }

    /// The same where these nodes join while it runs; ascending.
    pub fn with_joins(self, joins: &[(Range<NodeId>, u64)]) -> Draws {
        Draws { joins: joins.into(), ..self }
    }

    /// The number of a node among those of its place.
    pub fn number(&self, node: NodeId) -> u32 {
        self.places.number_of(node)
    }

    /// When the member joins that a node belongs to, ns; `None`: it is there from the start.
    pub fn joined_ns(&self, node: NodeId) -> Option<u64> {
        let at = self.joins.partition_point(|(nodes, _)| nodes.end <= node);
        self.joins.get(at).filter(|(nodes, _)| nodes.contains(&node)).map(|(_, at_ns)| *at_ns)
    }

    /// Whether a node's draws are the same by these keys as by others.
    pub fn are_those_of(&self, other: &Draws, node: NodeId) -> bool {
        let keys = |draws: &Draws| (draws.choice(node).bits(), draws.work(node).bits());
        keys(self) == keys(other)
    }

    fn of_place(&self, node: NodeId, what: u64) -> Key {
        self.places.place(node, self.key.with(purpose::DRAW).with(what))
    }

    /// Work, or a delay.
    pub fn work(&self, node: NodeId) -> Key {
        self.of_place(node, of_place::WORK)
    }

    /// Whether a `flaky` node fails.
    pub fn failure(&self, node: NodeId) -> Key {
        self.of_place(node, of_place::FAILURE)
    }

    /// A cable's crossings.
    pub fn crossings(&self, node: NodeId) -> cable::Keys {
        cable::Keys {
            out: self.of_place(node, of_place::OUT),
            back: self.of_place(node, of_place::BACK),
            lost_out: self.of_place(node, of_place::LOSS_OUT),
            lost_back: self.of_place(node, of_place::LOSS_BACK),
        }
    }

    /// A pick, a split's share, a backoff.
    pub fn choice(&self, node: NodeId) -> Key {
        self.places.node(node, self.key.with(purpose::CHOICE))
    }

    /// A key of a balancer's own on a loop.
    pub fn state(&self, node: NodeId, on_loop: u32) -> Key {
        let own = self.places.node(node, self.key.with(purpose::NODE));
        if on_loop == 0 { own } else { own.with(purpose::LOOP).with(u64::from(on_loop)) }
    }

    /// The timeline of a faulty node.
    pub fn time_line(&self, node: NodeId, line: &Line) -> Key {
        let key = self.key.with(purpose::NODE);
        match line {
            // Only a simulation has nodes that changes drive.
            Line::Own | Line::Driven(_) => self.places.node(node, key),
            Line::Together(name) => key.with(purpose::TOGETHER).with_text(name),
            Line::Block(block) => {
                self.places.place(node, key).with(self.blocks.get(block).copied().unwrap_or_default())
            }
        }
    }
}
