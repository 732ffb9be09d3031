//! The rooms of `http2`: messages, streams and connections of HTTP/2.

use super::{Layout, room};

/// Its rooms, the lowest first.
pub(super) const HTTP2: Layout = Layout {
    folder: "crates/http2",
    rooms: &[
        room("error", "codes of RST_STREAM and GOAWAY, and why a connection ends", &[]),
        room("flood", "what a peer's frames cost and what they bring", &[]),
        room("own_resets", "streams that a client resets soon", &[]),
        room("hpack", "compression of fields (RFC 7541)", &[]),
        room("priority", "how urgent an answer is (RFC 9218)", &[]),
        room("frame", "frames: their heads, and which lengths and streams each kind may have", &["error"]),
        room("malformed", "the table of what ends one stream", &["error"]),
        room("window", "what may be sent, and what the peer may send", &["error"]),
        room("settings", "what the peer has set", &["error", "frame", "window"]),
        room("config", "what one side allows the other", &["frame", "settings", "window"]),
        room(
            "stream",
            "states of streams, and what is kept of each",
            &["error", "malformed", "priority", "window"],
        ),
        room("schedule", "which stream sends DATA next (RFC 9218)", &["priority", "stream"]),
        room(
            "message",
            "what fields of a message must be, and where they go",
            &["hpack", "malformed", "priority"],
        ),
        room(
            "connection",
            "one connection, of either role",
            &[
                "error",
                "flood",
                "own_resets",
                "hpack",
                "priority",
                "frame",
                "malformed",
                "window",
                "settings",
                "config",
                "stream",
                "schedule",
                "message",
            ],
        ),
        room(
            "lib",
            "HTTP/2 of an intermediary, sans-I/O: bytes in, events and bytes out",
            &[
                "error",
                "flood",
                "hpack",
                "priority",
                "frame",
                "malformed",
                "settings",
                "config",
                "message",
                "connection",
            ],
        ),
    ],
};
