//! Balancers: a file per policy with its arguments and its reference text; what all share is in `common.rs`.

mod common;
pub(super) mod first;
pub(super) mod least_conn;
pub(super) mod least_work;
pub(super) mod maglev;
pub(super) mod p2c;
pub(super) mod peak_ewma;
pub(super) mod prequal;
pub(super) mod random;
pub(super) mod ring_hash;
pub(super) mod round_robin;
pub(super) mod zuul;
