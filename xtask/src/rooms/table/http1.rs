//! The rooms of `http1`: messages of HTTP/1.1 and the rules of an intermediary.

use super::{Layout, Room, room};

/// Its rooms, the lowest first.
pub(super) const HTTP1: Layout = Layout {
    folder: "crates/http1",
    rooms: &[
        room("byte", "classes of bytes, as tables", &[]),
        room("edits", "changes of a message on its way", &[]),
        room("host", "A host with an optional port (RFC 9110 §7.2, RFC 3986 §3.2.2)", &["byte"]),
        room("limits", "how large a message's parts may be", &[]),
        room("name", "the field names that an intermediary knows, found by length and first byte", &["byte"]),
        room("block", "field lines and the bytes that they lie in", &["byte", "name"]),
        room("networks", "sets of addresses", &[]),
        room("reason", "the reason phrases of statuses, as they are registered", &[]),
        room("rule", "the table of strictness", &[]),
        room("chunk", "A chunk's line", &["byte", "rule"]),
        room(
            "connection",
            "the options of Connection, over all its lines (RFC 9110 §7.6.1)",
            &["byte", "limits", "name", "block", "rule"],
        ),
        room("framing", "how long a body is", &["byte", "name", "block", "rule"]),
        room("target", "A request target", &["byte", "host", "rule"]),
        room("trace_context", "trace Context (W3C, level 1)", &["byte", "name", "block"]),
        room("write", "writing field lines", &["edits", "name", "block"]),
        Room {
            despite: &[("split", "a circle from before the table, to be opened")],
            ..room(
                "request",
                "A parsed request head that owns its bytes",
                &["byte", "host", "limits", "name", "block", "rule", "connection", "framing", "target"],
            )
        },
        Room {
            despite: &[("split", "a circle from before the table, to be opened")],
            ..room(
                "response",
                "A parsed response head that owns its bytes",
                &["byte", "limits", "name", "block", "rule", "connection", "framing"],
            )
        },
        room(
            "convert",
            "messages that came by HTTP/2, as the same objects as those by HTTP/1.1: their parts are written as a head, which then goes through the one parser",
            &["byte", "limits", "rule", "write", "request", "response"],
        ),
        room(
            "render_response",
            "A response's head as the client gets it",
            &["edits", "name", "framing", "write", "response"],
        ),
        room("answer", "an answer of weir's own", &["reason", "write", "render_response"]),
        Room {
            despite: &[("forwarded", "a circle from before the table, to be opened")],
            ..room(
                "check",
                "the checks that an intermediary makes on a request before any node sees it",
                &[
                    "byte",
                    "limits",
                    "name",
                    "networks",
                    "rule",
                    "framing",
                    "target",
                    "trace_context",
                    "request",
                    "response",
                ],
            )
        },
        room("forwarded", "the client's address behind trusted peers", &["byte", "name", "request", "check"]),
        Room {
            despite: &[("split", "a circle from before the table, to be opened")],
            ..room("seek", "where a head ends", &["byte", "limits", "rule"])
        },
        room("diagnose", "why a head was not taken", &["byte", "limits", "rule", "seek"]),
        room(
            "split",
            "A head into its lines",
            &["byte", "limits", "name", "block", "rule", "framing", "seek", "diagnose"],
        ),
        room(
            "trailers",
            "fields after a chunked body (RFC 9110 §6.5)",
            &["limits", "name", "block", "rule", "write", "split"],
        ),
        room(
            "decoder",
            "reads a body from a stream of bytes that arrives in pieces of any size",
            &["limits", "rule", "chunk", "framing", "trailers"],
        ),
        room("encoder", "writes a body", &["framing", "write", "trailers"]),
        room(
            "render_request",
            "A request's head as the origin gets it",
            &["edits", "name", "framing", "write", "request", "check", "encoder"],
        ),
        room(
            "lib",
            "HTTP/1.1 messages and an intermediary's rules, sans-I/O: bytes in, events and bytes out",
            &[
                "edits",
                "limits",
                "networks",
                "reason",
                "rule",
                "framing",
                "target",
                "trace_context",
                "request",
                "response",
                "convert",
                "render_response",
                "answer",
                "check",
                "seek",
                "trailers",
                "decoder",
                "encoder",
                "render_request",
            ],
        ),
    ],
};
