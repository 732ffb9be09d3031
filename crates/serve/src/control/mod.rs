//! The process: its threads, listeners, mail among loops, and how it starts and ends.

pub(crate) mod accept;
pub(crate) mod built_in;
pub(crate) mod clients;
pub(crate) mod event_loop;
pub(crate) mod handoff;
pub(crate) mod mailbox;
pub(crate) mod process;
pub(crate) mod start;
