//! `listen(tls=tls.server(...))`: a listener's certificates, read at the start and again on request; open connections
//! keep theirs.

use super::files::{CannotUse, CertificateFiles, authorities, certified};
use super::validity::Validity;
use super::{Stream, TlsParameters, provider};
use crate::io::buffers::Buffers;
use crate::transport::socket::Socket;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};

/// What a listener shows, and how it verifies clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    /// At least one; the first that covers a client's name is shown, else the first.
    pub certificates: Vec<CertificateFiles>,
    /// Authorities of clients' certificates; `None`: clients are not asked for one.
    pub client_ca: Option<String>,
    /// Whether a client without a certificate is refused where there are such authorities.
    pub requires_certificate: bool,
    /// Whether clients must speak TLS 1.3.
    pub requires_13: bool,
}

/// A listener's TLS, for all loops.
#[derive(Debug)]
pub struct Server {
    files: ServerFiles,
    /// Locked once for each handshake.
    now: RwLock<Current>,
}

/// The configuration of new connections.
#[derive(Clone, Debug)]
struct Current {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
}

impl Server {
    /// Reads the files. `protocols`: those that ALPN offers, the best first.
    ///
    /// # Errors
    /// The first unusable file.
    pub fn read(files: &ServerFiles, protocols: &[&str]) -> Result<Server, CannotUse> {
        Ok(Server { files: files.clone(), now: RwLock::new(current(files, protocols)?) })
    }

    /// Uses what another with the same arguments has read, for new connections.
    pub fn show(&self, again: &Server) {
        let mut now = again.current();
        // A ticket represents a client's certificate: clients of an authority that was removed must show theirs
        // again.
        if self.files.client_ca.is_none() {
            let mut config = ServerConfig::clone(&now.config);
            config.ticketer = self.current().config.ticketer.clone();
            now.config = Arc::new(config);
        }
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// The server's end of a connection that was just accepted.
    pub fn accept(&self, plain: Socket, buffers: Rc<Buffers>) -> Option<Accepting> {
        let Current { config, certificates } = self.current();
        let tls = ServerConnection::new(config).ok()?;
        Some(Accepting { stream: Stream::new(plain, tls, buffers), certificates })
    }

    /// The end of its certificates' validity, s since 1970, by file.
    pub fn not_after(&self) -> Vec<(String, u64)> {
        let Current { certificates, .. } = self.current();
        let own = |one: &CertifiedKey| one.cert.first().and_then(|own| Validity::from_der(own));
        let all = self.files.certificates.iter().zip(&certificates.0);
        all.filter_map(|(file, one)| Some((file.cert.clone(), own(one)?.to_s.max(0) as u64))).collect()
    }

    /// The certificates that it shows, without those of their signers.
    pub(super) fn shown(&self) -> Vec<CertificateDer<'static>> {
        self.current().certificates.0.iter().filter_map(|one| one.cert.first().cloned()).collect()
    }

    fn current(&self) -> Current {
        // The value is valid even if a thread panicked while it held the lock.
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A handshake in progress.
pub struct Accepting {
    pub stream: Stream,
    certificates: Arc<Certificates>,
}

impl Accepting {
    /// The connection, and its negotiated parameters.
    pub fn done(self) -> (Socket, TlsParameters) {
        let tls = self.stream.tls();
        let name = match tls {
            rustls::Connection::Server(tls) => tls.server_name(),
            rustls::Connection::Client(_) => None,
        };
        let agreed = TlsParameters::new(name, tls, self.certificates.clone());
        (Socket::Tls(Box::new(self.stream)), agreed)
    }
}

fn current(files: &ServerFiles, protocols: &[&str]) -> Result<Current, CannotUse> {
    let all: Result<Vec<_>, _> = files.certificates.iter().map(certified).collect();
    let certificates = Arc::new(Certificates(all?));
    let failed = |e: rustls::Error| CannotUse(format!("TLS cannot be set up: {e}"));
    let versions: &[_] = if files.requires_13 {
        &[&rustls::version::TLS13]
    } else {
        &[&rustls::version::TLS13, &rustls::version::TLS12]
    };
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions);
    let builder = builder.map_err(failed)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(authorities(path)?.roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            let verifier =
                if files.requires_certificate { verifier } else { verifier.allow_unauthenticated() };
            let unusable = |e| CannotUse(format!("the bundle of authorities \"{path}\" cannot be used: {e}"));
            builder.with_client_cert_verifier(verifier.build().map_err(unusable)?)
        }
    };
    let mut config = builder.with_cert_resolver(certificates.clone());
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    // Sessions exist only in tickets, whose key changes every six hours: loops need no common memory.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().map_err(failed)?;
    Ok(Current { config: Arc::new(config), certificates })
}

/// The certificates of a listener, in the order of the file.
pub struct Certificates(Vec<Arc<CertifiedKey>>);

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.0.len())
    }
}

impl Certificates {
    /// Those that cover a name, then the first: the one shown is the first of them that the client can use.
    fn for_name<'a>(&'a self, name: Option<&'a str>) -> impl Iterator<Item = &'a Arc<CertifiedKey>> {
        let covering = self.0.iter().filter(move |one| name.is_some_and(|name| covers(one, name)));
        covering.chain(self.0.first())
    }

    /// Whether the certificate shown for one name covers another too.
    pub fn share(&self, name: &str, host: &str) -> bool {
        self.for_name(Some(name)).next().is_some_and(|one| covers(one, host))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let fits = |one: &&Arc<CertifiedKey>| one.key.choose_scheme(hello.signature_schemes()).is_some();
        let mut all = self.for_name(hello.server_name());
        // Of several for one name (ECDSA and RSA, say) the first whose key type the client supports; otherwise any
        // other.
        all.find(fits).or_else(|| self.0.iter().find(fits)).cloned()
    }
}

fn covers(one: &CertifiedKey, name: &str) -> bool {
    let Ok(name) = ServerName::try_from(name) else { return false };
    let parsed = one.cert.first().and_then(|own| ParsedCertificate::try_from(own).ok());
    parsed.is_some_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}
