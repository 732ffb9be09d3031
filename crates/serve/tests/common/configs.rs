//! What clients and origins by rustls begin with.

use super::certificates::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;

/// A server that shows a certificate for these names.
pub fn server(authority: &Authority, names: &[&str]) -> Arc<ServerConfig> {
    let (cert, key) = authority.issue(names, false);
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    Arc::new(builder.with_single_cert(chain, key).expect("a pair"))
}

/// A client that trusts this authority.
pub fn client(authority: &Authority) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let own = CertificateDer::from_pem_file(&authority.file).expect("PEM");
    roots.add(own).expect("a certificate");
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    builder.with_root_certificates(roots).with_no_client_auth()
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
