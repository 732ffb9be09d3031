//! The rooms of `cli`, the command line.

use super::{Layout, room};

/// Its rooms, the lowest first.
pub(super) const CLI: Layout = Layout {
    folder: "crates/cli",
    rooms: &[
        room("examples", "the examples that ship, embedded", &[]),
        room("failure", "failures of a command", &[]),
        room("fault", "A panic is a fault of weir", &["failure"]),
        room("interrupt", "ctrl-C. While there is nothing to hand over it ends the process at once", &[]),
        room("output", "where results go", &["failure"]),
        room("args", "what several commands take", &[]),
        room("mistaken", "files that are given where a topology is wanted, and are something else", &[]),
        room("input", "from FILE to a plan", &["failure", "args", "mistaken"]),
        room("progress", "one line on a terminal that says how far a long run is", &[]),
        room(
            "commands",
            "the command line as plain data, and the commands, one file each",
            &["examples", "failure", "interrupt", "output", "args", "input", "progress"],
        ),
        room("main", "the `weir` binary", &["fault", "input", "commands"]),
    ],
};
