//! Rules of a `route` that no client of a listener can match: a certificate that nobody asks for, CONNECT where it is
//! refused, addresses of a family that no client has. A rule that denies and never matches lets everything in.

use crate::address::Address;
use crate::diagnostic::Diagnostic;
use crate::http::network;
use crate::ways::down;
use crate::{Listen, NodeId, Point, RouteCondition, Spec};
use std::collections::BTreeSet;

/// A set of what some request that comes to a node may have.
type Has = u8;

/// A listener leads there.
const REACHED: Has = 1;
/// A client's address of that family.
const IPV4: Has = 2;
const IPV6: Has = 4;
/// A verified certificate of the client.
const CERTIFICATE: Has = 8;
/// The method CONNECT.
const CONNECT: Has = 16;

/// The rules that never match when the point is served, once for each site, each with its node.
pub(crate) fn unmatched(point: &Point) -> Vec<(NodeId, Diagnostic)> {
    // What is behind a listener comes from its clients, one of which is weir if there is a listener before it: it has
    // no certificate, and passes on the address of its own client.
    let pass = |_, spec: &Spec, above: Has| match spec {
        Spec::Listen(listen) => clients_of(listen) | above & (IPV4 | IPV6),
        _ => above,
    };
    let at = down(point, vec![0; point.nodes.len()], pass, |a, b| a | b);
    let (mut sites, mut found) = (BTreeSet::new(), Vec::new());
    for (id, (node, has)) in (0u32..).zip(point.nodes.iter().zip(at)) {
        let Some(Spec::Route { rules, .. }) = point.spec(id).filter(|_| has != 0) else { continue };
        let never = (0u32..).zip(rules).find_map(|(i, rule)| Some((i, mismatch(rule, has)?)));
        if let Some((i, (why, help))) = never.filter(|_| sites.insert(node.site)) {
            let message = format!("`rules[{i}]` of `route` never matches when it is served: {why}");
            found.push((id, Diagnostic::error(message).help(help)));
        }
    }
    found
}

/// What requests of a listener's clients may have.
fn clients_of(listen: &Listen) -> Has {
    let has_certificates = listen.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    let addresses = match Address::parse(&listen.addr) {
        // A trusted peer may name any address.
        _ if !(listen.http.trusted.is_empty() && listen.http.proxy_from.is_empty()) => IPV4 | IPV6,
        Some(Address::Unix(_)) => 0,
        Some(Address::Ip(at)) if at.is_ipv4() => IPV4,
        Some(Address::Ip(at)) if !at.ip().is_unspecified() => IPV6,
        Some(Address::Ip(_) | Address::Port(_) | Address::Name(..)) | None => IPV4 | IPV6,
    };
    REACHED
        | addresses
        | if has_certificates { CERTIFICATE } else { 0 }
        | if listen.http.connect.is_empty() { 0 } else { CONNECT }
}

/// Why no request that has at most this matches a rule, and the remedy.
fn mismatch(rule: &RouteCondition, has: Has) -> Option<(&'static str, &'static str)> {
    if !rule.client_name.is_empty() && has & CERTIFICATE == 0 {
        return Some((
            "no listener that leads here asks clients for the certificate that `client_name` names",
            "give a listener `tls=tls.server(cert, key, client_ca=\"ca.pem\")`",
        ));
    }
    if !rule.method.is_empty() && rule.method.iter().all(|m| m == "CONNECT") && has & CONNECT == 0 {
        return Some((
            "no listener that leads here lets CONNECT in",
            "name what clients may connect to, as in `http=http(connect=[\"db.example.com:5432\"])`",
        ));
    }
    let is_met = |text: &String| match network(text) {
        Ok((address, _)) => has & if address.is_ipv4() { IPV4 } else { IPV6 } != 0,
        Err(_) => true,
    };
    if !rule.client.is_empty() && !rule.client.iter().any(is_met) {
        return Some((
            "no client of the listeners that lead here has such an address",
            "name addresses of the listener's family; a Unix socket has clients with addresses only where \
                `trusted` or `proxy_from` lets a peer name them",
        ));
    }
    None
}
