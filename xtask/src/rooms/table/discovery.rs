//! The rooms of `discovery`: lists of members, and the sources that give them.

use super::{Layout, room};

pub(super) const DISCOVERY: Layout = Layout {
    folder: "crates/discovery",
    rooms: &[
        room("clock", "the time of the thread, for all others an argument", &[]),
        room("place", "lines and columns in a text", &[]),
        room("fault", "why there is no list, and how often that is reported", &["place"]),
        room(
            "list",
            "what a list holds, whichever source gives it, and the JSON of files",
            &["fault", "place"],
        ),
        room("file", "a list in a file, and how its changes are seen", &["clock", "fault", "list"]),
        room("files", "the thread of files of any other content", &["clock", "fault", "file"]),
        room("readers", "how many threads of a process read files", &[]),
        room("source", "a source with the last list that it gave", &["list"]),
        room(
            "registry",
            "registries that are asked: DNS, Eureka, Consul, Kubernetes",
            &["fault", "list", "source"],
        ),
        room(
            "run",
            "the threads of all sources",
            &["clock", "fault", "file", "list", "readers", "registry", "source"],
        ),
        room(
            "lib",
            "the public face: lists, faults and the threads",
            &["fault", "files", "list", "place", "readers", "registry", "run", "source"],
        ),
    ],
};
