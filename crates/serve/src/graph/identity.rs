//! Identities across graphs (`docs/spec/operating.md#identity`): state belongs to identities, so that a later graph
//! takes over what stays. An identity is interned to a number that is the same on all threads, in every graph.
//!
//! A node with `name=` is its kind (one kind for all balancers) and name; one with a single addressed server behind
//! it is its place and that address; others are place and number there. A target is the address of its `server` as
//! written, TLS, protocol and `send_proxy`, and its `id` if a source lists it with one, with any nodes between it and
//! the balancer; one without address, or with a balancer or several servers behind it, is identified as a node, and so is
//! a `listen` that takes a free port; with TLS it is another. Targets of one identity are distinguished by their order.

use crate::exchange::NodeId;
use std::collections::HashMap;
use std::fmt::Write as _;
use weir_plan::address::Address;
use weir_plan::fleets::ListedMember;
use weir_plan::{Edge, Node, Origin, Place, Point, Spec};

/// The identities of all remaining graphs, by number. Its maps are looked up only: their order decides nothing.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// Nodes by their text, of which several may have the same.
    nodes: HashMap<String, EqualNodes>,
    /// Targets, and nodes of vacant places.
    targets: HashMap<String, u32>,
    /// The count of numbers ever given: none is given twice.
    given: u32,
    /// The count of plans.
    plans: u64,
}

/// Nodes that differ by their order alone.
#[derive(Debug, Default)]
struct EqualNodes {
    /// Their numbers, in this order.
    keys: Vec<u32>,
    /// How many of them the plan of this number has so far.
    found: (u64, usize),
}

/// The numbers of a plan's nodes.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// As nodes, by index.
    pub nodes: Box<[u32]>,
    /// As the targets that servers are, by index; for other nodes the same as above.
    pub targets: Box<[u32]>,
}

impl Keys {
    /// The identities of these as targets of a balancer.
    pub fn of_targets(&self, nodes: &[NodeId]) -> Vec<u32> {
        nodes.iter().map(|node| self.targets[*node as usize]).collect()
    }
}

impl Interner {
    /// The number of a target.
    fn target(&mut self, identity: &str) -> u32 {
        if let Some(key) = self.targets.get(identity) {
            return *key;
        }
        let key = give(&mut self.given);
        self.targets.insert(identity.to_owned(), key);
        key
    }

    /// The number of the next node of this text in the present plan.
    fn node(&mut self, text: &str) -> u32 {
        let plan = self.plans;
        let mut take = |equal: &mut EqualNodes| {
            let at = if equal.found.0 == plan { equal.found.1 } else { 0 };
            equal.found = (plan, at + 1);
            if at == equal.keys.len() {
                equal.keys.push(give(&mut self.given));
            }
            equal.keys[at]
        };
        if let Some(equal) = self.nodes.get_mut(text) {
            return take(equal);
        }
        take(self.nodes.entry(text.to_owned()).or_default())
    }

    /// Forgets all others.
    pub fn keep(&mut self, is_left: impl Fn(u32) -> bool) {
        self.targets.retain(|_, key| is_left(*key));
        self.nodes.retain(|_, equal| {
            // A plan that has one of them has all before it.
            equal.keys.retain(|key| is_left(*key));
            !equal.keys.is_empty()
        });
    }

    /// The numbers of all nodes of a plan.
    pub fn keys(&mut self, point: &Point) -> Keys {
        self.plans += 1;
        let addresses = addresses_behind(point);
        let places: Vec<String> = (0..point.sites.len()).map(|site| place(point, site)).collect();
        let mut text = String::new();
        let nodes: Box<[u32]> = (0..)
            .zip(&point.nodes)
            .map(|(id, node)| {
                if is_vacant(point, id) {
                    return self.target(VACANT);
                }
                text.clear();
                write_node(&mut text, point, node, &places, addresses[id as usize], listed(point, id));
                self.node(&text)
            })
            .collect();
        let target = |(own, end): (&u32, NodeId)| {
            let at_end = nodes[end as usize];
            match &point.specs[point.nodes[end as usize].spec as usize] {
                Spec::Server { addr: Some(addr), origin, .. } => {
                    text.clear();
                    write_target(&mut text, addr, origin, listed(point, end));
                    self.target(&text)
                }
                Spec::Listen(listen) => match (is_free_port(&listen.addr), listen.tls.is_some()) {
                    (false, false) => self.target(&format!("listener {}", listen.addr)),
                    (false, true) => self.target(&format!("listener {} by TLS", listen.addr)),
                    // Listeners that take a free port are identified by their name alone.
                    (true, false) => at_end,
                    (true, true) => self.target(&format!("listener of node {at_end} by TLS")),
                },
                _ => *own,
            }
        };
        let targets = nodes.iter().zip(ends(point)).map(target).collect();
        Keys { nodes, targets }
    }
}

/// The next number.
fn give(given: &mut u32) -> u32 {
    *given += 1;
    *given - 1
}

/// The identity of all nodes of vacant places: nothing leads there.
const VACANT: &str = "vacant";

/// The kind of any balancer.
const LB: &str = "lb";

fn is_free_port(addr: &str) -> bool {
    Address::parse(addr).is_none_or(|address| address.is_free_port())
}

fn is_vacant(point: &Point, id: NodeId) -> bool {
    point.fleets.as_deref().is_some_and(|fleets| fleets.is_vacant(id))
}

/// What a source says of the member that a node is part of.
fn listed(point: &Point, id: NodeId) -> Option<&ListedMember> {
    point.fleets.as_deref()?.listed(id)
}

/// Writes the identity of a node, but for its order among those that are alike. `places`: the texts of all sites.
fn write_node(
    out: &mut String,
    point: &Point,
    node: &Node,
    places: &[String],
    address: Option<&str>,
    member: Option<&ListedMember>,
) {
    let spec = &point.specs[node.spec as usize];
    let is_server = matches!(spec, Spec::Server { .. });
    // A balancer stays the same with another policy, and with one target or several.
    let is_lb = matches!(spec, Spec::Lb(_));
    let kind = if is_lb { LB } else { spec.kind() };
    let name = node.name.as_ref().filter(|_| !is_server);
    match name {
        Some(name) => _ = write!(out, "{kind} {name:?}"),
        None => out.push_str(places.get(node.site as usize).map_or("", |place| place)),
    }
    let own_address = address.filter(|_| !is_lb && name.is_none());
    if let Some(addr) = member.map(|member| &*member.addr).or(own_address) {
        out.push_str(" at ");
        out.push_str(addr);
    }
    if let Some(id) = member.and_then(|member| member.id.as_ref()) {
        let _ = write!(out, " with id {id:?}");
    }
}

/// Writes the identity of a target.
fn write_target(out: &mut String, addr: &str, origin: &Origin, member: Option<&ListedMember>) {
    let Origin { protocol, tls, send_proxy, .. } = origin;
    let _ = write!(out, "target {addr} {protocol:?}");
    if let Some(tls) = tls {
        let _ = write!(out, " {tls:?}");
    }
    if let Some(version) = send_proxy {
        let _ = write!(out, " with PROXY {version:?}");
    }
    if let Some(id) = member.and_then(|member| member.id.as_ref()) {
        let _ = write!(out, " with id {id:?}");
    }
}

/// By node: the server or listener at the end of its only way, past nodes like `weight` and `queue`, or the node where
/// its ways part.
fn ends(point: &Point) -> Vec<NodeId> {
    let mut ends: Vec<NodeId> = Vec::with_capacity(point.nodes.len());
    // A node comes after all nodes behind it.
    for (id, node) in (0..).zip(&point.nodes) {
        let is_end = matches!(point.specs[node.spec as usize], Spec::Server { .. } | Spec::Listen(_));
        ends.push(match node.to {
            Edge::Node(next) if !is_end => ends[next as usize],
            _ => id,
        });
    }
    ends
}

/// The place of a site in the text.
fn place(point: &Point, site: usize) -> String {
    let site = point.sites.get(site);
    match site.and_then(|site| point.places.get(site.place as usize)) {
        Some(Place { file, def, kind, via, number }) => {
            let kind = if kind.starts_with("lb.") { LB } else { kind };
            format!("{file}/{def}/{kind}/{via}/{number}")
        }
        None => String::new(),
    }
}

/// The address of the one addressed server or listener behind each node; `None` if there is none, or more than one.
fn addresses_behind(point: &Point) -> Vec<Option<&str>> {
    enum AddressedServers<'a> {
        Nothing,
        One(&'a str),
        More,
    }
    // A node comes after all nodes behind it.
    let mut behind: Vec<AddressedServers<'_>> = Vec::with_capacity(point.nodes.len());
    for node in &point.nodes {
        let found = match (&point.specs[node.spec as usize], node.to) {
            (Spec::Server { addr: Some(addr), .. }, _) => AddressedServers::One(addr),
            (Spec::Listen(listen), _) => AddressedServers::One(&listen.addr),
            (_, Edge::None) => AddressedServers::Nothing,
            (_, Edge::Node(next)) => match &behind[next as usize] {
                AddressedServers::Nothing => AddressedServers::Nothing,
                AddressedServers::One(addr) => AddressedServers::One(addr),
                AddressedServers::More => AddressedServers::More,
            },
            (_, Edge::List(list)) => match &point.lists[list as usize][..] {
                [only] => match &behind[*only as usize] {
                    AddressedServers::One(addr) => AddressedServers::One(addr),
                    _ => AddressedServers::More,
                },
                _ => AddressedServers::More,
            },
        };
        behind.push(found);
    }
    behind.into_iter().map(|b| if let AddressedServers::One(addr) = b { Some(addr) } else { None }).collect()
}

/// Where requests enter, by index of the node; for nodes that name a listener's inside.
pub(crate) fn inside(point: &Point, listener: NodeId) -> NodeId {
    match point.nodes[listener as usize].to {
        Edge::Node(next) => next,
        _ => listener,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of nodes in a plan that has these texts.
    fn plan(interner: &mut Interner, texts: &[&str]) -> Vec<u32> {
        interner.plans += 1;
        texts.iter().map(|text| interner.node(text)).collect()
    }

    #[test]
    fn equal_nodes_are_told_apart_by_their_order() {
        let mut interner = Interner::default();
        assert_eq!(plan(&mut interner, &["a", "b", "a", "a"]), [0, 1, 2, 3]);
        assert_eq!(plan(&mut interner, &["a", "a", "b"]), [0, 2, 1]);
        assert_eq!(interner.target("a"), 4, "a target is no node");
        // What no plan has any more gets another number when it comes back.
        interner.keep(|key| [0, 1].contains(&key));
        assert_eq!(plan(&mut interner, &["b", "a", "a", "a"]), [1, 0, 5, 6]);
        assert_eq!((interner.target("a"), interner.nodes.len()), (7, 2));
        interner.keep(|_| false);
        assert!(interner.nodes.is_empty() && interner.targets.is_empty());
    }
}
