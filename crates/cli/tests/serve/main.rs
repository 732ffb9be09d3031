//! `weir serve` as a process, between clients and origins that follow scripts or are real.

mod admin;
mod again;
mod check;
mod clients;
mod drain;
mod edges;
mod errors;
mod faults;
mod find;
mod gate;
mod http11probe;
mod large;
mod life;
mod log;
mod log_pipes;
mod parsers;
mod paths;
mod prometheus;
mod real;
mod reload;
mod rest;
mod room;
#[path = "../shared/mod.rs"]
mod shared;
mod strictness;
mod tls;
mod trace;
mod unix_peers;
