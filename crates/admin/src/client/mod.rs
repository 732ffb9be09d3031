//! `weir admin`: asks a running weir, by its control socket or by its admin address.

mod text;

pub use text::{status, targets};

use crate::access::read_token;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use weir_serve::explain;

/// The address of a weir.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket: `--control`, or `--admin unix:/path`.
    Unix(PathBuf),
    /// `--admin HOST:PORT`.
    Tcp(String),
}

/// The default address.
pub const DEFAULT_URL: &str = "http://127.0.0.1:9901";

/// The time that an answer may take; a reload reads a file and its data first.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer, bytes.
const ANSWER_BYTES: usize = 1 << 30;

/// Why a URL is not the address of a weir: a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidUrl(String);

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidUrl {}

/// Why a weir cannot be asked, or gives no answer: a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotAsk(String);

impl fmt::Display for CannotAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotAsk {}

impl Endpoint {
    /// Of a URL: `http://HOST:PORT`, `unix:/path`.
    ///
    /// # Errors
    /// Why the address is invalid.
    pub fn url(url: &str) -> Result<Endpoint, InvalidUrl> {
        if let Some(path) = url.strip_prefix("unix:") {
            return Ok(Endpoint::Unix(path.into()));
        }
        let uri: Uri =
            url.parse().map_err(|_| InvalidUrl(format!("`{url}` is not a URL; write http://HOST:PORT")))?;
        match (uri.scheme_str(), uri.authority(), uri.path()) {
            (Some("http"), Some(authority), "/" | "") if !authority.as_str().contains('@') => {
                let port = authority.port_u16().unwrap_or(80);
                Ok(Endpoint::Tcp(format!("{}:{port}", authority.host())))
            }
            (Some("https"), ..) => Err(InvalidUrl(
                "the admin interface does not speak TLS; write http://HOST:PORT, or use its Unix socket"
                    .to_owned(),
            )),
            _ => Err(InvalidUrl(format!(
                "`{url}` is not the URL of an admin interface; write http://HOST:PORT"
            ))),
        }
    }

    fn describe(&self) -> String {
        match self {
            Endpoint::Unix(path) => path.display().to_string(),
            Endpoint::Tcp(address) => address.clone(),
        }
    }
}

/// A client of the admin interface.
#[derive(Clone, Debug)]
pub struct Client {
    at: Endpoint,
    token: Option<Vec<u8>>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its contents.
    pub body: String,
}

impl Reply {
    /// Whether the request succeeded.
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The sentence in it, if it is one.
    pub fn sentence(&self) -> String {
        let json: Option<serde_json::Value> = serde_json::from_str(&self.body).ok();
        let said = json.as_ref().and_then(|json| json.get("result").or_else(|| json.get("error"))?.as_str());
        said.unwrap_or(self.body.trim_end()).to_owned()
    }
}

impl Client {
    /// A client for this address, with the token in this file.
    ///
    /// # Errors
    /// Why the token cannot be used.
    pub fn new(at: Endpoint, token: Option<&Path>) -> Result<Client, CannotAsk> {
        let read = |path: &Path| {
            read_token(path).map_err(|e| {
                CannotAsk(format!("the token in {} cannot be used: {}", path.display(), explain(&e)))
            })
        };
        Ok(Client { at, token: token.map(read).transpose()? })
    }

    /// Reads something.
    ///
    /// # Errors
    /// Why there is no answer, with the remedy.
    pub fn get(&self, path: &str) -> Result<Reply, CannotAsk> {
        self.ask(Method::GET, path, String::new())
    }

    /// Changes something.
    ///
    /// # Errors
    /// Why there is no answer, with the remedy.
    pub fn post(&self, path: &str, body: String) -> Result<Reply, CannotAsk> {
        self.ask(Method::POST, path, body)
    }

    /// The path of a target's settings.
    pub fn path_of(pool: &str, target: &str) -> String {
        let encoded = |name| utf8_percent_encode(name, NON_ALPHANUMERIC);
        format!("/targets/{}/{}", encoded(pool), encoded(target))
    }

    fn ask(&self, method: Method, path: &str, body: String) -> Result<Reply, CannotAsk> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| CannotAsk(explain(&e)))?;
        let answer = async {
            match tokio::time::timeout(PATIENCE, self.exchange(method, path, body)).await {
                Ok(answer) => answer,
                Err(_) => Err(CannotAsk(format!(
                    "{} did not answer within a minute; see /healthz and the error log",
                    self.at.describe()
                ))),
            }
        };
        runtime.block_on(answer)
    }

    async fn exchange(&self, method: Method, path: &str, body: String) -> Result<Reply, CannotAsk> {
        let at = self.at.describe();
        let unconnected = |e: io::Error| self.unconnected(&e);
        match &self.at {
            Endpoint::Unix(socket) => {
                let stream = UnixStream::connect(socket).await.map_err(unconnected)?;
                self.speak(stream, "localhost", method, path, body).await
            }
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(unconnected)?;
                self.speak(stream, address, method, path, body).await
            }
        }
        .map_err(|e| {
            CannotAsk(e.unwrap_or_else(|| format!("{at} hung up; is it the admin interface of a weir?")))
        })
    }

    fn unconnected(&self, e: &io::Error) -> CannotAsk {
        let at = self.at.describe();
        let remedy = match (&self.at, e.kind()) {
            (Endpoint::Unix(_), io::ErrorKind::PermissionDenied) => {
                "only its owner may use the socket: run this as the user that runs weir".to_owned()
            }
            (_, io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
                "nothing listens there; start weir with `weir serve FILE --admin ADDRESS` or `--control PATH`, and say \
                 which with --url or --control"
                    .to_owned()
            }
            _ => explain(e),
        };
        CannotAsk(format!("cannot reach a weir at {at}: {remedy}"))
    }

    /// One request on a connection; `None` instead of a sentence: it broke off.
    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        host: &str,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<Reply, Option<String>> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| None)?;
        let mut request = Request::new(Full::<Bytes>::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| Some(format!("`{path}` is not a path")))?;
        let headers = request.headers_mut();
        headers
            .insert(HOST, HeaderValue::from_str(host).map_err(|_| Some(format!("`{host}` is not a host")))?);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if let Some(token) = &self.token {
            let bearer = [b"Bearer ", &token[..]].concat();
            let mut bearer =
                HeaderValue::from_bytes(&bearer).map_err(|_| Some("the token is not a word".to_owned()))?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let answered = async {
            let answer = sender.send_request(request).await.map_err(|_| None)?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await.map_err(|_| None)?;
            let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
            Ok(Reply { status, body })
        };
        // The connection is driven beside the request, and ends with its answer.
        let local = tokio::task::LocalSet::new();
        local.spawn_local(async move { drop(connection.await) });
        local.run_until(answered).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        assert_eq!(Endpoint::url("http://127.0.0.1:9901"), Ok(Endpoint::Tcp("127.0.0.1:9901".to_owned())));
        assert_eq!(Endpoint::url("http://[::1]:9901/"), Ok(Endpoint::Tcp("[::1]:9901".to_owned())));
        assert_eq!(Endpoint::url("http://weir"), Ok(Endpoint::Tcp("weir:80".to_owned())));
        assert_eq!(Endpoint::url("unix:/run/weir.sock"), Ok(Endpoint::Unix("/run/weir.sock".into())));
        for (url, says) in [
            ("https://127.0.0.1:9901", "does not speak TLS"),
            ("127.0.0.1:9901", "http://HOST:PORT"),
            ("http://a/b", "http://HOST:PORT"),
            ("", "http://HOST:PORT"),
            ("http://me@a", "http://HOST:PORT"),
        ] {
            let why = Endpoint::url(url).expect_err(url);
            assert!(why.0.contains(says), "{url}: {why}");
        }
        assert_eq!(Client::path_of("a/b", "10.0.0.1:80"), "/targets/a%2Fb/10%2E0%2E0%2E1%3A80");
    }
}
