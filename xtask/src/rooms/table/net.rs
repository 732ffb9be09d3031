//! The rooms of `net`: what threads run on, and speak to others by.

use super::{Layout, room};

pub(super) const NET: Layout = Layout {
    folder: "crates/net",
    rooms: &[
        room("io", "tasks, sockets, timers, buffers, the clock: what a thread runs on", &[]),
        room("transport", "connections as streams of bytes, in the clear or over TLS", &["io"]),
        room("lib", "what others see of it: both", &["io", "transport"]),
    ],
};
