//! The field names that an intermediary knows, found by length and first byte.

use crate::byte::folded;

/// A field's name, as far as weir treats it differently from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Name {
    Other,
    Host,
    Connection,
    KeepAlive,
    ProxyConnection,
    Te,
    TransferEncoding,
    Upgrade,
    Http2Settings,
    ContentLength,
    Expect,
    Via,
    MaxForwards,
    Forwarded,
    RealIp,
    ForwardedFor,
    ForwardedProto,
    ForwardedHost,
    ForwardedPort,
    ForwardedOther,
    Proxy,
    Cookie,
    Date,
    SetCookie,
    Authenticate,
    Credentials,
    Trailer,
    TraceParent,
    TraceState,
}

/// A set of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Names(u64);

impl Names {
    pub(crate) const fn new(names: &[Name]) -> Names {
        let mut set = 0;
        let mut i = 0;
        while i < names.len() {
            set |= 1 << names[i] as u64;
            i += 1;
        }
        Names(set)
    }

    pub(crate) fn has(self, name: Name) -> bool {
        self.0 >> name as u64 & 1 != 0
    }

    /// Whether they have a name in common.
    pub(crate) fn meets(self, others: Names) -> bool {
        self.0 & others.0 != 0
    }

    pub(crate) fn add(&mut self, name: Name) {
        self.0 |= 1 << name as u64;
    }

    pub(crate) const fn with(self, more: Names) -> Names {
        Names(self.0 | more.0)
    }
}

/// Fields of this hop, named by Connection or not (RFC 9110 §7.6.1); they are replaced in the forwarded message.
pub(crate) const HOP: Names = Names::new(&[
    Name::Connection,
    Name::KeepAlive,
    Name::ProxyConnection,
    Name::Te,
    Name::TransferEncoding,
    Name::Upgrade,
    Name::Http2Settings,
]);

/// Fields of the client's hop of which nothing is passed on as it came.
pub(crate) const ENDS_HERE: Names = Names::new(&[
    Name::Connection,
    Name::KeepAlive,
    Name::ProxyConnection,
    Name::TransferEncoding,
    Name::Http2Settings,
]);

/// Fields that describe earlier hops, which an attacker would like to forge
/// (`docs/spec/background.md#hop-by-hop-fields`).
pub(crate) const FORWARDED: Names = Names::new(&[
    Name::Forwarded,
    Name::RealIp,
    Name::ForwardedFor,
    Name::ForwardedProto,
    Name::ForwardedHost,
    Name::ForwardedPort,
    Name::ForwardedOther,
    Name::Proxy,
]);

/// Fields that Connection cannot remove: framing, routing and the count of hops.
pub(crate) const PROTECTED: Names = Names::new(&[
    Name::Host,
    Name::ContentLength,
    Name::TransferEncoding,
    Name::Expect,
    Name::Via,
    Name::MaxForwards,
]);

/// Fields that are forbidden in a trailer, of those that have a name here (RFC 9110 §6.5.1).
pub(crate) const NO_TRAILER: Names = HOP.with(FORWARDED).with(PROTECTED).with(Names::new(&[
    Name::Cookie,
    Name::Date,
    Name::SetCookie,
    Name::Authenticate,
    Name::Credentials,
    Name::Trailer,
]));

/// The name, and whether it was written with `_` for `-`.
pub(crate) fn classify(name: &[u8]) -> (Name, bool) {
    let Some(&first) = name.first() else { return (Name::Other, false) };
    let (known, canonical): (Name, &[u8]) = match (name.len(), first | 0x20) {
        (2, b't') => (Name::Te, b"TE"),
        (3, b'v') => (Name::Via, b"Via"),
        (4, b'h') => (Name::Host, b"Host"),
        (4, b'd') => (Name::Date, b"Date"),
        (5, b'p') => (Name::Proxy, b"Proxy"),
        (6, b'c') => (Name::Cookie, b"Cookie"),
        (6, b'e') => (Name::Expect, b"Expect"),
        (7, b'u') => (Name::Upgrade, b"Upgrade"),
        (7, b't') => (Name::Trailer, b"Trailer"),
        (9, b'f') => (Name::Forwarded, b"Forwarded"),
        (9, b'x') => (Name::RealIp, b"X-Real-IP"),
        (10, b'c') => (Name::Connection, b"Connection"),
        (10, b'k') => (Name::KeepAlive, b"Keep-Alive"),
        (10, b't') => (Name::TraceState, b"Tracestate"),
        (10, b's') => (Name::SetCookie, b"Set-Cookie"),
        (11, b't') => (Name::TraceParent, b"Traceparent"),
        (12, b'm') => (Name::MaxForwards, b"Max-Forwards"),
        (13, b'a') => (Name::Credentials, b"Authorization"),
        (14, b'c') => (Name::ContentLength, b"Content-Length"),
        (14, b'h') => (Name::Http2Settings, b"HTTP2-Settings"),
        (16, b'p') => (Name::ProxyConnection, b"Proxy-Connection"),
        (16, b'w') => (Name::Authenticate, b"WWW-Authenticate"),
        (17, b't') => (Name::TransferEncoding, b"Transfer-Encoding"),
        (18, b'p') => (Name::Authenticate, b"Proxy-Authenticate"),
        (19, b'p') => (Name::Credentials, b"Proxy-Authorization"),
        (12.., b'x') => return forwarded(name),
        _ => return (Name::Other, false),
    };
    if name == canonical {
        return (known, false);
    }
    if same(name, canonical) { (known, name.contains(&b'_')) } else { (Name::Other, false) }
}

/// Why no request has a field of this name when something is decided by it: it ends at weir, or is refused. `None`:
/// some may have one.
pub fn why_unseen(name: &[u8]) -> Option<&'static str> {
    match classify(name) {
        (_, true) => Some("a request that writes that name with `_` is refused (400)"),
        (known, false) if ENDS_HERE.has(known) => Some("it belongs to one connection and ends at weir"),
        _ => None,
    }
}

/// `X-Forwarded-*`.
fn forwarded(name: &[u8]) -> (Name, bool) {
    const PREFIX: &[u8] = b"X-Forwarded-";
    let Some((prefix, rest)) = name.split_at_checked(PREFIX.len()) else { return (Name::Other, false) };
    if !same(prefix, PREFIX) {
        return (Name::Other, false);
    }
    let known = match rest {
        r if same(r, b"for") => Name::ForwardedFor,
        r if same(r, b"proto") => Name::ForwardedProto,
        r if same(r, b"host") => Name::ForwardedHost,
        r if same(r, b"port") => Name::ForwardedPort,
        _ => Name::ForwardedOther,
    };
    (known, name.contains(&b'_'))
}

/// Whether the names are one, with `_` read as `-`.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| folded(a) == folded(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_by_any_case_and_aliased_by_underscores() {
        for (name, known, alias) in [
            ("host", Name::Host, false),
            ("HOST", Name::Host, false),
            ("hosts", Name::Other, false),
            ("Content-Length", Name::ContentLength, false),
            ("cONTENT_lENGTH", Name::ContentLength, true),
            ("Content-Lengtg", Name::Other, false),
            ("x-forwarded-for", Name::ForwardedFor, false),
            ("X_Forwarded_For", Name::ForwardedFor, true),
            ("X-Forwarded-Client-Cert", Name::ForwardedOther, false),
            ("X-Forwarded-", Name::ForwardedOther, false),
            ("X-Forwarder", Name::Other, false),
            ("proxy-authorization", Name::Credentials, false),
            ("x_custom_name", Name::Other, false),
            ("", Name::Other, false),
        ] {
            assert_eq!(classify(name.as_bytes()), (known, alias), "{name}");
        }
    }
}
