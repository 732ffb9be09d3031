//! A connection to a registry.

use super::dial::dial;
use super::{Credentials, Endpoint, Trust};
use crate::fault::{Defect, FaultKind};
use crate::registry::small_file::{FileReader, read_small_file};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use weir_net::transport::tls::{CannotUse, TlsError, client_config, client_config_of, tls_problem};
use weir_plan::diagnostic::plainly;

/// How long a connection may take, its files and TLS included.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// The most bytes of a file with a token or a password.
const MOST_SECRET: u64 = 64 << 10;

/// An open connection, and the field with its credentials.
pub(super) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    proof: Option<(HeaderName, HeaderValue)>,
    driver: JoinHandle<()>,
}

/// What a connection needs of files.
#[derive(Default)]
struct ConnectionFiles {
    /// The field with the credentials, if there are any.
    proof: Option<(HeaderName, HeaderValue)>,
    /// That of TLS, if it is used.
    config: Option<ClientConfig>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The credentials are left out.
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
        files: &FileReader,
    ) -> Result<Connection, Defect> {
        let until = Instant::now() + CONNECT_TIME;
        let trusted = endpoint.is_tls.then_some(trust);
        let ConnectionFiles { proof, config } = prepare(trusted, credentials, files).await?;
        let connecting = async {
            let plain = dial(&endpoint.host, endpoint.port, until).await;
            let plain = plain.map_err(|e| unreachable(endpoint, &e))?;
            let _ = plain.set_nodelay(true);
            let Some(config) = config else { return start(plain, endpoint, proof).await };
            let name = match trust {
                Trust::Files(files) => &files.name,
                Trust::Given(given) => &given.name,
            };
            let name = name.clone().unwrap_or_else(|| endpoint.host.clone());
            let server = ServerName::try_from(name.clone()).map_err(|_| {
                let problem = format!("\"{name}\" is no name that a certificate can cover");
                Defect::new(FaultKind::Settings, problem, "write `tls=tls.client(name=\"...\")`")
            })?;
            let secure = TlsConnector::from(Arc::new(config)).connect(server, plain).await;
            start(secure.map_err(|e| insecure(endpoint, &e))?, endpoint, proof).await
        };
        timeout_at(until, connecting).await.unwrap_or_else(|_| {
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

/// Reads the files that a connection needs: those of TLS, if it has that, and of its credentials.
async fn prepare(
    trust: Option<&Trust>,
    credentials: Option<&Credentials>,
    files: &FileReader,
) -> Result<ConnectionFiles, Defect> {
    if trust.is_none() && credentials.is_none() {
        return Ok(ConnectionFiles::default());
    }
    let names = name_files(trust, credentials);
    let (trust, credentials) = (trust.cloned(), credentials.cloned());
    let read = move || -> Result<ConnectionFiles, Defect> {
        let proof = credentials.as_ref().map(make_proof).transpose()?;
        let config = trust.as_ref().map(make_config).transpose()?;
        Ok(ConnectionFiles { proof, config })
    };
    files.read(&names, CONNECT_TIME, read).await
}

/// Names these files for a message.
fn name_files(trust: Option<&Trust>, credentials: Option<&Credentials>) -> String {
    let mut paths: Vec<String> = Vec::new();
    if let Some(Credentials::Basic(path) | Credentials::Bearer(path) | Credentials::Consul(path)) =
        credentials
    {
        paths.push(path.display().to_string());
    }
    if let Some(Trust::Files(files)) = trust {
        paths.extend(files.ca.clone());
        let certificate = files.certificate.as_ref();
        paths.extend(certificate.into_iter().flat_map(|own| [own.cert.clone(), own.key.clone()]));
    }
    match paths.is_empty() {
        true => "of the connection".to_owned(),
        false => format!("of the connection ({})", paths.join(", ")),
    }
}

/// The client's side of TLS.
fn make_config(trust: &Trust) -> Result<ClientConfig, Defect> {
    let config = match trust {
        Trust::Files(files) => client_config(files),
        Trust::Given(given) => client_config_of(given.authorities.as_ref(), given.certificate.as_ref()),
    };
    config.map_err(|e| unusable(&e))
}

/// Reads the files that a connection would need, and connects to nothing. Returns what is wrong with each that
/// cannot be used. The system's authorities are read only beside what a kubeconfig holds itself.
pub(in crate::registry) fn check_files(trust: &Trust, credentials: Option<&Credentials>) -> Vec<Defect> {
    let proof = credentials.and_then(|credentials| make_proof(credentials).err());
    let of_tls: Vec<Defect> = match trust {
        Trust::Files(files) => files.find_unusable().iter().map(unusable).collect(),
        Trust::Given(_) => make_config(trust).err().into_iter().collect(),
    };
    proof.into_iter().chain(of_tls).collect()
}

/// Makes the field with the credentials.
fn make_proof(credentials: &Credentials) -> Result<(HeaderName, HeaderValue), Defect> {
    let bearer = |token: &str| (AUTHORIZATION, format!("Bearer {token}"));
    let (name, value) = match credentials {
        Credentials::Basic(path) => {
            let secret = read_secret(path, "write `user:password` into it")?;
            let basic = data_encoding::BASE64.encode(secret.as_bytes());
            (AUTHORIZATION, format!("Basic {basic}"))
        }
        Credentials::Bearer(path) => bearer(&read_secret(path, TOKEN)?),
        Credentials::Token(token) => bearer(token),
        Credentials::Consul(path) => (HeaderName::from_static("x-consul-token"), read_secret(path, TOKEN)?),
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        let problem = "the token or password has a character that no HTTP field may have";
        Defect::new(FaultKind::Settings, problem, "write it on one line of its file, without others")
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// What to do about a file that has no token.
const TOKEN: &str = "write the token into it";

/// Reads a small file without its line's end. `remedy`: what to do where it cannot be used.
fn read_secret(path: &Path, remedy: &str) -> Result<String, Defect> {
    let wrong = |why: &dyn fmt::Display| {
        let problem = format!("the file {} cannot be used: {why}", path.display());
        Defect::new(FaultKind::Settings, problem, remedy)
    };
    let bytes = read_small_file(path, MOST_SECRET).map_err(|e| wrong(&plainly(&e)))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8"))?;
    match text.trim() {
        "" => Err(wrong(&"it is empty")),
        text if text.contains(char::is_control) => {
            Err(wrong(&"it has more than one line, or control characters"))
        }
        text => Ok(text.to_owned()),
    }
}

/// A file of TLS that cannot be used.
fn unusable(why: &CannotUse) -> Defect {
    Defect::new(FaultKind::Settings, why.to_string(), "mend that file")
}

/// A server with which there is no TLS, and what to do about it if that is a matter of certificates.
fn insecure(endpoint: &Endpoint, why: &io::Error) -> Defect {
    let Some((problem, remedy)) = explain_tls(why) else {
        // Some servers without TLS end the connection and say nothing.
        if why.kind() == io::ErrorKind::UnexpectedEof {
            let remedy = "see to the registry, and whether its address is http://".to_owned();
            return Defect { remedy, ..unreachable(endpoint, &"it ends the connection where TLS begins") };
        }
        return unreachable(endpoint, why);
    };
    let defect = unreachable(endpoint, &problem);
    match remedy {
        Some(remedy) => Defect { remedy: remedy.to_owned(), ..defect },
        None => defect,
    }
}

/// What is wrong with TLS in an error of a socket, and what to do, if that is known; `None`: it is not of TLS.
pub(super) fn explain_tls(why: &io::Error) -> Option<(String, Option<&'static str>)> {
    Some((tls_problem(why)?, remedy(TlsError::from_io(why)?)))
}

/// What to do where there is no TLS for this reason; `None`: that is a matter of the registry and the way there.
fn remedy(reason: TlsError) -> Option<&'static str> {
    Some(match reason {
        TlsError::WrongName => {
            "give the name that its certificate has: `name` of `tls.client`, `tls-server-name` of a kubeconfig"
        }
        TlsError::UnknownAuthority => {
            "give its authority: `ca` of `tls.client`, `certificate-authority` of a kubeconfig"
        }
        TlsError::IsAuthority => {
            "give that very certificate: `ca` of `tls.client`, `certificate-authority` of a kubeconfig; or let the registry \
             show one that is no authority's"
        }
        TlsError::WantsCertificate => {
            "give a certificate: `cert` and `key` of `tls.client`, `client-certificate` of a kubeconfig"
        }
        TlsError::Expired => "renew the registry's certificate",
        TlsError::NotYet => "check the clocks of weir and of the registry",
        TlsError::WrongPurpose | TlsError::BadCertificate => {
            "let the registry show another certificate, one for servers"
        }
        TlsError::Alert(_) => {
            "see to the certificate that weir shows, if any, and to the log of the registry"
        }
        TlsError::NothingInCommon => "let the registry speak TLS 1.2 or 1.3",
        TlsError::NoTls => "is the registry's address http://?",
        _ => return None,
    })
}

fn unreachable(endpoint: &Endpoint, why: &dyn fmt::Display) -> Defect {
    let problem = format!("{} cannot be reached: {why}", endpoint.url(""));
    Defect::new(FaultKind::Unreachable, problem, "see to the registry and to the way there")
}
