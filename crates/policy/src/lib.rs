//! Balancing, retry and limit decisions as sans-I/O state machines: time and randomness are arguments.
//!
//! This crate has no clock, socket, thread or global generator. The simulator and the proxy call the same objects; a
//! policy that existed in one world only would be a defect. One policy, one file; each opens with its idea, the
//! signal it uses, its state and cost, its formula, its known pathologies and its source.
#![forbid(unsafe_code)]

pub mod active;
pub mod ask;
pub mod balancer;
pub mod bits;
pub mod bounded;
pub mod budget;
pub mod config;
pub mod deed;
pub mod eject;
pub mod eligibility;
pub mod first;
pub mod health;
pub mod hedge;
pub mod history;
pub mod key;
pub mod least_conn;
pub mod least_work;
pub mod levels;
pub mod maglev;
pub mod outcome;
pub mod outlier;
pub mod p2c;
pub mod panic;
pub mod passed_over;
pub mod peak_ewma;
pub mod prequal;
pub mod random;
pub mod rate;
pub mod retry;
pub mod ring_hash;
pub mod roster;
pub mod round_robin;
pub mod slow_start;
pub mod snapshot;
pub mod split;
pub mod sticky;
pub mod table;
pub mod upstream;

pub use ask::Ask;
pub use balancer::{Balancer, Release};
pub use deed::{Choice, Deed};
pub use outcome::{Kind, Outcome};
pub use table::Table;
pub use upstream::{Picked, Ticket, Upstream};
