//! Why a target is not picked, in words; metrics and logs use the names of [`Reason`].

use super::view::State;
use weir_policy::eligibility::Reason;

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
