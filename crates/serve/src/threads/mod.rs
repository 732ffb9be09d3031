//! What a thread that serves has: its loop, the state that all threads of a process share, and the messages among them.
//! Types only; the rooms above act on them.

pub(crate) mod admission;
pub(crate) mod certificates;
pub(crate) mod clients;
pub(crate) mod event_loop;
pub(crate) mod generation;
pub(crate) mod load;
pub(crate) mod mail;
pub(crate) mod process;
mod tick;
pub(crate) mod transit;
pub(crate) mod watchdog;
