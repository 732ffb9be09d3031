//! A connection to a registry.

use super::{Credentials, Endpoint, Trust};
use crate::fault::{Defect, FaultKind};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use weir_net::transport::tls::{TlsError, client_config, client_config_of};

/// How long a connection may take, TLS included.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// The most bytes of a file with a token or a password.
const MOST_SECRET: u64 = 64 << 10;

/// An open connection, and the field that proves who asks.
pub(super) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    proof: Option<(HeaderName, HeaderValue)>,
    driver: JoinHandle<()>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what proves who asks.
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects, and reads the files that this needs.
    pub(super) async fn open(
        endpoint: &Endpoint,
        trust: &Trust,
        credentials: Option<&Credentials>,
    ) -> Result<Connection, Defect> {
        let proof = credentials.map(proof).transpose()?;
        let connecting = async {
            let plain = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
            let plain = plain.map_err(|e| unreachable(endpoint, &e))?;
            let _ = plain.set_nodelay(true);
            if !endpoint.is_tls {
                return start(plain, endpoint, proof).await;
            }
            let (config, name) = match trust {
                Trust::Files(files) => (client_config(files), files.name.clone()),
                Trust::Given(given) => {
                    let certificate = given.certificate.as_ref();
                    let certificate = certificate.map(|(cert, key)| (cert.as_slice(), key.as_slice()));
                    (client_config_of(given.authorities.as_deref(), certificate), given.name.clone())
                }
            };
            let config =
                config.map_err(|e| Defect::new(FaultKind::Settings, e.to_string(), "mend that file"))?;
            let name = name.unwrap_or_else(|| endpoint.host.clone());
            let server = ServerName::try_from(name.clone()).map_err(|_| {
                let problem = format!("\"{name}\" is no name that a certificate can cover");
                Defect::new(FaultKind::Settings, problem, "write `tls=tls.client(name=\"...\")`")
            })?;
            let secure = TlsConnector::from(Arc::new(config)).connect(server, plain).await;
            start(secure.map_err(|e| insecure(endpoint, &e))?, endpoint, proof).await
        };
        timeout(CONNECT_TIME, connecting).await.unwrap_or_else(|_| {
            Err(unreachable(endpoint, &format!("no connection within {}s", CONNECT_TIME.as_secs())))
        })
    }

    /// Sends a question, and waits for the head of the answer.
    pub(super) async fn ask(
        &mut self,
        endpoint: &Endpoint,
        path: &str,
    ) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::get(endpoint.target(path))
            .header(HOST, endpoint.authority.as_str())
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "weir");
        if let Some((name, value)) = &self.proof {
            request = request.header(name.clone(), value.clone());
        }
        let request = request.body(Empty::new())?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }
}

async fn start(
    socket: impl AsyncRead + AsyncWrite + Unpin + 'static,
    endpoint: &Endpoint,
    proof: Option<(HeaderName, HeaderValue)>,
) -> Result<Connection, Defect> {
    let (sender, connection) =
        handshake(TokioIo::new(socket)).await.map_err(|e| unreachable(endpoint, &e))?;
    // What goes wrong on it shows in the answer that does not come.
    let driver = spawn_local(async { drop(connection.await) });
    Ok(Connection { sender, proof, driver })
}

/// The field that proves who asks.
fn proof(credentials: &Credentials) -> Result<(HeaderName, HeaderValue), Defect> {
    let bearer = |token: &str| (AUTHORIZATION, format!("Bearer {token}"));
    let (name, value) = match credentials {
        Credentials::Basic(path) => {
            let basic = data_encoding::BASE64.encode(secret(path)?.as_bytes());
            (AUTHORIZATION, format!("Basic {basic}"))
        }
        Credentials::Bearer(path) => bearer(&secret(path)?),
        Credentials::Token(token) => bearer(token),
        Credentials::Consul(path) => (HeaderName::from_static("x-consul-token"), secret(path)?),
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        let problem = "the token or password has a character that no HTTP field may have";
        Defect::new(FaultKind::Settings, problem, "write it on one line of its file, without others")
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// What a small file holds, without the line's end.
fn secret(path: &Path) -> Result<String, Defect> {
    let wrong = |why: &dyn fmt::Display| {
        let problem = format!("the file {} cannot be used: {why}", path.display());
        Defect::new(FaultKind::Settings, problem, "write the token, or `user:password`, into it")
    };
    let file = std::fs::metadata(path).map_err(|e| wrong(&e))?;
    if !file.is_file() || file.len() > MOST_SECRET {
        return Err(wrong(&"it is no regular file, or too large"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
    match text.trim() {
        "" => Err(wrong(&"it is empty")),
        text if text.contains(char::is_control) => {
            Err(wrong(&"it has more than one line, or control characters"))
        }
        text => Ok(text.to_owned()),
    }
}

/// A server with which there is no TLS, and what to do about it if that is a matter of certificates.
fn insecure(endpoint: &Endpoint, why: &std::io::Error) -> Defect {
    let reason = why.get_ref().and_then(|inner| inner.downcast_ref::<tokio_rustls::rustls::Error>());
    let remedy = match reason.map(TlsError::from_rustls) {
        Some(TlsError::WrongName) => {
            "give the name that its certificate has: `name` of `tls.client`, `tls-server-name` of a kubeconfig"
        }
        Some(TlsError::UnknownAuthority) => {
            "give its authority: `ca` of `tls.client`, `certificate-authority` of a kubeconfig"
        }
        Some(TlsError::WantsCertificate) => {
            "give a certificate: `cert` and `key` of `tls.client`, `client-certificate` of a kubeconfig"
        }
        _ => return unreachable(endpoint, why),
    };
    Defect { remedy: remedy.to_owned(), ..unreachable(endpoint, why) }
}

fn unreachable(endpoint: &Endpoint, why: &dyn fmt::Display) -> Defect {
    let problem = format!("{} cannot be reached: {why}", endpoint.url(""));
    Defect::new(FaultKind::Unreachable, problem, "see to the registry and to the way there")
}
