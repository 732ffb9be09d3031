//! How long an HTTP/2 client may take nothing of the unsent bytes: `write_timeout`, or a second while this process
//! buffers more than its limit (`sync/buffered.rs`): clients that hold without reading go first, so that others have
//! room.

use crate::metrics::RequestLimit;
use crate::sync::buffered;
use crate::transport::session::Session;
use std::cell::{Cell, OnceCell};
use std::task::Context;
use weir_net::io::Core;
use weir_net::io::deadlines::Deadline;
use weir_plan::fixed::H2_STALLED_NS;

/// The limit of one stream, or of a connection's bytes.
#[derive(Default)]
pub(super) struct Stall {
    /// The amount taken so far, and when it last grew; `None`: nothing is unsent.
    last: Cell<Option<(u64, u64)>>,
    deadline: OnceCell<Deadline>,
}

impl Stall {
    /// The limit that has passed; otherwise wakes the task to check again. `taken`: bytes, ever.
    pub fn poll_ended(
        &self,
        cx: &mut Context<'_>,
        core: &Core,
        session: &Session,
        unsent: usize,
        taken: u64,
    ) -> Option<RequestLimit> {
        if unsent == 0 {
            self.last.set(None);
            return None;
        }
        let now_ns = core.now();
        let since_ns = self.last.get().filter(|(before, _)| *before == taken).map_or(now_ns, |(_, ns)| ns);
        self.last.set(Some((taken, since_ns)));
        let limit_ns = session.listener.http.write_timeout_ns.unwrap_or(u64::MAX);
        let (limit_ns, limit) = match buffered::is_over_limit() {
            true if H2_STALLED_NS < limit_ns => (H2_STALLED_NS, RequestLimit::Buffered),
            _ => (limit_ns, RequestLimit::WriteTimeout),
        };
        let left_ns = limit_ns.saturating_sub(now_ns.saturating_sub(since_ns));
        if left_ns == 0 {
            return Some(limit);
        }
        // No later than that, since passing the limit of buffered bytes wakes no task.
        let deadline = self.deadline.get_or_init(|| session.deadline.another(None));
        deadline.set(Some(left_ns.min(H2_STALLED_NS)));
        // Which limit it was shows at the next check.
        if deadline.ended(cx) { Some(limit) } else { None }
    }
}
