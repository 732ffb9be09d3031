//! The rooms of `testkit`.

use super::{Layout, room};

pub(super) const TESTKIT: Layout = Layout {
    folder: "crates/testkit",
    rooms: &[
        room("frozen", "files that freeze an output", &[]),
        room("random", "random numbers and mutations from a seed", &[]),
        room("allocations", "an allocator that counts", &[]),
        room("bytes", "bytes that a reader must survive", &[]),
        room("lib", "what other crates' tests use", &["allocations", "bytes", "frozen", "random"]),
    ],
};
