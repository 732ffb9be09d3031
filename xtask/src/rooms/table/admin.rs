//! The rooms of `admin`, the admin interface.

use super::{Layout, Room, room};

/// Its rooms, the lowest first.
pub(super) const ADMIN: Layout = Layout {
    folder: "crates/admin",
    rooms: &[
        room("answer", "answers of the crate", &[]),
        room("limits", "the limits of clients of the admin interface, so that none delays another", &[]),
        room("access", "which requests are answered, and which may change something", &["limits"]),
        room("client", "`weir admin` of the crate", &["access"]),
        room("served", "the view of a served topology that the admin interface needs", &[]),
        room("stalls", "A connection whose peer must keep reading", &["limits"]),
        room("topology", "`GET /topology` and `GET /config`", &["answer", "served"]),
        Room {
            despite: &[("page", "a circle from before the table, to be opened")],
            ..room("watcher", "shares views of the crate", &["limits", "served"])
        },
        room("page", "the status page", &["answer", "topology", "watcher"]),
        Room {
            despite: &[("route", "a circle from before the table, to be opened")],
            ..room("server", "connections of the crate", &["limits", "access", "served", "stalls", "watcher"])
        },
        room("events", "`GET /events` of the crate", &["answer", "limits", "watcher", "page", "server"]),
        room("start", "start and end", &["limits", "access", "served", "server"]),
        room("lib", "the admin interface of a served topology", &["served", "start"]),
        Room {
            despite: &[("route", "a circle from before the table, to be opened")],
            ..room("post", "changes of the crate", &["answer", "limits", "served", "watcher", "server"])
        },
        room(
            "route",
            "the answer for each path",
            &["answer", "access", "topology", "watcher", "page", "server", "events", "post"],
        ),
    ],
};
