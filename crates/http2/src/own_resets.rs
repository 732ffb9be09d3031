//! Streams that a client resets soon after it has begun them. Servers take many of those for an attack (CVE-2023-44487) and end
//! the connection with all that is on it: Envoy when 250 of the first 500 streams are reset within 1 s, and later when half
//! are (`overload.premature_reset_total_stream_count`); nghttp2, and Node by it, at 1,000 resets and 33 more each second
//! (`nghttp2_option_set_stream_reset_rate_limit`). The streams of a proxy are of many clients, and one of these may cancel
//! much: a connection on which that happens takes nothing new before its server ends it.

/// A stream that is reset before this age is an early one.
const EARLY_NS: u64 = 1_000_000_000;

/// As many early resets as no server ends a connection for. As many streams more may be open then, which may be reset too.
const FEW: u32 = 100;

/// Early resets are many if they are more than one in so many streams.
const ONE_IN: u32 = 4;

/// Resets of any age in a period, below what nghttp2 allows for ever.
const MOST: u32 = 300;

/// That period.
const PERIOD_NS: u64 = 10_000_000_000;

/// The resets by this side on one connection.
#[derive(Debug, Default)]
pub(crate) struct OwnResets {
    /// Streams that are over, however they ended.
    over: u32,
    /// Those of them that were reset early.
    early: u32,
    /// When the period began, and the resets in it.
    since_ns: u64,
    lately: u32,
    are_many: bool,
}

impl OwnResets {
    /// A stream is over, however it ended.
    pub(crate) fn count_stream(&mut self) {
        self.over = self.over.saturating_add(1);
    }

    /// A stream of this age was reset.
    pub(crate) fn count_reset(&mut self, now_ns: u64, age_ns: u64) {
        if now_ns.saturating_sub(self.since_ns) > PERIOD_NS {
            (self.since_ns, self.lately) = (now_ns, 0);
        }
        self.lately = self.lately.saturating_add(1);
        self.early = self.early.saturating_add((age_ns < EARLY_NS).into());
        self.are_many |=
            self.lately >= MOST || self.early >= FEW && self.early.saturating_mul(ONE_IN) > self.over;
    }

    /// Whether a server may soon end the connection for them.
    pub(crate) fn are_many(&self) -> bool {
        self.are_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Streams, each of which ends before the next: resets at this age, one in so many; how many are over when these are
    /// many, of at most so many.
    fn over_at(age_ns: u64, one_in: u32, every_ns: u64, most: u32) -> Option<u32> {
        let mut resets = OwnResets::default();
        for n in 0..most {
            let now_ns = u64::from(n) * every_ns;
            if n % one_in == 0 {
                resets.count_reset(now_ns, age_ns);
            }
            resets.count_stream();
            if resets.are_many() {
                return Some(n + 1);
            }
        }
        None
    }

    #[test]
    fn many_early_resets_are_those_of_an_attack() {
        assert_eq!(over_at(3_000_000, 1, S, 1000), Some(100));
        assert_eq!(over_at(3_000_000, 3, S, 1000), Some(298));
        // As a gRPC server meets them, whose clients have deadlines: late ones, or few.
        assert_eq!(over_at(S, 1, S, 100_000), None);
        assert_eq!(over_at(3_000_000, 5, S, 100_000), None);
    }

    #[test]
    fn many_resets_in_a_short_time_count_at_any_age() {
        assert_eq!(over_at(2 * S, 1, S / 100, 1000), Some(300));
        // 25 in a second.
        assert_eq!(over_at(2 * S, 4, S / 100, 100_000), None);
    }
}
