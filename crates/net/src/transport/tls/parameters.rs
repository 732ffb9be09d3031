//! The parameters that a client's handshake negotiated: the name that it asked for, and whether a request's Host fits
//! it.

use super::ClientCertificate;
use super::server::Certificates;
use rustls::{CommonState, ProtocolVersion};
use std::sync::Arc;

/// The negotiated parameters of a connection.
pub struct TlsParameters {
    /// The name that the client asked for (SNI), in lower case.
    name: Option<Box<str>>,
    /// The certificates at the time of the handshake.
    certificates: Arc<Certificates>,
    /// Whether HTTP/2 was agreed on (ALPN).
    pub is_h2: bool,
    /// Whether it is TLS 1.3; otherwise 1.2.
    is_13: bool,
    /// The client's certificate, if it has shown one; it was verified then.
    client: Option<Box<ClientCertificate>>,
}

impl TlsParameters {
    /// The parameters of a handshake with this name.
    pub fn new(name: Option<&str>, state: &CommonState, certificates: Arc<Certificates>) -> TlsParameters {
        let shown = state.peer_certificates().and_then(|chain| chain.first());
        TlsParameters {
            name: name.map(|name| name.to_ascii_lowercase().into()),
            certificates,
            is_h2: state.alpn_protocol() == Some(b"h2"),
            is_13: state.protocol_version() == Some(ProtocolVersion::TLSv1_3),
            client: shown.and_then(|own| ClientCertificate::from_der(own)).map(Box::new),
        }
    }

    /// The version of TLS, as `1.3`.
    pub fn version(&self) -> &'static str {
        if self.is_13 { "1.3" } else { "1.2" }
    }

    /// The name that the client asked for (SNI), in lower case.
    pub fn server_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The client's verified certificate.
    pub fn client(&self) -> Option<&ClientCertificate> {
        self.client.as_deref()
    }

    /// Whether a request for this host may arrive on this connection (421 otherwise, RFC 9110, 15.5.20): the host is
    /// the name that was asked for, or the certificate shown for that name covers it. A client that asked for no name
    /// (by an IP address, say) has verified the host itself.
    pub fn covers(&self, host: &[u8]) -> bool {
        let Some(name) = self.name.as_deref() else { return true };
        let host = host_only(host);
        host.is_empty()
            || host.eq_ignore_ascii_case(name.as_bytes())
            || std::str::from_utf8(host).is_ok_and(|host| self.certificates.share(name, host))
    }
}

/// A Host without port and final dot.
fn host_only(host: &[u8]) -> &[u8] {
    let host = match host.iter().rposition(|b| *b == b':') {
        Some(at) if host[at + 1..].iter().all(u8::is_ascii_digit) && !host[..at].ends_with(b":") => {
            &host[..at]
        }
        _ => host,
    };
    host.strip_suffix(b".").unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_compared_without_port_and_dot() {
        for (host, only) in [
            ("a.example", "a.example"),
            ("a.example:8443", "a.example"),
            ("a.example.", "a.example"),
            ("[::1]:443", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(host_only(host.as_bytes()), only.as_bytes(), "{host}");
        }
    }
}
