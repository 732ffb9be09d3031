//! `server(tls=tls.client(...))`: TLS to an origin, whose certificate is always verified. Authorities and the own
//! certificate are read at the start and again on request.

use super::files::{Authorities, CannotUse, CertificateFiles, authorities, certified, system_authorities};
use super::sessions::Sessions;
use super::verify::Verifier;
use super::{Stream, TlsError, provider};
use crate::io::Core;
use crate::transport::socket::Socket;
use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

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

/// The client's side of TLS with these files, shared by all servers and loops with the same files.
#[derive(Debug)]
pub struct Client {
    files: ClientFiles,
    /// Locked once for each handshake.
    now: Mutex<Current>,
}

/// The configuration of new connections.
#[derive(Debug)]
struct Current {
    config: ClientConfig,
    /// The same for each target that was connected to, with the sessions of that target.
    targets: BTreeMap<u32, Arc<ClientConfig>>,
}

impl Current {
    fn new(config: ClientConfig) -> Mutex<Current> {
        Mutex::new(Current { config, targets: BTreeMap::new() })
    }

    /// The configuration of a connection to this target.
    fn of_target(&mut self, target: u32) -> Arc<ClientConfig> {
        let new = || {
            let mut config = self.config.clone();
            config.resumption = Resumption::store(Arc::new(Sessions::default()));
            Arc::new(config)
        };
        self.targets.entry(target).or_insert_with(new).clone()
    }
}

impl Client {
    /// Reads the files.
    ///
    /// # Errors
    /// The first unusable file.
    pub fn read(files: &ClientFiles) -> Result<Client, CannotUse> {
        Ok(Client { files: files.clone(), now: Current::new(config(files)?) })
    }

    /// Reads the files again, for new connections. Older sessions are dropped: they were verified by the former
    /// files.
    ///
    /// # Errors
    /// The first unusable file; nothing changes then.
    pub fn read_again(&self) -> Result<(), CannotUse> {
        let config = config(&self.files)?;
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) =
            Current { config, targets: BTreeMap::new() };
        Ok(())
    }

    /// Runs TLS on a connection; `host`: of the address, used unless another name is set; `offers`: by ALPN;
    /// `target`: the number of the target, for which sessions are kept (over all loops, four at most). The
    /// origin's answer is processed in a turn of long work: it costs as much as some hundred requests, and more with
    /// an own certificate.
    pub async fn connect(
        &self,
        core: &Core,
        plain: Socket,
        host: &str,
        offers: &[&str],
        target: u32,
    ) -> Result<Socket, TlsError> {
        let name = self.files.name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::WrongName)?;
        let config = self.now.lock().unwrap_or_else(PoisonError::into_inner).of_target(target);
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
        Ok(Client { files, now: Current::new(config) })
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

    /// Reads all files again.
    pub fn read_again(&self) -> impl Iterator<Item = Result<(), CannotUse>> {
        self.0.iter().map(|one| one.read_again())
    }
}

fn config(files: &ClientFiles) -> Result<ClientConfig, CannotUse> {
    let failed = |e: rustls::Error| CannotUse(format!("TLS cannot be set up: {e}"));
    let Authorities { roots, named } = files.ca.as_deref().map_or_else(system_authorities, authorities)?;
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let verifier =
        Verifier::new(roots, named).map_err(|e| CannotUse(format!("TLS cannot be set up: {e}")))?;
    let builder = builder.map_err(failed)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(match &files.certificate {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let own = Arc::unwrap_or_clone(certified(pair)?);
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
        }
    })
}
