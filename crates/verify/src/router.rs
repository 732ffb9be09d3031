//! The load balancer that routes in a verification: weir, or another proxy.

use weir_plan::NodeId;

/// The load balancer that routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Router {
    /// weir.
    #[default]
    Weir,
    /// HAProxy.
    Haproxy,
    /// nginx.
    Nginx,
}

impl Router {
    /// Its name, which is also its command.
    pub fn name(self) -> &'static str {
        match self {
            Router::Weir => "weir",
            Router::Haproxy => "haproxy",
            Router::Nginx => "nginx",
        }
    }
}

/// The configuration of another proxy: one balancer over servers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProxySetup {
    pub router: Router,
    /// The policy in its terms.
    pub policy: String,
    /// The servers, in the order of the balancer, by their roots.
    pub servers: Vec<NodeId>,
    /// The most requests in flight at each of them.
    pub most: Option<u32>,
}
