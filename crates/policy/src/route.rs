//! Conditions of routes: what a request must look like. Pure functions over its fields, the same in both worlds.
//!
//! A pattern for a path or a header's value is exact, or ends in `*` and then gives a prefix; one for a host is exact, or
//! `*.example.com` for any name under it (not `example.com` itself). Hosts know no case (RFC 9110, 4.2.3), methods and paths do.

use std::net::IpAddr;

/// Whether a path or a header's value is as a pattern has it.
pub fn text_matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => text.starts_with(prefix),
        None => text == pattern,
    }
}

/// Whether a host is as a pattern has it.
pub fn host_matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(suffix) => {
            let from = host.len().checked_sub(suffix.len()).filter(|from| *from > 0);
            from.and_then(|from| host.get(from..)).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        }
        None => host.eq_ignore_ascii_case(pattern),
    }
}

/// Whether an address is the one of a pattern, or in its network (`10.0.0.0/8`). A pattern that is neither matches nothing.
pub fn client_matches(pattern: &str, client: IpAddr) -> bool {
    let (network, bits) = match pattern.split_once('/') {
        Some((network, bits)) => (network, bits.parse::<u32>().ok()),
        None => (pattern, Some(128)),
    };
    let (Ok(network), Some(bits)) = (network.parse::<IpAddr>(), bits) else { return false };
    match (network, client) {
        (IpAddr::V4(n), IpAddr::V4(c)) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            n.to_bits() & mask == c.to_bits() & mask
        }
        (IpAddr::V6(n), IpAddr::V6(c)) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            n.to_bits() & mask == c.to_bits() & mask
        }
        _ => false,
    }
}

/// Whether a method is idempotent (RFC 9110, 9.2.2).
pub fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(text_matches("/v1/*", "/v1/items") && text_matches("/v1/*", "/v1/") && text_matches("*", ""));
        assert!(!text_matches("/v1/*", "/v1") && !text_matches("/v1", "/v1/") && text_matches("/v1", "/v1"));
        assert!(
            host_matches("Example.com", "example.COM") && host_matches("*.example.com", "a.b.EXAMPLE.com")
        );
        assert!(
            !host_matches("*.example.com", "example.com") && !host_matches("*.example.com", ".example.com")
        );
        assert!(!host_matches("*.example.com", "anexample.com"));
    }

    #[test]
    fn networks() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(
            client_matches("10.0.0.0/8", ip("10.200.3.4")) && !client_matches("10.0.0.0/8", ip("11.0.0.1"))
        );
        assert!(client_matches("10.0.0.1", ip("10.0.0.1")) && !client_matches("10.0.0.1", ip("10.0.0.2")));
        assert!(client_matches("0.0.0.0/0", ip("1.2.3.4")) && !client_matches("0.0.0.0/0", ip("::1")));
        assert!(client_matches("2001:db8::/32", ip("2001:db8:1::1")) && client_matches("::1", ip("::1")));
        assert!(!client_matches("nonsense", ip("::1")) && !client_matches("10.0.0.0/x", ip("10.0.0.0")));
    }

    #[test]
    fn methods() {
        assert!(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].into_iter().all(is_idempotent));
        assert!(!["POST", "PATCH", "CONNECT", "get", ""].into_iter().any(is_idempotent));
    }
}
