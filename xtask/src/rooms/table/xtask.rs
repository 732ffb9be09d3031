//! The rooms of `xtask`.

use super::{Layout, room};

pub(super) const XTASK: Layout = Layout {
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
};
