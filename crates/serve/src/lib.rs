//! The data plane: a topology file as a running HTTP load balancer, one event loop per core.
//!
//! A request is a future on the loop that accepted its connection: `h1::server` or `h2::server` reads and answers,
//! `exchange` takes it through its steps, `nodes` are the nodes of the topology (with the simulator's own policies),
//! `upstream` and the clients of `h1` and `h2` are the connections behind. No lock is taken on that path.
#![forbid(unsafe_code)]

mod accept;
mod control;
mod exchange;
mod fleets;
mod graph;
mod h1;
mod h2;
mod health;
mod inspect;
mod log;
mod message;
mod metrics;
mod nodes;
mod reload;
mod sync;
mod threads;
mod transport;
mod upstream;
mod verify_run;

pub use control::hand_over::{HandOverError, HandedFleet, MAGIC as HAND_OVER, Predecessor};
pub use control::remote::Remote;
pub use control::start::{Running, start};
pub use inspect::{
    CertificateView, CheckView, EventView, FleetView, LeavingView, LimitView, ListenerView, LoopView, OnLoop,
    PoolView, QueueView, Readiness, RecentView, State, SubsetsView, TargetView, View,
};
pub use metrics::Exposition;
pub use reload::options::{Error, Listening, Options};
pub use reload::overrides::{CannotSet, SetTarget, TargetState, TargetWeight};
pub use reload::reloader::{Config, NewTopology, ReloadError, Source};
pub use threads::certificates::check_certificates;
pub use transport::bind::CannotListen;
pub use transport::inherit::Inherited;
pub use transport::side_listener::SideListener;
pub use verify_run::{BalancerCreated, PlayerMailbox, RequestEnded, RunEvent, RunRole, VerifyRun};
pub use weir_net::io::system::explain;
pub use weir_net::transport::tls::CannotUse;
