//! TLS: a transport. What is read of certificates and keys, a connection's two directions, both ends' handshakes.

mod agreed;
mod client;
mod files;
mod server;
mod stream;
mod validity;
mod verify;
mod why;

pub(crate) use agreed::Agreed;
pub(crate) use client::{Client, Clients};
pub use files::CannotUse;
pub(crate) use server::Server;
pub(crate) use stream::Stream;
pub(crate) use why::Why;

use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// Who does the arithmetic.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
