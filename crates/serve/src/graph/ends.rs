//! Where the ways behind a balancer's targets end: what a check connects to, and what must exist for a target to be
//! usable.

use super::identity::inside;
use crate::exchange::NodeId;
use std::collections::BTreeSet;
use weir_plan::address::Address;
use weir_plan::serving::{Role, Serving};
use weir_plan::{Edge, Node, Point, Spec, TlsClient};

/// The end of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A server, real or built in, or another listener.
    Server(NodeId),
    /// Another balancer.
    Lb(NodeId),
    /// weir itself: a fixed answer.
    Own,
}

/// What a check finds behind a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// A server that can be checked.
    Server(NodeId),
    /// A fixed answer.
    Status(u16),
    /// A node that decides for each request: it is alive, and the nodes behind it have checks of their own.
    Alive,
}

/// The ends behind one target.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub all: Vec<End>,
    /// Nodes that a check passes on its way.
    pub way: Vec<NodeId>,
    pub checked: Checked,
    /// Whether a server is among them.
    pub has_server: bool,
    /// Whether one of them is always there: its address is in the file, or it is weir itself. Such a target needs no look
    /// at its nodes.
    pub has_fixed: bool,
}

impl Ends {
    /// The servers among them.
    pub fn servers(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.all.iter().filter_map(|end| if let End::Server(id) = end { Some(*id) } else { None })
    }

    /// There is no target any more.
    pub fn nowhere() -> Ends {
        Ends::new(Vec::new(), Vec::new(), Checked::Alive, |_| false)
    }

    fn new(all: Vec<End>, way: Vec<NodeId>, checked: Checked, is_fixed: impl Fn(&End) -> bool) -> Ends {
        let has_server = all.iter().any(|end| matches!(end, End::Server(_)));
        let has_fixed = all.is_empty() || all.iter().any(is_fixed);
        Ends { all, way, checked, has_server, has_fixed }
    }

    /// The ends behind a node. `built_in`: for the thread of the built-in servers, whose servers are models.
    pub fn behind(point: &Point, serving: &Serving, built_in: bool, node: NodeId) -> Ends {
        let walk = Walk { point, serving, built_in };
        let mut all = Vec::new();
        let mut open = vec![node];
        while let Some(id) = open.pop() {
            match walk.step(id) {
                Step::Ends(end, _) => all.push(end),
                Step::Goes(next) => open.push(next),
                Step::Parts(list) => open.extend(list),
            }
        }
        let (mut at, mut way) = (node, Vec::new());
        let checked = loop {
            match walk.step(at) {
                Step::Ends(_, checked) => break checked,
                Step::Goes(next) => {
                    way.push(at);
                    at = next;
                }
                Step::Parts(_) => break Checked::Alive,
            }
        };
        Ends::new(all, way, checked, |end| walk.is_fixed(*end))
    }

    /// The address that a check connects to, as the file has it; `None`: a built-in server's socket, or no connection.
    pub fn addr<'a>(&self, point: &'a Point) -> Option<&'a str> {
        match self.asked(point)? {
            Spec::Server { addr, .. } => addr.as_deref(),
            Spec::Listen(listen) => Some(&listen.addr),
            _ => None,
        }
    }

    /// TLS there, as the file has it.
    pub fn tls<'a>(&self, point: &'a Point) -> Option<&'a TlsClient> {
        match self.asked(point)? {
            Spec::Server { addr: Some(_), origin, .. } => origin.tls.as_ref(),
            _ => None,
        }
    }

    fn asked<'a>(&self, point: &'a Point) -> Option<&'a Spec> {
        let Checked::Server(id) = self.checked else { return None };
        point.specs.get(point.nodes[id as usize].spec as usize)
    }
}

/// Where ways end that lead through no balancer's targets: from listeners, and of spare nodes.
pub(super) fn outer(point: &Point, serving: &Serving, built_in: bool) -> Vec<End> {
    let begin = |(id, node): (NodeId, &Node)| {
        let spec = &point.specs[node.spec as usize];
        let listens = matches!(spec, Spec::Listen(_)).then(|| inside(point, id));
        listens.into_iter().chain(spec.aside()).collect::<Vec<_>>()
    };
    let begins = (0..).zip(&point.nodes).flat_map(begin);
    begins.flat_map(|id| Ends::behind(point, serving, built_in, id).all).collect()
}

/// The servers that requests can reach from these ends, ascending. `ends`: of the ways of a balancer's targets; `None`: it is no
/// balancer of this thread.
pub(super) fn reachable<'a>(outer: &[End], ends: impl Fn(NodeId) -> Option<&'a [Ends]>) -> Vec<NodeId> {
    let (mut servers, mut lbs) = (Vec::new(), BTreeSet::new());
    let mut open = outer.to_vec();
    while let Some(end) = open.pop() {
        match end {
            End::Server(id) => servers.push(id),
            End::Lb(id) => {
                if let Some(ends) = ends(id).filter(|_| lbs.insert(id)) {
                    open.extend(ends.iter().flat_map(|ends| ends.all.iter().copied()));
                }
            }
            End::Own => {}
        }
    }
    servers.sort_unstable();
    servers.dedup();
    servers
}

struct Walk<'a> {
    point: &'a Point,
    serving: &'a Serving,
    built_in: bool,
}

enum Step<'a> {
    Ends(End, Checked),
    Goes(NodeId),
    Parts(&'a [NodeId]),
}

impl<'a> Walk<'a> {
    /// Whether requests can always go to an end, as far as addresses are concerned.
    fn is_fixed(&self, end: End) -> bool {
        match end {
            End::Own => true,
            End::Lb(_) => false,
            End::Server(id) => match &self.point.specs[self.point.nodes[id as usize].spec as usize] {
                Spec::Server { addr: Some(addr), .. } => {
                    !matches!(Address::parse(addr), Some(Address::Name(..)))
                }
                _ => true,
            },
        }
    }

    fn step(&self, id: NodeId) -> Step<'a> {
        let node = &self.point.nodes[id as usize];
        if !self.built_in && self.serving.roles.get(id as usize) == Some(&Role::BuiltIn) {
            return Step::Ends(End::Server(id), Checked::Server(id));
        }
        match (&self.point.specs[node.spec as usize], node.to) {
            (Spec::Lb(_), _) => Step::Ends(End::Lb(id), Checked::Alive),
            (Spec::Server { addr: Some(_), .. }, _) if !self.built_in => {
                Step::Ends(End::Server(id), Checked::Server(id))
            }
            // A hop of its own, to which this process is a client.
            (Spec::Listen(_), _) => Step::Ends(End::Server(id), Checked::Server(id)),
            (Spec::Respond { status, .. }, _) => Step::Ends(End::Own, Checked::Status(*status)),
            (Spec::Redirect { status, .. }, _) => Step::Ends(End::Own, Checked::Status(*status)),
            (_, Edge::Node(next)) => Step::Goes(next),
            (_, Edge::List(list)) => Step::Parts(&self.point.lists[list as usize]),
            (_, Edge::None) => Step::Ends(End::Own, Checked::Alive),
        }
    }
}
