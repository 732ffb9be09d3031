//! The process: its threads, listeners, mail among them, and how it starts and ends.

mod accept;
mod admission;
mod built_in;
pub(crate) mod certificates;
mod clients;
mod connection;
mod event_loop;
mod handoff;
mod handshake;
mod load;
mod mailbox;
mod process;
mod protocol;
mod proxied;
pub(crate) mod start;
mod threads;
pub(crate) mod watchdog;
