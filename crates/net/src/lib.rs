//! What a thread of weir's works with when it speaks to others: tasks, sockets, timers and buffers; connections as streams of
//! bytes, in the clear or over TLS. Knows no message and no topology.
#![forbid(unsafe_code)]

pub mod io;
pub mod transport;
