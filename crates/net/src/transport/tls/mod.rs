//! TLS as a transport: certificates and keys, a connection's two directions, the handshakes of both ends.

mod agreed;
mod client;
mod files;
mod pinned;
mod server;
mod stream;
mod validity;
mod verify;
mod why;

pub use agreed::TlsParameters;
pub use client::{Client, ClientFiles, Clients};
pub use files::{CannotUse, CertificateFiles};
pub use pinned::OwnListener;
pub use server::{Server, ServerFiles};
pub use stream::Stream;
pub use why::TlsError;

use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// The provider of cryptography.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
