//! A time limit whose clock is paused while weir waits for the client (`docs/spec/serving.md#timeouts`).

use super::Exchange;
use super::late::LateFlag;
use std::task::Context;
use weir_net::io::Core;
use weir_net::io::timers::Sleep;

/// The limit of one `timeout`.
pub(crate) struct TimeLimit {
    sleep: Sleep,
    /// How long weir had waited for the client when the limit was last set.
    waited_ns: u64,
    /// The flag of the balancer that it is around, if that judges its targets by their errors.
    late: Option<LateFlag>,
}

impl TimeLimit {
    /// A limit that begins now.
    pub fn new(ex: &Exchange, time_ns: u64, late: Option<LateFlag>) -> TimeLimit {
        TimeLimit { sleep: ex.core.timers.after(time_ns), waited_ns: ex.waited_for_client_ns(), late }
    }

    /// Drops what it has cut off.
    pub fn cut(&self, drops: impl FnOnce()) {
        match &self.late {
            Some(late) => late.during(drops),
            None => drops(),
        }
    }

    /// Whether it has passed; otherwise wakes the task then. Without an exchange there is no client to wait for.
    pub fn has_ended(&mut self, cx: &mut Context<'_>, core: &Core, ex: Option<&Exchange>) -> bool {
        while self.sleep.poll_ended(cx).is_ready() {
            let waited_ns = ex.map_or(self.waited_ns, |ex| ex.waited_for_client_ns());
            if waited_ns == self.waited_ns {
                return true;
            }
            self.sleep = core.timers.after(waited_ns - self.waited_ns);
            self.waited_ns = waited_ns;
        }
        false
    }
}
