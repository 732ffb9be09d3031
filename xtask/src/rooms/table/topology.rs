//! The rooms of `topology`: from Starlark to a plan.

use super::{Layout, Room, room};

/// Its rooms, the lowest first.
pub(super) const TOPOLOGY: Layout = Layout {
    folder: "crates/topology",
    rooms: &[
        room("params", "parameters of the crate", &[]),
        room("places", "the locations of calls in the text", &[]),
        Room {
            despite: &[("call", "a circle from before the table, to be opened")],
            ..room("data", "CSV files of the crate", &[])
        },
        Room {
            despite: &[("context", "a circle from before the table, to be opened")],
            ..room("graph", "the graph under construction", &["places"])
        },
        Room {
            despite: &[("nodes", "a circle from before the table, to be opened")],
            ..room("names", "the pass over a file's names before it runs", &["places"])
        },
        Room {
            despite: &[("evaluate", "a circle from before the table, to be opened")],
            ..room("wire", "how a request goes to the evaluating child and its answer comes back", &[])
        },
        Room {
            despite: &[("evaluate", "a circle from before the table, to be opened")],
            ..room(
                "lib",
                "turns a topology file into a plan (`weir-plan`), the only thing that everything downstream sees",
                &[],
            )
        },
        Room {
            despite: &[("nodes", "a circle from before the table, to be opened")],
            ..room("manual", "the manual of the language", &[])
        },
        Room {
            despite: &[("evaluate", "a circle from before the table, to be opened")],
            ..room("sandbox", "evaluation in a child process under limits", &["wire"])
        },
        Room {
            despite: &[
                ("nodes", "a circle from before the table, to be opened"),
                ("value", "they call each other: one protocol of the crate"),
            ],
            ..room("context", "the state of an evaluation", &["params", "places", "data", "graph"])
        },
        Room {
            despite: &[
                ("call", "a circle from before the table, to be opened"),
                ("value", "they call each other: one protocol of the crate"),
            ],
            ..room("nodes", "the registry of the crate", &["params", "places", "data", "graph", "context"])
        },
        Room {
            despite: &[("call", "a circle from before the table, to be opened")],
            ..room("value", "the values of the language that Starlark does not have", &["context", "nodes"])
        },
        room("call", "A call of a function of the language", &["context", "nodes", "value"]),
        room(
            "load",
            "parsing and running topology files, the first and those that it loads",
            &["places", "names", "context", "nodes", "value"],
        ),
        room(
            "evaluate",
            "evaluates a request (a file and its parameters) to a plan, in this process",
            &["params", "context", "nodes", "value", "load"],
        ),
    ],
};
