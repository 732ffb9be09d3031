//! TLS as a transport: certificates and keys, a connection's two directions, the handshakes of both ends.

mod client;
mod client_certificate;
mod error;
mod files;
mod parameters;
mod pinned;
mod renewal;
mod server;
mod sessions;
mod stream;
mod validity;
mod verify;

pub use client::{Client, ClientFiles, Clients, TlsTarget, client_config, client_config_of};
pub use client_certificate::ClientCertificate;
pub use error::{TlsError, tls_problem};
pub use files::{CannotUse, CertificateFiles, NamedPem};
pub use parameters::TlsParameters;
pub use pinned::OwnListener;
pub use renewal::Renewal;
pub use server::{Server, ServerFiles};
pub use stream::Stream;

use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// The provider of cryptography.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
