//! Where the points with connections are kept, once they are asked for ([`crate::connections`]).

use super::{NodeId, Point, Spec};
use std::sync::OnceLock;

/// The points with connections that belong to a point. They follow from it, so nothing that is compared or written has them.
#[derive(Debug, Default)]
pub struct Connected([OnceLock<Box<WithConnections>>; 2]);

/// The connections of a point's scenarios.
#[derive(Debug)]
pub(crate) struct WithConnections {
    /// By scenario, the nodes that precede its servers, ascending.
    pub nodes: Vec<Vec<(NodeId, Spec)>>,
    /// The point with the nodes of all scenarios, and which of them it is right for: all whose servers are no part of another's.
    pub shared: Option<Point>,
    pub shares: Vec<bool>,
    /// By scenario, the point of one that it is not right for.
    pub own: Vec<OnceLock<Point>>,
}

impl Connected {
    /// With the connections that the file has, or with those of all servers.
    pub(crate) fn with(&self, all: bool) -> &OnceLock<Box<WithConnections>> {
        &self.0[usize::from(all)]
    }
}

impl Clone for Connected {
    fn clone(&self) -> Connected {
        Connected::default()
    }
}

impl PartialEq for Connected {
    fn eq(&self, _: &Connected) -> bool {
        true
    }
}
