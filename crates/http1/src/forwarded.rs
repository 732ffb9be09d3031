//! The client's address behind trusted peers: X-Forwarded-For, read from the right.

use crate::byte::elements;
use crate::name::Name;
use crate::networks::Networks;
use crate::request::Request;
use std::net::{IpAddr, SocketAddr};

/// The rightmost untrusted address over the peer and all lines of X-Forwarded-For, which trusted peers append to. What
/// is not an address ends the walk: the entries to its left are not trustworthy.
pub(crate) fn client(request: &Request, peer: Option<IpAddr>, trusted: &Networks) -> Option<IpAddr> {
    let mut client = peer.map(|a| a.to_canonical());
    if !trusted.trusts(peer) {
        return client;
    }
    for element in request.block.passing(Name::ForwardedFor).rev().flat_map(|v| elements(v).rev()) {
        let Some(address) = address(element) else { break };
        client = Some(address);
        if !trusted.contains(address) {
            break;
        }
    }
    client
}

/// `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]`, `[::1]:5`.
fn address(element: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(element).ok()?;
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|a| a.ip())).ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("1.2.3.4", Some("1.2.3.4")),
            ("1.2.3.4:5", Some("1.2.3.4")),
            ("::1", Some("::1")),
            ("[::1]", Some("::1")),
            ("[::1]:5", Some("::1")),
            ("::ffff:1.2.3.4", Some("1.2.3.4")),
            ("unknown", None),
            ("1.2.3.4.5", None),
            ("_hidden", None),
        ] {
            assert_eq!(address(text.as_bytes()), expected.map(|e| e.parse().unwrap()), "{text}");
        }
    }
}
