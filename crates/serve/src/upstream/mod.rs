//! Targets with a server behind them, by identity: where they are, their connections, and one attempt at one of them.

mod attempt;
pub(crate) mod connect;
pub(crate) mod limit;
mod multiplexed;
pub(crate) mod names;
mod pool;
mod resting;
pub(crate) mod secure;
pub(crate) mod server;
pub(crate) mod sole_target;
pub(crate) mod target;
