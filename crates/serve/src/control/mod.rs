//! The process: how its threads start and end, what they are asked from outside, and how another process takes its
//! place.

mod built_in;
mod crashes;
mod drain;
mod gather;
pub(crate) mod hand_over;
mod leftover;
mod mailbox;
pub(crate) mod remote;
mod scrape;
mod spawn;
pub(crate) mod start;

#[cfg(test)]
pub(crate) mod panic_tests;
#[cfg(test)]
mod reload_tests;
