//! The plan: what a topology file is evaluated to, and the only thing that everything downstream sees of it.
//!
//! [`Plan`] is plain data ([`graph`]) with every default explicit. Around it lie the checks that a plan read from JSON
//! goes through (`validate`), the ranges and words that the language holds a file to as well ([`ranges`], [`address`],
//! [`template`], [`path`]), its hash, what each node is when served ([`serving`]), the load that each node is offered,
//! and what is surely a mistake in it ([`warn`]). The crate uses no Starlark, no clock and no socket; it reads two
//! kinds of file, the keys of sticky cookies ([`sticky`]) and, for their digest, certificates ([`named_files`]).
#![forbid(unsafe_code)]

pub mod address;
mod circles;
pub mod connections;
pub mod diagnostic;
pub mod duration;
mod expectation;
pub mod fixed;
pub mod fleets;
pub mod graph;
pub mod hash;
pub mod http;
pub mod insert;
pub mod json;
mod labels;
mod layers;
mod listen;
pub mod log_field;
pub mod loops;
mod matching;
pub mod named_files;
mod offered;
pub mod over_time;
pub mod path;
mod plan_json;
pub mod processes;
pub mod ranges;
mod reach;
pub mod rewriting;
pub mod serving;
mod source;
pub mod source_ranges;
pub mod sticky;
pub mod suggest;
pub mod template;
mod tls;
mod unmatched;
mod validate;
pub mod warn;
mod warned;
mod ways;

pub use diagnostic::{Diagnostic, Severity};
pub use expectation::{Condition, Expectation, Metric, Order};
pub use graph::{
    Change, ChangeKind, Clock, Connected, DataFile, Edge, Faulty, First, Fleet, FleetSource, HealthCheck,
    HedgeSpec, HttpCheck, KeySource, Keys, LEAST_LAG_NS, Lb, Leavers, Line, Mode, Node, NodeId, Place, Plan,
    Point, Recording, RequestShape, Rollout, RouteCondition, Scenario, Scope, Site, Spec, TargetState, Value,
    Wait, Window,
};
pub use labels::{label, target_labels};
pub use layers::{levels, listeners, only_way, timed_balancer, with_inner};
pub use listen::{
    Connecting, HalfClose, Http, HttpVersion, Listen, ListenProtocol, LogFormat, Origin, OriginProtocol,
    Paths, Rewrite, SendProxy,
};
pub use matching::{MatchInput, RequestParts};
pub use offered::{Effort, SiteLoad, effort, offered_load, unbounded_sites};
pub use plan_json::PlanError;
pub use source::{
    ConsulSource, DnsRecords, DnsSource, EurekaHost, EurekaSource, KubernetesPort, KubernetesSource,
    SourceKind,
};
pub use tls::{CertificateFiles, ClientAuth, MinVersion, TlsClient, TlsServer};
