//! What all loops of a process share: the clock, the seed, their mailboxes, the way to the built-in servers, and state that
//! is the process's.

use crate::control::built_in::BuiltIn;
use crate::control::handoff::Guests;
use crate::control::mailbox::ToLoop;
use crate::graph::state::Shared;
use crate::io::clock::Clock;
use crate::log::error_log::Words;
use crate::nodes::NodeId;
use crate::nodes::lb::common::Common;
use crate::nodes::lb::load::Loads;
use crate::upstream::limit::Limit;
use crate::upstream::names::Names;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use tokio::sync::mpsc::UnboundedSender;
use weir_topology::plan::{Node, Point, Spec, To};

/// Shared by all loops.
pub(crate) struct Process {
    pub clock: Clock,
    /// Where draws begin.
    pub seed: u64,
    /// What nobody outside can guess: the secret of cookies, the proof of health checks.
    pub secret: [u64; 2],
    pub built_in: BuiltIn,
    /// Names of origins.
    pub names: Names,
    /// What is said on standard error.
    pub words: Arc<Words>,
    /// Servers that may have so many connections only.
    pub connections: BTreeMap<NodeId, Arc<Limit>>,
    /// Queues, limits, budgets, faults.
    pub shared: Shared,
    /// What all loops know of balancers, by their nodes.
    pub lbs: BTreeMap<NodeId, Arc<Common>>,
    /// Connections that are being handed over.
    pub guests: Guests,
    /// Loops that have not ended.
    pub serving: AtomicU32,
    /// The mailboxes of the loops that serve, by their numbers.
    pub mail: Vec<UnboundedSender<ToLoop>>,
}

impl Process {
    /// Loops that serve.
    pub fn loops(&self) -> u32 {
        self.mail.len() as u32
    }

    /// Tells a loop that serves; one that has ended needs no telling.
    pub fn tell(&self, number: u32, message: ToLoop) {
        if let Some(mail) = self.mail.get(number as usize) {
            let _ = mail.send(message);
        }
    }

    /// What all loops know of each balancer of a plan.
    pub fn lbs(point: &Point) -> BTreeMap<NodeId, Arc<Common>> {
        let loads = Loads::of(point);
        let of = |(id, node): (NodeId, &Node)| {
            let Spec::Lb(lb) = &point.specs[node.spec as usize] else { return None };
            let targets = if let To::List(list) = node.to { &point.lists[list as usize][..] } else { &[] };
            let common = Common::new(targets.len(), lb.outlier.is_some(), loads.among(targets));
            Some((id, Arc::new(common)))
        };
        (0..).zip(&point.nodes).filter_map(of).collect()
    }
}
