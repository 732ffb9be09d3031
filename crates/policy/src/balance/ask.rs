//! The input of a pick: the request, as far as a policy may look at it.

use crate::TargetId;
use weir_stats::Key;

/// One request that wants a target.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The request's own randomness.
    pub draw: Key,
    /// The hash of its key ([`crate::key::hash`]); `None` without a key.
    pub key: Option<u64>,
    /// Now.
    pub now_ns: u64,
    /// Targets to leave out as long as others remain.
    pub exclude: &'a [TargetId],
    /// The target that it should return to, if that may still be picked.
    pub sticky: Option<TargetId>,
}

impl Ask<'_> {
    /// A request without any properties.
    pub fn new(draw: Key, now_ns: u64) -> Ask<'static> {
        Ask { draw, key: None, now_ns, exclude: &[], sticky: None }
    }
}
