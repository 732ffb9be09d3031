//! How a request failed: the kind that policies count, and what the client is told.

use weir_policy::Kind;

/// An error on the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What policies count.
    pub kind: Kind,
    /// The status that the client sees.
    pub status: u16,
    /// Seconds after which it may come again, where that is known.
    pub retry_after_s: Option<u32>,
}

impl Failure {
    /// Of this kind, with the status of the contract's table (`language.md` §3, Failing and retrying).
    pub fn new(kind: Kind) -> Failure {
        let status = match kind {
            Kind::ConnectFailed | Kind::Refused | Kind::Overloaded | Kind::NoTarget => 503,
            Kind::Timeout | Kind::Lost => 504,
            Kind::Reset | Kind::BadResponse => 502,
            Kind::Status5xx => 500,
            Kind::BadRequest => 400,
            Kind::NoRoute => 404,
            // What nginx writes to its log; nobody reads it on the wire.
            Kind::Cancelled => 499,
        };
        let retry_after_s = (kind == Kind::Overloaded).then_some(1);
        Failure { kind, status, retry_after_s }
    }

    /// The client's message is at fault: malformed, too large, or it stalls.
    pub fn client(status: u16) -> Failure {
        Failure { kind: Kind::BadRequest, status, retry_after_s: None }
    }

    /// The client has gone.
    pub fn gone() -> Failure {
        Failure::new(Kind::Cancelled)
    }

    /// Whether nobody behind weir is to blame: then no target's account is touched.
    pub fn is_clients(&self) -> bool {
        matches!(self.kind, Kind::BadRequest | Kind::Cancelled)
    }
}
