//! A source that gives no list: since when, and why.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use weir_discovery::{Fault, printable};

/// The most characters of a reason.
const MOST_REASON: usize = 400;

/// A time without lists of a fleet's source.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    /// When it began in this process, ns.
    since_ns: u64,
    /// How long it had lasted before, in processes whose place this one has taken, ns.
    before_ns: u64,
    /// Why, as it was last reported: a sentence with what to do, printable, at most [`MOST_REASON`] characters; `None`: its
    /// source is asked for the first list.
    pub reason: Option<Arc<str>>,
}

/// The same for a successor, which has a clock of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HandedOutage {
    /// How long it has lasted, ns.
    pub lasting_ns: u64,
    /// Why, as it was last reported; empty: no fault was.
    pub reason: String,
}

impl Outage {
    /// One that begins.
    pub fn new(now_ns: u64, fault: &Fault) -> Outage {
        Outage { since_ns: now_ns, before_ns: 0, reason: Some(reason(fault)) }
    }

    /// The time until the first list of a source that is asked from now on. `waited`: for how long it was waited for before.
    pub fn until_first(now_ns: u64, waited: Duration) -> Outage {
        let before_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        Outage { since_ns: now_ns, before_ns, reason: None }
    }

    /// The same one after another fault.
    pub fn go_on(&self, fault: &Fault) -> Outage {
        Outage { reason: Some(reason(fault)), ..*self }
    }

    /// How long it has lasted, ns.
    pub fn lasting_ns(&self, now_ns: u64) -> u64 {
        self.before_ns.saturating_add(now_ns.saturating_sub(self.since_ns))
    }

    /// For a successor of this process.
    pub fn hand(&self, now_ns: u64) -> HandedOutage {
        let reason = self.reason.as_deref().unwrap_or_default().to_owned();
        HandedOutage { lasting_ns: self.lasting_ns(now_ns), reason }
    }

    /// A predecessor's.
    pub fn restored(now_ns: u64, handed: &HandedOutage) -> Outage {
        let reason = bounded(&printable(&handed.reason));
        let reason = (!reason.is_empty()).then(|| reason.into());
        Outage { since_ns: now_ns, before_ns: handed.lasting_ns, reason }
    }
}

/// A fault as a page and a log have it. How long it has lasted is known better here.
fn reason(fault: &Fault) -> Arc<str> {
    let fault = Fault { lasting: Duration::ZERO, ..fault.clone() };
    bounded(&printable(&fault.to_string())).into()
}

/// The beginning of a text from outside.
fn bounded(text: &str) -> String {
    let mut rest = text.chars();
    let mut beginning: String = rest.by_ref().take(MOST_REASON).collect();
    if rest.next().is_some() {
        beginning.push_str("...");
    }
    beginning
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_discovery::{Defect, FaultKind};

    fn reason(problem: &str) -> String {
        let (problem, remedy) = (problem.to_owned(), "see to the registry".to_owned());
        let defect = Defect { kind: FaultKind::Unexpected, place: None, problem, remedy };
        let fault = Fault { subject: "consul web".to_owned(), defect, lasting: Duration::from_secs(310) };
        Outage::new(0, &fault).reason.expect("why").to_string()
    }

    #[test]
    fn a_reason_is_printable_and_has_an_end() {
        assert_eq!(
            reason("http://a answers 500\u{1b}[1m\n"),
            "consul web: http://a answers 500\u{fffd}[1m\u{fffd}; see to the registry"
        );
        let long = reason(&"\u{e9}".repeat(5_000));
        assert_eq!(long.chars().count(), MOST_REASON + 3);
        assert!(long.starts_with("consul web: \u{e9}") && long.ends_with("\u{e9}..."), "{long}");
    }
}
