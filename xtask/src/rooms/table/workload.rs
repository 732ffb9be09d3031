//! The rooms of `workload`: the requests of a scenario, for the simulator and for the generator.

use super::{Layout, room};

pub(super) const WORKLOAD: Layout = Layout {
    folder: "crates/workload",
    rooms: &[
        room("drawn", "the draws that a request carries between processes", &[]),
        room("kinds", "the kinds of a scenario's requests", &[]),
        room("parts", "what is counted of each part of a run that is told over time", &[]),
        room("places", "the identities of nodes in draws", &[]),
        room("requests", "the requests of a replication, one by one", &["kinds"]),
        room("sending", "the number and times of requests, and which count", &[]),
        room(
            "lib",
            "the public face: all of them",
            &["drawn", "kinds", "parts", "places", "requests", "sending"],
        ),
    ],
};
