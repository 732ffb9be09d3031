//! The rooms of `serve`, the data plane.

use super::{Few, Held, room};

pub(super) const SERVE: Held = Held {
    folder: "crates/serve",
    rooms: &[
        room("metrics", "what weir counts of itself, and the formats that show it", &[]),
        room("log", "access log and error log, each written by a thread of its own", &["metrics"]),
        room("transport", "what belongs to a connection; sockets that listen", &["metrics", "log"]),
        room("sync", "what all loops share: semaphores, wait queues, time-lines", &[]),
        room("h1", "HTTP/1.1 behind the two ends; knows no node", &["metrics", "transport", "sync"]),
        room(
            "h2",
            "HTTP/2 behind the two ends, by the h2 crate; knows no node",
            &["metrics", "transport", "sync", "h1"],
        ),
        room(
            "exchange",
            "one request in flight: its graph, head, ends; the pump between them",
            &["metrics", "log", "transport", "sync", "h1", "h2"],
        ),
        room(
            "upstream",
            "a target by identity: where it is, its connections, one attempt there",
            &["metrics", "log", "transport", "sync", "h1", "h2", "exchange"],
        ),
        room(
            "nodes",
            "what each node does with a request",
            &["metrics", "sync", "h1", "exchange", "upstream"],
        ),
        room(
            "graph",
            "the nodes of one epoch, built from a plan; who is who across epochs",
            &["metrics", "transport", "sync", "exchange", "upstream", "nodes"],
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
                "h1",
                "h2",
                "exchange",
                "upstream",
                "nodes",
                "graph",
                "health",
            ],
        ),
        room(
            "inspect",
            "what whoever looks from outside sees: the live view, health, readiness",
            &["metrics", "transport", "exchange", "nodes", "graph", "health", "control"],
        ),
        room("lib", "what the command line calls", &["metrics", "control", "inspect", "transport"]),
    ],
    few: &[Few {
        file: "control/event_loop.rs",
        most: 12,
        why: "a loop is a leaf: nodes, exchanges and targets work with the core of their thread",
    }],
};
