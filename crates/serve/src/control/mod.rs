//! The process: its threads and listeners, the mail between them, and how it starts and ends.

mod accept;
mod admission;
mod adopt;
mod built_in;
pub(crate) mod by_hand;
pub(crate) mod certificates;
mod clients;
mod connection;
mod event_loop;
pub(crate) mod hand_over;
mod handoff;
mod handshake;
mod listeners;
mod load;
mod mailbox;
mod process;
mod protocol;
mod proxied;
pub(crate) mod reload;
mod scrape;
pub(crate) mod start;
mod threads;
pub(crate) mod watchdog;
