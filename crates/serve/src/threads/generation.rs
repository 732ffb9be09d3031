//! A topology as it is served: what all threads share of it, and how it comes to a thread.

use super::admission::Admission;
use super::certificates::Certificates;
use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use crate::graph::builder::Thread;
use crate::log::AccessLog;
use crate::nodes::Id;
use crate::nodes::lb::{HealthUpdate, Owner};
use crate::sync::channel::Sender;
use crate::transport::inner::InnerAddress;
use crate::transport::listener::OwnProcessTrust;
use crate::transport::listening::LoopSocket;
use crate::upstream::names::Names;
use crate::upstream::server::MakesRoom;
use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::transport::tls;
use weir_plan::Listen;

/// A listener as all loops see it.
#[derive(Clone)]
pub(crate) struct Conf {
    pub name: String,
    pub listen: Listen,
    pub node: NodeId,
    pub port: Option<u16>,
    /// The number of listeners before it, and for a listener behind others the peers that it trusts.
    pub level: u32,
    pub inner: Option<OwnProcessTrust>,
    /// Loops that accept there.
    pub loops: usize,
    /// Where this process reaches it.
    pub reached: Option<InnerAddress>,
    pub tls: Option<Arc<tls::Server>>,
    pub admission: Admission,
    pub log: Option<AccessLog>,
    pub traces: Option<AccessLog>,
}

/// A topology as it is served, from the time when it was read.
pub(crate) struct Generation {
    pub blueprint: Arc<Blueprint>,
    pub names: Arc<Names>,
    pub certificates: Arc<Certificates>,
    /// Its listeners, by number.
    pub confs: BTreeMap<usize, Conf>,
}

impl Generation {
    /// All that grows with the plan: see [`Blueprint::large_parts`].
    pub fn large_parts(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        let mut parts = self.blueprint.large_parts();
        parts.extend([self.names.clone() as Arc<dyn Any + Send + Sync>, self.certificates.clone()]);
        parts
    }
}

/// How the graphs of a thread are built.
pub(crate) struct Maker {
    pub thread: Thread,
    pub owner: Owner,
    pub room: Rc<dyn MakesRoom>,
}

/// A new generation on its way to a thread.
pub(crate) struct Reload {
    pub(crate) generation: Arc<Generation>,
    /// Sockets of new listeners, by their numbers: of each loop, and of this one.
    pub(crate) sockets: Vec<Vec<(usize, LoopSocket)>>,
    pub(crate) own: Vec<(usize, LoopSocket)>,
    /// The owner's knowledge of the health of each balancer in it.
    pub(crate) seen: Vec<(Id, Arc<HealthUpdate>)>,
    /// Each loop sends here once it has adopted the generation.
    pub(crate) done: Sender<()>,
}
