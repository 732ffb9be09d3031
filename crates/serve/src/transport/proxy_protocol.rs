//! The PROXY protocol, versions 1 and 2 (HAProxy's `proxy-protocol.txt`): a header at the beginning of a connection
//! announces the client that came through a balancer in front.

use crate::transport::session::Session;
use ppp::{HeaderResult, PartialResult, v1, v2};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Poll, ready};
use weir_net::transport::socket::Socket;
use weir_net::transport::wire::Wire;
use weir_plan::SendProxy;
use weir_plan::fixed::MAX_PROXY_HEADER_BYTES as MOST;

/// Bytes of a header of version 1, at most (section 2.1).
const MOST_V1: usize = 107;

/// The contents of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProxyHeader {
    /// The length of the header, bytes.
    pub length: usize,
    /// The client; `None`: the connection is the balancer's own (LOCAL), or has no address: the peer is the
    /// client.
    pub client: Option<SocketAddr>,
    /// The address that the client connected to, if there is a client.
    pub local: Option<SocketAddr>,
}

impl ProxyHeader {
    fn new(length: usize, ends: Option<Ends>) -> ProxyHeader {
        let (client, local) = ends.unzip();
        ProxyHeader { length, client, local }
    }
}

/// The two ends of a client's connection: its own, and the balancer's.
type Ends = (SocketAddr, SocketAddr);

/// Why no header was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyError {
    /// Something else arrived.
    Missing,
    /// It begins as a header but is malformed.
    Malformed,
    /// It is longer than the limit.
    TooLong,
    /// The connection ended in it.
    Cut,
    /// It did not arrive in time.
    Late,
    /// Nothing arrived at all, which is not an error.
    Nothing,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProxyError::Missing => "it sent no PROXY header, which `proxy_from` makes mandatory for it",
            ProxyError::Malformed => "its PROXY header is malformed",
            ProxyError::TooLong => "its PROXY header is too long",
            ProxyError::Cut => "its PROXY header is cut off",
            ProxyError::Late => "its PROXY header did not arrive within head_timeout",
            ProxyError::Nothing => "it sent nothing",
        })
    }
}

/// Parses a header; `None`: it is incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(a, b)| a == b);
    if !begins(v1::PROTOCOL_PREFIX.as_bytes()) && !begins(v2::PROTOCOL_PREFIX) {
        return Err(ProxyError::Missing);
    }
    if bytes.starts_with(v1::PROTOCOL_PREFIX.as_bytes()) {
        return parse_v1(bytes);
    }
    let header = HeaderResult::parse(bytes);
    if header.is_incomplete() {
        return if bytes.len() >= MOST { Err(ProxyError::TooLong) } else { Ok(None) };
    }
    let (length, ends) = match header {
        HeaderResult::V2(Ok(header)) => (header.len(), of_v2(&header)),
        _ => return Err(ProxyError::Malformed),
    };
    if length > MOST { Err(ProxyError::TooLong) } else { Ok(Some(ProxyHeader::new(length, ends))) }
}

/// Parses a line. The library gets it complete: it takes one that is cut in its last fields for a malformed one, and
/// some malformed ones for cut ones.
fn parse_v1(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    let Some(end) = bytes.iter().take(MOST_V1).position(|byte| *byte == b'\n') else {
        return if bytes.len() >= MOST_V1 { Err(ProxyError::TooLong) } else { Ok(None) };
    };
    let line = &bytes[..=end];
    let Some(words) = line.strip_suffix(b"\r\n") else { return Err(ProxyError::Malformed) };
    // "The receiver must ignore anything presented before the CRLF" (section 2.1).
    if words == b"PROXY UNKNOWN" || words.starts_with(b"PROXY UNKNOWN ") {
        return Ok(Some(ProxyHeader::new(line.len(), None)));
    }
    let header = v1::Header::try_from(line).map_err(|_| ProxyError::Malformed)?;
    Ok(Some(ProxyHeader::new(line.len(), of_v1(&header.addresses))))
}

fn of_v1(addresses: &v1::Addresses) -> Option<Ends> {
    match addresses {
        v1::Addresses::Tcp4(a) => Some((
            (a.source_address, a.source_port).into(),
            (a.destination_address, a.destination_port).into(),
        )),
        v1::Addresses::Tcp6(a) => Some((
            (a.source_address, a.source_port).into(),
            (a.destination_address, a.destination_port).into(),
        )),
        v1::Addresses::Unknown => None,
    }
}

fn of_v2(header: &v2::Header<'_>) -> Option<Ends> {
    match header.addresses {
        _ if header.command == v2::Command::Local => None,
        v2::Addresses::IPv4(a) => Some((
            (a.source_address, a.source_port).into(),
            (a.destination_address, a.destination_port).into(),
        )),
        v2::Addresses::IPv6(a) => Some((
            (a.source_address, a.source_port).into(),
            (a.destination_address, a.destination_port).into(),
        )),
        v2::Addresses::Unspecified | v2::Addresses::Unix(_) => None,
    }
}

/// Reads and consumes the header that a connection must begin with.
pub(crate) async fn read(session: &Session, wire: &mut Wire) -> Result<ProxyHeader, ProxyError> {
    session.deadline.set(session.listener.http.head_timeout_ns);
    poll_fn(|cx| {
        loop {
            match parse(wire.input()) {
                Ok(Some(said)) => {
                    wire.consume(said.length);
                    return Poll::Ready(Ok(said));
                }
                Ok(None) => {}
                Err(wrong) => return Poll::Ready(Err(wrong)),
            }
            let nothing = wire.input().is_empty();
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(n)) if n > 0 && n != usize::MAX => {}
                Poll::Ready(_) if nothing => return Poll::Ready(Err(ProxyError::Nothing)),
                Poll::Ready(_) => return Poll::Ready(Err(ProxyError::Cut)),
                Poll::Pending if session.deadline.ended(cx) || session.is_draining() => {
                    return Poll::Ready(Err(if nothing { ProxyError::Nothing } else { ProxyError::Late }));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// The header that announces a client to an origin, and the address it connected to; without both it announces an
/// unknown client.
///
/// # Errors
/// None in practice; the library's type has them.
pub(crate) fn header(version: SendProxy, ends: Option<(SocketAddr, SocketAddr)>) -> io::Result<Vec<u8>> {
    let ends = ends.map(|(client, local)| one_family(client, local));
    match version {
        SendProxy::V1 => Ok(match ends {
            Some((SocketAddr::V4(c), SocketAddr::V4(l))) => {
                format!("PROXY TCP4 {} {} {} {}\r\n", c.ip(), l.ip(), c.port(), l.port())
            }
            Some((SocketAddr::V6(c), SocketAddr::V6(l))) => {
                format!("PROXY TCP6 {} {} {} {}\r\n", c.ip(), l.ip(), c.port(), l.port())
            }
            _ => "PROXY UNKNOWN\r\n".to_owned(),
        }
        .into_bytes()),
        SendProxy::V2 => match ends {
            Some(ends) => {
                let byte = v2::Version::Two | v2::Command::Proxy;
                v2::Builder::with_addresses(byte, v2::Protocol::Stream, ends).build()
            }
            None => {
                let byte = v2::Version::Two | v2::Command::Local;
                v2::Builder::new(byte, v2::AddressFamily::Unspecified | v2::Protocol::Unspecified).build()
            }
        },
    }
}

/// Sends a header at the beginning of a new connection.
pub(crate) async fn send(socket: &mut Socket, header: &[u8]) -> io::Result<()> {
    let mut at = 0;
    poll_fn(|cx| {
        while at < header.len() {
            match ready!(socket.poll_write(cx, &header[at..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => at += n,
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}

/// Converts both to one version of IP, as the header requires.
fn one_family(client: SocketAddr, local: SocketAddr) -> (SocketAddr, SocketAddr) {
    let plain = |a: SocketAddr| SocketAddr::new(a.ip().to_canonical(), a.port());
    let (client, local) = (plain(client), plain(local));
    if client.is_ipv4() == local.is_ipv4() {
        return (client, local);
    }
    let six = |a: SocketAddr| match a.ip() {
        std::net::IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), a.port()),
        std::net::IpAddr::V6(_) => a,
    };
    (six(client), six(local))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Examples of the specification (section 2), and other bytes in their place.
    #[test]
    fn headers_are_read() {
        let said = |bytes: &[u8]| parse(bytes).map(|said| said.map(|said| (said.length, said.client)));
        let v1 = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\nGET / HTTP/1.1\r\n";
        assert_eq!(said(v1), Ok(Some((47, Some(address("192.168.0.1:56324"))))));
        let longest = b"PROXY TCP6 ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n";
        assert_eq!(said(longest), Err(ProxyError::Malformed));
        assert_eq!(
            said(b"PROXY TCP6 2001:db8::1 ::1 4124 443\r\n").map(|s| s.unwrap().1),
            Ok(Some(address("[2001:db8::1]:4124")))
        );
        assert_eq!(said(b"PROXY UNKNOWN\r\nx"), Ok(Some((15, None))));
        assert_eq!(said(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n").map(|s| s.unwrap().1), Ok(None));
        for wrong in ["GET / HTTP/1.1\r\n", "\x16\x03\x01", "PROXX", "proxy TCP4"] {
            assert_eq!(said(wrong.as_bytes()), Err(ProxyError::Missing), "{wrong}");
        }
        for wrong in [
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 99999\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
        ] {
            assert_eq!(said(wrong.as_bytes()), Err(ProxyError::Malformed), "{wrong}");
        }
    }

    /// What is written is read, of both versions, cut at every byte.
    #[test]
    fn what_is_written_is_read() {
        let v4 = (address("10.1.2.3:4000"), address("10.0.0.1:443"));
        let v6 = (address("[2001:db8::7]:4000"), address("[::1]:443"));
        let mixed = (address("[2001:db8::7]:4000"), address("10.0.0.1:443"));
        for version in [SendProxy::V1, SendProxy::V2] {
            for ends in [Some(v4), Some(v6), Some(mixed), None] {
                let read = ends.map(|(client, local)| one_family(client, local));
                let mut bytes = header(version, ends).unwrap();
                let length = bytes.len();
                for cut in 0..length {
                    assert_eq!(parse(&bytes[..cut]), Ok(None), "{version:?} {ends:?} at {cut}");
                }
                bytes.extend_from_slice(b"GET");
                assert_eq!(parse(&bytes), Ok(Some(ProxyHeader::new(length, read))), "{version:?} {ends:?}");
            }
        }
    }

    #[test]
    fn a_header_without_end_is_not_waited_for() {
        let mut bytes = header(SendProxy::V2, None).unwrap();
        bytes[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        bytes.resize(MOST - 1, 0);
        assert_eq!(parse(&bytes), Ok(None));
        bytes.push(0);
        assert_eq!(parse(&bytes), Err(ProxyError::TooLong));
        let mut endless = b"PROXY TCP4 ".to_vec();
        endless.resize(200, b'1');
        assert!(parse(&endless).is_err());
    }
}

#[cfg(test)]
#[path = "proxy_protocol_tests.rs"]
mod generated_tests;
