//! HTTP/1.1 behind the two ends of an exchange.

pub(crate) mod server;
