//! `server(tls=tls.client(...))`: TLS to an origin, whose certificate is always verified. Authorities and the own
//! certificate are read at the start and again on request.

use super::files::{
    Authorities, CannotUse, CertificateFiles, NamedPem, authorities, authorities_of, certified, certified_of,
    system_authorities,
};
use super::renewal::{Part, Renewal};
use super::sessions::Sessions;
use super::verify::Verifier;
use super::{Stream, TlsError, provider};
use crate::io::Core;
use crate::transport::socket::Socket;
use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::pki_types::ServerName;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What verifies an origin, and what weir shows to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// A file of authorities; `None`: the system's.
    pub ca: Option<String>,
    /// The name that the origin's certificate must cover; `None`: the host of its address.
    pub name: Option<String>,
    /// The certificate that weir shows if it is asked for one.
    pub certificate: Option<CertificateFiles>,
}

impl ClientFiles {
    /// Reads each of the files. Returns why it is unusable, for each that is. The system's authorities are not read.
    pub fn find_unusable(&self) -> Vec<CannotUse> {
        let bundle = self.ca.as_deref().and_then(|path| authorities(path).err());
        let certificate = self.certificate.as_ref().and_then(|files| certified(files).err());
        bundle.into_iter().chain(certificate).collect()
    }
}

/// The client's side of TLS with these files, shared by all servers and loops with the same files.
#[derive(Debug)]
pub struct Client {
    files: ClientFiles,
    /// Locked once for each handshake, and for each target of a new graph.
    now: Mutex<Current>,
}

/// The configuration of new connections.
#[derive(Debug)]
struct Current {
    config: ClientConfig,
    /// What it was made of; `None`: of no files.
    read: Option<FileContents>,
    targets: BTreeMap<u32, KnownTarget>,
    /// The number of targets at which those are forgotten that are gone.
    forgets_at: usize,
}

/// What files hold.
#[derive(Clone, Debug)]
struct FileContents {
    authorities: Authorities,
    certificate: Option<Arc<CertifiedKey>>,
}

/// A target of which sessions are kept.
#[derive(Debug)]
struct KnownTarget {
    held: Weak<()>,
    /// The configuration with the sessions of that target; `None`: it was not connected to.
    config: Option<Arc<ClientConfig>>,
}

/// A target that is there: as long as one of it is, its sessions are kept.
#[derive(Clone, Debug)]
pub struct TlsTarget {
    number: u32,
    held: Arc<()>,
}

/// Targets that are known before any is forgotten.
const FEW_TARGETS: usize = 1024;

impl Current {
    fn new(config: ClientConfig, read: Option<FileContents>) -> Mutex<Current> {
        Mutex::new(Current { config, read, targets: BTreeMap::new(), forgets_at: FEW_TARGETS })
    }

    fn target(&mut self, number: u32) -> TlsTarget {
        if self.targets.len() >= self.forgets_at {
            self.targets.retain(|_, target| target.held.strong_count() > 0);
            self.forgets_at = FEW_TARGETS.max(2 * self.targets.len());
        }
        let new = || KnownTarget { held: Weak::new(), config: None };
        let known = self.targets.entry(number).or_insert_with(new);
        let held = known.held.upgrade().unwrap_or_default();
        known.held = Arc::downgrade(&held);
        TlsTarget { number, held }
    }

    /// The configuration of a connection to this target.
    fn of_target(&mut self, target: &TlsTarget) -> Arc<ClientConfig> {
        let known = || KnownTarget { held: Arc::downgrade(&target.held), config: None };
        let new = || {
            let mut config = self.config.clone();
            config.resumption = Resumption::store(Arc::new(Sessions::default()));
            Arc::new(config)
        };
        self.targets.entry(target.number).or_insert_with(known).config.get_or_insert_with(new).clone()
    }
}

impl Client {
    /// Reads the files.
    ///
    /// # Errors
    /// The first unusable file.
    pub fn read(files: &ClientFiles) -> Result<Client, CannotUse> {
        let read = FileContents::read(files)?;
        Ok(Client { files: files.clone(), now: Current::new(read.config()?, Some(read)) })
    }

    /// The paths of its files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let ClientFiles { ca, certificate, .. } = &self.files;
        certificate.iter().flat_map(CertificateFiles::paths).chain(ca.as_deref())
    }

    /// Reads those of its files again of which `is_due` says so, for new connections. What cannot be used stays as it
    /// was. If something differs older sessions are dropped: they were verified by the former files.
    pub fn renew(&self, is_due: impl Fn(&str) -> bool) -> Vec<Renewal> {
        let mut renewals = Vec::new();
        let known = self.now().read.clone();
        let Some(FileContents { authorities: known, certificate: own }) = known else { return renewals };
        let authorities = match self.files.ca.as_deref() {
            Some(path) if is_due(path) => {
                let is_same = |before: &Authorities, now: &Authorities| before.named == now.named;
                Part::authorities(path).renew(known, authorities(path), is_same, &mut renewals)
            }
            _ => known,
        };
        let certificate = match (&self.files.certificate, own) {
            (Some(files), Some(own)) if files.paths().into_iter().any(&is_due) => {
                let is_same = |before: &Arc<CertifiedKey>, now: &Arc<CertifiedKey>| before.cert == now.cert;
                Some(Part::certificate(files).renew(own, certified(files), is_same, &mut renewals))
            }
            (_, own) => own,
        };
        if renewals.iter().any(Renewal::has_changed) {
            let read = FileContents { authorities, certificate };
            match read.config() {
                Ok(config) => self.use_renewed(config, read),
                Err(why) => Renewal::fail(&mut renewals, &why),
            }
        }
        renewals
    }

    fn use_renewed(&self, config: ClientConfig, read: FileContents) {
        let mut now = self.now();
        now.config = config;
        now.read = Some(read);
        now.targets.values_mut().for_each(|target| target.config = None);
    }

    /// A sentence if its certificate has expired or is not valid yet.
    fn warning(&self) -> Option<String> {
        let now = self.now();
        let certificate = now.read.as_ref()?.certificate.as_ref()?;
        self.files.certificate.as_ref()?.warning(certificate)
    }

    fn now(&self) -> MutexGuard<'_, Current> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The target with this number, which no other has had. To be kept as long as it may be connected to.
    pub fn target(&self, number: u32) -> TlsTarget {
        self.now().target(number)
    }

    /// Runs TLS on a connection; `host`: of the address, used unless another name is set; `offers`: by ALPN;
    /// `target`: of which sessions are kept (over all loops, four at most). The
    /// origin's answer is processed in a turn of long work: it costs as much as some hundred requests, and more with
    /// an own certificate.
    pub async fn connect(
        &self,
        core: &Core,
        plain: Socket,
        host: &str,
        offers: &[&str],
        target: &TlsTarget,
    ) -> Result<Socket, TlsError> {
        let name = self.files.name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::WrongName)?;
        let config = self.now().of_target(target);
        let offers = offers.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let tls =
            ClientConnection::new_with_alpn(config, name, offers).map_err(|e| TlsError::from_rustls(&e))?;
        let mut stream = Box::new(Stream::new(plain, tls, core.buffers.clone()));
        // A connection that is broken by then shows in the handshake.
        let _ = poll_fn(|cx| stream.poll_answered(cx)).await;
        poll_fn(|cx| core.heavy.poll_turn(&core.runtime, cx)).await;
        poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(Socket::Tls(stream))
    }
}

impl Client {
    /// Accepts any certificate: for tests of a server of the user, on explicit request.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn unverified() -> Result<Client, CannotUse> {
        Client::with_verifier(Verifier::of_anyone(), None)
    }

    /// Uses this verifier, and this name or else the host of the address. It reads no files.
    pub(super) fn with_verifier(verifier: Verifier, name: Option<&str>) -> Result<Client, CannotUse> {
        let failed = |e: rustls::Error| CannotUse(format!("TLS cannot be set up: {e}"));
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = builder
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let files = ClientFiles { name: name.map(str::to_owned), ..ClientFiles::default() };
        Ok(Client { files, now: Current::new(config, None) })
    }
}

/// The TLS clients of a topology, one for each set of files.
#[derive(Debug, Default)]
pub struct Clients(Vec<Arc<Client>>);

impl Clients {
    /// Reads a set of files, unless it was read already.
    ///
    /// # Errors
    /// The first unusable file.
    pub fn read(&mut self, files: &ClientFiles) -> Result<(), CannotUse> {
        if self.get(files).is_none() {
            self.0.push(Arc::new(Client::read(files)?));
        }
        Ok(())
    }

    /// The client with these files.
    pub fn get(&self, files: &ClientFiles) -> Option<Arc<Client>> {
        self.0.iter().find(|one| one.files == *files).cloned()
    }

    /// A sentence for each certificate that has expired or is not valid yet.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|one| one.warning())
    }
}

/// The client's side of TLS with these files, for sockets of another runtime.
///
/// # Errors
/// The first unusable file.
pub fn client_config(files: &ClientFiles) -> Result<ClientConfig, CannotUse> {
    FileContents::read(files)?.config()
}

/// The same with PEM from elsewhere: authorities (`None`: the system's), a certificate and its key.
///
/// # Errors
/// The first that is unusable.
pub fn client_config_of(
    ca: Option<&NamedPem>,
    certificate: Option<&(NamedPem, NamedPem)>,
) -> Result<ClientConfig, CannotUse> {
    let authorities = ca.map_or_else(system_authorities, authorities_of)?;
    let certificate = certificate.map(|(cert, key)| certified_of(cert, key)).transpose()?;
    FileContents { authorities, certificate }.config()
}

impl FileContents {
    fn read(files: &ClientFiles) -> Result<FileContents, CannotUse> {
        let authorities = files.ca.as_deref().map_or_else(system_authorities, authorities)?;
        let certificate = files.certificate.as_ref().map(certified).transpose()?;
        Ok(FileContents { authorities, certificate })
    }

    /// The client's side of TLS with them.
    fn config(&self) -> Result<ClientConfig, CannotUse> {
        let failed = |e: rustls::Error| CannotUse(format!("TLS cannot be set up: {e}"));
        let Authorities { roots, named } = self.authorities.clone();
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let verifier =
            Verifier::new(roots, named).map_err(|e| CannotUse(format!("TLS cannot be set up: {e}")))?;
        let builder =
            builder.map_err(failed)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(match &self.certificate {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let own = CertifiedKey::clone(own);
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{HandshakeKind, ServerConfig, ServerConnection};

    fn server() -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["origin.test".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate").der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.expect("versions").with_no_client_auth();
        Arc::new(builder.with_single_cert(vec![certificate], key).expect("a pair"))
    }

    /// One handshake in memory, tickets included.
    fn shake(config: Arc<ClientConfig>, server: Arc<ServerConfig>) -> Option<HandshakeKind> {
        let name = ServerName::try_from("origin.test").expect("a name");
        let mut client = ClientConnection::new(config, name).expect("a client");
        let mut server = ServerConnection::new(server).expect("a server");
        while client.wants_write() || server.wants_write() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).expect("memory");
            server.read_tls(&mut &bytes[..]).expect("memory");
            server.process_new_packets().expect("the client is right");
            bytes.clear();
            while server.wants_write() {
                server.write_tls(&mut bytes).expect("memory");
            }
            client.read_tls(&mut &bytes[..]).expect("memory");
            client.process_new_packets().expect("the server is right");
        }
        client.handshake_kind()
    }

    /// All with one name and one set of files, as the members of a fleet have them.
    #[test]
    fn the_second_connections_to_400_targets_are_resumed() {
        let client = Client::unverified().expect("no files");
        let servers: Vec<_> = (0..400).map(|number| (client.target(number), server())).collect();
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            for (target, server) in &servers {
                let config = client.now().of_target(target);
                assert_eq!(shake(config, server.clone()), Some(kind), "{target:?}");
            }
        }
    }

    /// Members of a fleet come and go for years.
    #[test]
    fn targets_that_are_gone_are_forgotten() {
        let client = Client::unverified().expect("no files");
        let stays = client.target(0);
        let config = client.now().of_target(&stays);
        for number in 1..10_000 {
            let target = client.target(number);
            client.now().of_target(&target);
        }
        assert!(client.now().targets.len() <= FEW_TARGETS);
        assert!(Arc::ptr_eq(&config, &client.now().of_target(&stays)));
    }
}
