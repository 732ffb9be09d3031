//! The rooms of `serve`, the data plane.

use super::{Layout, Restriction, room};

pub(super) const SERVE: Layout = Layout {
    folder: "crates/serve",
    rooms: &[
        room("metrics", "what weir counts of itself, and the formats that show it", &[]),
        room("log", "access log and error log, each written by a thread of its own", &["metrics"]),
        room("verify_run", "a run of a verification in this process, and the events it reports", &[]),
        room(
            "transport",
            "what belongs to a connection; sockets that listen",
            &["metrics", "log", "verify_run"],
        ),
        room("sync", "what all loops share: semaphores, wait queues, time-lines", &[]),
        room(
            "message",
            "what both versions of HTTP say: pieces, heads, errors",
            &["metrics", "transport", "sync"],
        ),
        room(
            "h1",
            "HTTP/1.1 behind the two ends; knows no node",
            &["metrics", "transport", "sync", "message"],
        ),
        room(
            "h2",
            "HTTP/2 behind the two ends, by the h2 crate; knows no node",
            &["metrics", "transport", "sync", "message"],
        ),
        room(
            "exchange",
            "one request in flight: its graph, head, ends; the pump between them",
            &["metrics", "log", "transport", "sync", "message", "h1", "h2", "verify_run"],
        ),
        room(
            "upstream",
            "a target by identity: where it is, its connections, one attempt there",
            &["metrics", "log", "transport", "sync", "message", "h1", "h2", "exchange", "verify_run"],
        ),
        room(
            "nodes",
            "what each node does with a request",
            &["metrics", "sync", "message", "exchange", "upstream"],
        ),
        room(
            "graph",
            "the nodes of one epoch, built from a plan; who is who across epochs",
            &["metrics", "transport", "sync", "exchange", "upstream", "nodes", "verify_run"],
        ),
        room(
            "health",
            "checks and outcomes; who the targets are",
            &["metrics", "log", "h1", "h2", "exchange", "upstream", "nodes", "graph"],
        ),
        room(
            "control",
            "the process: threads, listeners, mail among them, start and end",
            &[
                "metrics",
                "log",
                "transport",
                "sync",
                "message",
                "h1",
                "h2",
                "exchange",
                "upstream",
                "nodes",
                "graph",
                "health",
                "verify_run",
            ],
        ),
        room(
            "inspect",
            "what whoever looks from outside sees: the live view, health, readiness",
            &["metrics", "transport", "exchange", "nodes", "graph", "health", "control"],
        ),
        room(
            "lib",
            "what the command line calls",
            &["metrics", "control", "inspect", "transport", "verify_run"],
        ),
    ],
    few: &[Restriction {
        file: "control/event_loop.rs",
        most: 12,
        why: "a loop is a leaf: nodes, exchanges and targets work with the core of their thread",
    }],
};
