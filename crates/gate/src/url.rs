//! Where the application is asked: `http://`, `https://`, `unix:/path:/health`.

use hyper::Uri;
use std::fmt;

/// The address of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// As it was written.
    pub text: String,
    pub(crate) place: Place,
    /// The `Host` of a request.
    pub(crate) host: String,
    /// Path and query.
    pub(crate) path: String,
}

/// What is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp { host: String, port: u16, has_tls: bool },
    Unix(String),
}

/// Why a text is not such an address: a sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidUrl(String);

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidUrl {}

impl Url {
    /// Parses it.
    ///
    /// # Errors
    /// A sentence with the remedy.
    pub fn parse(text: &str) -> Result<Url, InvalidUrl> {
        match text.strip_prefix("unix:") {
            Some(rest) => Url::of_unix(text, rest),
            None => Url::of_tcp(text),
        }
    }

    fn of_unix(text: &str, rest: &str) -> Result<Url, InvalidUrl> {
        let (socket, path) = match rest.rfind(":/") {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, "/"),
        };
        if !socket.starts_with('/') {
            return Err(InvalidUrl(format!(
                "`{text}` has no path of a socket; write unix:/run/app.sock:/health"
            )));
        }
        let path = path.parse::<Uri>().map_err(|_| InvalidUrl(format!("`{path}` is not a path of HTTP")))?;
        Ok(Url {
            text: text.to_owned(),
            place: Place::Unix(socket.to_owned()),
            host: "localhost".to_owned(),
            path: path.to_string(),
        })
    }

    fn of_tcp(text: &str) -> Result<Url, InvalidUrl> {
        let wrong = |why: &str| InvalidUrl(format!("`{text}` {why}; write http://127.0.0.1:8080/health"));
        let uri: Uri = text.parse().map_err(|_| wrong("is not a URL"))?;
        let has_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(wrong("is neither http, https nor unix")),
            None => return Err(wrong("has no scheme")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has a user, which a health check cannot have"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let default_port = if has_tls { 443 } else { 80 };
        let written = authority.as_str().strip_prefix(authority.host()).filter(|rest| !rest.is_empty());
        let port = match written.map(|rest| rest.trim_start_matches(':').parse()) {
            None => default_port,
            Some(Ok(port @ 1..)) => port,
            Some(_) => return Err(wrong("has no valid port")),
        };
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        Ok(Url {
            text: text.to_owned(),
            place: Place::Tcp { host, port, has_tls },
            host: authority.to_string(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }

    /// Its host and port, or the path of its socket: what names the application on this host.
    pub fn authority(&self) -> &str {
        match &self.place {
            Place::Tcp { .. } => &self.host,
            Place::Unix(path) => path,
        }
    }

    pub(crate) fn has_tls(&self) -> bool {
        matches!(self.place, Place::Tcp { has_tls: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_connected_to() {
        let tcp = |host: &str, port, has_tls| Place::Tcp { host: host.to_owned(), port, has_tls };
        for (text, place, host, path) in [
            ("http://127.0.0.1:8080/health", tcp("127.0.0.1", 8080, false), "127.0.0.1:8080", "/health"),
            ("https://app.test/a?b=c", tcp("app.test", 443, true), "app.test", "/a?b=c"),
            ("http://[::1]:81", tcp("::1", 81, false), "[::1]:81", "/"),
            ("unix:/run/app.sock:/health?x", Place::Unix("/run/app.sock".into()), "localhost", "/health?x"),
            ("unix:/run/app.sock", Place::Unix("/run/app.sock".into()), "localhost", "/"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.place, &url.host[..], &url.path[..]), (place, host, path), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_remedy() {
        for (text, why) in [
            ("127.0.0.1:8080/health", "is not a URL"),
            ("localhost", "has no scheme"),
            ("ftp://a/", "is neither http, https nor unix"),
            ("http://", "is not a URL"),
            ("http://me@a/", "has a user"),
            ("http://a:99999/", "has no valid port"),
            ("http://a:0/", "has no valid port"),
            ("unix:run", "no path of a socket"),
            ("", "is not a URL"),
        ] {
            let said = Url::parse(text).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("; write "), "{text}: {said}");
        }
    }
}
