//! The rooms of `load`, the generator of load.

use super::{Layout, room};

/// Its rooms, the lowest first.
pub(super) const LOAD: Layout = Layout {
    folder: "crates/load",
    rooms: &[
        room("cookies", "the cookies of sticky balancers", &[]),
        room("outcome", "the result of a run, as plain data", &[]),
        room("expected", "what a file expects of a scenario, judged by what was measured", &["outcome"]),
        room("hgrm", "latencies in the form that HdrHistogram's plotter reads", &["outcome"]),
        room("shape", "the bytes of each kind of a scenario's requests", &[]),
        room("target", "the destination of a load", &[]),
        room(
            "generator",
            "requests in flight, the connections that they share, and what became of them",
            &["cookies", "outcome", "shape", "target"],
        ),
        room(
            "run",
            "a run from start to end",
            &["cookies", "outcome", "expected", "shape", "target", "generator"],
        ),
        room("lib", "an open-loop generator", &["outcome", "hgrm", "shape", "target", "generator", "run"]),
    ],
};
