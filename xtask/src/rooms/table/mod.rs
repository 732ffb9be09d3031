//! The table: which rooms a crate has, and which others each may know. `cargo xtask rooms` shows the present state.

mod admin;
mod cli;
mod discovery;
mod gate;
mod http1;
mod http2;
mod load;
mod memory;
mod model;
mod net;
mod plan;
mod policy;
mod report;
mod serve;
mod sim;
mod stats;
mod testkit;
mod topology;
mod verify;
mod workload;
mod xtask;

/// A crate whose rooms are held to a table.
pub(super) struct Layout {
    /// Its folder, from the root of the workspace.
    pub(super) folder: &'static str,
    /// Its rooms, the lowest first.
    pub(super) rooms: &'static [Room],
}

/// A room: a folder right below `src`, or a file in it (by its name without `.rs`).
pub(super) struct Room {
    pub(super) name: &'static str,
    /// What it is for, in a sentence.
    pub(super) purpose: &'static str,
    /// All rooms that it may know. Their lines come before its own, since they lie below it.
    pub(super) knows: &'static [&'static str],
}

/// A room, from its name, its purpose and what it may know.
pub(super) const fn room(name: &'static str, purpose: &'static str, knows: &'static [&'static str]) -> Room {
    Room { name, purpose, knows }
}

/// Every crate of the workspace; one without an entry fails.
#[rustfmt::skip] // a line each, so that two changes do not meet
pub(super) const TABLE: &[Layout] = &[
    admin::ADMIN,
    cli::CLI,
    discovery::DISCOVERY,
    gate::GATE,
    http1::HTTP1,
    http2::HTTP2,
    load::LOAD,
    memory::MEMORY,
    model::MODEL,
    net::NET,
    plan::PLAN,
    policy::POLICY,
    report::REPORT,
    serve::SERVE,
    sim::SIM,
    stats::STATS,
    testkit::TESTKIT,
    topology::TOPOLOGY,
    verify::VERIFY,
    workload::WORKLOAD,
    xtask::XTASK,
];
