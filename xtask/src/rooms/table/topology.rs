//! The rooms of `topology`: from Starlark to a plan.

use super::{Layout, room};

/// Its rooms, the lowest first.
pub(super) const TOPOLOGY: Layout = Layout {
    folder: "crates/topology",
    rooms: &[
        room("params", "parameters of a file", &[]),
        room("own_time", "the processor time that a file's own code takes", &[]),
        room("places", "the locations of calls in the text", &[]),
        room("path_bytes", "paths between the processes of an evaluation", &[]),
        room("reading", "a file that a topology names, read up to a limit", &[]),
        room(
            "language",
            "what a function of the language is made of: its entry, a call, values, the state of an evaluation",
            &["own_time", "params", "places", "reading"],
        ),
        room("nodes", "the registry: a file for each function or family", &["params", "places", "language"]),
        room("names", "the pass over a file's names before it runs", &["places", "language", "nodes"]),
        room("manual", "the manual of the language, made from the registry", &["language", "nodes"]),
        room(
            "load",
            "parsing and running topology files, the first and those that it loads",
            &["own_time", "places", "reading", "language", "names", "nodes"],
        ),
        room(
            "evaluate",
            "evaluates a request (a file and its parameters) to a plan, in this process",
            &["own_time", "params", "path_bytes", "language", "nodes", "load"],
        ),
        room(
            "wire",
            "how a request goes to the evaluating child and its answer comes back",
            &["path_bytes", "evaluate"],
        ),
        room("sandbox", "evaluation in a child process under limits", &["own_time", "evaluate", "wire"]),
        room("lib", "what the other crates call", &["evaluate"]),
    ],
};
