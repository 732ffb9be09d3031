//! The rooms of `load`, the generator of load.

use super::{Layout, Room, room};

/// Its rooms, the lowest first.
pub(super) const LOAD: Layout = Layout {
    folder: "crates/load",
    rooms: &[
        room("cookies", "the cookies of sticky balancers", &[]),
        room("outcome", "the result of a run, as plain data", &[]),
        room("hgrm", "latencies in the form that HdrHistogram's plotter reads", &["outcome"]),
        room("shape", "the bytes of each kind of a scenario's requests", &[]),
        room("target", "the destination of a load", &[]),
        Room {
            despite: &[("generator", "a circle from before the table, to be opened")],
            ..room("tally", "counts of a running load", &["outcome"])
        },
        Room {
            despite: &[("generator", "a circle from before the table, to be opened")],
            ..room("h1", "HTTP/1.1: a connection carries one request at a time", &["shape"])
        },
        Room {
            despite: &[("generator", "a circle from before the table, to be opened")],
            ..room(
                "h2",
                "HTTP/2: requests share connections, as many at once as the server accepts",
                &["shape"],
            )
        },
        Room {
            despite: &[("open", "a circle from before the table, to be opened")],
            ..room(
                "generator",
                "requests in flight, and the connections that they share",
                &["cookies", "shape", "target", "tally", "h1", "h2"],
            )
        },
        Room {
            despite: &[("run", "a circle from before the table, to be opened")],
            ..room("closed", "closed traffic of the crate", &["generator"])
        },
        Room {
            despite: &[("open", "a circle from before the table, to be opened")],
            ..room(
                "run",
                "A run of the crate",
                &["cookies", "outcome", "shape", "target", "tally", "generator", "closed"],
            )
        },
        room("lib", "an open-loop generator", &["outcome", "hgrm", "target", "tally", "run"]),
        room("open", "open traffic of the crate", &["generator", "run"]),
    ],
};
