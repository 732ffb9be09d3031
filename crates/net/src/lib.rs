//! The runtime of an event loop and its connections: tasks, sockets, timers and buffers; streams of bytes, in
//! cleartext or over TLS. Nodes, traffic, plans and messages are unknown here: limits and files are arguments.
#![forbid(unsafe_code)]

pub mod io;
pub mod transport;
