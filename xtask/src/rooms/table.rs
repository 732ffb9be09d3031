//! The table: which rooms a crate has, and whom each may know. `cargo xtask rooms` shows what is.

/// A crate whose rooms are held to a table.
pub(super) struct Held {
    /// Its folder, from the root of the workspace.
    pub(super) folder: &'static str,
    /// Its rooms, the lowest first.
    pub(super) rooms: &'static [Room],
    /// Files that few may know.
    pub(super) few: &'static [Few],
}

/// A room: a folder right below `src`, or a file in it (by its name without `.rs`).
pub(super) struct Room {
    pub(super) name: &'static str,
    /// What it is for, in a sentence.
    pub(super) purpose: &'static str,
    /// All rooms that it may know; they stand above its line, since they lie below it.
    pub(super) knows: &'static [&'static str],
    /// Rooms that lie over it and that it knows all the same, each with the reason.
    pub(super) despite: &'static [(&'static str, &'static str)],
}

/// A room that knows only what lies below it; for others, `Room { despite: &[..], ..room(..) }`.
pub(super) const fn room(name: &'static str, purpose: &'static str, knows: &'static [&'static str]) -> Room {
    Room { name, purpose, knows, despite: &[] }
}

/// A file that at most so many others may know.
pub(super) struct Few {
    /// From `src`.
    pub(super) file: &'static str,
    pub(super) most: usize,
    pub(super) why: &'static str,
}

/// A crate without an entry is not held to anything.
pub(super) const TABLE: &[Held] = &[NET, SERVE, XTASK];

/// What threads run on, and speak to others by.
const NET: Held = Held {
    folder: "crates/net",
    rooms: &[
        room("io", "tasks, sockets, timers, buffers, the clock: what a thread runs on", &[]),
        room("transport", "connections as streams of bytes, in the clear or over TLS", &["io"]),
        room("lib", "what others see of it: both", &["io", "transport"]),
    ],
    few: &[],
};

/// The data plane.
const SERVE: Held = Held {
    folder: "crates/serve",
    rooms: &[
        room("metrics", "what weir counts of itself, and the formats that show it", &[]),
        room("log", "access log and error log, each written by a thread of its own", &[]),
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

const XTASK: Held = Held {
    folder: "xtask",
    rooms: &[
        room("command", "runs programs and tells how they ended", &[]),
        room("rooms", "which files of a crate know which, and which may", &[]),
        room("deps", "which crates and rooms know which", &["command", "rooms"]),
        room("tidy", "the lints of the tree", &[]),
        room("dist", "the binary as it is given to people", &["command"]),
        room("pgo", "a build laid out by a training run", &["command"]),
        room("recipes", "what each recipe runs", &["command", "deps", "rooms", "tidy"]),
        room(
            "main",
            "the names of the recipes",
            &["command", "deps", "dist", "pgo", "recipes", "rooms", "tidy"],
        ),
    ],
    few: &[],
};
