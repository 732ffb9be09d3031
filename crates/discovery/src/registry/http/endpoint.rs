//! Addresses of registries: `http://host:8500/base`.

use crate::fault::{Defect, FaultKind};
use hyper::Uri;
use weir_plan::http::short;

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
            let problem = format!("{} is no address of a registry", show(url));
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

/// A URL in a message: without what may be a password or a token.
fn show(url: &str) -> String {
    if url.contains('@') {
        return "a URL with `@`, which may have a password before it,".to_owned();
    }
    match url.split_once('?') {
        Some((before, _)) => format!("\"{}?...\"", short(before)),
        None => format!("\"{}\"", short(url)),
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

    #[test]
    fn a_message_has_neither_a_password_nor_a_long_url() {
        for wrong in
            ["http://me:hush@a", "http://hush@a:1/x", "hush@a", "ftp://me:hush@a", "http://a?token=hush"]
        {
            let text = Endpoint::parse(wrong).expect_err(wrong).to_string();
            assert!(!text.contains("hush") && text.contains("is no address of a registry"), "{text}");
        }
        let text = Endpoint::parse(&format!("ftp://{}", "a".repeat(1000))).expect_err("long").to_string();
        assert!(text.contains("\"ftp://aaa") && text.len() < 200, "{text}");
    }
}
