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
pub(super) const TABLE: &[Held] = &[NET, PLAN, SERVE, XTASK];

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

/// What a topology file is evaluated to, and all that can be said of it without running it.
const PLAN: Held = Held {
    folder: "crates/plan",
    rooms: &[
        room("suggest", "the nearest of the names that exist", &[]),
        room("duration", "durations as text, read and shown", &["suggest"]),
        room("diagnostic", "what is wrong with a file, where, and the remedy", &[]),
        room("json", "reads JSON with Starlark's features of serde_json", &[]),
        room("fixed", "limits and times that no file sets", &[]),
        room("http", "words of HTTP as a file may give them", &[]),
        room("address", "addresses of listeners and servers", &["http"]),
        room("path", "paths as they are compared and rewritten", &["http"]),
        room("template", "values with placeholders in braces", &["http"]),
        room("tls", "data: certificates, and how an origin is verified", &[]),
        room("listen", "data: listeners, HTTP settings, origins", &["tls"]),
        room("expectation", "data: what a file expects of its scenarios", &[]),
        room("graph", "data: the plan, its points, nodes and scenarios", &["listen", "expectation"]),
        room("labels", "what nodes and targets are called", &["graph"]),
        room("layers", "the listeners, and which stand before which", &["graph"]),
        room("warned", "which warnings concern which scenario", &["graph"]),
        room("matching", "which request a condition matches", &["http", "path", "graph"]),
        room("rewriting", "requests as they are behind rewrites", &["path", "template", "listen", "graph"]),
        room("offered", "the load that each site is offered", &["graph", "rewriting"]),
        room("sticky", "keys of the cookies of sticky balancers", &["diagnostic", "http", "graph"]),
        room("hash", "the hash over a plan's meaning", &["listen", "graph"]),
        room(
            "ranges",
            "ranges of arguments, and words they may be",
            &["duration", "http", "address", "graph"],
        ),
        room(
            "validate",
            "checks a plan read from JSON as a file is checked",
            &[
                "http",
                "address",
                "path",
                "template",
                "tls",
                "listen",
                "expectation",
                "graph",
                "layers",
                "sticky",
                "ranges",
            ],
        ),
        room("plan_json", "a plan as JSON and back", &["json", "fixed", "graph", "hash", "validate"]),
        room(
            "circles",
            "servers whose address is a listener of the file",
            &["diagnostic", "address", "graph", "layers"],
        ),
        room(
            "serving",
            "what each node is when it is served",
            &["diagnostic", "tls", "graph", "layers", "circles"],
        ),
        room(
            "warn",
            "what is surely a mistake though it can be run",
            &["duration", "diagnostic", "path", "listen", "graph", "offered"],
        ),
        room(
            "lib",
            "names others use without the file they stand in",
            &[
                "diagnostic",
                "tls",
                "listen",
                "expectation",
                "graph",
                "labels",
                "layers",
                "matching",
                "offered",
                "plan_json",
            ],
        ),
    ],
    few: &[],
};

/// The data plane.
const SERVE: Held = Held {
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
