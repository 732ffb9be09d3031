//! `listen(tls=tls.server(...))`: a listener's certificates, read at the start and again on request; open connections
//! keep theirs.

use super::files::{Authorities, CannotUse, CertificateFiles, authorities, certified};
use super::renewal::{Part, Renewal};
use super::validity::Validity;
use super::{OwnListener, Stream, TlsParameters, provider};
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
    /// Authorities of clients' certificates.
    client_ca: Option<Authorities>,
}

impl Server {
    /// Reads the files. `protocols`: those that ALPN offers, the best first.
    ///
    /// # Errors
    /// The first unusable file.
    pub fn read(files: &ServerFiles, protocols: &[&str]) -> Result<Server, CannotUse> {
        let certificates: Result<Vec<_>, _> = files.certificates.iter().map(certified).collect();
        let client_ca = files.client_ca.as_deref().map(authorities);
        let protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let now = Current::new(files, protocols, certificates?, client_ca.transpose()?)?;
        Ok(Server { files: files.clone(), now: RwLock::new(now) })
    }

    /// The paths of its files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let ServerFiles { certificates, client_ca, .. } = &self.files;
        certificates.iter().flat_map(CertificateFiles::paths).chain(client_ca.as_deref())
    }

    /// Reads those of its files again of which `is_due` says so, for new connections. A pair or a bundle that cannot be
    /// used stays as it was. `own`: how it is reached from this process, if it is behind another listener.
    pub fn renew(&self, is_due: impl Fn(&str) -> bool, own: Option<&OwnListener>) -> Vec<Renewal> {
        let before = self.current();
        let (mut renewals, mut certificates) = (Vec::new(), Vec::new());
        for (files, one) in self.files.certificates.iter().zip(&before.certificates.0) {
            let mut one = one.clone();
            if files.paths().into_iter().any(&is_due) {
                let is_same = |before: &Arc<CertifiedKey>, now: &Arc<CertifiedKey>| before.cert == now.cert;
                one = Part::certificate(files).renew(one, certified(files), is_same, &mut renewals);
            }
            certificates.push(one);
        }
        let client_ca = match (self.files.client_ca.as_deref(), before.client_ca.clone()) {
            (Some(path), Some(known)) if is_due(path) => {
                let is_same = |before: &Authorities, now: &Authorities| before.named == now.named;
                Some(Part::authorities(path).renew(known, authorities(path), is_same, &mut renewals))
            }
            (_, known) => known,
        };
        if renewals.iter().any(Renewal::has_changed) {
            let protocols = before.config.alpn_protocols.clone();
            match Current::new(&self.files, protocols, certificates, client_ca) {
                Ok(now) => self.use_renewed(&before, now, own),
                Err(why) => Renewal::fail(&mut renewals, &why),
            }
        }
        renewals
    }

    fn use_renewed(&self, before: &Current, mut now: Current, own: Option<&OwnListener>) {
        if before.named_authorities() == now.named_authorities() {
            now.keep_tickets(before);
        }
        if let Some(own) = own {
            own.add(now.certificates.shown());
        }
        self.replace(now);
    }

    /// A sentence for each certificate that has expired or is not valid yet.
    pub fn warnings(&self) -> Vec<String> {
        let Current { certificates, .. } = self.current();
        let all = self.files.certificates.iter().zip(&certificates.0);
        all.filter_map(|(files, one)| files.warning(one)).collect()
    }

    /// Uses what another with the same arguments has read, for new connections.
    pub fn show(&self, again: &Server) {
        let mut now = again.current();
        // A ticket represents a client's certificate: clients of an authority that was removed must show theirs
        // again.
        if self.files.client_ca.is_none() {
            now.keep_tickets(&self.current());
        }
        self.replace(now);
    }

    fn replace(&self, now: Current) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// The server's end of a connection that was just accepted.
    pub fn accept(&self, plain: Socket, buffers: Rc<Buffers>) -> Option<Accepting> {
        let Current { config, certificates, .. } = self.current();
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
        self.current().certificates.shown()
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

impl Current {
    /// With what was read. `protocols`: those that ALPN offers, the best first.
    fn new(
        files: &ServerFiles,
        protocols: Vec<Vec<u8>>,
        certificates: Vec<Arc<CertifiedKey>>,
        client_ca: Option<Authorities>,
    ) -> Result<Current, CannotUse> {
        let certificates = Arc::new(Certificates(certificates));
        let failed = |e: rustls::Error| CannotUse(format!("TLS cannot be set up: {e}"));
        let versions: &[_] = if files.requires_13 {
            &[&rustls::version::TLS13]
        } else {
            &[&rustls::version::TLS13, &rustls::version::TLS12]
        };
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions);
        let builder = builder.map_err(failed)?;
        let builder = match &client_ca {
            None => builder.with_no_client_auth(),
            Some(known) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(known.roots.clone(), provider());
                let verifier =
                    if files.requires_certificate { verifier } else { verifier.allow_unauthenticated() };
                let path = files.client_ca.as_deref().unwrap_or_default();
                let unusable =
                    |e| CannotUse(format!("the bundle of authorities \"{path}\" cannot be used: {e}"));
                builder.with_client_cert_verifier(verifier.build().map_err(unusable)?)
            }
        };
        let mut config = builder.with_cert_resolver(certificates.clone());
        config.alpn_protocols = protocols;
        // Sessions exist only in tickets, whose key changes every six hours: loops need no common memory.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().map_err(failed)?;
        Ok(Current { config: Arc::new(config), certificates, client_ca })
    }

    /// Accepts the tickets of another configuration, and issues such.
    fn keep_tickets(&mut self, before: &Current) {
        let mut config = ServerConfig::clone(&self.config);
        config.ticketer = before.config.ticketer.clone();
        self.config = Arc::new(config);
    }

    /// The certificates of clients' authorities.
    fn named_authorities(&self) -> Option<&[CertificateDer<'static>]> {
        self.client_ca.as_ref().map(|known| known.named.as_slice())
    }
}

/// The certificates of a listener, in the order of the file.
pub struct Certificates(Vec<Arc<CertifiedKey>>);

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.0.len())
    }
}

impl Certificates {
    /// What is shown, without the certificates of signers.
    fn shown(&self) -> Vec<CertificateDer<'static>> {
        self.0.iter().filter_map(|one| one.cert.first().cloned()).collect()
    }

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
