//! Connections as streams of bytes.

pub mod socket;
pub mod tls;
pub mod wire;
