//! What of a scenario is served: where its requests enter, which nodes route, which are built-in servers.

use crate::against::{Asked, Router};
use std::fmt;
use std::sync::Arc;
use weir_topology::plan::{Listen, Node, NodeId, Point, Scenario, Spec, To, with_inner};
use weir_topology::serving::{Role, Serving, serving_of};

/// A scenario made ready.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The plan's point; behind its nodes comes the listener, where the scenario has none.
    pub point: Arc<Point>,
    /// Where the scenario's requests enter.
    pub root: NodeId,
    /// What listens for them.
    pub listener: NodeId,
    /// Another proxy that routes.
    pub against: Option<Asked>,
    /// The built-in servers, by their roots.
    pub servers: Vec<NodeId>,
}

/// Why a scenario cannot be verified, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotVerify(pub String);

impl fmt::Display for CannotVerify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotVerify {}

/// Any free port.
const ADDRESS: &str = "127.0.0.1:0";

impl Prepared {
    /// A scenario of a point. `real`: servers that are not weir's own may be loaded.
    ///
    /// # Errors
    /// What cannot be served, or must not be loaded.
    pub fn new(point: &Point, scenario: &Scenario, real: bool) -> Result<Prepared, CannotVerify> {
        let mut point = point.clone();
        let root = scenario.root;
        let listener = enter(&mut point, root);
        let serving = serving_of(&point, &[listener], true).map_err(|wrong| {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            CannotVerify(wrong.join("\n\n"))
        })?;
        let of_role = |(id, role): (NodeId, &Role)| (*role == Role::BuiltIn).then_some(id);
        let servers = (0..).zip(&serving.roles).filter_map(of_role).collect();
        if !real {
            real_servers(&point, &serving, scenario)?;
        }
        Ok(Prepared { point: Arc::new(point), root, listener, against: None, servers })
    }

    /// The listeners behind the outermost one, the innermost first.
    pub fn inner(&self) -> Vec<NodeId> {
        let mut inner = with_inner(&self.point, &[self.listener]);
        inner.retain(|id| *id != self.listener);
        inner.sort_unstable();
        inner
    }

    /// The same with another proxy that routes.
    ///
    /// # Errors
    /// What that cannot do.
    pub fn against(mut self, router: Router) -> Result<Prepared, CannotVerify> {
        if router != Router::Weir {
            self.against = Some(Asked::new(&self, router)?);
        }
        Ok(self)
    }

    /// What the scenario's requests enter by.
    pub fn listen(&self) -> Option<&Listen> {
        match &self.point.specs[self.point.nodes[self.listener as usize].spec as usize] {
            Spec::Listen(listen) => Some(listen),
            _ => None,
        }
    }

    /// What a person calls a server: the targets of the last balancer.
    pub fn name(&self, server: NodeId) -> String {
        let node = &self.point.nodes[server as usize];
        let site = self.point.sites.get(node.site as usize);
        let label = node.name.clone().or_else(|| site.map(|site| site.label.clone())).unwrap_or_default();
        let alike: Vec<NodeId> = self
            .servers
            .iter()
            .copied()
            .filter(|id| self.point.nodes[*id as usize].site == node.site)
            .collect();
        match alike.iter().position(|id| *id == server) {
            Some(at) if alike.len() > 1 => format!("{label} #{at}"),
            _ => label,
        }
    }
}

/// The listener where a scenario's requests enter: its root, or one that is put before it.
fn enter(point: &mut Point, root: NodeId) -> NodeId {
    let node = point.nodes[root as usize].clone();
    let (id, to) = match &point.specs[node.spec as usize] {
        Spec::Listen(_) => (root, node.to),
        _ => (point.nodes.len() as NodeId, To::Node(root)),
    };
    let mut listen = match &point.specs[node.spec as usize] {
        Spec::Listen(listen) => listen.clone(),
        _ => Listen { loops: Some(1), ..Listen::at(ADDRESS) },
    };
    ADDRESS.clone_into(&mut listen.addr);
    listen.http.access_log = None;
    listen.http.trace = 0.0;
    point.specs.push(Spec::Listen(listen));
    let listener = Node { spec: point.specs.len() as u32 - 1, to, ..node };
    match point.nodes.get_mut(id as usize) {
        Some(own) => *own = listener,
        None => point.nodes.push(Node { name: Some("scenario".to_owned()), ..listener }),
    }
    id
}

/// Servers that are not weir's own are nobody's to load.
fn real_servers(point: &Point, serving: &Serving, scenario: &Scenario) -> Result<(), CannotVerify> {
    for (node, role) in point.nodes.iter().zip(&serving.roles) {
        if let (Spec::Server { addr: Some(addr), .. }, Role::Proxy) = (&point.specs[node.spec as usize], role)
        {
            return Err(CannotVerify(format!(
                "scenario \"{}\" leads to a real server ({addr}), which would be loaded; say --real if it may be, or leave \
                 out its address, so that weir is the server itself",
                scenario.name
            )));
        }
    }
    Ok(())
}
