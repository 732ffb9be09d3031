//! The streams that a client resets. Servers take many resets for an attack (CVE-2023-44487) and end the connection with all
//! that is on it: Envoy when 250 of the first 500 streams are reset within 1 s of their begin, and later when half of them
//! are (`overload.premature_reset_total_stream_count`); nghttp2, and Node by it, at 1,000 resets and 33 more each second
//! (`nghttp2_option_set_stream_reset_rate_limit`). A proxy's connection carries the streams of many clients, and one client
//! may cancel many requests: that connection takes nothing new before its server ends it. Tomcat, which ends a new
//! connection after a few resets (`overheadResetFactor`), does so nonetheless.

/// A stream that is reset before this age is reset early: the age of Envoy.
const EARLY_NS: u64 = 1_000_000_000;

/// Fewer early resets do not matter.
const FEW: u32 = 50;

/// Early resets and open streams at the limit: below Envoy's 250 even if all open streams are reset too.
const EARLY_AND_OPEN: u32 = 200;

/// Early resets are too many above one in four streams.
const ONE_IN: u32 = 4;

/// Resets of any age in a period at the limit: fewer than nghttp2 allows for ever.
const PERIOD_RESETS: u32 = 300;

/// The period.
const PERIOD_NS: u64 = 10_000_000_000;

/// Counts the resets of one connection.
#[derive(Debug, Default)]
pub(crate) struct OwnResets {
    /// Streams that have ended in any way.
    finished_streams: u32,
    early_resets: u32,
    period_begin_ns: u64,
    period_resets: u32,
    is_over_limit: bool,
}

impl OwnResets {
    /// Counts a stream that has ended in any way.
    pub(crate) fn count_stream(&mut self) {
        self.finished_streams = self.finished_streams.saturating_add(1);
    }

    /// Counts the reset of a stream of this age. `open`: streams that are open besides.
    pub(crate) fn count_reset(&mut self, now_ns: u64, age_ns: u64, open: u32) {
        if now_ns.saturating_sub(self.period_begin_ns) > PERIOD_NS {
            (self.period_begin_ns, self.period_resets) = (now_ns, 0);
        }
        self.period_resets = self.period_resets.saturating_add(1);
        self.early_resets = self.early_resets.saturating_add((age_ns < EARLY_NS).into());
        let early = self.early_resets;
        let is_mostly_reset = early >= FEW
            && early.saturating_add(open) >= EARLY_AND_OPEN
            && early.saturating_mul(ONE_IN) > self.finished_streams;
        self.is_over_limit |= is_mostly_reset || self.period_resets >= PERIOD_RESETS;
    }

    /// Whether a server may soon end the connection for its resets.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.is_over_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Ends `most` streams one after another, `every_ns` apart, and resets one in `one_in` at this age, with `open` others
    /// there. Returns how many had ended at the limit.
    fn ended_at_limit(age_ns: u64, one_in: u32, every_ns: u64, open: u32, most: u32) -> Option<u32> {
        let mut resets = OwnResets::default();
        for n in 0..most {
            if n % one_in == 0 {
                resets.count_reset(u64::from(n) * every_ns, age_ns, open);
            }
            resets.count_stream();
            if resets.is_over_limit() {
                return Some(n + 1);
            }
        }
        None
    }

    #[test]
    fn many_early_resets_reach_the_limit() {
        assert_eq!(ended_at_limit(3_000_000, 1, S, 0, 1000), Some(200));
        assert_eq!(ended_at_limit(3_000_000, 1, S, 120, 1000), Some(80));
        assert_eq!(ended_at_limit(3_000_000, 1, S, 10_000, 1000), Some(50));
        assert_eq!(ended_at_limit(3_000_000, 3, S, 50, 1000), Some(448));
        // One in five, or late: these are the deadlines of gRPC's clients.
        assert_eq!(ended_at_limit(3_000_000, 5, S, 100, 100_000), None);
        assert_eq!(ended_at_limit(S, 1, S, 100, 100_000), None);
    }

    #[test]
    fn many_resets_of_a_period_reach_the_limit_at_any_age() {
        assert_eq!(ended_at_limit(2 * S, 1, S / 100, 0, 1000), Some(300));
        // 25 in a second.
        assert_eq!(ended_at_limit(2 * S, 4, S / 100, 0, 100_000), None);
    }
}
