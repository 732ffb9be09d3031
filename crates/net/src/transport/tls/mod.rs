//! TLS as a transport: certificates and keys, a connection's two directions, the handshakes of both ends.

mod parameters;
mod client;
mod files;
mod pinned;
mod server;
mod stream;
mod validity;
mod verify;
mod error;

pub use parameters::TlsParameters;
pub use client::{Client, ClientFiles, Clients};
pub use files::{CannotUse, CertificateFiles};
pub use pinned::OwnListener;
pub use server::{Server, ServerFiles};
pub use stream::Stream;
pub use error::TlsError;

use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// The provider of cryptography.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
