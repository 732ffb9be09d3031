//! The rooms of `admin`, the admin interface.

use super::{Layout, room};

/// Its rooms, the lowest first.
pub(super) const ADMIN: Layout = Layout {
    folder: "crates/admin",
    rooms: &[
        room("answer", "the answer to a request, as text, JSON or a page", &[]),
        room("limits", "the limits of clients of the admin interface, so that none delays another", &[]),
        room("access", "which requests are answered, and which may change something", &["limits"]),
        room("age", "stretches of time in words", &[]),
        room("client", "`weir admin`: sends a request to a running process", &["access", "age"]),
        room("served", "the view of a served topology that the admin interface needs", &[]),
        room("places", "which connection makes room for another", &[]),
        room("stalls", "a connection whose peer must keep reading", &["limits", "places"]),
        room("topology", "`GET /topology` and `GET /config`", &["answer", "served"]),
        room("page", "the status page", &["age", "answer", "topology"]),
        room("watcher", "views of what is served, shared by all clients", &["limits", "served", "page"]),
        room("server", "the state that all connections share", &["access", "served", "watcher"]),
        room(
            "events",
            "`GET /events`: what has changed on the page, as it changes",
            &["answer", "limits", "page", "server"],
        ),
        room(
            "post",
            "requests that change something: reload, drain, a target",
            &["answer", "limits", "access", "served", "watcher", "server"],
        ),
        room(
            "route",
            "the answer for each path",
            &["answer", "access", "topology", "page", "watcher", "server", "events", "post"],
        ),
        room(
            "connections",
            "accepting and serving connections",
            &["limits", "access", "places", "stalls", "server", "route"],
        ),
        room(
            "start",
            "start and end of the interface",
            &["limits", "access", "served", "server", "connections"],
        ),
        room("lib", "the admin interface of a served topology", &["served", "start"]),
    ],
};
