//! Which request a condition of a `route` matches: pure, for whoever has a request in hand.

use crate::http;
use crate::plan::{RequestShape, Scenario, When};
use std::net::IpAddr;

/// A request as a condition sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The method.
    pub method: &'a str,
    /// The path; what follows a `?` is ignored.
    pub path: &'a str,
    /// The host, without port.
    pub host: Option<&'a str>,
    /// Names (lower case) and values.
    pub headers: &'a [(String, String)],
    /// Where it comes from; `None` in simulation: then no condition on it matches.
    pub client: Option<IpAddr>,
}

impl RequestShape {
    /// What a request is where nothing is said of it: GET for `/`, a client of its own.
    pub fn plain() -> RequestShape {
        RequestShape {
            weight: 1.0,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            host: None,
            headers: Vec::new(),
            key: None,
            body_bytes: 0,
        }
    }

    /// As a condition sees it.
    pub fn asked(&self) -> Asked<'_> {
        Asked {
            method: &self.method,
            path: &self.path,
            host: self.host.as_deref(),
            headers: &self.headers,
            client: None,
        }
    }
}

impl Scenario {
    /// What its requests are, each with its share of all: the mix, or plain requests.
    pub fn shares(&self) -> Vec<(f64, RequestShape)> {
        let total: f64 = self.mix.iter().map(|s| s.weight).sum();
        if self.mix.is_empty() || total <= 0.0 {
            return vec![(1.0, RequestShape::plain())];
        }
        self.mix.iter().map(|s| (s.weight / total, s.clone())).collect()
    }
}

impl When {
    /// Whether all that is given matches.
    pub fn matches(&self, asked: &Asked<'_>) -> bool {
        let path = asked.path.split('?').next().unwrap_or_default();
        let header = |name: &String, value: &String| {
            asked.headers.iter().any(|(n, v)| n == name && ends_open(value, v))
        };
        any(&self.path, |p| ends_open(p, path))
            && any(&self.method, |m| m == asked.method)
            && any(&self.host, |h| asked.host.is_some_and(|host| same_host(h, host)))
            && any(&self.header, |(name, value)| header(name, value))
            && any(&self.client, |c| asked.client.is_some_and(|address| lies_in(c, address)))
    }

    /// Whether it says nothing, and so matches all.
    pub fn is_empty(&self) -> bool {
        *self == When::default()
    }
}

/// Whether one of the values fits, or there are none.
fn any<T>(values: &[T], fits: impl Fn(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(fits)
}

/// Exact, or up to a `*` at the end.
fn ends_open(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => text.starts_with(stem),
        None => pattern == text,
    }
}

/// Exact, or any name below `*.`; without case, and without a final dot.
fn same_host(pattern: &str, host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    match pattern.strip_prefix('*') {
        Some(rest) => host.len() > rest.len() && host.ends_with(rest),
        None => pattern == host,
    }
}

/// Whether an address lies in a network.
fn lies_in(network: &str, address: IpAddr) -> bool {
    let Ok((base, bits)) = http::network(network) else { return false };
    let top = |value: u128, width: u32| value.checked_shr(width - bits.min(width)).unwrap_or(0);
    match (base, address.to_canonical()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            top(u128::from(u32::from(a)), 32) == top(u128::from(u32::from(b)), 32)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => top(a.into(), 128) == top(b.into(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn all_that_is_given_must_match_by_any_of_its_values() {
        let when = When {
            path: words(&["/a", "/b/*"]),
            method: words(&["GET", "HEAD"]),
            header: vec![("x-tier".to_owned(), "gold*".to_owned())],
            ..When::default()
        };
        let headers = vec![("x-tier".to_owned(), "golden".to_owned())];
        let asked = Asked { method: "GET", path: "/b/c?d=*", host: None, headers: &headers, client: None };
        assert!(when.matches(&asked));
        assert!(when.matches(&Asked { path: "/a", method: "HEAD", ..asked }));
        for other in [
            Asked { path: "/a/", ..asked },
            Asked { path: "/b", ..asked },
            Asked { method: "POST", ..asked },
            Asked { headers: &[], ..asked },
        ] {
            assert!(!when.matches(&other), "{other:?}");
        }
        assert!(When::default().matches(&asked) && When::default().is_empty());
    }

    #[test]
    fn hosts_and_networks() {
        let hosts = |pattern: &str, host: &str| same_host(pattern, host);
        assert!(hosts("example.com", "Example.com.") && hosts("*.example.com", "a.b.example.com"));
        assert!(!hosts("*.example.com", "example.com") && !hosts("example.com", "a.example.com"));
        let lies = |network: &str, address: &str| lies_in(network, address.parse().expect("an address"));
        assert!(lies("10.0.0.0/8", "10.9.8.7") && !lies("10.0.0.0/8", "11.0.0.1"));
        assert!(lies("0.0.0.0/0", "1.2.3.4") && !lies("0.0.0.0/0", "::1") && lies("::/0", "::1"));
        assert!(lies("10.1.2.3", "::ffff:10.1.2.3") && !lies("10.1.2.3", "10.1.2.4"));
    }
}
