//! The state machine of one name's answers: time and draws are arguments.
//!
//! - An answer holds for its TTL, at least a second and at most a minute.
//! - No answer (a server fails, or none answers) keeps the last good one for [`DNS_STALE_NS`] (RFC 8767 allows days;
//!   an origin that has moved shows in connections that fail). That there is no such name counts after
//!   [`DNS_DENIALS`] in a row.
//! - After a failure the name is looked up again after 1, 2, 4, ... 30 s, less up to a half.

use std::net::IpAddr;
use weir_plan::fixed::{
    DNS_DENIALS, DNS_MAX_BACKOFF_NS, DNS_MAX_TTL_NS, DNS_MIN_BACKOFF_NS, DNS_MIN_TTL_NS, DNS_STALE_NS,
};
use weir_stats::Key;

/// The result of looking up a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LookupResult {
    /// Addresses, and their TTL, ns.
    Addresses(Vec<IpAddr>, u64),
    /// The name does not exist, or has no address.
    Denied,
    /// No server gave an answer.
    Failed(String),
}

/// The consequence of a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The new addresses, IPv6 and IPv4 alternating (RFC 8305, 4); `None`: unchanged.
    pub addresses: Option<Vec<IpAddr>>,
    /// The time until the next look-up, ns.
    pub wait_ns: u64,
    /// A note for the error log.
    pub word: Option<String>,
}

/// A name that is followed.
pub(super) struct Follow {
    draw: Key,
    known: Vec<IpAddr>,
    good_ns: u64,
    failures: u32,
    denials: u32,
    /// Whether the log says that it is down.
    is_said: bool,
}

impl Follow {
    /// A name without any answer yet.
    pub fn new(draw: Key) -> Follow {
        Follow { draw, known: Vec::new(), good_ns: 0, failures: 0, denials: 0, is_said: false }
    }

    /// Applies a result.
    pub fn heard(&mut self, now_ns: u64, heard: LookupResult) -> Step {
        let why = match heard {
            LookupResult::Addresses(list, ttl_ns) if !list.is_empty() => {
                return self.resolved(now_ns, &list, ttl_ns);
            }
            LookupResult::Addresses(..) | LookupResult::Denied => {
                self.denials += 1;
                "there is no such name, or it has no address".to_owned()
            }
            LookupResult::Failed(why) => {
                self.denials = 0;
                why
            }
        };
        let stale = now_ns.saturating_sub(self.good_ns) >= DNS_STALE_NS || self.denials >= DNS_DENIALS;
        let gone = stale && !self.known.is_empty();
        if gone {
            self.known.clear();
        }
        let word = (self.known.is_empty() && !self.is_said)
            .then(|| format!("does not resolve ({why}): it is down until it does"));
        self.is_said |= word.is_some();
        Step { addresses: gone.then(Vec::new), wait_ns: self.backoff_ns(), word }
    }

    fn resolved(&mut self, now_ns: u64, list: &[IpAddr], ttl_ns: u64) -> Step {
        (self.good_ns, self.failures, self.denials) = (now_ns, 0, 0);
        let list = by_turns(list);
        let word = std::mem::take(&mut self.is_said).then(|| "resolves now".to_owned());
        let addresses = (list != self.known).then(|| list.clone());
        self.known = list;
        Step { addresses, wait_ns: ttl_ns.clamp(DNS_MIN_TTL_NS, DNS_MAX_TTL_NS), word }
    }

    fn backoff_ns(&mut self) -> u64 {
        let longest = (DNS_MIN_BACKOFF_NS << self.failures.min(5)).min(DNS_MAX_BACKOFF_NS);
        self.failures += 1;
        longest - self.draw.with(u64::from(self.failures)).below(longest / 2)
    }
}

/// Alternates the families, IPv6 first, each in its original order.
fn by_turns(list: &[IpAddr]) -> Vec<IpAddr> {
    let mut families: [Vec<IpAddr>; 2] = Default::default();
    for ip in list {
        let family = &mut families[usize::from(ip.is_ipv4())];
        if !family.contains(ip) {
            family.push(*ip);
        }
    }
    let longest = families[0].len().max(families[1].len());
    (0..longest).flat_map(|i| families.iter().filter_map(move |f| f.get(i).copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn ips(text: &str) -> Vec<IpAddr> {
        text.split_whitespace().map(|ip| ip.parse().unwrap()).collect()
    }

    fn good(text: &str, ttl_s: u64) -> LookupResult {
        LookupResult::Addresses(ips(text), ttl_s * S)
    }

    fn failed() -> LookupResult {
        LookupResult::Failed("nobody answers".to_owned())
    }

    #[test]
    fn families_by_turns_ipv6_first() {
        assert_eq!(
            by_turns(&ips("10.0.0.1 10.0.0.2 10.0.0.3 ::1 ::2 10.0.0.1")),
            ips("::1 10.0.0.1 ::2 10.0.0.2 10.0.0.3")
        );
    }

    #[test]
    fn answers_hold_for_their_ttl_within_bounds() {
        let mut name = Follow::new(Key::new(1));
        let step = name.heard(0, good("10.0.0.1", 5));
        assert_eq!(step, Step { addresses: Some(ips("10.0.0.1")), wait_ns: 5 * S, word: None });
        let step = name.heard(5 * S, good("10.0.0.1", 0));
        assert_eq!(step, Step { addresses: None, wait_ns: S, word: None });
        let step = name.heard(6 * S, good("10.0.0.2", 86_400));
        assert_eq!((step.addresses, step.wait_ns), (Some(ips("10.0.0.2")), 60 * S));
    }

    #[test]
    fn failures_keep_the_last_good_answer_with_a_bound() {
        let mut name = Follow::new(Key::new(1));
        name.heard(0, good("10.0.0.1", 5));
        let (mut now, mut waits) = (5 * S, Vec::new());
        while now < DNS_STALE_NS {
            let step = name.heard(now, failed());
            assert_eq!((step.addresses, step.word), (None, None));
            waits.push(step.wait_ns);
            now += step.wait_ns;
        }
        for (wait, longest) in waits.iter().zip([1, 2, 4, 8, 16, 30, 30]) {
            assert!((longest * S / 2..=longest * S).contains(wait), "{wait}");
        }
        let step = name.heard(now, failed());
        assert!(step.addresses == Some(vec![]) && step.word.is_some_and(|w| w.contains("nobody answers")));
        assert_eq!(name.heard(now + S, failed()).word, None, "said once");
        let step = name.heard(now + 2 * S, good("10.0.0.1", 5));
        assert_eq!((step.addresses, step.word), (Some(ips("10.0.0.1")), Some("resolves now".to_owned())));
    }

    #[test]
    fn a_denial_counts_after_three() {
        let mut name = Follow::new(Key::new(1));
        assert!(
            name.heard(0, LookupResult::Denied).word.is_some(),
            "one that never resolved is down at once"
        );
        name.heard(0, good("10.0.0.1", 5));
        let news = |name: &mut Follow, heard| name.heard(S, heard).addresses;
        assert_eq!(news(&mut name, LookupResult::Denied), None);
        assert_eq!(news(&mut name, LookupResult::Denied), None);
        assert_eq!(news(&mut name, failed()), None);
        assert_eq!([0, 1, 2].map(|_| news(&mut name, LookupResult::Denied)), [None, None, Some(vec![])]);
    }
}
