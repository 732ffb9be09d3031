//! `weir verify` and `weir load`: what is simulated, sent for real.

mod changes;
mod interrupts;
mod load;
mod requests;
#[path = "../shared/mod.rs"]
mod shared;
