//! One GET on a connection of its own, within a time.

use crate::url::{Place, Url};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use weir_net::io::system::{is_exhausted, words};
use weir_net::transport::tls;

/// The longest page of metrics, bytes.
const PAGE_BYTES: usize = 16 << 20;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// No connection, or it ended before an answer: the process is gone.
    Gone(String),
    /// Not in time.
    Late,
    /// Something else: the name, TLS, or what came is no HTTP.
    Other(String),
}

/// What is asked, again and again.
pub(crate) struct Source {
    url: Url,
    tls: Option<Arc<ClientConfig>>,
    limit: Duration,
}

impl Source {
    /// Reads the system's authorities where the URL needs them.
    pub fn new(url: &Url, limit: Duration) -> Result<Source, tls::CannotUse> {
        let tls = match url.has_tls() {
            true => Some(Arc::new(tls::client_config(&tls::ClientFiles::default())?)),
            false => None,
        };
        Ok(Source { url: url.clone(), tls, limit })
    }

    /// The status of its answer.
    pub async fn status(&self) -> Result<u16, NoReply> {
        let asked = async { Ok(self.answer().await?.status().as_u16()) };
        tokio::time::timeout(self.limit, asked).await.unwrap_or(Err(NoReply::Late))
    }

    /// Its page, if that is a good one.
    pub async fn page(&self) -> Result<Bytes, NoReply> {
        let asked = async {
            let answer = self.answer().await?;
            if !answer.status().is_success() {
                return Err(NoReply::Other(format!("answered {}", answer.status().as_u16())));
            }
            let body = Limited::new(answer.into_body(), PAGE_BYTES).collect().await;
            body.map(|body| body.to_bytes()).map_err(|e| NoReply::Other(format!("its page broke off: {e}")))
        };
        tokio::time::timeout(self.limit, asked).await.unwrap_or(Err(NoReply::Late))
    }

    async fn answer(&self) -> Result<Response<Incoming>, NoReply> {
        match &self.url.place {
            Place::Unix(path) => {
                let socket = UnixStream::connect(path).await.map_err(|e| not_connected(&e))?;
                self.ask(socket).await
            }
            Place::Tcp { host, port, .. } => {
                let socket = connect(host, *port).await?;
                match &self.tls {
                    None => self.ask(socket).await,
                    Some(config) => {
                        let name = ServerName::try_from(host.clone())
                            .map_err(|_| NoReply::Other(format!("TLS has no name such as `{host}`")))?;
                        let shaken = TlsConnector::from(config.clone()).connect(name, socket).await;
                        self.ask(shaken.map_err(|e| not_shaken(&e))?).await
                    }
                }
            }
        }
    }

    async fn ask<S>(&self, socket: S) -> Result<Response<Incoming>, NoReply>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = http1::handshake::<_, Empty<Bytes>>(TokioIo::new(socket)).await;
        let (mut sender, connection) = shaken.map_err(|e| no_answer(&e))?;
        // It ends with the answer, or with the sender.
        tokio::task::spawn_local(connection);
        let request = Request::get(&self.url.path[..])
            .header(HOST, &self.url.host)
            .header(USER_AGENT, "weir-gate")
            .header(ACCEPT, "*/*")
            .header(CONNECTION, "close")
            .body(Empty::new());
        let request = request.map_err(|e| NoReply::Other(e.to_string()))?;
        sender.send_request(request).await.map_err(|e| no_answer(&e))
    }
}

/// Connects to the first address of a name that takes it.
async fn connect(host: &str, port: u16) -> Result<TcpStream, NoReply> {
    let all = tokio::net::lookup_host((host, port)).await;
    let all = all.map_err(|e| NoReply::Other(format!("the name cannot be resolved: {}", words(&e))))?;
    let mut last = NoReply::Other("the name has no address".to_owned());
    for address in all {
        match TcpStream::connect(address).await {
            Ok(socket) => return Ok(socket),
            Err(e) => last = not_connected(&e),
        }
    }
    Err(last)
}

/// Only what the network says is said of the process: that this one has no descriptor or port left is not.
fn not_connected(e: &io::Error) -> NoReply {
    match e.kind() {
        io::ErrorKind::ConnectionRefused => NoReply::Gone("refused the connection".to_owned()),
        _ if is_exhausted(e) => NoReply::Other(format!("cannot be asked: {}", words(e))),
        _ => NoReply::Gone(format!("cannot be connected to: {}", words(e))),
    }
}

/// A process that ends may do so in the handshake; a certificate that is wrong ends nothing.
fn not_shaken(e: &io::Error) -> NoReply {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match e.kind() {
        ConnectionReset | UnexpectedEof | BrokenPipe => {
            NoReply::Gone("ended the connection in the handshake".to_owned())
        }
        _ => NoReply::Other(format!("no TLS: {}", tls::tls_problem(e).unwrap_or_else(|| words(e)))),
    }
}

fn no_answer(e: &hyper::Error) -> NoReply {
    let is_io = e.source().is_some_and(|source| source.is::<io::Error>());
    match e.is_incomplete_message() || e.is_canceled() || e.is_closed() || is_io {
        true => NoReply::Gone("ended the connection without an answer".to_owned()),
        false => NoReply::Other("did not answer in HTTP".to_owned()),
    }
}
