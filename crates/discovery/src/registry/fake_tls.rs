//! Registries for tests that are asked by TLS, and the authorities of their certificates.

use super::fake::{Fake, Question, Reply, serve};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use std::net::TcpStream;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// An authority, and the certificates that it signs.
pub(crate) struct Authority {
    /// Its own certificate as PEM.
    pub(crate) pem: String,
    der: CertificateDer<'static>,
    key: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        Authority::with_names(name, Vec::new())
    }

    /// One whose own certificate is for these names or addresses, too.
    pub(crate) fn with_names(name: &str, names: Vec<String>) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(names).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).expect("a certificate");
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Authority { pem, der, key: key.serialize_der(), issuer: Issuer::new(params, key) }
    }

    /// A certificate for this name or address, and its key, as PEM.
    pub(crate) fn issue(&self, name: &str) -> (String, String) {
        let (certificate, key) = self.sign(name);
        (certificate.pem(), key.serialize_pem())
    }

    /// A server with a certificate for this name or address. It requires one of its clients that this other
    /// authority has signed.
    pub(crate) fn server(&self, name: &str, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.der.clone()).expect("an authority");
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.expect("an authority"))
            }
        };
        let (certificate, key) = self.sign(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key).expect("a pair"))
    }

    /// A server with the authority's own certificate.
    pub(crate) fn own_server(&self) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let key = PrivateKeyDer::try_from(self.key.clone()).expect("a key");
        Arc::new(builder.with_single_cert(vec![self.der.clone()], key).expect("a pair"))
    }

    fn sign(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.distinguished_name = DistinguishedName::new();
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }
}

impl Fake {
    /// A registry behind TLS. A client that is refused finds that out by the alert.
    pub(crate) fn start_tls(
        config: Arc<ServerConfig>,
        answer: impl Fn(&Question) -> Reply + Send + Sync + 'static,
    ) -> Fake {
        Fake::accept("https", move |mut socket: TcpStream| {
            let mut tls = ServerConnection::new(config.clone()).expect("a server");
            match tls.complete_io(&mut socket) {
                Ok(_) => drop(serve(StreamOwned::new(tls, socket), &answer)),
                // If bytes of the client were left unread here, the system would drop the alert.
                Err(_) => drop(std::io::copy(&mut socket, &mut std::io::sink())),
            }
        })
    }
}
