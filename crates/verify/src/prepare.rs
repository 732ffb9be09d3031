//! Prepares a scenario to be served: where its requests enter, which nodes route, which are built-in servers.

use crate::router::ProxySetup;
use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use weir_plan::address::Address;
use weir_plan::duration::show_ns;
use weir_plan::serving::{Role, serving_of};
use weir_plan::{
    Change, ChangeKind, Edge, First, Listen, Node, NodeId, Point, Scenario, Spec, Wait, with_inner,
};

/// A scenario prepared to be served.
#[derive(Clone, Debug)]
pub(crate) struct Arrangement {
    /// The plan's point; behind its nodes comes the listener, where the scenario has none.
    pub point: Arc<Point>,
    /// The scenario in it.
    pub scenario: Scenario,
    /// Where the scenario's requests enter.
    pub root: NodeId,
    /// What listens for them.
    pub listener: NodeId,
    /// Another proxy that routes.
    pub against: Option<ProxySetup>,
    /// The built-in servers, by their roots.
    pub servers: Vec<NodeId>,
    /// The servers that are not weir's own.
    pub real: Vec<NodeId>,
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

/// The time in which a real server must accept a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Any free port.
const ADDRESS: &str = "127.0.0.1:0";

/// What of a scenario is simulated only, with its place: processes that begin and end, nodes that fail by changes, and the
/// operator's word. `point`: with every member that ever is.
pub(crate) fn find_unplayed(point: &Point, scenario: &Scenario) -> Option<String> {
    let found = scenario.events.iter().find_map(|change| Some((name_unplayed(point, change)?, &change.span)));
    let is_driven = point.fleets.as_deref().is_some_and(|fleets| !fleets.driven.is_empty());
    let (what, span) = found.or_else(|| is_driven.then_some(("processes", &scenario.span)))?;
    Some(format!("scenario \"{}\" has {what} ({span})", scenario.name))
}

/// What of a change is simulated only.
fn name_unplayed(point: &Point, change: &Change) -> Option<&'static str> {
    let all = || point.fleets.iter().flat_map(|fleets| &fleets.all);
    let has_life = |node: NodeId| all().any(|of| of.node == node && of.fleet.life.is_some());
    match change.what {
        ChangeKind::Down { .. } => Some("`change.down`"),
        ChangeKind::Set { .. } => Some("`change.set`"),
        ChangeKind::Rolling { first: First::InPlace, .. } => {
            Some("`change.rolling` with `first=\"in_place\"`")
        }
        ChangeKind::Rolling { more, .. } if more.wait == Some(Wait::Eligible) => {
            Some("`change.rolling` with `wait=\"eligible\"`")
        }
        ChangeKind::Rolling { into: Some(into), .. } if has_life(into) => {
            Some("a change of a fleet with `life`")
        }
        _ => has_life(change.fleet).then_some("a change of a fleet with `life`"),
    }
}

/// Why scenarios cannot be verified in which that was found. `others`: the names of the others, if there are any.
pub(crate) fn refuse_unplayed(found: &[String], others: Option<&str>) -> CannotVerify {
    let remedy =
        others.map_or_else(String::new, |names| format!("\nname the others behind the file: {names}"));
    CannotVerify(format!(
        "`weir verify` does not play these changes yet, which `weir sim` simulates:\n  {}{remedy}",
        found.join("\n  ")
    ))
}

impl Arrangement {
    /// A scenario of a point; members of fleets that join while it runs are there from the start, and balancers do not have
    /// them. `real`: servers that are not weir's own may be loaded.
    ///
    /// # Errors
    /// A part of the scenario that cannot be served, or must not be loaded.
    pub fn new(point: &Point, scenario: &Scenario, real: bool) -> Result<Arrangement, CannotVerify> {
        let (point, scenario) = point.grown(scenario);
        if let Some(found) = find_unplayed(point, scenario) {
            return Err(refuse_unplayed(&[found], None));
        }
        let mut point = point.clone();
        let root = scenario.root;
        let listener = enter(&mut point, root);
        let serving = serving_of(&point, &[listener], true).map_err(|wrong| {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            // The caller prefixes `error: `.
            let said = wrong.join("\n\n");
            CannotVerify(said.strip_prefix("error: ").map_or(said.clone(), str::to_owned))
        })?;
        let of_role = |(id, role): (NodeId, &Role)| (*role == Role::BuiltIn).then_some(id);
        let servers = (0..).zip(&serving.roles).filter_map(of_role).collect();
        let is_real = |(node, role): (&Node, &Role)| {
            let has_addr = matches!(point.specs[node.spec as usize], Spec::Server { addr: Some(_), .. });
            has_addr && *role == Role::Proxy
        };
        let all = (0..).zip(point.nodes.iter().zip(&serving.roles));
        let others: Vec<NodeId> = all.filter_map(|(id, node)| is_real(node).then_some(id)).collect();
        let (point, own) = (Arc::new(point), scenario.clone());
        let prepared =
            Arrangement { point, scenario: own, root, listener, against: None, servers, real: others };
        match prepared.addresses().first() {
            Some(addr) if !real => Err(CannotVerify(format!(
                "scenario \"{}\" leads to a real server ({addr}), which would get load; pass --real to \
                    allow that, or leave out its address, so that weir stands in for it",
                scenario.name
            ))),
            _ => Ok(prepared),
        }
    }

    /// The addresses of servers that are not weir's own.
    pub fn addresses(&self) -> Vec<&str> {
        let spec = |id: &NodeId| &self.point.specs[self.point.nodes[*id as usize].spec as usize];
        let address = |id: &NodeId| match spec(id) {
            Spec::Server { addr: Some(addr), .. } => Some(&addr[..]),
            _ => None,
        };
        let mut all: Vec<&str> = self.real.iter().filter_map(address).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The servers of which both worlds tell how many requests they get: another proxy does not say where it sends
    /// them, and real servers tell nothing.
    pub fn compared(&self) -> impl Iterator<Item = NodeId> {
        let real = self.real.iter().filter(|_| self.against.is_none());
        self.servers.iter().chain(real).copied()
    }

    /// Those of them that join while it runs.
    pub fn newcomers(&self) -> Vec<NodeId> {
        let fleets = self.point.fleets.as_deref();
        self.compared().filter(|id| fleets.is_some_and(|fleets| fleets.is_newcomer(*id))).collect()
    }

    /// The listeners behind the outermost one, the innermost first.
    pub fn inner(&self) -> Vec<NodeId> {
        let mut inner = with_inner(&self.point, &[self.listener]);
        inner.retain(|id| *id != self.listener);
        inner.sort_unstable();
        inner
    }

    /// A sentence on changes that begin after the last request of a run, which is at `last_ns`; `None`: there are none.
    /// `advice`: how runs become longer.
    pub fn describe_unreached(&self, last_ns: u64, advice: &str) -> Option<String> {
        let all = &self.scenario.events;
        let unreached = || all.iter().filter(|change| change.at_ns > last_ns);
        let first = unreached().min_by_key(|change| change.at_ns)?;
        // To the millisecond: arrivals are drawn.
        let shown = |ns: u64| show_ns(i128::from(ns - ns % 1_000_000));
        Some(format!(
            "{} of its {} changes come after the last request of a run, which is at {}: the first of these at {} ({}). Nothing of \
             them was compared; {advice}",
            unreached().count(),
            all.len(),
            shown(last_ns),
            shown(first.at_ns),
            first.span
        ))
    }

    /// Whether answers cross cables of the router on their way back. It reads their bodies behind those, so connections to
    /// servers are taken for longer than their simulated exchanges.
    pub fn has_cables_back(&self) -> bool {
        let mut stack = vec![self.listener];
        let mut seen = vec![false; self.point.nodes.len()];
        while let Some(id) = stack.pop() {
            let is_server = self.servers.binary_search(&id).is_ok() || self.real.contains(&id);
            if is_server || std::mem::replace(&mut seen[id as usize], true) {
                continue;
            }
            let node = &self.point.nodes[id as usize];
            if matches!(self.point.specs[node.spec as usize], Spec::Cable { .. }) {
                return true;
            }
            match node.to {
                Edge::None => {}
                Edge::Node(next) => stack.push(next),
                Edge::List(list) => stack.extend(&self.point.lists[list as usize]),
            }
        }
        false
    }

    /// Why the connections that its routers need are not known; `None`: they are.
    pub fn explain_unknown_openings(&self) -> Option<String> {
        if let Some(proxy) = &self.against {
            return Some(format!("{} does not report its connections", proxy.router.name()));
        }
        if !self.inner().is_empty() {
            return Some("routers open connections to the routers behind them as well".to_owned());
        }
        self.has_cables_back().then(|| {
            "answers cross a `cable` before a balancer, so connections are taken for longer than is simulated"
                .to_owned()
        })
    }

    /// What the scenario's requests enter by.
    pub fn listen(&self) -> Option<&Listen> {
        match &self.point.specs[self.point.nodes[self.listener as usize].spec as usize] {
            Spec::Listen(listen) => Some(listen),
            _ => None,
        }
    }

    /// The server's name for people: as the last balancer calls its target.
    pub fn name(&self, server: NodeId) -> String {
        let node = &self.point.nodes[server as usize];
        let site = self.point.sites.get(node.site as usize);
        let label = node.name.clone().or_else(|| site.map(|site| site.label.clone())).unwrap_or_default();
        let alike: Vec<NodeId> =
            self.compared().filter(|id| self.point.nodes[*id as usize].site == node.site).collect();
        match alike.iter().position(|id| *id == server) {
            Some(at) if alike.len() > 1 => format!("{label} #{at}"),
            _ => label,
        }
    }
}

/// Checks that a real server's address accepts connections; the error says why not.
pub(crate) fn listens(addr: &str) -> Result<(), CannotVerify> {
    let failed = |e: std::io::Error| {
        CannotVerify(format!(
            "nothing listens at the server {addr}: {e}; start it, or remove it from the file"
        ))
    };
    match Address::parse(addr) {
        Some(Address::Unix(path)) => UnixStream::connect(path).map(drop).map_err(failed),
        _ => {
            let all: Vec<SocketAddr> = addr.to_socket_addrs().map_err(failed)?.collect();
            let reached = all.iter().map(|one| TcpStream::connect_timeout(one, PATIENCE));
            let no_address = || std::io::Error::other("its name has no address");
            let first = reached.reduce(Result::or).unwrap_or_else(|| Err(no_address()));
            first.map(drop).map_err(failed)
        }
    }
}

/// The listener where a scenario's requests enter: its root, or one that is put before it.
fn enter(point: &mut Point, root: NodeId) -> NodeId {
    let node = point.nodes[root as usize].clone();
    let (id, to) = match &point.specs[node.spec as usize] {
        Spec::Listen(_) => (root, node.to),
        _ => (point.nodes.len() as NodeId, Edge::Node(root)),
    };
    let mut listen = match &point.specs[node.spec as usize] {
        Spec::Listen(listen) => listen.clone(),
        _ => Listen { loops: Some(1), ..Listen::with_addr(ADDRESS) },
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
