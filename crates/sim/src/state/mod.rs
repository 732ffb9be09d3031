//! What changes during a replication: pending events, requests in flight, and the state of each feature.
//!
//! It uses only `code`. The engine, the features and the reference change it; it neither schedules nor decides anything
//! by itself.

pub(crate) mod acts;
pub(crate) mod boundaries;
pub(crate) mod branches;
pub(crate) mod change_events;
pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod connections;
pub(crate) mod deferred;
pub(crate) mod dry_run;
mod failures;
pub(crate) mod fault_timelines;
pub(crate) mod gates;
pub(crate) mod guards;
pub(crate) mod heap;
pub(crate) mod holds;
pub(crate) mod hops;
pub(crate) mod lists;
pub(crate) mod members;
pub(crate) mod meter;
pub(crate) mod pending;
pub(crate) mod probes;
pub(crate) mod processes;
pub(crate) mod processor_sharing;
pub(crate) mod request_details;
pub(crate) mod request_state;
pub(crate) mod rollouts;
pub(crate) mod scopes;
pub(crate) mod seer;
mod settings;
pub(crate) mod sights;
pub(crate) mod source;
pub(crate) mod visits;
pub(crate) mod watch;
pub(crate) mod wheel;
pub(crate) mod work_left;
