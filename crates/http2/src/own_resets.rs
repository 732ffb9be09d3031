//! The streams that a client resets. Servers take many resets for an attack (CVE-2023-44487) and end the connection with all
//! that is on it: Envoy when 250 of the first 500 streams are reset within 1 s of their begin, and later when half of them
//! are (`overload.premature_reset_total_stream_count`); nghttp2, and Node by it, at 1,000 resets and 33 more each second
//! (`nghttp2_option_set_stream_reset_rate_limit`). A proxy's connection carries the streams of many clients, and one client
//! may cancel many requests: that connection takes nothing new before its server ends it. Tomcat, which ends a new
//! connection after a few resets (`overheadResetFactor`), does so nonetheless.

/// A stream that is reset before this age is reset early: the age of Envoy.
const EARLY_NS: u64 = 1_000_000_000;

/// Fewer early resets do not matter.
const FEW: u16 = 50;

/// Early resets and open streams at the limit: below Envoy's 250 even if all open streams are reset too.
const EARLY_AND_OPEN: u32 = 200;

/// Early resets are too many above one in four streams.
const ONE_IN: u32 = 4;

/// Resets of any age at the limit in a period of the account, 10 s: fewer than nghttp2 allows for ever.
const PERIOD_RESETS: u16 = 300;

/// Early resets of a connection that is over a limit.
const OVER: u16 = u16::MAX;

/// Counts the resets of one connection, in few bytes: each idle connection has them.
#[derive(Debug, Default)]
pub(crate) struct OwnResets {
    period_resets: u16,
    early_resets: u16,
}

impl OwnResets {
    /// Begins another period.
    pub(crate) fn begin_period(&mut self) {
        self.period_resets = 0;
    }

    /// Counts the reset of a stream of this age. `open`: streams that are open, this one included; `finished`: streams that
    /// have ended in any way.
    pub(crate) fn count_reset(&mut self, age_ns: u64, open: u32, finished: u32) {
        self.period_resets = self.period_resets.saturating_add(1);
        self.early_resets = self.early_resets.saturating_add((age_ns < EARLY_NS).into());
        let early = u32::from(self.early_resets);
        let is_mostly_reset = self.early_resets >= FEW
            && early.saturating_add(open) >= EARLY_AND_OPEN
            && early * ONE_IN > finished;
        if is_mostly_reset || self.period_resets >= PERIOD_RESETS {
            self.early_resets = OVER;
        }
    }

    /// Whether a server may soon end the connection for its resets.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.early_resets == OVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Ends `most` streams one after another, `every_ns` apart, and resets one in `one_in` at this age, with `open` of them
    /// there. Returns how many had begun at the limit.
    fn begun_at_limit(age_ns: u64, one_in: u32, every_ns: u64, open: u32, most: u32) -> Option<u32> {
        let mut resets = OwnResets::default();
        (0..most).find_map(|n| {
            if u64::from(n) * every_ns % (10 * S) < every_ns {
                resets.begin_period();
            }
            if n % one_in == 0 {
                resets.count_reset(age_ns, open, n);
            }
            resets.is_over_limit().then_some(n + 1)
        })
    }

    #[test]
    fn many_early_resets_reach_the_limit() {
        assert_eq!(begun_at_limit(3_000_000, 1, S, 0, 1000), Some(200));
        assert_eq!(begun_at_limit(3_000_000, 1, S, 120, 1000), Some(80));
        assert_eq!(begun_at_limit(3_000_000, 1, S, 10_000, 1000), Some(50));
        assert_eq!(begun_at_limit(3_000_000, 3, S, 50, 1000), Some(448));
        // One in five, or late: these are the deadlines of gRPC's clients.
        assert_eq!(begun_at_limit(3_000_000, 5, S, 100, 100_000), None);
        assert_eq!(begun_at_limit(S, 1, S, 100, 100_000), None);
    }

    #[test]
    fn many_resets_of_a_period_reach_the_limit_at_any_age() {
        assert_eq!(begun_at_limit(2 * S, 1, S / 100, 0, 1000), Some(300));
        // 25 in a second.
        assert_eq!(begun_at_limit(2 * S, 4, S / 100, 0, 100_000), None);
    }
}
