//! Why a target is not picked, in words; metrics and logs use the names of [`Reason`].

use super::gather::TargetHealth;
use super::view::{PoolView, State};
use weir_policy::eligibility::Reason;

/// The sentence for a member that the source of its fleet drains.
pub(super) const DRAINED: &str =
    "drained by the source of its fleet: no new requests, those in flight finish";

/// The sentence for a reason.
pub(super) fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::AdminDrain => "drained by hand: no new requests, those in flight finish",
        Reason::AdminDown => "taken out by hand",
        Reason::ChecksFailed => "its health checks fail, or have not passed yet",
        Reason::EjectedConsecutive => "ejected: its requests failed too often in a row",
        Reason::EjectedProbe => "ejected again: the request that probed it failed",
        Reason::EjectedConsecutive5xx => "ejected: too many errors in a row",
        Reason::EjectedGatewayFailure => "ejected: too many gateway errors in a row",
        Reason::EjectedLocalOrigin => "ejected: too many requests in a row without an answer",
        Reason::EjectedSuccessRate => "ejected: its success rate is far below that of the others",
        Reason::EjectedFailurePercentage => "ejected: too many of its requests fail",
        Reason::Probation => "its ejection has ended: one request may probe it",
        Reason::BehindDown => "no target behind it may be picked",
        Reason::Unresolved => "its name has no address",
        Reason::Removed => "removed",
        Reason::Added
        | Reason::AdminUp
        | Reason::ChecksPassed
        | Reason::Readmitted
        | Reason::BehindUp
        | Reason::Resolved => "it may be picked",
    }
}

/// A ramp; `limit`: of requests in flight, and what it will be.
pub(super) fn slow_start(share: f64, limit: Option<(u32, u32)>) -> String {
    let limits = limit.map(|(limit, most)| format!(", and {limit} of {most} requests in flight"));
    format!("slow start: {:.0} % of its weight so far{}", share * 100.0, limits.unwrap_or_default())
}

/// How a balancer serves although too few of its targets are eligible, or none; nothing if all is well, or none serves.
pub(super) fn serves(pool: &PoolView, has_spare: bool) -> Option<String> {
    let PoolView { name, eligible, of, .. } = pool;
    let finds = pool.targets.iter().any(|target| target.picked);
    match (pool.panic && finds, has_spare && !finds) {
        (true, _) => {
            Some(format!("{name} serves in spite of its health: {eligible} of {of} targets are eligible"))
        }
        (_, true) => Some(format!("{name} serves by its on_empty: none of its {of} targets may be picked")),
        _ => None,
    }
}

/// What is left of a state by hand, and a weight by hand beside that of the file; the state itself is a reason.
pub(super) fn by_hand(
    known: &TargetHealth,
    state_left_s: Option<f64>,
    weight_left_s: Option<f64>,
) -> impl Iterator<Item = String> {
    let state = state_left_s.map(|s| format!("its state by hand ends in {} s", s.ceil()));
    let weight = known.by_hand.weight.map(|_| {
        let ends = weight_left_s.map(|s| format!(" for another {} s", s.ceil())).unwrap_or_default();
        format!("its weight is set by hand{ends}; that of the file is {}", known.file_weight)
    });
    state.into_iter().chain(weight)
}

/// The one word for a target with this reason against it.
pub(super) fn state(reason: Reason) -> State {
    match reason {
        Reason::AdminDrain => State::Drain,
        Reason::AdminDown => State::Out,
        Reason::Probation => State::Probation,
        _ if reason.name().starts_with("ejected") => State::Ejected,
        _ => State::Down,
    }
}
