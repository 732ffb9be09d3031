//! Connections as streams of bytes: sockets that listen, sockets that are connected.

pub(crate) mod bind;
pub(crate) mod holder;
pub(crate) mod inherit;
pub(crate) mod inner;
pub(crate) mod linger;
pub(crate) mod listener;
pub(crate) mod listening;
pub(crate) mod proxy_protocol;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod side_listener;
pub(crate) mod socket_file;
pub(crate) mod write_limit;
