//! Features that only some topologies have, a file each: the engine calls them at its operations and events.
//!
//! A feature uses the engine, the state and the code, and implements what the engine calls it for.

pub(crate) mod branches;
pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod connections;
pub(crate) mod fanout;
pub(crate) mod fault_timelines;
pub(crate) mod gates;
pub(crate) mod guards;
pub(crate) mod handshakes;
pub(crate) mod health_checks;
pub(crate) mod hedges;
pub(crate) mod hops;
mod load_reports;
pub(crate) mod lossy_links;
pub(crate) mod pauses;
mod probes;
pub(crate) mod processor_sharing;
pub(crate) mod request_kinds;
pub(crate) mod revisits;
pub(crate) mod sequence;
pub(crate) mod work_ahead;
