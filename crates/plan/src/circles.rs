//! Servers whose address is one of the file's own listeners, from which requests come back to them: each may go round
//! until weir answers 508, by its own hops in Via. A chain of listeners that ends elsewhere is none.

use crate::address::Address;
use crate::diagnostic::{Diagnostic, Severity};
use crate::{Edge, NodeId, Point, Spec, listeners};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A server behind one listener that leads to another, by the listeners' places among all.
struct Link {
    from: usize,
    server: NodeId,
    to: usize,
}

/// The servers by which a listener reaches itself, once for each site, each with its finding.
pub fn circles(point: &Point) -> Vec<(NodeId, Diagnostic)> {
    let roots = listeners(point);
    let addr = |id: &NodeId| match spec_of(point, *id) {
        Some(Spec::Listen(listen)) => Address::parse(&listen.addr),
        _ => None,
    };
    let open: Vec<Option<Address>> = roots.iter().map(addr).collect();
    let links: Vec<Link> =
        roots.iter().enumerate().flat_map(|(from, root)| links(point, &open, from, *root)).collect();
    let mut sites = BTreeSet::new();
    let mut found = Vec::new();
    for link in &links {
        let site = point.nodes.get(link.server as usize).map(|node| node.site);
        if leads(&links, link.to, link.from) && sites.insert((site, link.to)) {
            found.push((link.server, finding(point, link.server, roots[link.to])));
        }
    }
    found
}

fn finding(point: &Point, server: NodeId, listener: NodeId) -> Diagnostic {
    let node = point.nodes.get(listener as usize);
    let name = node.and_then(|node| node.name.as_deref()).unwrap_or("listen");
    let addr = match spec_of(point, server) {
        Some(Spec::Server { addr: Some(addr), .. }) => addr.as_str(),
        _ => "",
    };
    let finding = Diagnostic::error(format!(
        "this server's address, {addr}, is that of the listener `{name}`, which leads back here: requests \
            may loop until weir answers 508"
    ));
    let finding = Diagnostic { severity: Severity::Warning, ..finding };
    finding.help("write the address of the origin, or give the listener another port")
}

fn spec_of(point: &Point, id: NodeId) -> Option<&Spec> {
    let node = point.nodes.get(id as usize)?;
    point.specs.get(node.spec as usize)
}

/// The servers behind a listener that lead to one. What models a server leads nowhere.
fn links(point: &Point, open: &[Option<Address>], from: usize, root: NodeId) -> Vec<Link> {
    let (mut seen, mut lists) = (BTreeSet::new(), BTreeSet::new());
    let (mut stack, mut found) = (vec![root], Vec::new());
    while let Some(id) = stack.pop() {
        let (true, Some(spec)) = (seen.insert(id), spec_of(point, id)) else { continue };
        match spec {
            Spec::Server { addr: Some(addr), .. } => {
                let Some(there) = Address::parse(addr) else { continue };
                let is_there = |open: &Option<Address>| open.as_ref().is_some_and(|at| hears(at, &there));
                found.extend(open.iter().position(is_there).map(|to| Link { from, server: id, to }));
            }
            Spec::Lb(lb) => stack.extend(lb.spare),
            _ => {}
        }
        match point.nodes[id as usize].to {
            Edge::None => {}
            Edge::Node(next) => stack.push(next),
            // Routers over one long list: it is walked once.
            Edge::List(list) if lists.insert(list) => stack.extend(&point.lists[list as usize]),
            Edge::List(_) => {}
        }
    }
    found
}

/// Whether one listener leads to another, or is it.
fn leads(links: &[Link], from: usize, to: usize) -> bool {
    let (mut seen, mut stack) = (BTreeSet::new(), vec![from]);
    while let Some(at) = stack.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            stack.extend(links.iter().filter(|link| link.from == at).map(|link| link.to));
        }
    }
    false
}

/// The addresses of `localhost` on every machine.
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Whether a connection to that address reaches a listener of this plan. Only what is certain counts: of this machine's
/// addresses the file names none but those that loop back.
fn hears(listener: &Address, there: &Address) -> bool {
    let looks_back = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    if there.port() != listener.port() || listener.is_free_port() {
        return false;
    }
    match (listener, there) {
        (Address::Port(_), Address::Ip(at)) => looks_back(at.ip()),
        (Address::Port(_), Address::Name(host, _)) => host == "localhost",
        (Address::Ip(own), Address::Ip(at)) if own.ip().is_unspecified() => {
            // [::] takes either version, 0.0.0.0 its own.
            looks_back(at.ip()) && (own.is_ipv6() || at.is_ipv4())
        }
        (Address::Ip(own), Address::Ip(at)) => own == at,
        (Address::Ip(own), Address::Name(host, _)) => {
            host == "localhost" && (own.ip() == LOCALHOST || own.ip().is_unspecified())
        }
        (Address::Name(host, port), Address::Ip(at)) => {
            host == "localhost" && *at == SocketAddr::new(LOCALHOST, *port)
        }
        (own, there) => own == there,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hears_whom() {
        let hears = |own: &str, there: &str| {
            hears(&Address::parse(own).expect("an address"), &Address::parse(there).expect("an address"))
        };
        for (own, there) in [
            (":80", "127.0.0.1:80"),
            (":80", "[::1]:80"),
            (":80", "localhost:80"),
            (":80", "127.9.9.9:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("127.0.0.1:80", "localhost:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("localhost:80", "localhost:80"),
            ("unix:/a", "unix:/a"),
        ] {
            assert!(hears(own, there), "{own} {there}");
        }
        for (own, there) in [
            (":80", "127.0.0.1:81"),
            (":80", "10.0.0.1:80"),
            (":80", "app:80"),
            (":80", "unix:/80"),
            ("0.0.0.0:80", "[::1]:80"),
            ("127.0.0.1:80", "127.0.0.2:80"),
            ("10.0.0.1:80", "localhost:80"),
            ("127.0.0.2:80", "localhost:80"),
            ("app:80", "localhost:80"),
            ("unix:/a", "unix:/b"),
            ("127.0.0.1:0", "127.0.0.1:80"),
        ] {
            assert!(!hears(own, there), "{own} {there}");
        }
    }
}
