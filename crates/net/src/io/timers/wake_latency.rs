//! How long before a timer is due its loop wakes, and when it may stay awake until then.
//!
//! A sleeping core is late to wake: some 10 µs on bare metal, 50 to 300 in a virtual machine whose host put it to
//! sleep. A model of 1 ms would be a quarter too slow there. So the lead follows how late wakings were, and the rest
//! of it is spent awake; for at most a tenth of the time, since other work may need the core.

/// The longest lead: on a machine that is later than this, timers are late.
const MOST_NS: u64 = 300_000;

/// A step of the estimate.
const STEP_NS: u64 = 2_000;

/// One waking in this number should be later than the lead.
const LATER: u64 = 10;

/// The share of the time that may be spent awake, as one in this number, and the limit of what is saved up.
const SHARE: u64 = 10;
const SAVED_NS: u64 = 3_000_000;

/// The lead of a loop.
#[derive(Debug, Default)]
pub(super) struct WakeLatency {
    lead_ns: u64,
    /// The time that may be spent awake, and when that was computed.
    saved_ns: u64,
    counted_ns: u64,
}

impl WakeLatency {
    /// The time to wake for a timer: at once, to stay awake until it is due; or when it is due, if no time may be
    /// spent awake.
    pub fn begins(&mut self, now_ns: u64, at_ns: u64) -> u64 {
        match at_ns.saturating_sub(self.lead_ns) {
            before if before > now_ns => before,
            _ if self.stays_awake(now_ns, at_ns) => now_ns,
            _ => at_ns,
        }
    }

    /// Notes how late a waking was: estimates a quantile, by steps.
    pub fn woken(&mut self, late_ns: u64) {
        self.lead_ns = if late_ns > self.lead_ns {
            (self.lead_ns + (LATER - 1) * STEP_NS).min(late_ns).min(MOST_NS)
        } else {
            self.lead_ns.saturating_sub(STEP_NS).max(late_ns)
        };
    }

    /// Whether to stay awake until then.
    pub fn stays_awake(&mut self, now_ns: u64, at_ns: u64) -> bool {
        let since = now_ns.saturating_sub(self.counted_ns);
        self.saved_ns = (self.saved_ns + since / SHARE).min(SAVED_NS);
        self.counted_ns = now_ns;
        at_ns.saturating_sub(now_ns) <= self.lead_ns.min(self.saved_ns)
    }

    /// Notes time that was spent awake.
    pub fn spend_awake(&mut self, ns: u64) {
        self.saved_ns = self.saved_ns.saturating_sub(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_is_what_nine_wakings_in_ten_stay_below() {
        let mut lead = WakeLatency::default();
        for i in 0..10_000u64 {
            lead.woken(1_000 * (i * 37 % 100));
        }
        assert!((80_000..=97_000).contains(&lead.lead_ns), "of 0 to 99 us: {}", lead.lead_ns);
        (0..1000).for_each(|_| lead.woken(50_000_000));
        assert_eq!(lead.lead_ns, MOST_NS, "a stall is nobody's lead");
        (0..1000).for_each(|_| lead.woken(5_000));
        assert_eq!(lead.lead_ns, 5_000);
    }

    #[test]
    fn a_tenth_of_the_time_is_spent_awake_at_most() {
        let (mut lead, mut spent) = (WakeLatency::default(), 0);
        (0..1000).for_each(|_| lead.woken(200_000));
        let second = 1_000_000_000;
        for now in (0..second).step_by(250_000) {
            if lead.stays_awake(now, now + 200_000) {
                lead.spend_awake(200_000);
                spent += 200_000;
            }
        }
        assert!((second / 11..=second / 9).contains(&spent), "{spent}");
        let later = 2 * second;
        assert!(!lead.stays_awake(later, later + 200_001), "longer than the lead");
        assert_eq!(lead.begins(later, later + 300_000), later + 100_000, "early by the lead");
        assert_eq!(lead.begins(later, later + 100_000), later, "at once");
        lead.spend_awake(SAVED_NS);
        assert_eq!(lead.begins(later, later + 100_000), later + 100_000, "no turn without an end");
    }

    /// As a loop does it: after a waking it stays awake until the time, and only then shows how late it was.
    #[test]
    fn a_waking_in_time_stays_awake_until_it_is_due() {
        let mut lead = WakeLatency::default();
        (0..1000).for_each(|_| lead.woken(100_000));
        let mut now = 1_000_000_000;
        for _ in 0..20 {
            let due = now + 1_000_000;
            let tells = lead.begins(now, due);
            now = tells + 1_000;
            assert!(tells < due && lead.stays_awake(now, due), "{lead:?}");
            lead.spend_awake(due - now);
            lead.woken(now - tells);
            now = due;
        }
        assert!(lead.lead_ns >= 100_000 - 20 * STEP_NS, "{lead:?}");
    }
}
