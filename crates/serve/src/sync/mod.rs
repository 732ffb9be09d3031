//! State that all loops share, by atomics and messages: semaphores, wait queues, cells that are only tried, time-lines.

pub(crate) mod semaphore;
pub(crate) mod timeline;
pub(crate) mod try_cell;
pub(crate) mod wait_queue;

pub(crate) use semaphore::{Gate, Slot, Slots};
pub(crate) use try_cell::Brief;
pub(crate) use wait_queue::Line;
