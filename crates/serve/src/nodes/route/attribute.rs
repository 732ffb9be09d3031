//! What conditions compare of a request, and how that is looked up in a tree of patterns: a host from its end, an
//! address bit by bit. The meaning of conditions is in `plan`'s `matching`.

use super::patterns::PatternTree;
use std::net::IpAddr;
use weir_plan::{MatchInput, RouteCondition, http, path};

/// An argument of `when`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Host,
    Path,
    Header,
    ClientName,
    Client,
    Method,
}

impl Argument {
    /// The one first that tends to decide most.
    pub const ALL: [Argument; 6] = [
        Argument::Host,
        Argument::Path,
        Argument::Header,
        Argument::ClientName,
        Argument::Client,
        Argument::Method,
    ];

    /// The patterns of a condition, of which one must match. `None`: it does not have this argument. A network that is
    /// none matches nothing, and is left out.
    pub fn patterns(self, when: &RouteCondition) -> Option<Vec<Pattern>> {
        let open_end = |text: &String, attribute: &dyn Fn() -> Attribute| {
            let stem = text.strip_suffix('*');
            let bytes = stem.unwrap_or(text).as_bytes().into();
            Pattern { attribute: attribute(), text: bytes, is_open: stem.is_some() }
        };
        let patterns: Vec<Pattern> = match self {
            Argument::Host => when.host.iter().map(|host| host_pattern(host)).collect(),
            Argument::Path => when.path.iter().map(|p| open_end(p, &|| Attribute::Path)).collect(),
            Argument::Header => {
                let of_field = |(name, value): &(String, String)| {
                    open_end(value, &|| Attribute::Header(name.as_str().into()))
                };
                when.header.iter().map(of_field).collect()
            }
            Argument::ClientName => {
                when.client_name.iter().map(|name| open_end(name, &|| Attribute::ClientName)).collect()
            }
            Argument::Client => when.client.iter().filter_map(|network| network_pattern(network)).collect(),
            Argument::Method => when.method.iter().map(|method| method_pattern(method)).collect(),
        };
        (self.count(when) > 0).then_some(patterns)
    }

    /// The number of values that a condition has for it.
    pub fn count(self, when: &RouteCondition) -> usize {
        match self {
            Argument::Host => when.host.len(),
            Argument::Path => when.path.len(),
            Argument::Header => when.header.len(),
            Argument::ClientName => when.client_name.len(),
            Argument::Client => when.client.len(),
            Argument::Method => when.method.len(),
        }
    }

    /// A condition without it.
    pub fn removed_from(self, when: &RouteCondition) -> RouteCondition {
        let mut rest = when.clone();
        match self {
            Argument::Host => rest.host.clear(),
            Argument::Path => rest.path.clear(),
            Argument::Header => rest.header.clear(),
            Argument::ClientName => rest.client_name.clear(),
            Argument::Client => rest.client.clear(),
            Argument::Method => rest.method.clear(),
        }
        rest
    }
}

/// What one pattern is compared with: each has a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Attribute {
    Host,
    Path,
    /// The values of the field with this name.
    Header(Box<str>),
    ClientName,
    Client,
    Method,
}

/// A value of an argument as it is found in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Pattern {
    pub attribute: Attribute,
    pub text: Box<[u8]>,
    /// Whether it matches all that begins with it.
    pub is_open: bool,
}

fn host_pattern(host: &str) -> Pattern {
    let rest = host.strip_prefix('*');
    let text = rest.unwrap_or(host).bytes().rev().map(|b| b.to_ascii_lowercase()).collect();
    Pattern { attribute: Attribute::Host, text, is_open: rest.is_some() }
}

fn network_pattern(network: &str) -> Option<Pattern> {
    let (base, bits) = http::network(network).ok()?;
    let text = address_bits(base).take(1 + bits as usize).map(|(bit, _)| bit).collect();
    Some(Pattern { attribute: Attribute::Client, text, is_open: true })
}

fn method_pattern(method: &str) -> Pattern {
    Pattern { attribute: Attribute::Method, text: method.as_bytes().into(), is_open: false }
}

/// The family of an address, and its bits.
fn address_bits(address: IpAddr) -> impl Iterator<Item = (u8, bool)> {
    let (family, bits, width) = match address {
        IpAddr::V4(v4) => (4, u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (6, u128::from(v6), 128),
    };
    let bits = (0..width).rev().map(move |at| (bits >> at & 1) as u8);
    std::iter::once(family).chain(bits).map(|bit| (bit, true))
}

impl Attribute {
    /// Visits the values of all patterns that match what a request has of it; one more than once if more of the
    /// request's values match it.
    pub fn visit<T>(&self, request: &impl MatchInput, tree: &PatternTree<T>, visit: &dyn Fn(&T)) {
        // `false`: so that the other values are visited too.
        let of_value = |value: &[u8]| {
            tree.visit(true, value.iter().map(|byte| (*byte, true)), visit);
            false
        };
        match self {
            Attribute::Host => {
                let Some(host) = request.host() else { return };
                let host = host.strip_suffix(b".").unwrap_or(host);
                // A name is before the dot of `*.example.com`.
                let bytes = host.iter().enumerate().rev().map(|(at, b)| (b.to_ascii_lowercase(), at > 0));
                tree.visit(!host.is_empty(), bytes, visit);
            }
            Attribute::Path => tree.visit(true, path::normal_bytes(request.path()), visit),
            Attribute::Header(name) => _ = request.has(name, &of_value),
            Attribute::ClientName => _ = request.has_client_name(&of_value),
            Attribute::Client => {
                if let Some(address) = request.client() {
                    tree.visit(true, address_bits(address.to_canonical()), visit);
                }
            }
            Attribute::Method => _ = of_value(request.method()),
        }
    }
}
