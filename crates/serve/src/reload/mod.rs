//! How a topology comes to be served, the first and those that replace it: listeners are bound, threads adopt its
//! graph.

pub(crate) mod adopt;
mod changes;
pub(crate) mod listeners;
pub(crate) mod members;
pub(crate) mod options;
pub(crate) mod overrides;
pub(crate) mod played;
pub(crate) mod reloader;
mod renewal_log;
mod renewer;
pub(crate) mod sources;
mod views;
