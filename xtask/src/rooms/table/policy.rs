//! The rooms of `policy`: decisions without clocks, sockets or threads.

use super::{Layout, room};

pub(super) const POLICY: Layout = Layout {
    folder: "crates/policy",
    rooms: &[
        room("outcome", "how a request came back", &[]),
        room("target", "the number of a target", &[]),
        room("history", "the kinds of stages in a request's history", &[]),
        room("key", "hashes of keys and of targets' names", &[]),
        room("names", "the names of targets that are hashed", &["key"]),
        room("ds", "data structures that know no policy", &["target"]),
        room("gate", "a health check that flaps on purpose", &[]),
        room("fleet", "which members a fleet has, and how far a list is believed", &[]),
        room("subset", "which targets each loop prefers", &["target", "names", "fleet"]),
        room("limits", "which requests are admitted", &["key"]),
        room("attempts", "how often a request is tried", &["outcome", "target"]),
        room("balance", "which target a request goes to", &["outcome", "key", "names", "target", "ds"]),
        room("health", "which targets may be picked", &["outcome", "target", "ds", "balance"]),
        room(
            "upstream",
            "a balancer with the health of its targets; the journal of what is done to it",
            &["outcome", "names", "target", "ds", "subset", "balance", "health"],
        ),
        room(
            "lib",
            "the names that other crates use",
            &[
                "outcome", "names", "target", "ds", "fleet", "gate", "subset", "limits", "attempts",
                "balance", "health", "upstream",
            ],
        ),
    ],
};
