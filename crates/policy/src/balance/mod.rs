//! Which target a request goes to: a file per policy, and the balancer that holds a policy and its targets.

mod alias;
pub mod ask;
pub mod balancer;
pub mod first;
pub mod least_conn;
pub mod least_work;
pub mod maglev;
mod open;
pub mod p2c;
pub mod peak_ewma;
pub mod policy;
pub mod prequal;
pub mod random;
pub mod ring_hash;
pub mod roster;
pub mod round_robin;
pub mod split;
pub mod sticky;
pub mod table;
pub mod ties;
pub mod zuul;

pub use ask::Ask;
pub use balancer::Balancer;
pub use policy::{Policy, Release, Traits};
pub use table::Table;

use least_conn::LeastConnArgs;
use maglev::MaglevArgs;
use p2c::P2cArgs;
use peak_ewma::PeakEwmaArgs;
use prequal::PrequalArgs;
use ring_hash::RingHashArgs;
use round_robin::RoundRobinArgs;
use serde::{Deserialize, Serialize};
use zuul::ZuulArgs;

/// A balancing policy with its arguments. Weights belong to the targets and are not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Balance {
    /// A target drawn in proportion to the weights.
    Random,
    /// Each in turn; weighted: smooth, as nginx.
    RoundRobin(RoundRobinArgs),
    /// The target with the fewest requests in flight (by weight: the least in flight / weight).
    LeastConn(LeastConnArgs),
    /// The least loaded of a few drawn targets.
    P2c(P2cArgs),
    /// The first that is eligible.
    First,
    /// The cheaper of two drawn targets by latency that rises at once and falls slowly.
    PeakEwma(PeakEwmaArgs),
    /// The better of two drawn targets by failures, reported load and requests in flight.
    Zuul(ZuulArgs),
    /// The target of the request's key on a ring (ketama).
    RingHash(RingHashArgs),
    /// The target of the request's key in Maglev's table.
    Maglev(MaglevArgs),
    /// By asynchronous probes of requests in flight and latency.
    Prequal(PrequalArgs),
    /// The target with the least work left (clairvoyant).
    LeastWork,
}

/// Evaluates an expression with the type of a policy and its arguments.
macro_rules! with_policy {
    ($balance:expr, $policy:ident, $args:ident => $value:expr) => {
        match $balance {
            Balance::Random => with_policy!(random::Random, &(), $policy, $args => $value),
            Balance::RoundRobin(args) => with_policy!(round_robin::RoundRobin, args, $policy, $args => $value),
            Balance::LeastConn(args) => with_policy!(least_conn::LeastConn, args, $policy, $args => $value),
            Balance::P2c(args) => with_policy!(p2c::P2c, args, $policy, $args => $value),
            Balance::First => with_policy!(first::First, &(), $policy, $args => $value),
            Balance::PeakEwma(args) => with_policy!(peak_ewma::PeakEwma, args, $policy, $args => $value),
            Balance::Zuul(args) => with_policy!(zuul::Zuul, args, $policy, $args => $value),
            Balance::RingHash(args) => with_policy!(ring_hash::RingHash, args, $policy, $args => $value),
            Balance::Maglev(args) => with_policy!(maglev::Maglev, args, $policy, $args => $value),
            Balance::Prequal(args) => with_policy!(prequal::Prequal, args, $policy, $args => $value),
            Balance::LeastWork => with_policy!(least_work::LeastWork, &(), $policy, $args => $value),
        }
    };
    ($type:ty, $given:expr, $policy:ident, $args:ident => $value:expr) => {{
        type $policy = $type;
        let $args: &<$policy as Policy>::Args = $given;
        $value
    }};
}

impl Balance {
    /// What the policy needs from its callers.
    pub fn traits(&self) -> Traits {
        with_policy!(self, P, args => P::traits(args))
    }

    /// Whether loops can share its counts of requests in flight, each with a state of its own.
    pub fn shares_counts(&self) -> bool {
        matches!(self, Balance::LeastConn(_) | Balance::P2c(_) | Balance::Zuul(_))
    }

    /// Whether it compares the counts of few targets, so that a loop that shares them needs no view of all.
    pub fn compares_counts(&self) -> bool {
        matches!(self, Balance::P2c(_) | Balance::Zuul(_))
    }

    /// Whether its state is these counts alone: loops that share them have one state.
    pub fn is_counts_alone(&self) -> bool {
        matches!(self, Balance::LeastConn(_) | Balance::P2c(_))
    }

    /// Whether it counts what `eject` counts, a request that a `timeout` around it cut off too.
    pub fn counts_failures(&self) -> bool {
        matches!(self, Balance::Zuul(_))
    }

    /// The field of an answer in which a target reports its load, in lower case, if the policy reads one.
    pub fn load_field(&self) -> Option<&str> {
        match self {
            Balance::Zuul(args) => Some(&args.load),
            _ => None,
        }
    }

    /// The name in the language.
    pub fn name(&self) -> &'static str {
        with_policy!(self, P, _args => P::NAME)
    }

    /// Whether its loops may prefer subsets ([`crate::subset`]). A key must meet one target on every loop, and the first
    /// target is one.
    pub fn takes_subsets(&self) -> bool {
        !matches!(self, Balance::RingHash(_) | Balance::Maglev(_) | Balance::First)
    }
}
