//! The rooms of `gate`, what answers an application's health checks.

use super::{Layout, room};

/// Its rooms, the lowest first.
pub(super) const GATE: Layout = Layout {
    folder: "crates/gate",
    rooms: &[
        room("url", "where the application is asked", &[]),
        room("log", "a line for each answer that is news", &[]),
        room("options", "what the gate is told", &["url", "log"]),
        room("fetch", "one GET within a time", &["url"]),
        room("counter", "the sum of a counter in a page of metrics", &[]),
        room("askers", "the askers that are known", &[]),
        room(
            "state",
            "whether the application is ready, who asks, and how many requests come in",
            &["log", "options", "fetch", "askers"],
        ),
        room("probe", "what is asked again and again", &["fetch", "counter", "state"]),
        room("peers", "the gates of the other processes", &["url", "fetch", "state", "probe"]),
        room("agent", "the line for HAProxy's agent check", &["state"]),
        room("metrics", "the page of metrics", &["state"]),
        room("status", "the gate's state as JSON", &["state"]),
        room("answer", "what is answered to a request", &["options", "state", "metrics", "status"]),
        room(
            "serve",
            "sockets, connections and the end",
            &["log", "options", "fetch", "state", "probe", "peers", "agent", "answer"],
        ),
        room("dry_run", "when an asker is let in", &["log", "options"]),
        room("lib", "the names that the command line uses", &["url", "log", "options", "serve", "dry_run"]),
    ],
};
