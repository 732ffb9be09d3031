//! What weir counts of itself, against what clients, origins and the access log say.

#[path = "../common/mod.rs"]
mod common;
#[path = "../h2/peer.rs"]
#[allow(dead_code)]
mod peer;

mod counts;
mod format;
mod others;
mod scraped;
