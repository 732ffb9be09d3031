//! The rooms of `sim`, the simulator.

use super::{Layout, room};

/// Compiled code below, its state above it, the engine that runs it, and the features that few topologies have.
pub(super) const SIM: Layout = Layout {
    folder: "crates/sim",
    rooms: &[
        room(
            "code",
            "what a plan is compiled to: operations, order of events, the sites of every feature",
            &[],
        ),
        room(
            "compile",
            "from a plan to code: blocks, waits, what can be cut off, what may run ahead",
            &["code"],
        ),
        room(
            "state",
            "what changes during a run: pending events, requests, the state of every feature",
            &["code"],
        ),
        room("account", "what a run adds up, and the laws that it must obey", &["code", "state"]),
        room(
            "engine",
            "runs requests through the code, event by event; knows no feature",
            &["code", "compile", "state", "account"],
        ),
        room(
            "features",
            "what few topologies have, a file each; the engine calls them",
            &["code", "state", "engine"],
        ),
        room("record", "histories, typical requests and series over time, as data", &["code"]),
        room(
            "reference",
            "the slow engine: the oracle of tests, and the recorder of histories",
            &["code", "compile", "state", "account", "record"],
        ),
        room(
            "results",
            "replications, summed up; warnings, expectations, shards, repeated runs",
            &["code", "compile", "state", "account", "engine", "record", "reference"],
        ),
        room("lib", "what other crates use of it", &["record", "results"]),
    ],
};
