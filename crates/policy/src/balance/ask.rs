//! What a balancer is asked: the request, as far as a policy may look at it.

use weir_stats::Key;

/// One request that wants a target.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The request's own randomness.
    pub draw: Key,
    /// The hash of its key ([`crate::key::hash`]); `None` where it has none.
    pub key: Option<u64>,
    /// Now.
    pub now_ns: u64,
    /// Targets to leave out as long as others remain.
    pub exclude: &'a [u32],
    /// The target that it should return to, where it still can be picked.
    pub sticky: Option<u32>,
}

impl Ask<'_> {
    /// A request of which nothing is known.
    pub fn new(draw: Key, now_ns: u64) -> Ask<'static> {
        Ask { draw, key: None, now_ns, exclude: &[], sticky: None }
    }
}
