//! HTTP/2 with real peers: clients and origins on the `h2` crate, and raw frames where that would not do wrong.

#[path = "../common/mod.rs"]
mod common;

mod bad_origins;
mod clients;
mod floods;
mod frames;
mod honest;
mod large_answers;
mod log_lines;
mod loops;
mod malformed_answers;
mod malformed_requests;
mod never_indexed;
mod origins;
mod peer;
mod raw;
mod rules;
mod silent;
mod streams;
mod switches;
mod tunnels;
mod upgrade_ends;
mod upgrades;
