//! `listen(addr, node, ...)`: what connections that were accepted there have in common, and the socket itself.

use crate::control::clients::{Clients, Counted};
use crate::control::event_loop::Loop;
use crate::log::Log;
use crate::nodes::NodeId;
use weir_http1::{Limits, Networks};
use weir_topology::plan::Http;

/// A listener as one loop sees it.
pub(crate) struct Listener {
    /// Its number among the listeners.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Where requests enter.
    pub node: NodeId,
    pub http: Http,
    pub limits: Limits,
    pub trusted: Networks,
    pub raw_paths: bool,
    pub port: Option<u16>,
    /// How many are connected, over all loops.
    pub clients: Clients,
    /// The same for all listeners that say nothing of it.
    pub common: Option<Clients>,
    pub log: Option<Log>,
    /// Whether this is the inside of the built-in servers.
    pub built_in: bool,
}

/// A client's places, until it is dropped: among those of its listener, and of all that have no limit of their own.
pub(crate) struct Place {
    pub own: Counted,
    pub common: Option<Counted>,
}

impl Listener {
    /// Whether no further client may be accepted.
    pub fn is_full(&self) -> bool {
        self.clients.is_full() || self.common.as_ref().is_some_and(Clients::is_full)
    }

    /// A place for a client; `None` if there is none left.
    pub fn take_place(&self) -> Option<Place> {
        let common = match &self.common {
            Some(common) => Some(common.take_place()?),
            None => None,
        };
        Some(Place { own: self.clients.take_place()?, common })
    }

    /// Whether this is the inside of the built-in servers.
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// When a connection made now is too old, a tenth sooner or later.
    pub fn old_ns(&self, lp: &Loop) -> u64 {
        match self.http.max_age_ns {
            None => u64::MAX,
            Some(age) => {
                let tenth = (age / 10).max(1);
                lp.now().saturating_add(age - tenth).saturating_add(lp.draw().below(2 * tenth))
            }
        }
    }
}
