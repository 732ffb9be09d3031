//! `server(name, addr=...)`: forwards a request to its target and waits for the head of the answer.
//!
//! [`forward`] sends it, [`reuse`] says on which open connection, [`make`] how another is made, [`dial`] how that gets its
//! socket.

mod dial;
mod forward;
mod make;
mod reuse;

use super::connect::Place;
use super::limit::ConnectionLimit;
use super::secure::Secure;
use super::sole_target::SoleTarget;
use super::target::Target;
use crate::exchange::upstream::described;
use crate::exchange::{NodeId, OriginConn, Upstream};
use crate::metrics::Ending;
use crate::transport::inner::OwnConnections;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::Core;
use weir_plan::Origin;

/// Closes idle connections of targets, here and on other loops.
pub(crate) trait MakesRoom {
    /// Notes that a request waits for a connection because of the limit.
    fn note_demand(&self) {}

    /// Closes one idle connection to this target on every loop that has one.
    fn close_idle(&self, target: u32);

    /// Closes the longest idle connection; returns whether this loop had one. Other loops close theirs soon.
    fn free_descriptor(&self) -> bool;
}

/// A server as one loop sees it.
pub(crate) struct Server {
    /// Its number among the nodes.
    pub id: NodeId,
    /// Its name, for logs.
    pub name: Rc<str>,
    /// Its address in the file; `None`: in this process.
    pub addr: Option<Rc<str>>,
    /// The target behind it.
    pub target: Rc<Target>,
    /// TLS to it; `None`: cleartext.
    pub tls: Option<Secure>,
    /// Timeouts and limits of its connections.
    pub origin: Origin,
    /// The token by which the server knows this process or its run; `None`: an origin, which gets no draws.
    pub token: Option<u64>,
    /// For a listener of this process: how it knows this process's connections.
    pub own: Option<Arc<OwnConnections>>,
    /// The limit of connections, over all loops.
    pub most: Option<ConnectionLimit>,
    /// Makes room under that limit, and under that of descriptors.
    pub room: Rc<dyn MakesRoom>,
    /// Its counters if no balancer is in front.
    pub alone: OnceCell<Rc<SoleTarget>>,
}

impl Upstream for Server {
    fn target(&self) -> u32 {
        self.target.key
    }

    fn node(&self) -> NodeId {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn addr(&self) -> Option<&str> {
        self.addr.as_deref()
    }

    fn described(&self) -> String {
        described(&self.name, self.addr.as_deref())
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn put(&self, core: &Core, conn: OriginConn) {
        if self.origin.max_requests.is_none_or(|most| conn.requests() < most) {
            self.target.put(core, conn);
        } else {
            conn.set_ending(Ending::Age);
        }
    }
}

impl Server {
    /// Whether it is a server of this process.
    pub fn is_built_in(&self) -> bool {
        matches!(self.target.place, Place::BuiltIn(..))
    }
}
