//! A balancer, the keys it hashes, and the health of its targets.

use super::NodeId;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use weir_policy::config::{Balance, Check, Eject, OnEmpty, Outlier, SlowStart, Subset};

/// A balancer: its policy, and what all policies have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lb {
    /// Which target is picked.
    pub balance: Balance,
    /// The key that is hashed; only for policies that hash.
    pub key: Option<KeySource>,
    /// How long a target is passed over after a failed connection, ns; 0: not at all.
    pub pass_over_ns: u64,
    /// Active checks.
    pub health: Option<HealthCheck>,
    /// Ejection for failures in a row; never with `outlier`.
    pub eject: Option<Eject>,
    /// Outlier detection.
    pub outlier: Option<Outlier>,
    /// How targets that come back get their share.
    pub slow_start: Option<SlowStart>,
    /// Below this share of eligible targets health is ignored; 0: never.
    pub panic: f64,
    /// The treatment of a request when no target is left.
    pub on_empty: OnEmpty,
    /// The node that it gets then, with [`OnEmpty::Node`].
    pub spare: Option<NodeId>,
    /// The cookie by which clients return to their target.
    pub sticky: Option<String>,
    /// The file of the key under which its value is made ([`crate::sticky`]), as seen from the working directory;
    /// `None`: the cookie's name is the key. Never without `sticky`; its path is not part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky_key: Option<String>,
    /// The targets that each event loop prefers; `None`: all. Never with a policy that hashes, nor with `lb.first`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<Subset>,
    /// Whether all event loops share one state.
    pub scope: Scope,
    /// Requests in flight at a target at most.
    pub max_in_flight: Option<u32>,
    /// Connections to a target at most.
    pub max_connections: Option<u32>,
    /// Requests that wait while all targets are full at most; `None`: any number.
    pub max_waiting: Option<u64>,
    /// How long, ns; `None`: without limit.
    pub wait_timeout_ns: Option<u64>,
    /// The cost of a probe to a target's server, ns; `lb.prequal` in simulation only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probe_cost_ns: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Lb {
    /// A balancer with nothing around it.
    pub fn plain(balance: Balance) -> Lb {
        Lb {
            balance,
            key: None,
            pass_over_ns: 1_000_000_000,
            health: None,
            eject: None,
            outlier: None,
            slow_start: None,
            panic: 0.5,
            on_empty: OnEmpty::Fail,
            spare: None,
            sticky: None,
            sticky_key: None,
            subset: None,
            scope: Scope::Loop,
            max_in_flight: None,
            max_connections: None,
            max_waiting: None,
            wait_timeout_ns: None,
            probe_cost_ns: 0,
        }
    }
}

impl Lb {
    /// Whether all loops use one state, which one thread has when served: with `scope="process"`, unless counts are all
    /// that is shared.
    pub fn has_one_state(&self) -> bool {
        self.scope == Scope::Process && !self.balance.shares_counts()
    }

    /// How often its loops see each other's counts, ns, each loop having a state of its own; 0: always. `None`: never.
    pub fn sees_counts_every_ns(&self) -> Option<u64> {
        match self.scope {
            Scope::Loop => None,
            Scope::Process => self.balance.shares_counts().then_some(0),
            Scope::Lagged { every_ns } => Some(every_ns),
        }
    }

    /// Whether each loop follows at once what the others change of all counts.
    pub fn follows_counts(&self) -> bool {
        self.sees_counts_every_ns() == Some(0) && !self.balance.compares_counts()
    }
}

/// Where the key of a request comes from (`key.`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// A header of that name, lower case.
    Header(String),
    /// A cookie of that name.
    Cookie(String),
    /// The path.
    Path,
    /// The client's address.
    Client,
}

/// Whether a balancer's state is each event loop's or the process's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Each loop has its own.
    #[default]
    Loop,
    /// All loops share one; of policies whose state is the count of requests in flight, the counts.
    Process,
    /// Each loop has its own, and sees the counts of the others as they were at the last multiple of this time.
    Lagged {
        /// The time, ns; 1 ms or more.
        every_ns: u64,
    },
}

/// The shortest time of [`Scope::Lagged`], ns.
pub const LEAST_LAG_NS: u64 = 1_000_000;

/// `health.http(...)` or `health.tcp(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// When checks begin and what their results change.
    pub check: Check,
    /// The request; `None`: a connection is enough (`health.tcp`).
    pub http: Option<HttpCheck>,
    /// How long an answer may take, ns.
    pub timeout_ns: u64,
    /// Another port than the target's.
    pub port: Option<u16>,
    /// The address of this host that checks are sent from; `None`: the system chooses.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// The cost of a check to a modelled server, in place of its work, ns.
    pub cost_ns: u64,
}

/// The request of an HTTP check, and the expected answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpCheck {
    /// The path.
    pub path: String,
    /// The method.
    pub method: String,
    /// The Host header; `None`: the target's address.
    pub host: Option<String>,
    /// Lowest and highest status that passes, for each range.
    pub expect: Vec<(u16, u16)>,
}
