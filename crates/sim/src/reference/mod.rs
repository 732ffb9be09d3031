//! The reference: an engine that walks the nodes of any topology, one wait after another.
//!
//! Every wait is an event of its own and everything happens in its turn, so a request can be cut off wherever it is.
//! What runs through the nodes is a *branch*: a request, or a part of one that a `timeout`, a `fanout` or a process
//! that can crash sent in. A branch that is cancelled gives back what it holds; one that reaches a queue whose
//! requests continue loses its parent and continues up to that queue.
//!
//! It has none of the machinery that makes `crate::engine` fast; a test holds that one to the same bytes as this one.
//! And since it stops wherever a request does, it is the engine that records the history of requests (`recorder`,
//! `crate::record`): the fast one has no step for that.

mod around;
mod balance;
mod branch;
mod build;
mod cancel;
mod changes;
mod checks;
mod choose;
mod clients;
mod connections;
mod faults;
mod group;
mod handshakes;
mod hedges;
mod hops;
mod looks;
mod nodes;
mod probes;
mod recorder;
mod run;
mod servers;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use build::{Tables, build};
pub(crate) use recorder::Recorder;
pub(crate) use run::Reference;
