//! Every kind of node and every policy of balancers, with real traffic over sockets.

#[path = "../common/mod.rs"]
mod common;

mod attempts;
mod balance;
mod buffered;
mod cancel;
mod choose;
mod everywhere;
mod faults;
mod fixed;
mod layers;
mod limits;
mod models;
mod proxied;
mod queues;
mod registry;
mod rewrite;
mod zuul;
