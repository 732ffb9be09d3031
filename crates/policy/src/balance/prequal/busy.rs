//! How busy a target of `lb.prequal` is: what a probe of it is answered.

/// How busy a target is: what it would report of itself, as seen by the sender of all of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Requests in flight there.
    pub in_flight: u32,
    /// How long one answer takes while nothing else is there, ns, smoothed; 0: nothing came back yet.
    pub alone_ns: u64,
}

impl Busy {
    /// A request goes there.
    pub fn entered(&mut self) {
        self.in_flight += 1;
    }

    /// A request has left after this time, however it ended.
    pub fn left(&mut self, took_ns: u64) {
        self.in_flight -= 1;
        // By how many were there, so that it says what one costs: a target that was full once is not slow for ever.
        let alone_ns = took_ns / (u64::from(self.in_flight) + 1);
        let seen = &mut self.alone_ns;
        *seen = if *seen == 0 { alone_ns } else { *seen - *seen / 8 + alone_ns / 8 };
    }

    /// How long one more request would take, ns.
    pub fn latency_ns(&self) -> u64 {
        self.alone_ns.saturating_mul(u64::from(self.in_flight) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_busy_a_target_is_says_what_one_request_costs() {
        let mut busy = Busy::default();
        assert_eq!(busy.latency_ns(), 0);
        (0..4).for_each(|_| busy.entered());
        busy.left(400);
        assert_eq!(busy, Busy { in_flight: 3, alone_ns: 100 });
        assert_eq!(busy.latency_ns(), 400);
        (0..3).for_each(|_| busy.left(900));
        assert_eq!((busy.in_flight, busy.latency_ns()), (0, 100 - 12 + 37 - 15 + 56 - 20 + 112));
    }
}
