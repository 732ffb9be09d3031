//! What a thread runs on: tasks and sockets, timers, buffers, the clock. Knows no other room.

pub(crate) mod buffers;
pub(crate) mod clock;
pub(crate) mod core;
pub(crate) mod date;
pub(crate) mod deadlines;
pub(crate) mod heavy;
pub(crate) mod held;
pub(crate) mod reuse;
pub(crate) mod runtime;
pub(crate) mod system;
pub(crate) mod timers;

pub(crate) use core::Core;
