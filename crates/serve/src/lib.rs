//! The data plane: a topology file as a running HTTP load balancer, one event loop per core.
//!
//! A request is a future on the loop that accepted its connection: `h1::server` reads and answers, `exchange` takes it through
//! its stages, `nodes` are the way through the topology (the policies are the simulator's own objects), `upstream` and
//! `h1::client` are the connections behind. Nothing on that way takes a lock.
#![forbid(unsafe_code)]

mod control;
mod exchange;
mod graph;
mod h1;
mod h2;
mod health;
mod inspect;
mod log;
mod message;
mod metrics;
mod nodes;
mod sync;
mod transport;
mod upstream;
mod verify_run;

pub use control::by_hand::{SetTarget, TargetState};
pub use control::certificates::check_certificates;
pub use control::hand_over::{MAGIC as HAND_OVER, Predecessor};
pub use control::reload::{Config, Next, Source};
pub use control::start::{Error, Listening, Options, Remote, Running, start};
pub use inspect::{ListenerView, LoopView, OnLoop, PoolView, QueueView, Readiness, State, TargetView, View};
pub use metrics::Exposition;
pub use transport::aside::SideListener;
pub use transport::bind::CannotListen;
pub use transport::inherit::Inherited;
pub use verify_run::{BalancerCreated, RequestEnded, RunEvent, RunRole, VerifyRun};
pub use weir_net::io::system::explain;
pub use weir_net::transport::tls::CannotUse;
