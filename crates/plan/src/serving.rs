//! The role of each node when its topology is served: something that weir does, a model of the world around it, or a
//! part of a server that weir itself is.
//!
//! A *built-in server* is read from the leaves outwards: a node behind which all ends in servers without address, by
//! way of models, waiting lines and time limits only, belongs to one; the outermost such node is its root. Balancers,
//! retries, hedges, routes, splits, rate limits, rewriting, buffering and fixed answers are never part of one, since
//! weir does them. A `weight` right behind a balancer is the balancer's, not the built-in server's, so two weights of
//! one server are one.

use crate::address::Address;
use crate::circles::circles;
use crate::diagnostic::{Diagnostic, Severity};
use crate::unmatched::unmatched;
use crate::{ClientAuth, Edge, NodeId, Point, Spec, TlsServer, levels, listeners};
use std::collections::BTreeSet;
use weir_policy::config::Balance;

/// A node's role when it is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// weir does it.
    Proxy,
    /// A model that acts: only built-in servers are behind it, or `--inject` was given.
    Model,
    /// A model before real servers: requests pass.
    LeftOut,
    /// The root of a built-in server.
    BuiltIn,
    /// A part of a built-in server or of a server's model; or no listener leads there.
    #[default]
    Inside,
}

/// How a point is served.
#[derive(Clone, Debug, PartialEq)]
pub struct Serving {
    /// The roles by node; nodes that no listener reaches are [`Role::Inside`].
    pub roles: Vec<Role>,
    /// Notes for the user, one line each: models that are left out, hints with their place.
    pub notes: Vec<String>,
}

/// The roles of the nodes of a point when it is served. With `inject` models act before real servers too.
///
/// # Errors
/// All nodes that cannot be served, with their places; or that there is no listener.
pub fn serving(point: &Point, inject: bool) -> Result<Serving, Vec<Diagnostic>> {
    let never =
        unmatched(point).into_iter().map(|(id, finding)| locate(point, id, finding)).collect::<Vec<_>>();
    match serving_of(point, &listeners(point), inject) {
        Ok(_) if !never.is_empty() => Err(never),
        Err(wrong) => Err(wrong.into_iter().chain(never).collect()),
        served => served,
    }
}

/// The same for what these listeners lead to, without a look at the rules of a `route` that other listeners may match.
///
/// # Errors
/// See [`serving`].
pub fn serving_of(point: &Point, roots: &[NodeId], inject: bool) -> Result<Serving, Vec<Diagnostic>> {
    if roots.is_empty() {
        let none = Diagnostic::error("nothing is served: the file has no `listen`");
        return Err(vec![none.help("write `listen(\":8080\", node)`, with the node that requests enter")]);
    }
    let behind = behind(point);
    let mut walk = Walk { point, behind: &behind, inject, roles: vec![Role::Inside; point.nodes.len()] };
    let reached = walk.down(roots);
    let roles = walk.roles;
    let mut wrong = refused(point, &roles, &reached);
    wrong.extend(unreachable(point));
    wrong.extend(competing(point, roots));
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut notes: Vec<String> = left_out(point, &roles).into_iter().collect();
    let circles = circles(point).into_iter().map(|(id, finding)| locate(point, id, finding));
    notes.extend(circles.chain(hints(point, &roles)).map(|finding| finding.to_string()));
    Ok(Serving { roles, notes })
}

/// By root, the servers that requests which enter there come to, ascending: those with an address, and the roots of built-in ones. In a
/// simulation that is where a connection is needed: behind the last balancer or listener.
pub(crate) fn servers(point: &Point, roots: &[NodeId]) -> Vec<Vec<NodeId>> {
    let behind = behind(point);
    let mut walk =
        Walk { point, behind: &behind, inject: true, roles: vec![Role::Inside; point.nodes.len()] };
    let mut of = |root: &NodeId| {
        let reached = walk.down(&[*root]);
        let is_server = |id: &NodeId| {
            let has_addr = matches!(spec_of(point, *id), Some(Spec::Server { addr: Some(_), .. }));
            has_addr || walk.roles[*id as usize] == Role::BuiltIn
        };
        let servers = reached.iter().copied().filter(is_server).collect();
        reached.into_iter().for_each(|id| walk.roles[id as usize] = Role::Inside);
        servers
    };
    roots.iter().map(&mut of).collect()
}

/// The server that a built-in one begins at: this node, or the first one behind it that is a server.
pub fn named_server(point: &Point, first: NodeId) -> Option<NodeId> {
    let mut stack = vec![first];
    while let Some(id) = stack.pop() {
        if matches!(spec_of(point, id), Some(Spec::Server { .. })) {
            return Some(id);
        }
        match point.nodes.get(id as usize)?.to {
            Edge::None => {}
            Edge::Node(next) => stack.push(next),
            Edge::List(list) => stack.extend(point.lists.get(list as usize)?.iter().rev()),
        }
    }
    None
}

/// Listeners that want the port of an earlier one.
fn competing(point: &Point, roots: &[NodeId]) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let mut earlier: Vec<(NodeId, Address, &str)> = Vec::new();
    for &id in roots {
        let Some(Spec::Listen(listen)) = spec_of(point, id) else { continue };
        let Some(address) = Address::parse(&listen.addr) else { continue };
        if let Some((first, _, addr)) = earlier.iter().find(|(_, other, _)| address.competes_with(other)) {
            let message = format!("\"{}\" and \"{addr}\" are the same port of this machine", listen.addr);
            let site = point.nodes.get(*first as usize).and_then(|n| point.sites.get(n.site as usize));
            let at = site.map_or("an earlier line", |site| site.span.as_str());
            let help =
                format!("the first is at {at}; use another port, or one listener that leads to a `route`");
            wrong.push(locate(point, id, Diagnostic::error(message).help(help)));
        }
        earlier.push((id, address, &listen.addr));
    }
    wrong
}

/// The nodes behind a node, itself included, without the models of servers.
#[derive(Clone, Copy, Debug, Default)]
struct Subtree {
    /// Nothing but what a built-in server may be made of.
    modelled: bool,
    /// A server without address.
    built_in: bool,
    /// A server with an address.
    real: bool,
}

impl Subtree {
    /// Whether it is a built-in server, or part of one.
    fn is_built_in(self) -> bool {
        self.modelled && self.built_in
    }
}

/// What a kind of node is when it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// weir does it, for any target.
    Ours,
    /// weir does it; it may be part of a built-in server as well.
    OursOrInside,
    /// It models the world, and may act when served.
    Model,
    /// It can only be simulated, outside of built-in servers and models.
    Simulated,
}

/// The nature of a node; each kind is listed, so that a new one must decide.
fn nature(spec: &Spec) -> Nature {
    match spec {
        Spec::Server { addr: None, .. } => Nature::OursOrInside,
        Spec::Queue { .. } | Spec::Timeout { .. } | Spec::Weight { .. } => Nature::OursOrInside,
        Spec::Delay { .. }
        | Spec::Cable { .. }
        | Spec::Warmup(_)
        | Spec::Gate(_)
        | Spec::Faulty(_)
        | Spec::Flaky { .. } => Nature::Model,
        Spec::Sequence | Spec::Fanout { .. } | Spec::Concurrent { .. } | Spec::Connection(_) => {
            Nature::Simulated
        }
        Spec::Lb(lb) if lb.balance == Balance::LeastWork => Nature::Simulated,
        Spec::Server { addr: Some(_), .. }
        | Spec::Listen(_)
        | Spec::Respond { .. }
        | Spec::Redirect { .. }
        | Spec::Rewrite(_)
        | Spec::Buffered { .. }
        | Spec::Route { .. }
        | Spec::Split { .. }
        | Spec::Rate { .. }
        | Spec::Hedge(_)
        | Spec::Retry(_)
        | Spec::Fleet(_)
        | Spec::Lb(_) => Nature::Ours,
    }
}

/// Whether a built-in server may be made of it.
fn may_be_inside(spec: &Spec) -> bool {
    match nature(spec) {
        Nature::OursOrInside | Nature::Model => true,
        Nature::Simulated => !matches!(spec, Spec::Lb(_)),
        Nature::Ours => false,
    }
}

/// A model that may act when served.
fn is_model(spec: &Spec) -> bool {
    nature(spec) == Nature::Model
}

/// The node kinds that can only be simulated, outside of built-in servers and models.
fn is_never_served(spec: &Spec) -> bool {
    nature(spec) == Nature::Simulated
}

fn spec_of(point: &Point, id: NodeId) -> Option<&Spec> {
    let node = point.nodes.get(id as usize)?;
    point.specs.get(node.spec as usize)
}

/// Computed for each node. A node comes after all that it leads to, so one pass will do.
fn behind(point: &Point) -> Vec<Subtree> {
    let mut all: Vec<Subtree> = Vec::with_capacity(point.nodes.len());
    let mut lists: Vec<Option<Subtree>> = vec![None; point.lists.len()];
    let join = |a: Subtree, b: Subtree| Subtree {
        modelled: a.modelled && b.modelled,
        built_in: a.built_in || b.built_in,
        real: a.real || b.real,
    };
    for node in &point.nodes {
        let Some(spec) = point.specs.get(node.spec as usize) else { break };
        let of = |id: NodeId| all.get(id as usize).copied().unwrap_or_default();
        let start = match spec {
            Spec::Server { addr, .. } => {
                Subtree { modelled: true, built_in: addr.is_none(), real: addr.is_some() }
            }
            _ => Subtree { modelled: true, ..Subtree::default() },
        };
        let mut behind = match node.to {
            Edge::None => start,
            Edge::Node(next) => join(start, of(next)),
            Edge::List(list) => match lists.get_mut(list as usize) {
                Some(known) => {
                    let targets = &point.lists[list as usize];
                    join(
                        start,
                        *known.get_or_insert_with(|| targets.iter().map(|t| of(*t)).fold(start, join)),
                    )
                }
                None => start,
            },
        };
        if let Spec::Lb(lb) = spec
            && let Some(spare) = lb.spare
        {
            behind = join(behind, of(spare));
        }
        behind.modelled &= may_be_inside(spec);
        all.push(behind);
    }
    all.resize(point.nodes.len(), Subtree::default());
    all
}

/// By node: whether it is part of a server that is modelled (a built-in one, or the model of another): nothing behind it
/// is a server with an address, or something that weir itself does.
pub fn modelled(point: &Point) -> Vec<bool> {
    behind(point).into_iter().map(|behind| behind.modelled && !behind.real).collect()
}

struct Walk<'a> {
    point: &'a Point,
    behind: &'a [Subtree],
    inject: bool,
    roles: Vec<Role>,
}

impl Walk<'_> {
    /// Assigns roles to the nodes that the listeners reach outside of built-in servers; returns these nodes, in order.
    fn down(&mut self, roots: &[NodeId]) -> BTreeSet<NodeId> {
        let (mut reached, mut lists) = (BTreeSet::new(), BTreeSet::new());
        let mut stack: Vec<(NodeId, bool)> = roots.iter().map(|root| (*root, false)).collect();
        while let Some((id, picked)) = stack.pop() {
            if !reached.insert(id) {
                continue;
            }
            let role = self.role(id, picked);
            self.roles[id as usize] = role;
            let Some(spec) = spec_of(self.point, id).filter(|_| role != Role::BuiltIn) else { continue };
            let balancer = matches!(spec, Spec::Lb(_));
            // A server's model is not used here: the real server is, if it has an address.
            if let Spec::Lb(lb) = spec {
                stack.extend(lb.spare.map(|spare| (spare, false)));
            }
            match self.point.nodes[id as usize].to {
                Edge::None => {}
                Edge::Node(next) => stack.push((next, false)),
                Edge::List(list) => {
                    // Routers over one long list: it is walked once.
                    if lists.insert((list, balancer)) {
                        stack.extend(self.point.lists[list as usize].iter().map(|t| (*t, balancer)));
                    }
                }
            }
        }
        reached
    }

    fn role(&self, id: NodeId, picked: bool) -> Role {
        let behind = self.behind[id as usize];
        match spec_of(self.point, id) {
            Some(Spec::Weight { .. }) if picked => Role::Proxy,
            _ if behind.is_built_in() => Role::BuiltIn,
            Some(spec) if is_model(spec) => {
                if behind.real && !self.inject {
                    Role::LeftOut
                } else {
                    Role::Model
                }
            }
            _ => Role::Proxy,
        }
    }
}

/// Errors at nodes that cannot be served at their position, once for each site.
fn refused(point: &Point, roles: &[Role], reached: &BTreeSet<NodeId>) -> Vec<Diagnostic> {
    let mut sites = BTreeSet::new();
    let mut wrong = Vec::new();
    for &id in reached {
        let Some(spec) = spec_of(point, id).filter(|s| is_never_served(s)) else { continue };
        if roles[id as usize] != Role::Proxy || !sites.insert(point.nodes[id as usize].site) {
            continue;
        }
        let (why, help) = match spec {
            Spec::Lb(_) => (
                "it needs the work left at each target, which only a simulation knows",
                "use `lb.least_conn`, `lb.p2c` or `lb.peak_ewma` to serve",
            ),
            Spec::Concurrent { .. } => (
                "it is the model of a server, not a server",
                "make it the model of one: `server(\"app\", model=concurrent(...))`",
            ),
            _ => (
                "weir sends a request to one origin, and more than a built-in server is behind it",
                "keep it for `weir sim`, or put it into the `model` of a server",
            ),
        };
        let message = format!("`{}` cannot be served: {why}", spec.kind());
        wrong.push(locate(point, id, Diagnostic::error(message).help(help)));
    }
    wrong
}

/// Errors at listeners behind others that weir itself could not be a client of, once for each site.
fn unreachable(point: &Point) -> Vec<Diagnostic> {
    let mut sites = BTreeSet::new();
    let mut wrong = Vec::new();
    for (id, _) in levels(point).into_iter().filter(|(_, level)| *level > 0) {
        let Some(Spec::Listen(listen)) = spec_of(point, id) else { continue };
        let wants = |tls: &TlsServer| tls.client_ca.is_some() && tls.client_auth == ClientAuth::Require;
        let (what, help) = if listen.tls.as_ref().is_some_and(wants) {
            (
                "requires certificates of clients, but weir connects to it itself and has none",
                "write `client_auth=\"request\"`, or leave `client_ca` out",
            )
        } else if !listen.http.proxy_from.is_empty() {
            (
                "expects the PROXY protocol, but weir connects to it itself, by plain HTTP",
                "leave `proxy_from` out: weir passes the client's address on by itself",
            )
        } else {
            continue;
        };
        if !sites.insert(point.nodes[id as usize].site) {
            continue;
        }
        let message = format!("a `listen` behind another {what}");
        let help = format!(
            "{help}; for clients from outside add a second `listen` that leads to the same \
            node"
        );
        wrong.push(locate(point, id, Diagnostic::error(message).help(help)));
    }
    wrong
}

/// One line that names the models that do not act.
fn left_out(point: &Point, roles: &[Role]) -> Option<String> {
    const MOST: usize = 8;
    let mut sites = BTreeSet::new();
    for (node, role) in point.nodes.iter().zip(roles) {
        if *role == Role::LeftOut {
            sites.insert(node.site);
        }
    }
    let mut names: Vec<String> = sites
        .iter()
        .filter_map(|s| point.sites.get(*s as usize))
        .map(|s| if s.span.is_empty() { s.label.clone() } else { format!("{} ({})", s.label, s.span) })
        .collect();
    if names.len() > MOST {
        let more = names.len() - MOST;
        names.truncate(MOST);
        names.push(format!("{more} more"));
    }
    (!names.is_empty()).then(|| {
        format!(
            "note: left out in front of real servers: {} (`--inject` switches models on)",
            names.join(", ")
        )
    })
}

/// Hints about probable mistakes that can still be served.
fn hints(point: &Point, roles: &[Role]) -> Vec<Diagnostic> {
    let mut sites = BTreeSet::new();
    let mut found = Vec::new();
    for (id, node) in (0u32..).zip(&point.nodes) {
        let queue =
            matches!(spec_of(point, id), Some(Spec::Queue { .. })) && roles[id as usize] == Role::Proxy;
        let Some(model) = (if queue { next_left_out(point, roles, node.to) } else { None }) else { continue };
        if !sites.insert(node.site) {
            continue;
        }
        let kind = spec_of(point, model).map_or("model", Spec::kind);
        let finding = Diagnostic::error(format!(
            "this `queue` is in front of a `{kind}` that is left out when served, so weir itself keeps \
                the limit"
        ));
        let finding = Diagnostic { severity: Severity::Hint, ..finding };
        let help = "if the limit is the server's own, put both into its model: `server(addr=..., \
            model=queue(...))`";
        found.push(locate(point, id, finding.help(help)));
    }
    found
}

/// The first model that is left out on the only way from there.
fn next_left_out(point: &Point, roles: &[Role], from: Edge) -> Option<NodeId> {
    let mut to = from;
    while let Edge::Node(next) = to {
        if roles[next as usize] == Role::LeftOut {
            return Some(next);
        }
        to = point.nodes[next as usize].to;
    }
    None
}

/// A finding at the place of a node.
fn locate(point: &Point, id: NodeId, finding: Diagnostic) -> Diagnostic {
    let site = point.nodes.get(id as usize).and_then(|n| point.sites.get(n.site as usize));
    site.map_or(finding.clone(), |site| finding.at_span(&site.span))
}
