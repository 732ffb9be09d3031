//! The data plane: a topology file as a running HTTP load balancer, one event loop per core.
//!
//! A request is a future on the loop that accepted its connection: `client` reads and answers, `nodes` are the way through
//! the topology (the policies are the simulator's own objects), `origin` are the connections behind. Nothing on that way
//! takes a lock.
#![forbid(unsafe_code)]

mod accept;
mod bind;
mod buffers;
mod build;
mod built_in;
mod client;
mod clock;
mod date;
mod deadlines;
mod event_loop;
mod exchange;
mod failure;
mod graph;
mod handover;
mod health;
mod limits;
mod listener;
mod log;
mod mailbox;
mod nodes;
mod origin;
mod process;
mod resolve;
mod reuse;
mod running;
mod runtime;
mod shared;
mod socket;
mod socket_file;
mod timers;
mod trouble;
mod wire;
mod word;

pub use bind::CannotListen;
pub use limits::explained;
pub use running::{Error, Listening, Options, Remote, Running, start};
