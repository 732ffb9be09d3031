//! What a thread of weir's works with when it speaks to others: tasks, sockets, timers and buffers; connections as streams of
//! bytes, in the clear or over TLS. Knows no node and no traffic: of the plan it takes the limits that no file sets and what a file
//! says of TLS, and of messages nothing.
#![forbid(unsafe_code)]

pub mod io;
pub mod transport;
