//! Sets of addresses: the peers whose word about the client is taken.

use std::fmt;
use std::net::IpAddr;

/// Networks in CIDR notation, and perhaps the peers of Unix sockets.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    /// Addresses, and how many of their first bits count.
    nets: Vec<(IpAddr, u32)>,
    unix: bool,
}

/// A text that is not a network: a sentence that quotes it, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidNetwork(String);

impl fmt::Display for InvalidNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidNetwork {}

impl Networks {
    /// The entry of a list that means the peers of Unix sockets, which have no address.
    pub const UNIX: &str = "unix:";

    /// Reads addresses (`::1`), networks (`10.0.0.0/8`) and `unix:`. Bits behind the prefix do not count.
    ///
    /// # Errors
    /// The first text that is none of them.
    pub fn parse(texts: &[String]) -> Result<Networks, InvalidNetwork> {
        let mut networks = Networks::default();
        for text in texts {
            if text == Networks::UNIX {
                networks.unix = true;
                continue;
            }
            let wrong = || {
                InvalidNetwork(format!(
                    "{text:?} is not a network; write an address, or address/bits, as in 10.0.0.0/8"
                ))
            };
            networks.nets.push(parse_network(text).ok_or_else(wrong)?);
        }
        Ok(networks)
    }

    /// Whether the address lies in one of them. An IPv4 address inside IPv6 (`::ffff:1.2.3.4`) counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.nets.iter().any(|&(net, bits)| match (net, address) {
            (IpAddr::V4(net), IpAddr::V4(a)) => (net.to_bits() ^ a.to_bits()).leading_zeros() >= bits,
            (IpAddr::V6(net), IpAddr::V6(a)) => (net.to_bits() ^ a.to_bits()).leading_zeros() >= bits,
            _ => false,
        })
    }

    /// Whether a peer is in them; `None` is the peer of a Unix socket.
    pub fn trusts(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            Some(_) if self.nets.is_empty() => false,
            Some(address) => self.contains(address),
            None => self.unix,
        }
    }
}

/// The bits before the IPv4 address in a mapped one (`::ffff:1.2.3.4`, RFC 4291 §2.5.5.2).
const MAPPED_BITS: u32 = 96;

/// Reads an address with the bits that count, by default all. A network of mapped addresses is the IPv4 network that
/// it writes, since clients' addresses are compared as IPv4.
pub fn parse_network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    match (address, address.to_canonical()) {
        _ if bits > most => None,
        (IpAddr::V6(_), mapped @ IpAddr::V4(_)) if bits >= MAPPED_BITS => Some((mapped, bits - MAPPED_BITS)),
        _ => Some((address, bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Result<Networks, InvalidNetwork> {
        Networks::parse(&texts.iter().map(|t| t.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn membership() {
        let n = networks(&["10.1.2.3/8", "::1", "fd00::/8", "0.0.0.0/32", "unix:"]).unwrap();
        for (address, inside) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("::1", true),
            ("::2", false),
            ("fd12::1", true),
            ("fe00::1", false),
            ("::ffff:10.0.0.1", true),
            ("0.0.0.0", true),
            ("::", false),
        ] {
            assert_eq!(n.contains(address.parse().unwrap()), inside, "{address}");
        }
        let mapped = networks(&["::ffff:127.0.0.0/104", "::ffff:10.0.0.1"]).unwrap();
        for (address, inside) in [
            ("127.1.2.3", true),
            ("::ffff:127.1.2.3", true),
            ("128.0.0.1", false),
            ("10.0.0.1", true),
            ("10.0.0.2", false),
            ("::1", false),
        ] {
            assert_eq!(mapped.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert!(n.trusts(None) && !Networks::default().trusts(None));
        assert!(networks(&["0.0.0.0/0"]).unwrap().contains("1.2.3.4".parse().unwrap()));
        for bad in ["", "10.0.0.0/33", "::/129", "a", "1.2.3.4/", "1.2.3.4/x", "1.2.3/8", "unix", "unix:/x"] {
            assert!(networks(&[bad]).unwrap_err().0.contains("10.0.0.0/8"), "{bad}");
        }
    }
}
