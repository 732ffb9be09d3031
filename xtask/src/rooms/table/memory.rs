//! The rooms of `memory`.

use super::{Layout, room};

pub(super) const MEMORY: Layout = Layout {
    folder: "crates/memory",
    rooms: &[room(
        "lib",
        "what the allocator gives back to the system or keeps outside of heaps, and loads into caches",
        &[],
    )],
};
