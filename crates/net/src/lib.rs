//! The runtime of an event loop and its connections: tasks, sockets, timers and buffers; streams of bytes, in
//! cleartext or over TLS. It knows no node, no traffic, no plan and no messages: limits and files are given to it.
#![forbid(unsafe_code)]

pub mod io;
pub mod transport;
