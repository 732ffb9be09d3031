//! Balancing, retry and limit decisions as sans-I/O state machines: time and randomness are arguments.
//!
//! This crate has no clock, socket, thread or global generator. The simulator and the proxy call the same objects; a
//! policy that existed in one world only would be a defect. One policy, one file; each opens with its idea, the
//! signal it uses, its state and cost, its formula, its known pathologies and its source.
#![forbid(unsafe_code)]

pub mod attempts;
pub mod balance;
pub mod ds;
pub mod fleet;
pub mod gate;
pub mod health;
pub mod history;
pub mod key;
pub mod limits;
pub mod names;
pub mod outcome;
pub mod subset;
pub mod target;
pub mod upstream;

pub use attempts::{budget, hedge, retry};
pub use balance::{Ask, Balancer, Policy, Release, Table, Traits};
pub use balance::{
    first, least_conn, least_work, maglev, p2c, peak_ewma, prequal, random, ring_hash, round_robin, zuul,
};
pub use balance::{roster, split, sticky};
pub use ds::counts::SharedCounts;
pub use ds::{bits, bounded, levels};
pub use fleet::{MemberChange, Members};
pub use health::{active, eject, eligibility, outlier, panic, slow_start, snapshot};
pub use limits::rate;
pub use names::TargetNames;
pub use outcome::{Kind, Outcome};
pub use subset::{SubsetSizes, SubsetTable, Subsets};
pub use target::{TargetChange, TargetId};
pub use upstream::journal::{Change, Choice, Operation};
pub use upstream::{PickOutcome, Ticket, Upstream};

/// The arguments of all policies, as a plan holds them: plain data with every default explicit.
pub mod config {
    pub use crate::attempts::budget::Budget;
    pub use crate::attempts::hedge::Hedge;
    pub use crate::attempts::retry::{Exclude, Methods, Retry, Work};
    pub use crate::balance::Balance;
    pub use crate::balance::least_conn::LeastConnArgs;
    pub use crate::balance::maglev::MaglevArgs;
    pub use crate::balance::p2c::P2cArgs;
    pub use crate::balance::peak_ewma::PeakEwmaArgs;
    pub use crate::balance::prequal::PrequalArgs;
    pub use crate::balance::ring_hash::RingHashArgs;
    pub use crate::balance::round_robin::{RoundRobinArgs, Start};
    pub use crate::balance::ties::Ties;
    pub use crate::balance::zuul::ZuulArgs;
    pub use crate::fleet::Doubt;
    pub use crate::gate::{Flap, GateArgs, Work as GateWork};
    pub use crate::health::active::{Check, Initial};
    pub use crate::health::eject::Eject;
    pub use crate::health::outlier::Outlier;
    pub use crate::health::panic::OnEmpty;
    pub use crate::health::slow_start::{SlowStart, SlowStartLike};
    pub use crate::limits::rate::Rate;
    pub use crate::subset::{InstanceArgs, LoopsArgs, RandomArgs, RendezvousArgs, Subset};
}
