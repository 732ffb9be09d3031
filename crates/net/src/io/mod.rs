//! What a thread runs on: tasks and sockets, timers, buffers, the clock. Knows no other room.

pub mod buffers;
pub mod clock;
pub mod core;
pub mod date;
pub mod deadlines;
pub mod heavy;
pub mod pipes;
pub mod reuse;
pub mod runtime;
pub mod system;
pub mod tcp;
pub mod timers;

pub use core::Core;
