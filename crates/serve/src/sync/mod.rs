//! State that all loops share, by atomics and messages: semaphores, wait queues, cells that are only tried,
//! timelines, signals, channels. No request waits for a lock (`docs/spec/serving.md#loop-and-process`).

pub(crate) mod buffered;
pub(crate) mod channel;
mod chunks;
pub(crate) mod counter;
pub(crate) mod discards;
pub(crate) mod gate;
pub(crate) mod panics;
pub(crate) mod process;
pub(crate) mod semaphore;
pub(crate) mod shared_list;
pub(crate) mod signal;
pub(crate) mod slices;
pub(crate) mod timeline;
pub(crate) mod try_cell;
pub(crate) mod wait_queue;

pub(crate) use semaphore::{Denied, LocalSemaphore, Permit, Semaphore};
pub(crate) use try_cell::TryCell;
pub(crate) use wait_queue::WaitQueue;
