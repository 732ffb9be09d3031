//! Addresses of listeners and servers: `:443`, `host:port`, `[::1]:80`, `unix:/path`.

use crate::http::{self, InvalidWord, short};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest path of a Unix socket, bytes.
const MOST_PATH: usize = 107;

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A port on all addresses of this machine: listeners only.
    Port(u16),
    /// An address and a port.
    Ip(SocketAddr),
    /// A name (lower case, without a final dot) and a port.
    Name(String, u16),
    /// The path of a Unix socket.
    Unix(String),
}

impl Address {
    /// An address as the language writes it; `None` where it is none.
    pub fn parse(text: &str) -> Option<Address> {
        parse(text).ok()
    }

    /// Whether the system is to choose the port.
    pub fn is_free_port(&self) -> bool {
        self.port() == Some(0)
    }

    /// Whether two listeners at these addresses want the same port of this machine: one address, or all addresses and
    /// any of the same family (`[::]` and `:PORT`: of both).
    pub fn competes_with(&self, other: &Address) -> bool {
        let of = |address: &Address| match address {
            Address::Port(port) => Some(SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port))),
            Address::Ip(at) => Some(*at),
            Address::Name(..) | Address::Unix(_) => None,
        };
        let covers = |one: SocketAddr, other: SocketAddr| {
            one.ip().is_unspecified() && (one.is_ipv6() || other.is_ipv4())
        };
        if self == other && !self.is_free_port() {
            return true;
        }
        let (Some(one), Some(other)) = (of(self), of(other)) else { return false };
        let is_shared = one.port() == other.port() && one.port() != 0;
        is_shared && (one == other || covers(one, other) || covers(other, one))
    }

    /// Its port; a Unix socket has none.
    pub fn port(&self) -> Option<u16> {
        match self {
            Address::Port(port) | Address::Name(_, port) => Some(*port),
            Address::Ip(at) => Some(at.port()),
            Address::Unix(_) => None,
        }
    }
}

/// The addresses a listener may have.
pub fn listener(text: &str) -> Result<(), InvalidWord> {
    parse(text).map(|_| ())
}

/// The addresses a server may have.
pub fn server(text: &str) -> Result<(), InvalidWord> {
    let no = |why: &str, help: Option<String>| {
        Err(InvalidWord::new(format!("\"{}\" is not the address of a server: {why}", short(text)), help))
    };
    match parse(text)? {
        address if address.is_free_port() => no("there is no port 0", None),
        Address::Ip(at) if is_many(at.ip()) => no("it is the address of many machines at once", None),
        Address::Port(port) => {
            no("it has no host", Some(format!("write \"127.0.0.1:{port}\" for this machine")))
        }
        _ => Ok(()),
    }
}

/// Whether it is a multicast or broadcast address, to which no connection is made.
fn is_many(ip: IpAddr) -> bool {
    ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// An address of this host without a port, from which something is sent.
pub fn source(text: &str) -> Result<(), InvalidWord> {
    if text.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let without_port = text.parse::<SocketAddr>().map(|at| at.ip().to_string());
    let help = without_port.map_or_else(
        |_| "write an address of this host, such as \"10.0.0.7\"".to_owned(),
        |ip| format!("it has no port: write \"{ip}\""),
    );
    Err(InvalidWord::new(format!("\"{}\" is not an address without a port", short(text)), Some(help)))
}

/// An authority that CONNECT may name: a host, or `*.example.com`, and its port.
pub fn authority(text: &str) -> Result<(), InvalidWord> {
    let no = || {
        InvalidWord::new(
            format!("\"{}\" is not an address to connect to, such as \"db.example.com:5432\"", short(text)),
            None,
        )
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(no)?;
    number(port).filter(|p| *p > 0).ok_or_else(no)?;
    http::host_pattern(host).map_err(|_| no())
}

fn parse(text: &str) -> Result<Address, InvalidWord> {
    let no = |why: &str, help: Option<String>| {
        Err(InvalidWord::new(format!("\"{}\" is not an address: {why}", short(text)), help))
    };
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => no("the path of the socket is missing", Some("write \"unix:/run/weir.sock\"".to_owned())),
            _ if path.len() > MOST_PATH => no(&format!("a path has at most {MOST_PATH} bytes"), None),
            _ if path.chars().any(char::is_control) => no("a path cannot have control characters", None),
            _ => Ok(Address::Unix(path.to_owned())),
        };
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let rest = rest.split('/').next().unwrap_or_default();
        let port = if scheme == "https" { 443 } else { 80 };
        let whole = if rest.contains(':') { rest.to_owned() } else { format!("{rest}:{port}") };
        return no("it is a URL", Some(format!("write \"{}\"", short(&whole))));
    }
    let Some((host, port)) = text.rsplit_once(':').filter(|(_, port)| !port.contains(']')) else {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let whole = if digits { format!(":{text}") } else { format!("{}:80", short(text)) };
        let help = (!text.is_empty()).then(|| format!("write \"{whole}\""));
        return no("it has no port", help);
    };
    let Some(port) = number(port) else {
        return no("a port is a number from 0 to 65535", None);
    };
    if host.is_empty() {
        return Ok(Address::Port(port));
    }
    if let Some(inner) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        return match inner.parse::<Ipv6Addr>() {
            Ok(ip) => Ok(Address::Ip(SocketAddr::new(IpAddr::V6(ip), port))),
            Err(_) => no("only an IPv6 address can be in brackets", None),
        };
    }
    if host.contains(':') {
        let whole = host.parse::<Ipv6Addr>().is_err() && text.parse::<Ipv6Addr>().is_ok();
        let (ip, port) = if whole { (text, 80) } else { (host, port) };
        let help = Some(format!("write \"[{}]:{port}\"", short(ip)));
        return no("an IPv6 address must be in brackets", help);
    }
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Ok(Address::Ip(SocketAddr::new(IpAddr::V4(ip), port)));
    }
    let digits = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if digits || http::host(host).is_err() {
        return no("it has no host, such as \"10.0.0.1\" or \"app.example.com\"", None);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    Ok(Address::Name(name.to_ascii_lowercase(), port))
}

/// A port.
fn number(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let ip = |text: &str| Some(Address::Ip(text.parse().expect("an address")));
        assert_eq!(Address::parse(":443"), Some(Address::Port(443)));
        assert_eq!(Address::parse("127.0.0.1:0"), ip("127.0.0.1:0"));
        assert_eq!(Address::parse("[::1]:80"), ip("[::1]:80"));
        assert_eq!(
            Address::parse("App.Example.com.:8080"),
            Some(Address::Name("app.example.com".into(), 8080))
        );
        assert_eq!(Address::parse("unix:/run/a b.sock"), Some(Address::Unix("/run/a b.sock".into())));
        for wrong in [
            "",
            ":",
            "a",
            "a:",
            "a:b",
            "a:65536",
            "a:-1",
            "a:+1",
            "::1",
            "::1:80",
            "[::1]",
            "[::1",
            "[a]:80",
            "1.2.3:80",
            "1.2.3.4.5:80",
            "http://a:80",
            "a b:80",
            "a/b:80",
            "unix:",
            "unix:a\nb",
            "*:80",
            "a:80/",
            "\u{e9}:80",
        ] {
            assert_eq!(Address::parse(wrong), None, "{wrong}");
        }
        assert!(Address::parse(&format!("unix:/{}", "x".repeat(107))).is_none());
    }

    #[test]
    fn servers_have_a_host_and_a_port() {
        assert!(server("a:1").is_ok() && server("unix:/a").is_ok());
        assert!(server(":80").is_err() && server("a:0").is_err() && server("10.0.0.1:0").is_err());
        assert!(authority("a.example.com:443").is_ok() && authority("*.example.com:443").is_ok());
        assert!(
            authority("a.example.com").is_err() && authority("*:443").is_err() && authority("a:0").is_err()
        );
    }

    #[test]
    fn a_wildcard_competes_for_its_port() {
        let competes = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| Address::parse(text).expect("an address"));
            assert_eq!(one.competes_with(&other), other.competes_with(&one));
            one.competes_with(&other)
        };
        for (one, other, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("127.0.0.1:80", ":80", true),
            ("[::1]:80", ":80", true),
            ("[::1]:80", "[::]:80", true),
            ("0.0.0.0:80", "[::]:80", true),
            ("[::1]:80", "0.0.0.0:80", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:80", "0.0.0.0:81", false),
            ("127.0.0.1:0", ":0", false),
            ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/b", false),
        ] {
            assert_eq!(competes(one, other), expected, "{one} {other}");
        }
    }
}
