//! Balancing, retry and limit decisions as sans-I/O state machines: time and randomness are arguments.
//!
//! This crate has no clock, socket, thread or global generator. The simulator and the proxy call the same objects; a
//! policy that existed in one world only would be a defect. One policy, one file; each opens with its idea, the
//! signal it uses, its state and cost, its formula, its known pathologies and its source.
#![forbid(unsafe_code)]

pub mod attempts;
pub mod balance;
pub mod config;
pub mod ds;
pub mod health;
pub mod history;
pub mod key;
pub mod limits;
pub mod outcome;
pub mod upstream;

pub use attempts::{budget, hedge, retry};
pub use balance::{Ask, Balancer, Release, Table};
pub use balance::{
    first, least_conn, least_work, maglev, p2c, peak_ewma, prequal, random, ring_hash, round_robin,
};
pub use balance::{roster, split, sticky};
pub use ds::{bits, bounded, levels};
pub use health::{active, eject, eligibility, outlier, panic, slow_start, snapshot};
pub use limits::rate;
pub use outcome::{Kind, Outcome};
pub use upstream::journal::{Choice, Deed};
pub use upstream::{Picked, Ticket, Upstream};
