//! The rooms of `heap`.

use super::{Layout, room};

pub(super) const HEAP: Layout = Layout {
    folder: "crates/heap",
    rooms: &[room("lib", "what the allocator gives back to the system, or keeps outside of heaps", &[])],
};
