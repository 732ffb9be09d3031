//! How the modelled world behaves: queues, faults, service times, arrivals. Sans-I/O: the simulator runs it in
//! virtual time, the proxy's built-in servers in real time. It may use `policy` and `stats`; it has no clock, thread,
//! socket or random source.
#![forbid(unsafe_code)]

pub mod busy;
pub mod concurrent;
pub mod connections;
pub mod crossing;
pub mod dist;
pub mod draws;
pub mod exchanges;
pub mod faulty;
pub mod flaky;
pub mod loops;
pub mod mix;
pub mod pause;
pub mod probe;
pub mod process;
pub mod queue;
pub mod sampler;
pub mod traffic;
pub mod warmup;
pub mod way;
mod zipf;

pub use dist::Dist;
pub use queue::OnCancel;
pub use traffic::Traffic;
