//! The destination of a load: a URL, whose name is resolved once before the run.

use http::Uri;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// A server, as a URL names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether it is reached over TLS.
    pub https: bool,
    /// Host and port as written: the Host of requests that name no other.
    pub authority: String,
    /// Its host alone.
    pub host: String,
    /// Its addresses; at least one.
    pub addresses: Vec<SocketAddr>,
}

/// Why a URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotReach {
    /// It is not a usable URL: why, with the remedy.
    Url(String),
    /// Its name has no address.
    Name(String),
}

impl fmt::Display for CannotReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotReach::Url(why) | CannotReach::Name(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CannotReach {}

impl Target {
    /// The server of a URL like `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// [`CannotReach`].
    pub fn resolve(url: &str) -> Result<Target, CannotReach> {
        let wrong = |why: &str| CannotReach::Url(format!("--to `{url}`: {why}"));
        let uri: Uri = url.parse().map_err(|e| wrong(&format!("{e}; write http://HOST:PORT")))?;
        let https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(other) => return Err(wrong(&format!("`{other}` is not supported; write http or https"))),
            None => return Err(wrong("it has no scheme; write http://HOST:PORT or https://HOST:PORT")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong(
                "paths come from the scenario (`request(path=...)`); write only http://HOST:PORT",
            ));
        }
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "user and password do not go into it; write a header into the scenario's request",
            ));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let says_port =
            authority.as_str().rsplit_once(']').map_or(authority.as_str(), |(_, rest)| rest).contains(':');
        if says_port && authority.port_u16().is_none() {
            return Err(wrong("its port is not valid: write a number from 1 to 65535"));
        }
        let port = authority.port_u16().unwrap_or(if https { 443 } else { 80 });
        let found = (host, port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = match found {
            Ok(found) => found.collect(),
            Err(e) => return Err(CannotReach::Name(format!("the name `{host}` cannot be resolved: {e}"))),
        };
        if addresses.is_empty() {
            return Err(CannotReach::Name(format!("the name `{host}` has no address")));
        }
        Ok(Target { https, authority: authority.as_str().to_owned(), host: host.to_owned(), addresses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let target = Target::resolve("http://127.0.0.1:8080").unwrap();
        assert_eq!((target.https, target.authority.as_str()), (false, "127.0.0.1:8080"));
        assert_eq!(target.addresses, ["127.0.0.1:8080".parse().unwrap()]);
        let six = Target::resolve("https://[::1]/").unwrap();
        assert_eq!((six.https, six.host.as_str(), six.addresses[0].port()), (true, "::1", 443));
        for (url, says) in [
            ("127.0.0.1:8080", "write http"),
            ("localhost", "no scheme"),
            ("ftp://a", "not supported"),
            ("http://a/b", "paths come from the scenario"),
            ("http://a/?q", "paths come from the scenario"),
            ("http://u:p@127.0.0.1", "user and password"),
            ("http://", "write http"),
            ("http://127.0.0.1:99999", "its port is not valid"),
            ("http://[::1]:x", "its port is not valid"),
        ] {
            let why = Target::resolve(url).unwrap_err().to_string();
            assert!(why.contains(says), "{url}: {why}");
        }
    }
}
