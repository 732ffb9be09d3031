//! Which target a request goes to: a file per policy, and the balancer that holds a policy and its targets.

pub mod ask;
pub mod balancer;
pub mod first;
pub mod least_conn;
pub mod least_work;
pub mod maglev;
pub mod p2c;
pub mod peak_ewma;
pub mod prequal;
pub mod random;
pub mod ring_hash;
pub mod roster;
pub mod round_robin;
pub mod split;
pub mod sticky;
pub mod table;

pub use ask::Ask;
pub use balancer::{Balancer, Release};
pub use table::Table;
