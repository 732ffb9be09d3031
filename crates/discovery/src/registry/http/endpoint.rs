//! Addresses of registries: `http://host:8500/base`.

use crate::fault::{Defect, FaultKind};
use hyper::Uri;

/// The address of a registry's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::registry) struct Endpoint {
    pub(super) is_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// `host` or `host:port`, as the URL has it.
    pub(super) authority: String,
    /// Before every path, without a slash at its end.
    base: String,
}

impl Endpoint {
    /// Reads an `http` or `https` URL.
    ///
    /// # Errors
    /// It is none.
    pub(in crate::registry) fn parse(url: &str) -> Result<Endpoint, Defect> {
        let wrong = || {
            let problem = format!("\"{url}\" is no address of a registry");
            Defect::new(
                FaultKind::Settings,
                problem,
                "write it as \"http://host:port\" or \"https://host:port\"",
            )
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority =
            uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        if uri.query().is_some() || authority.host().is_empty() {
            return Err(wrong());
        }
        let port = match &authority.as_str()[authority.host().len()..] {
            "" if is_tls => 443,
            "" => 80,
            port => port.trim_start_matches(':').parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?,
        };
        Ok(Endpoint {
            is_tls,
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            authority: authority.as_str().to_owned(),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The target of a question for a path below this address.
    pub(super) fn target(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The whole URL of that.
    pub(super) fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.target(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_no_query() {
        let read =
            |url: &str| Endpoint::parse(url).map(|e| (e.is_tls, e.host.clone(), e.port, e.url("/a?b")));
        let of = |tls, host: &str, port, url: &str| Ok((tls, host.to_owned(), port, url.to_owned()));
        assert_eq!(read("http://a:8500"), of(false, "a", 8500, "http://a:8500/a?b"));
        assert_eq!(read("https://[::1]/eureka/"), of(true, "::1", 443, "https://[::1]/eureka/a?b"));
        assert_eq!(read("http://a/x/y"), of(false, "a", 80, "http://a/x/y/a?b"));
        for wrong in ["a:80", "ftp://a", "http://", "http://a?b=c", "http://u:p@a", "http://a:99999", ""] {
            assert_eq!(read(wrong).expect_err(wrong).kind, FaultKind::Settings);
        }
    }
}
