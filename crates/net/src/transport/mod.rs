//! Connections as streams of bytes.

pub mod connect;
pub mod socket;
pub mod tls;
pub mod wire;
