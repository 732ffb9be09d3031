//! Which requests a condition of a `route` matches: pure functions, shared by the simulator and the proxy.

use crate::http;
use crate::path;
use crate::{KeySource, RequestShape, RouteCondition, Scenario};
use std::net::IpAddr;

/// A request as a condition sees it.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
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
    /// The default request: GET for `/`, from a separate client.
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

    /// Whether it says itself what is read there.
    pub fn brings(&self, source: &KeySource) -> bool {
        match source {
            KeySource::Header(name) => self.headers.iter().any(|(n, _)| n == name),
            KeySource::Cookie(name) => self
                .headers
                .iter()
                .filter(|(n, _)| n == "cookie")
                .flat_map(|(_, value)| value.split(';'))
                .any(|pair| pair.split_once('=').is_some_and(|(n, _)| n.trim() == name)),
            KeySource::Path => true,
            KeySource::Client => false,
        }
    }

    /// The request as a condition sees it.
    pub fn asked(&self) -> RequestParts<'_> {
        RequestParts {
            method: &self.method,
            path: &self.path,
            host: self.host.as_deref(),
            headers: &self.headers,
            client: None,
        }
    }
}

impl Scenario {
    /// The kinds of its requests with their shares: the mix, or plain requests.
    pub fn shares(&self) -> Vec<(f64, RequestShape)> {
        let total: f64 = self.mix.iter().map(|s| s.weight).sum();
        if self.mix.is_empty() || total <= 0.0 {
            return vec![(1.0, RequestShape::plain())];
        }
        self.mix.iter().map(|s| (s.weight / total, s.clone())).collect()
    }
}

impl RouteCondition {
    /// Whether each request that matches `other` matches this as well. `false` where that is not known.
    pub fn is_superset_of(&self, other: &RouteCondition) -> bool {
        let needs_path = !other.method.is_empty() && !other.method.iter().any(|method| can_lack_path(method));
        let all_targets = self.has_all_targets() || self.has_all_paths() && needs_path;
        (all_targets || is_each_within(&other.path, &self.path, |a, b| is_within(a, b)))
            && self.is_superset_but_for_target(other)
    }

    /// The same of requests that have a path; `OPTIONS *` and CONNECT have none.
    pub fn is_superset_of_paths_of(&self, other: &RouteCondition) -> bool {
        (self.has_all_paths() || is_each_within(&other.path, &self.path, |a, b| is_within(a, b)))
            && self.is_superset_but_for_target(other)
    }

    fn is_superset_but_for_target(&self, other: &RouteCondition) -> bool {
        is_each_within(&other.method, &self.method, |a, b| a == b)
            && is_each_within(&other.host, &self.host, |a, b| a == b)
            && is_each_within(&other.header, &self.header, |a, b| a.0 == b.0 && is_within(&a.1, &b.1))
            && is_each_within(&other.client, &self.client, |a, b| a == b)
            && is_each_within(&other.client_name, &self.client_name, |a, b| is_within(a, b))
    }
}

/// Whether a request with this method may have a target that is no path: `*`, or an authority.
fn can_lack_path(method: &str) -> bool {
    method == "OPTIONS" || method == "CONNECT"
}

/// Whether each of these patterns lies within one of the others; no pattern is a condition that all meet.
fn is_each_within<T>(these: &[T], others: &[T], is_within: impl Fn(&T, &T) -> bool) -> bool {
    let is_within_one = |one: &T| others.iter().any(|other| is_within(one, other));
    others.is_empty() || (!these.is_empty() && these.iter().all(is_within_one))
}

/// Whether all that a pattern, exact or ending in `*`, matches is matched by another.
fn is_within(one: &str, other: &str) -> bool {
    match other.strip_suffix('*') {
        Some(prefix) => one.strip_suffix('*').unwrap_or(one).starts_with(prefix),
        None => one == other,
    }
}

/// A request as conditions look at it, wherever its bytes are: in simulation a [`RequestParts`], served the message
/// itself.
pub trait MatchInput {
    /// The method.
    fn method(&self) -> &[u8];
    /// The path without query, as it came: it is compared in its normal form ([`crate::path`]).
    fn path(&self) -> &[u8];
    /// The host without port.
    fn host(&self) -> Option<&[u8]>;
    /// Whether some value of the field with this name (lower case) fits.
    fn has(&self, name: &str, fits: &dyn Fn(&[u8]) -> bool) -> bool;
    /// Where it comes from.
    fn client(&self) -> Option<IpAddr>;
    /// Whether some name of the client's verified certificate fits.
    fn has_client_name(&self, fits: &dyn Fn(&[u8]) -> bool) -> bool;
}

impl MatchInput for RequestParts<'_> {
    fn method(&self) -> &[u8] {
        self.method.as_bytes()
    }

    fn path(&self) -> &[u8] {
        self.path.split('?').next().unwrap_or_default().as_bytes()
    }

    fn host(&self) -> Option<&[u8]> {
        self.host.map(str::as_bytes)
    }

    fn has(&self, name: &str, fits: &dyn Fn(&[u8]) -> bool) -> bool {
        if let ("host", Some(host)) = (name, self.host) {
            return fits(host.as_bytes());
        }
        self.headers.iter().any(|(n, v)| n == name && fits(v.as_bytes()))
    }

    fn client(&self) -> Option<IpAddr> {
        self.client
    }

    fn has_client_name(&self, _: &dyn Fn(&[u8]) -> bool) -> bool {
        false
    }
}

impl RouteCondition {
    /// Whether all conditions that are given match.
    pub fn matches(&self, asked: &impl MatchInput) -> bool {
        any(&self.path, |p| path::matches(p, asked.path()))
            && any(&self.method, |m| m.as_bytes() == asked.method())
            && any(&self.host, |h| asked.host().is_some_and(|host| same_host(h, host)))
            && any(&self.header, |(name, value)| asked.has(name, &|v| ends_open(value, v)))
            && any(&self.client, |c| asked.client().is_some_and(|address| lies_in(c, address)))
            && any(&self.client_name, |name| asked.has_client_name(&|v| ends_open(name, v)))
    }

    /// Whether one of its patterns matches every path.
    fn has_all_paths(&self) -> bool {
        self.path.iter().any(|path| path == "/*") || self.has_all_targets()
    }

    /// Whether it has a pattern for every target; `/*` does not match the `*` of OPTIONS, nor the authority of CONNECT.
    fn has_all_targets(&self) -> bool {
        self.path.iter().any(|path| path == "*")
    }

    /// Whether it matches every request.
    pub fn is_universal(&self) -> bool {
        self.is_empty()
            || self.has_all_targets() && RouteCondition { path: Vec::new(), ..self.clone() }.is_empty()
    }

    /// Whether it says nothing, and so matches all.
    pub fn is_empty(&self) -> bool {
        *self == RouteCondition::default()
    }
}

/// Whether one of the values fits, or there are none.
fn any<T>(values: &[T], fits: impl Fn(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(fits)
}

/// Exact, or up to a `*` at the end.
fn ends_open(pattern: &str, text: &[u8]) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => text.starts_with(stem.as_bytes()),
        None => pattern.as_bytes() == text,
    }
}

/// Exact, or any name below `*.`; without case, and without a final dot.
fn same_host(pattern: &str, host: &[u8]) -> bool {
    let host = host.strip_suffix(b".").unwrap_or(host);
    match pattern.strip_prefix('*') {
        Some(rest) => host
            .len()
            .checked_sub(rest.len())
            .is_some_and(|at| at > 0 && host[at..].eq_ignore_ascii_case(rest.as_bytes())),
        None => host.eq_ignore_ascii_case(pattern.as_bytes()),
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
        let when = RouteCondition {
            path: words(&["/a", "/b/*"]),
            method: words(&["GET", "HEAD"]),
            header: vec![("x-tier".to_owned(), "gold*".to_owned())],
            ..RouteCondition::default()
        };
        let headers = vec![("x-tier".to_owned(), "golden".to_owned())];
        let asked =
            RequestParts { method: "GET", path: "/b/c?d=*", host: None, headers: &headers, client: None };
        assert!(when.matches(&asked));
        assert!(when.matches(&RequestParts { path: "/a", method: "HEAD", ..asked }));
        for other in [
            RequestParts { path: "/a/", ..asked },
            RequestParts { path: "/b", ..asked },
            RequestParts { method: "POST", ..asked },
            RequestParts { headers: &[], ..asked },
        ] {
            assert!(!when.matches(&other), "{other:?}");
        }
        assert!(RouteCondition::default().matches(&asked) && RouteCondition::default().is_empty());
    }

    /// What a condition is said to match of another agrees with what it matches.
    #[test]
    fn a_superset_matches_all_that_the_other_matches() {
        let of = |path: &[&str], method: &[&str], host: &[&str]| RouteCondition {
            path: words(path),
            method: words(method),
            host: words(host),
            ..RouteCondition::default()
        };
        let paths: [&[&str]; 5] = [&[], &["*"], &["/*"], &["/a*"], &["/a", "/b"]];
        let methods: [&[&str]; 4] = [&[], &["GET"], &["OPTIONS"], &["GET", "CONNECT"]];
        let hosts: [&[&str]; 2] = [&[], &["h"]];
        let mut all: Vec<RouteCondition> = Vec::new();
        for (path, method) in paths.iter().flat_map(|path| methods.iter().map(move |method| (path, method))) {
            all.extend(hosts.iter().map(|host| of(path, method, host)));
        }
        let targets = [("GET", "/"), ("GET", "/a"), ("OPTIONS", "*"), ("OPTIONS", "/b"), ("CONNECT", "h:1")];
        let requests: Vec<RequestParts<'_>> = targets
            .iter()
            .flat_map(|(method, path)| [Some("h"), None].map(|host| (*method, *path, host)))
            .map(|(method, path, host)| RequestParts { method, path, host, headers: &[], client: None })
            .collect();
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            let has_all = |is_asked: &dyn Fn(&&RequestParts<'_>) -> bool| {
                requests.iter().filter(is_asked).filter(|r| other.matches(*r)).all(|r| one.matches(r))
            };
            let what = format!("{one:?} and {other:?}");
            assert!(!one.is_superset_of(other) || has_all(&|_| true), "{what}");
            assert!(!one.is_superset_of_paths_of(other) || has_all(&|r| r.path.starts_with('/')), "{what}");
            assert!(!one.is_universal() || requests.iter().all(|r| one.matches(r)), "{one:?}");
        }
        let (star, slash) = (of(&["*"], &[], &[]), of(&["/*"], &[], &[]));
        assert!(star.is_universal() && !slash.is_universal());
        assert!(
            slash.is_superset_of(&of(&[], &["GET"], &[])) && star.is_superset_of(&of(&[], &["OPTIONS"], &[]))
        );
        assert!(slash.is_superset_of_paths_of(&of(&[], &[], &["h"])));
    }

    #[test]
    fn a_path_matches_however_it_is_written() {
        let asked = |path| RequestParts { method: "GET", path, host: None, headers: &[], client: None };
        let of = |pattern: &str| RouteCondition { path: words(&[pattern]), ..RouteCondition::default() };
        assert!(of("/~z").matches(&asked("/%7Ez")) && of("/~z").matches(&asked("/%7ez?%7E")));
        assert!(of("/caf%C3%A9*").matches(&asked("/caf%c3%a9/x")));
        assert!(!of("/a/b").matches(&asked("/a%2fb")) && of("/a%2Fb").matches(&asked("/a%2fb")));
    }

    #[test]
    fn hosts_and_networks() {
        let hosts = |pattern: &str, host: &str| same_host(pattern, host.as_bytes());
        assert!(hosts("example.com", "Example.com.") && hosts("*.example.com", "a.b.example.com"));
        assert!(!hosts("*.example.com", "example.com") && !hosts("example.com", "a.example.com"));
        let lies = |network: &str, address: &str| lies_in(network, address.parse().expect("an address"));
        assert!(lies("10.0.0.0/8", "10.9.8.7") && !lies("10.0.0.0/8", "11.0.0.1"));
        assert!(lies("0.0.0.0/0", "1.2.3.4") && !lies("0.0.0.0/0", "::1") && lies("::/0", "::1"));
        assert!(lies("10.1.2.3", "::ffff:10.1.2.3") && !lies("10.1.2.3", "10.1.2.4"));
    }
}
