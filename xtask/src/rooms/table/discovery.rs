//! The rooms of `discovery`: lists of members, and the sources that give them.

use super::{Layout, room};

pub(super) const DISCOVERY: Layout = Layout {
    folder: "crates/discovery",
    rooms: &[
        room("place", "lines and columns in a text", &[]),
        room("fault", "why there is no list", &["place"]),
        room(
            "list",
            "what a list holds, whichever source gives it, and the JSON of files",
            &["fault", "place"],
        ),
        room("lib", "the public face: lists and faults", &["fault", "list", "place"]),
    ],
};
